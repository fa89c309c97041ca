"""A client's connection: how long it may take to ask, and what its end means."""

import asyncio
from collections.abc import Callable

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

PROBE_SECONDS = 0.5  # seconds between looks whether a client that sends nothing more still listens
ANSWER_SECONDS = 300.0  # after so long, a connection that closes does not wait for its client


class Connection(H11Protocol):
    """uvicorn's connection, with time limits for the head of a request and for reading the answer.

    Without them, a client that never ends its head, or reads no answer, keeps its connection, of
    which there are only so many. The limit of a body is the application's own.
    """

    head_seconds: float
    """Seconds from a connection or a request's first byte to the end of its head; a subclass
    states it, as uvicorn makes connections of a class."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the time limit."""
        super().connection_made(transport)
        self._limit(self.head_seconds, self.timeout_keep_alive_handler)

    def data_received(self, data: bytes) -> None:
        """Start the time limit with a request's first byte, and end it with its head."""
        super().data_received(data)
        answered = self.cycle is not None and self.cycle.response_complete
        if self.conn.their_state is not h11.IDLE and not answered:
            self._end_limit()
        elif self._timer is None:
            self._limit(self.head_seconds, self.timeout_keep_alive_handler)

    def timeout_keep_alive_handler(self) -> None:
        """Close the connection, once its client has read the answer."""
        super().timeout_keep_alive_handler()
        self._limit(ANSWER_SECONDS, self.transport.abort)

    def on_response_complete(self) -> None:
        """Start the time limit of an answer that ends the connection."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._limit(ANSWER_SECONDS, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the time limit."""
        self._end_limit()
        super().connection_lost(exc)

    def eof_received(self) -> bool:  # type: ignore[override]
        """Keep the connection of a client that has asked, and sends nothing more.

        It may have shut down its side alone, and be waiting for the answer.
        """
        if self.cycle is None or self.cycle.response_complete or self.cycle.more_body:
            return False
        self.cycle.keep_alive = False
        self._probe()
        return True

    def _probe(self) -> None:
        """Send interim responses until the answer begins.

        A client that has gone resets the connection at the first, and the next one fails: its
        place is free. One that listens ignores them (RFC 9110, section 15.2; none for HTTP/1.0).
        """
        if self.transport.is_closing() or self.cycle.response_started:
            return
        if self.scope["http_version"] != "1.0":
            continues = h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue")
            self.transport.write(self.conn.send(continues))
            self.loop.call_later(PROBE_SECONDS, self._probe)

    def _limit(
        self,
        seconds: float,
        close: Callable[[], None],
    ) -> None:
        self._end_limit()
        self._timer = self.loop.call_later(seconds, close)

    def _end_limit(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
