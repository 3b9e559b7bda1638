"""Public bug reports about Messages streams, each as a small input with the right behaviour.

The ids are those of the project's collection of cases.
"""

from __future__ import annotations

from typing import Any

import pytest

from sse_machines import (
    EndOfStream,
    NotAnEventStream,
    Outcome,
    RemoteProtocolError,
    StreamTruncated,
    Unknown,
    Violation,
)
from sse_machines.messages import ContentBlockDelta, ContentBlockStart, Error, MessageStart
from tests import wire

TEXT = wire.block_start(0, text="")
HI = wire.text(0, "hi")
END = wire.message_delta() + wire.STOP


def text_of(events: list[Any]) -> str:
    return "".join(
        event.delta["text"]
        for event in events
        if isinstance(event, ContentBlockDelta) and event.delta["type"] == "text_delta"
    )


def check(stream: bytes, codes: list[str], outcome: Outcome, text: str | None = None) -> list[Any]:
    """Lenient: these deviations, this outcome, this text. Strict: the first of them is raised."""
    receiver, events = wire.receive(stream)
    assert wire.codes(events) == codes
    assert receiver.outcome is outcome
    if text is not None:
        assert text_of(events) == text
    strict, seen = wire.receive(stream, strict=True)
    if codes:
        assert isinstance(seen[-1], RemoteProtocolError)
        assert wire.codes(seen) == codes[:1]
        assert not strict.finished or strict.outcome is seen[-1].outcome
    else:
        assert seen[-1] == EndOfStream(outcome=outcome)
    return events


def test_po01_block_before_message_start() -> None:
    stream = TEXT + HI + wire.start() + wire.block_stop(0) + END
    codes = ["event_before_message_start", "late_message_start"]
    events = check(stream, codes, Outcome.COMPLETED, "hi")
    assert isinstance(events[0], Violation)
    assert isinstance(events[1], ContentBlockStart)


def test_po02_duplicate_message_start() -> None:
    stream = wire.start() + wire.start() + TEXT + HI + wire.block_stop(0) + END
    events = check(stream, ["duplicate_message_start"], Outcome.COMPLETED, "hi")
    assert sum(isinstance(event, MessageStart) for event in events) == 1


def test_po04_index_gap_and_delta_for_another_block() -> None:
    stream = (
        wire.start()
        + TEXT
        + wire.text(0, "a")
        + wire.block_stop(0)
        + wire.block_start(2, text="")
        + wire.text(3, "b")
        + wire.block_stop(3)
        + END
    )
    events = check(
        stream,
        ["block_index_gap", "delta_without_start", "block_left_open"],
        Outcome.COMPLETED,
        "ab",
    )
    violations = [event for event in events if isinstance(event, Violation)]
    assert [violation.key for violation in violations] == [None, 3, 2]


def test_po05_delta_type_does_not_fit_its_block() -> None:
    stream = (
        wire.start()
        + wire.block_start(0, "tool_use", id="toolu_1", name="f", input={})
        + wire.delta(0, "input_json_delta", partial_json="{}")
        + wire.text(0, "\n")
        + wire.block_stop(0)
        + wire.message_delta("tool_use")
        + wire.STOP
    )
    events = check(stream, ["delta_type_mismatch"], Outcome.COMPLETED, "")
    violation = next(event for event in events if isinstance(event, Violation))
    assert violation.dropped
    assert violation.key == 0
    assert violation.legal == (
        "input_json_delta",
        "content_block_stop",
        "message_delta",
    )


def test_po07_delta_after_its_block_was_closed() -> None:
    stream = (
        wire.start()
        + wire.block_start(0, "thinking", thinking="", signature="")
        + wire.delta(0, "thinking_delta", thinking="a")
        + wire.block_stop(0)
        + wire.block_start(1, "tool_use", id="toolu_1", name="f", input={})
        + wire.delta(1, "input_json_delta", partial_json="{}")
        + wire.block_stop(1)
        + wire.delta(0, "thinking_delta", thinking="b")
        + wire.message_delta("tool_use")
        + wire.STOP
    )
    events = check(stream, ["delta_for_closed_block"], Outcome.COMPLETED)
    deltas = [event.delta for event in events if isinstance(event, ContentBlockDelta)]
    assert {"type": "thinking_delta", "thinking": "b"} not in deltas


def test_po08_block_left_open() -> None:
    events = check(wire.start() + TEXT + HI + END, ["block_left_open"], Outcome.COMPLETED, "hi")
    assert [event.key for event in events if isinstance(event, Violation)] == [0]


def test_seen_out_of_tokens_inside_a_tool_call() -> None:
    stream = (
        wire.start()
        + wire.block_start(0, "tool_use", id="toolu_1", name="f", input={})
        + wire.delta(0, "input_json_delta", partial_json='{"a')
        + wire.message_delta("max_tokens")
        + wire.STOP
    )
    check(stream, [], Outcome.COMPLETED)


def test_seen_programmatic_tool_calling() -> None:
    block = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}}
    check(wire.start(content=[block], stop_reason="tool_use") + wire.STOP, [], Outcome.COMPLETED)


def test_po10_error_ends_the_message() -> None:
    interrupted = wire.event(
        "error",
        error={"type": "api_error", "message": "Response stream interrupted, please retry"},
    )
    stream = wire.start() + TEXT + wire.text(0, "par") + interrupted
    events = check(stream, [], Outcome.FAILED, "par")
    error = events[-2]
    assert isinstance(error, Error)
    assert error.info.type == "api_error"
    assert error.info.message == "Response stream interrupted, please retry"
    assert error.info.retryable is True


def test_po10_what_follows_an_error_changes_nothing() -> None:
    stream = wire.start() + wire.ERROR + wire.message_delta() + wire.STOP
    check(stream, ["event_after_error", "event_after_error"], Outcome.FAILED)


def test_po11_no_event_names() -> None:
    stream = wire.start() + TEXT + HI + wire.block_stop(0) + END
    nameless = b"".join(
        line for line in stream.splitlines(keepends=True) if not line.startswith(b"event:")
    )
    check(nameless, ["missing_event_name"] * 6, Outcome.COMPLETED, "hi")


def test_po13_event_name_and_type_disagree() -> None:
    stop = wire.block_stop(0).replace(b"event: content_block_stop", b"event: content_block_delta")
    check(wire.start() + TEXT + stop + END, ["event_name_mismatch"], Outcome.COMPLETED)


def test_po14_block_start_with_content() -> None:
    stream = (
        wire.start()
        + wire.block_start(0, text="He")
        + wire.text(0, "llo")
        + wire.block_stop(0)
        + wire.block_start(1, "tool_use", id="toolu_1", name="f", input={"k": 1})
        + wire.block_stop(1)
        + wire.message_delta("tool_use")
        + wire.STOP
    )
    events = check(stream, [], Outcome.COMPLETED)
    blocks = [event.content_block for event in events if isinstance(event, ContentBlockStart)]
    assert blocks[0]["type"] == "text"
    assert blocks[0]["text"] == "He"


NAMELESS_ERROR = wire.event(
    "error", error={"type": "rate_limit_error", "message": "Concurrency limit exceeded"}
).removeprefix(b"event: error\n")


def test_me02_error_without_event_name() -> None:
    receiver, events = wire.receive(b'data: {"type": "ping"}\n\n' + NAMELESS_ERROR)
    assert wire.codes(events) == ["missing_event_name"] * 2
    assert receiver.outcome is Outcome.FAILED


def test_me02_an_error_is_recognised_in_strict_mode_too() -> None:
    receiver, events = wire.receive(NAMELESS_ERROR, strict=True)
    violation, error, end = events
    assert violation.code == "missing_event_name"
    assert error.info.message == "Concurrency limit exceeded"
    assert end == EndOfStream(outcome=Outcome.FAILED)
    assert receiver.outcome is Outcome.FAILED


@pytest.mark.parametrize("strict", [False, True])
def test_me06_error_that_is_a_string(strict: bool) -> None:
    text = '{"message":"Bedrock is unable to process your request."}'
    receiver, events = wire.receive(wire.start() + wire.event("error", error=text), strict=strict)
    assert wire.codes(events) == ["error_not_object"]
    assert events[-2].error == text
    assert events[-2].info.message == text
    assert receiver.outcome is Outcome.FAILED


@pytest.mark.parametrize("strict", [False, True])
def test_flat_error_of_llama_cpp_forks(strict: bool) -> None:
    flat = wire.event("error", code=500, message="slot unavailable")
    flat = flat.replace(b'"type": "error"', b'"type": "server_error"')
    receiver, events = wire.receive(wire.start() + flat, strict=strict)
    assert wire.codes(events) == ["flat_error"]
    info = events[-2].info
    assert (info.type, info.code, info.message) == ("server_error", 500, "slot unavailable")
    assert info.retryable is None
    assert receiver.outcome is Outcome.FAILED


@pytest.mark.parametrize(("magic", "name"), [(b"\x1f\x8b\x08\x00", "gzip"), (b"(\xb5/\xfd\x04", "zstd")])
def test_px04_a_body_that_nobody_decompressed(magic: bytes, name: str) -> None:
    receiver, events = wire.receive(magic + b"\x00\x00\x03KJ,I")
    assert isinstance(events[-1], NotAnEventStream)
    assert f"but {name}, to be decompressed first" in events[-1].message
    assert receiver.outcome is Outcome.NOT_SSE


def test_px05_amazon_binary_framing() -> None:
    body = (
        b"\x00\x00\x00\x8b\x00\x00\x00K\xa5\x13\x0b\x0e\x0b:event-type\x07\x00\x05chunk"
        b"\r:content-type\x07\x00\x10application/json"
    )
    receiver, events = wire.receive(body)
    assert isinstance(events[-1], NotAnEventStream)
    assert receiver.outcome is Outcome.NOT_SSE


@pytest.mark.parametrize("strict", [False, True])
def test_px08_a_second_answer_glued_on(strict: bool) -> None:
    stream = (
        wire.start()
        + TEXT
        + wire.text(0, "Once upon")
        + wire.start(id="msg_2")
        + TEXT
        + wire.text(0, "Once upon a time")
        + wire.block_stop(0)
        + END
    )
    receiver, events = wire.receive(stream, strict=strict)
    # Whatever was made of the two would be neither of them: fatal in both modes.
    assert wire.codes(events) == ["spliced_message"]
    assert text_of(events) == "Once upon"
    assert receiver.outcome is Outcome.PROTOCOL_ERROR


def test_fc02_unknown_event_and_block_types() -> None:
    stream = (
        wire.start()
        + wire.FUTURE
        + wire.block_start(0, "server_tool_use", id="srv_1", name="web_search", input={})
        + wire.delta(0, "input_json_delta", partial_json='{"q":"x"}')
        + wire.block_stop(0)
        + wire.block_start(1, "future_block", payload="z")
        + wire.delta(1, "future_delta", x=1)
        + wire.block_stop(1)
        + END
    )
    events = check(stream, [], Outcome.COMPLETED)
    assert isinstance(events[1], Unknown)
    assert events[1].name == "session.status"
    assert events[1].payload == {"type": "session.status", "s": 1}


def test_openrouter_ends_with_the_mark_of_chat_completions() -> None:
    stream = wire.ANSWER + b"event: data\ndata: [DONE]\n\n"
    receiver, events = wire.receive(stream)
    assert wire.codes(events) == ["trailing_done"]
    assert receiver.outcome is Outcome.COMPLETED


ENDS: list[tuple[bytes, str, Outcome]] = [
    (b"", "eof_before_message_start", Outcome.TRUNCATED),
    (b": keep-alive\n\n", "eof_before_message_start", Outcome.TRUNCATED),
    (b"event: message_sta", "eof_before_message_start", Outcome.TRUNCATED),
    (wire.start(), "truncated", Outcome.TRUNCATED),
    (wire.start() + TEXT + HI, "truncated", Outcome.TRUNCATED),
    (wire.start() + wire.message_delta(None), "truncated", Outcome.TRUNCATED),
    (wire.start() + wire.message_delta() + b"event: message_st", "truncated", Outcome.TRUNCATED),
]


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(("stream", "code", "outcome"), ENDS)
def test_cut(stream: bytes, code: str, outcome: Outcome, strict: bool) -> None:
    receiver, events = wire.receive(stream, strict=strict)
    assert isinstance(events[-1], StreamTruncated)
    assert events[-1].code == code
    assert events[-1].outcome is outcome
    assert receiver.outcome is outcome


def test_no_message_stop_after_the_stop_reason() -> None:
    receiver, events = wire.receive(wire.start() + wire.message_delta())
    assert wire.codes(events) == ["missing_message_stop"]
    assert events[-1] == EndOfStream(outcome=Outcome.COMPLETED_NO_DONE)
    assert receiver.outcome is Outcome.COMPLETED_NO_DONE
    assert receiver.state.name == "ENDED"
    _, strict = wire.receive(wire.start() + wire.message_delta(), strict=True)
    assert isinstance(strict[-1], StreamTruncated)
    assert strict[-1].code == "missing_message_stop"
