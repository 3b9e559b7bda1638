"""A scripted upstream: answers of models as they come on bad days, for tests and load tests.

Each request gets one of the package's samples; its header ``x-chaos`` says what goes wrong, as in
chaos_script.py; ``times=K`` with it, only for the first K requests of the same ``x-chaos-key``.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections import Counter
from contextlib import suppress
from typing import Any, NamedTuple

import h11
from chaos_script import Steps, steps_of
from typing_extensions import Self

Request = NamedTuple("Request", [("target", str), ("headers", dict[str, str]), ("body", bytes)])  # noqa: UP014 - short


class Chaos:
    """The upstream: where it is, how many answers are open, and what it was asked."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        self.url, self.open, self.requests = "", 0, list[Request]()
        self._address, self._seen, self._tasks = (host, port), Counter[str](), set[Any]()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, *self._address, backlog=2048)
        self.url = f"http://{self._address[0]}:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await asyncio.sleep(0)  # A task that has not begun would not close its connection.
        await asyncio.gather(*(task for task in self._tasks if task.cancel()))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.add(task := asyncio.current_task())
        writer.transport.set_write_buffer_limits(0)  # Makes drain() wait until all is sent.
        with suppress(OSError, EOFError, h11.RemoteProtocolError, asyncio.CancelledError):
            connection, head = h11.Connection(h11.SERVER), await reader.readuntil(b"\r\n\r\n")
            connection.receive_data(head)
            request: Any = connection.next_event()
            headers = {name.decode(): value.decode() for name, value in request.headers}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            steps = self._steps(Request(request.target.decode(), headers, body))
            gone = asyncio.gather(reader.read(), return_exceptions=True)
            gone.add_done_callback(lambda _: task and task.cancel())
            self.open += 1
            try:
                for seconds, data in steps:
                    await asyncio.sleep(seconds)
                    writer.write(data)
                    await writer.drain()
            finally:
                self.open -= 1
        writer.transport.abort()
        self._tasks.discard(task)

    def _steps(self, request: Request) -> Steps:
        self.requests.append(request)
        chaos, key = (request.headers.get(name, "") for name in ("x-chaos", "x-chaos-key"))
        times = re.search(r"times=(\d+)", chaos)
        self._seen[key] += times is not None
        chaos = "" if times and self._seen[key] > int(times[1]) else chaos
        stream = re.search(rb'"stream"\s*:\s*true', request.body) is not None
        return steps_of(request.target.partition("?")[0], chaos, stream=stream)


async def main(port: str = "0") -> None:
    async with Chaos(port=int(port)) as upstream:
        print(upstream.url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
