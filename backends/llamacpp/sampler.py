"""From Sampling to llama.cpp's sampler chain, and log-probabilities from logits."""

from __future__ import annotations

import ctypes
import secrets
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from llama_cpp import llama_cpp as lib

from ...core.types import Sampling
from .binding.chain import Chain
from .binding.model import Model

_SEED_MASK = 0xFFFFFFFF
# How many of the likeliest tokens the first mirostat fits its curve to; the paper's and llama.cpp's number.
_MIROSTAT_TOKENS = 100


def build_chain(model: Model, sampling: Sampling, window: int, prompt: Sequence[int]) -> Chain:
    """A chain in llama.cpp's order (common/sampling.cpp): biases, penalties, what cuts, temperature, draw.

    Temperature 0 is greedy, mirostat takes the place of all that cuts. A negative seed is drawn anew; -1 in
    `repeat_last_n` and `dry_penalty_last_n` means the window.
    """
    chain = Chain()
    if sampling.logit_bias:
        biases = (lib.llama_logit_bias * len(sampling.logit_bias))(*sampling.logit_bias)
        chain.add(lib.llama_sampler_init_logit_bias(model.num_vocab, len(biases), biases))
    num_seen = max(_add_penalties(chain, model, sampling, window), _add_dry(chain, model, sampling, window))
    for token in prompt[len(prompt) - min(num_seen, len(prompt)) :]:
        if token >= 0:
            chain.accept(token)
    seed = secrets.randbits(31) if sampling.seed < 0 else sampling.seed & _SEED_MASK
    if sampling.temperature <= 0:
        chain.add(lib.llama_sampler_init_greedy())
    elif sampling.mirostat:
        chain.add(lib.llama_sampler_init_temp(sampling.temperature))
        _add_mirostat(chain, model, sampling, seed)
    else:
        _add_cuts(chain, sampling, seed)
        chain.add(
            lib.llama_sampler_init_temp_ext(sampling.temperature, sampling.dynatemp_range, sampling.dynatemp_exponent)
        )
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


def _add_penalties(chain: Chain, model: Model, sampling: Sampling, window: int) -> int:
    """Returns how many of the last tokens count."""
    last_n = _resolve_last(sampling.repeat_last_n, window)
    neutral = sampling.repeat_penalty == 1 and not sampling.presence_penalty and not sampling.frequency_penalty
    if neutral or not last_n:
        return 0
    chain.add(
        lib.llama_sampler_init_penalties(
            model.num_vocab, last_n, sampling.repeat_penalty, sampling.frequency_penalty, sampling.presence_penalty
        )
    )
    return last_n


def _add_dry(chain: Chain, model: Model, sampling: Sampling, window: int) -> int:
    """Returns how many of the last tokens count."""
    last_n = _resolve_last(sampling.dry_penalty_last_n, window)
    if sampling.dry_multiplier <= 0 or sampling.dry_base < 1 or not last_n:
        return 0
    texts = [text.encode() for text in sampling.dry_sequence_breakers if text]
    breakers = (ctypes.c_char_p * len(texts))(*texts)
    chain.add(
        lib.llama_sampler_init_dry(
            model.vocab,
            sampling.dry_multiplier,
            sampling.dry_base,
            sampling.dry_allowed_length,
            last_n,
            breakers,
            len(texts),
        )
    )
    return last_n


def _add_cuts(chain: Chain, sampling: Sampling, seed: int) -> None:
    min_keep = max(0, sampling.min_keep)
    if sampling.top_n_sigma > 0:
        chain.add(lib.llama_sampler_init_top_n_sigma(sampling.top_n_sigma))
    if sampling.top_k > 0:
        chain.add(lib.llama_sampler_init_top_k(sampling.top_k))
    if sampling.typical_p < 1:
        chain.add(lib.llama_sampler_init_typical(sampling.typical_p, min_keep))
    if sampling.top_p < 1:
        chain.add(lib.llama_sampler_init_top_p(sampling.top_p, min_keep))
    if sampling.min_p > 0:
        chain.add(lib.llama_sampler_init_min_p(sampling.min_p, min_keep))
    if sampling.xtc_probability > 0:
        chain.add(lib.llama_sampler_init_xtc(sampling.xtc_probability, sampling.xtc_threshold, min_keep, seed))


def _add_mirostat(chain: Chain, model: Model, sampling: Sampling, seed: int) -> None:
    tau, eta = sampling.mirostat_tau, sampling.mirostat_eta
    if sampling.mirostat == 1:
        chain.add(lib.llama_sampler_init_mirostat(model.num_vocab, seed, tau, eta, _MIROSTAT_TOKENS))
    else:
        chain.add(lib.llama_sampler_init_mirostat_v2(seed, tau, eta))


def _resolve_last(last_n: int, window: int) -> int:
    return window if last_n < 0 else min(last_n, window)
