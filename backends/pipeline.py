"""What turns requests into tokens and tokens into events, between the runner's socket and the engine's step loop."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.errors import CorralError
from ..core.events import Done, Event, Failed, FinishReason, Rendered
from ..core.types import ChatPrompt, EmbedRequest, GenerateRequest, Image
from .embedding import EmbeddingQueue, PreparedEmbedding
from .generation import Generation, PreparedRequest
from .prompt import PromptBuilder
from .protocol import Engine, EngineRequest, Picture, StepOutput
from .structured import GrammarCompiler

# An answer without a limit ends after this many windows (contract section 4).
MAX_WINDOWS = 10
Prepared = PreparedRequest | PreparedEmbedding


class Pipeline:
    """All running requests of one engine. `prepare` runs beside the engine's thread, the rest on it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._builder = PromptBuilder(engine.tokenizer, engine.info.chat_template)
        self._grammars = GrammarCompiler(engine.tokenizer)
        self._embeddings = EmbeddingQueue(engine)
        self._running: dict[int, Generation] = {}

    @property
    def has_work(self) -> bool:
        """Whether a step would do something."""
        return self._engine.has_work or self._embeddings.has_work

    def prepare(self, request: GenerateRequest | EmbedRequest) -> Prepared:
        """What can be worked out of a request beforehand: tokens, grammar, the parser of its answer.

        Errors: ContextExceeded, InvalidTemplate, InvalidFormat.
        """
        if isinstance(request, EmbedRequest):
            return self._embeddings.prepare(request)
        window = self._window(request)
        if request.render_only:
            rendered = self._builder.render(request.prompt, window, request.template, self._read_pictures(request))
            return PreparedRequest(request, rendered)
        pictures = self._read_pictures(request)
        prompt = self._builder.prepare(request.prompt, window, request.truncate, request.template, pictures)
        if not isinstance(request.prompt, ChatPrompt):
            constraint = self._grammars.compile(request.format) if request.format else None
            return PreparedRequest(request, prompt, constraint)
        return self._prepare_chat(request, request.prompt, PreparedRequest(request, prompt))

    def start(self, prepared: Prepared) -> list[Event]:
        """Begin a request. Returns the events of one that needs no engine."""
        if isinstance(prepared, PreparedEmbedding):
            self._embeddings.start(prepared)
            return []
        request, prompt = prepared.request, prepared.prompt
        if request.render_only:
            return [self._rendered(prepared), Done(FinishReason.STOP)]
        window = self._window(request)
        limit = MAX_WINDOWS * window
        asked = request.sampling.num_predict
        sequence = EngineRequest(
            id=request.id,
            tokens=prompt.tokens,
            sampling=request.sampling,
            max_tokens=limit if asked < 0 else min(asked, limit),
            window=window - prompt.num_cells + len(prompt.tokens),
            shift=request.shift,
            top_logprobs=request.top_logprobs,
            constraint=prepared.constraint,
            prompt_logprobs=request.echo and request.top_logprobs is not None,
            adapters=request.adapters,
            pictures=prompt.pictures,
        )
        try:
            self._engine.add(sequence)
        except CorralError as error:
            return [Failed(error.code, error.message)]
        self._running[request.id] = Generation(prepared, self._engine.tokenizer)
        return []

    def abort(self, request_id: int) -> list[Event]:
        """Drop a request; its one terminal event says that the client left."""
        generation = self._running.pop(request_id, None)
        if generation is None:
            return self._embeddings.abort(request_id)
        self._engine.abort(request_id)
        return [Failed("client_gone", f"cancelled after {generation.num_tokens} tokens")]

    def step(self) -> list[tuple[int, Event]]:
        """Advance every request that can run: sequences by a token, embeddings by a batch."""
        events = self._absorb(self._engine.step()) if self._engine.has_work else []
        return events + (self._embeddings.step() if self._embeddings.has_work else [])

    def fail_all(self, failed: Failed) -> list[tuple[int, Event]]:
        """End every request, when the engine cannot go on."""
        events: list[tuple[int, Event]] = [(request_id, failed) for request_id in self._running]
        self._running.clear()
        return events + self._embeddings.fail_all(failed)

    def _prepare_chat(self, request: GenerateRequest, prompt: ChatPrompt, prepared: PreparedRequest) -> PreparedRequest:
        """The grammar and the parser of an answer that may hold thinking and tool calls."""
        policy = request.tool_policy
        syntax = self._builder.syntax(request.template, prompt)
        in_thinking = syntax.starts_in_thinking(prepared.prompt.text)
        forced = policy.is_required and bool(prompt.tools)
        constraint = None
        if forced:
            names = tuple(policy.names)
            specials = self._engine.tokenizer.special_tokens
            grammar = syntax.call_grammar(
                prompt.tools, names=names, parallel=policy.parallel and not names, special_tokens=specials
            )
            constraint = self._grammars.compile_calls(grammar, syntax.thinking if in_thinking else None)
        elif request.format is not None:
            constraint = self._grammars.compile(request.format, syntax.thinking if in_thinking else None)
        parser = None
        if prompt.tools or syntax.is_marked:
            parser = syntax.parser(prompt.tools, in_thinking=in_thinking, forced=forced)
        return prepared._replace(
            constraint=constraint, parser=parser, specials=syntax.specials if parser else frozenset()
        )

    def _absorb(self, outputs: Iterable[StepOutput]) -> list[tuple[int, Event]]:
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

    def _read_pictures(self, request: GenerateRequest) -> dict[bytes, Picture]:
        """The images of a request by their bytes. Errors: InvalidRequest, and what open_projector refuses with."""
        if request.projector is None or not isinstance(request.prompt, ChatPrompt):
            return {}
        parts = [part for message in request.prompt.messages for part in message.parts]
        images = dict.fromkeys(part.data for part in parts if isinstance(part, Image))
        if not images:
            return {}
        vision = self._engine.open_projector(request.projector)
        return {data: vision.read(data) for data in images}

    def _rendered(self, prepared: PreparedRequest) -> Rendered:
        tokens = tuple(prepared.prompt.tokens)
        if not prepared.request.want_context:
            return Rendered(prepared.prompt.text, len(tokens))
        return Rendered(prepared.prompt.text, len(tokens), tokens, tuple(map(self._engine.tokenizer.piece, tokens)))

    def _window(self, request: GenerateRequest) -> int:
        loaded = self._engine.info.num_ctx
        return min(request.window, loaded) if request.window else loaded
