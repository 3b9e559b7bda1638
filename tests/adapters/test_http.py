"""Requests and answers over HTTP/1.1: the exchange alone, and all three adapters on real connections."""

from __future__ import annotations

import asyncio
import copy
import gc
import json
import pickle
import re
import socket
import ssl
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
import trio

from sse_machines import (
    MESSAGES,
    EndOfStream,
    Event,
    LocalProtocolError,
    Outcome,
    RemoteProtocolError,
    StreamTruncated,
)
from sse_machines._errors import UnexpectedResponse
from sse_machines.adapters import asyncio as on_asyncio, sync, trio as on_trio
from sse_machines.adapters._http import Exchange
from sse_machines.adapters._request import Response
from tests.adapters.http_servers import (
    PATIENCE,
    Server,
    Step,
    cut,
    flood,
    hang,
    reset,
    slowly,
    trusting,
    waiting,
)
from tests.adapters.streams import SAMPLES, events_of, pieces

SAMPLE = SAMPLES["messages"]
EVENTS = events_of(SAMPLE, MESSAGES)
OK = b"HTTP/1.1 200 OK\r\n"
HEAD = OK + b"content-type: text/event-stream\r\n"
BARE = HEAD + b"\r\n"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"
EARLY_HINTS = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"
ERROR = b'{"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}'
MAX_BODY = 64 * 1024


def chunked(data: bytes, size: int = 100) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces(data, size))


def sized(head: bytes, body: bytes, length: int | None = None) -> bytes:
    return head + b"content-length: %d\r\n\r\n" % (len(body) if length is None else length) + body


class Seen(list[Event]):
    """The events that came, and the moment when the first one did."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = threading.Event()

    def append(self, event: Event) -> None:
        super().append(event)
        self.begun.set()


# What each flavour does with one answer: read events into a list, or pieces of the body.


def read_sync(url: str, seen: Seen, *, timeout: float = PATIENCE, **options: Any) -> Any:
    with sync.open_events(url, MESSAGES, timeout=timeout, **options) as events:
        for event in events:
            seen.append(event)
        return events.response


def read_asyncio(url: str, seen: Seen, **options: Any) -> Any:
    async def main() -> Any:
        async with on_asyncio.open_events(url, MESSAGES, **options) as events:
            async for event in events:
                seen.append(event)
            return events.response

    return asyncio.run(asyncio.wait_for(main(), PATIENCE))


def read_trio(url: str, seen: Seen, **options: Any) -> Any:
    async def main() -> Any:
        with trio.fail_after(PATIENCE):
            async with on_trio.open_events(url, MESSAGES, **options) as events:
                async for event in events:
                    seen.append(event)
                return events.response

    return trio.run(main)


def fetch_sync(url: str, seen: list[bytes], **options: Any) -> Any:
    with sync.open_body(url, timeout=PATIENCE, **options) as body:
        for piece in body:
            seen.append(piece)  # noqa: PERF402 - what comes before an error counts
        return body.response


def fetch_asyncio(url: str, seen: list[bytes], **options: Any) -> Any:
    async def main() -> Any:
        async with on_asyncio.open_body(url, **options) as body:
            async for piece in body:
                seen.append(piece)  # noqa: PERF401 - the same
            return body.response

    return asyncio.run(asyncio.wait_for(main(), PATIENCE))


def fetch_trio(url: str, seen: list[bytes], **options: Any) -> Any:
    async def main() -> Any:
        with trio.fail_after(PATIENCE):
            async with on_trio.open_body(url, **options) as body:
                async for piece in body:
                    seen.append(piece)  # noqa: PERF401 - the same
                return body.response

    return trio.run(main)


def peek_sync(url: str, **options: Any) -> Event:
    with sync.open_events(url, MESSAGES, timeout=PATIENCE, **options) as events:
        return next(events)


def peek_asyncio(url: str, **options: Any) -> Event:
    async def main() -> Event:
        async with on_asyncio.open_events(url, MESSAGES, **options) as events:
            return await anext(events)

    return asyncio.run(asyncio.wait_for(main(), PATIENCE))


def peek_trio(url: str, **options: Any) -> Event:
    async def main() -> Event:
        with trio.fail_after(PATIENCE):
            async with on_trio.open_events(url, MESSAGES, **options) as events:
                return await anext(events)

    return trio.run(main)


# They give the head of the answer, as it is there without its type.
Read = Callable[..., Any]
Fetch = Callable[..., Any]
Peek = Callable[..., Event]
READERS: dict[str, Read] = {"sync": read_sync, "asyncio": read_asyncio, "trio": read_trio}
FETCHERS: dict[str, Fetch] = {"sync": fetch_sync, "asyncio": fetch_asyncio, "trio": fetch_trio}


@pytest.fixture(params=READERS)
def read(request: pytest.FixtureRequest) -> Read:
    return READERS[request.param]


@pytest.fixture(params=FETCHERS)
def fetch(request: pytest.FixtureRequest) -> Fetch:
    return FETCHERS[request.param]


@pytest.fixture
def seen() -> Seen:
    return Seen()


def causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


# Whole answers.

ANSWERS: dict[str, Step] = {
    "chunked": CHUNKED + chunked(SAMPLE) + LAST_CHUNK,
    "one chunk": CHUNKED + chunked(SAMPLE, len(SAMPLE)) + LAST_CHUNK,
    "chunks of one byte": CHUNKED + chunked(SAMPLE, 1) + LAST_CHUNK,
    "chunks with extensions": CHUNKED + chunked(SAMPLE).replace(b"64\r\n", b"64;a=b\r\n") + LAST_CHUNK,
    "chunked with trailers": CHUNKED + chunked(SAMPLE) + b"0\r\nx-time: 3\r\n\r\n",
    "up to the end of the connection": BARE + SAMPLE,
    "sized": sized(HEAD, SAMPLE),
    "HTTP/1.0": BARE.replace(b"1.1", b"1.0") + SAMPLE,
    "informational answers first": EARLY_HINTS + CHUNKED + chunked(SAMPLE) + LAST_CHUNK,
    "written byte by byte": slowly(EARLY_HINTS + CHUNKED + chunked(SAMPLE, 7) + LAST_CHUNK),
    "the length is written in capitals": CHUNKED + b"%X\r\n%b\r\n" % (len(SAMPLE), SAMPLE) + LAST_CHUNK,
}


@pytest.mark.parametrize("script", ANSWERS.values(), ids=ANSWERS)
def test_an_answer_in_any_framing_gives_its_events(read: Read, seen: Seen, script: Step) -> None:
    with Server(script) as server:
        response = read(server.url, seen)
    assert seen == EVENTS
    assert response.status == 200
    assert response.reason == "OK"
    assert response.header("content-type") == "text/event-stream"


@pytest.mark.parametrize("script", ANSWERS.values(), ids=ANSWERS)
def test_an_answer_in_any_framing_gives_its_body(fetch: Fetch, script: Step) -> None:
    body: list[bytes] = []
    with Server(script) as server:
        fetch(server.url, body)
    assert b"".join(body) == SAMPLE
    assert all(body)


TYPES = {
    "plain": b"content-type: text/event-stream",
    "with a charset": b"content-type: text/event-stream; charset=utf-8",
    "with spaces": b"Content-Type:   text/event-stream  ;charset=utf-8",
    "in capitals": b"CONTENT-TYPE: TEXT/EVENT-STREAM",
    "missing": b"x-request-id: 7",
    "empty": b"content-type:",
    "not compressed": b"content-type: text/event-stream\r\ncontent-encoding: Identity",
    "no coding": b"content-type: text/event-stream\r\ncontent-encoding: ",
}


@pytest.mark.parametrize("header", TYPES.values(), ids=TYPES)
def test_a_head_that_may_mean_an_event_stream_passes(read: Read, seen: Seen, header: bytes) -> None:
    with Server(OK + header + b"\r\n\r\n" + SAMPLE) as server:
        read(server.url, seen)
    assert seen == EVENTS


# Answers that end early.

COMPLETE = {
    "behind the last event, before the last chunk": CHUNKED + chunked(SAMPLE),
    "inside of the last chunk": CHUNKED + chunked(SAMPLE) + b"0\r\n",
    "inside of the length of the last chunk": CHUNKED + chunked(SAMPLE) + b"0",
    "before all of the length came": sized(HEAD, SAMPLE, len(SAMPLE) + 100),
    "behind garbage behind the last event": CHUNKED + chunked(SAMPLE) + b"garbage\r\n",
}


@pytest.mark.parametrize("answer", COMPLETE.values(), ids=COMPLETE)
@pytest.mark.parametrize("end", [(), (reset,)], ids=["closed", "reset"])
def test_nothing_behind_the_end_of_the_answer_is_an_error(
    read: Read, seen: Seen, answer: bytes, end: tuple[Step, ...]
) -> None:
    with Server(answer, *end) as server:
        read(server.url, seen)
    assert seen == EVENTS
    assert seen[-1] == EndOfStream(outcome=Outcome.COMPLETED)


HALF = SAMPLE[:900]
CUT = {
    "behind a chunk": CHUNKED + chunked(HALF),
    "inside of a chunk": CHUNKED + chunked(HALF) + b"64\r\n" + SAMPLE[900:950],
    "inside of the length of a chunk": CHUNKED + chunked(HALF) + b"6",
    "inside of what the length says": sized(HEAD, HALF, len(SAMPLE)),
    "by garbage for a length": CHUNKED + chunked(HALF) + b"garbage\r\n",
    "by a length that never ends": CHUNKED + chunked(HALF) + b"1;" + b"x" * 100_000,
}


@pytest.mark.parametrize("answer", CUT.values(), ids=CUT)
def test_a_body_that_breaks_off_truncates_the_answer_and_says_why(
    read: Read, seen: Seen, answer: bytes
) -> None:
    with Server(answer) as server, pytest.raises(StreamTruncated) as raised:
        read(server.url, seen)
    assert len(seen) > 3
    assert seen == EVENTS[: len(seen)]
    cause = raised.value.__cause__
    assert type(cause) is RemoteProtocolError
    assert cause.code == "bad_http"


@pytest.mark.parametrize("answer", CUT.values(), ids=CUT)
def test_a_body_that_breaks_off_is_bad_http_behind_all_that_came(fetch: Fetch, answer: bytes) -> None:
    body: list[bytes] = []
    with Server(answer) as server, pytest.raises(RemoteProtocolError) as raised:
        fetch(server.url, body)
    assert type(raised.value) is RemoteProtocolError
    assert raised.value.code == "bad_http"
    assert SAMPLE.startswith(b"".join(body))
    assert len(b"".join(body)) > 100


def test_a_body_without_a_length_that_ends_early_truncates_the_answer_without_a_cause(
    read: Read, seen: Seen
) -> None:
    with Server(BARE + HALF) as server, pytest.raises(StreamTruncated) as raised:
        read(server.url, seen)
    assert seen == EVENTS[: len(seen)]
    assert raised.value.__cause__ is None


@pytest.mark.parametrize("head", [CHUNKED + LAST_CHUNK, sized(HEAD, b""), BARE], ids=range(3))
def test_an_empty_body_is_a_truncated_answer(read: Read, seen: Seen, head: bytes) -> None:
    with Server(head) as server, pytest.raises(StreamTruncated) as raised:
        read(server.url, seen)
    assert seen == []
    assert raised.value.__cause__ is None


@pytest.mark.parametrize(
    "framing", [BARE, CHUNKED, HEAD + b"content-length: 5000\r\n\r\n"], ids=range(3)
)
def test_a_reset_inside_of_the_body_truncates_the_answer_and_says_why(
    read: Read, seen: Seen, framing: bytes
) -> None:
    data = chunked(HALF) if framing is CHUNKED else HALF
    # What has come by then may be lost in a reset: let some of it be seen first.
    script: list[Step] = [framing + data, waiting(seen.begun), reset]
    with Server(*script) as server, pytest.raises(StreamTruncated) as raised:
        read(server.url, seen)
    assert seen == EVENTS[: len(seen)]
    assert seen
    cause = raised.value.__cause__
    assert any(isinstance(error, ConnectionResetError) for error in causes(cause))


NO_HEADS = {
    "nothing": b"",
    "half a status line": b"HTTP/1.1 20",
    "half a head": HEAD + b"x-request",
    "informational answers only": EARLY_HINTS,
    "garbage": b"\x00\x01\x02garbage\r\n\r\n",
    "no HTTP": b"220 mail.example ESMTP\r\n",
    "HTTP/2": b"\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64\x00\x04\x00\x00\xff\xff",
    "the preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "HTTP/2 in a status line": b"HTTP/2 200\r\ncontent-type: text/event-stream\r\n\r\n" + SAMPLE,
    "only events": SAMPLE,
    "a header without a name": OK + b": text/event-stream\r\n\r\n",
    "a header in two ways": HEAD + b"content-length: 1\r\ncontent-length: 2\r\n\r\n" + SAMPLE,
    "an unknown framing": HEAD + b"transfer-encoding: gzip\r\n\r\n" + SAMPLE,
    "another protocol that nobody asked for": b"HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n" + SAMPLE,
}


@pytest.mark.parametrize("answer", NO_HEADS.values(), ids=NO_HEADS)
def test_what_has_no_head_of_http_1_is_bad_http(read: Read, seen: Seen, answer: bytes) -> None:
    with Server(answer) as server, pytest.raises(RemoteProtocolError) as raised:
        read(server.url, seen)
    assert type(raised.value) is RemoteProtocolError
    assert raised.value.code == "bad_http"
    assert seen == []


@pytest.mark.parametrize("endless", [b"x-a: b\r\n", b"x" * 100], ids=["headers", "a header"])
def test_a_head_that_never_ends_is_bad_http(read: Read, seen: Seen, endless: bytes) -> None:
    with Server(HEAD, flood(endless)) as server, pytest.raises(RemoteProtocolError) as raised:
        read(server.url, seen)
    assert raised.value.code == "bad_http"


def test_a_reset_before_the_head_is_an_error_of_the_connection(read: Read, seen: Seen) -> None:
    with Server(reset) as server, pytest.raises((OSError, trio.BrokenResourceError)) as raised:
        read(server.url, seen)
    assert any(isinstance(error, ConnectionResetError) for error in causes(raised.value))


# Answers that are no event streams.


def header(*fields: bytes, status: bytes = b"200 OK") -> bytes:
    return b"".join(line + b"\r\n" for line in (b"HTTP/1.1 " + status, *fields))


HTML = b"<html><body>Service Unavailable</body></html>"
JSON = b"content-type: application/json"
REFUSED: dict[str, tuple[bytes, dict[str, Any]]] = {
    "400 with JSON": (
        sized(header(JSON, status=b"400 Bad Request"), ERROR),
        {"code": "http_status", "status": 400, "head": ERROR, "body": json.loads(ERROR)},
    ),
    "400 in chunks": (
        header(JSON, b"transfer-encoding: chunked", status=b"400 Bad Request")
        + b"\r\n"
        + chunked(ERROR, 9)
        + LAST_CHUNK,
        {"code": "http_status", "status": 400, "head": ERROR, "body": json.loads(ERROR)},
    ),
    "503 with HTML": (
        header(b"content-type: text/html", status=b"503 Service Unavailable") + b"\r\n" + HTML,
        {"code": "http_status", "status": 503, "head": HTML, "body": None},
    ),
    "204 without a body": (
        header(status=b"204 No Content") + b"\r\n",
        {"code": "http_status", "status": 204, "head": b"", "body": None},
    ),
    "302 to elsewhere": (
        sized(header(b"location: /elsewhere", status=b"302 Found"), b""),
        {"code": "http_status", "status": 302, "head": b"", "body": None},
    ),
    "304 whose length is of another body": (
        header(b"content-length: 100", status=b"304 Not Modified") + b"\r\n",
        {"code": "http_status", "status": 304, "head": b"", "body": None},
    ),
    "201 with events": (
        sized(header(b"content-type: text/event-stream", status=b"201 Created"), SAMPLE),
        {"code": "http_status", "status": 201, "head": SAMPLE, "body": None},
    ),
    "400 with compressed events": (
        sized(header(b"content-encoding: gzip", status=b"400 Bad Request"), b"\x1f\x8b\x08"),
        {"code": "http_status", "status": 400, "head": b"\x1f\x8b\x08", "body": None},
    ),
    "an error with 200": (
        sized(header(JSON), ERROR),
        {"code": "content_type", "status": 200, "head": ERROR, "body": json.loads(ERROR)},
    ),
    "a list": (
        sized(header(JSON), b'["error"]'),
        {"code": "content_type", "status": 200, "head": b'["error"]', "body": ["error"]},
    ),
    "a page": (
        sized(header(b"content-type: text/html; charset=utf-8"), HTML),
        {"code": "content_type", "status": 200, "head": HTML, "body": None},
    ),
    "events under another name": (
        sized(header(b"content-type: text/event-stream-v2"), SAMPLE),
        {"code": "content_type", "status": 200, "head": SAMPLE, "body": None},
    ),
    "gzip": (
        sized(HEAD + b"content-encoding: gzip\r\n", b"\x1f\x8b\x08"),
        {"code": "content_encoding", "status": 200, "head": b"\x1f\x8b\x08", "body": None},
    ),
    "brotli in capitals": (
        sized(HEAD + b"Content-Encoding: BR\r\n", b"\x0b\x02"),
        {"code": "content_encoding", "status": 200, "head": b"\x0b\x02", "body": None},
    ),
    "a compressed page": (
        sized(header(b"content-type: text/html", b"content-encoding: gzip"), b"\x1f\x8b"),
        {"code": "content_encoding", "status": 200, "head": b"\x1f\x8b", "body": None},
    ),
}


def headers_of(answer: bytes) -> tuple[tuple[str, str], ...]:
    lines = answer.partition(b"\r\n\r\n")[0].decode().split("\r\n")[1:]
    parts = [line.partition(":") for line in lines]
    return tuple((name.lower(), value.strip()) for name, _, value in parts)


@pytest.mark.parametrize(("answer", "facts"), REFUSED.values(), ids=REFUSED)
def test_an_answer_that_is_something_else_is_unexpected_and_says_what_it_is(
    read: Read, seen: Seen, answer: bytes, facts: dict[str, Any]
) -> None:
    with Server(answer) as server, pytest.raises(UnexpectedResponse) as raised:
        read(server.url, seen)
    error = raised.value
    assert {name: getattr(error, name) for name in facts} == facts
    assert error.headers == headers_of(answer)
    assert error.sample == facts["head"][:200].decode(errors="replace")
    body = facts["body"]
    assert error.error == (body["error"] if isinstance(body, dict) else None)
    assert error.outcome == "not_sse"
    assert seen == []


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (sized(header(status=b"400 Bad Request"), b""), "the server answered 400 Bad Request"),
        (sized(header(status=b"529"), b""), "the server answered 529"),
        (sized(header(JSON), b""), "the server answered application/json, not text/event-stream"),
        (
            sized(HEAD + b"content-encoding: br\r\n", b""),
            "the body is compressed (br), though that was not asked for",
        ),
    ],
    ids=range(4),
)
def test_an_unexpected_answer_is_told_in_one_sentence(answer: bytes, message: str) -> None:
    exchange = Exchange("http://localhost/")
    exchange.feed(answer)
    with pytest.raises(UnexpectedResponse) as raised:
        exchange.opened()
    assert str(raised.value) == raised.value.message == message


UNAVAILABLE = header(b"content-type: text/html", status=b"503 Service Unavailable")


@pytest.mark.parametrize("framing", ["bare", "sized", "chunked"])
def test_an_error_body_that_never_ends_is_cut_without_waiting_for_its_end(
    read: Read, seen: Seen, framing: str
) -> None:
    piece = b"<p>busy</p>" * 100
    field = {"bare": b"", "sized": b"content-length: 1%015d\r\n" % 0}
    head = UNAVAILABLE + field.get(framing, b"transfer-encoding: chunked\r\n") + b"\r\n"
    endless = flood(chunked(piece, len(piece)) if framing == "chunked" else piece)
    with Server(head, endless) as server, pytest.raises(UnexpectedResponse) as raised:
        read(server.url, seen)
    assert raised.value.status == 503
    assert raised.value.head == (piece * 60)[:MAX_BODY]
    assert raised.value.sample == piece[:200].decode()


@pytest.mark.parametrize("length", [MAX_BODY - 1, MAX_BODY, MAX_BODY + 1])
def test_an_error_body_that_is_not_over_at_64_kib_is_not_read_on(
    read: Read, seen: Seen, length: int
) -> None:
    body = b'{"error": "%b"}' % (b"x" * (length - len(b'{"error": ""}')))
    # Where it is all that is kept, whether more comes is nobody's business.
    head = UNAVAILABLE + b"content-length: %d\r\n\r\n" % (length if length < MAX_BODY else 10**9)
    with Server(head + body, hang) as server, pytest.raises(UnexpectedResponse) as raised:
        read(server.url, seen)
    assert raised.value.head == body[:MAX_BODY]
    assert (raised.value.error is None) == (length > MAX_BODY)


ERROR_CUTS = {
    "sized": sized(UNAVAILABLE, HTML, 1000),
    "chunked": UNAVAILABLE + b"transfer-encoding: chunked\r\n\r\n" + chunked(HTML, 10),
    "garbage": UNAVAILABLE + b"transfer-encoding: chunked\r\n\r\n" + chunked(HTML, 10) + b"garbage\r\n",
}


@pytest.mark.parametrize("answer", ERROR_CUTS.values(), ids=ERROR_CUTS)
def test_an_error_body_that_is_cut_short_still_says_what_came(
    read: Read, seen: Seen, answer: bytes
) -> None:
    with Server(answer) as server, pytest.raises(UnexpectedResponse) as raised:
        read(server.url, seen)
    assert raised.value.status == 503
    assert raised.value.head == HTML


def test_an_error_body_that_ends_with_a_reset_still_says_what_came(read: Read, seen: Seen) -> None:
    with (
        Server(sized(UNAVAILABLE, HTML, 1000), reset) as server,
        pytest.raises(UnexpectedResponse) as raised,
    ):
        read(server.url, seen)
    assert raised.value.status == 503


# Connections.


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "secure"])
@pytest.mark.parametrize("answer", [CHUNKED + chunked(SAMPLE), BARE + SAMPLE], ids=["chunked", "bare"])
def test_a_server_that_hangs_behind_the_last_event_holds_nobody_up_and_is_left(
    read: Read, seen: Seen, answer: bytes, secure: bool
) -> None:
    with Server(answer, hang, secure=secure) as server:
        read(server.url, seen, ssl=trusting())
    assert seen == EVENTS


def test_a_server_that_is_dead_behind_the_last_event_holds_nobody_up(read: Read, seen: Seen) -> None:
    with Server(CHUNKED + chunked(SAMPLE), waiting(over := threading.Event())) as server:
        read(server.url, seen)
        over.set()
    assert seen == EVENTS


@pytest.mark.parametrize(
    "read",
    [
        pytest.param(read_sync, id="sync"),
        pytest.param(read_asyncio, id="asyncio"),
        pytest.param(read_trio, id="trio"),
    ],
)
def test_a_server_that_is_dead_behind_the_last_event_holds_nobody_up_over_tls(
    read: Read, seen: Seen
) -> None:
    over = threading.Event()
    # It does not even read that the client wants to close.
    with Server(CHUNKED + chunked(SAMPLE), waiting(over), secure=True) as server:
        try:
            read(server.url, seen, ssl=trusting())
        finally:
            over.set()
    assert seen == EVENTS


REST: dict[str, Step] = {"then silence": hang, "without end": flood(b"4\r\n: a\n\r\n")}


@pytest.mark.parametrize("rest", REST.values(), ids=REST)
@pytest.mark.parametrize(
    "peek",
    [
        pytest.param(peek_sync, id="sync"),
        pytest.param(peek_asyncio, id="asyncio"),
        pytest.param(peek_trio, id="trio"),
    ],
)
def test_who_leaves_early_leaves_nothing_behind(peek: Peek, rest: Step) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # It is the server that fails if the connection is not closed.
        with Server(CHUNKED + chunked(HALF), rest) as server:
            event = peek(server.url)
        gc.collect()
    assert event == EVENTS[0]
    assert [str(warning.message) for warning in caught] == []


def test_who_connects_in_vain_is_told_so(read: Read, seen: Seen) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    with pytest.raises(OSError, match=r"refused|Connect call failed|all attempts to connect"):
        read(f"http://127.0.0.1:{port}/", seen)


def test_a_host_by_its_name_is_found(read: Read, seen: Seen) -> None:
    with Server(BARE + SAMPLE) as server:
        read(f"http://localhost:{server.port}/", seen)
    assert seen == EVENTS
    assert b"\r\nhost: localhost:%d\r\n" % server.port in server.request


def test_a_silent_server_runs_into_the_timeout_of_a_socket(seen: Seen) -> None:
    with Server(hang) as server, pytest.raises(TimeoutError):
        read_sync(server.url, seen, timeout=0.05)
    with Server(CHUNKED + chunked(HALF), hang) as server, pytest.raises(StreamTruncated) as raised:
        read_sync(server.url, seen, timeout=0.05)
    assert seen == EVENTS[: len(seen)]
    assert len(seen) > 3
    assert isinstance(raised.value.__cause__, TimeoutError)


def test_a_body_is_received_as_from_a_socket() -> None:
    go_on = threading.Event()
    script: list[Step] = [CHUNKED + chunked(HALF), waiting(go_on), chunked(SAMPLE[900:]), LAST_CHUNK]
    with Server(*script) as server, sync.open_body(server.url, timeout=PATIENCE) as body:
        data = b""
        while len(data) < 900:
            data += body.recv(30)
        body.settimeout(0.01)
        with pytest.raises(TimeoutError):
            body.recv(30)
        body.settimeout(PATIENCE)
        go_on.set()
        # A timeout has lost nothing.
        while piece := body.recv(10_000):
            data += piece
        assert data == SAMPLE
        assert body.recv(10_000) == b""


# What the server gets.


def request_of(server: Server) -> tuple[str, dict[str, str], bytes]:
    head, _, body = server.request.partition(b"\r\n\r\n")
    line, *fields = head.decode().split("\r\n")
    pairs = [
        (name.lower(), value.strip()) for name, _, value in (field.partition(":") for field in fields)
    ]
    headers = dict(pairs)
    assert len(headers) == len(pairs)
    return line, headers, body


def test_a_request_says_what_it_wants(read: Read, seen: Seen) -> None:
    content = {"model": "claude-x", "stream": True, "messages": [{"role": "user", "content": "¿Qué? ☂️"}]}
    with Server(BARE + SAMPLE) as server:
        read(f"{server.url}/v1/messages?beta=true&a=%20#part", seen, content=content)
    line, headers, body = request_of(server)
    assert line == "POST /v1/messages?beta=true&a=%20 HTTP/1.1"
    assert headers == {
        "host": f"127.0.0.1:{server.port}",
        "accept": "text/event-stream",
        "accept-encoding": "identity",
        "connection": "close",
        "content-length": str(len(body)),
        "content-type": "application/json",
    }
    assert json.loads(body) == content


@pytest.mark.parametrize("kind", ["mapping", "pairs", "iterator"])
def test_headers_of_the_callers_own_come_instead_of_the_usual(read: Read, seen: Seen, kind: str) -> None:
    given = {
        "Host": "api.example",
        "ACCEPT": "*/*",
        "Accept-Encoding": "br",
        "Connection": "keep-alive",
        "Content-Type": "text/plain",
        "content-Length": "4",
        "X-Api-Key": "secret",
    }
    headers: Any = {"mapping": given, "pairs": [*given.items()], "iterator": iter(given.items())}[kind]
    with Server(CHUNKED + chunked(SAMPLE) + LAST_CHUNK) as server:
        read(server.url, seen, headers=headers, content=b"\x00\xff\r\n")
    line, received, body = request_of(server)
    assert line == "POST / HTTP/1.1"
    assert received == {name.lower(): value for name, value in given.items()}
    assert body == b"\x00\xff\r\n"
    assert seen == EVENTS


@pytest.mark.parametrize("content", [b"", b"bytes as they are \x00\xff", bytes(range(256)) * 4000])
def test_bytes_are_sent_as_they_are(read: Read, seen: Seen, content: bytes) -> None:
    with Server(BARE + SAMPLE) as server:
        read(server.url, seen, content=content)
    _, headers, body = request_of(server)
    assert body == content
    assert headers["content-length"] == str(len(content))
    assert seen == EVENTS


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_request_without_content_has_no_header_about_it(read: Read, seen: Seen, method: str) -> None:
    with Server(BARE + SAMPLE) as server:
        read(f"{server.url}/v1/responses/r?stream=true", seen, method=method)
    line, headers, body = request_of(server)
    assert line == f"{method} /v1/responses/r?stream=true HTTP/1.1"
    assert headers.keys() == {"host", "accept", "accept-encoding", "connection"}
    assert body == b""


@pytest.mark.parametrize(("content", "text"), [("a", b'"a"'), (0, b"0"), ([], b"[]"), (False, b"false")])
def test_values_that_look_like_nothing_are_sent_as_json(content: Any, text: bytes) -> None:
    request = Exchange("http://localhost", content=content).request
    assert request.endswith(b"\r\n\r\n" + text)
    assert b"\r\ncontent-length: %d\r\n" % len(text) in request


BAD: dict[str, Mapping[str, Any]] = {
    "a line break in a value": {"headers": {"x-key": "a\r\nx-other: b"}},
    "a line feed in a value": {"headers": {"x-key": "a\nb"}},
    "a line break in a name": {"headers": {"x-key\r\nx": "a"}},
    "a space in a name": {"headers": {"x key": "a"}},
    "a zero in a value": {"headers": [("x-key", "a\x00")]},
    "a header beyond ASCII": {"headers": {"x-key": "é"}},
    "a name beyond ASCII": {"headers": {"é": "a"}},
    "two hosts": {"headers": [("host", "a"), ("Host", "b")]},
    "a method of two words": {"method": "GET /"},
    "a method beyond ASCII": {"method": "É"},
    "a length that is too short": {"headers": {"content-length": "1"}, "content": b"abc"},
    "a length that is too long": {"headers": {"content-length": "9"}, "content": b"abc"},
    "a length that is none": {"headers": {"content-length": "x"}, "content": b"abc"},
}


@pytest.mark.parametrize("options", BAD.values(), ids=BAD)
def test_a_bad_request_is_the_callers_and_connects_to_nobody(
    read: Read, seen: Seen, options: Mapping[str, Any]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        with pytest.raises(LocalProtocolError) as raised:
            read(f"http://127.0.0.1:{listener.getsockname()[1]}/", seen, **options)
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert raised.value.code == "bad_request"


BAD_URLS = [
    *("", "localhost", "localhost:80/v1", "//localhost/", "/v1", "http:", "http:///v1", "http://:80/"),
    *("ftp://localhost/", "ws://localhost/", "file:///etc/hosts", "http://localhost/a b"),
    *("http://localhost/\r\nx: y", "http://localhost/?a=b c", "http://localhost/é", "http://é/"),
    *("http://localhost/\x00"),
]


@pytest.mark.parametrize("url", BAD_URLS)
def test_a_bad_url_is_the_callers(fetch: Fetch, url: str) -> None:
    with pytest.raises(LocalProtocolError) as raised:
        fetch(url, [])
    assert raised.value.code == "bad_request"


@pytest.mark.parametrize(
    "url", ["http://localhost:99999/", "http://localhost:x/", "http://localhost:-1/", "http://[::1/"]
)
def test_a_bad_host_or_port_in_a_url_is_the_callers(url: str) -> None:
    with pytest.raises(LocalProtocolError) as raised:
        Exchange(url)
    assert raised.value.code == "bad_request"


@pytest.mark.parametrize(
    "content", [object(), {1: 2}, float("nan"), bytearray(b"a"), "\ud800"], ids=range(5)
)
def test_content_that_has_no_json_is_the_callers(content: Any) -> None:
    with pytest.raises(LocalProtocolError) as raised:
        Exchange("http://localhost/", content=content)
    assert raised.value.code == "bad_request"


def test_content_in_chunks_has_no_length() -> None:
    request = Exchange(
        "http://localhost/", headers={"Transfer-Encoding": "chunked"}, content=b"abc"
    ).request
    assert request.endswith(b"\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
    assert b"content-length" not in request.lower()


@pytest.mark.parametrize(
    ("url", "host", "port", "field", "secure"),
    [
        ("http://localhost", "localhost", 80, b"localhost", False),
        ("http://localhost:80", "localhost", 80, b"localhost:80", False),
        ("HTTPS://API.example/", "api.example", 443, b"API.example", True),
        ("https://api.example:8443/", "api.example", 8443, b"api.example:8443", True),
        ("http://user:pass@api.example:81/", "api.example", 81, b"api.example:81", False),
        ("http://[::1]/", "::1", 80, b"[::1]", False),
        ("http://[::1]:8000/", "::1", 8000, b"[::1]:8000", False),
    ],
)
def test_what_a_url_says_about_the_host(
    url: str, host: str, port: int, field: bytes, secure: bool
) -> None:
    exchange = Exchange(url)
    assert (exchange.host, exchange.port, (exchange.context is not None)) == (host, port, secure)
    assert re.findall(rb"\r\nhost: (.*)\r\n", exchange.request) == [field]
    assert exchange.request.startswith(b"POST / HTTP/1.1\r\n")


def test_a_port_of_zero_is_not_the_usual_one() -> None:
    assert Exchange("http://localhost:0/").port == 0


# Encryption.


@pytest.mark.parametrize("script", [ANSWERS["chunked"], BARE + SAMPLE], ids=["chunked", "bare"])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_events_come_over_tls_from_a_server_that_is_trusted(
    read: Read, seen: Seen, script: Step, host: str
) -> None:
    with Server(script, secure=True) as server:
        read(f"https://{host}:{server.port}/v1", seen, ssl=trusting(), content=[1])
    assert seen == EVENTS
    assert request_of(server)[0] == "POST /v1 HTTP/1.1"
    assert request_of(server)[2] == b"[1]"
    assert server.refused is None


def test_a_server_that_is_not_trusted_is_sent_nothing_and_left(read: Read, seen: Seen) -> None:
    with Server(BARE + SAMPLE, secure=True) as server:
        with pytest.raises((OSError, trio.BrokenResourceError)) as raised:
            read(server.url, seen)
        # What was not closed now warns, and so fails the test.
        gc.collect()
    assert any(isinstance(error, ssl.SSLCertVerificationError) for error in causes(raised.value))
    assert server.refused is not None
    assert server.request == b""


def test_a_server_under_another_name_is_not_trusted(read: Read, seen: Seen) -> None:
    with Server(BARE + SAMPLE, secure=True) as server:
        with pytest.raises((OSError, trio.BrokenResourceError)) as raised:
            # That is 127.0.0.1, too, but the certificate does not say so.
            read(f"https://127.1:{server.port}/", seen, ssl=trusting())
        gc.collect()
    assert any(isinstance(error, ssl.SSLCertVerificationError) for error in causes(raised.value))


def test_a_server_that_does_not_encrypt_is_left(read: Read, seen: Seen) -> None:
    with Server(BARE + SAMPLE) as server:
        with pytest.raises((OSError, trio.BrokenResourceError)) as raised:
            read(server.url.replace("http:", "https:"), seen, ssl=trusting())
        gc.collect()
    assert any(isinstance(error, ssl.SSLError) for error in causes(raised.value))


@pytest.mark.parametrize("answer", [BARE + SAMPLE, CHUNKED + chunked(SAMPLE)], ids=["bare", "chunked"])
def test_a_whole_answer_whose_connection_ends_without_the_words_of_tls_is_whole(
    read: Read, seen: Seen, answer: bytes
) -> None:
    with Server(answer, cut, secure=True) as server:
        read(server.url, seen, ssl=trusting())
    assert seen == EVENTS


@pytest.mark.parametrize("answer", [BARE + HALF, CHUNKED + chunked(HALF)], ids=["bare", "chunked"])
@pytest.mark.parametrize("end", [(), (cut,)], ids=["with the words of TLS", "without"])
def test_an_encrypted_answer_that_ends_early_is_truncated(
    read: Read, seen: Seen, answer: bytes, end: tuple[Step, ...]
) -> None:
    with Server(answer, *end, secure=True) as server, pytest.raises(StreamTruncated) as raised:
        read(server.url, seen, ssl=trusting())
    assert len(seen) > 3
    assert seen == EVENTS[: len(seen)]
    # Many servers never say the last words of TLS: that alone is no fault.
    assert (raised.value.__cause__ is None) == answer.startswith(BARE)


@pytest.mark.parametrize("end", [(), (cut,)], ids=["with the words of TLS", "without"])
def test_an_encrypted_error_without_a_length_says_what_came(
    read: Read, seen: Seen, end: tuple[Step, ...]
) -> None:
    script = (UNAVAILABLE + b"\r\n" + HTML, *end)
    with Server(*script, secure=True) as server, pytest.raises(UnexpectedResponse) as raised:
        read(server.url, seen, ssl=trusting())
    assert raised.value.head == HTML


def test_the_context_is_only_for_what_is_to_be_encrypted() -> None:
    context = trusting()
    assert Exchange("http://localhost/", ssl=context).context is None
    assert Exchange("https://localhost/", ssl=context).context is context
    default = Exchange("https://localhost/").context
    assert default is not None
    assert default.verify_mode is ssl.CERT_REQUIRED
    assert default.check_hostname


# The exchange alone, without any connection.


def drive(answer: bytes, cuts: list[int]) -> tuple[Response | None, bytes, Any]:
    """Feed an answer piece by piece, then its end: the head, the body, and what came of it."""
    exchange = Exchange("http://localhost/", content={"stream": True})
    parts = [answer[start:end] for start, end in zip([0, *cuts], [*cuts, len(answer)], strict=True)]
    feeds = iter([part for part in parts if part] + [b""])
    body = b""
    try:
        while not exchange.opened():
            exchange.feed(next(feeds))
        while (data := exchange.take()) is not None:
            body += data
            if not data:
                exchange.feed(next(feeds))
    except RemoteProtocolError as error:
        facts = {name: value for name, value in vars(error).items() if name != "message"}
        return exchange.response, body, (type(error), facts)
    return exchange.response, body, None


EXCHANGES: dict[str, bytes] = {
    **{name: answer for name, answer in ANSWERS.items() if isinstance(answer, bytes)},
    **COMPLETE,
    **{name: answer for name, answer in CUT.items() if len(answer) < 10_000},
    **NO_HEADS,
    **{name: answer for name, (answer, _) in REFUSED.items()},
    **ERROR_CUTS,
}


@pytest.mark.parametrize("answer", EXCHANGES.values(), ids=EXCHANGES)
@pytest.mark.parametrize("size", [1, 7])
def test_an_exchange_is_the_same_in_any_pieces(answer: bytes, size: int) -> None:
    assert drive(answer, list(range(size, len(answer), size))) == drive(answer, [])


SHORT = {
    "chunked": EARLY_HINTS + CHUNKED + chunked(b"data: 1\n\n", 4) + b"0\r\nx: y\r\n\r\n",
    "sized": sized(HEAD, b"data: 1\n\n"),
    "refused": REFUSED["400 in chunks"][0],
}


@pytest.mark.parametrize("answer", SHORT.values(), ids=SHORT)
def test_an_exchange_is_the_same_wherever_it_is_cut(answer: bytes) -> None:
    expected = drive(answer, [])
    for position in range(1, len(answer)):
        assert drive(answer, [position]) == expected


def test_an_exchange_gives_the_body_as_it_comes() -> None:
    exchange = Exchange("http://localhost/")
    assert exchange.response is None
    assert not exchange.opened()
    exchange.feed(EARLY_HINTS + HEAD)
    assert not exchange.opened()
    exchange.feed(bytearray(b"X-Name: Caf\xe9\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"))
    assert exchange.opened()
    assert exchange.opened()
    assert exchange.response == Response(
        status=200,
        reason="OK",
        headers=(
            ("content-type", "text/event-stream"),
            ("x-name", "Caf\xe9"),
            ("transfer-encoding", "chunked"),
        ),
    )
    assert exchange.take() == b"ab"
    assert exchange.take() == b""
    exchange.feed(b"cde\r")
    assert exchange.take() == b"cde"
    assert exchange.take() == b""
    exchange.feed(b"\n0\r\n\r\n")
    assert exchange.take() is None


@pytest.mark.parametrize("behind", [b"", b"HTTP/1.1 200 OK\r\n\r\n"], ids=["nothing", "more"])
def test_a_body_that_is_over_stays_over(behind: bytes) -> None:
    exchange = Exchange("http://localhost/")
    exchange.feed(sized(HEAD, b"data: 1\n\n") + behind)
    assert exchange.opened()
    assert exchange.take() == b"data: 1\n\n"
    assert exchange.take() is None
    assert exchange.take() is None


def test_an_exchange_that_has_failed_stays_failed() -> None:
    exchange = Exchange("http://localhost/")
    exchange.feed(b"garbage\r\n\r\n")
    for _ in range(2):
        with pytest.raises(RemoteProtocolError) as raised:
            exchange.opened()
        assert raised.value.code == "bad_http"


def test_an_exchange_that_is_switched_to_another_protocol_is_bad_http(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    exchange = Exchange("http://localhost/", headers={"Connection": "upgrade", "Upgrade": "other"})
    exchange.feed(b"HTTP/1.1 101 Switching\r\nupgrade: other\r\n\r\n")
    turns, turn = iter(range(100)), exchange._connection.next_event
    # Who asks for ever is stopped.
    monkeypatch.setattr(exchange._connection, "next_event", lambda: (next(turns), turn())[1])
    with pytest.raises(RemoteProtocolError) as raised:
        exchange.opened()
    assert raised.value.code == "bad_http"


def test_a_head_knows_its_headers_in_any_case() -> None:
    response = Response(status=200, reason="", headers=(("x-id", "1"), ("x-id", "2")))
    assert response.header("X-Id") == "1"
    assert response.header("x-other") == ""


def test_unexpected_responses_can_be_pickled_and_copied() -> None:
    answer = REFUSED["400 with JSON"][0]
    exchange = Exchange("http://localhost/")
    exchange.feed(answer)
    with pytest.raises(UnexpectedResponse) as raised:
        exchange.opened()
    error = raised.value
    assert error.headers
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(again) is UnexpectedResponse
        assert vars(again) == vars(error)
        assert str(again) == str(error)
    assert UnexpectedResponse().code == "http_status"
