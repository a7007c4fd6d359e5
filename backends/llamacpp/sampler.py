"""From Sampling to llama.cpp's sampler chain, and log-probabilities from logits."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from llama_cpp import llama_cpp as lib

from ...core.types import Sampling
from .binding import Chain, Model

_SEED_MASK = 0xFFFFFFFF


def build_chain(model: Model, sampling: Sampling, window: int, prompt: Sequence[int]) -> Chain:
    """A chain in llama.cpp's order: biases, penalties, top_k, typical_p, top_p, min_p, temperature, draw.

    Temperature 0 is greedy. A negative seed is drawn anew; repeat_last_n -1 means the window.
    """
    chain = Chain()
    if sampling.logit_bias:
        biases = (lib.llama_logit_bias * len(sampling.logit_bias))(*sampling.logit_bias)
        chain.add(lib.llama_sampler_init_logit_bias(model.num_vocab, len(biases), biases))
    _add_penalties(chain, model, sampling, window, prompt)
    if sampling.temperature <= 0:
        chain.add(lib.llama_sampler_init_greedy())
        return chain
    if sampling.top_k > 0:
        chain.add(lib.llama_sampler_init_top_k(sampling.top_k))
    if sampling.typical_p < 1:
        chain.add(lib.llama_sampler_init_typical(sampling.typical_p, 1))
    if sampling.top_p < 1:
        chain.add(lib.llama_sampler_init_top_p(sampling.top_p, 1))
    if sampling.min_p > 0:
        chain.add(lib.llama_sampler_init_min_p(sampling.min_p, 1))
    chain.add(lib.llama_sampler_init_temp(sampling.temperature))
    seed = secrets.randbits(31) if sampling.seed < 0 else sampling.seed & _SEED_MASK
    chain.add(lib.llama_sampler_init_dist(seed))
    return chain


def token_logprobs(
    logits: npt.NDArray[np.float32], token: int, num_top: int
) -> tuple[float, tuple[tuple[int, float], ...]]:
    """Natural-log probability of `token` and the `num_top` likeliest tokens, best first, before any sampler.

    Forbidden tokens, those with minus infinity, are not among them.
    """
    wide = logits.astype(np.float64)
    highest = wide.max()
    log_total = highest + np.log(np.exp(wide - highest).sum())
    logprob = float(wide[token] - log_total)
    if num_top <= 0:
        return logprob, ()
    best = np.argpartition(wide, -num_top)[-num_top:]
    best = best[np.lexsort((best, -wide[best]))]
    allowed = best[np.isfinite(wide[best])]
    return logprob, tuple((int(candidate), float(wide[candidate] - log_total)) for candidate in allowed)


def _add_penalties(chain: Chain, model: Model, sampling: Sampling, window: int, prompt: Sequence[int]) -> None:
    last_n = window if sampling.repeat_last_n < 0 else sampling.repeat_last_n
    neutral = sampling.repeat_penalty == 1 and not sampling.presence_penalty and not sampling.frequency_penalty
    if neutral or last_n == 0:
        return
    sampler = lib.llama_sampler_init_penalties(
        model.num_vocab, last_n, sampling.repeat_penalty, sampling.frequency_penalty, sampling.presence_penalty
    )
    chain.add(sampler)
    for token in prompt[-last_n:]:
        chain.accept(token)
