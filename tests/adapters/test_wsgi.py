"""Event streams on WSGI: the body by itself, and Flask and Django on real servers."""

from __future__ import annotations

import contextlib
import io
import socket
import threading
import time
import wsgiref.simple_server
from collections.abc import Callable, Iterator
from typing import Any

import django
import django.conf
import django.http
import django.test
import django.urls
import flask
import httpx
import pytest
import werkzeug.serving
from django.core.handlers.wsgi import WSGIHandler

from sse_machines import (
    MESSAGES,
    Comment,
    EndOfStream,
    Event,
    KeepAlive,
    LocalProtocolError,
    Outcome,
    Receiver,
    Relay,
    RelayConfig,
    RelayOutcome,
    Sender,
    Stall,
)
from sse_machines._frames import BOM
from sse_machines.adapters.sync import relayed
from sse_machines.adapters.wsgi import HEADERS, EventStream
from sse_machines.messages import Error
from tests.adapters.streams import PROTOCOLS, SAMPLES, events_of
from tests.wire import STOP

SAMPLE = SAMPLES["messages"]
EVENTS: list[Any] = events_of(SAMPLE, MESSAGES)[:-1]
PING = b": ping\n\n"
INTERRUPTED = b"Response stream interrupted, please retry"
TEXT_HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
}
PATIENCE = 5.0


class Broken(Exception):
    """What an application did not expect."""


class Items:
    """An iterable that gives items, raises errors, and counts how often it is closed."""

    def __init__(self, *items: Any) -> None:
        self.items = items
        self.closed = threading.Event()

    def __iter__(self) -> Iterator[Any]:
        for item in self.items:
            if isinstance(item, Exception):
                raise item
            if isinstance(item, threading.Event):
                assert item.wait(PATIENCE)
                continue
            yield item

    def close(self) -> None:
        self.closed.set()


def chunks_of(*items: Any, **options: Any) -> tuple[list[bytes], Exception | None]:
    chunks: list[bytes] = []
    try:
        for chunk in EventStream(Items(*items), **options):
            chunks.append(chunk)  # noqa: PERF402 - what came before an error counts, too
    except Exception as error:  # noqa: BLE001 - it is looked at
        return chunks, error
    return chunks, None


def outcome_of(data: bytes, protocol: Any = MESSAGES) -> Outcome:
    last = events_of(data, protocol)[-1]
    assert isinstance(last, EndOfStream)
    return last.outcome


def test_the_headers_are_those_of_a_stream_that_nothing_holds_back() -> None:
    assert dict(HEADERS) == TEXT_HEADERS
    assert len(HEADERS) == len(TEXT_HEADERS)


def test_events_are_written_as_a_sender_writes_them_one_chunk_each() -> None:
    sender = Sender(MESSAGES)
    assert chunks_of(*EVENTS, protocol=MESSAGES) == ([sender.send(event) for event in EVENTS], None)


def test_bytes_without_a_protocol_are_passed_on_as_they_are() -> None:
    assert chunks_of(BOM, b"data: 1", b"", b"\n\n") == ([BOM, b"data: 1", b"\n\n"], None)


def test_frames_in_bytes_stand_between_events_and_count() -> None:
    chunks, error = chunks_of(PING, *EVENTS[:-1], PING, STOP, protocol=MESSAGES)
    assert error is None
    assert chunks[0] == chunks[-2] == PING
    assert chunks[-1] == STOP


def test_a_byte_order_mark_behind_an_event_is_left_out() -> None:
    chunks, error = chunks_of(EVENTS[0], BOM + PING, *EVENTS[1:], protocol=MESSAGES)
    assert (chunks[1], len(chunks), error) == (PING, len(EVENTS) + 1, None)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_an_iterable_that_ends_early_ends_with_the_protocols_error(name: str) -> None:
    protocol = PROTOCOLS[name]
    events = events_of(SAMPLES[name], protocol)
    chunks, error = chunks_of(*events[:2], protocol=protocol)
    assert error is None
    assert len(chunks) == 3
    assert INTERRUPTED in chunks[-1]
    assert outcome_of(b"".join(chunks), protocol) is Outcome.FAILED


@pytest.mark.parametrize("name", PROTOCOLS)
def test_an_exception_comes_behind_the_protocols_error(name: str) -> None:
    protocol, broken = PROTOCOLS[name], Broken()
    events = events_of(SAMPLES[name], protocol)
    chunks, error = chunks_of(*events[:2], broken, protocol=protocol, interrupted="Sorry")
    assert error is broken
    assert len(chunks) == 3
    assert b"Sorry" in chunks[-1]
    assert outcome_of(b"".join(chunks), protocol) is Outcome.FAILED


def test_an_exception_behind_the_end_adds_nothing() -> None:
    broken = Broken()
    chunks, error = chunks_of(*EVENTS, broken, protocol=MESSAGES)
    assert (len(chunks), error) == (len(EVENTS), broken)


def test_an_exception_without_a_protocol_adds_nothing() -> None:
    broken = Broken()
    assert chunks_of(b"data: 1\n\n", broken) == ([b"data: 1\n\n"], broken)


def test_an_event_that_is_not_legal_breaks_the_answer_off() -> None:
    chunks, error = chunks_of(EVENTS[0], EVENTS[0], protocol=MESSAGES)
    assert isinstance(error, LocalProtocolError)
    assert len(chunks) == 2
    assert INTERRUPTED in chunks[-1]


def test_a_frame_that_is_cut_is_never_sent() -> None:
    chunks, error = chunks_of(EVENTS[0], b"event: ping\nda", Broken(), protocol=MESSAGES)
    assert isinstance(error, Broken)
    assert len(chunks) == 2
    assert outcome_of(b"".join(chunks)) is Outcome.FAILED


def test_a_frame_in_two_pieces_is_sent_when_it_is_whole() -> None:
    chunks, error = chunks_of(b": pi", b"ng\n\n", *EVENTS, protocol=MESSAGES)
    assert (chunks[0], len(chunks), error) == (b": ping\n\n", len(EVENTS) + 1, None)


def test_closing_closes_the_iterable_also_where_nobody_has_begun() -> None:
    items = Items(*EVENTS)
    EventStream(items, MESSAGES).close()
    assert items.closed.is_set()


def test_closing_in_the_middle_closes_a_generator() -> None:
    closed = threading.Event()

    def events() -> Iterator[Event]:
        try:
            yield from EVENTS
        finally:
            closed.set()

    stream = EventStream(events(), MESSAGES)
    chunks = iter(stream)
    next(chunks)
    assert not closed.is_set()
    stream.close()
    assert closed.is_set()


def test_what_cannot_be_closed_is_not_closed() -> None:
    EventStream([b"data: 1\n\n"]).close()


# Servers.


@contextlib.contextmanager
def serving(app: Any, *, kind: str) -> Iterator[str]:
    """Serve an application on loopback; gives the URL."""
    server: Any
    if kind == "werkzeug":
        server = werkzeug.serving.make_server("127.0.0.1", 0, app, threaded=True, request_handler=Quiet)
    else:
        server = wsgiref.simple_server.make_server("127.0.0.1", 0, app, handler_class=Silent)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Quiet(werkzeug.serving.WSGIRequestHandler):
    def log(self, *_: Any, **__: Any) -> None:
        pass


class Silent(wsgiref.simple_server.WSGIRequestHandler):
    def log_message(self, *_: Any, **__: Any) -> None:
        pass

    def get_stderr(self) -> Any:
        return ERRORS


ERRORS = io.StringIO()

Make = Callable[[], Any]


def plain_app(make: Make) -> Any:
    def app(_environ: Any, start_response: Any) -> Any:
        start_response("200 OK", HEADERS)
        return make()

    return app


def flask_app(make: Make) -> Any:
    app = flask.Flask(__name__)
    app.add_url_rule("/", "answer", lambda: flask.Response(make(), headers=HEADERS))
    return app


def django_app(make: Make) -> Any:
    def answer(_request: Any) -> Any:
        return django.http.StreamingHttpResponse(make(), headers=dict(HEADERS))

    if not django.conf.settings.configured:
        django.conf.settings.configure(ALLOWED_HOSTS=["*"], LOGGING_CONFIG=None)
        django.setup()
    # The pattern is the urlconf, which is asked for by every request.
    handler = WSGIHandler()

    def app(environ: Any, start_response: Any) -> Any:
        with django.test.override_settings(ROOT_URLCONF=(django.urls.path("", answer),)):
            return handler(environ, start_response)

    return app


APPS = {"plain": plain_app, "flask": flask_app, "django": django_app}
SERVERS = {"plain": "wsgiref", "flask": "werkzeug", "django": "wsgiref"}


@contextlib.contextmanager
def served(name: str, make: Make) -> Iterator[str]:
    with serving(APPS[name](make), kind=SERVERS[name]) as url:
        yield url


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with httpx.Client(trust_env=False, timeout=PATIENCE) as client:
        yield client


@pytest.mark.parametrize("name", APPS)
def test_a_server_sends_what_an_application_produces(name: str, client: httpx.Client) -> None:
    items = Items(*EVENTS)
    with served(name, lambda: EventStream(items, MESSAGES)) as url:
        response = client.get(url)
        assert response.content == SAMPLE
        assert TEXT_HEADERS.items() <= dict(response.headers).items()
        assert "content-length" not in response.headers
        assert items.closed.wait(PATIENCE)


@pytest.mark.parametrize("name", APPS)
def test_a_server_sends_each_event_at_once(name: str, client: httpx.Client) -> None:
    seen = threading.Event()
    items = Items(EVENTS[0], seen, *EVENTS[1:])
    with (
        served(name, lambda: EventStream(items, MESSAGES)) as url,
        client.stream("GET", url) as response,
    ):
        chunks = response.iter_raw()
        assert next(chunks) == Sender(MESSAGES).send(EVENTS[0])
        seen.set()
        assert SAMPLE.endswith(b"".join(chunks))


@pytest.mark.parametrize("name", APPS)
def test_a_server_ends_a_broken_answer_with_an_error(name: str, client: httpx.Client) -> None:
    with served(name, lambda: EventStream(Items(*EVENTS[:5], Broken()), MESSAGES)) as url:
        with client.stream("GET", url) as response:
            receiver = Receiver(MESSAGES)
            # How a server ends the connection then is its own affair.
            with contextlib.suppress(httpx.RemoteProtocolError):
                for chunk in response.iter_raw():
                    receiver.receive_data(chunk)
            events = list(receiver)
        assert isinstance(events[-1], Error)
        assert len(events) == 6


@pytest.mark.parametrize("name", APPS)
def test_a_server_relays_with_keep_alives(name: str, client: httpx.Client) -> None:
    go_on = threading.Event()
    machines: list[Relay] = []
    source = Items(SAMPLE[:500], go_on, SAMPLE[500:])

    def body() -> Any:
        config = RelayConfig(keepalive=KeepAlive(interval=0.02))
        machines.append(Relay(MESSAGES, config, now=time.monotonic()))
        return relayed(source, machines[0])

    with served(name, body) as url, client.stream("GET", url) as response:
        data = b""
        for chunk in response.iter_raw():
            data += chunk
            if data.count(b": keep-alive\n\n") >= 4:
                go_on.set()
    assert outcome_of(data) is Outcome.COMPLETED
    assert data.replace(b": keep-alive\n\n", b"") == SAMPLE.replace(b": keep-alive\n\n", b"")
    assert machines[0].outcome is RelayOutcome.COMPLETED
    assert source.closed.wait(PATIENCE)


@pytest.mark.parametrize("name", APPS)
def test_a_server_ends_a_stalled_relay(name: str, client: httpx.Client) -> None:
    never = threading.Event()
    source = Items(SAMPLE[:500], never)

    def body() -> Any:
        config = RelayConfig(stall=Stall(idle_progress=0.05))
        return relayed(source, Relay(MESSAGES, config, now=time.monotonic()))

    with served(name, body) as url:
        data = client.get(url).content
        assert outcome_of(data) is Outcome.FAILED
        assert b"stopped responding" in data
        never.set()
        assert source.closed.wait(PATIENCE)


@pytest.mark.parametrize("name", APPS)
def test_a_client_that_leaves_ends_the_relay_within_a_second(name: str) -> None:
    never = threading.Event()
    machines: list[Relay] = []
    source = Items(SAMPLE[:500], never)

    def body() -> Any:
        config = RelayConfig(keepalive=KeepAlive(interval=0.02))
        machines.append(Relay(MESSAGES, config, now=time.monotonic()))
        return relayed(source, machines[0])

    with served(name, body) as url:
        leave(url)
        deadline = time.monotonic() + 1
        while machines[0].outcome is RelayOutcome.OPEN and time.monotonic() < deadline:
            time.sleep(0.005)
        assert machines[0].outcome is RelayOutcome.CANCELLED
        never.set()
        assert source.closed.wait(PATIENCE)


@pytest.mark.parametrize("name", APPS)
def test_a_client_that_leaves_ends_an_application_within_a_second(name: str) -> None:
    class Pings(Items):
        def __iter__(self) -> Iterator[Any]:
            yield EVENTS[0]
            while not self.closed.wait(0.005):
                yield Comment(text="ping")

    items = Pings()
    with served(name, lambda: EventStream(items, MESSAGES)) as url:
        leave(url)
        assert items.closed.wait(1)


def leave(url: str) -> None:
    """Ask, read the beginning of the answer, and be gone."""
    address = url.removeprefix("http://").rstrip("/").split(":")
    with socket.create_connection((address[0], int(address[1])), timeout=PATIENCE) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        data = b""
        while b"message_start" not in data:
            data += connection.recv(1000)
