"""Corral beside a bare llama.cpp loop and beside any OpenAI-compatible server, under load, interleaved in one run.

    python benchmarks/serving.py [--peer http://127.0.0.1:8080] [--clients 1,8,32] [--rounds 3] [--only random,shared]

Closed loop: each client sends its next request when the last one is answered. Prompts are 128 random tokens, answers 64
forced ones (`ignore_eos`). `shared` puts the same 512 tokens, new in each round, before 16 random ones, at 8 clients;
`first` takes the time to the first token of such a prompt, cold and again; `long` lets a prompt of 2,000 tokens come in
while 4 answers run, and looks at the time between their tokens meanwhile. Medians of the rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import aiohttp
import psutil
from bare import BareLoop, random_tokens
from daemons import MODEL, running_daemon

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from models import smollm2_path

NUM_PROMPT, NUM_ANSWER, NUM_SHARED, NUM_SUFFIX, NUM_LONG = 128, 64, 512, 16, 2000
WINDOW = 4096
Prompt = list[int]


class Server(NamedTuple):
    """A base URL and the model to name there."""

    name: str
    url: str
    model: str


@dataclass
class Answer:
    """When a request was sent, and when each piece of its answer came, in seconds."""

    sent: float
    pieces: list[float] = field(default_factory=list)
    num_tokens: int = 0

    @property
    def first(self) -> float:
        return self.pieces[0] - self.sent

    @property
    def gaps(self) -> list[float]:
        return [later - earlier for earlier, later in itertools.pairwise(self.pieces)]


async def ask(session: aiohttp.ClientSession, server: Server, prompt: Prompt, num_tokens: int = NUM_ANSWER) -> Answer:
    """Stream one completion."""
    body = {
        "model": server.model, "prompt": prompt, "max_tokens": num_tokens, "temperature": 0, "stream": True,
        "ignore_eos": True, "stream_options": {"include_usage": True},
    }  # fmt: skip
    answer = Answer(time.perf_counter())
    async with session.post(f"{server.url}/v1/completions", json=body) as response:
        response.raise_for_status()
        async for line in response.content:
            if not line.startswith(b"data: {"):
                continue
            event = json.loads(line[6:])
            if event.get("usage"):
                answer.num_tokens = event["usage"]["completion_tokens"]
            if event.get("choices") and event["choices"][0].get("finish_reason") is None:
                answer.pieces.append(time.perf_counter())
    assert answer.num_tokens == num_tokens, f"{server.name} gave {answer.num_tokens} tokens instead of {num_tokens}"
    return answer


def new_session() -> aiohttp.ClientSession:
    """A session with a connection for each request: some servers close those that they answered on."""
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    return aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(None), connector=connector)


async def closed_loop(server: Server, prompts: Sequence[Sequence[Prompt]]) -> tuple[float, list[Answer]]:
    """A client for each list of prompts. Returns output tokens a second and all answers."""

    async def client(session: aiohttp.ClientSession, own: Sequence[Prompt]) -> list[Answer]:
        return [await ask(session, server, prompt) for prompt in own]

    async with new_session() as session:
        started = time.perf_counter()
        answers = await asyncio.gather(*(client(session, own) for own in prompts))
        seconds = time.perf_counter() - started
    flat = list(itertools.chain.from_iterable(answers))
    return sum(answer.num_tokens for answer in flat) / seconds, flat


def percentile(values: Sequence[float], part: float) -> float:
    """The value below which `part` of them lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


class Benchmark:
    """What is measured: scenarios over the same servers, each of which takes its turn in every round."""

    def __init__(self, servers: Sequence[Server], arguments: argparse.Namespace) -> None:
        self._servers = servers
        self._rounds = arguments.rounds
        self._requests = arguments.requests
        self._threads = arguments.threads
        self._dice = random.Random(arguments.seed)
        bare = BareLoop(smollm2_path(), WINDOW, 1, self._threads)
        self._num_vocab = bare.num_vocab
        bare.close()

    def random(self, num_clients: int) -> None:
        """Prompts that share nothing."""
        print(f"\n{num_clients} clients, prompts of {NUM_PROMPT} random tokens, {NUM_ANSWER} out")
        make = lambda: [[self._tokens(NUM_PROMPT) for _ in range(self._requests)] for _ in range(num_clients)]  # noqa: E731
        self._load(make, bare=num_clients)

    def shared(self, num_clients: int) -> None:
        """Prompts that begin alike."""
        print(f"\n{num_clients} clients, {NUM_SHARED} shared tokens and {NUM_SUFFIX} random ones, {NUM_ANSWER} out")

        def make() -> list[list[Prompt]]:
            prefix = self._tokens(NUM_SHARED)
            suffixes = [[self._tokens(NUM_SUFFIX) for _ in range(self._requests)] for _ in range(num_clients)]
            return [[prefix + suffix for suffix in own] for own in suffixes]

        self._load(make, bare=0)

    def first(self) -> None:
        """Time to the first token with and without the prefix in the cache."""
        print(f"\nfirst token of {NUM_SHARED} + {NUM_SUFFIX} tokens, ms: cold, then with the {NUM_SHARED} cached")
        for server in self._servers:
            rounds = [asyncio.run(self._first(server)) for _ in range(2 * self._rounds)]
            cold, warm = (statistics.median(entry[side] for entry in rounds) for side in (0, 1))
            print(f"{server.name:>10}  {1000 * cold:8.1f}  {1000 * warm:8.1f}  ratio {cold / warm:.1f}", flush=True)

    def long(self, num_streams: int = 4) -> None:
        """Gaps of running answers while a long prompt comes in."""
        print(f"\n{num_streams} answers run while a prompt of {NUM_LONG} tokens comes in; gaps meanwhile, ms: p50, p99")
        for server in self._servers:
            gaps = [gap for _ in range(self._rounds) for gap in asyncio.run(self._long(server, num_streams))]
            middle, high = percentile(gaps, 0.5), percentile(gaps, 0.99)
            print(f"{server.name:>10}  {1000 * middle:8.1f}  {1000 * high:8.1f}  ratio {high / middle:.2f}", flush=True)

    def _load(self, make: Callable[[], list[list[Prompt]]], bare: int) -> None:
        loop = BareLoop(smollm2_path(), 256, bare, self._threads) if bare else None
        rates: dict[str, list[float]] = {server.name: [] for server in self._servers}
        answers: dict[str, list[Answer]] = {server.name: [] for server in self._servers}
        limits = []
        for number in range(self._rounds):
            if loop is not None:
                prompts = [self._tokens(NUM_PROMPT) for _ in range(bare)]
                _, *seconds = loop.answer(prompts, NUM_ANSWER)
                limits.append(bare * NUM_ANSWER / sum(seconds))
            for server in self._servers[:: 1 if number % 2 else -1]:
                rate, new = asyncio.run(closed_loop(server, make()))
                rates[server.name].append(rate)
                answers[server.name] += new
        print(f"{'':>10}  {'tok/s':>7}  {'first p50':>9}  {'gap p50':>8}  {'gap p99':>8}   ms")
        if loop is not None:
            print(f"{'bare loop':>10}  {statistics.median(limits):7.1f}")
            loop.close()
        for name, values in rates.items():
            gaps = [gap for answer in answers[name] for gap in answer.gaps]
            first = statistics.median(answer.first for answer in answers[name])
            figures = [1000 * first, 1000 * percentile(gaps, 0.5), 1000 * percentile(gaps, 0.99)]
            print(
                f"{name:>10}  {statistics.median(values):7.1f}  {figures[0]:9.0f}  {figures[1]:8.1f}  {figures[2]:8.1f}"
            )
        sys.stdout.flush()

    async def _first(self, server: Server) -> tuple[float, float]:
        prefix = self._tokens(NUM_SHARED)
        async with new_session() as session:
            cold = await ask(session, server, prefix + self._tokens(NUM_SUFFIX), 2)
            warm = await ask(session, server, prefix + self._tokens(NUM_SUFFIX), 2)
        return cold.first, warm.first

    async def _long(self, server: Server, num_streams: int) -> list[float]:
        async with new_session() as session:
            prompts = [self._tokens(NUM_PROMPT) for _ in range(num_streams)]
            streams = [asyncio.create_task(ask(session, server, prompt, 400)) for prompt in prompts]
            await asyncio.sleep(5)
            long = await ask(session, server, self._tokens(NUM_LONG), 2)
            answers = await asyncio.gather(*streams)
        start, end = long.sent, long.pieces[0]
        pairs = [pair for answer in answers for pair in itertools.pairwise(answer.pieces)]
        return [later - earlier for earlier, later in pairs if later > start and earlier < end]

    def _tokens(self, count: int) -> Prompt:
        return random_tokens(count, self._num_vocab, self._dice)


def main() -> None:
    """Measure and print tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", action="append", default=[], help="base URL of another server, without /v1")
    parser.add_argument("--peer-model", default="default", help="the model to name there")
    parser.add_argument("--clients", default="1,8,32")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=2, help="of each client in a round")
    parser.add_argument("--threads", type=int, default=psutil.cpu_count(logical=False))
    parser.add_argument("--only", default="random,shared,first,long")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    clients = [int(text) for text in arguments.clients.split(",")]
    print(f"SmolLM2-135M Q4_1, {arguments.threads} threads, medians of {arguments.rounds} rounds")
    parameters = {"num_ctx": WINDOW, "num_thread": arguments.threads}
    with running_daemon(smollm2_path(), parameters, CORRAL_NUM_PARALLEL=str(max(clients))) as url:
        peers = [Server(f"peer {number}", peer, arguments.peer_model) for number, peer in enumerate(arguments.peer, 1)]
        servers = [Server("Corral", url, MODEL), *peers]
        benchmark = Benchmark(servers, arguments)
        for server in servers:
            asyncio.run(closed_loop(server, [[[1, 2, 3]]]))
        scenarios: dict[str, list[Callable[[], None]]] = {
            "random": [lambda number=number: benchmark.random(number) for number in clients],
            "shared": [lambda: benchmark.shared(8)],
            "first": [benchmark.first],
            "long": [benchmark.long],
        }
        for name in arguments.only.split(","):
            for scenario in scenarios[name]:
                scenario()


if __name__ == "__main__":
    main()
