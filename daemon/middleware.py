"""What every request passes: Host and Origin checks, and errors to answers. The daemon's one `except Exception`."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable

from aiohttp import ClientPayloadError, web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Middleware

from ..core.address import Address
from ..core.errors import CorralError, Forbidden, Internal, InvalidRequest
from .origins import OriginRules, host_allowed, is_local, is_own_origin
from .services import SERVICES
from .streaming import error_response

log = logging.getLogger(__name__)
_CLIENT_GONE = 499
_CORS: web.RequestKey[dict[str, str]] = web.RequestKey("cors", dict)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@web.middleware
async def answer_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Errors of ours become answers with their status; anything else is a fault of ours, logged and not shown."""
    try:
        return await handler(request)
    except CorralError as error:
        return error_response(error)
    except web.HTTPRequestEntityTooLarge as error:
        return error_response(InvalidRequest(f"the body is too large: {error.text}"))
    except (HttpProcessingError, ClientPayloadError, web.RequestPayloadError) as error:
        return error_response(InvalidRequest(f"the body cannot be read: {getattr(error, 'message', '') or error}"))
    except web.HTTPException:
        raise
    except ConnectionResetError:
        # The client left while its answer was being written.
        raise
    except Exception:
        log.exception("fault while answering %s %s", request.method, request.path)
        return error_response(Internal("internal error; the daemon's log says more"))


@web.middleware
async def count_requests(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Count every request by its route and the status of its answer; clients that leave count as 499."""
    started = time.monotonic()
    status = _CLIENT_GONE
    try:
        response = await handler(request)
        status = response.status
        return response
    except web.HTTPException as error:
        status = error.status
        raise
    finally:
        resource = request.match_info.route.resource
        # A path that no route knows must not become a label, or strangers could fill the memory with them.
        method, route = (request.method, resource.canonical) if resource else ("other", "unknown")
        request.app[SERVICES].metrics.count_request(method, route, status, time.monotonic() - started)


class StrangerCheck:
    """Turns away browsers' requests from pages that were not allowed. Its `check` is the middleware."""

    def __init__(self, rules: OriginRules, listen: Address) -> None:
        self._rules = rules
        self._listen = listen

    def middleware(self) -> Middleware:
        """The check in the form that aiohttp takes."""

        @web.middleware
        async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
            if is_local(request):
                return await handler(request)
            if not host_allowed(request.headers.get("Host", ""), self._listen):
                return web.Response(status=403)
            origin = request.headers.get("Origin", "")
            if not origin or is_own_origin(origin, request.headers.get("Host", "")):
                return web.Response(status=204) if request.method == "OPTIONS" else await handler(request)
            if not self._rules.allows(origin):
                refused = error_response(
                    Forbidden(f"origin {origin[:80]} is not allowed: add it to CORRAL_ORIGINS and restart the daemon")
                )
                refused.headers["Vary"] = "Origin"
                return refused
            return await self._with_cors(request, handler, origin)

        return check

    async def _with_cors(self, request: web.Request, handler: Handler, origin: str) -> web.StreamResponse:
        if request.method == "OPTIONS":
            return web.Response(status=204, headers=self._rules.headers(origin, preflight=True))
        request[_CORS] = self._rules.headers(origin, preflight=False)
        return await handler(request)


async def add_cors(request: web.Request, response: web.StreamResponse) -> None:
    """Put the CORS headers on an answer, streamed ones too, just before it starts."""
    response.headers.update(request.get(_CORS, {}))
