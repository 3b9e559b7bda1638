"""A task of trio's that reads a source, and is the only one that awaits it.

This module deliberately knows nothing of what is read.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import AsyncGenerator
from typing import Any

import trio

from ._async import aclose
from ._reading import Chunk


@contextlib.asynccontextmanager
async def nursery() -> AsyncGenerator[trio.Nursery]:
    """A nursery for pumps, out of which an error of the body comes as it is, and not in a group."""
    fault: BaseException | None = None
    async with trio.open_nursery() as tasks:
        try:
            yield tasks
        except BaseException as error:  # noqa: BLE001 - raised below
            fault = error
    if fault is not None:
        raise fault


class Pump:
    """Reads a source one chunk ahead; what its methods do is said where their interface is."""

    def __init__(self, source: Any, tasks: trio.Nursery) -> None:
        self._source = source
        self._tasks = tasks
        self._scope = trio.CancelScope()
        self._send, self._receive = trio.open_memory_channel[Chunk](0)
        self._chunks: list[Chunk] = []
        self._started = self._closed = False
        self._over = trio.Event()
        # What came out of the source's own context, where that was left.
        self._fault: Exception | None = None

    async def _run(self) -> None:
        try:
            with self._scope:
                async with contextlib.AsyncExitStack() as stack:
                    await self._pass_on(stack)
        except Exception as error:  # noqa: BLE001 - it comes out where the source is closed
            self._fault = error
        finally:
            self._over.set()

    async def _pass_on(self, stack: contextlib.AsyncExitStack) -> None:
        chunks: Any = self._source
        try:
            if callable(chunks):
                context: Any = chunks()
                chunks = await stack.enter_async_context(context)
            iterator = aiter(chunks)
            if iterator is not self._source:
                stack.push_async_callback(aclose, iterator)
            async for chunk in iterator:
                await self._send.send(chunk)
            last = None
        except Exception as error:  # noqa: BLE001 - every client library has its own
            last = error
        await self._send.send(last)

    async def ready(self, deadline: float | None = None) -> bool:
        if not self._started and not self._closed:
            self._started = True
            self._tasks.start_soon(self._run)
        with trio.move_on_at(math.inf if deadline is None else deadline):
            await self._look()
        if not self._chunks:
            # After a long pause all comes at once. Data goes before timers: let it be read first.
            await trio.lowlevel.checkpoint()
            self._look_now()
        return bool(self._chunks)

    async def _look(self) -> None:
        if not self._chunks:
            self._look_now()
        if not self._chunks:
            try:
                self._chunks.append(await self._receive.receive())
            except trio.EndOfChannel:
                self._chunks.append(ConnectionAbortedError("the source was closed"))

    def _look_now(self) -> None:
        with contextlib.suppress(trio.WouldBlock, trio.EndOfChannel):
            self._chunks.append(self._receive.receive_nowait())

    def take(self) -> Chunk:
        return self._chunks.pop(0)

    async def aclose(self) -> None:
        if self._closed:
            return
        self._closed = True
        # What is read and not taken would be lost with the task that holds it.
        self._look_now()
        if self._started:
            self._scope.cancel()
            with trio.CancelScope(shield=True):
                await self._over.wait()
        self._send.close()
        if self._fault is not None:
            raise self._fault
        if not callable(self._source):
            await aclose(self._source)
