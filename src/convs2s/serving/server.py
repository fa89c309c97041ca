"""The server process: it loads models, listens at an address, and answers until it is stopped."""

import os
import resource
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import uvicorn

from convs2s.api.translator import OF_A_MODEL, Translator
from convs2s.config.decoding import DecodingSettings
from convs2s.errors import UserError
from convs2s.model_file import describe_model
from convs2s.serving.application import application
from convs2s.serving.connections import Connection
from convs2s.serving.models import Models
from convs2s.serving.settings import ServerSettings, is_loopback

CONNECTIONS_PER_SENTENCE = 2
"""Maximum number of open connections for each sentence that may wait.

A client with a further connection is told that the server is busy.
"""

ACCEPTED_AT_ONCE = 16
"""Maximum number of connections that the event loop accepts at a time."""

SPARE_FILES = 32
"""Number of file descriptors that connections leave to the rest of the process."""

BACKLOG = 1024
"""Number of connections that the kernel keeps until they are accepted."""

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
) -> NoReturn:
    """Answer requests until the process gets SIGTERM, SIGINT or SIGHUP; finish the running ones.

    Then the process ends. Models for the same languages are an ensemble. The address is taken
    before they are loaded, so that a port in use is reported at once.

    Raises:
        UserError: a file is not a model, or the address cannot be used.
    """
    with listen(settings) as listening:
        ensembles: dict[tuple[str, str], list[Path]] = {}
        for path in models:
            languages = describe_model(path).languages
            pair = (languages["source"], languages["target"])
            ensembles.setdefault(pair, []).append(path)
        translators = []
        for paths in ensembles.values():
            translator = Translator.load(
                paths,
                device=device,  # type: ignore[arg-type]  # checked by the command's options
                threads=threads,
                pretokenized=pretokenized,
                **search.model_dump(include=OF_A_MODEL),
            )
            translators.append(translator)
        if pretokenized:  # only raw text can be split into sentences
            settings = settings.model_copy(update={"split_sentences": False})
        server = web_server(Models(translators), search, settings)
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        if not is_loopback(settings.host):
            print(
                f"warning: --host {settings.host}: whoever reaches this machine can send requests, "
                "without a password and unencrypted (SECURITY.md)",
                file=sys.stderr,
            )
        address = f"http://{host}:{listening.getsockname()[1]}/"
        print(
            f"convs2s serve: {', '.join(map(repr, translators))} answers at {address} until "
            "Ctrl-C",
            file=sys.stderr,
        )
        # After all requests are answered, uvicorn raises again the signal that stopped it. Without
        # these handlers the signal would end this process before it prints its last line.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: None)

        def stop(*_: object) -> None:
            server.should_exit = True

        # The terminal was closed. uvicorn has no handler for this. nohup makes it ignored.
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
            signal.signal(signal.SIGHUP, stop)
        server.run([listening])
    print("convs2s serve: stopped", file=sys.stderr, flush=True)
    # At its end Python would wait for the threads, which may work for nobody, and free the memory
    # piece by piece: seconds on a busy machine.
    os._exit(0)


class Server(uvicorn.Server):
    """uvicorn's server, which accepts a few connections at a time.

    asyncio accepts up to ``backlog`` connections before any code of a connection runs, so that many
    clients at once could take all file descriptors. Therefore ``backlog`` is small, while the
    kernel keeps more connections.
    """

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept connections at sockets that listen."""
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(BACKLOG)


def web_server(
    models: Models,
    search: DecodingSettings,
    settings: ServerSettings,
) -> Server:
    """Return the server of models, which does not run yet; its arguments are as in `application`.

    Raises:
        UserError: ``search`` and ``settings`` do not fit the models or each other, or this process
            may open too few files.
    """
    connections = set[Connection]()
    app = application(models, search, settings, connections)
    attributes = {
        "head_seconds": settings.request_seconds,
        "most_connections": most_connections(settings.most_waiting),
        "open_connections": connections,
    }
    return Server(
        uvicorn.Config(
            app,
            http=type("Connection", (Connection,), attributes),
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=IDLE_SECONDS,
            timeout_graceful_shutdown=settings.stop_seconds,
            backlog=ACCEPTED_AT_ONCE,
        )
    )


def most_connections(most_waiting: int) -> int:
    """Return the maximum number of open connections, each of which is an open file.

    ``most_waiting`` is the maximum number of sentences that wait.

    Raises:
        UserError: this process may open too few files.
    """
    most = CONNECTIONS_PER_SENTENCE * most_waiting
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY:
        return most
    open_files = len(list(Path("/dev/fd").iterdir()))
    # A connection that is refused is closed three rounds of the event loop after it was accepted.
    other_files = open_files + SPARE_FILES + 4 * ACCEPTED_AT_ONCE
    if allowed <= other_files:
        raise UserError(
            f"`ulimit -n` is {allowed}: the server needs {other_files} open files besides those of "
            "its clients: raise it, such as by `ulimit -n 1024`"
        )
    return min(most, allowed - other_files)


def listen(settings: ServerSettings) -> socket.socket:
    """Return a socket that listens at the address of the settings.

    Raises:
        UserError: no socket can listen there.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        listener = socket.create_server(
            (settings.host, settings.port), family=family, backlog=BACKLOG
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
