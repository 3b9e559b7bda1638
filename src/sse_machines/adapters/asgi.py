"""Event streams for ASGI servers: as a response, as a body, and as a guard around any application.

Everything here runs on asyncio. Starlette is not needed; where it is installed, `EventStreamResponse` is
a response of its, since FastAPI takes no other. This module deliberately knows no upstream: where bytes
and events come from is the application's business.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Mapping,
)
from typing import TYPE_CHECKING, Any, TypeAlias

from .._protocol import Event, Protocol
from .._relay import Relay
from .._relay_config import RelayConfig
from .._relay_events import RelayOutcome
from .._sender import INTERRUPTED
from ..chat import PROTOCOL as CHAT
from ..messages import PROTOCOL as MESSAGES
from ..responses import PROTOCOL as RESPONSES
from ._asgi import Message, Receive, Send, cancel, disconnect, unless
from ._async import AsyncRelayed, aclose as close
from .asyncio import relayed
from .wsgi import HEADERS as _HEADERS, Writing

if TYPE_CHECKING:
    from starlette.responses import Response
else:
    try:
        from starlette.responses import Response
    except ImportError:
        Response = object

__all__ = ["HEADERS", "EventStream", "EventStreamResponse", "SSEGuard"]

HEADERS = [(name.encode(), value.encode()) for name, value in _HEADERS]
"""The headers of an event stream that nothing between server and client is to hold back or change."""
LINGER = 10.0
"""Seconds that a guarded application has to end its response behind the end of the answer, and to leave
when it is told."""

App: TypeAlias = "Callable[[Message, Receive, Send], Awaitable[None]]"

_DEFAULT_CONFIG = RelayConfig()
_OK = 200
_LAST: Message = {"type": "http.response.body", "body": b"", "more_body": False}
_PATHS = {"/chat/completions": CHAT, "/responses": RESPONSES, "/messages": MESSAGES}
# The application itself has ended the answer, and may have something to do behind that.
_ENDED = (RelayOutcome.COMPLETED, RelayOutcome.INCOMPLETE, RelayOutcome.FAILED_UPSTREAM)


class EventStream:
    """The body of a response that streams an answer, as an asynchronous iterable of bytes.

    ::

        StreamingHttpResponse(EventStream(events(), MESSAGES), headers=dict(wsgi.HEADERS))  # Django

    An answer that breaks off does not look complete: if the iterable raises an exception, or ends before
    the answer does, an error in the protocol's own form ends the body. The exception is raised behind
    it, so that the server logs it. The iterable is closed at the end, after an exception, and when
    whoever waits for a chunk is cancelled.

    Args:
        content: An asynchronous iterable of bytes, such as a relay's; with a protocol, also of events
            that a `Sender` writes, and of frames in bytes between them, such as comments.
        protocol: The protocol of the events. None: the bytes are passed on as they are, and nothing
            is added.
        interrupted: What an answer that breaks off tells the client.
    """

    def __init__(
        self,
        content: AsyncIterable[bytes | Event],
        protocol: Protocol[Any, Any] | None = None,
        *,
        interrupted: str = INTERRUPTED,
    ) -> None:
        self._content = content
        self._writing = Writing(protocol, interrupted)

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        items, writing = aiter(self._content), self._writing
        try:
            try:
                async for item in items:
                    if data := writing.write(item):
                        yield data
            except Exception:
                for data in writing.end():
                    yield data
                raise
            for data in writing.end():
                yield data
        finally:
            await close(items)
            await self.aclose()

    async def aclose(self) -> None:
        """Close the iterable, for who has not begun to iterate."""
        await close(self._content)


class EventStreamResponse(Response):
    """A response that streams an answer: for Starlette and FastAPI, and an ASGI application by itself.

    ::

        return EventStreamResponse(events(), MESSAGES)

    The body is an `EventStream`, with one message for each chunk. When the client is gone, the iterable
    is closed at once, also while it waits. Whatever the iterable raises is raised behind the body.

    Args:
        content: As for `EventStream`.
        protocol: The same.
        status_code: The status.
        headers: Further headers, or others than `HEADERS`.
        interrupted: As for `EventStream`.
    """

    def __init__(
        self,
        content: AsyncIterable[bytes | Event],
        protocol: Protocol[Any, Any] | None = None,
        *,
        status_code: int = 200,
        headers: Mapping[str, str] | None = None,
        interrupted: str = INTERRUPTED,
    ) -> None:
        given = {name.lower(): value for name, value in (headers or {}).items()}
        merged = {**dict(_HEADERS), **given}.items()
        self.raw_headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in merged]
        self.status_code = status_code
        # FastAPI puts its tasks here.
        self.background: Any = None
        self._stream = EventStream(content, protocol, interrupted=interrupted)
        self._protocol = protocol
        self._failure: Exception | None = None

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Send the response."""
        await unless(disconnect(receive), self._run(send, bodiless=scope["method"] == "HEAD"))
        if self._failure is not None:
            raise self._failure
        if self.background is not None:
            await self.background()

    async def _run(self, send: Send, *, bodiless: bool) -> None:
        stream, head = self._stream, {"status": self.status_code, "headers": self.raw_headers}
        async with contextlib.aclosing(stream), contextlib.aclosing(aiter(stream)) as chunks:
            await _put(send, {"type": "http.response.start", **head})
            try:
                if not bodiless:
                    async for data in chunks:
                        await _put(send, _part(data))
            except Exception as error:
                # Without a protocol the body says nothing of it, and must not end as a whole one does.
                if self._protocol is None:
                    raise
                self._failure = error
        await _put(send, _LAST)


class SSEGuard:
    """Middleware that gives the streams of any application keep-alives, a stall guard and an end.

    ::

        app = SSEGuard(app, RelayConfig(stall=Stall(idle_progress=90)))

    Every response that streams an answer goes through a `Relay`; everything else passes untouched. The
    application runs in a task, and is slowed down as a slow client would slow it down.

    * An exception of the application ends the stream with an error in the protocol's own form, and is
      raised behind it. A response that is left without its end is an error, too.
    * An application that stalls is cancelled. When the client is gone, it is cancelled as well, unless
      the configuration says that the answer is to be drained. One that listens for a disconnect is told
      first, and has `LINGER` seconds to leave in its own way.
    * Behind the end of the answer the client waits no more. The application can end its response in
      peace; what it still sends is dropped, and after `LINGER` seconds it is left as above.
    * Where the configuration holds output back, nothing is sent before it is let go, not even the
      status. There is no other attempt here: one that fails becomes an error.

    Args:
        app: An ASGI application.
        config: How its streams are relayed.
        protocol: Which protocol they are in, or a function that tells from the scope; None passes the
            request on untouched. Without it the end of the path tells: ``/chat/completions``,
            ``/responses`` or ``/messages``.
    """

    def __init__(
        self,
        app: App,
        config: RelayConfig = _DEFAULT_CONFIG,
        protocol: Protocol[Any, Any] | Callable[[Message], Protocol[Any, Any] | None] | None = None,
    ) -> None:
        self._app = app
        self._config = config
        self._protocol = protocol

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Run the application."""
        protocol = self._protocol_of(scope)
        if protocol is None:
            await self._app(scope, receive, send)
        else:
            await _Exchange(receive, send).run(self._app, scope, protocol, self._config)

    def _protocol_of(self, scope: Message) -> Protocol[Any, Any] | None:
        protocol = self._protocol
        if scope["type"] != "http" or scope["method"] == "HEAD":
            return None
        if isinstance(protocol, Protocol):
            return protocol
        return _by_path(scope) if protocol is None else protocol(scope)


class _Exchange:
    """One request: what its application and its client send, and the guard between them."""

    def __init__(self, receive: Receive, send: Send) -> None:
        future = asyncio.get_running_loop().create_future
        self._receive, self._send = receive, send
        # The start of a stream, when it has come; and whether the application has ended its response.
        self._start: asyncio.Future[Any] = future()
        self._ended: asyncio.Future[None] = future()
        # Whether the client is gone, and whether that is the application's business.
        self._gone: asyncio.Future[None] = future()
        self._left: asyncio.Future[None] = future()
        # The semaphore bounds the chunks, and the end goes past it.
        self._chunks: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()
        self._room = asyncio.Semaphore(1)
        self._inbox: asyncio.Queue[Message | Exception] = asyncio.Queue(1)
        self._listener: asyncio.Task[None] | None = None
        # How many calls of the application wait for the client.
        self._asking = 0

    async def run(
        self, app: App, scope: Message, protocol: Protocol[Any, Any], config: RelayConfig
    ) -> None:
        """Run the application, and relay its response if that is a stream."""
        task = asyncio.ensure_future(app(scope, self.receive, self.send))
        task.add_done_callback(self._returned)
        try:
            await asyncio.wait({task, self._start}, return_when=asyncio.FIRST_COMPLETED)
            if self._start.done():
                self._listen()
                await self._relay(protocol, config)
                if not self._ended.done():
                    # Some, when they are cancelled instead of told, leave tasks behind.
                    await asyncio.wait({task}, timeout=LINGER if self._asking else 0)
                    task.cancel()
            await asyncio.wait({task})
        finally:
            await cancel(*filter(None, [task, self._listener]))
        if not task.cancelled():
            task.result()

    async def send(self, message: Message) -> None:
        """Take what the application sends."""
        if not self._start.done():
            if _opens_stream(message):
                self._start.set_result(message)
            else:
                await self._send(message)
        elif message["type"] == "http.response.body" and not self._ended.done():
            if body := message.get("body"):
                await self._room.acquire()
                self._chunks.put_nowait(body)
            if not message.get("more_body"):
                self._end(None)

    async def receive(self) -> Message:
        """Give the application what its client sends."""
        self._listen()
        self._asking += 1
        try:
            message = await self._inbox.get()
        finally:
            self._asking -= 1
        if isinstance(message, Exception):
            raise message
        return message

    def _listen(self) -> None:
        self._listener = self._listener or asyncio.create_task(self._read())

    async def _read(self) -> None:
        # One message ahead: a body that nobody reads stays where it is.
        while True:
            try:
                message = await self._receive()
            except Exception as error:  # noqa: BLE001 - it is the application's
                await self._inbox.put(error)
                continue
            if message["type"] == "http.disconnect":
                _settle(self._gone)
                if self._start.done():
                    # It also comes behind the end of the body, when the application has not ended yet.
                    await asyncio.wait({self._left})
            await self._inbox.put(message)

    def _returned(self, _task: asyncio.Future[None]) -> None:
        if not self._ended.done():
            self._end(ConnectionAbortedError("the application has not ended its response"))

    def _end(self, last: Exception | None) -> None:
        self._ended.set_result(None)
        self._chunks.put_nowait(last)

    async def _body(self) -> AsyncIterator[bytes]:
        while (chunk := await self._chunks.get()) is not None:
            self._room.release()
            if isinstance(chunk, Exception):
                raise chunk
            yield chunk

    async def _drop(self) -> None:
        while not self._ended.done():
            await self._chunks.get()
            self._room.release()

    async def _relay(self, protocol: Protocol[Any, Any], config: RelayConfig) -> None:
        machine = Relay(protocol, config, now=asyncio.get_running_loop().time())
        async with relayed(self._body(), machine) as body:
            await unless(self._gone, self._forward(body, at_once=config.hold is None))
            body.downstream_closed()
            # Drained, if it is to be; else it ends here.
            await anext(body, None)
        if machine.outcome in _ENDED:
            await unless(asyncio.sleep(LINGER), self._drop())
        self._left.set_result(None)

    async def _forward(self, body: AsyncRelayed, *, at_once: bool) -> None:
        start = [_opening(self._start.result())]
        if at_once:
            await _put(self._send, start.pop())
        async for data in body:
            for message in (*start, _part(data)):
                await _put(self._send, message)
            start.clear()
        await _put(self._send, _LAST)


def _by_path(scope: Message) -> Protocol[Any, Any] | None:
    path: str = scope["path"]
    return next((protocol for end, protocol in _PATHS.items() if path.endswith(end)), None)


def _opens_stream(message: Message) -> bool:
    fields = {name.lower(): value for name, value in message.get("headers", ())}
    kind = fields.get(b"content-type", b"").partition(b";")[0].strip().lower()
    plain = b"content-encoding" not in fields and not message.get("trailers")
    return message.get("status") == _OK and kind == b"text/event-stream" and plain


def _opening(message: Message) -> Message:
    """The start of a stream, whose length is open, and which nothing holds back."""
    headers = [(name, value) for name, value in message["headers"] if name.lower() != b"content-length"]
    given = {name.lower() for name, _ in headers}
    headers += [(name, value) for name, value in HEADERS if name not in given]
    return {**message, "headers": headers}


def _part(data: bytes) -> Message:
    return {"type": "http.response.body", "body": data, "more_body": True}


async def _put(send: Send, message: Message) -> None:
    try:
        await send(message)
    except OSError:
        # It comes to the same as a disconnect: a client that is gone cancels the response.
        raise asyncio.CancelledError from None


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
