"""The HTTP endpoints of the server: its page, its state, its metrics and the translations.

The answer to a refused or failed request is one line of JSON, ``{"error": "..."}``.
"""

import asyncio
import secrets
import sys
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from mimetypes import guess_type
from typing import TypeVar
from urllib.parse import urlsplit

import prometheus_client as prometheus
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from convs2s.api.translator import OF_A_MODEL
from convs2s.config.decoding import DecodingSettings
from convs2s.config.messages import validated
from convs2s.decoding.translate import Translation
from convs2s.documents.passages import parts_warning
from convs2s.errors import UserError
from convs2s.pages.render import asset
from convs2s.serving.batches import Batches
from convs2s.serving.libretranslate import (
    FORM,
    FORMS,
    KEYS,
    DetectRequest,
    LibreTranslateRequest,
    check_file,
    frontend_settings,
    read_form,
)
from convs2s.serving.models import Models, translate_tokens
from convs2s.serving.page import server_page
from convs2s.serving.requests import (
    BusyError,
    CheckedRequest,
    LateError,
    MediaTypeError,
    ModelError,
    RefusedError,
    Sentence,
    check_request,
    check_search,
    check_work,
    read_body,
    read_json,
)
from convs2s.serving.settings import ServerSettings, is_loopback

GONE = 499
"""Status in the metrics of a request whose client closed the connection before the answer."""

AT_ONCE_BYTES = 1024
"""Maximum number of bytes of a request that the event loop processes itself.

Another thread processes larger requests, because splitting a text of 2,000 bytes into tokens can
take a tenth of a second, during which the event loop would answer nobody. Processing a smaller
request takes less time than switching to another thread.
"""

LARGE_BYTES = 64 << 10
LARGE_AT_ONCE = 32
"""Maximum number of requests of more than ``LARGE_BYTES`` that are read at the same time.

Further large requests wait. Otherwise each open connection could fill memory with a large request.
"""

MOST_FILES = 32
"""Maximum number of translated documents that are kept in memory; the oldest is removed first."""

DOWNLOAD = "/download_file/{name}"
"""The path of a translated document, as Starlette writes a path with a parameter."""

HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}

Handler = Callable[[Request], Awaitable[Response]]

Returned = TypeVar("Returned")


def application(
    models: Models,
    search: DecodingSettings,
    settings: ServerSettings,
    connections: Collection[object],
) -> Starlette:
    """Return the web application that translates requests with models.

    ``search`` contains the default search settings. A request may state other values, within the
    limits of ``settings``. Requests are translated during the application's lifespan.
    ``connections`` is the server's collection of the connections that are open at the moment.

    Raises:
        UserError: ``search`` exceeds the limits, or needs attention but a model has none.
    """
    check_search(search, settings)
    for translator in models.translators:
        # Translating an empty list checks the search settings now, before the first request.
        translator.translate([], **search.model_dump(exclude=OF_A_MODEL))
    handlers = _Handlers(models, search, settings, connections)
    app = Starlette(
        routes=list(map(handlers.route, handlers.answers)),
        lifespan=handlers.translating,
        exception_handlers={HTTPException: handlers.unrouted},
    )
    if settings.allow_origin:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=[settings.allow_origin],
            allow_methods=["GET", "POST"],
            allow_headers=["Content-Type"],
        )
    app.add_middleware(_refusing_ambiguous_bodies)
    return app


def _refusing_ambiguous_bodies(app: ASGIApp) -> ASGIApp:
    """Return ``app`` behind a check that refuses requests whose body could end at two places.

    This server and a proxy before it could take different places for the end. One of them would
    then read a part of the body as a further request (request smuggling, RFC 9112, section 6.3).
    """

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 400 to such a request and close its connection; pass all others to ``app``."""
        names = {name for name, _ in scope.get("headers", ())}
        # HTTP/1.0 has no Transfer-Encoding, so a proxy may ignore this header there.
        is_ambiguous = b"transfer-encoding" in names and (
            b"content-length" in names or scope["http_version"] == "1.0"
        )
        answer = app
        if is_ambiguous:
            # Starlette's responses can be called like an application.
            answer = _fault(
                400,
                "request: has Transfer-Encoding together with Content-Length, or in HTTP/1.0: "
                "state only Content-Length",
                {**HEADERS, "Connection": "close"},
            )
        await answer(scope, receive, send)

    return checked


class _Handlers:
    """The answers to requests by path, with the queue and the metrics that they share."""

    def __init__(
        self,
        models: Models,
        search: DecodingSettings,
        settings: ServerSettings,
        connections: Collection[object],
    ) -> None:
        self._models = models
        self._search = search
        self._settings = settings
        self._batches = Batches(
            translate_tokens,
            search.batch_sentences,
            settings.most_waiting,
            clients=partial(len, connections),
        )
        # The thread that processes requests of more than `AT_ONCE_BYTES` (`_call`).
        self._reader = ThreadPoolExecutor(1, "read")
        self._large_requests = asyncio.Semaphore(LARGE_AT_ONCE)
        # Name of a translated document (`DOWNLOAD`) -> its content.
        self._files: dict[str, bytes] = {}
        self._registry = prometheus.CollectorRegistry()
        counter = partial(prometheus.Counter, registry=self._registry)
        self._requests = counter(
            "convs2s_requests", "Requests answered", ("endpoint", "status")
        )
        self._seconds = counter(
            "convs2s_request_seconds",
            "Seconds from the requests to their answers",
            ("endpoint",),
        )
        self._sentences = counter("convs2s_sentences", "Sentences translated")
        waiting = prometheus.Gauge(
            "convs2s_waiting", "Sentences waiting", registry=self._registry
        )
        waiting.set_function(lambda: self._batches.waiting)
        # For each path, its constant answer or the function that answers.
        self.answers: dict[str, Response | Handler] = {
            "/": server_page(models, search, settings),
            "/openapi.json": Response(
                asset("openapi.json"), media_type="application/json"
            ),
            "/languages": JSONResponse(models.languages()),
            "/frontend/settings": JSONResponse(frontend_settings(models, settings)),
            "/health": self.health,
            "/metrics": self.metrics,
            "/translate": self.translate,
            "/translate_file": self.translate_file,
            DOWNLOAD: self.download_file,
            "/detect": self.detect,
        }

    @asynccontextmanager
    async def translating(self, _: Starlette) -> AsyncIterator[None]:
        """Translate the requests in the queue while the block runs."""
        running = asyncio.create_task(self._batches.run())
        yield
        running.cancel()
        await asyncio.wait([running])
        self._reader.shutdown(wait=False)

    def route(self, path: str) -> Route:
        """Return the route of a path; it counts the answers and their seconds in the metrics."""

        async def counted(request: Request) -> Response:
            started = time.monotonic()
            response = await self._answer(request, self.answers[path])
            response.headers.update(HEADERS)
            self._seconds.labels(path).inc(time.monotonic() - started)
            self._requests.labels(path, response.status_code).inc()
            return response

        takes_body = path in ("/translate", "/translate_file", "/detect")
        return Route(path, counted, methods=["POST" if takes_body else "GET"])

    async def _answer(self, request: Request, handler: Response | Handler) -> Response:
        """Return the answer of a handler, or a JSON error if the handler raises an exception.

        ``handler`` may also be a constant answer. If the server listens at a loopback address, a
        request whose Host header names another machine is refused.
        """
        try:
            host = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
        except ValueError:  # such as "[::1" without the closing bracket
            host = ""
        # A web site can make one of its own host names resolve to 127.0.0.1, so that its pages can
        # send requests to this server (DNS rebinding). The Host header then has that name.
        if is_loopback(self._settings.host) and not is_loopback(host):
            return _fault(
                421,
                f"Host: {host[:60]!r} is neither a loopback address nor localhost; send requests "
                "to 127.0.0.1, or make your proxy send Host: 127.0.0.1",
            )
        if isinstance(handler, Response):
            return handler
        try:
            return await handler(request)
        except RefusedError as error:
            return _fault(error.status, str(error), error.headers)
        except UserError as error:
            return _fault(400, str(error))
        except ClientDisconnect:
            return Response(status_code=GONE)
        except asyncio.CancelledError:
            # When the server stops, uvicorn cancels the requests that are not answered within
            # stop_seconds.
            return _fault(
                503, "the server is shutting down; send the request again later"
            )
        except Exception:
            traceback.print_exc(file=sys.stderr)
            return _fault(
                500, "internal error of the server; its log contains a traceback"
            )

    async def health(self, _: Request) -> Response:
        """Answer with the number of waiting sentences, the models, and the limits on requests."""
        limits = self._settings.model_dump(exclude={"host", "port", "allow_origin"})
        models = [
            {"name": repr(translator), **translator.languages}
            for translator in self._models.translators
        ]
        return JSONResponse(
            {
                "status": "ok",
                "waiting": self._batches.waiting,
                "models": models,
                "bounds": limits,
            }
        )

    async def metrics(self, _: Request) -> Response:
        """Answer with the metrics in the format of Prometheus."""
        content = prometheus.generate_latest(self._registry)
        return Response(content, media_type=prometheus.CONTENT_TYPE_LATEST)

    def unrouted(self, request: Request, error: Exception) -> Response:
        """Answer a request that has no route: 404 for an unknown path, 405 for a wrong method.

        The metrics count answers by the known paths, so they include the 405 but not the 404.
        """
        assert isinstance(error, HTTPException)
        path = request.scope["path"]
        # Only the path of a document has a parameter.
        if "name" in request.path_params:
            path = DOWNLOAD
        if path in self.answers:
            self._requests.labels(path, error.status_code).inc()
        headers = {**HEADERS, **(error.headers or {})}
        return _fault(error.status_code, error.detail, headers)

    async def translate(self, request: Request) -> Response:
        """Answer with the translations of a request's texts.

        The request is JSON or a form, with the keys of this server or with those of LibreTranslate.
        """
        (libretranslate_request, checked), size = await self._read(request, self._check)
        translations = await self._translated(request, checked, size)
        if libretranslate_request:
            return JSONResponse(
                libretranslate_request.answer(translations, checked.source)
            )
        rows = []
        for translation in translations:
            row = translation.as_json()
            # The number of a line is of use only if the texts come from a file.
            del row["line"]
            if translation.attention is not None:
                row["attention"] = translation.attention.as_json()
            rows.append(row)
        return JSONResponse({"translations": rows})

    async def translate_file(self, request: Request) -> Response:
        """Answer with the address of a document's translation, in LibreTranslate's format."""
        check = partial(
            check_file,
            settings=self._settings,
            search=self._search,
            models=self._models,
        )
        (document, suffix, checked), size = await self._read(request, check)
        translations = await self._translated(request, checked, size)
        texts = [translation.text for translation in translations]
        content = await self._call(size, document.translated, texts)
        if warning := parts_warning(document.passages):
            print(f"convs2s serve: a document: {warning}", file=sys.stderr, flush=True)
        # Whoever knows the name can fetch the document, so the name must be hard to guess.
        name = secrets.token_urlsafe(16) + suffix
        self._files[name] = content
        if len(self._files) > MOST_FILES:
            oldest = next(iter(self._files))
            del self._files[oldest]
        return JSONResponse(
            {"translatedFileUrl": f"{request.base_url}download_file/{name}"}
        )

    async def download_file(self, request: Request) -> Response:
        """Answer with a translated document."""
        name = request.path_params["name"]
        if name not in self._files:
            return _fault(
                404,
                f"no such document: the server keeps the last {MOST_FILES}: translate it again",
            )
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        kind = guess_type(name)[0] or "application/octet-stream"
        return Response(self._files[name], headers=headers, media_type=kind)

    async def detect(self, request: Request) -> Response:
        """Answer with the probabilities that a text is in each source language of the models.

        The answer is in LibreTranslate's format.
        """
        check = partial(validated, DetectRequest, where="request")
        asked, size = await self._read(request, check)
        return JSONResponse(await self._call(size, self._models.detect, asked.text))

    async def _read(
        self,
        request: Request,
        check: Callable[[Mapping[str, object]], Returned],
    ) -> tuple[Returned, int]:
        """Read the fields of a request; return what ``check`` returns for them, and their size.

        The size is the number of bytes of the body, or of the form in the address.

        Raises:
            RefusedError: the content type is not accepted, or the body is too large or too slow.
            UserError: the body does not match its content type, or ``check`` raises this error.
        """
        # Some clients put their form into the address, after a "?".
        query: bytes = request.scope["query_string"]
        headers = request.headers
        content_type = headers.get("content-type", FORM if query else "")
        kind = content_type.partition(";")[0].strip().lower()
        # A page of any site can make a browser send a form to this server without asking the server
        # first. Such forms are refused. They are recognized by a header that every browser adds:
        # Origin or Sec-Fetch-Site. Our own page adds X-Requested-With to its forms. A page of
        # another site cannot send this header, or JSON, unless this server allows it: the browser
        # asks the server first (CORS).
        is_from_browser = {"origin", "sec-fetch-site"} & set(headers)
        is_from_our_page = "x-requested-with" in headers
        is_form = kind in FORMS and (is_from_our_page or not is_from_browser)
        if kind != "application/json" and not is_form:
            raise MediaTypeError(
                "request: expected the header Content-Type: application/json"
            )
        settings = self._settings
        if request.url.path == "/translate_file":
            most_bytes = settings.largest_file
        else:
            # JSON may write one byte of text as six bytes, such as \u0041.
            most_bytes = 6 * settings.longest_text * settings.most_texts
        most_bytes += 4096  # for the other fields
        stated_size = int(headers.get("content-length", "0"))
        # A request with Transfer-Encoding does not state its size in advance.
        is_large = stated_size > LARGE_BYTES or "transfer-encoding" in headers
        async with self._large_requests if is_large else nullcontext():
            try:
                async with asyncio.timeout(settings.request_seconds):
                    body = await read_body(request.stream(), most_bytes)
            except TimeoutError:
                raise LateError(
                    f"request: not complete within {settings.request_seconds:g} s"
                ) from None
            content = body
            if is_form and not body:
                content = query

            def parse_and_check() -> Returned:
                if is_form:
                    return check(read_form(content, content_type))
                return check(read_json(content))

            return await self._call(len(content), parse_and_check), len(content)

    def _check(
        self, fields: Mapping[str, object]
    ) -> tuple[LibreTranslateRequest | None, CheckedRequest]:
        """Check the fields of a request for translations, and return the checked request.

        For a request in LibreTranslate's format, the first item is the request in that format,
        which is needed to make the answer. For other requests, it is None.

        Raises:
            UserError: the request is not valid, or exceeds a limit.
        """
        libretranslate_request = None
        if "texts" not in fields and KEYS & fields.keys():
            libretranslate_request = validated(LibreTranslateRequest, fields, "request")
            fields = libretranslate_request.as_own(self._search.most_n_best)
        checked = check_request(fields, self._settings, self._search, self._models)
        return libretranslate_request, checked

    async def _call(
        self,
        size: int,
        function: Callable[..., Returned],
        *arguments: object,
    ) -> Returned:
        """Call a function for a request of ``size`` bytes.

        The function is called in another thread if the request is large (`AT_ONCE_BYTES`).
        """
        if size <= AT_ONCE_BYTES:
            return function(*arguments)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._reader, partial(function, *arguments))

    async def _translated(
        self,
        request: Request,
        checked: CheckedRequest,
        size: int,
    ) -> list[Translation]:
        """Return the translations of the texts of a request of ``size`` bytes.

        Raises:
            RefusedError: the request exceeds a limit or takes too long, or the model has a fault.
        """
        try:
            async with asyncio.timeout(self._settings.answer_seconds):
                sentences = await self._prepare(checked, size)
                translations = await self._await_translations(
                    request, sentences, checked
                )
        except TimeoutError:
            raise BusyError(
                f"request: not translated within {self._settings.answer_seconds:g} s: send fewer "
                "sentences at a time, or send the request again later"
            ) from None
        except RefusedError:
            # Keep this subclass of UserError: `_answer` uses its status.
            raise
        except UserError as error:
            # The request has been checked already, so the model has a fault.
            print(f"convs2s serve: {error}", file=sys.stderr)
            raise ModelError(str(error)) from None
        self._sentences.inc(len(sentences))
        return checked.lines.joined(translations)

    async def _prepare(self, checked: CheckedRequest, size: int) -> list[Sentence]:
        """Return the sentences of a request of ``size`` bytes with their tokens.

        For each sentence there is one call of the tokenizer. So the thread for large requests
        (`_call`) works on several of them in turn.

        Raises:
            TooLargeError: a sentence has too many tokens, or the request is too much work.
        """
        total = 0
        sentences = []
        for _, text in checked.lines.sentences:
            tokens = await self._call(size, checked.translator.tokens, text)
            # A sentence without tokens counts as one with a single token.
            sentence = Sentence(text, tokens, max(1, len(tokens)) * checked.beam)
            total += sentence.work
            check_work(sentence, total, checked.translator, self._settings)
            sentences.append(sentence)
        return sentences

    async def _await_translations(
        self,
        request: Request,
        sentences: list[Sentence],
        checked: CheckedRequest,
    ) -> list[Translation]:
        """Return the translations of a request's sentences.

        If the client closes the connection first, the request is removed from the queue.

        Raises:
            ClientDisconnect: the client has closed the connection.
        """

        async def client_leaves() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass

        translating = asyncio.create_task(
            self._batches.translate(sentences, checked.options)
        )
        leaving = asyncio.create_task(client_leaves())
        try:
            await asyncio.wait(
                {translating, leaving}, return_when=asyncio.FIRST_COMPLETED
            )
            if not translating.done():
                raise ClientDisconnect
            return translating.result()
        finally:
            translating.cancel()
            leaving.cancel()


def _fault(
    status: int,
    message: str,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    return JSONResponse({"error": message}, status, headers)
