"""The server's answers: a page, its state, translations; its own faults are lines of JSON."""

import asyncio
import sys
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from urllib.parse import urlsplit

import prometheus_client as prometheus
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from convs2s.api.translator import OF_A_MODEL, Translator
from convs2s.config.decoding import DecodingSettings
from convs2s.config.messages import validated
from convs2s.decoding.split_lines import SplitLines
from convs2s.decoding.translate import Translation
from convs2s.errors import UserError
from convs2s.pages.render import asset, policy_digest, render_page, script
from convs2s.serving.libretranslate import KEYS, LibreTranslateRequest, read_form
from convs2s.serving.requests import (
    Batches,
    RefusedError,
    RequestOptions,
    check_request,
    check_search,
    read_body,
    read_json,
)
from convs2s.serving.settings import ServerSettings, is_loopback

GONE = 499  # noted where the client has closed the connection; nobody reads it

FORM = "application/x-www-form-urlencoded"
HTML = "text/html; charset=utf-8"

HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}

Handler = Callable[[Request], Awaitable[Response]]


def application(
    translator: Translator,
    search: DecodingSettings,
    settings: ServerSettings,
) -> Starlette:
    """Return the application of a model, which translates for as long as it lives.

    A request may state another search than ``search``, within the bounds of ``settings``.

    Raises:
        UserError: ``search`` itself exceeds them, or asks for attention that no model has.
    """
    check_search(search, settings)

    # What no request could have is refused now.
    translator.translate([], **search.model_dump(exclude=OF_A_MODEL))
    batches = Batches(translator.translate, search.batch_sentences, settings.most_waiting)

    @asynccontextmanager
    async def translating(_: Starlette) -> AsyncIterator[None]:
        running = asyncio.create_task(batches.run())
        yield
        running.cancel()

    handlers = _Handlers(translator, search, settings, batches)
    app = Starlette(
        routes=handlers.routes(),
        lifespan=translating,
        exception_handlers={HTTPException: handlers.unrouted},
    )
    if settings.allow_origin:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=[settings.allow_origin],
            allow_methods=["GET", "POST"],
            allow_headers=["Content-Type"],
        )
    return app


class _Handlers:
    def __init__(
        self,
        translator: Translator,
        search: DecodingSettings,
        settings: ServerSettings,
        batches: Batches,
    ) -> None:
        self._translator = translator
        self._search = search
        self._settings = settings
        self._batches = batches
        self._languages = translator.languages
        self._registry = prometheus.CollectorRegistry()
        counter = partial(prometheus.Counter, registry=self._registry)
        self._requests = counter("convs2s_requests", "Requests answered", ("endpoint", "status"))
        self._seconds = counter("convs2s_request_seconds", "Seconds to the answers", ("endpoint",))
        self._sentences = counter("convs2s_sentences", "Sentences translated")
        waiting = prometheus.Gauge("convs2s_waiting", "Sentences waiting", registry=self._registry)
        waiting.set_function(lambda: batches.waiting)

    def routes(self) -> list[Route]:
        """Return what answers at which address, by which method."""
        source = self._languages["source"]
        target = self._languages["target"]
        shown = {
            **self._settings.model_dump(),
            **self._search.model_dump(),
            **self._languages,
            "title": f"convs2s: {source} to {target}",
            "attention": "checked" if self._translator.attends else "disabled",
        }
        style = asset("attention_view.css") + asset("serve.css")
        program = asset("attention_view.js") + asset("serve.js")
        content = render_page("serve.html.j2", shown, programs=[program], styles=[style])
        # The page may run and show what it holds, and ask its server; it fetches nothing else.
        policy = (
            f"default-src 'none'; script-src '{policy_digest(script(program))}'; "
            f"style-src '{policy_digest(style)}'; "
            "img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
            "frame-ancestors 'none'"
        )
        languages = [{"code": source, "name": source, "targets": [target]}]
        answers: dict[str, Response | Handler] = {
            "/": Response(content, headers={"Content-Security-Policy": policy}, media_type=HTML),
            "/openapi.json": Response(asset("openapi.json"), media_type="application/json"),
            "/languages": JSONResponse(languages),
            "/health": self.health,
            "/metrics": self.metrics,
            "/translate": self.translate,
        }
        self._paths = set(answers)
        return [self._route(path, handler) for path, handler in answers.items()]

    def _route(
        self,
        path: str,
        handler: Response | Handler,
    ) -> Route:
        """Return a route that is counted."""

        async def counted(request: Request) -> Response:
            started = time.monotonic()
            response = await self._answer(request, handler)
            response.headers.update(HEADERS)
            self._seconds.labels(path).inc(time.monotonic() - started)
            self._requests.labels(path, response.status_code).inc()
            return response

        return Route(path, counted, methods=["POST" if path == "/translate" else "GET"])

    async def _answer(
        self,
        request: Request,
        handler: Response | Handler,
    ) -> Response:
        """Give a handler's answer to a request to this server's own name; faults are JSON."""
        try:
            host = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
        except ValueError:  # such as "[::1" without its end
            host = ""
        # A page from elsewhere may have a name that leads here (DNS rebinding).
        if is_loopback(self._settings.host) and not is_loopback(host):
            return _fault(
                421,
                f"Host: {host[:60]!r}: this server answers on this machine alone: ask for "
                "127.0.0.1, or have your proxy send Host: 127.0.0.1",
            )
        if isinstance(handler, Response):
            return handler
        try:
            return await handler(request)
        except RefusedError as error:
            return _fault(error.status, str(error))
        except UserError as error:
            return _fault(400, str(error))
        except ClientDisconnect:
            return Response(status_code=GONE)
        except asyncio.CancelledError:  # uvicorn, once stop_seconds are over
            return _fault(503, "the server stops before it is done: ask again later")
        except Exception:
            traceback.print_exc(file=sys.stderr)
            return _fault(500, "a fault of the server: its log says more")

    async def health(self, _: Request) -> Response:
        """Say that the server lives, how many sentences wait, and what it takes."""
        bounds = self._settings.model_dump(exclude={"host", "port", "allow_origin"})
        return JSONResponse(
            {
                "status": "ok",
                "waiting": self._batches.waiting,
                "model": {"name": repr(self._translator), **self._languages},
                "bounds": bounds,
            }
        )

    async def metrics(self, _: Request) -> Response:
        content = prometheus.generate_latest(self._registry)
        return Response(content, media_type=prometheus.CONTENT_TYPE_LATEST)

    def unrouted(
        self,
        request: Request,
        error: Exception,
    ) -> Response:
        """Say that there is no such address, or that it has no such method, which counts."""
        assert isinstance(error, HTTPException)
        path = request.scope["path"]
        if path in self._paths:
            self._requests.labels(path, error.status_code).inc()
        headers = {**HEADERS, **(error.headers or {})}
        return _fault(error.status_code, error.detail, headers)

    async def translate(self, request: Request) -> Response:
        """Translate what a request asks, together with others."""
        query: bytes = request.scope["query_string"]  # where some clients have their form
        headers = request.headers
        stated_kind = headers.get("content-type", FORM if query else "")
        kind = stated_kind.partition(";")[0].strip().lower()
        # Browsers send another site's form or text without asking, JSON never; they say so.
        is_form = kind == FORM and not {"origin", "sec-fetch-site"} & set(headers)
        if kind != "application/json" and not is_form:
            return _fault(415, "request: expected the header Content-Type: application/json")
        settings = self._settings
        most = 6 * settings.longest_text * settings.most_texts + 4096  # JSON: a byte may be six
        try:
            async with asyncio.timeout(settings.request_seconds):
                body = await read_body(request.stream(), most)
        except TimeoutError:
            message = f"request: not complete within {settings.request_seconds:g} s"
            return _fault(408, message, {"Connection": "close"})
        stated = read_form(body or query) if is_form else read_json(body)
        as_libretranslate = None
        if KEYS & stated.keys():
            as_libretranslate = validated(LibreTranslateRequest, stated, "request")
            stated = as_libretranslate.as_own(self._languages, self._search.most_n_best)
        lines, options = check_request(stated, settings, self._search, self._languages["source"])
        if options["attention"] and not self._translator.attends:
            raise UserError("request: attention: no model here has any: leave it out")
        try:
            translations = await _await_translations(request, self._batches, lines, options)
        except RefusedError:
            raise
        except UserError as error:  # of the model: the request has been checked
            print(f"convs2s serve: {error}", file=sys.stderr)
            return _fault(500, str(error))
        self._sentences.inc(len(lines.sentences))
        if as_libretranslate:
            return JSONResponse(as_libretranslate.answer(translations))
        rows = []
        for translation in translations:
            row = translation.as_json()
            del row["line"]
            if translation.attention is not None:
                row["attention"] = translation.attention.as_json()
            rows.append(row)
        return JSONResponse({"translations": rows})


async def _await_translations(
    request: Request,
    batches: Batches,
    lines: SplitLines,
    options: RequestOptions,
) -> list[Translation]:
    """Wait for translations, or for the client to leave, whose place in the queue is free then."""

    async def leaving() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    texts = [sentence for _, sentence in lines.sentences]
    translated = asyncio.create_task(batches.translate(texts, options))
    left = asyncio.create_task(leaving())
    try:
        await asyncio.wait({translated, left}, return_when=asyncio.FIRST_COMPLETED)
        if not translated.done():
            raise ClientDisconnect
        return lines.joined(translated.result())
    finally:
        translated.cancel()
        left.cancel()


def _fault(
    status: int,
    message: str,
    headers: dict[str, str] | None = None,
) -> JSONResponse:
    return JSONResponse({"error": message}, status, headers)
