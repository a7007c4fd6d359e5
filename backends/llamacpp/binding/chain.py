"""A chain of samplers."""

from __future__ import annotations

from typing import Any

from llama_cpp import llama_cpp as lib

from .context import Context


class Chain:
    """A sampler chain of one sequence. `add` takes a llama_sampler_init_… result and owns it."""

    def __init__(self) -> None:
        params = lib.llama_sampler_chain_default_params()
        params.no_perf = True
        self._pointer = lib.llama_sampler_chain_init(params)

    def add(self, sampler: Any) -> None:
        """Append a sampler."""
        lib.llama_sampler_chain_add(self._pointer, sampler)

    def accept(self, token: int) -> None:
        """Let the samplers know of a token that was not sampled here, as of a prompt."""
        lib.llama_sampler_accept(self._pointer, token)

    def sample(self, context: Context, row: int) -> int:
        """Choose a token for a row of the last batch."""
        return int(lib.llama_sampler_sample(self._pointer, context.pointer, row))

    def close(self) -> None:
        """Free the chain and its samplers."""
        lib.llama_sampler_free(self._pointer)
