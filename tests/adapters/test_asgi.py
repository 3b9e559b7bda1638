"""Event streams on ASGI: called directly in virtual time, and frameworks on a real server."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import logging
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import django
import django.conf
import django.http
import django.test
import django.urls
import fastapi
import httpx
import pytest
import starlette.applications
import starlette.background
import starlette.middleware
import starlette.middleware.base
import starlette.responses
import starlette.routing
import uvicorn
from django.core.handlers.asgi import ASGIHandler

from sse_machines import (
    CHAT,
    MESSAGES,
    Drain,
    EndOfStream,
    ErrorTexts,
    Hold,
    KeepAlive,
    Limits,
    LocalProtocolError,
    Outcome,
    Relay,
    RelayConfig,
    RelayOutcome,
    Sender,
    Stall,
)
from sse_machines._frames import BOM
from sse_machines._protocol import Protocol
from sse_machines.adapters import asgi, wsgi
from sse_machines.adapters.asgi import HEADERS, EventStream, EventStreamResponse, SSEGuard
from sse_machines.adapters.asyncio import relayed
from tests.adapters.streams import PROTOCOLS, SAMPLES, events_of, pieces
from tests.adapters.virtual import run
from tests.wire import STOP

SAMPLE = SAMPLES["messages"]
EVENTS: list[Any] = events_of(SAMPLE, MESSAGES)[:-1]
FRAMES = [frame + b"\n\n" for frame in SAMPLE.split(b"\n\n")[:-1]]
PING = b": ping\n\n"
INTERRUPTED = b"Response stream interrupted, please retry"
STALLED = b"The model stopped responding, please retry"
TEXT_HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
}
QUIET = RelayConfig(keepalive=None, stall=None)
PATIENCE = 5.0
DISCONNECT = {"type": "http.disconnect"}
ASKED = {"type": "http.request", "body": b"{}", "more_body": False}
NEVER = 1e9

Message = Any


class Broken(Exception):
    """What an application did not expect."""


class Server:
    """A server's two ends of a request, as an application sees them.

    Args:
        messages: What the client sends: messages, exceptions to raise, times to wait. Then it waits.
        gone_after: After how many messages sent is the client gone? From there on `send` raises.
        slow: How long it takes to send a message of the body.
    """

    def __init__(self, *messages: Any, gone_after: int = sys.maxsize, slow: float = 0) -> None:
        self.messages = list(messages)
        self.gone_after = gone_after
        self.slow = slow
        self.sent: list[Message] = []
        self.times: list[float] = []
        self.receiving = 0
        self.told = asyncio.Event()

    async def receive(self) -> Message:
        assert self.receiving == 0, "two are receiving"
        self.receiving += 1
        try:
            while self.messages:
                message = self.messages.pop(0)
                if isinstance(message, Exception):
                    raise message
                if message == DISCONNECT:
                    self.told.set()
                if isinstance(message, dict):
                    return message
                await asyncio.sleep(message)
            await self.told.wait()
            return DISCONNECT
        finally:
            self.receiving -= 1

    async def send(self, message: Message) -> None:
        if len(self.sent) >= self.gone_after:
            raise BrokenPipeError
        if message["type"] == "http.response.body":
            await asyncio.sleep(self.slow)
        self.sent.append(message)
        self.times.append(asyncio.get_running_loop().time())

    @property
    def start(self) -> Message:
        (start,) = [message for message in self.sent if message["type"] == "http.response.start"]
        assert self.sent[0] is start
        return start

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        return list(self.start["headers"])

    @property
    def chunks(self) -> list[bytes]:
        """The body; all of its messages but the last one say that there is more."""
        return [message["body"] for message in self.body if message["more_body"]]

    @property
    def body(self) -> list[Message]:
        return [message for message in self.sent if message["type"] == "http.response.body"]

    @property
    def complete(self) -> bool:
        lasts = [message for message in self.body if not message["more_body"]]
        assert all(message is self.sent[-1] and message["body"] == b"" for message in lasts)
        return bool(lasts)


class Items:
    """An asynchronous iterator that gives items, waits for times and raises errors; it notes its end."""

    def __init__(self, *items: Any) -> None:
        self.items = list(items)
        self.closed = 0
        self.cancelled = 0

    def __aiter__(self) -> Items:
        return self

    async def __anext__(self) -> Any:
        while self.items:
            item = self.items.pop(0)
            if isinstance(item, BaseException):
                raise item
            if not isinstance(item, int | float):
                return item
            try:
                await asyncio.sleep(item)
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
        raise StopAsyncIteration

    async def aclose(self) -> None:
        await asyncio.sleep(0)
        self.closed += 1


def scope_of(path: str = "/v1/messages", method: str = "POST", kind: str = "http") -> Message:
    scope = {"type": kind, "path": path, "asgi": {"version": "3.0", "spec_version": "2.3"}}
    return {**scope, "method": method, "headers": [], "query_string": b""} if kind == "http" else scope


def respond(
    response: Any, *messages: Any, method: str = "GET", **options: Any
) -> tuple[Server, Exception | None]:
    """Send a response; what was sent, and what was raised."""

    async def main() -> tuple[Server, Exception | None]:
        server = Server(*messages, **options)
        try:
            await response(scope_of(method=method), server.receive, server.send)
        except Exception as error:  # noqa: BLE001 - it is looked at
            return server, error
        return server, None

    return run(main())


def outcome_of(data: bytes, protocol: Protocol[Any] = MESSAGES) -> Outcome:
    last = events_of(data, protocol)[-1]
    assert isinstance(last, EndOfStream)
    return last.outcome


# The response.


def test_the_headers_are_those_of_a_stream_that_nothing_holds_back() -> None:
    assert {name.decode(): value.decode() for name, value in HEADERS} == TEXT_HEADERS
    assert len(HEADERS) == len(TEXT_HEADERS)


def test_events_are_written_as_a_sender_writes_them_one_message_each() -> None:
    items = Items(*EVENTS)
    server, error = respond(EventStreamResponse(items, MESSAGES))
    sender = Sender(MESSAGES)
    assert server.chunks == [sender.send(event) for event in EVENTS]
    assert (server.start["status"], server.headers) == (200, HEADERS)
    assert (server.complete, error, items.closed > 0) == (True, None, True)


def test_bytes_without_a_protocol_are_passed_on_as_they_are() -> None:
    server, error = respond(EventStreamResponse(Items(BOM, b"data: 1", b"", b"\n\n")))
    assert (server.chunks, server.complete, error) == ([BOM, b"data: 1", b"\n\n"], True, None)


def test_frames_in_bytes_stand_between_events_and_count() -> None:
    server, error = respond(EventStreamResponse(Items(PING, *EVENTS[:-1], PING, STOP), MESSAGES))
    assert [server.chunks[0], *server.chunks[-2:]] == [PING, PING, STOP]
    assert (len(server.chunks), server.complete, error) == (len(EVENTS) + 2, True, None)


def test_the_caller_names_the_status_and_overrides_headers_in_any_case() -> None:
    given = {"Cache-Control": "no-store", "X-Request-Id": "1"}
    server, _ = respond(EventStreamResponse(Items(), status_code=201, headers=given))
    assert server.start["status"] == 201
    assert server.headers == [
        (b"content-type", b"text/event-stream; charset=utf-8"),
        (b"cache-control", b"no-store"),
        (b"x-accel-buffering", b"no"),
        (b"x-request-id", b"1"),
    ]


@pytest.mark.parametrize("name", PROTOCOLS)
def test_an_iterable_that_ends_early_ends_with_the_protocols_error(name: str) -> None:
    protocol = PROTOCOLS[name]
    events = events_of(SAMPLES[name], protocol)[:2]
    server, error = respond(EventStreamResponse(Items(*events), protocol))
    assert (len(server.chunks), server.complete, error) == (3, True, None)
    assert INTERRUPTED in server.chunks[-1]
    assert outcome_of(b"".join(server.chunks), protocol) is Outcome.FAILED


@pytest.mark.parametrize("name", PROTOCOLS)
def test_an_exception_is_raised_behind_the_protocols_error(name: str) -> None:
    protocol, items = PROTOCOLS[name], Items(*events_of(SAMPLES[name], PROTOCOLS[name])[:2], Broken())
    server, error = respond(EventStreamResponse(items, protocol, interrupted="Sorry"))
    assert isinstance(error, Broken)
    assert (len(server.chunks), server.complete, items.closed > 0) == (3, True, True)
    assert b"Sorry" in server.chunks[-1]
    assert outcome_of(b"".join(server.chunks), protocol) is Outcome.FAILED


def test_an_exception_behind_the_end_adds_nothing() -> None:
    server, error = respond(EventStreamResponse(Items(*EVENTS, Broken()), MESSAGES))
    assert isinstance(error, Broken)
    assert (len(server.chunks), server.complete) == (len(EVENTS), True)


@pytest.mark.parametrize("broken", [Broken(), ConnectionResetError()])
def test_an_exception_without_a_protocol_leaves_the_body_without_its_end(broken: Exception) -> None:
    items = Items(b"data: 1\n\n", broken)
    server, error = respond(EventStreamResponse(items))
    assert (server.chunks, server.complete, error) == ([b"data: 1\n\n"], False, broken)
    assert items.closed


def test_an_iterables_own_connection_error_is_no_client_that_left() -> None:
    broken = ConnectionResetError()
    server, error = respond(EventStreamResponse(Items(EVENTS[0], broken), MESSAGES))
    assert (len(server.chunks), server.complete, error) == (2, True, broken)


def test_an_event_that_is_not_legal_breaks_the_answer_off() -> None:
    server, error = respond(EventStreamResponse(Items(EVENTS[0], EVENTS[0]), MESSAGES))
    assert isinstance(error, LocalProtocolError)
    assert INTERRUPTED in server.chunks[1]
    assert (len(server.chunks), server.complete) == (2, True)


def test_a_failure_is_raised_although_the_server_says_disconnect_when_the_body_is_over() -> None:
    async def main() -> None:
        server = Server()

        async def send(message: Message) -> None:
            await server.send(message)
            if not message.get("more_body", True):
                server.told.set()
                await asyncio.sleep(1)

        response = EventStreamResponse(Items(EVENTS[0], Broken()), MESSAGES)
        with pytest.raises(Broken):
            await response(scope_of(), server.receive, send)
        assert server.complete

    run(main())


def test_a_head_request_gets_no_body_and_the_iterable_is_closed() -> None:
    items = Items(*EVENTS)
    server, error = respond(EventStreamResponse(items, MESSAGES), method="HEAD")
    assert (server.headers, server.chunks, server.complete, error) == (HEADERS, [], True, None)
    assert items.closed
    assert len(items.items) == len(EVENTS)


def test_a_client_that_disconnects_closes_the_iterable_while_it_waits() -> None:
    items = Items(EVENTS[0], NEVER)
    server, error = respond(EventStreamResponse(items, MESSAGES), ASKED, 3.0, DISCONNECT)
    assert (len(server.chunks), server.complete, error) == (1, False, None)
    assert (items.cancelled, items.closed > 0) == (1, True)


def test_a_client_that_disconnects_closes_a_generator_where_it_stands() -> None:
    ended: list[float] = []

    async def events() -> AsyncIterator[Any]:
        try:
            yield EVENTS[0]
            await asyncio.sleep(NEVER)
        finally:
            ended.append(asyncio.get_running_loop().time())

    respond(EventStreamResponse(events(), MESSAGES), 3.0, DISCONNECT)
    assert ended == [3.0]


@pytest.mark.parametrize("after", range(4))
def test_a_client_that_cannot_be_sent_to_closes_the_iterable(after: int) -> None:
    items = Items(*FRAMES[:2])
    server, error = respond(EventStreamResponse(items), gone_after=after)
    assert (len(server.sent), error) == (after, None)
    assert items.closed
    assert len(items.items) == max(2 - after, 0)


def test_a_client_that_is_slow_and_leaves_meanwhile_closes_the_iterable() -> None:
    items = Items(*EVENTS)
    server, error = respond(EventStreamResponse(items, MESSAGES), 25.0, DISCONNECT, slow=10)
    assert (len(server.sent), error, items.closed > 0) == (3, None, True)


def test_a_server_that_cancels_the_response_closes_the_iterable() -> None:
    async def main() -> None:
        server, items = Server(), Items(EVENTS[0], NEVER)
        response = EventStreamResponse(items, MESSAGES)
        task = asyncio.create_task(response(scope_of(), server.receive, server.send))
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (items.cancelled, items.closed > 0, server.complete) == (1, True, False)

    run(main())


def test_the_iterable_is_closed_before_the_last_message_is_sent() -> None:
    async def main() -> None:
        server, items = Server(), Items(*EVENTS)

        async def send(message: Message) -> None:
            assert message.get("more_body", True) or items.closed
            await server.send(message)

        await EventStreamResponse(items, MESSAGES)(scope_of(), server.receive, send)
        assert server.complete

    run(main())


class Iterable:
    """An asynchronous iterable that is not its own iterator."""

    def __init__(self, *items: Any) -> None:
        self.iterator = Items(*items)
        self.closed = False

    def __aiter__(self) -> Items:
        return self.iterator

    def close(self) -> None:
        self.closed = True


def test_an_iterable_and_its_iterator_are_closed() -> None:
    iterable = Iterable(EVENTS[0], NEVER)
    respond(EventStreamResponse(iterable, MESSAGES), 1.0, DISCONNECT)
    assert (iterable.closed, iterable.iterator.closed) == (True, 1)


def test_what_cannot_be_closed_is_not_closed() -> None:
    class Empty:
        def __aiter__(self) -> Empty:
            return self

        async def __anext__(self) -> bytes:
            raise StopAsyncIteration

    server, error = respond(EventStreamResponse(Empty()))
    assert (server.complete, error) == (True, None)


def test_an_error_of_receive_is_raised_and_the_iterable_closed() -> None:
    broken, items = Broken(), Items(EVENTS[0], NEVER)
    _, error = respond(EventStreamResponse(items, MESSAGES), 1.0, broken)
    assert error is broken
    assert items.closed


def test_a_relay_is_a_body_and_is_over_when_the_client_is() -> None:
    async def main() -> None:
        server, source = Server(1.0, DISCONNECT), Items(SAMPLE[:500], NEVER)
        config = RelayConfig(keepalive=KeepAlive(interval=0.3), stall=None)
        machine = Relay(MESSAGES, config, now=asyncio.get_running_loop().time())
        await EventStreamResponse(relayed(source, machine))(scope_of(), server.receive, server.send)
        assert server.chunks[1:] == [b": keep-alive\n\n"] * 3
        assert (machine.outcome, source.closed) == (RelayOutcome.CANCELLED, 1)

    run(main())


def test_background_tasks_run_behind_the_body_but_not_behind_a_failure() -> None:
    ran: list[int] = []

    def response(*items: Any) -> EventStreamResponse:
        response = EventStreamResponse(Items(*items), MESSAGES)
        response.background = starlette.background.BackgroundTask(ran.append, len(items))
        return response

    async def add(*items: Any) -> None:
        server = Server()
        made = response(*items)

        async def background() -> None:
            assert server.complete
            ran.append(len(items))

        made.background = background
        await made(scope_of(), server.receive, server.send)

    run(add(*EVENTS))
    with pytest.raises(Broken):
        run(add(EVENTS[0], Broken()))
    assert ran == [len(EVENTS)]


def test_a_response_is_starlettes_where_starlette_is() -> None:
    response = EventStreamResponse(Items())
    assert isinstance(response, starlette.responses.Response)
    response.set_cookie("a", "b")
    server, _ = respond(response)
    assert [name for name, _ in server.headers][-1] == b"set-cookie"


ALONE = """
import asyncio, sys
sys.modules["starlette"] = None
from sse_machines.adapters.asgi import EventStreamResponse

async def chunks():
    yield b"data: 1\\n\\n"

async def receive():
    await asyncio.Event().wait()

async def send(message):
    print(message["type"], message.get("body"))

assert EventStreamResponse.__mro__[1:] == (object,)
asyncio.run(EventStreamResponse(chunks())({"type": "http", "method": "GET"}, receive, send))
assert not [name for name in sys.modules if name.startswith(("starlette.", "anyio"))]
"""


def test_a_response_works_where_starlette_is_not() -> None:
    result = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=True)
    body = [r"http.response.body b'data: 1\n\n'", "http.response.body b''"]
    assert result.stdout.splitlines() == ["http.response.start None", *body]


def test_the_module_can_be_loaded_without_starlette(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "starlette.responses", None)
    assert asgi.__file__ is not None
    spec = importlib.util.spec_from_file_location("sse_machines.adapters.alone", asgi.__file__)
    assert spec is not None
    assert spec.loader is not None
    alone: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(alone)
    server, _ = respond(alone.EventStreamResponse(Items(*EVENTS), MESSAGES))
    assert (len(server.chunks), server.complete) == (len(EVENTS), True)


@pytest.mark.parametrize("cancelled", [True, False])
def test_a_body_closes_the_iterable_when_it_is_over_or_cancelled(cancelled: bool) -> None:
    async def main() -> None:
        iterable = Iterable(EVENTS[0], NEVER) if cancelled else Iterable(*EVENTS)

        async def consume() -> None:
            async for _ in EventStream(iterable, MESSAGES):
                pass

        task = asyncio.create_task(consume())
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled() is cancelled
        assert (iterable.iterator.cancelled, iterable.iterator.closed) == (cancelled, 1)
        assert iterable.closed

    run(main())


# The guard.


STREAM_HEADERS = [(b"content-type", b"text/event-stream")]
START = {"type": "http.response.start", "status": 200, "headers": STREAM_HEADERS}
END = {"type": "http.response.body", "body": b"", "more_body": False}


class App:
    """An application that does as it is told, after it has read the request.

    Args:
        steps: Bytes to send, messages to send, times to wait, errors to raise.
        start: How the response starts.
        reads: Whether to read the request first.

    Attributes:
        received: What it has received.
        sent: How many steps are done.
        left: When it was left, and by what.
    """

    def __init__(self, *steps: Any, start: Message = START, reads: bool = True) -> None:
        self.steps = (start, *steps)
        self.reads = reads
        self.received: list[Message] = []
        self.done = 0
        self.left: tuple[float, str] = (-1, "")

    async def __call__(self, scope: Message, receive: Any, send: Any) -> None:
        self.scope, self.receive, self.send = scope, receive, send
        try:
            while self.reads and not self.received:
                self.received.append(await receive())
            for step in self.steps:
                await self.do(step)
                self.done += 1
            self.left = asyncio.get_running_loop().time(), ""
        except BaseException as error:
            self.left = asyncio.get_running_loop().time(), type(error).__name__
            raise

    async def do(self, step: Any) -> None:
        if isinstance(step, BaseException):
            raise step
        if isinstance(step, bytes):
            await self.send({"type": "http.response.body", "body": step, "more_body": True})
        elif isinstance(step, dict):
            await self.send(step)
        elif callable(step):
            await step(self)
        else:
            await asyncio.sleep(step)


async def listen(app: App) -> None:
    app.received.append(await app.receive())


def guard(
    app: Any,
    *messages: Any,
    config: RelayConfig = QUIET,
    scope: Message | None = None,
    protocol: Any = None,
    **options: Any,
) -> tuple[Server, Exception | None]:
    """Make a request of a guarded application; what was sent, and what was raised."""

    async def main() -> tuple[Server, Exception | None]:
        server = Server(*(messages or [ASKED]), **options)
        guarded = SSEGuard(app, config, protocol)
        try:
            await guarded(scope or scope_of(), server.receive, server.send)
        except Exception as error:  # noqa: BLE001 - it is looked at
            return server, error
        return server, None

    return run(main())


def body_of(server: Server) -> bytes:
    return b"".join(server.chunks)


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/openai/v1/responses", "/messages"])
def test_the_path_tells_the_protocol(path: str) -> None:
    name = {"completions": "chat"}.get(path.rpartition("/")[2], path.rpartition("/")[2])
    half = SAMPLES[name][:900]
    server, error = guard(App(half, END), scope=scope_of(path))
    assert (server.complete, error) == (True, None)
    assert outcome_of(body_of(server), PROTOCOLS[name]) is Outcome.FAILED
    assert body_of(server).count(INTERRUPTED) == 1


@pytest.mark.parametrize("name", PROTOCOLS)
def test_an_answer_passes_unchanged(name: str) -> None:
    sample = SAMPLES[name]
    app = App(*pieces(sample, 100), END)
    server, error = guard(app, protocol=PROTOCOLS[name], scope=scope_of("/"))
    assert (body_of(server), server.complete, error) == (sample, True, None)
    assert app.left == (0, "")


def test_a_function_tells_the_protocol_from_the_scope() -> None:
    def protocol(scope: Message) -> Protocol[Any] | None:
        return CHAT if scope["path"] == "/chat" else None

    server, _ = guard(App(END), scope=scope_of("/chat"), protocol=protocol)
    assert server.chunks[0].startswith(b'data: {"error"')
    server, _ = guard(App(END), scope=scope_of("/v1/messages"), protocol=protocol)
    assert server.sent == [START, END]


@pytest.mark.parametrize(
    "scope",
    [
        scope_of(kind="websocket"),
        {"type": "lifespan"},
        scope_of(method="HEAD"),
        scope_of("/v1/models"),
        scope_of("/v1/messages/count_tokens"),
    ],
)
def test_what_is_no_stream_by_its_scope_is_not_touched(scope: Message) -> None:
    async def main() -> None:
        server, app = Server(ASKED), App(b"half", END)
        receive, send = server.receive, server.send
        await SSEGuard(app, QUIET)(scope, receive, send)
        assert (app.scope, app.receive, app.send) == (scope, receive, send)
        assert server.sent[0] is START

    run(main())


@pytest.mark.parametrize(
    "start",
    [
        {**START, "headers": [(b"content-type", b"application/json")]},
        {**START, "headers": [(b"content-type", b"text/event-streams")]},
        {**START, "headers": [*STREAM_HEADERS, (b"Content-Encoding", b"gzip")]},
        {**START, "status": 500},
        {**START, "trailers": True},
        {"type": "http.response.start", "status": 200},
    ],
)
def test_what_is_no_stream_by_its_start_is_not_touched(start: Message) -> None:
    first = {"type": "http.response.debug", "info": {}}
    body = {"type": "http.response.body", "body": b"half"}
    app = App(start, body, start=first)
    server, error = guard(app)
    assert server.sent == [first, start, body]
    assert server.sent[1] is start
    assert error is None


def test_the_length_of_a_stream_is_open_and_nothing_holds_it_back() -> None:
    given = [(b"Content-Type", b"Text/Event-Stream ; charset=utf-8"), (b"Content-Length", b"5")]
    server, _ = guard(App(SAMPLE, END, start={**START, "headers": given}))
    assert server.headers == [given[0], *HEADERS[1:]]
    given = [(b"content-type", b"text/event-stream"), (b"Cache-Control", b"no-store"), (b"a", b"b")]
    server, _ = guard(App(SAMPLE, END, start={**START, "headers": given}))
    assert server.headers == [*given, HEADERS[2]]


def test_a_silent_application_gets_keep_alives_between_its_events() -> None:
    config = RelayConfig(keepalive=KeepAlive(interval=10, text="wait"), stall=None)
    app = App(25.0, FRAMES[0][:20], 20.0, FRAMES[0][20:], b"".join(FRAMES[1:]), END)
    server, error = guard(app, config=config)
    assert (server.chunks[:4], error) == ([b": wait\n\n"] * 4, None)
    assert server.times[:6] == [0, 10, 20, 30, 40, 45]
    assert body_of(server) == b": wait\n\n" * 4 + SAMPLE


def test_an_application_that_stalls_is_cancelled_behind_an_error() -> None:
    app = App(FRAMES[0], NEVER)
    server, error = guard(app, config=RelayConfig(stall=Stall(idle_progress=30), keepalive=None))
    assert STALLED in server.chunks[-1]
    assert (len(server.chunks), server.complete, error) == (2, True, None)
    assert (server.times[-1], app.left) == (30, (30, "CancelledError"))


@pytest.mark.parametrize("broken", [Broken(), ConnectionResetError()])
def test_an_exception_in_the_middle_is_raised_behind_an_error(broken: Exception) -> None:
    texts = ErrorTexts(interrupted="Sorry")
    server, error = guard(App(FRAMES[0], broken), config=RelayConfig(errors=texts))
    assert (len(server.chunks), server.complete, error) == (2, True, broken)
    assert b"Sorry" in server.chunks[1]


def test_an_exception_between_start_and_body_is_raised_behind_an_error() -> None:
    broken = Broken()
    server, error = guard(App(broken))
    assert (len(server.chunks), server.complete, error) == (1, True, broken)


def test_an_exception_before_the_start_is_simply_raised() -> None:
    broken = Broken()
    server, error = guard(App(start=broken))
    assert (server.sent, error) == ([], broken)


def test_an_exception_behind_the_end_is_raised() -> None:
    broken = Broken()
    server, error = guard(App(SAMPLE, END, broken))
    assert (body_of(server), server.complete, error) == (SAMPLE, True, broken)


def test_an_application_that_cancels_itself_breaks_the_answer_off() -> None:
    server, error = guard(App(FRAMES[0], asyncio.CancelledError()))
    assert (len(server.chunks), server.complete, error) == (2, True, None)


def test_a_response_without_its_end_is_no_clean_end() -> None:
    # An answer that lacks nothing but its mark is repaired where it ends cleanly, and only there.
    sample = SAMPLES["chat"].removesuffix(b"data: [DONE]\n\n")
    server, error = guard(App(sample, END), protocol=CHAT)
    assert (body_of(server), error) == (SAMPLES["chat"], None)
    server, error = guard(App(sample), protocol=CHAT)
    assert body_of(server).startswith(sample + b'data: {"error"')
    assert (server.complete, error) == (True, None)


def test_the_body_may_come_with_the_last_message() -> None:
    server, _ = guard(App({**END, "body": SAMPLE}))
    assert (body_of(server), server.complete) == (SAMPLE, True)


def test_messages_that_are_no_body_or_behind_it_are_left_out_of_a_stream() -> None:
    debug = {"type": "http.response.debug", "info": {}}
    server, error = guard(App(debug, SAMPLE, debug, END, PING, END))
    assert (body_of(server), server.complete, error) == (SAMPLE, True, None)
    assert debug not in server.sent


def test_a_slow_client_slows_the_application_down() -> None:
    app = App(*FRAMES, END)

    async def main() -> None:
        server = Server(ASKED, slow=10)
        task = asyncio.create_task(SSEGuard(app, QUIET)(scope_of(), server.receive, server.send))
        for step in range(1, 8):
            await asyncio.sleep(10)
            # One is being sent, one is read ahead, one is in the queue; and the start.
            assert app.done <= step + 3
        await task
        assert server.chunks == FRAMES

    run(main())


def test_a_client_that_is_slow_is_not_the_applications_fault() -> None:
    config = RelayConfig(stall=Stall(idle_progress=5), keepalive=None)
    server, error = guard(App(*FRAMES, END), config=config, slow=10)
    assert (server.chunks, error) == (FRAMES, None)


# The client.


@pytest.mark.parametrize("reads", [True, False])
def test_a_client_that_disconnects_cancels_the_application(reads: bool) -> None:
    app = App(FRAMES[0], NEVER, reads=reads)
    server, error = guard(app, ASKED, 3.0, DISCONNECT)
    assert (server.chunks, server.complete, error) == ([FRAMES[0]], False, None)
    assert app.left == (3, "CancelledError")


@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_client_that_cannot_be_sent_to_cancels_the_application(after: int) -> None:
    app = App(1.0, FRAMES[0], 1.0, FRAMES[1], NEVER)
    server, error = guard(app, gone_after=after)
    assert (len(server.sent), error) == (after, None)
    assert app.left == (after, "CancelledError")


def test_a_client_that_leaves_before_the_last_message_is_no_failure() -> None:
    app = App(SAMPLE, END)
    server, error = guard(app, gone_after=2)
    assert (body_of(server), server.complete, error, app.left) == (SAMPLE, False, None, (0, ""))


def test_an_application_that_is_blocked_is_cancelled_too() -> None:
    app = App(*FRAMES, END)
    _, error = guard(app, ASKED, 25.0, DISCONNECT, slow=10)
    assert (app.left, error) == ((25, "CancelledError"), None)


def test_an_application_that_listens_is_told_and_leaves_in_its_own_way() -> None:
    async def stream(app: App) -> None:
        await listen(app)
        await asyncio.sleep(2)

    app = App(FRAMES[0], stream)
    server, error = guard(app, ASKED, 3.0, DISCONNECT)
    assert (app.received, app.left, error) == ([ASKED, DISCONNECT], (5, ""), None)
    assert not server.complete


def test_an_application_that_does_not_leave_when_it_is_told_is_cancelled() -> None:
    app = App(FRAMES[0], listen, NEVER)
    _, error = guard(app, ASKED, 3.0, DISCONNECT)
    assert (app.left, error) == ((3 + asgi.LINGER, "CancelledError"), None)


def test_an_application_that_is_cancelled_and_asks_then_is_told() -> None:
    async def ask_when_cancelled(app: App) -> None:
        try:
            await asyncio.sleep(NEVER)
        finally:
            await listen(app)

    app = App(ask_when_cancelled)
    _, error = guard(app, ASKED, 3.0, DISCONNECT)
    assert (app.received, error) == ([ASKED, DISCONNECT], None)
    assert app.left == (3, "CancelledError")


def test_an_application_is_told_as_ever_while_it_streams_nothing() -> None:
    app = App(listen, listen, END, start={**START, "status": 201})
    _, error = guard(app, ASKED, 3.0, DISCONNECT)
    assert (app.received, app.left, error) == ([ASKED, DISCONNECT, DISCONNECT], (3, ""), None)


def test_a_stream_that_starts_behind_a_disconnect_is_left() -> None:
    app = App(START, NEVER, start=1.0)
    _, error = guard(app, ASKED, 0.5, DISCONNECT)
    assert (app.left, error) == ((1, "CancelledError"), None)


def test_a_body_that_is_not_read_yet_stays_the_applications() -> None:
    parts = [{"type": "http.request", "body": bytes([n]), "more_body": n < 4} for n in range(5)]
    app = App(FRAMES[0], *(step for _ in parts for step in (1.0, listen)), NEVER, reads=False)
    _, error = guard(app, *parts, 20.0, DISCONNECT)
    assert (app.received, error) == (parts, None)
    # The last part is read ahead when the one before it is taken, at four; the disconnect behind it.
    assert app.left == (24, "CancelledError")


def test_nothing_is_read_of_a_body_that_nobody_asks_for() -> None:
    async def main() -> None:
        server = Server(ASKED)
        await SSEGuard(App(END, start={**START, "status": 401}, reads=False), QUIET)(
            scope_of(), server.receive, server.send
        )
        assert server.messages == [ASKED]

    run(main())


def test_an_error_of_receive_is_the_applications() -> None:
    broken = Broken()
    server, error = guard(App(), broken)
    assert (server.sent, error) == ([], broken)


def test_a_server_that_cancels_the_request_cancels_the_application() -> None:
    async def main() -> None:
        server, app = Server(ASKED), App(FRAMES[0], NEVER)
        task = asyncio.create_task(SSEGuard(app, QUIET)(scope_of(), server.receive, server.send))
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert app.left == (1, "CancelledError")

    run(main())


def test_what_an_application_raises_when_it_is_cancelled_is_raised() -> None:
    async def fail(_: App) -> None:
        try:
            await asyncio.sleep(NEVER)
        finally:
            raise Broken

    _, error = guard(App(fail), ASKED, 1.0, DISCONNECT)
    assert isinstance(error, Broken)


def test_an_answer_is_drained_where_it_is_to_be() -> None:
    app = App(FRAMES[0], 5.0, b"".join(FRAMES[1:]), END)
    config = RelayConfig(drain=Drain(max_seconds=30), keepalive=None)
    server, error = guard(app, ASKED, 1.0, DISCONNECT, config=config)
    assert (server.chunks, server.complete, error, app.left) == ([FRAMES[0]], False, None, (5, ""))
    app = App(FRAMES[0], 1.0, FRAMES[1], 5.0, b"".join(FRAMES[2:]), END)
    server, error = guard(app, config=config, gone_after=2)
    assert (len(server.sent), error, app.left) == (2, None, (6, ""))


def test_draining_has_its_limit() -> None:
    app = App(FRAMES[0], NEVER)
    config = RelayConfig(drain=Drain(max_seconds=30), keepalive=None, stall=None)
    _, error = guard(app, ASKED, 1.0, DISCONNECT, config=config)
    assert (app.left, error) == ((31, "CancelledError"), None)


def test_an_application_that_listens_is_not_told_while_it_is_drained() -> None:
    async def stream(app: App) -> None:
        listener = asyncio.create_task(app.receive())
        await asyncio.sleep(5)
        assert not listener.done()
        await app.do(SAMPLE)
        await app.do(END)
        assert await listener == DISCONNECT

    config = RelayConfig(drain=Drain(max_seconds=30), keepalive=None)
    app = App(stream)
    _, error = guard(app, ASKED, 1.0, DISCONNECT, config=config)
    assert (app.left, error) == ((5, ""), None)


# Behind the end.


class Closing(Server):
    """A server that tells the application of a disconnect when the response is over, as servers do."""

    async def send(self, message: Message) -> None:
        await super().send(message)
        if message.get("more_body") is False:
            self.told.set()


def test_the_client_waits_no_more_but_the_application_ends_in_peace() -> None:
    async def main() -> None:
        server = Closing(ASKED)
        app = App(SAMPLE, 5.0, PING, PING, PING, 1.0, END, 100.0, listen)
        await SSEGuard(app, QUIET)(scope_of(), server.receive, server.send)
        assert (body_of(server), server.complete, server.times[-1]) == (SAMPLE, True, 0)
        # What runs behind the end of the response has all the time.
        assert (app.left, app.received) == ((106, ""), [ASKED, DISCONNECT])

    run(main())


def test_an_application_that_listens_meanwhile_is_not_torn_away() -> None:
    async def stream(app: App) -> None:
        listener = asyncio.create_task(app.receive())
        await app.do(SAMPLE)
        await asyncio.sleep(5)
        assert not listener.done()
        await app.do(END)
        assert await listener == DISCONNECT

    async def main() -> None:
        server, app = Closing(ASKED), App(stream)
        await SSEGuard(app, QUIET)(scope_of(), server.receive, server.send)
        assert app.left == (5, "")

    run(main())


def test_an_application_that_never_ends_its_response_is_cancelled() -> None:
    app = App(SAMPLE, NEVER)
    server, error = guard(app)
    assert (body_of(server), server.complete, server.times[-1], error) == (SAMPLE, True, 0, None)
    assert app.left == (asgi.LINGER, "CancelledError")


def test_an_application_that_sends_for_ever_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asgi, "LINGER", 0.02)

    async def stream(app: App) -> None:
        while True:
            await app.do(PING)

    async def main() -> None:
        server, app = Server(ASKED), App(SAMPLE, stream)
        await SSEGuard(app, QUIET)(scope_of(), server.receive, server.send)
        assert (body_of(server), app.left[1]) == (SAMPLE, "CancelledError")

    asyncio.run(asyncio.wait_for(main(), PATIENCE))


ENDS = [
    ("messages", FRAMES[0] + Sender(MESSAGES).interrupt("Overloaded"), Outcome.FAILED),
    (
        "responses",
        SAMPLES["responses"].replace(b"response.completed", b"response.incomplete"),
        Outcome.INCOMPLETE,
    ),
]


@pytest.mark.parametrize(("name", "answer", "outcome"), ENDS)
def test_every_end_of_the_applications_own_lets_it_go_on(
    name: str, answer: bytes, outcome: Outcome
) -> None:
    assert outcome_of(answer, PROTOCOLS[name]) is outcome
    app = App(answer, 5.0, END)
    server, error = guard(app, protocol=PROTOCOLS[name])
    assert (body_of(server), server.complete, error, app.left) == (answer, True, None, (5, ""))


@pytest.mark.parametrize("body", [b"<html>\n\n", b"data: " + b"x" * 2000])
def test_what_is_no_answer_is_cancelled_at_once(body: bytes) -> None:
    app = App(body, NEVER)
    config = RelayConfig(limits=Limits(max_event_size=1000), keepalive=None)
    server, error = guard(app, config=config)
    assert (len(server.chunks), server.complete, error) == (1, True, None)
    assert outcome_of(body_of(server)) is Outcome.FAILED
    assert app.left == (0, "CancelledError")


# Held back.


HOLDING = RelayConfig(hold=Hold(), keepalive=None, stall=Stall(idle_progress=30))


def test_nothing_is_sent_before_there_is_output() -> None:
    app = App(FRAMES[0], 5.0, b"".join(FRAMES[1:]), END)
    server, error = guard(app, config=HOLDING)
    assert (server.times[0], body_of(server), server.complete, error) == (5, SAMPLE, True, None)


@pytest.mark.parametrize("last", [NEVER, Broken(), END])
def test_an_attempt_that_fails_before_output_becomes_an_error(last: Any) -> None:
    server, error = guard(App(FRAMES[0], last), config=HOLDING)
    assert server.start["status"] == 200
    assert (outcome_of(body_of(server)), server.complete) == (Outcome.FAILED, True)
    assert error is (last if isinstance(last, Exception) else None)


def test_keep_alives_before_output_bring_the_start_along() -> None:
    keepalive = KeepAlive(interval=2, before_output=True)
    app = App(FRAMES[0], 5.0, b"".join(FRAMES[1:]), END)
    server, _ = guard(app, config=RelayConfig(hold=Hold(), keepalive=keepalive))
    assert server.headers == [*STREAM_HEADERS, *HEADERS[1:]]
    assert server.times[:3] == [2, 2, 4]
    assert body_of(server) == b": keep-alive\n\n" * 2 + SAMPLE


def test_a_client_that_leaves_before_output_is_sent_nothing() -> None:
    app = App(FRAMES[0], NEVER)
    server, error = guard(app, ASKED, 3.0, DISCONNECT, config=HOLDING)
    assert (server.sent, error, app.left) == ([], None, (3, "CancelledError"))


def test_requests_do_not_know_of_each_other() -> None:
    async def main() -> None:
        async def app(scope: Message, receive: Any, send: Any) -> None:
            await App(*pieces(SAMPLES[scope["name"]], 50), END)(scope, receive, send)

        guarded = SSEGuard(app, QUIET, lambda scope: PROTOCOLS[scope["name"]])
        servers = {name: Server(ASKED, slow=1) for name in PROTOCOLS}
        calls = [
            guarded({**scope_of(), "name": name}, server.receive, server.send)
            for name, server in servers.items()
        ]
        await asyncio.gather(*calls)
        assert {name: body_of(server) for name, server in servers.items()} == SAMPLES

    run(main())


# Servers.


@contextlib.contextmanager
def serving(app: Any) -> Iterator[str]:
    """Serve an application on uvicorn; gives the URL. Nothing is left behind: no task, no generator."""
    left: list[Any] = []

    async def checked(scope: Any, receive: Any, send: Any) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: left.append(context))
        await app(scope, receive, send)

    config = uvicorn.Config(checked, log_config=None, lifespan="off", ws="none")
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1/messages"
        finally:
            server.should_exit = True
            thread.join()
    assert left == []


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with httpx.Client(trust_env=False, timeout=PATIENCE) as client:
        yield client


class Events:
    """Events of an answer, from a generator that notes in which way it was left.

    Args:
        steps: Events, errors to raise, conditions to wait for; behind them it waits for ever.
    """

    def __init__(self, *steps: Any) -> None:
        self.steps = steps
        self.left = threading.Event()

    async def __aiter__(self) -> AsyncIterator[Any]:
        try:
            for step in self.steps:
                if isinstance(step, Exception):
                    raise step
                if isinstance(step, threading.Event):
                    await asyncio.to_thread(step.wait, PATIENCE)
                else:
                    yield step
        finally:
            self.left.set()


class Endless(Events):
    async def __aiter__(self) -> AsyncIterator[Any]:
        try:
            for step in self.steps:
                yield step
            await asyncio.Event().wait()
        finally:
            self.left.set()


def starlette_app(respond: Callable[[], Any]) -> Any:
    async def answer(_request: Any) -> Any:
        return respond()

    route = starlette.routing.Route("/v1/messages", answer, methods=["GET", "POST"])
    return starlette.applications.Starlette(routes=[route])


def fastapi_app(respond: Callable[[], Any]) -> Any:
    app = fastapi.FastAPI()

    async def answer() -> Any:
        return respond()

    app.add_api_route("/v1/messages", answer, methods=["GET", "POST"], response_model=None)
    return app


class Untouching(starlette.middleware.base.BaseHTTPMiddleware):
    async def dispatch(self, request: Any, call_next: Any) -> Any:
        return await call_next(request)


def middleware_app(respond: Callable[[], Any]) -> Any:
    return Untouching(starlette_app(respond))


class Newer:
    """Says that the server is of a newer kind, with which Starlette does not listen for a disconnect."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        version = {"version": "3.0", "spec_version": "2.4"}
        await self.app({**scope, "asgi": version}, receive, send)


def newer_app(respond: Callable[[], Any]) -> Any:
    return Newer(starlette_app(respond))


APPS = {"starlette": starlette_app, "fastapi": fastapi_app, "middleware": middleware_app}
GUARDED = {**APPS, "newer": newer_app}


def leave(url: str, method: str = "POST") -> None:
    """Ask, read the beginning of the answer, and be gone."""
    with (
        httpx.Client(trust_env=False, timeout=PATIENCE) as client,
        client.stream(method, url) as response,
    ):
        data = b""
        for chunk in response.iter_raw():
            data += chunk
            if b"message_start" in data:
                return


@pytest.mark.parametrize("name", APPS)
def test_a_framework_sends_the_response_event_by_event(name: str, client: httpx.Client) -> None:
    seen = threading.Event()
    events = Events(EVENTS[0], seen, *EVENTS[1:])
    with (
        serving(APPS[name](lambda: EventStreamResponse(events, MESSAGES))) as url,
        client.stream("POST", url, json={}) as response,
    ):
        assert TEXT_HEADERS.items() <= dict(response.headers).items()
        assert "content-length" not in response.headers
        chunks = response.iter_raw()
        assert next(chunks) == FRAMES[0]
        seen.set()
        assert b"".join(chunks) == b"".join(FRAMES[1:])
    assert events.left.is_set()


@pytest.mark.parametrize("name", APPS)
def test_a_client_that_leaves_closes_the_events_within_a_second(name: str) -> None:
    events = Endless(EVENTS[0])
    with serving(APPS[name](lambda: EventStreamResponse(events, MESSAGES))) as url:
        leave(url)
        assert events.left.wait(1)


@pytest.mark.parametrize("name", ["starlette", "fastapi"])
def test_a_failure_is_told_to_the_client_and_logged_by_the_server(
    name: str, client: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    events = Events(EVENTS[0], Broken("that is why"))
    with serving(APPS[name](lambda: EventStreamResponse(events, MESSAGES))) as url:
        response = client.post(url, json={})
        assert outcome_of(response.content) is Outcome.FAILED
    (record,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "that is why"


def test_a_framework_answers_a_head_request_without_the_body(client: httpx.Client) -> None:
    events = Endless(EVENTS[0])
    app = starlette_app(lambda: EventStreamResponse(events, MESSAGES))
    with serving(app) as url:
        response = client.head(url)
        assert (response.status_code, response.content) == (200, b"")
        assert TEXT_HEADERS.items() <= dict(response.headers).items()


def test_fastapi_runs_its_background_tasks_behind_the_response(client: httpx.Client) -> None:
    ran = threading.Event()
    app = fastapi.FastAPI()

    async def answer(tasks: fastapi.BackgroundTasks) -> Any:
        tasks.add_task(ran.set)
        return EventStreamResponse(Events(*EVENTS), MESSAGES)

    app.add_api_route("/v1/messages", answer, response_model=None)
    with serving(app) as url:
        assert client.get(url).content == SAMPLE
        assert ran.wait(PATIENCE)


def streaming(items: Any) -> Callable[[], Any]:
    return lambda: starlette.responses.StreamingResponse(items, media_type="text/event-stream")


FAST = RelayConfig(keepalive=KeepAlive(interval=0.02), stall=Stall(idle_progress=0.1))
PATIENT = RelayConfig(keepalive=KeepAlive(interval=0.02), stall=None)


@pytest.mark.parametrize("name", GUARDED)
def test_a_guarded_answer_arrives_with_keep_alives(name: str, client: httpx.Client) -> None:
    go_on = threading.Event()
    items = Events(FRAMES[0], go_on, *FRAMES[1:])
    app = SSEGuard(GUARDED[name](streaming(items)), PATIENT)
    with serving(app) as url, client.stream("POST", url, json={}) as response:
        assert response.headers["x-accel-buffering"] == "no"
        data = b""
        for chunk in response.iter_raw():
            data += chunk
            if data.count(b": keep-alive\n\n") >= 3:
                go_on.set()
    assert outcome_of(data) is Outcome.COMPLETED
    assert data.replace(b": keep-alive\n\n", b"") == SAMPLE.replace(b": keep-alive\n\n", b"")


@pytest.mark.parametrize("name", GUARDED)
def test_a_guarded_application_that_stalls_is_ended(name: str, client: httpx.Client) -> None:
    items = Endless(FRAMES[0])
    with serving(SSEGuard(GUARDED[name](streaming(items)), FAST)) as url:
        data = client.post(url, json={}).content
        assert STALLED in data
        assert outcome_of(data) is Outcome.FAILED
        assert items.left.wait(1)


@pytest.mark.parametrize("name", ["starlette", "fastapi", "newer"])
def test_a_guarded_application_that_fails_is_ended_and_logged(
    name: str, client: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    items = Events(FRAMES[0], Broken("that is why"))
    with serving(SSEGuard(GUARDED[name](streaming(items)), PATIENT)) as url:
        data = client.post(url, json={}).content
        assert outcome_of(data) is Outcome.FAILED
        assert INTERRUPTED in data
    (record,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert record.exc_info is not None
    assert "that is why" in str(record.exc_info[1])


@pytest.mark.parametrize("name", GUARDED)
def test_a_guarded_application_that_never_ends_holds_no_client_up(
    name: str, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asgi, "LINGER", 0.05)
    items = Endless(SAMPLE)
    with serving(SSEGuard(GUARDED[name](streaming(items)), PATIENT)) as url:
        assert client.post(url, json={}).content == SAMPLE
        assert items.left.wait(1)


@pytest.mark.parametrize("name", GUARDED)
def test_a_guarded_application_can_go_on_behind_the_answer(name: str, client: httpx.Client) -> None:
    go_on, finished = threading.Event(), threading.Event()

    async def answer() -> AsyncIterator[bytes]:
        yield SAMPLE
        await asyncio.to_thread(go_on.wait, PATIENCE)
        finished.set()

    with serving(SSEGuard(GUARDED[name](streaming(answer())), PATIENT)) as url:
        assert client.post(url, json={}).content == SAMPLE
        assert not finished.is_set()
        go_on.set()
        assert finished.wait(1)


@pytest.mark.parametrize("name", GUARDED)
@pytest.mark.parametrize("config", [PATIENT, QUIET])
def test_a_client_that_leaves_cancels_a_guarded_application(name: str, config: RelayConfig) -> None:
    items = Endless(FRAMES[0])
    with serving(SSEGuard(GUARDED[name](streaming(items)), config)) as url:
        leave(url)
        assert items.left.wait(1)


def test_a_guard_is_starlettes_middleware_and_leaves_all_else_alone(client: httpx.Client) -> None:
    app = starlette_app(lambda: starlette.responses.JSONResponse({"a": 1}))
    app.add_middleware(SSEGuard, config=FAST)
    with serving(app) as url:
        assert client.post(url, json={}).json() == {"a": 1}
        assert client.get(url + "/else").status_code == 404


@contextlib.contextmanager
def django_app(respond: Callable[[], Any]) -> Iterator[Any]:
    async def answer(_request: Any) -> Any:
        return respond()

    if not django.conf.settings.configured:
        django.conf.settings.configure(ALLOWED_HOSTS=["*"], LOGGING_CONFIG=None)
        django.setup()
    path = django.urls.path("v1/messages", answer)
    with django.test.override_settings(ROOT_URLCONF=(path,)):
        yield ASGIHandler()


def django_response(body: Any) -> Any:
    return django.http.StreamingHttpResponse(body, headers=dict(wsgi.HEADERS))


def test_django_sends_events_one_by_one(client: httpx.Client) -> None:
    seen = threading.Event()
    events = Events(EVENTS[0], seen, *EVENTS[1:])
    with (
        django_app(lambda: django_response(EventStream(events, MESSAGES))) as app,
        serving(app) as url,
        client.stream("GET", url) as response,
    ):
        assert TEXT_HEADERS.items() <= dict(response.headers).items()
        chunks = response.iter_raw()
        assert next(chunks) == FRAMES[0]
        seen.set()
        assert b"".join(chunks) == b"".join(FRAMES[1:])


def test_django_closes_the_events_when_the_client_leaves() -> None:
    events = Endless(EVENTS[0])
    with (
        django_app(lambda: django_response(EventStream(events, MESSAGES))) as app,
        serving(app) as url,
    ):
        leave(url, "GET")
        assert events.left.wait(1)


def test_django_relays_and_the_relay_is_over_when_the_client_leaves() -> None:
    source = Endless(FRAMES[0])
    machines: list[Relay] = []

    def body() -> Any:
        machines.append(Relay(MESSAGES, PATIENT, now=asyncio.get_running_loop().time()))
        return django_response(EventStream(relayed(source, machines[0])))

    with django_app(body) as app, serving(app) as url:
        leave(url, "GET")
        assert source.left.wait(1)
    assert machines[0].outcome is RelayOutcome.CANCELLED


def test_a_guarded_django_stalls_and_is_ended(client: httpx.Client) -> None:
    source = Endless(FRAMES[0])
    with django_app(lambda: django_response(source)) as app, serving(SSEGuard(app, FAST)) as url:
        assert STALLED in client.get(url).content
        assert source.left.wait(1)
