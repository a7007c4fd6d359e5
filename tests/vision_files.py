"""Makes a tiny random projector that fits SmolLM2, in the form of LLaVA's, and small pictures."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
from gguf_files import F32, build_gguf

_WIDTH, _FF, _LAYERS, _HEADS = 32, 64, 2, 2
_IMAGE, _PATCH = 28, 14
_MODEL_WIDTH = 576
# One for each patch.
NUM_IMAGE_TOKENS = (_IMAGE // _PATCH) ** 2


def write_projector(path: Path, seed: int = 1, width: int = _MODEL_WIDTH) -> Path:
    """A vision tower of two layers, and two layers from there to the model's `width`."""
    random = np.random.default_rng(seed)
    tensors: dict[str, tuple[tuple[int, ...], int, bytes]] = {}

    def add(name: str, *shape: int, scale: float = 0.2) -> None:
        data = random.normal(0, scale, shape[::-1]).astype(np.float32)
        tensors[name] = (shape, F32, data.tobytes())

    def add_layer(name: str, inputs: int, outputs: int) -> None:
        add(f"{name}.weight", inputs, outputs)
        add(f"{name}.bias", outputs)

    add("v.patch_embd.weight", _PATCH, _PATCH, 3, _WIDTH)
    add("v.class_embd", _WIDTH)
    add("v.position_embd.weight", _WIDTH, NUM_IMAGE_TOKENS + 1)
    for name in ("v.pre_ln", "v.post_ln"):
        add(f"{name}.weight", _WIDTH, scale=1)
        add(f"{name}.bias", _WIDTH)
    for layer in range(_LAYERS):
        for name in ("ln1", "ln2"):
            add(f"v.blk.{layer}.{name}.weight", _WIDTH, scale=1)
            add(f"v.blk.{layer}.{name}.bias", _WIDTH)
        for name in ("attn_q", "attn_k", "attn_v", "attn_out"):
            add_layer(f"v.blk.{layer}.{name}", _WIDTH, _WIDTH)
        add_layer(f"v.blk.{layer}.ffn_up", _WIDTH, _FF)
        add_layer(f"v.blk.{layer}.ffn_down", _FF, _WIDTH)
    add_layer("mm.0", _WIDTH, _FF)
    add_layer("mm.2", _FF, width)
    metadata = {
        "general.architecture": "clip",
        "general.type": "mmproj",
        "clip.has_vision_encoder": True,
        "clip.projector_type": "mlp",
        "clip.use_gelu": True,
        "clip.vision.embedding_length": _WIDTH,
        "clip.vision.feed_forward_length": _FF,
        "clip.vision.block_count": _LAYERS,
        "clip.vision.projection_dim": width,
        "clip.vision.attention.head_count": _HEADS,
        "clip.vision.attention.layer_norm_epsilon": 1e-5,
        "clip.vision.image_size": _IMAGE,
        "clip.vision.patch_size": _PATCH,
        "clip.vision.image_mean": [0.5, 0.5, 0.5],
        "clip.vision.image_std": [0.5, 0.5, 0.5],
    }
    path.write_bytes(build_gguf(metadata, tensors))
    return path


def make_png(red: int, green: int, blue: int, side: int = 32) -> bytes:
    """A picture of one colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + bytes([red, green, blue]) * side) * side
    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
