"""A model behind an address: from its file to a process that answers until it is stopped."""

import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

import uvicorn

from convs2s.api.translator import OF_A_MODEL, Translator
from convs2s.config.decoding import DecodingSettings
from convs2s.errors import UserError
from convs2s.serving.application import application
from convs2s.serving.connections import Connection
from convs2s.serving.settings import ServerSettings, is_loopback

CONNECTIONS_PER_SENTENCE = 2
"""Open connections at most, for each sentence that may wait: more are told that it is busy."""

IDLE_SECONDS = 15  # seconds after which a connection is closed that asks nothing more


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

    Raises:
        UserError: a file is no model, or the address cannot be used.
    """
    with listen(settings) as listening:
        translator = Translator.load(
            models,
            device=device,  # type: ignore[arg-type]  # checked by the command's options
            threads=threads,
            pretokenized=pretokenized,
            **search.model_dump(include=OF_A_MODEL),
        )
        if pretokenized:  # which has no sentences to split
            settings = settings.model_copy(update={"split_sentences": False})
        app = application(translator, search, settings)
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        if not is_loopback(settings.host):
            print(
                f"warning: --host {settings.host}: whoever reaches this machine can ask, without a "
                "password and unencrypted (SECURITY.md)",
                file=sys.stderr,
            )
        address = f"http://{host}:{listening.getsockname()[1]}/"
        print(f"convs2s serve: {translator!r} answers at {address} until Ctrl-C", file=sys.stderr)
        configuration = uvicorn.Config(
            app,
            http=type("Connection", (Connection,), {"head_seconds": settings.request_seconds}),
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
        server = uvicorn.Server(configuration)
        # It raises the signal that stopped it once more when all is done.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        server.run([listening])
    print("convs2s serve: stopped", file=sys.stderr)


def listen(settings: ServerSettings) -> socket.socket:
    """Return a socket that listens at the address.

    Raises:
        UserError: it cannot listen there.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        listener = socket.create_server((settings.host, settings.port), family=family, backlog=1024)
    except OSError as error:
        raise UserError(
            f"--host {settings.host} --port {settings.port}: cannot listen there: "
            f"{error.strerror or error}: name another --port, or 0 for any that is free"
        ) from None
    # Else the second part of an answer waits 40 ms for the first one's delayed acknowledgment.
    # Connections inherit it; asyncio sets it where the listening socket states its protocol alone.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener
