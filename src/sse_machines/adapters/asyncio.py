"""Events and relays on asyncio.

A task reads the source, one chunk ahead, and is the only one that awaits it. So whoever waits for an
event can be cancelled at any moment, and nothing is lost: the next call goes on. This module
deliberately has no timeout of its own: a relay's deadlines are the machine's, every other one is the
caller's.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias

from typing_extensions import Unpack

from .. import Relay, RelayOutcome
from .._protocol import A_co, E_co
from ._async import AsyncBody, AsyncEvents, AsyncRelayed, forward
from ._asyncio_pump import Pump
from ._driving import Driving, How
from ._reading import SIZE, Given
from ._request import Request

__all__ = ["iter_events", "open_body", "open_events", "relay", "relayed"]

Chunks: TypeAlias = "asyncio.StreamReader | AsyncIterable[bytes]"
Source: TypeAlias = "Chunks | Callable[[], AbstractAsyncContextManager[Chunks]]"


def iter_events(source: Source, protocol: Given[E_co, A_co]) -> AsyncEvents[E_co, A_co]:
    """Read the events of an answer.

    ::

        async with iter_events(response.aiter_raw(), MESSAGES) as events:
            async for event in events:
                ...

    Nothing is read behind the answer's own end: a server that keeps the connection open holds nobody up.
    The source is closed before the last event, `EndOfStream`, is given out, before an error is raised,
    and where the context is left. Waiting for an event can be cancelled, and loses none.

    Args:
        source: An `asyncio.StreamReader`, any asynchronous iterable of bytes, or a function whose
            context gives one; it is entered where the reading begins, and left where it ends. What has
            an ``aclose`` or ``close`` is closed; the writer beside a StreamReader is the caller's.
        protocol: The protocol, or a receiver that is set up as the caller likes.

    Returns:
        An asynchronous iterator of events, that is its own context.

    Raises:
        RemoteProtocolError: By the iterator: whatever `Receiver.next_event` raises. If the source fails
            before the answer is over, that is a `StreamTruncated`, whose ``__cause__`` is the failure.
    """
    return AsyncEvents(Pump(source), protocol, getattr(source, "response", None))


async def relay(
    source: Source,
    sink: Callable[[bytes], Awaitable[object]] | asyncio.StreamWriter,
    machine: Relay,
    **how: Unpack[How],
) -> RelayOutcome:
    """Forward one answer from a source to a sink, until it is over.

    While the sink is awaited nothing is read but one chunk, and the upstream is not blamed for silence.
    When an `OSError` comes out of the sink, the client is gone: the upstream is closed, or drained if
    the configuration says so. When the call is cancelled, the upstream is closed. Data that has come
    goes before timers.

    Args:
        source: As for `iter_events`. A function that opens one is called by the relay, so keep-alives
            flow and stall clocks run while it connects; it is called again for another attempt.
        sink: What writes, or a writer, which is drained after every write and not closed.
        machine: The relay, made with ``now=loop.time()``. It has usage and counters afterwards.
        how: ``retry``: what to do about an attempt that failed before output, by default an error;
            ``observe``: what is told every event of ``Output.events``.

    Returns:
        How the answer ended for the client.

    Raises:
        Exception: What came out of the sink and is no `OSError`, or out of ``retry`` or ``observe``.
    """
    write = _writing(sink) if isinstance(sink, asyncio.StreamWriter) else sink
    await forward(relayed(source, machine, **how), write)
    return machine.outcome


def relayed(source: Source, machine: Relay, **how: Unpack[How]) -> AsyncRelayed:
    """Forward one answer as an iterator of bytes, for servers that take one. As `relay` otherwise.

    Returns:
        An asynchronous iterator that is its own context: who leaves it early, leaves the upstream.
    """
    clock = asyncio.get_running_loop().time
    driving = Driving(source, machine, clock(), **how)
    return AsyncRelayed(driving, functools.partial(Pump, source), clock)


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
    """
    from ._http import Exchange  # noqa: PLC0415 - h11 comes with an extra

    exchange = Exchange(url, **request)
    reader, writer = await asyncio.open_connection(exchange.host, exchange.port, ssl=exchange.context)

    async def close() -> None:
        # A server that is gone does not say goodbye, and TLS would wait for that.
        writer.transport.abort()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    try:
        writer.write(exchange.request)
        yield await AsyncBody.open(exchange, functools.partial(reader.read, SIZE), close)
    finally:
        await close()


@contextlib.asynccontextmanager
async def open_events(
    url: str, protocol: Given[E_co, A_co], **request: Unpack[Request]
) -> AsyncGenerator[AsyncEvents[E_co, A_co]]:
    """Make a request and read the events of the answer: `open_body` and `iter_events` in one."""
    async with open_body(url, **request) as body, iter_events(body, protocol) as events:
        yield events


def _writing(writer: asyncio.StreamWriter) -> Callable[[bytes], Awaitable[object]]:
    async def write(data: bytes) -> None:
        writer.write(data)
        await writer.drain()

    return write
