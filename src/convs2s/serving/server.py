"""The server process: load models, listen at an address, and answer requests until a signal."""

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
"""Maximum number of open connections, divided by the maximum number of waiting sentences.

Any further connection gets the answer that the server is busy, and is closed.
"""

ACCEPTED_AT_ONCE = 16
"""Maximum number of connections that the event loop accepts in one round."""

SPARE_FILES = 32
"""Number of file descriptors that are kept free for files that the process opens later."""

BACKLOG = 1024
"""Maximum number of connections that the kernel keeps until the server accepts them."""

IDLE_SECONDS = 15
"""Time after the last answer at which a connection without a new request is closed."""


def serve(
    models: Sequence[Path],
    search: DecodingSettings,
    settings: ServerSettings,
    *,
    device: str,
    threads: int,
    pretokenized: bool,
) -> NoReturn:
    """Answer requests until the process gets SIGINT, SIGTERM or SIGHUP, and then end the process.

    Requests that the server has received by then are still answered. Models for the same languages
    translate as an ensemble. The socket is opened before the models are loaded, so that a port in
    use is reported at once.

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
        if pretokenized:
            # Tokens cannot be split into sentences.
            settings = settings.model_copy(update={"split_sentences": False})
        server = web_server(Models(translators), search, settings)
        _stop_on_signals(server)
        if not is_loopback(settings.host):
            print(
                f"warning: --host {settings.host}: whoever can reach this machine can send "
                "requests, without a password and unencrypted (SECURITY.md)",
                file=sys.stderr,
            )
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        address = f"http://{host}:{listening.getsockname()[1]}/"
        print(
            f"convs2s serve: {', '.join(map(repr, translators))} answers at {address} until "
            "Ctrl-C",
            file=sys.stderr,
        )
        server.run([listening])
    print("convs2s serve: stopped", file=sys.stderr, flush=True)
    # A normal exit of Python would wait for threads whose results nobody needs any more. It would
    # also free the memory piece by piece, which takes seconds on a busy machine.
    os._exit(0)


def _stop_on_signals(server: uvicorn.Server) -> None:
    """Make SIGINT, SIGTERM and SIGHUP stop a server, even before it runs.

    While the server runs, uvicorn uses handlers of its own for SIGINT and SIGTERM. When the server
    has stopped, uvicorn restores the handlers of this function, and sends itself once more the
    signal that stopped it. Without the handlers of this function, this second signal would end the
    process before it prints its last line.
    """

    def stop(*_: object) -> None:
        server.should_exit = True

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    # A closed terminal sends SIGHUP. The command nohup makes a process ignore this signal, and then
    # it must stay ignored.
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, stop)


class Server(uvicorn.Server):
    """uvicorn's server, which accepts few connections at a time while the kernel keeps many.

    asyncio has one setting for both numbers, ``backlog``. In one round, asyncio accepts up to
    ``backlog`` connections before `Connection` can refuse any of them. If ``backlog`` were large,
    many clients could take all file descriptors. Therefore it is small, and ``startup`` then raises
    the number of connections that the kernel keeps.
    """

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept connections at listening sockets."""
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(BACKLOG)


def web_server(
    models: Models,
    search: DecodingSettings,
    settings: ServerSettings,
) -> Server:
    """Return a server that does not run yet; for the arguments see `application`.

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
    """Return the maximum number of open connections, each of which needs a file descriptor.

    ``most_waiting`` is the maximum number of waiting sentences.

    Raises:
        UserError: this process may open too few files.
    """
    most = CONNECTIONS_PER_SENTENCE * most_waiting
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY:
        return most
    open_files = len(list(Path("/dev/fd").iterdir()))
    # A refused connection is closed in the third round of the event loop after the round in which
    # it was accepted. So up to four rounds of refused connections are open at the same time.
    refused = 4 * ACCEPTED_AT_ONCE
    other_files = open_files + SPARE_FILES + refused
    if allowed <= other_files:
        raise UserError(
            f"`ulimit -n` is {allowed}: the server needs {other_files} open files besides the "
            "connections of its clients: raise the limit, for example by `ulimit -n 1024`"
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
    # Without TCP_NODELAY, the second part of an answer would wait until the client acknowledges the
    # first part, which takes 40 ms. Connections inherit the option from this socket. asyncio would
    # set it only if the socket were made with a protocol number, but create_server states none.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener
