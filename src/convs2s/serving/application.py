"""The server's answers: a page, its state, translations; its own faults are lines of JSON."""

import asyncio
import sys
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
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
    BusyError,
    RequestOptions,
    TooLargeError,
    check_request,
    check_search,
    read_body,
    read_json,
)
from convs2s.serving.settings import ServerSettings, is_loopback

BAD = HTTPStatus.BAD_REQUEST
SLOW = HTTPStatus.REQUEST_TIMEOUT
TOO_LARGE = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
NOT_JSON = HTTPStatus.UNSUPPORTED_MEDIA_TYPE
FORBIDDEN_HOST = HTTPStatus.MISDIRECTED_REQUEST
FAULT = HTTPStatus.INTERNAL_SERVER_ERROR
BUSY = HTTPStatus.SERVICE_UNAVAILABLE
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
    translator: Translator, search: DecodingSettings, settings: ServerSettings
) -> Starlette:
    """Return the application of a model, which translates for as long as it lives.

    A request may state another search than ``search``, within the bounds of ``settings``.

    Raises:
        UserError: ``search`` itself exceeds them, or asks for attention that no model has.
    """
    check_search(search, settings)

    def translate(texts: list[str], asked: RequestOptions) -> list[Translation]:
        search = asked.search.model_dump(exclude=OF_A_MODEL)
        return translator.translate(
            texts,
            n_best=asked.n_best,
            attention=asked.attention,
            **search,
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
        self._search = search
        self._settings = settings
        self._batches = batches
        self._languages = translator.languages
        self._attends = translator.attends
        self._model = {"name": repr(translator), **self._languages}
        self._paths: set[str] = set()
        self._registry = prometheus.CollectorRegistry()
        self._requests = prometheus.Counter(
            "convs2s_requests",
            "Requests answered",
            ("endpoint", "status"),
            registry=self._registry,
        )
        self._seconds = prometheus.Counter(
            "convs2s_request_seconds",
            "Seconds to the answers",
            ("endpoint",),
            registry=self._registry,
        )
        self._sentences = prometheus.Counter(
            "convs2s_sentences", "Sentences translated", registry=self._registry
        )
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
            "attention": "checked" if self._attends else "disabled",
        }
        content, policy = served_page(shown)
        page = Response(content, headers={"Content-Security-Policy": policy}, media_type=HTML)
        openapi = Response(asset("openapi.json"), media_type="application/json")
        languages = JSONResponse([{"code": source, "name": source, "targets": [target]}])
        return [
            self._route("/", page),
            self._route("/openapi.json", openapi),
            self._route("/languages", languages),
            self._route("/health", self.health),
            self._route("/metrics", self.metrics),
            self._route("/translate", self.translate, method="POST"),
        ]

    def _route(self, path: str, handler: Response | Handler, method: str = "GET") -> Route:
        """Return a route that is counted."""
        self._paths.add(path)

        async def counted(request: Request) -> Response:
            started = time.monotonic()
            response = await self._answer(request, handler)
            response.headers.update(HEADERS)
            self._seconds.labels(path).inc(time.monotonic() - started)
            self._count(path, response.status_code)
            return response

        return Route(path, counted, methods=[method])

    def _count(self, path: str, status: int) -> None:
        self._requests.labels(path, str(status)).inc()

    async def _answer(self, request: Request, handler: Response | Handler) -> Response:
        """Give a handler's answer to a request to this server's own name; faults are JSON."""
        try:
            host = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
        except ValueError:  # such as "[::1" without its end
            host = ""
        # A page from elsewhere may have a name that leads here (DNS rebinding).
        if is_loopback(self._settings.host) and not is_loopback(host):
            return _fault(
                FORBIDDEN_HOST,
                f"Host: {host[:60]!r}: this server answers on this machine alone: ask for "
                "127.0.0.1, or have your proxy send Host: 127.0.0.1",
            )
        if isinstance(handler, Response):
            return handler
        try:
            return await handler(request)
        except BusyError as error:
            return _fault(BUSY, str(error))
        except TooLargeError as error:
            return _fault(TOO_LARGE, str(error))
        except UserError as error:
            return _fault(BAD, str(error))
        except ClientDisconnect:
            return Response(status_code=GONE)
        except asyncio.CancelledError:  # uvicorn, once stop_seconds are over
            return _fault(BUSY, "the server stops before it is done: ask again later")
        except Exception:
            traceback.print_exc(file=sys.stderr)
            return _fault(FAULT, "a fault of the server: its log says more")

    async def health(self, _: Request) -> Response:
        """Say that the server lives, how many sentences wait, and what it takes."""
        bounds = self._settings.model_dump(exclude={"host", "port", "allow_origin"})
        return JSONResponse(
            {
                "status": "ok",
                "waiting": self._batches.waiting,
                "model": self._model,
                "bounds": bounds,
            }
        )

    async def metrics(self, _: Request) -> Response:
        content = prometheus.generate_latest(self._registry)
        return Response(content, media_type=prometheus.CONTENT_TYPE_LATEST)

    def unrouted(self, request: Request, error: Exception) -> Response:
        """Say that there is no such address, or that it has no such method, which counts."""
        assert isinstance(error, HTTPException)
        path = request.scope["path"]
        if path in self._paths:
            self._count(path, error.status_code)
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
            return _fault(NOT_JSON, "request: expected the header Content-Type: application/json")
        settings = self._settings
        most = 6 * settings.longest_text * settings.most_texts + 4096  # JSON: a byte may be six
        try:
            async with asyncio.timeout(settings.request_seconds):
                body = await read_body(request.stream(), most)
        except TimeoutError:
            message = f"request: not complete within {settings.request_seconds:g} s"
            return _fault(SLOW, message, {"Connection": "close"})
        stated = read_form(body or query) if is_form else read_json(body)
        as_libretranslate = None
        if KEYS & stated.keys():
            as_libretranslate = validated(LibreTranslateRequest, stated, "request")
            stated = as_libretranslate.as_own(self._languages, self._search.most_n_best)
        lines, options = check_request(stated, settings, self._search, self._languages["source"])
        if options.attention and not self._attends:
            raise UserError("request: attention: no model here has any: leave it out")
        try:
            translations = await _await_translations(request, self._batches, lines, options)
        except BusyError:
            raise
        except UserError as error:  # of the model: the request has been checked
            print(f"convs2s serve: {error}", file=sys.stderr)
            return _fault(FAULT, str(error))
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
    request: Request, batches: Batches, lines: SplitLines, options: RequestOptions
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


def _fault(status: int, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": message}, status, headers)


def served_page(shown: Mapping[str, object]) -> tuple[bytes, str]:
    """Return the page, which fetches nothing else, and its Content-Security-Policy.

    The policy lets the page run and show what it holds, and ask its server. ``shown`` are the
    values of the page's places, by name; they are escaped.
    """
    style = asset("attention_view.css") + asset("serve.css")
    program = asset("attention_view.js") + asset("serve.js")
    content = render_page("serve.html.j2", shown, programs=[program], styles=[style])
    policy = (
        f"default-src 'none'; script-src '{policy_digest(script(program))}'; "
        f"style-src '{policy_digest(style)}'; "
        "img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
    return content.encode(), policy
