"""The limit that servers are measured against: llama_decode and a greedy sampler in a loop, nothing else."""

from __future__ import annotations

import ctypes
import random
import time
from collections.abc import Sequence
from pathlib import Path

from llama_cpp import llama_cpp as lib

_NUM_BATCH = 512


@lib.llama_log_callback
def _silent(level: int, text: bytes, user_data: ctypes.c_void_p) -> None:
    del level, text, user_data


class BareLoop:
    """One context, a stream of KV for each sequence or one buffer for all (`is_unified`), one llama_decode a step."""

    def __init__(self, path: Path, window: int, num_parallel: int, num_threads: int, is_unified: bool = False) -> None:
        lib.llama_log_set(_silent, ctypes.c_void_p(0))
        lib.llama_backend_init()
        self._model = lib.llama_model_load_from_file(str(path).encode(), lib.llama_model_default_params())
        params = lib.llama_context_default_params()
        params.n_ctx = window * num_parallel
        params.n_batch = params.n_ubatch = _NUM_BATCH
        params.n_seq_max = num_parallel
        params.n_threads = params.n_threads_batch = num_threads
        params.kv_unified = is_unified
        params.no_perf = True
        self._context = lib.llama_init_from_model(self._model, params)
        self._sampler = lib.llama_sampler_init_greedy()
        self._batch = lib.llama_batch_init(_NUM_BATCH, 0, 1)
        self.num_vocab = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(self._model))

    def close(self) -> None:
        """Free context and weights."""
        lib.llama_free(self._context)
        lib.llama_model_free(self._model)

    def answer(self, prompts: Sequence[Sequence[int]], num_tokens: int) -> tuple[list[list[int]], float, float]:
        """Greedy answers of so many tokens to all prompts together; seconds of the prompts and of the rest."""
        lib.llama_memory_clear(lib.llama_get_memory(self._context), True)
        started = time.perf_counter()
        answers = []
        for sequence, prompt in enumerate(prompts):
            for at in range(0, len(prompt), _NUM_BATCH):
                piece = prompt[at : at + _NUM_BATCH]
                self._decode([(token, at + offset, sequence) for offset, token in enumerate(piece)], all_rows=False)
            answers.append([int(lib.llama_sampler_sample(self._sampler, self._context, -1))])
        prompted = time.perf_counter()
        for step in range(num_tokens - 1):
            last = enumerate(zip(prompts, answers, strict=True))
            rows = [(answer[-1], len(prompt) + step, sequence) for sequence, (prompt, answer) in last]
            self._decode(rows, all_rows=True)
            for row, answer in enumerate(answers):
                answer.append(int(lib.llama_sampler_sample(self._sampler, self._context, row)))
        return answers, prompted - started, time.perf_counter() - prompted

    def _decode(self, entries: list[tuple[int, int, int]], all_rows: bool) -> None:
        batch = self._batch
        batch.n_tokens = len(entries)
        for row, (token, position, sequence) in enumerate(entries):
            batch.token[row], batch.pos[row] = token, position
            batch.n_seq_id[row], batch.seq_id[row][0] = 1, sequence
            batch.logits[row] = all_rows or row == len(entries) - 1
        assert lib.llama_decode(self._context, batch) == 0


def random_tokens(count: int, num_vocab: int, dice: random.Random) -> list[int]:
    """A prompt that nobody has seen."""
    return [dice.randrange(1000, num_vocab) for _ in range(count)]
