"""What leaves a runner at once, and what waits for more."""

from __future__ import annotations

from corral.backends.outbox import FLUSH_SECONDS, Outbox
from corral.core.events import Done, Event, FinishReason, TextDelta

DONE = Done(FinishReason.STOP)


class Receiver:
    """Collects frames; its clock stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 0.0
        self.frames: list[list[tuple[int, Event]]] = []
        self.outbox = Outbox(lambda frame: self.frames.append(frame.events), lambda: self.now)


def test_first_delta_leaves_at_once() -> None:
    receiver = Receiver()
    receiver.outbox.add([(1, TextDelta("a"))])
    assert receiver.frames == [[(1, TextDelta("a"))]]


def test_deltas_in_quick_succession_are_merged() -> None:
    receiver = Receiver()
    for letter in "abcd":
        receiver.outbox.add([(1, TextDelta(letter))])
    assert len(receiver.frames) == 1
    receiver.now = FLUSH_SECONDS
    receiver.outbox.add([(1, TextDelta("e"))])
    assert receiver.frames[1:] == [[(1, TextDelta("bcde"))]]


def test_end_takes_everything_along() -> None:
    receiver = Receiver()
    receiver.outbox.add([(1, TextDelta("a")), (2, TextDelta("x"))])
    receiver.outbox.add([(1, TextDelta("b")), (2, TextDelta("y"))])
    receiver.outbox.add([(1, DONE)])
    assert receiver.frames[1:] == [[(1, TextDelta("b")), (1, DONE), (2, TextDelta("y"))]]


def test_first_delta_of_another_request_leaves_at_once() -> None:
    receiver = Receiver()
    receiver.outbox.add([(1, TextDelta("a"))])
    receiver.outbox.add([(1, TextDelta("b"))])
    receiver.outbox.add([(2, TextDelta("x"))])
    assert receiver.frames[1:] == [[(1, TextDelta("b")), (2, TextDelta("x"))]]


def test_slow_model_waits_for_nothing() -> None:
    receiver = Receiver()
    for letter in "abc":
        receiver.now += 0.1
        receiver.outbox.add([(1, TextDelta(letter))])
    assert len(receiver.frames) == 3
