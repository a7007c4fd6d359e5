"""Guessing ahead beside plain decoding, in one engine, taking turns.

    python benchmarks/drafts.py [--rounds 7] [--draft 8]

`copy` continues a text that repeats itself, as edits of code and quotations do; `story` never says anything twice.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

from corral.backends.llamacpp.engine import load_engine
from corral.backends.protocol import EngineRequest
from corral.core.types import LoadOptions, LoadSpec, Sampling

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from models import smollm2_path

TEXTS = {
    "copy": "def area(width, height):\n    return width * height\n\n" * 4,
    "story": "<|im_start|>user\nTell me of a horse that came home.<|im_end|>\n<|im_start|>assistant\n",
}
NUM_ANSWER = 96


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--draft", type=int, default=8)
    arguments = parser.parse_args()
    options = LoadOptions(num_ctx=1024, num_parallel=4)
    engine = load_engine(LoadSpec("llamacpp", str(smollm2_path()), options), lambda fraction: None)
    print(f"{'text':>6} {'clients':>7}  {'plain':>6} {'guessing':>8} tok/s  ratio  guessed rightly")
    for name, text in TEXTS.items():
        tokens = engine.tokenizer.encode(text, parse_special=True)
        for num_clients in (1, 4):
            rates: dict[int, list[float]] = {0: [], arguments.draft: []}
            for _ in range(arguments.rounds):
                for num_draft, values in rates.items():
                    sampling = Sampling(temperature=0, ignore_eos=True, draft_num_predict=num_draft)
                    for number in range(num_clients):
                        engine.add(EngineRequest(number, tokens, sampling, NUM_ANSWER, 1024))
                    engine.step()
                    started, count, last = time.perf_counter(), 0, None
                    while engine.has_work:
                        outputs = engine.step()
                        count += len(outputs)
                        last = outputs[-1] if outputs else last
                    values.append(count / (time.perf_counter() - started))
            plain, guessing = (statistics.median(values) for values in rates.values())
            assert last is not None
            rightly = f"{last.num_accepted} of {last.num_drafted}"
            print(f"{name:>6} {num_clients:>7}  {plain:6.1f} {guessing:8.1f}        {guessing / plain:5.2f}  {rightly}")
    engine.close()


if __name__ == "__main__":
    main()
