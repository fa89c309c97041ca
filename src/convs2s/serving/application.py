"""The server's answers: a page, its state, translations; every fault is a line of JSON."""

import asyncio
import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from convs2s.api.translator import OF_A_MODEL, Translator
from convs2s.config.decoding import DecodingSettings
from convs2s.decoding.split_lines import SplitLines
from convs2s.decoding.translate import Translation
from convs2s.errors import UserError
from convs2s.pages.render import Program, asset, policy_digest, render_page
from convs2s.serving import libretranslate
from convs2s.serving.metrics import Metrics
from convs2s.serving.openapi import openapi
from convs2s.serving.requests import (
    Batches,
    BusyError,
    CheckedRequest,
    RequestOptions,
    TooLargeError,
    check_request,
    check_search,
    read_body,
    read_json,
)
from convs2s.serving.settings import ServerSettings, is_loopback

BAD, FORBIDDEN_HOST, SLOW, TOO_LARGE, NOT_JSON, FAULT, BUSY = 400, 421, 408, 413, 415, 500, 503

GONE = 499  # noted where the client has closed the connection; nobody reads it

FORM = "application/x-www-form-urlencoded"

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
    answers = {
        "/": handlers.page,
        "/health": handlers.health,
        "/metrics": handlers.metrics,
        "/openapi.json": handlers.openapi,
        "/languages": handlers.languages,
        "/translate": handlers.translate,
    }
    routes = [
        Route(path, handlers.checked(path, answer), methods=["POST" if "trans" in path else "GET"])
        for path, answer in answers.items()
    ]
    cors = Middleware(
        CORSMiddleware,
        allow_origins=[settings.allow_origin],
        allow_methods=["GET", "POST"],
        allow_headers=["Content-Type"],
    )
    return Starlette(
        routes=routes,
        middleware=[cors] if settings.allow_origin else [],
        lifespan=translating,
        exception_handlers={HTTPException: handlers.http_fault},
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
        self._metrics = Metrics(lambda: batches.waiting)
        self._languages = languages = translator.languages
        self._model = {"name": repr(translator), **languages}
        shown = {
            **{**settings.model_dump(), **search.model_dump(), **languages},
            "title": f"convs2s: {languages['source']} to {languages['target']}",
            "attention": "checked" if translator.attends else "disabled",
        }
        self._page, self._policy = served_page(shown)

    def checked(self, path: str, handler: Handler) -> Handler:
        """Return a handler that answers only requests to this server's own name, faults as JSON."""

        async def counted(request: Request) -> Response:
            with self._metrics.seconds.labels(path).time():
                response = await answer(request)
            self._metrics.requests.labels(path, str(response.status_code)).inc()
            return response

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

        return counted

    async def page(self, _: Request) -> Response:
        """Give the page."""
        headers = {**HEADERS, "Content-Security-Policy": self._policy}
        return Response(self._page, media_type="text/html; charset=utf-8", headers=headers)

    async def health(self, _: Request) -> Response:
        """Say that the server lives, how many sentences wait, and what it takes."""
        bounds = self._settings.model_dump(exclude={"host", "port", "allow_origin"})
        waiting = self._batches.waiting
        content = {"status": "ok", "waiting": waiting, "model": self._model, "bounds": bounds}
        return JSONResponse(content, headers=HEADERS)

    async def metrics(self, _: Request) -> Response:
        """Give the counts, for Prometheus."""
        content = generate_latest(self._metrics.registry)
        return Response(content, media_type=CONTENT_TYPE_LATEST, headers=HEADERS)

    async def openapi(self, _: Request) -> Response:
        """Describe what can be asked."""
        return JSONResponse(openapi(self._settings, self._search), headers=HEADERS)

    async def languages(self, _: Request) -> Response:
        """List the one language that can be translated, as LibreTranslate does."""
        source, target = self._languages["source"], self._languages["target"]
        row = {"code": source, "name": source, "targets": [target]}
        return JSONResponse([row], headers=HEADERS)

    async def translate(self, request: Request) -> Response:
        """Translate what a request asks, together with others."""
        settings, headers = self._settings, request.headers
        kind = headers.get("content-type", "").partition(";")[0]
        # Browsers send another site's form or text without asking, JSON never; they say so.
        is_form = kind == FORM and not {"origin", "sec-fetch-site"} & set(headers)
        if kind != "application/json" and not is_form:
            return _fault(NOT_JSON, "request: expected the header Content-Type: application/json")
        try:
            async with asyncio.timeout(settings.request_seconds):
                body = await read_body(request.stream(), settings.largest_body)
        except TimeoutError:
            message = f"request: not complete within {settings.request_seconds:g} s"
            return _fault(SLOW, message, {"Connection": "close"})
        stated = libretranslate.read_form(body) if is_form else read_json(body)
        asked = None
        if libretranslate.KEYS & stated.keys():
            asked = libretranslate.read_request(stated, self._languages)
            stated = asked.as_own(self._search.beam)
        checked = check_request(stated, settings, self._search)
        try:
            translations = await self._translations(request, checked)
        except (BusyError, TooLargeError):
            raise
        except UserError as error:  # of the model: the request has been checked
            return _fault(FAULT, str(error))
        if asked:
            return JSONResponse(asked.answer(translations), headers=HEADERS)
        rows = []
        for translation in translations:
            row = translation.as_json()
            del row["line"]
            if translation.attention is not None:
                row["attention"] = translation.attention.as_json()
            rows.append(row)
        return JSONResponse({"translations": rows}, headers=HEADERS)

    async def _translations(self, request: Request, checked: CheckedRequest) -> list[Translation]:
        """Wait for the translations of texts, split into sentences where that is wanted."""
        lines = list(enumerate(checked.texts, start=1))
        split = SplitLines(lines, self._languages["source"]) if checked.splits else None
        sentences = [sentence for _, sentence in (split.sentences if split else lines)]
        most = self._settings.most_waiting
        if len(sentences) > most:
            raise TooLargeError(
                f"request: {len(sentences)} sentences, and {most} is the most: send them in "
                "several requests"
            )
        work = self._batches.translate(sentences, checked.options)
        translations = await _unless_left(request, work)
        self._metrics.sentences.inc(len(sentences))
        return split.joined(translations) if split else translations

    async def http_fault(self, _: Request, error: Exception) -> Response:
        """Say that there is no such address or method."""
        assert isinstance(error, HTTPException)
        self._metrics.requests.labels("other", str(error.status_code)).inc()
        return _fault(error.status_code, error.detail, dict(error.headers or {}))


async def _unless_left(
    request: Request, work: Coroutine[None, None, list[Translation]]
) -> list[Translation]:
    """Wait for translations, or for the client to close the connection, which ends the work."""

    async def leaving() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    translated = asyncio.create_task(work)
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
