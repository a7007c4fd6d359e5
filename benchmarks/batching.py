"""Which shape of a bare llama.cpp loop is fastest: one KV stream for each sequence or one buffer for all, and threads.

    python benchmarks/batching.py [--clients 1,8,32] [--rounds 5]

Prompts of 128 random tokens, answers of 32. All shapes take turns; medians of output tokens a second.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
from pathlib import Path

import psutil
from bare import BareLoop, random_tokens

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from models import smollm2_path

NUM_PROMPT, NUM_ANSWER, WINDOW = 128, 32, 256


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", default="1,8,32")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    cores = psutil.cpu_count(logical=False) or 1
    dice = random.Random(0)
    print(f"{'clients':>7}  {'KV':>8}  {'threads':>7}  {'prompt tok/s':>12}  {'answer tok/s':>12}")
    for clients in (int(text) for text in arguments.clients.split(",")):
        shapes = [(unified, threads) for unified in (False, True) for threads in sorted({1, cores})]
        loops = {shape: BareLoop(smollm2_path(), WINDOW, clients, shape[1], shape[0]) for shape in shapes}
        rates: dict[tuple[bool, int], list[tuple[float, float]]] = {shape: [] for shape in shapes}
        for _ in range(arguments.rounds):
            for shape, loop in loops.items():
                prompts = [random_tokens(NUM_PROMPT, loop.num_vocab, dice) for _ in range(clients)]
                _, prompted, answered = loop.answer(prompts, NUM_ANSWER)
                rates[shape].append((clients * NUM_PROMPT / prompted, clients * (NUM_ANSWER - 1) / answered))
        for shape, found in rates.items():
            prompt, answer = (statistics.median(entry[side] for entry in found) for side in (0, 1))
            kv = "unified" if shape[0] else "streams"
            print(f"{clients:>7}  {kv:>8}  {shape[1]:>7}  {prompt:>12.0f}  {answer:>12.1f}", flush=True)
            loops[shape].close()


if __name__ == "__main__":
    main()
