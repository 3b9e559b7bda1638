"""Events and relays on trio.

A task in a nursery of the call's own reads the source, one chunk ahead. So whoever waits for an event
can be cancelled at any moment, and nothing is lost: the next call goes on. That is so for sources as
well that cannot bear it themselves, such as HTTP clients' iterators. This module deliberately has no
timeout of its own: a relay's deadlines are the machine's, every other one is the caller's.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias

import trio
from typing_extensions import Unpack

from .. import Relay, RelayOutcome
from .._protocol import A_co, E_co
from ._async import AsyncBody, AsyncEvents, AsyncRelayed, forward
from ._driving import Driving, How
from ._reading import SIZE, Given
from ._request import Request
from ._trio_pump import Pump, nursery

__all__ = ["iter_events", "open_body", "open_events", "relay", "relayed"]

Chunks: TypeAlias = "trio.abc.ReceiveStream | AsyncIterable[bytes]"
Source: TypeAlias = "Chunks | Callable[[], AbstractAsyncContextManager[Chunks]]"
_GONE = (OSError, trio.BrokenResourceError, trio.ClosedResourceError)


@contextlib.asynccontextmanager
async def iter_events(
    source: Source, protocol: Given[E_co, A_co]
) -> AsyncGenerator[AsyncEvents[E_co, A_co]]:
    """Read the events of an answer.

    ::

        async with iter_events(stream, MESSAGES) as events:
            async for event in events:
                ...

    Nothing is read behind the answer's own end: a server that keeps the connection open holds nobody up.
    The source is closed before the last event, `EndOfStream`, is given out, before an error is raised,
    and where the context is left. Waiting for an event can be cancelled, and loses none.

    Args:
        source: A `trio.abc.ReceiveStream`, any asynchronous iterable of bytes, or a function whose
            context gives one; it is entered where the reading begins, and left where it ends. What has
            an ``aclose`` is closed.
        protocol: The protocol, or a receiver that is set up as the caller likes.

    Returns:
        A context with an asynchronous iterator of events.

    Raises:
        RemoteProtocolError: By the iterator: whatever `Receiver.next_event` raises. If the source fails
            before the answer is over, that is a `StreamTruncated`, whose ``__cause__`` is the failure.
    """
    async with nursery() as tasks:
        events = AsyncEvents(Pump(source, tasks), protocol, getattr(source, "response", None))
        async with events:
            yield events


async def relay(
    source: Source, sink: Callable[[bytes], Awaitable[object]], machine: Relay, **how: Unpack[How]
) -> RelayOutcome:
    """Forward one answer from a source to a sink, until it is over.

    While the sink is awaited nothing is read but one chunk, and the upstream is not blamed for silence.
    When an `OSError` or one of trio's errors for a broken or closed stream comes out of the sink, the
    client is gone: the upstream is closed, or drained if the configuration says so. When the call is
    cancelled, the upstream is closed. Data that has come goes before timers.

    Args:
        source: As for `iter_events`. A function that opens one is called by the relay, so keep-alives
            flow and stall clocks run while it connects; it is called again for another attempt.
        sink: What writes, such as a stream's ``send_all``.
        machine: The relay, made with ``now=trio.current_time()``. It has usage and counters afterwards.
        how: ``retry``: what to do about an attempt that failed before output, by default an error;
            ``observe``: what is told every event of ``Output.events``.

    Returns:
        How the answer ended for the client.

    Raises:
        Exception: What came out of the sink and says nothing of a client, or out of ``retry`` or
            ``observe``.
    """
    async with relayed(source, machine, **how) as body:
        await forward(body, sink, gone=_GONE)
    return machine.outcome


@contextlib.asynccontextmanager
async def relayed(source: Source, machine: Relay, **how: Unpack[How]) -> AsyncGenerator[AsyncRelayed]:
    """Forward one answer as an iterator of bytes, for servers that take one. As `relay` otherwise.

    Returns:
        A context with an asynchronous iterator: who leaves it early, leaves the upstream.
    """
    driving = Driving(source, machine, trio.current_time(), **how)
    async with nursery() as tasks:
        pump = functools.partial(Pump, source, tasks)
        async with AsyncRelayed(driving, pump, trio.current_time) as body:
            yield body


@contextlib.asynccontextmanager
async def open_body(url: str, **request: Unpack[Request]) -> AsyncGenerator[AsyncBody]:
    """Make an HTTP/1.1 request on a connection of its own, and give the body of the answer.

    Args:
        url: Where to.
        request: ``method`` ("POST"), ``headers``, ``content`` (bytes, or a value to send as JSON), and
            ``ssl``: a context, for others than Python's defaults.

    Raises:
        UnexpectedResponse: The status is not 200, the body is compressed, or no event stream.
        RemoteProtocolError: The answer is no HTTP/1.1, or ended before it began (``"bad_http"``). The
            body raises it if it breaks off.
        LocalProtocolError: The URL or the request is none.
        OSError: There is no connection.
        trio.BrokenResourceError: It broke while it was made; its cause says more.
    """
    from ._http import Exchange  # noqa: PLC0415 - h11 comes with an extra

    exchange = Exchange(url, **request)
    stream: trio.abc.Stream = await trio.open_tcp_stream(exchange.host, exchange.port)
    if exchange.context is not None:
        stream = trio.SSLStream(
            stream, exchange.context, server_hostname=exchange.host, https_compatible=True
        )
    async with stream:
        await stream.send_all(exchange.request)
        receive = functools.partial(stream.receive_some, SIZE)
        yield await AsyncBody.open(exchange, receive, stream.aclose)


@contextlib.asynccontextmanager
async def open_events(
    url: str, protocol: Given[E_co, A_co], **request: Unpack[Request]
) -> AsyncGenerator[AsyncEvents[E_co, A_co]]:
    """Make a request and read the events of the answer: `open_body` and `iter_events` in one."""
    async with open_body(url, **request) as body, iter_events(body, protocol) as events:
        yield events
