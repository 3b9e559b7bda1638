"""A task of asyncio's that reads a source, and is the only one that awaits it.

This module deliberately knows nothing of what is read.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from ._async import aclose
from ._reading import SIZE, Chunk

_TURNS = 20
"""Turns of the event loop in which a source may end by itself."""


class Pump:
    """Reads a source one chunk ahead; what its methods do is said where their interface is."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self._loop = asyncio.get_running_loop()
        self._chunks: list[Chunk] = []
        # What the owner waits for, and what the task waits for.
        self._arrived = self._room = self._loop.create_future()
        self._task: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    async def _run(self) -> None:
        async with contextlib.AsyncExitStack() as stack:
            chunks = self._source
            try:
                if callable(chunks):
                    context: Any = chunks()
                    chunks = await stack.enter_async_context(context)
                iterator = _iterate(chunks)
                if iterator is not self._source:
                    stack.push_async_callback(aclose, iterator)
                async for chunk in iterator:
                    self._put(chunk)
                    self._room = self._loop.create_future()
                    await self._room
                self._put(None)
            except Exception as error:  # noqa: BLE001 - every client library has its own
                self._put(error)

    def _put(self, chunk: Chunk) -> None:
        self._chunks.append(chunk)
        _settle(self._arrived)

    async def ready(self, deadline: float | None = None) -> bool:
        if not self._chunks:
            self._task = self._task or self._loop.create_task(self._run())
            self._arrived = self._loop.create_future()
            timer = None if deadline is None else self._loop.call_at(deadline, _settle, self._arrived)
            try:
                await self._arrived
            finally:
                if timer is not None:
                    timer.cancel()
        if not self._chunks:
            # After a long pause all comes at once. Data goes before timers: let it be read first.
            await asyncio.sleep(0)
        return bool(self._chunks)

    def take(self) -> Chunk:
        _settle(self._room)
        return self._chunks.pop(0)

    async def aclose(self) -> None:
        self._closing = self._closing or asyncio.create_task(self._close())
        try:
            await asyncio.shield(self._closing)
        except asyncio.CancelledError:
            await asyncio.wait({self._closing})
            raise

    async def _close(self) -> None:
        self._put(ConnectionAbortedError("the source was closed"))
        if self._task is not None:
            # A client that has come to its end tidies up. To cancel it then would leave a connection
            # in its pool that nobody returns; to let it be gives back one that can be used again.
            for _ in range(_TURNS):
                if not self._task.done():
                    await asyncio.sleep(0)
            self._task.cancel()
            await asyncio.wait({self._task})
            if not self._task.cancelled():
                self._task.result()
        if not callable(self._source):
            await aclose(self._source)


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _iterate(chunks: Any) -> AsyncIterator[bytes]:
    # Readers of streams, asyncio's and aiohttp's, iterate over lines.
    return _read(chunks) if hasattr(chunks, "at_eof") else aiter(chunks)


async def _read(reader: Any) -> AsyncIterator[bytes]:
    while data := await reader.read(SIZE):
        yield data
