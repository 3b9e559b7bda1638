"""What every application on ASGI needs to leave a request whose client is gone.

This module deliberately knows nothing of streams.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

# What Starlette calls Scope is the same.
Message: TypeAlias = "MutableMapping[str, Any]"
Receive: TypeAlias = "Callable[[], Awaitable[Message]]"
Send: TypeAlias = "Callable[[Message], Awaitable[None]]"


async def disconnect(receive: Receive) -> None:
    """Wait until the client is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def unless(gone: Awaitable[None], work: Awaitable[None]) -> None:
    """Do the work, unless something happens before it is done; then it is cancelled."""
    tasks = [asyncio.ensure_future(work), asyncio.ensure_future(gone)]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await cancel(*tasks)
    for task in tasks:
        if not task.cancelled():
            task.result()


async def cancel(*tasks: asyncio.Future[None]) -> None:
    """Cancel tasks, and wait until they are over."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
