"""A model behind an address: from its file to a process that answers until it is stopped."""

import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

import uvicorn
from starlette.applications import Starlette

from convs2s.api.translator import SearchSettings, Translator
from convs2s.config.decoding import DecodingSettings
from convs2s.decoding.translate import Translation
from convs2s.errors import UserError
from convs2s.serving.application import Served, application
from convs2s.serving.batches import Batches, Wanted
from convs2s.serving.page import served_page
from convs2s.serving.settings import ServerSettings, is_loopback

CONNECTIONS_PER_SENTENCE = 2
"""Open connections at most, for each sentence that may wait: more are told that it is busy."""

IDLE_SECONDS = 15
"""Seconds after which a connection is closed that asks nothing more."""


def serve(
    models: Sequence[Path],
    search: DecodingSettings,
    settings: ServerSettings,
    *,
    device: str,
    threads: int,
    pretokenized: bool,
) -> None:
    """Answer requests until the process gets SIGTERM or SIGINT; then finish those that are there.

    Args:
        models: model files; several make an ensemble.
        search: how to search where a request does not say otherwise.
        settings: where to listen, and the bounds.
        device: ``cpu``, ``cuda`` or ``auto``.
        threads: CPU threads.
        pretokenized: texts are the model's own tokens, separated by blanks.

    Raises:
        UserError: a file is no model, the address is taken, or none of this machine.
    """
    with _listening(settings) as listening:
        translator = Translator.load(
            models,
            device=device,  # type: ignore[arg-type]  # checked by the command's options
            threads=threads,
            precision=search.precision,
            ensemble=search.ensemble,
            cuda_graphs=search.cuda_graphs,
            pretokenized=pretokenized,
        )
        app = application(served_by(translator, search, settings))
        _announce(translator, listening, settings)
        server = uvicorn.Server(_configuration(app, settings))
        # It raises the signal that stopped it once more when all is done.
        for one in (signal.SIGINT, signal.SIGTERM):
            signal.signal(one, lambda *_: None)
        server.run([listening])
    print("convs2s serve: stopped", file=sys.stderr, flush=True)


def _configuration(app: Starlette, settings: ServerSettings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http="h11",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=settings.stop_seconds,
        limit_concurrency=CONNECTIONS_PER_SENTENCE * settings.most_waiting,
    )


def served_by(translator: Translator, search: DecodingSettings, settings: ServerSettings) -> Served:
    """Return what an application of a model needs.

    Raises:
        UserError: the search has a wider beam than the server takes, or replaces unknown words
            where no model has attention, or a request may have more sentences than may wait.
    """
    if search.beam > settings.largest_beam:
        raise UserError(
            f"--beam {search.beam}: --largest-beam is {settings.largest_beam}: raise that"
        )
    if settings.most_texts > settings.most_waiting:
        raise UserError(
            f"--most-texts {settings.most_texts}: --most-waiting is {settings.most_waiting}: raise "
            "that, or a request of so many sentences would never be taken"
        )
    options = search_settings(search)

    def translate(texts: list[str], wanted: Wanted) -> list[Translation]:
        chosen: SearchSettings = {**options, "beam": wanted.beam}
        return translator.translate(
            texts, n_best=wanted.n_best, attention=wanted.attention, **chosen
        )

    translate([], Wanted(search.beam, 1, False))  # what no request could have is refused now
    languages = translator.languages
    title = f"convs2s: {languages['source']} to {languages['target']}"
    texts = {
        **languages,
        "title": title,
        "beam": str(search.beam),
        "largest_beam": str(settings.largest_beam),
        "attention": "checked" if translator.attends else "disabled",
    }
    batches = Batches(translate, search.batch_sentences, settings.most_waiting)
    model: dict[str, object] = {"name": repr(translator), **languages}
    return Served(batches, settings, search.beam, served_page(texts), model)


def search_settings(search: DecodingSettings) -> SearchSettings:
    """Return the settings of each translation, but for its beam, which a request may state."""
    return {
        "length_penalty": search.alpha,
        "minimum_length": search.minimum_length,
        "maximum_length": search.maximum_length.model_dump(),
        "unknown_penalty": search.unknown_penalty,
        "finished": search.finished,
        "replace_unknown": search.replace_unknown,
        "vocabulary_selection": search.vocabulary_selection,
        "batch_sentences": search.batch_sentences,
        "batch_tokens": search.batch_tokens,
    }


def _listening(settings: ServerSettings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family, backlog=1024)
    except OSError as error:
        raise UserError(
            f"--host {settings.host} --port {settings.port}: cannot be listened at: "
            f"{error.strerror or error}: name another --port, or 0 for any that is free"
        ) from None


def _announce(translator: Translator, listening: socket.socket, settings: ServerSettings) -> None:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    if not is_loopback(settings.host):
        print(
            f"warning: --host {settings.host}: whoever reaches this machine can ask, without a "
            "password and unencrypted (SECURITY.md)",
            file=sys.stderr,
        )
    address = f"http://{host}:{listening.getsockname()[1]}/"
    print(f"convs2s serve: {translator!r} answers at {address} until Ctrl-C", file=sys.stderr)
    sys.stderr.flush()
