"""What an engine is: synchronous, tokens in and tokens out. It knows no chat, no JSON and no HTTP.

One thread calls add, abort, step and close. `tokenizer` may be used from another thread at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from ..core.events import FinishReason
from ..core.types import LoadSpec, Sampling

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class EngineInfo(msgspec.Struct, frozen=True):
    """What was loaded. `num_ctx` is the window of one sequence in tokens; sizes are bytes.

    `embed_window` is how many tokens a text may have that is embedded.
    """

    num_ctx: int
    num_parallel: int
    size_bytes: int
    size_vram_bytes: int
    chat_template: str | None
    embed_window: int = 0


class Constraint(Protocol):
    """Which tokens may come next in one answer. The engine asks before each choice and tells what was chosen."""

    def restrict(self, logits: npt.NDArray[np.float32]) -> None:
        """Set the logits, float32 of (vocabulary,), of tokens that may not come to minus infinity, in place."""
        ...

    def accept(self, token: int) -> None:
        """Take note of the chosen token."""
        ...


@dataclass(frozen=True, slots=True)
class PicturePart:
    """A part of a picture that stands in a prompt like tokens: negative `stand_ins`, one for each position.

    They tell what picture it is. `num_cells` is how many tokens of the window it takes; only the engine knows `handle`.
    """

    stand_ins: list[int]
    num_cells: int
    handle: Any


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture as the model gets it: parts of it, and tokens that the model wants around them."""

    parts: list[list[int] | PicturePart]


@dataclass(frozen=True, slots=True)
class PlacedPicture:
    """A part of a picture at an index of a prompt's tokens."""

    start: int
    part: PicturePart

    @property
    def end(self) -> int:
        """The index after it."""
        return self.start + len(self.part.stand_ins)


class Vision(Protocol):
    """What makes pictures fit for one model."""

    def read(self, data: bytes) -> Picture:
        """The bytes of a JPEG, PNG or GIF as a picture. Errors: InvalidRequest."""
        ...


@dataclass(frozen=True, slots=True)
class EngineRequest:
    """One sequence to run. `tokens` is the whole prompt, at least one token and shorter than `window`.

    `pictures` stand among the tokens, in order. `adapters` are paths of LoRA adapters to run it with, each as much as
    `sampling.lora_scales` says.
    `max_tokens` bounds the answer. With `shift` a full window drops old tokens after `sampling.num_keep` and goes on.
    `top_logprobs` is None when no log-probabilities are wanted; `prompt_logprobs` wants those of the prompt as well.
    """

    id: int
    tokens: list[int]
    sampling: Sampling
    max_tokens: int
    window: int
    shift: bool = True
    top_logprobs: int | None = None
    constraint: Constraint | None = None
    prompt_logprobs: bool = False
    adapters: tuple[str, ...] = ()
    pictures: tuple[PlacedPicture, ...] = ()


class StepOutput(msgspec.Struct, frozen=True):
    """One new token of one sequence, of which a step may give several. `finish` set: it was the last, all is gone.

    `token` is None when the sequence ends without one, as with max_tokens 0. `is_end` marks an end-of-generation
    token, which is no text. `logprob` is natural; `top` holds the likeliest (token, logprob), best first. `prompt`
    comes with the first output when it was asked for: the same two for each token of the prompt after its first. Counts
    are of the whole answer: prompt tokens reused, tokens dropped by shifts, tokens guessed ahead and guessed rightly.
    """

    id: int
    token: int | None
    finish: FinishReason | None = None
    is_end: bool = False
    logprob: float = 0.0
    top: tuple[tuple[int, float], ...] = ()
    num_cached: int = 0
    num_shifted: int = 0
    num_drafted: int = 0
    num_accepted: int = 0
    prompt: tuple[tuple[float, tuple[tuple[int, float], ...]], ...] = ()


class EmbedInput(msgspec.Struct, frozen=True):
    """One text to embed, as tokens, at most `EngineInfo.embed_window`. `pooling` None means the model's own."""

    tokens: list[int]
    pooling: str | None = None


class Tokenizer(Protocol):
    """Text to tokens and back. All methods may run beside a step."""

    bos_text: str
    eos_text: str
    specials: frozenset[str]
    num_vocab: int

    def encode(self, text: str, *, parse_special: bool) -> list[int]:
        """Tokens of a text, with no token put in front. With `parse_special` its special-token texts become those."""
        ...

    def prefix(self) -> list[int]:
        """What every prompt starts with: the beginning-of-sequence token where the model wants one."""
        ...

    def piece(self, token: int) -> bytes:
        """The bytes that a token adds to the text; b"" for control tokens."""
        ...

    @property
    def special_tokens(self) -> Mapping[str, int]:
        """Control tokens, which are no text by themselves, by the text that stands for each."""
        ...

    def special_text(self, token: int) -> str:
        """The text that stands for a control token, "" for others."""
        ...

    def pair(self, query: Sequence[int], document: Sequence[int]) -> list[int]:
        """The tokens of a text to embed that is a query and a document, for a rank head."""
        ...

    def whole(self, tokens: Sequence[int]) -> list[int]:
        """A text to embed with what the model wants before and after it."""
        ...

    def vocabulary(self) -> tuple[list[bytes], list[int]]:
        """The bytes of every token, b"" for control tokens, and the tokens that end a generation."""
        ...


class Engine(Protocol):
    """Many sequences at once over one loaded model."""

    @property
    def info(self) -> EngineInfo:
        """What was loaded."""
        ...

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's vocabulary."""
        ...

    @property
    def has_work(self) -> bool:
        """Whether a step would do something."""
        ...

    def add(self, request: EngineRequest) -> None:
        """Take a sequence in; it waits inside until it can run. Errors: LoadFailed when its adapters cannot be used."""
        ...

    def embed(self, inputs: Sequence[EmbedInput]) -> Iterator[list[npt.NDArray[np.float32]]]:
        """Vectors of texts in order, float32 of (dimensions,) each and not normalised; of (1,) from a rank head.

        Each item is what one computation finished, perhaps nothing: steps of generation may come between two. A new
        call ends the one before it, which may be left at any point. Errors: Unsupported.
        """
        ...

    def open_projector(self, path: str) -> Vision:
        """What reads pictures through the projector of a file. May run beside a step.

        Errors: LoadFailed, Unsupported.
        """
        ...

    def abort(self, request_id: int) -> None:
        """Drop a sequence, waiting or running. Unknown ids are ignored. No output follows."""
        ...

    def step(self) -> Sequence[StepOutput]:
        """Advance every sequence that can run by at most one token, and the prompts by one chunk."""
        ...

    def close(self) -> None:
        """Give all memory back."""
        ...


EngineFactory = Callable[[LoadSpec, Callable[[float], None]], Engine]
