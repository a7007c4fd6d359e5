"""What an engine is: synchronous, tokens in and tokens out. It knows no chat, no JSON and no HTTP.

One thread calls add, abort, step and close. `tokenizer` may be used from another thread at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import msgspec

from ..core.events import FinishReason
from ..core.types import LoadSpec, Sampling

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class EngineInfo(msgspec.Struct, frozen=True):
    """What was loaded. `num_ctx` is the window of one sequence in tokens; sizes are bytes."""

    num_ctx: int
    num_parallel: int
    size_bytes: int
    size_vram_bytes: int
    chat_template: str | None


class Constraint(Protocol):
    """Which tokens may come next in one answer. The engine asks before each choice and tells what was chosen."""

    def restrict(self, logits: npt.NDArray[np.float32]) -> None:
        """Set the logits, float32 of (vocabulary,), of tokens that may not come to minus infinity, in place."""
        ...

    def accept(self, token: int) -> None:
        """Take note of the chosen token."""
        ...


@dataclass(frozen=True, slots=True)
class EngineRequest:
    """One sequence to run. `tokens` is the whole prompt, at least one token and shorter than `window`.

    `max_tokens` bounds the answer. With `shift` a full window drops old tokens after `sampling.num_keep` and goes on.
    `top_logprobs` is None when no log-probabilities are wanted.
    """

    id: int
    tokens: list[int]
    sampling: Sampling
    max_tokens: int
    window: int
    shift: bool = True
    top_logprobs: int | None = None
    constraint: Constraint | None = None


class StepOutput(msgspec.Struct, frozen=True):
    """One new token of one sequence. `finish` set means it was the last, and the sequence is gone.

    `token` is None when the sequence ends without one, as with max_tokens 0. `is_end` marks an end-of-generation
    token, which is no text. `logprob` is natural; `top` holds the likeliest (token, logprob), best first.
    """

    id: int
    token: int | None
    finish: FinishReason | None = None
    is_end: bool = False
    logprob: float = 0.0
    top: tuple[tuple[int, float], ...] = ()
    num_cached: int = 0
    num_shifted: int = 0


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

    def vocabulary(self) -> tuple[list[bytes], list[int]]:
        """The bytes of every token, b"" for control tokens, and the tokens that end a generation."""
        ...


class Engine(Protocol):
    """Many sequences at once over one loaded model."""

    info: EngineInfo
    tokenizer: Tokenizer

    @property
    def has_work(self) -> bool:
        """Whether a step would do something."""
        ...

    def add(self, request: EngineRequest) -> None:
        """Take a sequence in; it waits inside until it can run."""
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
