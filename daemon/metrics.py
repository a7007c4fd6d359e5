"""Counts of what the daemon does, for Prometheus: GET /metrics. Names follow vLLM's with `corral_` in front."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ..core.events import Done
from .scheduler import Scheduler

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# Seconds: from a list of models to a long answer on a slow machine.
_BUCKETS = (0.005, 0.02, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600)
_NS_PER_SECOND = 1e9


class SchedulerCollector(Collector):
    """What the scheduler knows, read whenever somebody asks."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def collect(self) -> Iterator[Metric]:
        """Models that are loaded now, and loads so far."""
        yield GaugeMetricFamily("corral_models_loaded", "Models that are loaded", value=len(self._scheduler.loaded))
        yield CounterMetricFamily("corral_model_loads", "Loads of models", value=self._scheduler.num_loads)


class Metrics:
    """The counts of one daemon, in a registry of their own."""

    def __init__(self, scheduler: Scheduler) -> None:
        registry = CollectorRegistry()
        registry.register(SchedulerCollector(scheduler))
        self._registry = registry
        self._requests = Counter(
            "corral_http_requests", "HTTP requests that were answered", ["method", "route", "status"], registry=registry
        )
        self._seconds = Histogram(
            "corral_http_request_duration_seconds",
            "Time from a request to the end of its answer",
            ["method", "route"],
            buckets=_BUCKETS,
            registry=registry,
        )
        self._running = Gauge(
            "corral_requests_running", "Inference requests that run, or wait for their model", registry=registry
        )
        per_model = {
            "prompt_tokens": "Tokens of prompts",
            "cached_prompt_tokens": "Tokens of prompts that were not evaluated again",
            "generation_tokens": "Tokens of answers",
            "prompt_seconds": "Time on prompts",
            "generation_seconds": "Time on answers",
        }
        self._per_model = {
            name: Counter(f"corral_{name}", text, ["model"], registry=registry) for name, text in per_model.items()
        }

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Note an answer. `route` is a path of the table of routes, not what a client made up."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    def count_answer(self, model: str, done: Done) -> None:
        """Note the tokens of an answer and the time that they took. `model` is the name of one that is installed."""
        amounts = {
            "prompt_tokens": done.usage.prompt_tokens,
            "cached_prompt_tokens": done.usage.cached_tokens,
            "generation_tokens": done.usage.completion_tokens,
            "prompt_seconds": done.timings.prompt_ns / _NS_PER_SECOND,
            "generation_seconds": done.timings.completion_ns / _NS_PER_SECOND,
        }
        for name, amount in amounts.items():
            self._per_model[name].labels(model).inc(amount)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Note that a request runs."""
        with self._running.track_inprogress():
            yield

    def print(self) -> bytes:
        """All counts in Prometheus' text format."""
        return generate_latest(self._registry)
