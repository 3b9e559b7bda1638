"""Receiver: when it gives out what, what it raises, and what it is as a value."""

from __future__ import annotations

import copy
import json
import pickle
import random
import tracemalloc
from importlib import resources
from typing import Any

import attrs
import orjson
import pytest
from hypothesis import given, strategies as st

from sse_machines import (
    MESSAGES,
    Comment,
    EndOfStream,
    Frame,
    FrameTooLarge,
    Limits,
    LocalProtocolError,
    NotAnEventStream,
    Outcome,
    ProtocolError,
    Receiver,
    RemoteProtocolError,
    StreamTruncated,
    Unknown,
    Violation,
)
from sse_machines.messages import (
    ContentBlockDelta,
    ContentBlockStart,
    Error,
    MessageDelta,
    MessageStart,
    MessageStop,
    Ping,
    State,
)
from tests import wire

SAMPLE = (resources.files("sse_machines") / "samples" / "messages.sse").read_bytes()
DEVIANT = (
    b": hello\n"
    + wire.PING
    + wire.text(0, "early")
    + wire.start()
    + b"data: nonsense\n\n"
    + b"event: ping\n: inside\ndata: {}\n\n"
    + b"data:\n\n"
    + wire.block_stop(0)
    + wire.event("content_block_delta", index=-1, delta={})
    + b"id: 7\nretry: 20\n\n"
    + wire.FUTURE
    + wire.message_delta()
    + wire.STOP
    + wire.PING
    + wire.DONE
)


def state(receiver: Receiver[Any]) -> object:
    """The state now; a function, because type checkers take an attribute to stay as it was."""
    return receiver.state


def test_one_call_one_event_and_the_state_belongs_to_it() -> None:
    receiver = Receiver(MESSAGES)
    receiver.receive_data(wire.start() + wire.block_start(0, text="") + wire.block_stop(0))
    assert state(receiver) is State.IDLE
    assert isinstance(receiver.next_event(), MessageStart)
    assert state(receiver) is State.BETWEEN
    assert receiver.legal() == (
        "content_block_start",
        "message_delta",
        "ping",
        "error",
    )
    assert isinstance(receiver.next_event(), ContentBlockStart)
    assert state(receiver) is State.IN_BLOCK
    assert receiver.next_event() is not None
    assert state(receiver) is State.BETWEEN
    assert receiver.next_event() is None
    assert receiver.outcome is Outcome.OPEN
    assert not receiver.finished


def test_iterating_pauses_and_goes_on() -> None:
    receiver = Receiver(MESSAGES)
    assert list(receiver) == []
    receiver.receive_data(wire.start())
    assert [event.type for event in receiver] == ["message_start"]
    receiver.receive_data(wire.PING)
    assert [event.type for event in receiver] == ["ping"]


def test_a_legal_answer() -> None:
    receiver, events = wire.receive(wire.ANSWER, strict=True)
    assert [event.type for event in events if not isinstance(event, ContentBlockDelta)] == [
        "message_start",
        "content_block_start",
        "ping",
        "comment",
        "content_block_stop",
        "content_block_start",
        "content_block_stop",
        "content_block_start",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "end_of_stream",
    ]
    assert events[3] == Comment(text="keep-alive")
    assert receiver.outcome is Outcome.COMPLETED
    assert receiver.next_event() is None


def test_the_outcome_is_known_before_the_end_of_the_input() -> None:
    receiver = Receiver(MESSAGES)
    receiver.receive_data(wire.ANSWER)
    list(receiver)
    assert receiver.finished
    assert receiver.outcome is Outcome.COMPLETED
    assert receiver.next_event() is None


def test_the_sample_in_the_package_is_legal() -> None:
    _, events = wire.receive(SAMPLE, strict=True)
    assert events[-1] == EndOfStream(outcome=Outcome.COMPLETED)


@pytest.mark.untraced
@pytest.mark.parametrize("stream", [wire.ANSWER, SAMPLE, DEVIANT], ids=["answer", "sample", "deviant"])
@pytest.mark.parametrize("strict", [False, True])
def test_cuts_change_nothing(stream: bytes, strict: bool) -> None:
    whole = comparable(wire.receive(stream, strict=strict)[1])
    single = [stream[i : i + 1] for i in range(len(stream))]
    assert comparable(wire.receive(single, strict=strict)[1]) == whole
    with_empty = [piece for byte in single for piece in (byte, b"")]
    assert comparable(wire.receive(with_empty, strict=strict)[1]) == whole
    for cut in range(len(stream) + 1):
        assert comparable(wire.receive([stream[:cut], stream[cut:]], strict=strict)[1]) == whole


@pytest.mark.parametrize("line_end", [b"\r\n", b"\r"])
def test_line_ends_change_nothing(line_end: bytes) -> None:
    _, expected = wire.receive(DEVIANT)
    _, events = wire.receive(DEVIANT.replace(b"\n", line_end))
    assert comparable(events) == comparable(expected)


def comparable(events: list[Any]) -> list[Any]:
    return [vars(event) if isinstance(event, ProtocolError) else event for event in events]


def test_a_violation_comes_right_before_its_event() -> None:
    receiver = Receiver(MESSAGES)
    receiver.receive_data(wire.start() + wire.text(0, "a"))
    receiver.next_event()
    violation = receiver.next_event()
    assert isinstance(violation, Violation)
    assert violation.code == "delta_without_start"
    assert violation.key == 0
    assert violation.state is not None
    assert violation.state.name == "ABSENT"
    assert not violation.dropped
    assert "tool_use" in violation.legal
    # It is about the next event, which has not been taken: the state has not moved.
    assert state(receiver) is State.BETWEEN
    event = receiver.next_event()
    assert event is violation.event
    assert state(receiver) is State.IN_BLOCK


def test_a_dropped_event_stands_only_in_its_violation() -> None:
    _, events = wire.receive(wire.ANSWER + wire.PING)
    assert isinstance(events[-2], Violation)
    assert events[-2].dropped
    assert isinstance(events[-2].event, Ping)
    assert events[-1] == EndOfStream(outcome=Outcome.COMPLETED)


def test_strict_raises_and_stays_dead() -> None:
    receiver = Receiver(MESSAGES, strict=True)
    receiver.receive_data(wire.start() + wire.text(0, "a") + wire.PING)
    assert isinstance(receiver.next_event(), MessageStart)
    with pytest.raises(RemoteProtocolError) as first:
        receiver.next_event()
    assert first.value.code == "delta_without_start"
    assert first.value.protocol == "messages"
    assert first.value.outcome is Outcome.PROTOCOL_ERROR
    assert isinstance(first.value.event, ContentBlockDelta)
    assert first.value.key == 0
    assert "legal: text, thinking" in str(first.value)
    receiver.receive_data(wire.PING)
    receiver.receive_eof()
    with pytest.raises(RemoteProtocolError) as second:
        receiver.next_event()
    assert second.value is first.value
    assert receiver.outcome is Outcome.PROTOCOL_ERROR
    assert receiver.finished


def test_bytes_after_the_end_are_our_callers_mistake() -> None:
    receiver = Receiver(MESSAGES)
    receiver.receive_eof()
    receiver.receive_eof()
    with pytest.raises(LocalProtocolError):
        receiver.receive_data(b"x")


def test_what_failed_stays_failed_and_keeps_nothing() -> None:
    receiver = Receiver(MESSAGES, strict=True)
    receiver.receive_data(wire.STOP)
    with pytest.raises(RemoteProtocolError):
        receiver.next_event()
    before = len(pickle.dumps(receiver))
    receiver.receive_data(wire.PING * 1000)
    assert len(pickle.dumps(receiver)) == before


def test_the_error_names_state_event_and_what_was_legal() -> None:
    _, events = wire.receive(wire.STOP)
    error = events[-1]
    assert error.code == "event_before_message_start"
    assert error.state is State.IDLE
    assert isinstance(error.event, MessageStop)
    assert error.legal == ("message_start", "ping", "error")
    assert error.key is None


def test_deviations_are_reported_in_order() -> None:
    receiver, events = wire.receive(DEVIANT)
    assert [getattr(event, "code", event.type) for event in events] == [
        "comment",
        "ping",
        "event_before_message_start",
        "delta_without_start",
        "content_block_delta",
        "late_message_start",
        "message_start",
        "malformed_payload",
        "unknown",
        "comment",
        "missing_type",
        "ping",
        "empty_data",
        "content_block_stop",
        "malformed_event",
        "unknown",
        "unknown",
        "message_delta",
        "message_stop",
        "event_after_stop",
        "trailing_done",
        "end_of_stream",
    ]
    assert receiver.outcome is Outcome.COMPLETED
    assert receiver.last_event_id == "7"
    assert receiver.retry_ms == 20


def test_ids_and_retries_follow_the_events_taken() -> None:
    receiver = Receiver(MESSAGES)
    receiver.receive_data(b"id: 1\n: a\ndata: {}\n\n" + wire.PING + b"id: 2\nretry: 5\n\n" + wire.PING)
    assert receiver.last_event_id == ""
    assert receiver.retry_ms is None
    receiver.next_event()
    assert receiver.last_event_id == "1"
    while not isinstance(receiver.next_event(), Ping):
        assert receiver.last_event_id == "1"
    receiver.next_event()
    assert receiver.last_event_id == "2"
    assert receiver.retry_ms == 5


MALFORMED, UNKNOWN, DELTA = "malformed_event", "unknown", "message_delta"
BS = b'{"type":"content_block_start",'
BD = b'{"type":"content_block_delta",'
MD = b'{"type":"message_delta",'
CASES: list[tuple[bytes, str, str]] = [
    (b"null", MALFORMED, UNKNOWN),
    (b"[]", MALFORMED, UNKNOWN),
    (b'"ping"', MALFORMED, UNKNOWN),
    (b'{"type":[]}', MALFORMED, UNKNOWN),
    (b'{"type":{}}', MALFORMED, UNKNOWN),
    (b'{"type":null}', MALFORMED, UNKNOWN),
    (b'{"type":1}', MALFORMED, UNKNOWN),
    (b'{"a":1}', MALFORMED, UNKNOWN),
    (b'{"type":"message_start"}', MALFORMED, UNKNOWN),
    (b'{"type":"message_start","message":null}', MALFORMED, UNKNOWN),
    (BS + b'"index":0}', MALFORMED, UNKNOWN),
    (BS + b'"index":0,"content_block":{}}', MALFORMED, UNKNOWN),
    (BS + b'"index":65536,"content_block":{"type":"text"}}', MALFORMED, UNKNOWN),
    (BD + b'"index":0,"delta":[]}', MALFORMED, UNKNOWN),
    (BD + b'"index":0,"delta":{}}', MALFORMED, UNKNOWN),
    (BD + b'"index":0,"delta":{"type":[]}}', MALFORMED, UNKNOWN),
    (BD + b'"index":0,"delta":{"type":7}}', MALFORMED, UNKNOWN),
    (BD + b'"index":true,"delta":{"type":"x"}}', MALFORMED, UNKNOWN),
    (BD + b'"index":-1,"delta":{"type":"x"}}', MALFORMED, UNKNOWN),
    (BD + b'"index":65536,"delta":{"type":"text_delta","text":""}}', MALFORMED, UNKNOWN),
    (BD + b'"index":0,"delta":{"type":"text_delta","text":7}}', MALFORMED, UNKNOWN),
    (BD + b'"index":0.0,"delta":{"type":"text_delta","text":""}}', MALFORMED, UNKNOWN),
    (b'{"type":"content_block_stop"}', MALFORMED, UNKNOWN),
    (b'{"type":"content_block_stop","index":-1}', MALFORMED, UNKNOWN),
    (MD + b'"usage":{}}', MALFORMED, UNKNOWN),
    (MD + b'"delta":{}}', "missing_usage", "message_delta"),
    (MD + b'"delta":{},"usage":[]}', "malformed_usage", DELTA),
    (MD + b'"delta":{},"usage":{"output_tokens":"14"}}', "malformed_usage", DELTA),
    (MD + b'"delta":{},"usage":{"output_tokens":-1}}', "malformed_usage", DELTA),
    (MD + b'"delta":{},"usage":{"output_tokens":true}}', "malformed_usage", DELTA),
    (b'{"type":"error"}', "error_not_object", "error"),
    (b"{", "malformed_payload", "unknown"),
    (b"[DONE]x", "malformed_payload", "unknown"),
    (b" ", "malformed_payload", "unknown"),
]


@pytest.mark.parametrize(("data", "code", "kind"), CASES)
def test_what_is_malformed_is_reported_and_passed_on(data: bytes, code: str, kind: str) -> None:
    receiver = Receiver(MESSAGES)
    receiver.receive_data(wire.start())
    list(receiver)
    receiver.receive_data(b"data: " + data + b" \n\n" if data != b" " else b"data:  \n\n")
    first, *_, last = receiver
    assert isinstance(first, Violation)
    assert first.code == code
    assert last.type == (kind or "unknown")
    assert last.frame is not None
    assert last.frame.data is not None
    assert last.frame.data.strip() == data.decode().strip()


@pytest.mark.parametrize(("data", "code", "kind"), CASES)
def test_what_is_malformed_is_raised_in_strict_mode(data: bytes, code: str, kind: str) -> None:
    receiver = Receiver(MESSAGES, strict=True)
    receiver.receive_data(wire.start() + b"event: e\ndata: " + data + b" \n\n")
    assert isinstance(receiver.next_event(), MessageStart)
    if kind == "error":
        assert wire.codes(receiver) == [code, "event_name_mismatch"]
        return
    with pytest.raises(RemoteProtocolError) as caught:
        list(receiver)
    assert caught.value.code == code


def test_messages_that_start_without_usage_or_with_a_bad_one() -> None:
    assert wire.codes(wire.receive(wire.start(usage=None) + wire.message_delta() + wire.STOP)[1]) == []
    _, events = wire.receive(wire.start(usage={"input_tokens": 1.5}))
    assert wire.codes(events)[0] == "malformed_usage"
    assert isinstance(events[1], MessageStart)


def test_payloads_in_error_texts_are_bounded() -> None:
    _, events = wire.receive(
        wire.start() + b"event: " + b"n" * 9999 + b"\ndata: {" + b"k" * 9999 + b"\n\n"
    )
    assert all(len(event.message) < 400 for event in events if isinstance(event, Violation))
    assert max(len(str(event)) for event in events if isinstance(event, ProtocolError)) < 400
    named = wire.PING.replace(b"event: ping", b"event: " + b"n" * 9999)
    _, events = wire.receive(named)
    assert all(len(event.message) < 400 for event in events if isinstance(event, Violation))


NO_EVENT_STREAM: list[tuple[bytes, Any, Any]] = [
    (b'{"error":{"type":"t","message":"x"}}', {"type": "t", "message": "x"}, 1),
    (b'\xef\xbb\xbf \r\n{"error":"x"}\n', "x", 1),
    (b'{"detail":"Not Found"}', None, 1),
    (b"[1, 2]", None, 1),
    (b'{"error":', None, 0),
    (b"<!DOCTYPE html>\n<html><body>data: no</body></html>\n", None, 0),
    (b"<html>\n\n<p>\n\n</html>\n\n", None, 0),
    (b"Bad Gateway", None, 0),
    (b"\x1f\x8b\x08\x00\x00\x00", None, 0),
]


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(("body", "error", "json_body"), NO_EVENT_STREAM)
def test_not_an_event_stream(body: bytes, error: Any, json_body: int, strict: bool) -> None:
    found: list[dict[str, Any]] = []
    for cut in range(len(body)):
        receiver, events = wire.receive([body[:cut], body[cut:]], strict=strict)
        assert len(events) == 1
        caught = events[0]
        assert isinstance(caught, NotAnEventStream)
        assert caught.error == error
        assert (caught.body is not None) == bool(json_body)
        assert caught.sample
        assert len(caught.sample) <= 200
        assert caught.outcome is Outcome.NOT_SSE
        assert receiver.outcome is Outcome.NOT_SSE
        found.append(vars(caught))
    assert all(facts == found[0] for facts in found)


def test_a_body_is_refused_at_its_first_blank_line() -> None:
    receiver = Receiver(MESSAGES)
    receiver.receive_data(b"<html>\n\n")
    with pytest.raises(NotAnEventStream):
        receiver.next_event()


def test_a_long_body_is_sampled_and_not_kept() -> None:
    body = b'{"error":"' + b"x" * 200_000
    receiver, events = wire.receive([body[i : i + 1000] for i in range(0, len(body), 1000)])
    assert isinstance(events[-1], NotAnEventStream)
    assert events[-1].body is None
    assert len(events[-1].sample) == 200
    assert receiver.outcome is Outcome.NOT_SSE


def test_a_body_over_the_limit_is_still_no_event_stream() -> None:
    _, events = wire.receive(b"<html>" + b"x" * 2000, limits=Limits(max_event_size=1000))
    assert isinstance(events[-1], NotAnEventStream)


def test_an_unknown_line_first_does_not_condemn_a_stream() -> None:
    _, events = wire.receive(b"x-served-by: cache\n\n" + wire.ANSWER)
    assert events[-1] == EndOfStream(outcome=Outcome.COMPLETED)
    _, events = wire.receive(b"x-served-by: cache\n" + wire.ANSWER)
    assert events[-1] == EndOfStream(outcome=Outcome.COMPLETED)


def test_blank_lines_are_an_empty_answer() -> None:
    _, events = wire.receive(b"\n\n\r\n")
    assert isinstance(events[-1], StreamTruncated)


@pytest.mark.parametrize(
    "begin", [b"d", b"event", b"id: 1", b"retry", b": kee", b"\xef\xbb", b"\xef\xbb\xbfda"]
)
def test_a_cut_in_the_first_line_is_a_cut(begin: bytes) -> None:
    _, events = wire.receive(begin)
    assert isinstance(events[-1], StreamTruncated)
    assert events[-1].code == "eof_before_message_start"
    assert events[-1].tail_length == len(begin.removeprefix(b"\xef\xbb\xbf"))


def test_frame_too_large() -> None:
    limits = Limits(max_event_size=1000)
    big = wire.text(0, "x" * 1000)
    for chunks in (
        [wire.start() + big],
        [wire.start()] + [big[i : i + 7] for i in range(0, len(big), 7)],
    ):
        receiver, events = wire.receive(chunks, limits=limits)
        assert isinstance(events[0], MessageStart)
        error = events[1]
        assert isinstance(error, FrameTooLarge)
        assert error.limit == 1000
        assert error.protocol == "messages"
        assert error.state is State.BETWEEN
        assert receiver.outcome is Outcome.LIMIT
    _, events = wire.receive(wire.start() + big, limits=Limits(max_event_size=None))
    assert wire.codes(events)[0] == "delta_without_start"


UNTERMINATED = wire.ANSWER.rstrip(b"\n")


@pytest.mark.parametrize("tail", [b"", b"\n", b"\r"])
def test_a_last_event_without_its_blank_line(tail: bytes) -> None:
    receiver, events = wire.receive(UNTERMINATED + tail)
    assert wire.codes(events) == ["unterminated_final_event"]
    assert isinstance(events[-2], MessageStop)
    assert events[-2].frame == Frame.parse(b'event: message_stop\ndata: {"type": "message_stop"}' + tail)
    assert receiver.outcome is Outcome.COMPLETED
    assert receiver.next_event() is None


def test_a_transport_that_failed_completes_nothing() -> None:
    receiver, events = wire.receive(UNTERMINATED, clean=False)
    assert isinstance(events[-1], StreamTruncated)
    assert events[-1].tail_length == len(b'event: message_stop\ndata: {"type": "message_stop"}')
    assert receiver.outcome is Outcome.TRUNCATED
    assert wire.receive(wire.ANSWER, clean=False)[0].outcome is Outcome.COMPLETED


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_a_last_event_that_lacks_more_is_cut(cut: int) -> None:
    receiver, events = wire.receive(UNTERMINATED[:-cut])
    assert isinstance(events[-1], StreamTruncated)
    assert receiver.outcome is Outcome.TRUNCATED


def test_a_last_event_without_a_type_is_not_trusted() -> None:
    stream = wire.start() + wire.message_delta() + b"event: message_stop\ndata: {}\n"
    assert isinstance(wire.receive(stream)[1][-1], StreamTruncated)


def test_strict_discards_an_unterminated_event_as_the_standard_says() -> None:
    receiver, events = wire.receive(UNTERMINATED, strict=True)
    assert isinstance(events[-1], StreamTruncated)
    assert receiver.outcome is Outcome.TRUNCATED


def test_half_a_keep_alive_cuts_no_event() -> None:
    receiver, events = wire.receive(wire.start() + wire.message_delta() + b": kee")
    assert wire.codes(events) == ["missing_message_stop"]
    assert receiver.outcome is Outcome.COMPLETED_NO_DONE


def test_rests_after_the_end_do_not_matter() -> None:
    receiver, events = wire.receive(wire.ANSWER + b'event: ping\ndata: {"type":"ping"}')
    assert events[-1] == EndOfStream(outcome=Outcome.COMPLETED)
    assert receiver.outcome is Outcome.COMPLETED


def test_a_strict_error_after_the_end_does_not_change_the_outcome() -> None:
    receiver, events = wire.receive(wire.ANSWER + wire.PING, strict=True)
    assert events[-1].code == "event_after_stop"
    assert events[-1].outcome is Outcome.COMPLETED
    assert receiver.outcome is Outcome.COMPLETED


def test_comments_of_a_block_come_before_its_event() -> None:
    stream = b': a\n:b\nevent: ping\n:  c\ndata: {"type":"ping"}\n:d\n\n'
    _, events = wire.receive(stream)
    assert [getattr(event, "text", event.type) for event in events[:-1]] == ["a", "b", " c", "d", "ping"]


def test_a_comment_is_delivered_when_its_line_ends() -> None:
    receiver = Receiver(MESSAGES)
    receiver.receive_data(b": hopbase-keepalive")
    assert receiver.next_event() is None
    receiver.receive_data(b"\n")
    event = receiver.next_event()
    assert event == Comment(text="hopbase-keepalive")
    assert event is not None
    assert event.raw == b": hopbase-keepalive\n"


def test_the_untouched_bytes_are_one_attribute_away() -> None:
    raw = (
        b'event:content_block_start\r\ndata:{"type":"content_block_start","x":[1],\r\n'
        b'data: "index":0, "content_block":{"type":"text","text":""}   }\r\n\r\n'
    )
    _, events = wire.receive(wire.start() + raw)
    event = events[1]
    assert event.raw == raw
    assert event.frame.event == "content_block_start"
    assert event.frame.raw == raw
    assert event.extra == {"x": [1]}
    assert event.payload["x"] == [1]


def test_events_made_here_equal_events_received() -> None:
    _, events = wire.receive(wire.ANSWER)
    made = ContentBlockDelta(index=0, delta={"type": "thinking_delta", "thinking": "hm"})
    received = next(event for event in events if isinstance(event, ContentBlockDelta))
    assert made == received
    assert made.payload == {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "thinking_delta", "thinking": "hm"},
    }
    assert made.frame is None
    assert made.raw is None
    assert repr(made) == repr(received)
    assert repr(made) == (
        "ContentBlockDelta(index=0, delta={'type': 'thinking_delta', 'thinking': 'hm'})"
    )


def test_evolve_keeps_what_it_does_not_know_and_drops_the_frame() -> None:
    raw = wire.event("content_block_stop", index=0, vendor={"a": 1})
    _, events = wire.receive(wire.start() + wire.block_start(0, text="") + raw)
    changed = attrs.evolve(events[2], index=4)
    assert changed.payload == {"type": "content_block_stop", "index": 4, "vendor": {"a": 1}}
    assert changed.extra == {"vendor": {"a": 1}}
    assert changed.frame is None
    assert events[2].payload["index"] == 0


def test_events_cannot_be_changed() -> None:
    event = MessageDelta(delta={"stop_reason": "end_turn"})
    assert event.payload == {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        event.usage = {}  # type: ignore[misc]


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("copier", ["pickle", "copy", "deepcopy"])
def test_a_receiver_is_a_plain_value(copier: str, strict: bool) -> None:
    copies = {
        "pickle": lambda it: pickle.loads(pickle.dumps(it)),
        "copy": copy.copy,
        "deepcopy": copy.deepcopy,
    }
    _, expected = wire.receive(DEVIANT, strict=strict)
    receiver: Any = Receiver(MESSAGES, strict=strict, loads=orjson.loads)
    events: list[Any] = []
    for i in range(0, len(DEVIANT), 11):
        before = receiver
        receiver = copies[copier](receiver)
        before.receive_data(b"\n\ndata: the copy must not see this\n\n")
        receiver.receive_data(DEVIANT[i : i + 11])
        receiver = copies[copier](receiver)
        try:
            # One event, then a copy in the middle of a chunk, then the rest.
            if (event := receiver.next_event()) is not None:
                events.append(event)
            receiver = copies[copier](receiver)
            events += receiver
        except ProtocolError as error:
            events.append(error)
            break
    else:
        receiver.receive_eof()
        events += receiver
    assert comparable(events) == comparable(expected)
    assert receiver.protocol is MESSAGES


def test_a_dead_receiver_can_be_pickled() -> None:
    receiver, events = wire.receive(wire.STOP, strict=True)
    again = pickle.loads(pickle.dumps(receiver))
    with pytest.raises(RemoteProtocolError) as caught:
        again.next_event()
    assert vars(caught.value) == vars(events[-1])


ERRORS: list[ProtocolError] = [
    *(wire.receive(stream)[1][-1] for stream in (wire.STOP, wire.start() + b"x", b"{}")),
    wire.receive(wire.ANSWER, limits=Limits(max_event_size=10))[1][-1],
    LocalProtocolError("m", code="c"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_can_be_pickled_and_copied(error: ProtocolError) -> None:
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(again) is type(error)
        assert vars(again) == vars(error)
        assert str(again) == str(error)


def test_every_kind_of_error_is_covered_above() -> None:
    assert {type(error) for error in ERRORS} == {
        RemoteProtocolError,
        StreamTruncated,
        NotAnEventStream,
        FrameTooLarge,
        LocalProtocolError,
    }
    assert ProtocolError("m").code == "protocol_error"
    assert {type(error).default_code for error in ERRORS} == {
        "protocol_error",
        "truncated",
        "not_an_event_stream",
        "frame_too_large",
        "misuse",
    }


@pytest.mark.parametrize("stream", [wire.ANSWER, SAMPLE, DEVIANT], ids=["answer", "sample", "deviant"])
def test_another_parser_changes_nothing(stream: bytes) -> None:
    _, expected = wire.receive(stream)
    _, events = wire.receive(stream, loads=orjson.loads)
    assert [event for event in events if getattr(event, "code", "") != "malformed_payload"] == [
        event for event in expected if getattr(event, "code", "") != "malformed_payload"
    ]
    assert wire.codes(events) == wire.codes(expected)


def test_an_idle_receiver_is_small() -> None:
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        keep = [Receiver(MESSAGES) for _ in range(500)]
        used = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert used / len(keep) <= 2048


def test_protocol_is_a_value() -> None:
    assert repr(MESSAGES) == "<Protocol messages>"
    assert copy.copy(MESSAGES) is MESSAGES
    assert copy.deepcopy(MESSAGES) is MESSAGES
    assert pickle.loads(pickle.dumps(MESSAGES)) is MESSAGES


def test_error_info_of_odd_errors() -> None:
    info = Error(error={"type": 7, "code": [], "message": None, "details": {"error_code": "busy"}}).info
    assert (info.type, info.code, info.message, info.retryable) == (None, "busy", "", None)
    info = Error(error={"type": "invalid_request_error", "code": 4.5, "message": "m"}).info
    assert (info.type, info.code, info.retryable) == ("invalid_request_error", None, False)
    assert Error(error=None).info.raw is None


def test_outcomes_print_as_their_values() -> None:
    assert f"{Outcome.COMPLETED_NO_DONE}" == "completed_no_done"
    assert json.dumps(Outcome.FAILED) == '"failed"'


WIRES = st.sampled_from(
    [
        wire.ANSWER,
        DEVIANT,
        wire.start(),
        wire.PING,
        wire.ERROR,
        wire.STOP,
        wire.DONE,
        b"data: {",
        b"\n\n",
        b"x",
    ]
)


@given(st.lists(WIRES | st.binary(max_size=20), max_size=8), st.booleans(), st.booleans(), st.randoms())
def test_nothing_but_documented_errors(
    pieces: list[bytes], strict: bool, clean: bool, dice: random.Random
) -> None:
    stream = bytearray(b"".join(pieces))
    for _ in range(dice.randrange(4) if stream else 0):
        stream[dice.randrange(len(stream))] = dice.randrange(256)
    receiver, events = wire.receive(bytes(stream), strict=strict, clean=clean)
    assert receiver.finished
    last = events[-1]
    assert isinstance(last, EndOfStream | RemoteProtocolError)
    assert last.outcome is receiver.outcome
    assert all(not isinstance(event, Unknown) or event.frame is not None for event in events)
    middle = len(stream) // 2
    _, again = wire.receive([bytes(stream[:middle]), bytes(stream[middle:])], strict=strict, clean=clean)
    assert comparable(again) == comparable(events)
