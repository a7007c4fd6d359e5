"""LoRA adapters: which of them a sequence runs with, loaded when one first asks, kept until the engine closes."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.errors import Unsupported
from ...core.types import Sampling
from .binding.context import Context
from .binding.model import Adapter, Model

# What a computation runs with: paths and scales, in order, without those that change nothing.
AdapterSet = tuple[tuple[str, float], ...]


def adapter_set(paths: Sequence[str], sampling: Sampling) -> AdapterSet:
    """The adapters of a request. Scales are 1 where it gives none; an adapter that its list leaves out has 0."""
    scales = sampling.lora_scales
    if scales is None:
        scales = (1.0,) * len(paths)
    return tuple((path, scale) for path, scale in zip(paths, scales, strict=False) if scale)


class Adapters:
    """All adapters of one model, and those that its context computes with now."""

    def __init__(self, model: Model, context: Context) -> None:
        self._model = model
        self._context = context
        self._loaded: dict[str, Adapter] = {}
        self.in_use: AdapterSet = ()

    def load(self, wanted: AdapterSet) -> None:
        """Have adapters ready. Errors: LoadFailed with llama.cpp's reason, Unsupported."""
        for path, _ in wanted:
            if path not in self._loaded:
                adapter = Adapter(self._model, path)
                if adapter.num_invocation_tokens:
                    raise Unsupported("an adapter of the model is an activated one (aLoRA), which is not supported yet")
                self._loaded[path] = adapter

    def use(self, wanted: AdapterSet) -> None:
        """Compute with these from now on. A change costs llama.cpp a new plan of its computations."""
        if wanted != self.in_use:
            self._context.set_adapters([(self._loaded[path], scale) for path, scale in wanted])
            self.in_use = wanted
