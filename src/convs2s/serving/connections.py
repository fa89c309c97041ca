"""The connection of a client, with time limits and a check whether the client is still there."""

import asyncio
from collections.abc import Callable

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

PROBE_SECONDS = 0.5
"""Time between two checks whether a client that has ended its side of a connection still waits."""

ANSWER_SECONDS = 300.0
"""Time in which a client must read the last answer. After this time its connection is aborted."""

BUSY = b"too many connections are open: send the request again in a moment"


class Connection(H11Protocol):
    """uvicorn's connection, with time limits for the head of a request and for reading the answer.

    The number of connections is limited, so no client may keep one for ever. Without the time
    limits, a client could do so if it never ends the head of its request, or never reads the
    answer. The time for the body of a request is limited by the application.
    """

    # uvicorn makes each connection from a class and passes only its own arguments. Therefore
    # `web_server` defines these three attributes in a subclass.
    head_seconds: float
    """Seconds in which a client must have sent the head of a request.

    The time begins with the connection for the first request, and with the first byte of each
    further request.
    """
    most_connections: int
    """Maximum number of open connections."""
    open_connections: set["Connection"]
    """All open connections of the server."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the time limit for the head of the first request.

        If there are too many connections, close this one at once. uvicorn's own limit would wait
        for a request, so a client that sends none would keep a file descriptor of the server.
        """
        super().connection_made(transport)
        self.open_connections.add(self)
        if len(self.open_connections) > self.most_connections:
            self._refuse()
        else:
            self._limit(self.head_seconds, self.timeout_keep_alive_handler)

    def _refuse(self) -> None:
        """Answer 503 without reading a request, and close the connection."""
        headers = [
            ("Content-Type", "text/plain; charset=utf-8"),
            ("Content-Length", str(len(BUSY))),
            ("Connection", "close"),
        ]
        response = h11.Response(
            status_code=503, headers=headers, reason=b"Service Unavailable"
        )
        for event in (response, h11.Data(data=BUSY), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event))
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Start the time limit at the first byte of a request, and end it after the head.

        If the request is answered before the end of its body, the limit starts again, because the
        application does not wait for the rest of the body.
        """
        super().data_received(data)
        is_answered = self.cycle is not None and self.cycle.response_complete
        has_head = self.conn.their_state is not h11.IDLE
        if has_head and not is_answered:
            self._end_limit()
        elif self._timer is None:
            self._limit(self.head_seconds, self.timeout_keep_alive_handler)

    def timeout_keep_alive_handler(self) -> None:
        """Close the connection when the client has read the answer, or after a time limit.

        uvicorn calls this if the connection was idle for too long. It is also called when the time
        for the head is over.
        """
        super().timeout_keep_alive_handler()
        self._limit(ANSWER_SECONDS, self.transport.abort)

    def on_response_complete(self) -> None:
        """Start the time limit for reading the answer if it is the last one of the connection."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._limit(ANSWER_SECONDS, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the time limit, and remove this connection from the open ones."""
        self._end_limit()
        self.open_connections.discard(self)
        super().connection_lost(exc)

    def eof_received(self) -> bool:  # type: ignore[override]
        """Return whether to keep the connection of a client that has ended its side of it.

        It is kept if the client has sent a whole request and has no complete answer yet, because
        the client may still wait for this answer.
        """
        if self.cycle is None or self.cycle.response_complete or self.cycle.more_body:
            return False
        self.cycle.keep_alive = False
        self._probe()
        return True

    def _probe(self) -> None:
        """Send interim responses (100 Continue) until the answer begins.

        If the client has gone, its machine resets the connection after the first interim response.
        The connection is then lost, and the request leaves the queue. A client that still waits
        ignores interim responses (RFC 9110, section 15.2). HTTP/1.0 does not have them, so a client
        that uses HTTP/1.0 is not checked.
        """
        if self.transport.is_closing() or self.cycle.response_started:
            return
        if self.scope["http_version"] != "1.0":
            continues = h11.InformationalResponse(
                status_code=100, headers=[], reason=b"Continue"
            )
            self.transport.write(self.conn.send(continues))
            self.loop.call_later(PROBE_SECONDS, self._probe)

    def _limit(self, seconds: float, close: Callable[[], None]) -> None:
        """Replace the current time limit by one of ``seconds``, after which ``close`` is called."""
        self._end_limit()
        self._timer = self.loop.call_later(seconds, close)

    def _end_limit(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
