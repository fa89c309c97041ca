"""The server's answers: a page, its state, translations; its own faults are lines of JSON."""

import asyncio
import sys
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
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
    BusyError,
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

FORM, HTML = "application/x-www-form-urlencoded", "text/html; charset=utf-8"

HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}

METHODS = {"/translate": "POST"}
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

    def translate(texts: list[str], asked: RequestOptions) -> list[Translation]:
        search = asked.search.model_dump(exclude=OF_A_MODEL)
        return translator.translate(texts, n_best=asked.n_best, attention=asked.attention, **search)

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
        Route(path, handlers.checked(path, answer), methods=[METHODS.get(path, "GET")])
        for path, answer in handlers.answers.items()
    ]
    app = Starlette(
        routes=routes, lifespan=translating, exception_handlers={HTTPException: handlers.unrouted}
    )
    if settings.allow_origin:
        allowed = [settings.allow_origin], ["GET", "POST"], ["Content-Type"]
        app.add_middleware(CORSMiddleware, *allowed)
    return app


class _Handlers:
    def __init__(
        self,
        translator: Translator,
        search: DecodingSettings,
        settings: ServerSettings,
        batches: Batches,
    ) -> None:
        self._search, self._settings, self._batches = search, settings, batches
        self._languages = languages = translator.languages
        self._attends = translator.attends
        self._model = {"name": repr(translator), **languages}
        shown = {
            **{**settings.model_dump(), **search.model_dump(), **languages},
            "title": f"convs2s: {languages['source']} to {languages['target']}",
            "attention": "checked" if self._attends else "disabled",
        }
        page, policy = served_page(shown)
        source = {"code": languages["source"], "name": languages["source"]}
        self.answers: dict[str, Response | Handler] = {
            "/": Response(page, headers={"Content-Security-Policy": policy}, media_type=HTML),
            "/openapi.json": Response(asset("openapi.json"), media_type="application/json"),
            "/languages": JSONResponse([{**source, "targets": [languages["target"]]}]),
            "/health": self.health,
            "/metrics": self.metrics,
            "/translate": self.translate,
        }
        self._registry = prometheus.CollectorRegistry()
        make, labels = partial(prometheus.Counter, registry=self._registry), ("endpoint", "status")
        self._requests = make("convs2s_requests", "Requests answered", labels)
        self._seconds = make("convs2s_request_seconds", "Seconds to the answers", labels[:1])
        self._sentences = make("convs2s_sentences", "Sentences translated")
        waiting = prometheus.Gauge("convs2s_waiting", "Sentences waiting", registry=self._registry)
        waiting.set_function(lambda: batches.waiting)

    def checked(self, path: str, handler: Response | Handler) -> Handler:
        """Return a handler that answers only requests to this server's own name, faults as JSON."""

        async def counted(request: Request) -> Response:
            started = time.monotonic()
            response = await answer(request)
            response.headers.update(HEADERS)
            self._seconds.labels(path).inc(time.monotonic() - started)
            self._requests.labels(path, str(response.status_code)).inc()
            return response

        async def answer(request: Request) -> Response:
            """Give the handler's answer, or say what is wrong."""
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
            try:
                return handler if isinstance(handler, Response) else await handler(request)
            except UserError as error:
                return _fault(STATUSES.get(type(error), BAD), str(error))
            except ClientDisconnect:
                return Response(status_code=GONE)
            except asyncio.CancelledError:  # uvicorn, once stop_seconds are over
                return _fault(BUSY, "the server stops before it is done: ask again later")
            except Exception:
                traceback.print_exc(file=sys.stderr)
                return _fault(FAULT, "a fault of the server: its log says more")

        return counted

    async def health(self, _: Request) -> Response:
        """Say that the server lives, how many sentences wait, and what it takes."""
        bounds = self._settings.model_dump(exclude={"host", "port", "allow_origin"})
        waiting = self._batches.waiting
        content = {"status": "ok", "waiting": waiting, "model": self._model, "bounds": bounds}
        return JSONResponse(content)

    async def metrics(self, _: Request) -> Response:
        content = prometheus.generate_latest(self._registry)
        return Response(content, media_type=prometheus.CONTENT_TYPE_LATEST)

    def unrouted(self, request: Request, error: Exception) -> Response:
        """Say that there is no such address, or that it has no such method, which counts."""
        assert isinstance(error, HTTPException)
        if request.scope["path"] in self.answers:
            self._requests.labels(request.scope["path"], str(error.status_code)).inc()
        return _fault(error.status_code, error.detail, {**HEADERS, **(error.headers or {})})

    async def translate(self, request: Request) -> Response:
        """Translate what a request asks, together with others."""
        settings, headers = self._settings, request.headers
        query: bytes = request.scope["query_string"]  # where some clients have their form
        kind = headers.get("content-type", FORM if query else "").partition(";")[0].strip().lower()
        # Browsers send another site's form or text without asking, JSON never; they say so.
        is_form = kind == FORM and not {"origin", "sec-fetch-site"} & set(headers)
        if kind != "application/json" and not is_form:
            return _fault(NOT_JSON, "request: expected the header Content-Type: application/json")
        most = 6 * settings.longest_text * settings.most_texts + 4096  # JSON: a byte may be six
        try:
            async with asyncio.timeout(settings.request_seconds):
                body = await read_body(request.stream(), most)
        except TimeoutError:
            message = f"request: not complete within {settings.request_seconds:g} s"
            return _fault(SLOW, message, {"Connection": "close"})
        stated, asked = read_form(body or query) if is_form else read_json(body), None
        if KEYS & stated.keys():
            asked = validated(LibreTranslateRequest, stated, "request")
            stated = asked.as_own(self._languages, self._search.most_n_best)
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
        if asked:
            return JSONResponse(asked.answer(translations))
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
