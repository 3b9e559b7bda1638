"""Events and relays on blocking sockets, and on whatever else gives bytes without ``await``.

This module deliberately has no timeout of its own: a relay's deadlines are the machine's, every other
one is the caller's.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

from typing_extensions import Unpack

from .. import Relay, RelayOutcome
from .._protocol import A_co, E_co
from ._driving import Driving, How
from ._reading import Given
from ._request import Request
from ._sync import Body, Events, Relayed

__all__ = ["iter_events", "open_body", "open_events", "relay", "relayed"]

# Any stands for what has ``recv`` or ``read1``: sockets, and what `urllib.request.urlopen` returns.
Chunks: TypeAlias = "Iterable[bytes] | Any"
Source: TypeAlias = "Chunks | Callable[[], AbstractContextManager[Chunks]]"


def iter_events(source: Source, protocol: Given[E_co, A_co]) -> Events[E_co, A_co]:
    """Read the events of an answer.

    ::

        with iter_events(connection, MESSAGES) as events:
            for event in events:
                ...

    Nothing is read behind the answer's own end: a server that keeps the connection open holds nobody up.
    The source is closed before the last event, `EndOfStream`, is given out, before an error is raised,
    and where the context is left.

    Args:
        source: A socket or anything else with ``recv`` or ``read1``, any iterable of bytes, or a
            function whose context gives one; it is entered where the reading begins, and left where it
            ends. What has a ``close`` is closed. Timeouts that were set are kept.
        protocol: The protocol, or a receiver that is set up as the caller likes.

    Returns:
        An iterator of events, that is its own context.

    Raises:
        RemoteProtocolError: By the iterator: whatever `Receiver.next_event` raises. If the source fails
            before the answer is over, or times out, that is a `StreamTruncated`, whose ``__cause__`` is
            the failure.
    """
    return Events(source, protocol)


def relay(
    source: Source, sink: Callable[[bytes], object], machine: Relay, **how: Unpack[How]
) -> RelayOutcome:
    """Forward one answer from a source to a sink, until it is over.

    A socket is read with timeouts that end at the relay's deadlines. Anything else is read by a thread,
    one chunk ahead. While the sink blocks, the upstream is not blamed for silence. When an `OSError`
    comes out of the sink, the client is gone: the upstream is closed, or drained if the configuration
    says so. Data that has come goes before timers.

    Args:
        source: As for `iter_events`. A function that opens one blocks all else while it connects; it is
            called again for another attempt.
        sink: What writes, such as a socket's ``sendall``.
        machine: The relay, made with ``now=time.monotonic()``. It has usage and counters afterwards.
        how: ``retry``: what to do about an attempt that failed before output, by default an error;
            ``observe``: what is told every event of ``Output.events``.

    Returns:
        How the answer ended for the client.

    Raises:
        Exception: What came out of the sink and is no `OSError`, or out of ``retry`` or ``observe``.
    """
    with relayed(source, machine, **how) as body:
        for data in body:
            try:
                sink(data)
            except OSError:  # noqa: PERF203 - a drained relay puts out nothing more
                body.downstream_closed()
    return machine.outcome


def relayed(source: Source, machine: Relay, **how: Unpack[How]) -> Relayed:
    """Forward one answer as an iterator of bytes, for servers that take one. As `relay` otherwise.

    Returns:
        An iterator that is its own context, and has a ``close``: who leaves it early, leaves the
        upstream.
    """
    return Relayed(source, Driving(source, machine, time.monotonic(), **how))


@contextlib.contextmanager
def open_body(url: str, *, timeout: float | None = None, **request: Unpack[Request]) -> Generator[Body]:
    """Make an HTTP/1.1 request on a connection of its own, and give the body of the answer.

    Args:
        url: Where to.
        timeout: The socket's, in seconds: for connecting, and for each read that a relay does not time.
        request: ``method`` ("POST"), ``headers``, ``content`` (bytes, or a value to send as JSON), and
            ``ssl``: a context, for others than Python's defaults.

    Raises:
        UnexpectedResponse: The status is not 200, the body is compressed, or no event stream.
        RemoteProtocolError: The answer is no HTTP/1.1, or ended before it began (``"bad_http"``). The
            body raises it if it breaks off.
        LocalProtocolError: The URL or the request is none.
        OSError: There is no connection, or none in time.
    """
    from ._http import Exchange  # noqa: PLC0415 - h11 comes with an extra

    exchange = Exchange(url, **request)
    with socket.create_connection((exchange.host, exchange.port), timeout) as connection:
        if exchange.context is not None:
            connection = exchange.context.wrap_socket(connection, server_hostname=exchange.host)  # noqa: PLW2901
        with connection:
            connection.sendall(exchange.request)
            yield Body(exchange, connection)


@contextlib.contextmanager
def open_events(
    url: str, protocol: Given[E_co, A_co], *, timeout: float | None = None, **request: Unpack[Request]
) -> Generator[Events[E_co, A_co]]:
    """Make a request and read the events of the answer: `open_body` and `iter_events` in one."""
    with (
        open_body(url, timeout=timeout, **request) as body,
        iter_events(body, protocol) as events,
    ):
        yield events
