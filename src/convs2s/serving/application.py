"""What the server answers: a page, its health, translations; every fault is a line of JSON."""

import asyncio
import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from convs2s.decoding.translate import Translation
from convs2s.errors import UserError
from convs2s.serving.batches import Batches, BusyError
from convs2s.serving.page import ServedPage
from convs2s.serving.requests import Asked, TooLargeError, parse_request, read_body
from convs2s.serving.settings import ServerSettings, is_loopback

BAD, FORBIDDEN_HOST, SLOW, TOO_LARGE, NOT_JSON, FAULT, BUSY = 400, 421, 408, 413, 415, 500, 503

GONE = 499
"""What is noted where the client has closed the connection; nobody reads it."""

HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}

STATUSES = {BusyError: BUSY, TooLargeError: TOO_LARGE}


class Served(NamedTuple):
    """What a server needs.

    Attributes:
        batches: what translates.
        settings: its bounds.
        beam: of a request that states none.
        page: what a browser gets.
        model: what its health says of the model.
    """

    batches: Batches
    settings: ServerSettings
    beam: int
    page: ServedPage
    model: dict[str, object]


def application(served: Served) -> Starlette:
    """Return the application, which translates for as long as it lives."""

    @asynccontextmanager
    async def translating(_: Starlette) -> AsyncIterator[None]:
        running = asyncio.create_task(served.batches.run())
        yield
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running

    handlers = _Handlers(served)
    routes = [
        Route("/", handlers.checked(handlers.page)),
        Route("/health", handlers.checked(handlers.health)),
        Route("/translate", handlers.checked(handlers.translate), methods=["POST"]),
    ]
    return Starlette(
        routes=routes, lifespan=translating, exception_handlers={HTTPException: _http_fault}
    )


def _host_of(header: str) -> str:
    """Return the name in a header ``Host: name:port``; "" where there is none."""
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:  # such as "[::1" without its end
        return ""


Handler = Callable[[Request], Awaitable[Response]]


class _Handlers:
    """What answers each address."""

    def __init__(self, served: Served) -> None:
        self._served = served

    def checked(self, handler: Handler) -> Handler:
        """Return a handler that answers only those who mean this server, and says its faults."""

        async def answer(request: Request) -> Response:
            """Give the handler's answer, or say what is wrong."""
            host = _host_of(request.headers.get("host", ""))
            mine = self._served.settings.host
            # A page from elsewhere may have a name that leads here (DNS rebinding).
            if is_loopback(mine) and not is_loopback(host):
                return _fault(FORBIDDEN_HOST, "this server answers on this machine alone")
            try:
                return await handler(request)
            except UserError as error:
                return _fault(STATUSES.get(type(error), BAD), str(error))
            except ClientDisconnect:
                return Response(status_code=GONE)
            except Exception:
                traceback.print_exc(file=sys.stderr)
                return _fault(FAULT, "a fault of the server: its log says more")

        return answer

    async def page(self, _: Request) -> Response:
        """Give the page."""
        page = self._served.page
        headers = {**HEADERS, "Content-Security-Policy": page.policy}
        return Response(page.content, media_type="text/html; charset=utf-8", headers=headers)

    async def health(self, _: Request) -> Response:
        """Say that the server lives, how many sentences wait, and what it takes."""
        served = self._served
        bounds = served.settings.model_dump(exclude={"host", "port"})
        waiting = served.batches.waiting
        content = {"status": "ok", "waiting": waiting, "model": served.model, "bounds": bounds}
        return JSONResponse(content, headers=HEADERS)

    async def translate(self, request: Request) -> Response:
        """Translate what a request asks, together with others."""
        served = self._served
        # Browsers send another site's form or text without asking, JSON never.
        if request.headers.get("content-type", "").partition(";")[0] != "application/json":
            return _fault(NOT_JSON, "request: expected the header Content-Type: application/json")
        try:
            async with asyncio.timeout(served.settings.request_seconds):
                body = await read_body(request.stream(), served.settings.largest_body)
        except TimeoutError:
            seconds = f"{served.settings.request_seconds:g}"
            return _fault(
                SLOW, f"request: not complete within {seconds} s", {"Connection": "close"}
            )
        asked = parse_request(body, served.settings, served.beam)
        try:
            found = await _unless_gone(request, served.batches, asked)
        except BusyError:
            raise
        except UserError as error:  # of the model: the request has been checked
            return _fault(FAULT, str(error))
        return JSONResponse({"translations": [_as_json(one) for one in found]}, headers=HEADERS)


async def _unless_gone(request: Request, batches: Batches, asked: Asked) -> list[Translation]:
    """Wait for translations, or for the client to close the connection, which ends the work.

    Raises:
        ClientDisconnect: it did.
        UserError: as of ``Batches.translate``.
    """
    translating = asyncio.create_task(batches.translate(*asked))
    leaving = asyncio.create_task(_leaving(request))
    try:
        await asyncio.wait({translating, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not translating.done():
            raise ClientDisconnect
        return translating.result()
    finally:
        translating.cancel()
        leaving.cancel()


async def _leaving(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _as_json(translation: Translation) -> dict[str, object]:
    fields = translation.as_json()
    del fields["line"]
    if translation.attention is not None:
        fields["attention"] = translation.attention.as_json()
    return fields


def _fault(status: int, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": message}, status, headers={**HEADERS, **(headers or {})})


def _http_fault(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _fault(error.status_code, error.detail, dict(error.headers or {}))
