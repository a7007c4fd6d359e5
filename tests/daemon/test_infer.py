"""Generation through the daemon: streams, errors, cancellation, faults. The fake engine does what the prompt says."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from daemons import RunningDaemon, run_fake_daemon, tiny_gguf


async def generate(daemon: RunningDaemon, prompt: str, **fields: Any) -> tuple[int, Any]:
    return await daemon.post("/api/generate", {"model": "fake", "prompt": prompt, **fields})


async def chat(daemon: RunningDaemon, text: str, **fields: Any) -> tuple[int, Any]:
    messages = [{"role": "user", "content": text}]
    return await daemon.post("/api/chat", {"model": "fake", "messages": messages, **fields})


def runner_pid(daemon: RunningDaemon) -> int:
    handle = daemon.services.scheduler.loaded[0].handle
    assert handle is not None
    return handle.pid


async def wait_until(condition: Any, seconds: float = 10.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


async def test_stream_ends_with_one_done_and_joins_to_the_answer(daemon: RunningDaemon) -> None:
    status, lines = await generate(daemon, "say hello")
    assert status == 200
    assert "".join(line["response"] for line in lines) == "hello"
    assert [line["done"] for line in lines].count(True) == 1
    last = lines[-1]
    assert last["done_reason"] == "stop"
    assert last["model"] == "fake"
    assert last["eval_count"] == len("hello") + 1
    assert last["prompt_eval_count"] == len("say hello")
    assert last["total_duration"] >= last["load_duration"] > 0


async def test_whole_answer_has_the_same_text_and_counts(daemon: RunningDaemon) -> None:
    _, lines = await chat(daemon, "say hi there")
    status, whole = await chat(daemon, "say hi there", stream=False)
    assert status == 200
    assert whole["message"] == {"role": "assistant", "content": "hi there"}
    assert whole["eval_count"] == lines[-1]["eval_count"]
    assert all(line["message"]["role"] == "assistant" for line in lines)


async def test_stop_string_is_never_shown(daemon: RunningDaemon) -> None:
    for stream in (True, False):
        _, answer = await generate(daemon, "count 20", stream=stream, options={"stop": [" 13"]})
        text = "".join(line["response"] for line in answer) if stream else answer["response"]
        assert text == "1 2 3 4 5 6 7 8 9 10 11 12"
        assert (answer[-1] if stream else answer)["done_reason"] == "stop"


async def test_num_predict_bounds_the_answer(daemon: RunningDaemon) -> None:
    _, whole = await generate(daemon, "forever", stream=False, options={"num_predict": 5})
    assert (whole["response"], whole["done_reason"], whole["eval_count"]) == (".....", "length", 5)


async def test_empty_prompt_loads_and_keep_alive_0_unloads(daemon: RunningDaemon) -> None:
    status, loaded = await generate(daemon, "")
    assert (status, loaded["done_reason"], loaded["response"]) == (200, "load", "")
    assert len((await daemon.call("GET", "/api/ps"))[1]["models"]) == 1
    status, unloaded = await daemon.post("/api/chat", {"model": "fake", "keep_alive": 0})
    assert (status, unloaded["done_reason"]) == (200, "unload")
    assert unloaded["message"] == {"role": "assistant", "content": ""}
    assert (await daemon.call("GET", "/api/ps"))[1]["models"] == []


async def test_keep_alive_0_with_a_prompt_unloads_after_the_answer(daemon: RunningDaemon) -> None:
    _, whole = await generate(daemon, "say x", stream=False, keep_alive="0")
    assert whole["response"] == "x"
    await wait_until(lambda: not daemon.services.scheduler.loaded)


async def test_unloading_ends_the_process(daemon: RunningDaemon) -> None:
    await generate(daemon, "")
    pid = runner_pid(daemon)
    await generate(daemon, "", keep_alive=0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_negative_keep_alive_stays_for_ever(daemon: RunningDaemon) -> None:
    await generate(daemon, "", keep_alive=-1)
    row = (await daemon.call("GET", "/api/ps"))[1]["models"][0]
    assert row["expires_at"] > "2300"
    assert row["context_length"] == 4096


async def test_requests_run_at_the_same_time(daemon: RunningDaemon) -> None:
    endless = asyncio.create_task(generate(daemon, "forever", options={"num_predict": 5000}))
    status, whole = await generate(daemon, "say quick", stream=False)
    assert (status, whole["response"]) == (200, "quick")
    assert not endless.done()
    endless.cancel()
    with suppress(asyncio.CancelledError):
        await endless


@pytest.mark.parametrize("stream", [True, False])
async def test_hanging_up_drops_the_sequence(daemon: RunningDaemon, stream: bool) -> None:
    await generate(daemon, "")
    instance = daemon.services.scheduler.loaded[0]
    task = asyncio.create_task(generate(daemon, "forever", stream=stream, options={"num_predict": 100_000}))
    await wait_until(lambda: instance.num_leases == 1)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    await wait_until(lambda: instance.num_leases == 0, seconds=2)
    assert instance.handle is not None
    assert not instance.handle._streams


async def test_load_goes_on_when_its_caller_leaves(daemon: RunningDaemon) -> None:
    with pytest.raises(TimeoutError):
        await daemon.post(
            "/api/generate", {"model": "fake", "prompt": "say x"}, timeout=aiohttp.ClientTimeout(total=0.02)
        )
    assert not daemon.services.scheduler.loaded
    await wait_until(lambda: daemon.services.scheduler.loaded)


async def test_killed_runner_ends_the_stream_with_one_error_and_is_replaced(daemon: RunningDaemon) -> None:
    await generate(daemon, "")
    old_pid = runner_pid(daemon)
    task = asyncio.create_task(generate(daemon, "forever", options={"num_predict": 100_000}))
    await wait_until(lambda: daemon.services.scheduler.loaded[0].num_leases == 1)
    await asyncio.sleep(0.1)
    os.kill(old_pid, signal.SIGKILL)
    status, lines = await task
    assert status == 200
    errors = [line["error"] for line in lines if "error" in line]
    assert len(errors) == 1
    assert "SIGKILL" in errors[0]
    assert "error" in lines[-1]
    status, whole = await generate(daemon, "say again", stream=False)
    assert (status, whole["response"]) == (200, "again")
    assert runner_pid(daemon) != old_pid


async def test_runner_that_hangs_in_native_code_is_killed_and_its_requests_end_with_one_error(tmp_path: Path) -> None:
    async with run_fake_daemon(tmp_path, stall_timeout="500ms") as daemon:
        await generate(daemon, "")
        old_pid = runner_pid(daemon)
        async with asyncio.timeout(20):
            answers = await asyncio.gather(*(generate(daemon, script) for script in ("hang", "forever")))
        for status, answer in answers:
            # The one that had begun to stream ends with the error as its last line.
            errors = [line["error"] for line in (answer if isinstance(answer, list) else [answer]) if "error" in line]
            assert status in (200, 500)
            assert len(errors) == 1
            assert "no sign of life for 0.5 s" in errors[0]
        assert (await generate(daemon, "say fine", stream=False))[1]["response"] == "fine"
        assert runner_pid(daemon) != old_pid


async def test_long_answer_is_a_sign_of_life(tmp_path: Path) -> None:
    async with run_fake_daemon(tmp_path, stall_timeout="100ms") as daemon:
        _, whole = await generate(daemon, "forever", stream=False, options={"num_predict": 400})
        assert len(whole["response"]) == 400


@pytest.mark.parametrize(("script", "word"), [("die", "status 9"), ("fault", "engine failed")])
async def test_fault_before_the_first_token_is_a_plain_error(daemon: RunningDaemon, script: str, word: str) -> None:
    status, answer = await generate(daemon, script)
    assert status == 500
    assert word in answer["error"]
    assert (await generate(daemon, "say fine", stream=False))[1]["response"] == "fine"


async def test_refused_load_says_why_and_the_next_is_answered(daemon: RunningDaemon) -> None:
    status, answer = await generate(daemon, "say x", options={"num_ctx": 13})
    assert status == 500
    assert answer["error"] == "the fake engine refuses a window of 13"
    assert (await generate(daemon, "say x", stream=False))[0] == 200


async def test_smaller_window_is_served_and_larger_one_reloads(daemon: RunningDaemon) -> None:
    await generate(daemon, "", options={"num_ctx": 2048})
    pid = runner_pid(daemon)
    _, small = await generate(daemon, "say " + "x" * 600, stream=False, options={"num_ctx": 512})
    assert "does not fit the window of 512" in small["error"]
    _, other = await generate(daemon, "say x", stream=False, options={"num_batch": 64})
    assert "num_batch 64 was ignored" in other["warnings"][0]
    assert runner_pid(daemon) == pid
    _, large = await generate(daemon, "say x", stream=False, options={"num_ctx": 4096})
    assert "loaded again: num_ctx 2048 -> 4096" in large["warnings"][0]
    assert runner_pid(daemon) != pid


async def test_window_beyond_the_model_is_cut_and_told(daemon: RunningDaemon) -> None:
    _, whole = await generate(daemon, "say x", stream=False, options={"num_ctx": 100_000})
    assert "cut to 8192" in whole["warnings"][0]
    pid = runner_pid(daemon)
    await generate(daemon, "say x", stream=False, options={"num_ctx": 100_000})
    assert runner_pid(daemon) == pid


async def test_old_turns_are_left_out_and_told(daemon: RunningDaemon) -> None:
    messages = [{"role": "system", "content": "Be brief."}]
    for number in range(20):
        messages += [{"role": "user", "content": f"question {number}"}, {"role": "assistant", "content": "a" * 30}]
    messages.append({"role": "user", "content": "say last"})
    body = {"model": "fake", "messages": messages, "stream": False, "options": {"num_ctx": 256}}
    status, whole = await daemon.post("/api/chat", body)
    assert (status, whole["message"]["content"]) == (200, "last")
    assert "oldest messages were left out" in whole["warnings"][0]
    assert 0 < whole["prompt_eval_count"] < 256
    status, answer = await daemon.post("/api/chat", body | {"truncate": False})
    assert status == 400
    assert "window of 256" in answer["error"]


async def test_full_queue_is_503_with_retry_after(tmp_path: Path) -> None:
    async with run_fake_daemon(tmp_path, num_parallel=1, max_queue=1) as daemon:
        tasks = [asyncio.create_task(generate(daemon, "forever", options={"num_predict": 100_000})) for _ in range(2)]
        await wait_until(lambda: any(entry.num_leases == 2 for entry in daemon.services.scheduler.loaded))
        async with daemon.http.post(
            f"{daemon.url}/api/generate", json={"model": "fake", "prompt": "say x"}
        ) as response:
            assert response.status == 503
            assert response.headers["Retry-After"] == "1"
            assert "CORRAL_MAX_QUEUE" in (await response.json())["error"]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_idle_model_makes_room_for_another(tmp_path: Path) -> None:
    async with run_fake_daemon(tmp_path, max_loaded_models=1) as daemon:
        await daemon.create("other", tiny_gguf(**{"general.name": "other"}))
        await generate(daemon, "say x", stream=False)
        status, whole = await daemon.post("/api/generate", {"model": "other", "prompt": "say y", "stream": False})
        assert (status, whole["response"]) == (200, "y")
        assert [entry.model.name.model for entry in daemon.services.scheduler.loaded] == ["other"]


async def test_busy_model_is_finished_before_it_makes_room(tmp_path: Path) -> None:
    async with run_fake_daemon(tmp_path, max_loaded_models=1) as daemon:
        await daemon.create("other", tiny_gguf(**{"general.name": "other"}))
        busy = asyncio.create_task(generate(daemon, "forever", options={"num_predict": 100}))
        await wait_until(lambda: daemon.services.scheduler.loaded)
        status, _ = await daemon.post("/api/generate", {"model": "other", "prompt": "say y", "stream": False})
        assert status == 200
        assert (await busy)[1][-1]["eval_count"] == 100


async def test_models_of_the_same_weights_share_one_runner(daemon: RunningDaemon) -> None:
    await daemon.post("/api/create", {"model": "child", "from": "fake", "system": "x", "stream": False})
    await generate(daemon, "say x", stream=False)
    _, whole = await daemon.post("/api/generate", {"model": "child", "prompt": "say y", "stream": False})
    assert whole["response"] == "y"
    rows = (await daemon.call("GET", "/api/ps"))[1]["models"]
    assert [row["name"] for row in rows] == ["fake:latest"]


async def test_stored_messages_system_and_parameters_are_applied(daemon: RunningDaemon) -> None:
    fields = {
        "from": "fake",
        "system": "SYS",
        "parameters": {"num_predict": 2},
        "messages": [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "A"}],
        "stream": False,
    }
    await daemon.post("/api/create", {"model": "child", **fields})
    body = {"model": "child", "prompt": "say hello", "stream": False}
    assert (await daemon.post("/api/generate", body))[1]["response"] == "he"
    _, shown = await daemon.post("/api/generate", body | {"_debug_render_only": True})
    assert shown["_debug_info"]["rendered_template"] == "SYS\n\nQ\n\nA\n\nsay hello"
    _, shown = await daemon.post("/api/generate", body | {"_debug_render_only": True, "system": "MINE"})
    assert shown["_debug_info"]["rendered_template"] == "MINE\n\nQ\n\nA\n\nsay hello"


async def test_raw_prompt_is_sent_as_it_is(daemon: RunningDaemon) -> None:
    await daemon.post("/api/create", {"model": "child", "from": "fake", "system": "SYS", "stream": False})
    _, whole = await daemon.post("/api/generate", {"model": "child", "prompt": "say raw", "raw": True, "stream": False})
    assert whole["prompt_eval_count"] == len("say raw")
    assert "context" not in whole


async def test_context_goes_on_from_an_earlier_answer(daemon: RunningDaemon) -> None:
    _, first = await generate(daemon, "say one", stream=False)
    _, second = await generate(daemon, "\nsay two", stream=False, context=first["context"])
    assert second["response"] == "two"
    assert second["prompt_eval_count"] == len(first["context"]) + len("\nsay two")


async def test_markers_in_user_text_are_plain_text(daemon: RunningDaemon) -> None:
    _, chatted = await chat(daemon, "say a<end>b", stream=False)
    _, raw = await generate(daemon, "say a<end>b", stream=False, raw=True)
    assert chatted["prompt_eval_count"] == len("say a<end>b")
    assert raw["prompt_eval_count"] == len("say ab") + 1


async def test_logprobs_come_one_a_token(daemon: RunningDaemon) -> None:
    _, whole = await generate(daemon, "say hey", stream=False, logprobs=True, top_logprobs=1)
    assert [entry["token"] for entry in whole["logprobs"]] == ["h", "e", "y"]
    assert whole["logprobs"][0]["top_logprobs"] == [{"token": "h", "logprob": -0.5, "bytes": [104]}]
    _, lines = await generate(daemon, "say hey", logprobs=True)
    assert sum(len(line.get("logprobs", [])) for line in lines) == 3


async def test_slow_reader_loses_no_token_and_holds_nobody_up(daemon: RunningDaemon) -> None:
    body = {"model": "fake", "prompt": "count 5000"}
    async with daemon.http.post(f"{daemon.url}/api/generate", json=body) as response:
        _, whole = await generate(daemon, "say quick", stream=False)
        assert whole["response"] == "quick"
        lines = [msgspec.json.decode(line) for line in (await response.read()).splitlines()]
    assert "".join(line["response"] for line in lines) == " ".join(str(number) for number in range(1, 5001))
    assert lines[-1]["eval_count"] == len(" ".join(str(number) for number in range(1, 5001))) + 1


async def test_format_constrains_the_answer(daemon: RunningDaemon) -> None:
    schema = {"enum": ["yes", "no"]}
    for answer in (
        (await generate(daemon, "say maybe", stream=False, format=schema))[1]["response"],
        (await chat(daemon, "say maybe", stream=False, format=schema))[1]["message"]["content"],
    ):
        assert answer in ('"yes"', '"no"')
    body = {"model": "fake", "messages": [{"role": "user", "content": "say maybe"}]}
    wrapped = {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": schema}}
    _, whole = await daemon.post("/v1/chat/completions", body | {"response_format": wrapped})
    assert whole["choices"][0]["message"]["content"] in ('"yes"', '"no"')


async def test_unusable_schema_is_400_with_the_reason(daemon: RunningDaemon) -> None:
    status, answer = await generate(daemon, "say x", format={"type": "foo"})
    assert status == 400
    assert "Invalid type: foo" in answer["error"]


async def test_stored_template_is_rendered_and_one_in_the_request_replaces_it(daemon: RunningDaemon) -> None:
    template = "{{ .System }}|{{ .Prompt }}|"
    await daemon.post(
        "/api/create", {"model": "go", "from": "fake", "template": template, "system": "S", "stream": False}
    )
    body = {"model": "go", "prompt": "say x", "stream": False, "_debug_render_only": True}
    _, shown = await daemon.post("/api/generate", body)
    assert shown["_debug_info"]["rendered_template"] == "S|say x|"
    _, shown = await daemon.post("/api/generate", body | {"template": "[{{ .Prompt }}]"})
    assert shown["_debug_info"]["rendered_template"] == "[say x]"
    status, answer = await daemon.post("/api/generate", body | {"template": "{{ if }}"})
    assert status == 400
    assert "line 1, column" in answer["error"]


async def test_suffix_needs_a_template_that_knows_it(daemon: RunningDaemon) -> None:
    status, answer = await generate(daemon, "a", suffix="b", stream=False)
    assert status == 400
    assert "does not support insert" in answer["error"]
    status, whole = await generate(daemon, "say ", suffix="x", stream=False, template="{{ .Prompt }}{{ .Suffix }}")
    assert (status, whole["response"]) == (200, "x")


async def test_token_of_another_vocabulary_is_400_and_harms_nobody(daemon: RunningDaemon) -> None:
    await generate(daemon, "")
    pid = runner_pid(daemon)
    for token in (257, 99_999_999, 1 << 40):
        status, answer = await generate(daemon, "say x", context=[token], stream=False)
        assert status == 400
        assert "context" in answer["error"]
    assert runner_pid(daemon) == pid


async def test_unload_goes_on_when_its_caller_leaves(daemon: RunningDaemon) -> None:
    busy = asyncio.create_task(generate(daemon, "forever", options={"num_predict": 300}))
    await wait_until(lambda: daemon.services.scheduler.loaded)
    pid = runner_pid(daemon)
    with pytest.raises(TimeoutError):
        await daemon.post("/api/generate", {"model": "fake", "keep_alive": 0}, timeout=aiohttp.ClientTimeout(total=0.1))
    assert len((await daemon.call("GET", "/api/ps"))[1]["models"]) == 1
    assert (await busy)[1][-1]["eval_count"] == 300
    await wait_until(lambda: not daemon.services.scheduler.loaded)
    await wait_until(lambda: not Path(f"/proc/{pid}").exists())


async def test_deleted_model_that_is_loaded_can_be_unloaded(daemon: RunningDaemon) -> None:
    await generate(daemon, "say x", stream=False)
    await daemon.call("DELETE", "/api/delete", {"model": "fake"})
    status, answer = await generate(daemon, "", keep_alive=0)
    assert (status, answer["done_reason"]) == (200, "unload")
    assert (await daemon.call("GET", "/api/ps"))[1]["models"] == []
    assert (await generate(daemon, "", keep_alive=0))[0] == 404


async def test_chat_of_very_many_messages_holds_nobody_up(daemon: RunningDaemon) -> None:
    turns = [{"role": role, "content": "w"} for role in ("user", "assistant") for _ in (0,)] * 20_000
    messages = [*turns, {"role": "user", "content": "say last"}]
    body = {"model": "fake", "messages": messages, "stream": False, "options": {"num_ctx": 512}}
    many = asyncio.create_task(daemon.post("/api/chat", body))
    _, whole = await generate(daemon, "say quick", stream=False)
    assert whole["response"] == "quick"
    async with asyncio.timeout(20):
        status, answer = await many
    assert (status, answer["message"]["content"]) == (200, "last")
    assert answer["prompt_eval_count"] > 400


async def test_request_aborted_while_its_prompt_is_prepared_is_gone(daemon: RunningDaemon) -> None:
    # Quadratic in the messages, so that rendering takes a second.
    template = "{{ range .Messages }}{{ range $.Messages }}x{{ end }}{{ end }}"
    await daemon.post("/api/create", {"model": "slow", "from": "fake", "template": template, "stream": False})
    await generate(daemon, "")
    instance = daemon.services.scheduler.loaded[0]
    turns = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}] * 450
    body = {"model": "slow", "messages": turns, "stream": False, "truncate": False}
    with pytest.raises(TimeoutError):
        await daemon.post("/api/chat", body, timeout=aiohttp.ClientTimeout(total=0.2))
    handle = instance.handle
    assert handle is not None
    await wait_until(lambda: instance.num_leases == 0 and not handle._streams, seconds=1)
    assert (await generate(daemon, "say quick", stream=False))[1]["response"] == "quick"
