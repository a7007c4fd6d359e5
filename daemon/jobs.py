"""Long work with progress (pull, create): one job may have many followers, and a slow follower holds up nobody."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable

from ..core.progress import Progress, Report

Work = Callable[[Report], Awaitable[None]]


class Follower:
    """Progress for one client. Steps of one status that it has not read yet are merged into the newest."""

    def __init__(self) -> None:
        self._steps: deque[Progress] = deque()
        self._arrived = asyncio.Event()
        self._ended = False

    def put(self, step: Progress) -> None:
        """Add a step."""
        if self._steps and (self._steps[-1].status, self._steps[-1].digest) == (step.status, step.digest):
            self._steps[-1] = step
        else:
            self._steps.append(step)
        self._arrived.set()

    def end(self) -> None:
        """Say that no more steps come."""
        self._ended = True
        self._arrived.set()

    async def __aiter__(self) -> AsyncIterator[Progress]:
        while True:
            while self._steps:
                yield self._steps.popleft()
            if self._ended:
                return
            self._arrived.clear()
            await self._arrived.wait()


class Job:
    """Work under way. It ends early when its last follower leaves."""

    def __init__(self, work: Work) -> None:
        self._followers: set[Follower] = set()
        self._latest: Progress | None = None
        loop = asyncio.get_running_loop()

        def report(step: Progress) -> None:
            # Work runs in threads as well as on the loop.
            loop.call_soon_threadsafe(self._publish, step)

        self.task: asyncio.Task[None] = asyncio.ensure_future(self._run(work, report))

    async def follow(self) -> AsyncIterator[Progress]:
        """Steps from now on, the latest first; then the job's error, if it ended with one."""
        follower = Follower()
        if self._latest is not None:
            follower.put(self._latest)
        self._followers.add(follower)
        self.task.add_done_callback(lambda task: follower.end())
        try:
            async for step in follower:
                yield step
            await self.task
        finally:
            self._followers.discard(follower)
            if not self._followers and not self.task.done():
                self.task.cancel()

    def _publish(self, step: Progress) -> None:
        self._latest = step
        for follower in self._followers:
            follower.put(step)

    async def _run(self, work: Work, report: Report) -> None:
        await work(report)
        # Steps that threads reported are still on their way to the loop.
        await asyncio.sleep(0)


class Jobs:
    """Jobs by key; a second request for the same thing joins the first."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}

    def join(self, key: str, work: Work) -> Job:
        """The running job of this key, else a new one that does `work`."""
        job = self._jobs.get(key)
        if job is None or job.task.done():
            job = Job(work)
            self._jobs[key] = job
            job.task.add_done_callback(lambda task: self._jobs.pop(key, None) if self._jobs.get(key) is job else None)
        return job

    async def close(self) -> None:
        """Cancel what runs."""
        tasks = [job.task for job in self._jobs.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
