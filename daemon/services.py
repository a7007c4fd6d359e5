"""What handlers need, made once by the daemon and handed to the app under one typed key."""

from __future__ import annotations

import aiohttp
import msgspec
from aiohttp import web

from ..core.settings import Settings
from ..modelfile.model import ModelResolver
from ..registry.store import Store
from .jobs import Jobs
from .metrics import Metrics
from .scheduler import Scheduler
from .sessions import Sessions


class Services(msgspec.Struct, frozen=True):
    """The daemon's parts."""

    settings: Settings
    store: Store
    resolver: ModelResolver
    scheduler: Scheduler
    jobs: Jobs
    sessions: Sessions
    metrics: Metrics
    http: aiohttp.ClientSession


SERVICES: web.AppKey[Services] = web.AppKey("services", Services)
