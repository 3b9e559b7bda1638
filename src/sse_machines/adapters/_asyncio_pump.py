"""A task of asyncio's that reads a source, and is the only one that awaits it.

This module deliberately knows nothing of what is read.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import AsyncIterator
from typing import Any

from ._reading import SIZE, Chunk, closer


class Pump:
    """Reads a source one chunk ahead; what its methods do is said where their interface is."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self._chunk: asyncio.Future[Chunk] = asyncio.get_running_loop().create_future()
        self._taken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    async def _run(self) -> None:
        async with contextlib.AsyncExitStack() as stack:
            chunks = self._source
            try:
                if callable(chunks):
                    context: Any = chunks()
                    chunks = await stack.enter_async_context(context)
                async for chunk in _iterate(chunks):
                    self._chunk.set_result(chunk)
                    await self._taken.wait()
                    self._taken.clear()
                self._chunk.set_result(None)
            except Exception as error:  # noqa: BLE001 - every client library has its own
                self._chunk.set_result(error)

    async def ready(self, deadline: float | None = None) -> bool:
        loop = asyncio.get_running_loop()
        self._task = self._task or loop.create_task(self._run())
        if not self._chunk.done():
            await asyncio.wait(
                {self._chunk}, timeout=None if deadline is None else deadline - loop.time()
            )
        if not self._chunk.done():
            # After a long pause all comes at once. Data goes before timers: let it be read first.
            await asyncio.sleep(0)
        return self._chunk.done()

    def take(self) -> Chunk:
        chunk, self._chunk = self._chunk.result(), asyncio.get_running_loop().create_future()
        self._taken.set()
        return chunk

    async def aclose(self) -> None:
        self._closing = self._closing or asyncio.create_task(self._close())
        try:
            await asyncio.shield(self._closing)
        except asyncio.CancelledError:
            await asyncio.wait({self._closing})
            raise

    async def _close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        if not self._chunk.done():
            self._chunk.set_result(ConnectionAbortedError("the source was closed"))
        close = None if callable(self._source) else closer(self._source)
        closed = None if close is None else close()
        if inspect.isawaitable(closed):
            await closed


def _iterate(chunks: Any) -> AsyncIterator[bytes]:
    # Readers of streams, asyncio's and aiohttp's, iterate over lines.
    return _read(chunks) if hasattr(chunks, "at_eof") else aiter(chunks)


async def _read(reader: Any) -> AsyncIterator[bytes]:
    while data := await reader.read(SIZE):
        yield data
