"""The server's answers: a page, its health, translations; every fault is a line of JSON."""

import asyncio
import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from convs2s.api.translator import OF_A_MODEL, Translator
from convs2s.config.decoding import DecodingSettings
from convs2s.decoding.translate import Translation
from convs2s.errors import UserError
from convs2s.pages.render import Program, asset, policy_digest, render_page
from convs2s.serving.requests import (
    Batches,
    BusyError,
    CheckedRequest,
    RequestOptions,
    TooLargeError,
    check_search,
    parse_request,
    read_body,
)
from convs2s.serving.settings import ServerSettings, is_loopback

BAD, FORBIDDEN_HOST, SLOW, TOO_LARGE, NOT_JSON, FAULT, BUSY = 400, 421, 408, 413, 415, 500, 503

GONE = 499  # noted where the client has closed the connection; nobody reads it

HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}

STATUSES = {BusyError: BUSY, TooLargeError: TOO_LARGE}

Handler = Callable[[Request], Awaitable[Response]]


def application(
    translator: Translator, search: DecodingSettings, settings: ServerSettings
) -> Starlette:
    """Return the application of a model, which translates for as long as it lives.

    A request may state another search than ``search``, within the bounds of ``settings``; a
    UserError says that ``search`` itself exceeds them, or asks for attention that no model has.
    """
    check_search(search, settings)

    def translate(texts: list[str], options: RequestOptions) -> list[Translation]:
        chosen = options.search.model_dump(exclude=OF_A_MODEL)
        return translator.translate(
            texts, n_best=options.n_best, attention=options.attention, **chosen
        )

    translate([], RequestOptions(search, 1, False))  # what no request could have is refused now
    batches = Batches(translate, search.batch_sentences, settings.most_waiting)

    @asynccontextmanager
    async def translating(_: Starlette) -> AsyncIterator[None]:
        running = asyncio.create_task(batches.run())
        yield
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running

    handlers = _Handlers(translator, search, settings, batches)
    routes = [
        Route("/", handlers.checked(handlers.page)),
        Route("/health", handlers.checked(handlers.health)),
        Route("/translate", handlers.checked(handlers.translate), methods=["POST"]),
    ]
    return Starlette(
        routes=routes, lifespan=translating, exception_handlers={HTTPException: _http_fault}
    )


class _Handlers:
    """What answers each address."""

    def __init__(
        self,
        translator: Translator,
        search: DecodingSettings,
        settings: ServerSettings,
        batches: Batches,
    ) -> None:
        self._search, self._settings, self._batches = search, settings, batches
        languages = translator.languages
        self._model = {"name": repr(translator), **languages}
        shown = {
            **{**settings.model_dump(), **search.model_dump(), **languages},
            "title": f"convs2s: {languages['source']} to {languages['target']}",
            "attention": "checked" if translator.attends else "disabled",
        }
        self._page, self._policy = served_page(shown)

    def checked(self, handler: Handler) -> Handler:
        """Return a handler that answers only requests to this server's own name, faults as JSON."""

        async def answer(request: Request) -> Response:
            """Give the handler's answer, or say what is wrong."""
            try:
                host = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
            except ValueError:  # such as "[::1" without its end
                host = ""
            # A page from elsewhere may have a name that leads here (DNS rebinding).
            if is_loopback(self._settings.host) and not is_loopback(host):
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
        headers = {**HEADERS, "Content-Security-Policy": self._policy}
        return Response(self._page, media_type="text/html; charset=utf-8", headers=headers)

    async def health(self, _: Request) -> Response:
        """Say that the server lives, how many sentences wait, and what it takes."""
        bounds = self._settings.model_dump(exclude={"host", "port"})
        waiting = self._batches.waiting
        content = {"status": "ok", "waiting": waiting, "model": self._model, "bounds": bounds}
        return JSONResponse(content, headers=HEADERS)

    async def translate(self, request: Request) -> Response:
        """Translate what a request asks, together with others."""
        settings = self._settings
        # Browsers send another site's form or text without asking, JSON never.
        if request.headers.get("content-type", "").partition(";")[0] != "application/json":
            return _fault(NOT_JSON, "request: expected the header Content-Type: application/json")
        try:
            async with asyncio.timeout(settings.request_seconds):
                body = await read_body(request.stream(), settings.largest_body)
        except TimeoutError:
            message = f"request: not complete within {settings.request_seconds:g} s"
            return _fault(SLOW, message, {"Connection": "close"})
        checked = parse_request(body, settings, self._search)
        try:
            translations = await _await_translations(request, self._batches, checked)
        except BusyError:
            raise
        except UserError as error:  # of the model: the request has been checked
            return _fault(FAULT, str(error))
        rows = []
        for translation in translations:
            row = translation.as_json()
            del row["line"]
            if translation.attention is not None:
                row["attention"] = translation.attention.as_json()
            rows.append(row)
        return JSONResponse({"translations": rows}, headers=HEADERS)


async def _await_translations(
    request: Request, batches: Batches, checked: CheckedRequest
) -> list[Translation]:
    """Wait for translations, or for the client to close the connection, which ends the work."""

    async def leaving() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    translated = asyncio.create_task(batches.translate(*checked))
    left = asyncio.create_task(leaving())
    try:
        await asyncio.wait({translated, left}, return_when=asyncio.FIRST_COMPLETED)
        if not translated.done():
            raise ClientDisconnect
        return translated.result()
    finally:
        translated.cancel()
        left.cancel()


def _fault(status: int, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": message}, status, headers={**HEADERS, **(headers or {})})


def _http_fault(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _fault(error.status_code, error.detail, dict(error.headers or {}))


def served_page(shown: Mapping[str, object]) -> tuple[bytes, str]:
    """Return the page, which fetches nothing else, and its Content-Security-Policy.

    The policy lets the page run and show what it holds, and ask its server. ``shown`` are the
    values of the page's places, by name; they are escaped.
    """
    style = asset("attention_view.css") + asset("serve.css")
    program = asset("attention_view.js") + asset("serve.js")
    content = render_page("serve.html.j2", shown, programs=[program], styles=[style])
    policy = (
        f"default-src 'none'; script-src '{Program.of(program).digest}'; "
        f"style-src '{policy_digest(style)}'; "
        "img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
    return content.encode(), policy
