"""One call for a whole answer: whatever the wire did, the result says what came of it."""

from __future__ import annotations

import io
import json
import pickle
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

import sse_machines
from sse_machines import (
    CHAT,
    MESSAGES,
    RESPONSES,
    AnswerTooLarge,
    FrameTooLarge,
    Limits,
    NotAnEventStream,
    Outcome,
    RemoteProtocolError,
    StreamTruncated,
    collect,
)
from sse_machines._collect import MAX_VIOLATIONS
from sse_machines._protocol import ErrorInfo
from tests import broken, wire
from tests.chat import wire as chat_wire

SAMPLES = Path(sse_machines.__file__).parent / "samples"
PROTOCOLS = {protocol.name: protocol for protocol in (CHAT, RESPONSES, MESSAGES)}


def test_an_answer_that_went_well() -> None:
    result = collect(wire.ANSWER, MESSAGES)
    assert result.outcome is Outcome.COMPLETED
    assert result.text == "你好, world \u2028🌍"
    assert result.reasoning == "hm"
    assert [(call.id, call.name, call.input) for call in result.tool_calls] == [
        ("toolu_1", "f", {"a": 1})
    ]
    assert result.usage == {"input_tokens": 5, "output_tokens": 3}
    assert result.usage_final
    assert result.finish_reason == "tool_use"
    assert result.violations == ()
    assert result.error is None
    assert result.message == {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 5, "output_tokens": 3},
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            {"type": "text", "text": "你好, world \u2028🌍"},
            {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}},
        ],
    }
    assert result.accumulator.text_length == len(result.text)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_protocol_tells_itself(name: str) -> None:
    stream = (SAMPLES / f"{name}.sse").read_bytes()
    told, found = collect(stream, PROTOCOLS[name]), collect(stream)
    assert found.message == told.message
    assert found.outcome is told.outcome is Outcome.COMPLETED
    assert found.text.startswith("Let me ")
    assert found.tool_calls[0].complete
    assert found.tool_calls[0].input["city"] == "Oslo"


def pieces(stream: bytes) -> Iterator[bytes]:
    for start in range(0, len(stream), 7):
        yield stream[start : start + 7]


@pytest.mark.parametrize(
    "body",
    [
        wire.ANSWER,
        bytearray(wire.ANSWER),
        memoryview(wire.ANSWER),
        [wire.ANSWER],
        [*pieces(wire.ANSWER), b""],
        pieces(wire.ANSWER),
        io.BytesIO(wire.ANSWER),
    ],
    ids=["bytes", "bytearray", "memoryview", "list", "pieces", "generator", "file"],
)
def test_a_body_comes_in_any_form(body: Any) -> None:
    assert collect(body).message == collect(wire.ANSWER).message
    assert collect(wire.ANSWER).message


def test_another_json_parser() -> None:
    assert collect(wire.ANSWER, loads=orjson.loads).message == collect(wire.ANSWER).message


def test_an_error_in_the_stream() -> None:
    result = collect(wire.start() + wire.block_start(0, text="") + wire.text(0, "par") + wire.ERROR)
    assert result.outcome is Outcome.FAILED
    assert result.text == "par"
    assert isinstance(result.error, ErrorInfo)
    assert (result.error.type, result.error.retryable) == ("overloaded_error", True)
    assert not result.usage_final


def test_what_the_stream_said_counts_more_than_what_broke_later() -> None:
    result = collect([wire.start(), wire.ERROR, b"data: x" * 99], limits=Limits(max_event_size=300))
    assert isinstance(result.error, ErrorInfo)
    assert result.outcome is Outcome.FAILED


FATAL = [
    (b"", StreamTruncated, Outcome.TRUNCATED),
    (wire.ANSWER[:700], StreamTruncated, Outcome.TRUNCATED),
    (wire.start() + b"data: " + b"x" * 999, FrameTooLarge, Outcome.LIMIT),
    (wire.ANSWER + wire.ANSWER, None, Outcome.COMPLETED),
    (wire.start() + wire.start(id="other"), RemoteProtocolError, Outcome.PROTOCOL_ERROR),
    (b'{"error": {"message": "no"}}', NotAnEventStream, Outcome.NOT_SSE),
    (b"<html></html>", NotAnEventStream, Outcome.NOT_SSE),
    (b"\x1f\x8b\x08\x00\xff", NotAnEventStream, Outcome.NOT_SSE),
]


@pytest.mark.parametrize(("stream", "error", "outcome"), FATAL)
def test_nothing_that_the_wire_did_is_raised(stream: bytes, error: Any, outcome: Outcome) -> None:
    result = collect(stream, limits=Limits(max_event_size=900))
    assert type(result.error) is (error or type(None))
    assert result.outcome is outcome
    assert (result.message is None) is (not stream.startswith(b"event: message_start"))
    json.dumps(result.message)


def test_a_limit_of_the_answer() -> None:
    result = collect(wire.ANSWER, limits=Limits(max_answer_size=100))
    assert isinstance(result.error, AnswerTooLarge)
    assert result.outcome is Outcome.LIMIT
    assert result.message is not None


def test_deviations_are_told() -> None:
    stream = wire.start() + wire.block_start(0, text="") + wire.message_delta() + wire.STOP
    result = collect(stream)
    assert [violation.code for violation in result.violations] == ["block_left_open"]
    assert result.error is None
    strictly = collect(stream, strict=True)
    assert isinstance(strictly.error, RemoteProtocolError)
    assert strictly.error.code == "block_left_open"
    assert strictly.violations == ()
    assert strictly.outcome is Outcome.PROTOCOL_ERROR


def test_not_all_deviations_are_kept() -> None:
    stream = chat_wire.role() + chat_wire.finish() + chat_wire.text("late") * (MAX_VIOLATIONS + 5)
    result = collect(stream + chat_wire.DONE)
    assert len(result.violations) == MAX_VIOLATIONS == 1000
    assert len(result.text) == 4 * (MAX_VIOLATIONS + 5)


def test_what_the_body_raises_passes_through() -> None:
    def failing() -> Iterator[bytes]:
        yield wire.start()
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        collect(failing())


@pytest.mark.parametrize("name", PROTOCOLS)
def test_broken_streams_never_raise(name: str) -> None:
    stream = (SAMPLES / f"{name}.sse").read_bytes()
    dice = random.Random(name)
    outcomes = set()
    for _ in range(200):
        result = collect(broken.mutated(stream, dice), PROTOCOLS[name])
        outcomes.add(result.outcome)
        assert (result.error is None) is (result.outcome in WELL)
    assert {Outcome.COMPLETED, Outcome.TRUNCATED} <= outcomes
    assert Outcome.OPEN not in outcomes


WELL = (Outcome.COMPLETED, Outcome.COMPLETED_NO_DONE, Outcome.INCOMPLETE)


def test_a_result_can_be_sent_to_another_process() -> None:
    result = pickle.loads(pickle.dumps(collect(wire.ANSWER[:700])))
    assert result.message == collect(wire.ANSWER[:700]).message
    assert isinstance(result.error, StreamTruncated)
    assert "accumulator" not in repr(result)
