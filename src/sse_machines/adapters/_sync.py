"""Reading events and driving a relay where waiting is blocking.

This module deliberately knows no kind of source by name: what has timeouts, as sockets do, is read with
them; anything else is read as it comes, or by a thread where somebody waits for a deadline.
"""

from __future__ import annotations

import contextlib
import functools
import socket
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic

from typing_extensions import Self

from .._errors import RemoteProtocolError
from .._protocol import A_co, E_co
from ._driving import Driving
from ._reading import SIZE, Chunk, Given, Reading, closer, pieces
from ._thread import Threaded

if TYPE_CHECKING:
    # With an extra only.
    from ._http import Exchange

_SHORTEST = 0.001


class Pump:
    """Reads a source, chunk by chunk.

    Args:
        source: The source.
        timed: Whether there will be deadlines.
    """

    def __init__(self, source: Any, *, timed: bool = False) -> None:
        self._source = source if callable(source) else _timed(source, timed=timed)
        self._is_timed = timed
        self._read: Callable[[float | None], Chunk] | None = None
        self._chunk: Chunk = None
        self._stack = contextlib.ExitStack()
        close = None if callable(source) else closer(self._source)
        if close is not None:
            self._stack.callback(close)

    def ready(self, deadline: float | None = None) -> bool:
        """Read a chunk; False if none came up to the deadline."""
        try:
            self._read = self._read or self._open()
        except Exception as error:  # noqa: BLE001 - every client library has its own
            self._chunk = error
            return True
        try:
            self._chunk = self._read(deadline)
        except TimeoutError as error:
            self._chunk = error
            # What has a number comes from the system, which has given the connection up.
            return deadline is None or error.errno is not None
        except Exception as error:  # noqa: BLE001 - the same
            self._chunk = error
        return True

    def take(self) -> Chunk:
        """Take the chunk that is ready."""
        return self._chunk

    def close(self) -> None:
        """Close the source."""
        self._stack.close()

    def _open(self) -> Callable[[float | None], Chunk]:
        chunks: Any = self._source
        if callable(chunks):
            context: Any = chunks()
            chunks = _timed(self._stack.enter_context(context), timed=self._is_timed)
            if chunks.__class__ is Threaded:
                self._stack.callback(chunks.close)
        if self._is_timed:
            return functools.partial(_receive_until, chunks)
        iterator = pieces(chunks)
        return lambda _deadline: next(iterator, None)


def _timed(chunks: Any, *, timed: bool) -> Any:
    return Threaded(chunks) if timed and not hasattr(chunks, "settimeout") else chunks


def _receive_until(chunks: Any, deadline: float | None) -> Chunk:
    # A timeout of 0 would mean a socket that does not block, with errors of its own.
    chunks.settimeout(None if deadline is None else max(deadline - time.monotonic(), _SHORTEST))
    return chunks.recv(SIZE) or None


class Events(Generic[E_co, A_co]):
    """The events of an answer, as an iterator and a context.

    Attributes:
        receiver: What judges them.
        response: The head of the HTTP answer, where `open_events` made the request; else None.
    """

    def __init__(self, source: Any, protocol: Given[E_co, A_co]) -> None:
        self._reading = Reading(protocol)
        self._pump = Pump(source)
        self.receiver = self._reading.receiver
        self.response = getattr(source, "response", None)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> E_co:
        reading, next_event = self._reading, self.receiver.next_event
        try:
            while (event := next_event()) is None:
                if reading.wants_data:
                    self._pump.ready()
                    reading.feed(self._pump.take())
                else:
                    self.close()
                    if not reading.end():
                        raise StopIteration
        except RemoteProtocolError as error:
            self.close()
            raise error from reading.cause
        return event

    def close(self) -> None:
        """Close the source. What had come by then can still be taken."""
        self._pump.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Relayed:
    """What a relay puts out, as an iterator of bytes and a context. Each is to be written at once."""

    def __init__(self, source: Any, driving: Driving) -> None:
        self._driving = driving
        self._source = source
        self._pump = Pump(source, timed=True)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> bytes:
        driving, clock = self._driving, time.monotonic
        driving.written(clock())
        while not driving.data:
            if driving.close_upstream:
                self._pump.close()
                if driving.over:
                    raise StopIteration
                if driving.settle(clock()):
                    self._pump = Pump(self._source, timed=True)
            elif self._pump.ready(driving.deadline):
                driving.feed(self._pump.take(), clock())
            else:
                driving.timeout(clock())
        return driving.take(clock())

    def downstream_closed(self) -> None:
        """Note that the client is gone. Nothing more comes out, but a relay that drains reads on."""
        self._driving.gone(time.monotonic())

    def close(self) -> None:
        """End the relay, if it has not ended, and close the source."""
        try:
            self._driving.abandon(time.monotonic())
        finally:
            self._pump.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Body:
    """The body of an HTTP answer whose head was right; to be read as a socket is.

    Attributes:
        response: The head.
        settimeout: Sets how long the connection may be silent.
        close: Closes the connection.
    """

    def __init__(self, exchange: Exchange, connection: socket.socket) -> None:
        while not exchange.opened():
            try:
                data = connection.recv(SIZE)
            except OSError:
                # A body of which only the error counts may be cut.
                if exchange.response is None:
                    raise
                data = b""
            exchange.feed(data)
        self._exchange = exchange
        self._receive = connection.recv
        self.settimeout = connection.settimeout
        self.close = connection.close
        self.response = exchange.response

    def recv(self, size: int) -> bytes:
        """Receive a piece of the body, of about that size; ``b""`` at its end."""
        while (data := self._exchange.take()) == b"":
            self._exchange.feed(self._receive(size))
        return data or b""

    def __iter__(self) -> Iterator[bytes]:
        return iter(functools.partial(self.recv, SIZE), b"")
