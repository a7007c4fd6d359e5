"""The tree of errors against its table and its drawing, and what the special ones carry."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from corral.core import errors
from corral.core.errors import ERRORS, CorralError, Failure, InvalidModelfile, InvalidRequest


def descendants(kind: type[CorralError]) -> Iterator[type[CorralError]]:
    """Every error below one, save Failure, which takes the code it is given."""
    for child in kind.__subclasses__():
        if child.__module__ == errors.__name__ and child is not Failure:
            yield child
            yield from descendants(child)


def test_table_when_compared_with_the_tree() -> None:
    codes = [child.code for child in descendants(CorralError)]
    assert sorted(codes) == sorted(ERRORS)


def test_drawing_when_compared_with_the_tree() -> None:
    drawn = {line.split("── ")[1].split()[0] for line in (errors.__doc__ or "").splitlines() if "── " in line}
    assert drawn == {child.__name__ for child in descendants(CorralError)}


def test_status_when_the_caller_is_at_fault() -> None:
    # Retrying the same bad request never helps, and a fault of the caller's is never a 5xx.
    for child in descendants(InvalidRequest):
        assert ERRORS[child.code] == (400, False), child


def test_status_when_read_from_an_error() -> None:
    assert errors.ModelNotFound("model 'x' not found").status == 404
    assert errors.QueueFull("busy").status == 503


def test_place_when_a_modelfile_is_refused() -> None:
    error = InvalidModelfile("no", 3, 7)
    assert (str(error), error.message) == ("line 3, column 7: no",) * 2
    assert (error.line, error.column) == (3, 7)


@pytest.mark.parametrize(("code", "kept"), [("queue_full", "queue_full"), ("nonsense", "internal")])
def test_code_when_an_error_crosses_a_process(code: str, kept: str) -> None:
    failure = Failure(code, "text")
    assert (failure.code, failure.status, failure.message) == (kept, ERRORS[kept].status, "text")
