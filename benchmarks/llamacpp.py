"""Tokens a second of Corral over HTTP beside a bare llama.cpp decode loop with the same settings, in one run.

    python benchmarks/llamacpp.py [--tokens 200] [--rounds 15] [--clients 1,4]

The bare loop is llama_decode and a greedy sampler, nothing else. Both sides take turns, so that a noisy moment of the
machine hits both; the ratio is the median of the rounds' ratios. Rates count tokens after each answer's first.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from llama_cpp import llama_cpp as lib

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from models import smollm2_path

PROMPT = "<|im_start|>user\nTell me a long story of a horse, number {}.<|im_end|>\n<|im_start|>assistant\n"
WINDOW = 1024


class BareLoop:
    """One context, N sequences, one llama_decode a step."""

    def __init__(self, path: Path, num_parallel: int, num_threads: int) -> None:
        lib.llama_log_set(_silent, ctypes.c_void_p(0))
        lib.llama_backend_init()
        self._model = lib.llama_model_load_from_file(str(path).encode(), lib.llama_model_default_params())
        self._vocab = lib.llama_model_get_vocab(self._model)
        params = lib.llama_context_default_params()
        params.n_ctx = WINDOW * num_parallel
        params.n_batch = params.n_ubatch = 512
        params.n_seq_max = num_parallel
        params.n_threads = params.n_threads_batch = num_threads
        params.kv_unified = False
        params.no_perf = True
        self._context = lib.llama_init_from_model(self._model, params)
        self._sampler = lib.llama_sampler_init_greedy()
        self._batch = lib.llama_batch_init(512, 0, 1)

    def rate(self, num_sequences: int, num_tokens: int) -> float:
        """Tokens a second of all sequences together, after the first token of each."""
        memory = lib.llama_get_memory(self._context)
        lib.llama_memory_clear(memory, True)
        lengths, last = [], []
        for sequence in range(num_sequences):
            tokens = self._tokenize(PROMPT.format(sequence))
            self._decode([(token, at, sequence) for at, token in enumerate(tokens)])
            lengths.append(len(tokens))
            last.append(lib.llama_sampler_sample(self._sampler, self._context, -1))
        started = time.perf_counter()
        for step in range(num_tokens):
            self._decode([(last[s], lengths[s] + step, s) for s in range(num_sequences)])
            last = [lib.llama_sampler_sample(self._sampler, self._context, s) for s in range(num_sequences)]
        return num_sequences * num_tokens / (time.perf_counter() - started)

    def _tokenize(self, text: str) -> list[int]:
        buffer = (lib.llama_token * 512)()
        data = text.encode()
        return list(buffer[: lib.llama_tokenize(self._vocab, data, len(data), buffer, 512, False, True)])

    def _decode(self, entries: list[tuple[int, int, int]]) -> None:
        batch = self._batch
        batch.n_tokens = len(entries)
        for row, (token, position, sequence) in enumerate(entries):
            batch.token[row], batch.pos[row] = token, position
            batch.n_seq_id[row], batch.seq_id[row][0] = 1, sequence
            # A prompt wants the logits of its last token, a decode step those of every sequence.
            batch.logits[row] = row == len(entries) - 1 or len({entry[2] for entry in entries}) > 1
        assert lib.llama_decode(self._context, batch) == 0


@lib.llama_log_callback
def _silent(level: int, text: bytes, user_data: ctypes.c_void_p) -> None:
    del level, text, user_data


def http_rate(port: int, num_clients: int, num_tokens: int) -> float:
    """The same over HTTP: clients that start together; from the last first line to the first last line."""
    spans: list[tuple[float, float, int]] = []
    threads = [
        threading.Thread(target=lambda n=number: spans.append(ask(port, PROMPT.format(n), num_tokens)))
        for number in range(num_clients)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    started, ended = min(span[0] for span in spans), max(span[1] for span in spans)
    return sum(span[2] for span in spans) / (ended - started)


def ask(port: int, prompt: str, num_tokens: int) -> tuple[float, float, int]:
    """Stream one answer. Returns the time of its first bytes and of its end, and the tokens between."""
    options = {"num_predict": num_tokens + 1, "temperature": 0, "num_ctx": WINDOW}
    body = json.dumps({"model": "bench", "prompt": prompt, "raw": True, "options": options}).encode()
    head = f"POST /api/generate HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(head.encode() + body)
        data, first = b"", 0.0
        while chunk := connection.recv(65536):
            data += chunk
            if not first and b'"response"' in data:
                first = time.perf_counter()
    final = json.loads(next(line for line in reversed(data.splitlines()) if b'"eval_count"' in line))
    return first, time.perf_counter(), final["eval_count"] - 1


@contextmanager
def running_daemon(num_parallel: int, num_threads: int) -> Iterator[int]:
    """A daemon of its own with SmolLM2 loaded as `bench`. Gives its port."""
    with tempfile.TemporaryDirectory() as folder, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        environment = {
            **os.environ,
            "CORRAL_HOST": f"127.0.0.1:{port}",
            "CORRAL_SOCKET": f"{folder}/corral.sock",
            "CORRAL_MODELS": f"{folder}/models",
            "CORRAL_NUM_PARALLEL": str(num_parallel),
            "XDG_STATE_HOME": folder,
        }
        corral = [sys.executable, "-m", "corral"]
        daemon = subprocess.Popen([*corral, "serve"], env=environment, stderr=subprocess.DEVNULL)
        try:
            modelfile = f"FROM {smollm2_path()}\nPARAMETER num_ctx {WINDOW}\nPARAMETER num_thread {num_threads}\n"
            for _ in range(100):
                if Path(folder, "corral.sock").exists():
                    break
                time.sleep(0.05)
            subprocess.run(
                [*corral, "create", "bench", "-f", "-"], input=modelfile, text=True, env=environment, check=True,
                stderr=subprocess.DEVNULL,
            )  # fmt: skip
            yield port
        finally:
            daemon.terminate()
            daemon.wait()


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--clients", default="1,4")
    parser.add_argument("--threads", type=int, default=psutil.cpu_count(logical=False))
    arguments = parser.parse_args()
    clients = [int(text) for text in arguments.clients.split(",")]
    bare = BareLoop(smollm2_path(), max(clients), arguments.threads)
    print(f"SmolLM2-135M Q4_1, {arguments.threads} threads, {arguments.tokens} tokens, medians of {arguments.rounds}")
    print(f"{'clients':>7}  {'bare tok/s':>10}  {'Corral tok/s':>12}  {'ratio':>5}  (min-max)")
    with running_daemon(max(clients), arguments.threads) as port:
        ask(port, PROMPT.format(0), 1)
        for number in clients:
            pairs = [
                (bare.rate(number, arguments.tokens), http_rate(port, number, arguments.tokens))
                for _ in range(arguments.rounds)
            ]
            theirs, ours = (statistics.median(pair[side] for pair in pairs) for side in (0, 1))
            ratios = sorted(ours / theirs for theirs, ours in pairs)
            span = f"({ratios[0]:.2f}-{ratios[-1]:.2f})"
            ratio = statistics.median(ratios)
            print(f"{number:>7}  {theirs:>10.1f}  {ours:>12.1f}  {ratio:>5.3f}  {span}", flush=True)


if __name__ == "__main__":
    main()
