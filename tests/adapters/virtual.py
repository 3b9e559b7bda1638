"""An asyncio event loop whose time passes only while nothing is to do."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class VirtualLoop(asyncio.SelectorEventLoop):
    """Never waits: where others would sleep, it puts its clock forward."""

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__(_Selector(self))

    def time(self) -> float:
        return self.now


class _Selector(selectors.SelectSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._virtual = loop

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise AssertionError("everything waits for ever")
        self._virtual.now += max(timeout, 0.0)
        return super().select(0)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run to the end, and see that nothing is left: no task, and no generator that nobody closed."""
    loop = VirtualLoop()
    unclosed: list[Any] = []
    loop.set_exception_handler(lambda _loop, context: unclosed.append(context))
    try:
        result = loop.run_until_complete(main)
        assert asyncio.all_tasks(loop) == set()
        return result
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
        assert unclosed == []
