"""The gateway's page on streaming, sentence by sentence, on `RelayConfig.hopbase`.

The numbers are those of the nine facts that the library was made for.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from sse_machines import (
    CHAT,
    MESSAGES,
    RESPONSES,
    Comment,
    FrameReader,
    LocalProtocolError,
    Relay,
    RelayConfig,
    RelayOutcome,
    collect,
)
from sse_machines._protocol import Protocol
from sse_machines.relay import FailedBeforeOutput, KeepAliveQueued, Stalled, Synthesized
from sse_machines.testing import Arrive, Break, End, Leave, drive
from tests import wire
from tests.chat import wire as chat

COMMENT = b": hopbase-keepalive\n\n"
INTERRUPTED = "Response stream interrupted, please retry"


def data(payload: Any, name: str = "") -> bytes:
    """A frame as the page shows it: compact JSON in UTF-8."""
    text = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
    return (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()


def chunk(choices: Any, **members: Any) -> bytes:
    head = {"id": "chatcmpl-EXAMPLE", "object": "chat.completion.chunk", "model": "gpt-5.6-sol"}
    return data({**head, "choices": choices, **members})


COUNTS = {"prompt_tokens": 14, "completion_tokens": 52, "total_tokens": 66}
CHAT_EXAMPLE = [
    chunk([{"index": 0, "delta": {"role": "assistant", "content": "我是"}, "finish_reason": None}]),
    chunk([{"index": 0, "delta": {}, "finish_reason": "stop"}]),
    chunk([], usage=COUNTS),
    b"data: [DONE]\n\n",
]


def response(kind: str, **members: Any) -> bytes:
    return data({"type": f"response.{kind}", **members}, f"response.{kind}")


RESPONSES_EXAMPLE = [
    response("created", response={"id": "resp_EXAMPLE", "status": "in_progress"}),
    response("output_text.delta", item_id="msg_EXAMPLE", output_index=0, content_index=0, delta="我是"),
    response(
        "completed",
        response={
            "id": "resp_EXAMPLE",
            "status": "completed",
            "usage": {"input_tokens": 14, "output_tokens": 58, "total_tokens": 72},
        },
    ),
]


def message(kind: str, **members: Any) -> bytes:
    return data({"type": kind, **members}, kind)


MESSAGES_EXAMPLE = [
    message(
        "message_start",
        message={
            "id": "msg_EXAMPLE",
            "role": "assistant",
            "model": "claude-sonnet-5",
            "content": [],
            "usage": {"input_tokens": 9, "output_tokens": 1},
        },
    ),
    message("content_block_delta", index=0, delta={"type": "text_delta", "text": "你好"}),
    message("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 14}),
    message("message_stop"),
]

EXAMPLES: list[tuple[Protocol[Any, Any], list[bytes], str]] = [
    (CHAT, CHAT_EXAMPLE, "我是"),
    (RESPONSES, RESPONSES_EXAMPLE, "我是"),
    (MESSAGES, MESSAGES_EXAMPLE, "你好"),
]
IDS = ["chat", "responses", "messages"]
each_answer = pytest.mark.parametrize(("protocol", "frames", "text"), EXAMPLES, ids=IDS)
each_protocol = pytest.mark.parametrize(
    ("protocol", "frames"), [(protocol, frames) for protocol, frames, _ in EXAMPLES], ids=IDS
)


def hopbase(protocol: Protocol[Any, Any], **options: Any) -> Relay:
    return Relay(protocol, RelayConfig.hopbase(**options), now=0.0)


@each_answer
def test_1_contents_are_never_changed_and_only_comments_are_inserted(
    protocol: Protocol[Any, Any], frames: list[bytes], text: str
) -> None:
    steps = [Arrive(12.0 * number, frame) for number, frame in enumerate(frames, 1)]
    recording = drive(hopbase(protocol), steps)
    assert recording.data.replace(COMMENT, b"") == b"".join(frames)
    assert recording.data.count(COMMENT) == len(frames)
    assert recording.relay.outcome is RelayOutcome.COMPLETED
    assert collect(recording.data, protocol).text == text


@each_protocol
def test_2_about_every_ten_seconds_one_comment_line_between_two_events(
    protocol: Protocol[Any, Any], frames: list[bytes]
) -> None:
    # The model thinks for 45 s behind its first output, in the middle of an event.
    first, half = b"".join(frames[:2]), frames[2][:20]
    steps = [Arrive(0, first + half), Arrive(45, frames[2][20:]), Arrive(45, b"".join(frames[3:]))]
    recording = drive(hopbase(protocol), steps)
    assert recording.when(KeepAliveQueued) == [10, 20, 30, 40]
    assert recording.data == first + COMMENT * 4 + b"".join(frames[2:])
    # Whoever parses by line skips what begins with a colon, and meets JSON nowhere in it.
    comments = [line for line in recording.data.split(b"\n") if line.startswith(b":")]
    assert comments == [b": hopbase-keepalive"] * 4
    # A standard parser sees comments, and no event more.
    reader = FrameReader()
    reader.feed(recording.data)
    seen = list(iter(reader.next_frame, None))
    assert sum(frame.data is not None for frame in seen) == len(frames)
    assert {line for frame in seen for line in frame.comments} == {" hopbase-keepalive"}


@each_protocol
def test_2_the_connection_is_kept_before_the_first_output_too(
    protocol: Protocol[Any, Any], frames: list[bytes]
) -> None:
    recording = drive(hopbase(protocol), [Arrive(85, b"".join(frames))])
    assert recording.when(KeepAliveQueued) == [10, 20, 30, 40, 50, 60, 70, 80]
    assert recording.data == COMMENT * 8 + b"".join(frames)


@pytest.mark.parametrize("stall", [90, 120, 150])
@each_protocol
def test_3_nothing_for_90_to_150_seconds_is_a_stall_that_is_retried(
    protocol: Protocol[Any, Any], frames: list[bytes], stall: float
) -> None:
    held = [Arrive(5, frames[0])] if protocol is not CHAT else [Arrive(5, b": waiting\n\n")]
    recording = drive(hopbase(protocol, stall=stall), held, [Arrive(1, b"".join(frames))])
    began = 0 if protocol is CHAT else 5
    assert recording.told(Stalled) == [Stalled(kind="idle_progress", since=began)]
    assert recording.when(FailedBeforeOutput) == [began + stall]
    assert recording.told(FailedBeforeOutput)[0].retryable
    # The client sees one answer, as if nothing had been.
    assert recording.data.replace(COMMENT, b"") == b"".join(frames)
    assert recording.relay.outcome is RelayOutcome.COMPLETED


@each_protocol
def test_3_or_reported_as_an_error(protocol: Protocol[Any, Any], frames: list[bytes]) -> None:
    recording = drive(hopbase(protocol), [Arrive(1, b"".join(frames[:2]))])
    assert recording.relay.outcome is RelayOutcome.STALLED
    assert recording.when(Stalled) == [121]
    assert recording.ended_at == 121
    assert collect(recording.data, protocol).outcome == "failed"


@pytest.mark.parametrize("stall", [89.9, 150.1, float("nan")])
def test_3_no_model_has_another_patience(stall: float) -> None:
    with pytest.raises(LocalProtocolError, match="between 90 and 150"):
        RelayConfig.hopbase(stall=stall)


def test_4_chat_completions() -> None:
    recording = drive(hopbase(CHAT), [Arrive(0, b"".join(CHAT_EXAMPLE))])
    usage = recording.relay.usage
    assert recording.data.endswith(b"data: [DONE]\n\n")
    assert (usage.status, usage.input, usage.output, usage.total) == ("final", 14, 52, 66)
    answer = collect(recording.data, CHAT)
    assert (answer.text, answer.finish_reason) == ("我是", "stop")


def test_4_arguments_are_joined_by_index() -> None:
    pieces = [chat.call(0, '{"a"', "c0", "f"), chat.call(1, "{}", "c1", "g"), chat.call(0, ":1}")]
    stream = b"".join(chat.calls(piece) for piece in pieces) + chat.finish("tool_calls") + chat.DONE
    recording = drive(hopbase(CHAT), [Arrive(0, stream)])
    calls = collect(recording.data, CHAT).tool_calls
    assert [(call.index, call.arguments) for call in calls] == [(0, '{"a":1}'), (1, "{}")]
    assert recording.relay.counters.arguments == 9


def test_5_responses() -> None:
    recording = drive(hopbase(RESPONSES), [Arrive(0, b"".join(RESPONSES_EXAMPLE))])
    usage = recording.relay.usage
    assert (usage.status, usage.input, usage.output, usage.total) == ("final", 14, 58, 72)
    answer = collect(recording.data, RESPONSES)
    assert (answer.text, answer.outcome) == ("我是", "completed")


@pytest.mark.parametrize("code", ["rate_limit_exceeded", "server_error", "invalid_prompt"])
def test_5_a_failure_on_the_way_names_its_reason(code: str) -> None:
    error = {"code": code, "message": "no"}
    failed = response("failed", response={"id": "resp_EXAMPLE", "status": "failed", "error": error})
    recording = drive(hopbase(RESPONSES), [Arrive(0, b"".join(RESPONSES_EXAMPLE[:2]) + failed)])
    assert recording.data == b"".join(RESPONSES_EXAMPLE[:2]) + failed
    assert recording.relay.outcome is RelayOutcome.FAILED_UPSTREAM
    found = collect(recording.data, RESPONSES).error
    assert found is not None
    assert found.code == code


def test_6_messages() -> None:
    recording = drive(hopbase(MESSAGES), [Arrive(0, b"".join(MESSAGES_EXAMPLE))])
    usage = recording.relay.usage
    assert (usage.status, usage.input, usage.output) == ("final", 9, 14)
    answer = collect(recording.data, MESSAGES)
    assert (answer.text, answer.finish_reason) == ("你好", "end_turn")


@each_protocol
def test_7_errors_behind_the_beginning_come_as_events(
    protocol: Protocol[Any, Any], frames: list[bytes]
) -> None:
    recording = drive(hopbase(protocol), [Arrive(0, b"".join(frames[:2])), Break(1)])
    last = recording.data.removeprefix(b"".join(frames[:2]))
    reader = FrameReader()
    reader.feed(last)
    frame = reader.next_frame()
    assert frame is not None
    assert frame.raw == last
    names = {CHAT.name: None, RESPONSES.name: "response.failed", MESSAGES.name: "error"}
    assert frame.event == names[protocol.name]
    payload = json.loads(frame.data or "")
    holder = payload["response"] if protocol is RESPONSES else payload
    assert holder["error"]["message"] == INTERRUPTED


def test_8_a_claude_stream_that_breaks_off_gets_exactly_this_event() -> None:
    for end in (End(1), Break(1)):
        recording = drive(hopbase(MESSAGES), [Arrive(0, b"".join(MESSAGES_EXAMPLE[:2])), end])
        assert recording.data == b"".join(MESSAGES_EXAMPLE[:2]) + (
            b"event: error\n"
            b'data: {"type":"error","error":{"type":"api_error",'
            b'"message":"Response stream interrupted, please retry"}}\n\n'
        )
        assert recording.ended_at == 1


def test_8_half_an_event_is_not_glued_to_it() -> None:
    stream = b"".join(MESSAGES_EXAMPLE[:2]) + MESSAGES_EXAMPLE[2][:-1]
    recording = drive(hopbase(MESSAGES), [Arrive(0, stream), End(1)])
    assert recording.data.startswith(b"".join(MESSAGES_EXAMPLE[:2]) + b"event: error\n")


@each_protocol
def test_9_what_was_received_cannot_be_resumed(
    protocol: Protocol[Any, Any], frames: list[bytes]
) -> None:
    relay = hopbase(protocol)
    relay.receive_data(b"".join(frames[:2]), 0.0)
    with pytest.raises(LocalProtocolError, match="no other attempt"):
        relay.new_attempt(1.0)
    # It can still go on: nothing has changed.
    assert relay.receive_data(b"".join(frames[2:]), 1.0).finished


@each_answer
def test_9_what_was_produced_before_the_break_is_billed(
    protocol: Protocol[Any, Any], frames: list[bytes], text: str
) -> None:
    told = {CHAT.name: "none", RESPONSES.name: "none", MESSAGES.name: "partial"}
    for end in (Break(1), Leave(1), End(1)):
        recording = drive(hopbase(protocol), [Arrive(0, b"".join(frames[:2])), end])
        assert recording.relay.counters.text == len(text)
        assert recording.relay.usage.status == told[protocol.name]


def test_the_relay_writes_nothing_of_its_own_into_a_whole_answer() -> None:
    recording = drive(hopbase(MESSAGES), [Arrive(0, wire.ANSWER)])
    assert recording.data == wire.ANSWER
    assert not recording.told(Synthesized)
    assert [event.text for event in recording.told(Comment)] == ["keep-alive"]
