"""Makes small LoRA adapters for SmolLM2: random, but the same for the same seed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
from gguf_files import F32, build_gguf

_WIDTH = 576
_RANK = 4
# Only the last: what earlier ones change is rounded on its way through the others, which hides small differences.
_LAYERS = range(29, 30)


def lora_parts(seed: int, rank: int = _RANK) -> list[tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]]:
    """For each changed layer A of (rank, width) and B of (width, rank), strong enough to change every answer."""
    random = np.random.default_rng(seed)
    return [
        (
            random.normal(0, 0.3, (rank, _WIDTH)).astype(np.float32),
            random.normal(0, 0.3, (_WIDTH, rank)).astype(np.float32),
        )
        for _ in _LAYERS
    ]


def write_lora(
    path: Path, parts: list[tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]], architecture: str = "llama"
) -> Path:
    """A GGUF adapter over the output projections of attention."""
    rank = parts[0][0].shape[0]
    tensors = {}
    for layer, (a, b) in zip(_LAYERS, parts, strict=True):
        name = f"blk.{layer}.attn_output.weight"
        tensors[f"{name}.lora_a"] = ((_WIDTH, rank), F32, a.tobytes())
        tensors[f"{name}.lora_b"] = ((rank, _WIDTH), F32, b.tobytes())
    metadata = {
        "general.type": "adapter",
        "general.architecture": architecture,
        "adapter.type": "lora",
        "adapter.lora.alpha": float(rank),
    }
    path.write_bytes(build_gguf(metadata, tensors))
    return path
