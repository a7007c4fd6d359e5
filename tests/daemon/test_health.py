"""GET /health, /metrics, /info and /props of a daemon with the fake engine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from daemons import RunningDaemon, run_fake_daemon


async def read_metrics(daemon: RunningDaemon) -> dict[str, float]:
    status, text = await daemon.call("GET", "/metrics")
    assert status == 200
    rows = re.findall(r"^(corral_[^ ]+) (\S+)$", text, re.MULTILINE)
    return {name: float(value) for name, value in rows}


async def test_health_is_ok(daemon: RunningDaemon) -> None:
    assert await daemon.call("GET", "/health") == (200, {"status": "ok"})


async def test_metrics_count_requests_tokens_and_loads(daemon: RunningDaemon) -> None:
    before = await read_metrics(daemon)
    assert before["corral_models_loaded"] == before["corral_model_loads_total"] == 0
    await daemon.post("/api/generate", {"model": "fake", "prompt": "say hello", "stream": False})
    await daemon.post("/v1/chat/completions", {"model": "nosuch", "messages": [{"role": "user", "content": "x"}]})
    await daemon.call("GET", "/no/such/path")
    after = await read_metrics(daemon)
    assert after["corral_models_loaded"] == after["corral_model_loads_total"] == 1
    assert after["corral_requests_running"] == 0
    assert after['corral_prompt_tokens_total{model="fake:latest"}'] == len("say hello")
    assert after['corral_generation_tokens_total{model="fake:latest"}'] == len("hello") + 1
    assert after['corral_http_requests_total{method="POST",route="/api/generate",status="200"}'] == 1
    assert after['corral_http_requests_total{method="POST",route="/v1/chat/completions",status="404"}'] == 1
    assert after['corral_http_requests_total{method="other",route="unknown",status="404"}'] == 1
    assert after['corral_http_request_duration_seconds_count{method="POST",route="/api/generate"}'] == 1


async def test_metrics_show_what_runs(daemon: RunningDaemon) -> None:
    body = {"model": "fake", "prompt": "forever", "options": {"num_predict": 50_000}}
    async with daemon.http.post(f"{daemon.url}/api/generate", json=body) as response:
        await response.content.readany()
        assert (await read_metrics(daemon))["corral_requests_running"] == 1


async def test_metrics_of_two_daemons_are_apart(daemon: RunningDaemon, tmp_path: Path) -> None:
    await daemon.post("/api/generate", {"model": "fake", "prompt": "say x", "stream": False})
    async with run_fake_daemon(tmp_path / "second") as second:
        assert (await read_metrics(second))["corral_model_loads_total"] == 0


@pytest.mark.parametrize("path", ["/info", "/props"])
async def test_model_must_be_known_or_the_only_one(daemon: RunningDaemon, path: str) -> None:
    status, answer = await daemon.call("GET", f"{path}?model=nosuch")
    assert (status, answer["error"]) == (404, "model 'nosuch' not found")
    await daemon.create("other")
    status, answer = await daemon.call("GET", path)
    assert status == 400
    assert "model is required" in answer["error"]


async def test_info_tells_of_the_default_model(daemon: RunningDaemon) -> None:
    _, answer = await daemon.call("GET", "/info")
    assert answer["model_id"] == "fake:latest"
    assert answer["max_total_tokens"] == 8192
    await daemon.post("/api/generate", {"model": "fake", "options": {"num_ctx": 64}})
    _, answer = await daemon.call("GET", "/info")
    assert (answer["max_input_tokens"], answer["max_total_tokens"]) == (63, 64)


async def test_props_tell_of_window_slots_and_template(daemon: RunningDaemon) -> None:
    await daemon.create("mine", template="{{ .Prompt }}!")
    await daemon.post("/api/generate", {"model": "mine", "options": {"num_ctx": 64}})
    _, answer = await daemon.call("GET", "/props?model=mine")
    assert answer["default_generation_settings"]["n_ctx"] == 64
    assert answer["total_slots"] == 4
    assert answer["chat_template"] == "{{ .Prompt }}!"
