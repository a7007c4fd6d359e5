"""Jobs and those who follow them."""

from __future__ import annotations

import asyncio

import pytest
from corral.core.errors import SourceFailed
from corral.core.progress import Progress, Report
from corral.daemon.jobs import Job, Jobs


async def collect(job: Job) -> list[str]:
    return [step.status async for step in job.follow()]


async def test_steps_come_in_order_and_the_last_before_the_end() -> None:
    async def work(report: Report) -> None:
        for status in ("a", "b"):
            report(Progress(status))
        await asyncio.to_thread(report, Progress("from a thread"))

    assert await collect(Job(work)) == ["a", "b", "from a thread"]


async def test_failure_reaches_every_follower_after_the_steps() -> None:
    async def work(report: Report) -> None:
        report(Progress("a"))
        await asyncio.sleep(0)
        raise SourceFailed("gone")

    job = Job(work)
    seen: list[str] = []

    async def follow() -> None:
        async for step in job.follow():
            seen.append(step.status)  # noqa: PERF401 - steps seen before the error count

    results = await asyncio.gather(follow(), follow(), return_exceptions=True)
    assert [str(result) for result in results] == ["gone", "gone"]
    assert seen == ["a", "a"]


async def test_steps_of_one_status_are_merged_for_a_slow_follower() -> None:
    async def work(report: Report) -> None:
        for completed in range(1000):
            report(Progress("pulling", "d", 1000, completed))
        await asyncio.sleep(0.01)

    steps = [step async for step in Job(work).follow()]
    assert len(steps) < 10
    assert steps[-1].completed == 999


async def test_job_ends_when_its_last_follower_leaves() -> None:
    async def work(report: Report) -> None:
        report(Progress("a"))
        await asyncio.Event().wait()

    jobs = Jobs()
    job = jobs.join("k", work)
    assert jobs.join("k", work) is job
    first, second = job.follow(), job.follow()
    await anext(first)
    await anext(second)
    await first.aclose()
    await asyncio.sleep(0)
    assert not job.task.done()
    await second.aclose()
    with pytest.raises(asyncio.CancelledError):
        await job.task
    assert jobs.join("k", work) is not job
    await jobs.close()
