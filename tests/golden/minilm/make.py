"""Records vectors.json: all-MiniLM-L6-v2 worked out in numpy from the package's own weights and tokenizer, without
llama.cpp and without Corral. Run from the root: `PYTHONPATH=tests python tests/golden/minilm/make.py`."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
from minilm import NORM_EPSILON, NUM_BLOCKS, Weights, minilm_folder, read_weights
from tokenizers import Tokenizer

NUM_HEADS = 12
TEXTS = [
    "The cat sits on the mat.",
    "A kitten is sitting on a rug.",
    "Interest rates rose by a quarter of a percent.",
    "Grüße aus Zürich! 世界 and naïve café — it's 3.14€.",
    "unaffable internationalization of pneumonoultramicroscopic words",
    "",
    "A horse came home to a village by the river, late in the year. " * 20,
]
_erf = np.vectorize(math.erf)


def normalize(rows: np.ndarray, weights: Weights, name: str) -> np.ndarray:
    centred = rows - rows.mean(-1, keepdims=True)
    deviation = np.sqrt((centred**2).mean(-1, keepdims=True) + NORM_EPSILON)
    return centred / deviation * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def project(rows: np.ndarray, weights: Weights, name: str) -> np.ndarray:
    return rows @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def attend(rows: np.ndarray, weights: Weights, block: str) -> np.ndarray:
    heads = (len(rows), NUM_HEADS, -1)
    query, key, value = (
        project(rows, weights, f"{block}.attn_{part}").reshape(heads).transpose(1, 0, 2) for part in "qkv"
    )
    scores = query @ key.transpose(0, 2, 1) / math.sqrt(query.shape[-1])
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    mixed = (shares @ value).transpose(1, 0, 2).reshape(len(rows), -1)
    return project(mixed, weights, f"{block}.attn_output")


def embed(tokens: list[int], weights: Weights) -> np.ndarray:
    rows = weights["token_embd.weight"][tokens] + weights["position_embd.weight"][: len(tokens)]
    rows = normalize(rows + weights["token_types.weight"][0], weights, "token_embd_norm")
    for number in range(NUM_BLOCKS):
        block = f"blk.{number}"
        rows = normalize(rows + attend(rows, weights, block), weights, f"{block}.attn_output_norm")
        inner = project(rows, weights, f"{block}.ffn_up")
        inner = inner * 0.5 * (1 + _erf(inner / math.sqrt(2)))
        rows = normalize(rows + project(inner, weights, f"{block}.ffn_down"), weights, f"{block}.layer_output_norm")
    mean = rows.mean(0)
    return mean / np.linalg.norm(mean)


def main() -> None:
    weights = {name: data.astype(np.float64) for name, data in read_weights().items()}
    tokenizer = Tokenizer.from_file(str(minilm_folder() / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    entries = []
    for text in TEXTS:
        tokens = tokenizer.encode(text).ids
        vector = [round(value, 6) for value in embed(tokens, weights).tolist()]
        entries.append({"text": text, "tokens": tokens, "vector": vector})
    lines = ",\n".join(json.dumps(entry) for entry in entries)
    Path(__file__).with_name("vectors.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
