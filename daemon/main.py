"""The daemon's life: open the store, listen, serve until a signal, then end in the opposite order."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from contextlib import AsyncExitStack

import aiohttp
from aiohttp import web

from .. import __version__
from ..core.errors import CorralError, InvalidRequest
from ..core.settings import Settings
from ..modelfile.model import ModelResolver
from ..registry.store import Store
from .app import build_app
from .jobs import Jobs
from .listeners import UnixListener, listen_tcp
from .metrics import Metrics
from .scheduler import Scheduler
from .services import Services
from .sessions import Sessions

log = logging.getLogger(__name__)

DEFAULT_BACKEND = "llamacpp"
_SHUTDOWN_SECONDS = 2.0


def serve(settings: Settings, backend: str = DEFAULT_BACKEND) -> int:
    """Run the daemon until it is told to end. Returns the exit code."""
    logging.basicConfig(
        level=logging.DEBUG if settings.debug else logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        stream=sys.stderr,
    )
    try:
        asyncio.run(run_daemon(settings, backend))
    except CorralError as error:
        print(f"Error: {error.message}", file=sys.stderr)
        return 1
    return 0


async def run_daemon(settings: Settings, backend: str) -> None:
    """Serve until SIGINT or SIGTERM. Errors: StoreFailed when the store or an address cannot be had."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        await start_daemon(settings, backend, stack)
        log.info("Corral %s listens on %s; models are in %s", __version__, settings.host.url, settings.models)
        await stop.wait()
        log.info("ending")


async def start_daemon(settings: Settings, backend: str, stack: AsyncExitStack) -> Services:
    """Start everything; `stack` ends it again in the opposite order."""
    if settings.host.scheme == "https":
        raise InvalidRequest("setting host: the daemon itself speaks http only; put a proxy in front of it for https")
    unix = UnixListener(settings.socket)
    unix_socket = unix.open()
    stack.callback(unix.close)
    tcp_socket = listen_tcp(settings.host)
    stack.callback(tcp_socket.close)
    store = Store(settings.models)
    await asyncio.to_thread(store.open)
    stack.callback(store.close)
    http = await stack.enter_async_context(aiohttp.ClientSession(trust_env=True))
    scheduler = Scheduler(settings, backend)
    services = Services(
        sessions=Sessions(),
        metrics=Metrics(scheduler),
        settings=settings,
        store=store,
        resolver=ModelResolver(store),
        scheduler=scheduler,
        jobs=Jobs(),
        http=http,
    )
    stack.push_async_callback(services.scheduler.close)
    stack.push_async_callback(services.jobs.close)
    # Without handler_cancellation a client that hangs up would leave its generation running.
    runner = web.AppRunner(
        build_app(services),
        handler_cancellation=True,
        access_log=log if settings.debug else None,
        shutdown_timeout=_SHUTDOWN_SECONDS,
    )
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    for listener in (unix_socket, tcp_socket):
        await web.SockSite(runner, listener).start()
    return services
