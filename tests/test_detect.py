"""Which protocol a stream is in, and what happens to a stream of the wrong one."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from sse_machines import (
    CHAT,
    MESSAGES,
    RESPONSES,
    Comment,
    EndOfStream,
    FrameTooLarge,
    Limits,
    LocalProtocolError,
    NotAnEventStream,
    Outcome,
    Receiver,
    RemoteProtocolError,
    StreamTruncated,
    Unknown,
    Violation,
    detect,
)
from sse_machines._protocol import Protocol
from tests import wire
from tests.chat import wire as chat
from tests.responses import wire as responses

ANSWERS: list[tuple[Protocol[Any], bytes]] = [
    (CHAT, chat.ANSWER),
    (RESPONSES, responses.ANSWER),
    (MESSAGES, wire.ANSWER),
]
IDS = ["chat", "responses", "messages"]

FIRST_FRAMES: list[tuple[str, bytes, Protocol[Any] | None]] = [
    ("a chunk", chat.role(), CHAT),
    ("a chunk about filters", chat.ANNOTATION, CHAT),
    (
        "a chunk whose choices are null",
        chat.event({"object": "chat.completion.chunk", "choices": None}),
        CHAT,
    ),
    ("a chunk with nothing but usage", chat.event({"usage": {"total_tokens": 1}}), CHAT),
    ("an error without a type", chat.ERROR, CHAT),
    ("an error that is a text", chat.event({"error": "no"}), CHAT),
    ("an error object of old vLLM", chat.event({"object": "error", "message": "m", "type": "x"}), CHAT),
    ("an error in a named frame", chat.event({"error": {"message": "m"}}, "error"), CHAT),
    ("the start of a response", responses.CREATED, RESPONSES),
    ("a response that resumes", responses.text("x"), RESPONSES),
    ("a keepalive", responses.KEEPALIVE, RESPONSES),
    ("a future event of a response", wire.event("response.new_thing"), RESPONSES),
    ("a flat error", wire.event("error", code="c", message="m"), RESPONSES),
    ("a numbered error", wire.event("error", error={"message": "m"}, sequence_number=0), RESPONSES),
    ("the start of a message", wire.start(), MESSAGES),
    ("a ping", wire.PING, MESSAGES),
    ("a nested error", wire.event("error", error={"type": "x", "message": "m"}), MESSAGES),
    ("a start whose frame alone names it", b'event: message_start\ndata: {"message": {}}\n\n', MESSAGES),
    ("an event of nobody's", wire.event("session.status"), None),
    ("an extension of chat", chat.event({"tool": "x"}, "tool.progress"), None),
    ("usage in a frame of somebody's", chat.event({"usage": {}}, "stats"), None),
    ("a type that is no text", b'data: {"type": 7}\n\n', None),
    ("an array", b"data: [1]\n\n", None),
    ("no JSON", b"data: ping\n\n", None),
    ("the end mark", chat.DONE, None),
    ("a comment", b": hello\n\n", None),
    ("half a chunk", chat.role()[:-1], None),
    ("nothing", b"", None),
    ("a body that is JSON", b'{"error": {"message": "m"}}', None),
]
NAMES = [name for name, _, _ in FIRST_FRAMES]


@pytest.mark.parametrize(("stream", "protocol"), [row[1:] for row in FIRST_FRAMES], ids=NAMES)
def test_the_first_frame_decides(stream: bytes, protocol: Protocol[Any] | None) -> None:
    assert detect(stream) is protocol
    receiver = Receiver.detecting()
    receiver.receive_data(stream)
    list(receiver)
    assert receiver.protocol is protocol or (protocol is None and receiver.protocol.name == "undecided")


@pytest.mark.parametrize(("protocol", "answer"), ANSWERS, ids=IDS)
def test_what_decides_nothing_is_passed_over(protocol: Protocol[Any], answer: bytes) -> None:
    before = b"\xef\xbb\xbf: hello\n\n" + wire.FUTURE + b"data: ping\n\n" + chat.DONE
    assert detect(before) is None
    assert detect(before + answer) is protocol


def test_one_frame_that_is_too_large() -> None:
    with pytest.raises(FrameTooLarge):
        detect(b"data: " + b"x" * (16 * 1024 * 1024 + 1))


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(("protocol", "answer"), ANSWERS, ids=IDS)
def test_a_detecting_receiver_reads_like_one_that_knows(
    protocol: Protocol[Any], answer: bytes, strict: bool
) -> None:
    receiver = Receiver.detecting(strict=strict)
    assert receiver.protocol.name == "undecided"
    assert (
        list(wire.drain(receiver, answer)) == wire.receive(answer, protocol=protocol, strict=strict)[1]
    )
    assert receiver.protocol is protocol
    assert receiver.outcome is Outcome.COMPLETED


def test_what_comes_before_the_decision_is_given_out() -> None:
    stream = b": hello\n\n" + wire.FUTURE + chat.DONE + chat.ANSWER
    receiver = Receiver.detecting()
    events = list(wire.drain(receiver, stream))
    assert events[0] == Comment(text="hello")
    assert isinstance(events[1], Unknown)
    assert isinstance(events[2], Violation)
    assert (events[2].code, events[2].dropped) == ("stray_done", True)
    assert events[-1] == EndOfStream(outcome=Outcome.COMPLETED)


@pytest.mark.parametrize("at", [0, 40, 700])
def test_a_detecting_receiver_is_a_value(at: int) -> None:
    receiver = Receiver.detecting(limits=Limits(max_event_size=10_000))
    receiver.receive_data(responses.ANSWER[:at])
    seen = list(receiver)
    for other in (pickle.loads(pickle.dumps(receiver)), copy.copy(receiver), copy.deepcopy(receiver)):
        rest = list(wire.drain(other, responses.ANSWER[at:]))
        assert seen + rest == responses.receive(responses.ANSWER)[1]
        assert other.protocol is RESPONSES


@pytest.mark.parametrize("stream", [b"", b": hello\n\n", b"data: {", chat.role()[:-2], wire.FUTURE])
def test_a_stream_that_never_tells(stream: bytes) -> None:
    receiver = Receiver.detecting()
    error = list(wire.drain(receiver, stream))[-1]
    assert isinstance(error, StreamTruncated)
    assert error.code == "eof_before_first_event"
    assert (error.protocol, receiver.outcome) == ("undecided", Outcome.TRUNCATED)


def test_the_last_frame_may_be_the_first_that_tells() -> None:
    # The blank line is missing, so there is no frame; and nothing had begun.
    receiver = Receiver.detecting()
    error = list(wire.drain(receiver, chat.ERROR.rstrip()))[-1]
    assert isinstance(error, StreamTruncated)


@pytest.mark.parametrize("body", [b'{"error": {"message": "m"}}', b"<html>"])
def test_a_body_that_is_no_event_stream(body: bytes) -> None:
    error = list(wire.drain(Receiver.detecting(), body))[-1]
    assert isinstance(error, NotAnEventStream)
    assert error.error == ({"message": "m"} if body.startswith(b"{") else None)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(("protocol", "answer"), ANSWERS, ids=IDS)
def test_a_stream_of_another_protocol(protocol: Protocol[Any], answer: bytes, strict: bool) -> None:
    for other, _ in ANSWERS:
        if other is protocol:
            continue
        receiver, events = wire.receive(b": hello\n\n" + answer, protocol=other, strict=strict)
        comment, error = events
        assert comment == Comment(text="hello")
        assert isinstance(error, RemoteProtocolError)
        assert error.code == "wrong_protocol"
        assert f"this looks like {protocol.name}, not {other.name}" in error.message
        assert error.protocol == other.name
        assert isinstance(error.event, Unknown)
        assert error.legal == Receiver(other).legal()
        assert receiver.outcome is Outcome.PROTOCOL_ERROR


@pytest.mark.parametrize(("protocol", "answer"), ANSWERS, ids=IDS)
def test_in_the_middle_another_protocols_event_is_only_unknown(
    protocol: Protocol[Any], answer: bytes
) -> None:
    middle = answer.index(b"\n\n") + 2
    for other, foreign in ANSWERS:
        if other is protocol:
            continue
        first = foreign[: foreign.index(b"\n\n") + 2]
        receiver, events = wire.receive(answer[:middle] + first + answer[middle:], protocol=protocol)
        assert receiver.outcome is Outcome.COMPLETED
        assert any(isinstance(event, Unknown) for event in events)


@pytest.mark.parametrize("protocol", [RESPONSES, MESSAGES], ids=["responses", "messages"])
def test_an_error_without_a_type_is_read_as_an_error(protocol: Protocol[Any]) -> None:
    receiver, events = wire.receive(chat.ERROR, protocol=protocol)
    assert receiver.outcome is Outcome.FAILED
    assert wire.codes(events) == ["missing_type", "missing_event_name"]
    assert events[-2].info.message == "m"


def test_only_responses_go_on_in_the_middle() -> None:
    for protocol in (CHAT, MESSAGES):
        with pytest.raises(LocalProtocolError, match="cannot go on in the middle"):
            Receiver(protocol, starting_after=3)
    assert Receiver(RESPONSES, starting_after=3).state.name == "RESUMED"


def test_the_end_mark_may_lack_its_line_ends() -> None:
    stream = chat.ANSWER.rstrip()
    receiver, events = chat.receive(stream)
    assert wire.codes(events) == ["unterminated_final_event"]
    assert receiver.outcome is Outcome.COMPLETED
    receiver, events = chat.receive(stream, clean=False)
    assert receiver.outcome is Outcome.TRUNCATED
    receiver, events = chat.receive(stream, strict=True)
    assert isinstance(events[-1], StreamTruncated)
