"""Reading events and driving a relay where waiting is ``await``: the same on asyncio and on trio.

This module deliberately knows neither of them. A pump reads the source and waits; a clock is given.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Generic, Protocol as Interface

from typing_extensions import Self

from .._errors import RemoteProtocolError
from .._protocol import A_co, E_co
from ._driving import Driving
from ._reading import Chunk, Given, Reading, closer

if TYPE_CHECKING:
    # With an extra only.
    from ._http import Exchange


async def aclose(source: object) -> None:
    """Close what can be closed, in whichever way it is closed."""
    close = closer(source)
    closed = None if close is None else close()
    if inspect.isawaitable(closed):
        await closed


class Pump(Interface):
    """Reads a source one chunk ahead. Whoever waits for it can be cancelled, and nothing is lost."""

    async def ready(self, deadline: float | None = None) -> bool:
        """Wait for a chunk; False if there is none at the deadline."""
        ...

    def take(self) -> Chunk:
        """Take the chunk that is ready, and let the next one be read."""
        ...

    async def aclose(self) -> None:
        """Close the source."""
        ...


class AsyncEvents(Generic[E_co, A_co]):
    """The events of an answer, as an iterator and a context.

    Attributes:
        receiver: What judges them.
        response: The head of the HTTP answer, where `open_events` made the request; else None.
    """

    def __init__(self, pump: Pump, protocol: Given[E_co, A_co], response: Any = None) -> None:
        self._reading = Reading(protocol)
        self._pump = pump
        self.receiver = self._reading.receiver
        self.response = response

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> E_co:
        reading, next_event = self._reading, self.receiver.next_event
        try:
            while (event := next_event()) is None:
                if reading.wants_data:
                    await self._pump.ready()
                    reading.feed(self._pump.take())
                else:
                    await self.aclose()
                    if not reading.end():
                        raise StopAsyncIteration
        except RemoteProtocolError as error:
            await self.aclose()
            raise error from reading.cause
        return event

    async def aclose(self) -> None:
        """Close the source. What had come by then can still be taken."""
        await self._pump.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class AsyncRelayed:
    """What a relay puts out, as an iterator of bytes and a context. Each is to be written at once.

    Args:
        driving: The relay.
        pump: Makes what reads the source, once for each attempt.
        clock: Tells the time.
    """

    def __init__(self, driving: Driving, pump: Callable[[], Pump], clock: Callable[[], float]) -> None:
        self._driving = driving
        self._open = pump
        self._pump = pump()
        self._clock = clock

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        driving, clock = self._driving, self._clock
        driving.written(clock())
        while not driving.data:
            if driving.close_upstream:
                await self._pump.aclose()
                if driving.over:
                    raise StopAsyncIteration
                if driving.settle(clock()):
                    self._pump = self._open()
            elif await self._pump.ready(driving.deadline):
                driving.feed(self._pump.take(), clock())
            else:
                driving.timeout(clock())
        return driving.take(clock())

    def downstream_closed(self) -> None:
        """Note that the client is gone. Nothing more comes out, but a relay that drains reads on."""
        self._driving.gone(self._clock())

    async def aclose(self) -> None:
        """End the relay, if it has not ended, and close the source."""
        try:
            self._driving.abandon(self._clock())
        finally:
            await self._pump.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class AsyncBody:
    """The body of an HTTP answer whose head was right, piece by piece.

    Attributes:
        response: The head.
        aclose: Closes the connection.
    """

    def __init__(
        self,
        exchange: Exchange,
        receive: Callable[[], Awaitable[bytes | bytearray]],
        close: Callable[[], Awaitable[None]],
    ) -> None:
        self._exchange = exchange
        self._receive = receive
        self.aclose = close
        self.response = exchange.response

    @classmethod
    async def open(
        cls,
        exchange: Exchange,
        receive: Callable[[], Awaitable[bytes | bytearray]],
        close: Callable[[], Awaitable[None]],
    ) -> Self:
        """Read the head.

        Raises:
            RemoteProtocolError: What `Exchange.opened` raises.
        """
        while not exchange.opened():
            try:
                data = await receive()
            except Exception:
                # A body of which only the error counts may be cut.
                if exchange.response is None:
                    raise
                data = b""
            exchange.feed(data)
        return cls(exchange, receive, close)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        while not (data := self._exchange.take()):
            if data is None:
                raise StopAsyncIteration
            self._exchange.feed(await self._receive())
        return data


async def forward(
    body: AsyncRelayed,
    sink: Callable[[bytes], Awaitable[object]],
    *,
    gone: tuple[type[Exception], ...] = (OSError,),
) -> None:
    """Write what a relay puts out.

    Args:
        body: What it puts out.
        sink: What writes.
        gone: The errors that say that the client is gone.
    """
    async with body:
        async for data in body:
            try:
                await sink(data)
            except gone:
                body.downstream_closed()
