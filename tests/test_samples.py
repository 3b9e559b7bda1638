"""The streams that come with the package: whole answers, and what an abbreviating gateway sends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sse_machines
from sse_machines import CHAT, MESSAGES, RESPONSES, Comment, Outcome, ProtocolError, Receiver, detect
from sse_machines._protocol import Protocol
from sse_machines.chat import ChatCompletionChunk, Error as ChatError
from sse_machines.messages import ContentBlockDelta, Error as MessagesError
from sse_machines.responses import Failed, OutputTextDelta
from tests import wire

SAMPLES = Path(sse_machines.__file__).parent / "samples"
WHOLE = "Let me look at the sky over Oslo ☂️."
CREATED = ["missing_member"]
MESSAGE = ["missing_member", "delta_without_start"]
RESPONSE = [
    *("missing_member", "missing_sequence_number"),
    *("sub_event_before_item_added", "delta_before_part_added", "missing_member"),
]
KEEPALIVE = Comment(text="hopbase-keepalive")

# protocol, outcome, text, violations
EXPECTED: dict[str, tuple[Protocol[Any], Outcome, str, list[str]]] = {
    "chat": (CHAT, Outcome.COMPLETED, WHOLE, []),
    "responses": (RESPONSES, Outcome.COMPLETED, WHOLE, []),
    "messages": (MESSAGES, Outcome.COMPLETED, WHOLE, []),
    "gateway/chat": (CHAT, Outcome.COMPLETED, "我是", CREATED),
    "gateway/responses": (RESPONSES, Outcome.COMPLETED, "我是", [*RESPONSE, "item_left_open"]),
    "gateway/messages": (MESSAGES, Outcome.COMPLETED, "你好！", [*MESSAGE, "block_left_open"]),
    "gateway/chat_error": (CHAT, Outcome.FAILED, "我是", CREATED),
    "gateway/responses_error": (RESPONSES, Outcome.FAILED, "我是", RESPONSE),
    "gateway/messages_error": (MESSAGES, Outcome.FAILED, "", ["missing_member"]),
    "gateway/messages_interrupted": (MESSAGES, Outcome.FAILED, "你好！", MESSAGE),
    "gateway/keepalive": (CHAT, Outcome.COMPLETED, "我是", CREATED),
    "gateway/keepalive_before": (MESSAGES, Outcome.COMPLETED, "你好！", [*MESSAGE, "block_left_open"]),
}


def read(name: str) -> bytes:
    return (SAMPLES / f"{name}.sse").read_bytes()


def text_of(events: list[Any]) -> str:
    pieces: list[Any] = []
    for event in events:
        match event:
            case ChatCompletionChunk():
                pieces.append(event.text())
            case OutputTextDelta(delta=text) | ContentBlockDelta(delta={"text": text}):
                pieces.append(text)
    return "".join(pieces)


def test_every_sample_is_expected() -> None:
    names = {str(path.relative_to(SAMPLES).with_suffix("")) for path in SAMPLES.rglob("*.sse")}
    assert names == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_lenient_reads_it(name: str) -> None:
    protocol, outcome, text, codes = EXPECTED[name]
    assert detect(read(name)) is protocol
    receiver, events = wire.receive(read(name), protocol=protocol)
    assert receiver.outcome is outcome
    assert text_of(events) == text
    assert wire.codes(events) == codes
    assert list(wire.drain(Receiver.detecting(), read(name))) == events


@pytest.mark.parametrize("name", EXPECTED)
def test_strict_names_what_is_missing(name: str) -> None:
    protocol, _, _, codes = EXPECTED[name]
    _, events = wire.receive(read(name), protocol=protocol, strict=True)
    assert wire.codes(events) == codes[:1]
    if codes:
        assert isinstance(events[-1], ProtocolError)


def violations(name: str) -> list[str]:
    _, events = wire.receive(read(name), protocol=EXPECTED[name][0])
    return [event.message for event in events if isinstance(event, sse_machines.Violation)]


def test_what_is_missing_is_said() -> None:
    (missing,) = violations("gateway/chat")
    assert "created" in missing
    assert violations("gateway/messages")[0] == "the message has no type, stop_reason, stop_sequence"
    assert violations("gateway/responses")[0].startswith("the response has no object, created_at, model")


@pytest.mark.parametrize("name", EXPECTED)
def test_cuts_change_nothing(name: str) -> None:
    stream, protocol = read(name), EXPECTED[name][0]
    whole = wire.receive(stream, protocol=protocol)[1]
    pieces = [stream[place : place + 1] for place in range(len(stream))]
    assert wire.receive(pieces, protocol=protocol)[1] == whole
    for cut in range(0, len(stream), 1 + len(stream) // 300):
        assert wire.receive([stream[:cut], stream[cut:]], protocol=protocol)[1] == whole


def error_of(name: str) -> Any:
    _, events = wire.receive(read(name), protocol=EXPECTED[name][0])
    (error,) = [event for event in events if isinstance(event, ChatError | Failed | MessagesError)]
    return error.info


def test_the_three_forms_of_an_error() -> None:
    chat, responses = error_of("gateway/chat_error"), error_of("gateway/responses_error")
    messages = error_of("gateway/messages_error")
    assert (chat.type, chat.code, chat.retryable) == ("server_error", "server_is_overloaded", True)
    assert (responses.code, responses.retryable) == ("rate_limit_exceeded", True)
    assert (messages.type, messages.message) == ("overloaded_error", "Overloaded")
    assert b"event:" not in read("gateway/chat_error")


def test_the_interrupted_stream() -> None:
    info = error_of("gateway/messages_interrupted")
    assert (info.type, info.message) == ("api_error", "Response stream interrupted, please retry")
    assert info.retryable


def test_comments_stand_where_they_stood() -> None:
    _, events = wire.receive(read("gateway/keepalive"), protocol=CHAT)
    assert [event == KEEPALIVE for event in events].count(True) == 3
    assert events[0] == KEEPALIVE
    _, events = wire.receive(read("gateway/keepalive_before"), protocol=MESSAGES)
    places = [place for place, event in enumerate(events) if event == KEEPALIVE]
    # One line before an event: out before it, and before what is said of it.
    assert [events[place + 1].type for place in places] == ["violation", "violation"]
    assert len(places) == 2
