"""What turns requests into tokens and tokens into events, between the runner's socket and the engine's step loop."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from ..core.events import (
    Candidate,
    Done,
    Event,
    Failed,
    FinishReason,
    Rendered,
    TextDelta,
    Timings,
    TokenLogprob,
    Usage,
)
from ..core.types import GenerateRequest
from .prompt import PreparedPrompt, PromptBuilder
from .protocol import Constraint, Engine, EngineRequest, StepOutput, Tokenizer
from .structured import GrammarCompiler
from .text import Detokenizer, StopMatcher

# An answer without a limit ends after this many windows (contract section 4).
MAX_WINDOWS = 10


class Generation:
    """One running request: its text so far on the way out, its counts and times."""

    def __init__(self, request: GenerateRequest, prompt: PreparedPrompt, tokenizer: Tokenizer) -> None:
        self.request = request
        self.prompt = prompt
        self._tokenizer = tokenizer
        self._detokenizer = Detokenizer()
        self._stops = StopMatcher(request.sampling.stop)
        self._logprobs: deque[TokenLogprob] = deque()
        self._tokens: list[int] = []
        self._started_ns = time.monotonic_ns()
        self._first_ns = 0
        self._num_cached = 0
        self._num_shifted = 0

    @property
    def num_tokens(self) -> int:
        """Tokens of the answer so far."""
        return len(self._tokens)

    def advance(self, output: StepOutput) -> tuple[list[Event], bool]:
        """Events of one new token, and whether the answer ended on it."""
        if not self._first_ns:
            self._first_ns = time.monotonic_ns()
        self._num_cached = output.num_cached
        self._num_shifted = output.num_shifted
        text = ""
        if output.token is not None:
            self._tokens.append(output.token)
            if not output.is_end:
                text = self._take_text(output)
        if self._stops.hit is not None:
            self._logprobs.clear()
            return [*self._delta(text), self._done(FinishReason.STOP)], True
        if output.finish is not None:
            return [*self._delta(text + self._stops.flush()), self._done(output.finish)], True
        return self._delta(text), False

    def _take_text(self, output: StepOutput) -> str:
        assert output.token is not None
        if self.request.top_logprobs is not None:
            self._logprobs.append(self._describe(output, output.token))
        return self._stops.feed(self._detokenizer.feed(self._tokenizer.piece(output.token)))

    def _delta(self, text: str) -> list[Event]:
        if not text and not (self._logprobs and not self._stops.holds):
            return []
        logprobs = tuple(self._logprobs)
        self._logprobs.clear()
        return [TextDelta(text, logprobs)]

    def _describe(self, output: StepOutput, token: int) -> TokenLogprob:
        return TokenLogprob(
            self._candidate(token, output.logprob),
            tuple(self._candidate(candidate, logprob) for candidate, logprob in output.top),
        )

    def _candidate(self, token: int, logprob: float) -> Candidate:
        data = self._tokenizer.piece(token)
        return Candidate(data.decode("utf-8", "replace"), data, logprob)

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
            Usage(len(self.prompt.tokens), len(self._tokens), self._num_cached),
            Timings(first_ns - self._started_ns, ended_ns - first_ns),
            tuple(warnings),
            (*self.prompt.tokens, *self._tokens) if self.request.want_context else (),
        )


class PreparedRequest(NamedTuple):
    """A request with all that was worked out beside the engine's thread."""

    request: GenerateRequest
    prompt: PreparedPrompt
    constraint: Constraint | None


class Pipeline:
    """All running requests of one engine. `prepare` runs on the socket's thread, the rest on the engine's."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._builder = PromptBuilder(engine.tokenizer, engine.info.chat_template)
        self._grammars = GrammarCompiler(engine.tokenizer)
        self._running: dict[int, Generation] = {}

    def prepare(self, request: GenerateRequest) -> PreparedRequest:
        """Prompt tokens and grammar of a request. Errors: ContextExceeded, InvalidTemplate, InvalidFormat."""
        prompt = self._builder.prepare(request.prompt, self._window(request), request.truncate, request.template)
        constraint = self._grammars.compile(request.format) if request.format else None
        return PreparedRequest(request, prompt, constraint)

    def start(self, prepared: PreparedRequest) -> list[Event]:
        """Begin a generation. Returns the events of one that needs no engine."""
        request, prompt = prepared.request, prepared.prompt
        if request.render_only:
            return [Rendered(prompt.text, len(prompt.tokens)), Done(FinishReason.STOP)]
        window = self._window(request)
        limit = MAX_WINDOWS * window
        asked = request.sampling.num_predict
        self._running[request.id] = Generation(request, prompt, self._engine.tokenizer)
        self._engine.add(
            EngineRequest(
                id=request.id,
                tokens=prompt.tokens,
                sampling=request.sampling,
                max_tokens=limit if asked < 0 else min(asked, limit),
                window=window,
                shift=request.shift,
                top_logprobs=request.top_logprobs,
                constraint=prepared.constraint,
            )
        )
        return []

    def abort(self, request_id: int) -> list[Event]:
        """Drop a generation; its one terminal event says that the client left."""
        generation = self._running.pop(request_id, None)
        if generation is None:
            return []
        self._engine.abort(request_id)
        return [Failed("client_gone", f"cancelled after {generation.num_tokens} tokens")]

    def absorb(self, outputs: Iterable[StepOutput]) -> list[tuple[int, Event]]:
        """Events of one step, in order, each with its request."""
        events: list[tuple[int, Event]] = []
        for output in outputs:
            generation = self._running.get(output.id)
            if generation is None:
                continue
            new, ended = generation.advance(output)
            events += [(output.id, event) for event in new]
            if ended:
                del self._running[output.id]
                if output.finish is None:
                    self._engine.abort(output.id)
        return events

    def fail_all(self, failed: Failed) -> list[tuple[int, Event]]:
        """End every generation, when the engine cannot go on."""
        events: list[tuple[int, Event]] = [(request_id, failed) for request_id in self._running]
        self._running.clear()
        return events

    def _window(self, request: GenerateRequest) -> int:
        loaded = self._engine.info.num_ctx
        return min(request.window, loaded) if request.window else loaded
