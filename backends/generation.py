"""One running request: from an engine's tokens to events, through characters, stop strings and the output parser."""

from __future__ import annotations

import secrets
import string
import time
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from ..core.events import (
    Candidate,
    Done,
    Event,
    FinishReason,
    TextDelta,
    ThinkingDelta,
    Timings,
    TokenLogprob,
    ToolCallDelta,
    Usage,
)
from ..core.types import GenerateRequest
from ..modelfile.output.pieces import CallPiece, Piece, TextPiece, ThinkingPiece
from ..modelfile.output.syntax import OutputParser
from .prompt import PreparedPrompt
from .protocol import Constraint, StepOutput, Tokenizer
from .text import Detokenizer, StopMatcher

_ID_LETTERS = string.ascii_lowercase + string.digits
_ID_LENGTH = 8


class PreparedRequest(NamedTuple):
    """A request with all that was worked out beside the engine's thread.

    `parser` None means that all of the answer is text; `specials` are texts of control tokens that it wants to see.
    """

    request: GenerateRequest
    prompt: PreparedPrompt
    constraint: Constraint | None = None
    parser: OutputParser | None = None
    specials: frozenset[str] = frozenset()


class Generation:
    """A request's answer so far on its way out, its counts and times."""

    def __init__(self, prepared: PreparedRequest, tokenizer: Tokenizer) -> None:
        self.request = prepared.request
        self.prompt = prepared.prompt
        self._parser = prepared.parser
        self._specials = prepared.specials
        self._tokenizer = tokenizer
        self._detokenizer = Detokenizer()
        self._stops = StopMatcher(self.request.sampling.stop)
        self._logprobs: deque[TokenLogprob] = deque()
        self._tokens: list[int] = []
        self._started_ns = time.monotonic_ns()
        self._first_ns = 0
        self._num_cached = 0
        self._num_shifted = 0
        self._num_guessed = 0, 0

    @property
    def num_tokens(self) -> int:
        """Tokens of the answer so far."""
        return len(self._tokens)

    def advance(self, output: StepOutput) -> tuple[list[Event], bool]:
        """Events of one new token, and whether the answer ended on it."""
        events = self._begin(output) if not self._first_ns else []
        self._num_cached = output.num_cached
        self._num_shifted = output.num_shifted
        self._num_guessed = output.num_drafted, output.num_accepted
        text = ""
        if output.token is not None:
            self._tokens.append(output.token)
            if not output.is_end:
                text = self._take_text(output)
        if self._stops.hit is not None:
            self._logprobs.clear()
            return [*events, *self._events(text, is_last=True), self._done(FinishReason.STOP)], True
        if output.finish is not None:
            text += self._stops.flush()
            return [*events, *self._events(text, is_last=True), self._done(output.finish)], True
        return events + self._events(text, is_last=False), False

    def _begin(self, output: StepOutput) -> list[Event]:
        """Note when the prompt was done; an answer that begins with its prompt does so now."""
        self._first_ns = time.monotonic_ns()
        if not self.request.echo:
            return []
        entries = []
        if self.request.top_logprobs is not None and self.prompt.tokens:
            first = self._candidate(self.prompt.tokens[0], None)
            entries = [TokenLogprob(first), *map(self._describe_prompt, self.prompt.tokens[1:], output.prompt)]
        return [TextDelta(self.prompt.text, tuple(entries))]

    def _take_text(self, output: StepOutput) -> str:
        assert output.token is not None
        if self.request.top_logprobs is not None:
            self._logprobs.append(self._describe(output.token, output.logprob, output.top))
        data = self._tokenizer.piece(output.token)
        if not data and self._specials:
            # Markers of calls and thinking may be control tokens, which are no text to anyone else.
            special = self._tokenizer.special_text(output.token)
            if special in self._specials:
                data = special.encode()
        return self._stops.feed(self._detokenizer.feed(data))

    def _events(self, text: str, is_last: bool) -> list[Event]:
        if self._parser is None:
            pieces: list[Piece] = [TextPiece(text)] if text else []
        else:
            pieces = self._parser.feed(text) if text else []
            pieces += self._parser.finish() if is_last else []
        events = [self._event(piece) for piece in pieces]
        held = self._stops.holds or (self._parser is not None and not is_last)
        if self._logprobs and not held:
            # Of tokens that are no text by themselves, or part of a call.
            events.append(TextDelta("", tuple(self._logprobs)))
            self._logprobs.clear()
        return events

    def _event(self, piece: Piece) -> Event:
        if isinstance(piece, CallPiece):
            call_id = new_call_id() if piece.name else ""
            return ToolCallDelta(piece.index, call_id, piece.name, piece.arguments)
        logprobs = tuple(self._logprobs)
        self._logprobs.clear()
        if isinstance(piece, ThinkingPiece):
            return ThinkingDelta(piece.text, logprobs)
        return TextDelta(piece.text, logprobs)

    def _describe_prompt(self, token: int, found: tuple[float, tuple[tuple[int, float], ...]]) -> TokenLogprob:
        return self._describe(token, *found)

    def _describe(self, token: int, logprob: float, top: Sequence[tuple[int, float]]) -> TokenLogprob:
        return TokenLogprob(
            self._candidate(token, logprob), tuple(self._candidate(candidate, value) for candidate, value in top)
        )

    def _candidate(self, token: int, logprob: float | None) -> Candidate:
        data = self._tokenizer.piece(token)
        return Candidate(data.decode("utf-8", "replace"), data, logprob, token)

    def _done(self, reason: FinishReason) -> Done:
        ended_ns = time.monotonic_ns()
        first_ns = self._first_ns or ended_ns
        warnings = []
        if self.prompt.num_dropped:
            warnings.append(
                f"the {self.prompt.num_dropped} oldest messages were left out: the conversation does not fit the window"
            )
        if self._num_shifted:
            warnings.append(f"the window was full: {self._num_shifted} old tokens were dropped to go on")
        return Done(
            reason,
            Usage(self.prompt.num_cells, len(self._tokens), self._num_cached, *self._num_guessed),
            Timings(first_ns - self._started_ns, ended_ns - first_ns),
            tuple(warnings),
            self._context() if self.request.want_context else (),
            self._stops.hit,
        )

    def _context(self) -> tuple[int, ...]:
        """Prompt and answer as tokens. Images are none."""
        return (*(token for token in self.prompt.tokens if token >= 0), *self._tokens)


def new_call_id() -> str:
    """An id for a tool call, in the form that clients know."""
    return "call_" + "".join(secrets.choice(_ID_LETTERS) for _ in range(_ID_LENGTH))
