"""The server process: it loads a model, listens at an address, and answers until it is stopped."""

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
"""Maximum number of open connections for each sentence that may wait.

A client with a further connection is told that the server is busy.
"""

IDLE_SECONDS = 15
"""Time after which a connection without a further request is closed."""


def serve(
    models: Sequence[Path],
    search: DecodingSettings,
    settings: ServerSettings,
    *,
    device: str,
    threads: int,
    pretokenized: bool,
) -> None:
    """Answer requests until the process gets SIGTERM or SIGINT, then finish the running ones.

    The address is taken before the model is loaded, so that a port in use is reported at once.

    Raises:
        UserError: a file is not a model, or the address cannot be used.
    """
    with listen(settings) as listening:
        translator = Translator.load(
            models,
            device=device,  # type: ignore[arg-type]  # checked by the command's options
            threads=threads,
            pretokenized=pretokenized,
            **search.model_dump(include=OF_A_MODEL),
        )
        if pretokenized:  # only raw text can be split into sentences
            settings = settings.model_copy(update={"split_sentences": False})
        app = application(translator, search, settings)
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        if not is_loopback(settings.host):
            print(
                f"warning: --host {settings.host}: whoever reaches this machine can send requests, "
                "without a password and unencrypted (SECURITY.md)",
                file=sys.stderr,
            )
        address = f"http://{host}:{listening.getsockname()[1]}/"
        print(
            f"convs2s serve: {translator!r} answers at {address} until Ctrl-C",
            file=sys.stderr,
        )
        configuration = uvicorn.Config(
            app,
            http=type(
                "Connection", (Connection,), {"head_seconds": settings.request_seconds}
            ),
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
        # After all requests are answered, uvicorn raises again the signal that stopped it. Without
        # these handlers the signal would end this process before it prints its last line.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        server.run([listening])
    print("convs2s serve: stopped", file=sys.stderr)


def listen(settings: ServerSettings) -> socket.socket:
    """Return a socket that listens at the address of the settings.

    Raises:
        UserError: no socket can listen there.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        listener = socket.create_server(
            (settings.host, settings.port), family=family, backlog=1024
        )
    except OSError as error:
        raise UserError(
            f"--host {settings.host} --port {settings.port}: cannot listen there: "
            f"{error.strerror or error}: name another --port, or 0 for any that is free"
        ) from None
    # Without TCP_NODELAY the second part of an answer waits 40 ms until the client acknowledges the
    # first. Connections inherit the option from this socket. asyncio sets it only on sockets that
    # state their protocol, and create_server does not state it.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener
