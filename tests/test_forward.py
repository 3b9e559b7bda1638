"""Forwarding: the very bytes, under the law of a lenient receiver."""

from __future__ import annotations

from typing import Any

import pytest

from sse_machines import (
    CHAT,
    MESSAGES,
    RESPONSES,
    EndOfStream,
    FrameReader,
    LocalProtocolError,
    Outcome,
    ProtocolError,
    Receiver,
    Sender,
    StreamTruncated,
    Violation,
)
from sse_machines._protocol import Protocol
from sse_machines.messages import Ping
from tests import test_corpus as corpus, wire
from tests.chat import wire as chat
from tests.responses import wire as responses

ANSWERS: dict[str, tuple[Protocol[Any], bytes]] = {
    "chat": (CHAT, chat.ANSWER),
    "responses": (RESPONSES, responses.numbered(*responses.FRAMES)),
    "messages": (MESSAGES, wire.ANSWER),
}
LINE_ENDS = {"LF": b"\n", "CRLF": b"\r\n", "CR": b"\r"}


def by_frames(protocol: Protocol[Any], body: bytes) -> tuple[Sender[Any], bytes, bytes]:
    """Forward a body frame by frame: the sender, what it wrote, and what was no frame."""
    sender: Sender[Any] = Sender(protocol)
    reader = FrameReader()
    reader.feed(body)
    out = b"".join(sender.forward(frame) for frame in iter(reader.next_frame, None))
    return sender, out, reader.tail


def by_events(protocol: Protocol[Any], body: bytes) -> tuple[Sender[Any], bytes]:
    """Forward a body event by event, as a proxy does that looks at them."""
    sender: Sender[Any] = Sender(protocol)
    receiver: Receiver[Any] = Receiver(protocol)
    receiver.receive_data(body)
    out = b"".join(sender.forward(event) for event in receiver)
    receiver.receive_eof()
    return sender, out + b"".join(sender.forward(event) for event in receiver)


@pytest.mark.untraced
@pytest.mark.parametrize("row", corpus.ROWS, ids=corpus.name)
def test_every_recording_byte_for_byte(row: dict[str, Any]) -> None:
    protocol = corpus.PROTOCOLS[row["protocol"]]
    body = corpus.bytes_of(row)
    if row["file"] in corpus.EXCEPTIONS and corpus.EXCEPTIONS[row["file"]] is Outcome.PROTOCOL_ERROR:
        with pytest.raises(LocalProtocolError, match="spliced_message"):
            by_frames(protocol, body)
        return
    sender, out, tail = by_frames(protocol, body)
    assert out + tail == body
    receiver, _ = wire.receive(body, protocol=protocol, clean=False)
    if receiver.outcome not in (Outcome.TRUNCATED, Outcome.COMPLETED_NO_DONE):
        assert sender.outcome is receiver.outcome


@pytest.mark.untraced
@pytest.mark.parametrize("row", corpus.ROWS, ids=corpus.name)
def test_every_recording_says_the_same_event_by_event(row: dict[str, Any]) -> None:
    protocol = corpus.PROTOCOLS[row["protocol"]]
    body = corpus.bytes_of(row)
    sender: Sender[Any] = Sender(protocol)
    _, events = wire.receive(body, protocol=protocol)
    whole = [event for event in events if not isinstance(event, ProtocolError)]
    out = b"".join(sender.forward(event) for event in whole)
    _, again = wire.receive(out, protocol=protocol, clean=False)
    assert [repr(event) for event in _said(again)] == [repr(event) for event in _said(whole)]


def _said(events: list[Any]) -> list[Any]:
    return [e for e in events if not isinstance(e, ProtocolError | Violation | EndOfStream)]


def test_the_recordings_are_there() -> None:
    if not corpus.ROWS:
        pytest.skip("the recordings are not here")
    assert len(corpus.ROWS) == 505


@pytest.mark.parametrize("line_end", LINE_ENDS.values(), ids=LINE_ENDS)
@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_byte_for_byte(name: str, line_end: bytes) -> None:
    protocol, body = ANSWERS[name]
    body = body.replace(b"\n", line_end)
    odd = (
        b"\xef\xbb\xbf" + b"retry: 10" + line_end * 2 + b": a" + line_end * 3 + body + b": z" + line_end
    )
    sender, out, tail = by_frames(protocol, odd)
    assert (out, tail) == (odd, b"")
    assert sender.outcome is Outcome.COMPLETED
    sender, out = by_events(protocol, body)
    assert out == body
    assert sender.outcome is Outcome.COMPLETED


@pytest.mark.parametrize("name", ANSWERS)
def test_forwarded_and_own_events_go_together(name: str) -> None:
    protocol, body = ANSWERS[name]
    sender: Sender[Any] = Sender(protocol)
    receiver: Receiver[Any] = Receiver(protocol)
    receiver.receive_data(body[: len(body) // 2])
    out = b"".join(sender.forward(event) + sender.comment("keep-alive") for event in receiver)
    out += sender.interrupt()
    strict, events = wire.receive(out, protocol=protocol, strict=True)
    assert strict.outcome is Outcome.FAILED
    assert wire.codes(events) == []


def test_a_byte_order_mark_is_forwarded_only_where_it_is_one() -> None:
    body = b"\xef\xbb\xbf" + chat.ANSWER
    sender = Sender(CHAT)
    out = sender.comment("early")
    reader = FrameReader()
    reader.feed(body)
    out += b"".join(sender.forward(frame) for frame in iter(reader.next_frame, None))
    assert out == b": early\n\n" + chat.ANSWER


def test_what_is_tolerated_is_forwarded() -> None:
    body = (
        wire.start() + wire.text(0, "no start") + wire.block_stop(0) + wire.block_stop(0) + wire.start()
    )
    assert by_events(MESSAGES, body + wire.message_delta() + wire.STOP)[1].startswith(body)
    assert by_frames(MESSAGES, body)[1] == body


def test_a_number_that_was_dropped_counts() -> None:
    body = responses.numbered(responses.CREATED, responses.CREATED)
    receiver = Receiver(RESPONSES)
    receiver.receive_data(body)
    by_event = Sender(RESPONSES)
    assert b"".join(by_event.forward(event) for event in receiver) == body
    for sender in (by_event, by_frames(RESPONSES, body)[0]):
        assert b'"sequence_number":2}' in sender.interrupt()
    receiver.receive_data(responses.numbered(responses.KEEPALIVE, start=2))
    assert wire.codes(receiver) == []


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b'event: message_stop\ndata: {"type":"message_stop"}\n\n', "event_before_message_start"),
        (b'data: {"choices":[]}\n\n', "wrong_protocol"),
    ],
)
def test_what_nobody_reads_on_from_is_refused(data: bytes, code: str) -> None:
    reader = FrameReader()
    reader.feed(data)
    frame = reader.next_frame()
    assert frame is not None
    sender = Sender(MESSAGES)
    with pytest.raises(LocalProtocolError) as caught:
        sender.forward(frame)
    assert caught.value.code == code
    assert sender.send(wire_event(wire.start()))


def wire_event(frame: bytes) -> Any:
    receiver = Receiver(MESSAGES)
    receiver.receive_data(frame)
    return next(receiver)


def test_frames_that_say_it_badly_are_forwarded() -> None:
    bad = [
        b"event: ping\ndata: no JSON\n\n",
        b"event: message\ndata: {}\n\n",
        b"data: [DONE]\n\n",
        b"event: x\ndata\n\n",
        b"id: 7\n\n",
        b"junk\n",
    ]
    for block in bad:
        body = wire.start() + block + wire.message_delta()
        sender, out, tail = by_frames(MESSAGES, body)
        assert out + tail == body
        assert sender.state.name == "TAIL"


def test_a_comment_inside_of_an_event_is_written_with_it() -> None:
    body = b'event: ping\n: inside\ndata: {"type":"ping"}\n: more\n\n'
    receiver = Receiver(MESSAGES)
    receiver.receive_data(body)
    sender = Sender(MESSAGES)
    assert [sender.forward(event) for event in receiver] == [b"", b"", body]


def test_comments_among_other_fields_are_written_alone() -> None:
    receiver = Receiver(MESSAGES)
    receiver.receive_data(b"retry: 10\n: one\n: two\n\n")
    sender = Sender(MESSAGES)
    assert [sender.forward(event) for event in receiver] == [b": one\n\n", b": two\n\n"]


@pytest.mark.parametrize(
    ("tail", "missing"),
    [
        (b'data: {"type":"ping"}', b"\n\n"),
        (b'data: {"type":"ping"}\n', b"\n"),
        (b'data: {"type":"ping"}\r\n', b"\r\n"),
        (b'data: {"type":"ping"}\r', b"\r"),
    ],
)
def test_the_last_event_gets_the_blank_line_that_it_lacks(tail: bytes, missing: bytes) -> None:
    sender, out = by_events(MESSAGES, wire.start() + wire.message_delta() + wire.STOP[:-2])
    assert out == wire.start() + wire.message_delta() + wire.STOP
    assert sender.finished
    _, events = wire.receive(b"event: ping\n" + tail)
    assert isinstance(events.pop(), StreamTruncated)
    sender = Sender(MESSAGES)
    out = b"".join(sender.forward(event) for event in events)
    assert out == b"event: ping\n" + tail + missing


def test_what_was_made_here_has_no_bytes() -> None:
    sender = Sender(MESSAGES)
    with pytest.raises(LocalProtocolError) as caught:
        sender.forward(Ping())
    assert caught.value.code == "not_received"
