"""What a relay counts, beside the answer that an accumulator makes of the same bytes.

Recordings of many vendors (they stay outside of the repository: without them, those tests skip), the
streams that come with the package, and the scenarios.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

import sse_machines
from sse_machines import CHAT, MESSAGES, RESPONSES, Comment, Identity, Receiver, RemoteProtocolError
from sse_machines._detect import PROTOCOL as UNDECIDED
from sse_machines._meter import count_of, sum_of
from sse_machines._protocol import Protocol
from sse_machines._relay import Output, Relay
from sse_machines._relay_config import RelayConfig, Stall
from sse_machines._relay_events import Counters, KeepAliveQueued, UsageChanged
from tests import test_corpus as corpus, wire
from tests.chat import wire as chat
from tests.responses import wire as responses

SAMPLES = Path(sse_machines.__file__).parent / "samples"
SCENARIOS = Path(__file__).parent / "data" / "scenarios.jsonl"
FULL = RelayConfig(keepalive=None, stall=None)
LIGHT = RelayConfig(keepalive=None, stall=None, observe="light")

LENGTHS: dict[str, str] = {
    **dict.fromkeys(
        (
            "responses/001-agentgateway-text-event-name.sse",
            "responses/006-agentgateway-text-event-name.sse",
        ),
        "the text came in pieces, and the item is done without any: the item has the last word",
    ),
    "r.thinking": "the reasoning came in pieces, and the response is completed without any of it",
    "responses/116-openai-text-id-changes-hand.sse": "the first text comes twice, under two indexes",
    **dict.fromkeys(
        (
            "responses/104-openai-empty-odd-cut-hand.sse",
            "responses/105-openai-empty-truncated-cut-hand.sse",
        ),
        "the only event lacks its blank line, so it is not forwarded",
    ),
    "messages/118-anthropic-tools-reasoning-duplicate-message-start-hand.sse": (
        "two answers are glued, which a receiver gives up and a relay forwards"
    ),
}
"""Streams whose lengths differ from those of the answer, and why that is right."""
USAGE = {"messages/118-anthropic-tools-reasoning-duplicate-message-start-hand.sse"}
"""The same for what was used."""
FINAL = {"messages/118-anthropic-tools-reasoning-duplicate-message-start-hand.sse"}
"""The same for whether that is final."""


def streams() -> list[tuple[str, Protocol[Any, Any], bytes]]:
    """Streams that are always here, with their names."""
    found = []
    for path in sorted(SAMPLES.rglob("*.sse")):
        name = str(path.relative_to(SAMPLES))
        protocols = [
            p for p in (RESPONSES, MESSAGES) if p.name in name or (p is MESSAGES and "_be" in name)
        ]
        found.append((name, protocols[0] if protocols else CHAT, path.read_bytes()))
    for line in SCENARIOS.read_text("utf-8").splitlines():
        case = json.loads(line)
        stream = b"".join(base64.b64decode(chunk) for chunk in case["chunks_b64"])
        found.append((case["id"], corpus.PROTOCOLS[case["source"]], stream))
    return found


STREAMS = streams()


def relayed(
    protocol: Protocol[Any, Any], stream: bytes, config: RelayConfig = FULL
) -> tuple[Relay, bytes]:
    relay = Relay(protocol, config, now=0.0)
    return relay, relay.receive_data(stream, 0.0).data + relay.receive_eof(0.0).data


def answer_of(protocol: Protocol[Any, Any], stream: bytes) -> Any:
    receiver: Receiver[Any, Any] = Receiver(protocol, accumulate=True)
    try:
        receiver.receive_data(stream)
        list(receiver)
        receiver.receive_eof()
        list(receiver)
    except RemoteProtocolError:
        pass
    return receiver.accumulator


def check(name: str, protocol: Protocol[Any, Any], stream: bytes) -> None:
    """Compare what is counted with the answer itself."""
    relay, _ = relayed(protocol, stream)
    answer, counters, usage = answer_of(protocol, stream), relay.counters, relay.usage
    lengths = (answer.text_length, answer.reasoning_length, answer.arguments_length)
    assert ((counters.text, counters.reasoning, counters.arguments) == lengths) is (name not in LENGTHS)
    told = {member: count for member, count in (answer.usage or {}).items() if count is not None}
    assert ((usage.raw or {}) == told) is (name not in USAGE)
    assert ((usage.status == "final") is answer.usage_final) is (name not in FINAL)
    assert (usage.raw is None) is (usage.status == "none")


def check_light(protocol: Protocol[Any, Any], stream: bytes) -> None:
    """What is not looked into changes nothing but what is counted of it."""
    full, light = relayed(protocol, stream), relayed(protocol, stream, LIGHT)
    assert light[1] == full[1]
    assert light[0].outcome is full[0].outcome
    assert light[0].usage == full[0].usage
    seen, counters = full[0].counters, light[0].counters
    assert (counters.text, counters.reasoning, counters.arguments) == (None, None, None)
    for name in ("events", "bytes_in", "bytes_out", "first_output_at", "last_progress_at"):
        assert getattr(counters, name) == getattr(seen, name), name


with_recordings = pytest.mark.skipif(not corpus.ROWS, reason="the recordings are not here")
every_recording = pytest.mark.parametrize("row", corpus.ROWS, ids=corpus.name)
every_stream = pytest.mark.parametrize(
    ("name", "protocol", "stream"), STREAMS, ids=[name for name, _, _ in STREAMS]
)


@with_recordings
@pytest.mark.untraced
@every_recording
def test_a_recording_is_counted_as_its_answer(row: dict[str, Any]) -> None:
    check(row["file"], corpus.PROTOCOLS[row["protocol"]], corpus.bytes_of(row))


@with_recordings
@pytest.mark.untraced
@every_recording
def test_a_recording_that_is_not_looked_into(row: dict[str, Any]) -> None:
    check_light(corpus.PROTOCOLS[row["protocol"]], corpus.bytes_of(row))


@every_stream
def test_a_stream_is_counted_as_its_answer(
    name: str, protocol: Protocol[Any, Any], stream: bytes
) -> None:
    check(name, protocol, stream)


@every_stream
def test_a_stream_that_is_not_looked_into(
    name: str, protocol: Protocol[Any, Any], stream: bytes
) -> None:
    assert name
    check_light(protocol, stream)
    # Piece by piece, with the cuts in the middle of events, it is the same.
    relay, data = Relay(protocol, LIGHT, now=0.0), b""
    for place in range(0, len(stream), 97):
        data += relay.receive_data(stream[place : place + 97], 0.0).data
    assert data + relay.receive_eof(0.0).data == relayed(protocol, stream)[1]
    assert relay.usage == relayed(protocol, stream)[0].usage
    # So it is where it breaks off: what ends it has the number of all that was passed over.
    for place in range(0, len(stream), 97):
        check_light(protocol, stream[:place])


@with_recordings
def test_every_exception_is_there() -> None:
    names = {row["file"] for row in corpus.ROWS} | {name for name, _, _ in STREAMS}
    assert {*LENGTHS, *USAGE, *FINAL} <= names
    assert len(STREAMS) == 12 + 36


# --- common terms

NONE = dict.fromkeys(("input", "cached_input", "cache_write", "output", "reasoning", "total"))
OPENAI = {"cached_input": 5, "cache_write": 3, "output": 7, "reasoning": 2, "total": 27, "input": 20}
COUNTS: dict[str, tuple[Protocol[Any, Any], Any, Any]] = {
    "chat": (
        CHAT,
        {
            "prompt_tokens": 20,
            "prompt_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 3},
            "completion_tokens": 7,
            "completion_tokens_details": {"reasoning_tokens": 2},
            "total_tokens": 27,
        },
        OPENAI,
    ),
    "responses": (
        RESPONSES,
        {
            "input_tokens": 20,
            "input_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 3},
            "output_tokens": 7,
            "output_tokens_details": {"reasoning_tokens": 2},
            "total_tokens": 27,
        },
        OPENAI,
    ),
    "messages": (
        MESSAGES,
        {
            "input_tokens": 12,
            "cache_read_input_tokens": 5,
            "cache_creation_input_tokens": 3,
            "output_tokens": 7,
            "output_tokens_details": {"thinking_tokens": 2},
        },
        OPENAI,
    ),
    "messages, nothing cached": (
        MESSAGES,
        {"input_tokens": 12, "output_tokens": 7},
        {**NONE, "input": 12, "output": 7, "total": 19},
    ),
    "messages, before any output": (MESSAGES, {"input_tokens": 12}, {**NONE, "input": 12}),
    "messages, of the output only": (
        MESSAGES,
        {"output_tokens": 7, "cache_read_input_tokens": 5},
        {**NONE, "output": 7, "cached_input": 5},
    ),
    "chat, only the total": (CHAT, {"total_tokens": 3}, {**NONE, "total": 3}),
    "chat, zero is a count": (CHAT, {"prompt_tokens": 0}, {**NONE, "input": 0}),
    "chat, no counts": (
        CHAT,
        {
            "prompt_tokens": "20",
            "completion_tokens": True,
            "total_tokens": -1,
            "prompt_tokens_details": None,
            "completion_tokens_details": [],
        },
        NONE,
    ),
    **{f"{protocol.name}, nothing": (protocol, {}, NONE) for protocol in (CHAT, RESPONSES, MESSAGES)},
}


@pytest.mark.parametrize(("protocol", "usage", "counts"), COUNTS.values(), ids=COUNTS)
def test_counts_in_common_terms(protocol: Protocol[Any, Any], usage: Any, counts: Any) -> None:
    assert protocol.meter.counts(usage) == counts


def test_a_count_is_a_number_in_its_place() -> None:
    assert count_of({"a": {"b": 1}}, "a", "b") == 1
    assert count_of({"a": {"b": 1.0}}, "a", "b") is None
    assert count_of({"a": 1}, "a", "b") is None
    assert (sum_of(1, None, 2), sum_of(None, 1), sum_of(0)) == (3, None, 0)


# --- progress

CHAT_HEAD = chat.role()
RESPONSES_HEAD = responses.CREATED + responses.added() + responses.PART_ADDED
MESSAGES_HEAD = wire.start() + wire.block_start(0, "text", text="")
HEADS: dict[str, tuple[Protocol[Any, Any], bytes]] = {
    "chat": (CHAT, CHAT_HEAD),
    "responses": (RESPONSES, RESPONSES_HEAD),
    "messages": (MESSAGES, MESSAGES_HEAD),
}
COMMENT = b": keep-alive\n\n"
NOTHING: dict[str, dict[str, bytes]] = {
    "chat": {
        "empty delta": chat.delta(),
        "role": chat.role(),
        "empty content": chat.delta(content=""),
        "null content": chat.delta(content=None, tool_calls=None),
        "empty reasoning": chat.delta(reasoning_content=""),
        "empty list of calls": chat.delta(tool_calls=[]),
        "no choice": chat.chunk(),
        "no counts": chat.chunk(usage=None),
        "annotation": chat.ANNOTATION,
        "no JSON": b"data: {\n\n",
        "comment": COMMENT,
        "comment and a bare LF": b": x\n",
        "half an event": chat.text("x")[:-1],
    },
    "responses": {
        "keepalive": responses.KEEPALIVE,
        "in_progress": responses.lifecycle("in_progress"),
        "queued": responses.lifecycle("queued"),
        "empty text": responses.text(""),
        "end mark of another protocol": responses.DONE,
        "no JSON": b"data: {\n\n",
        "comment": COMMENT,
        "half an event": responses.text("x")[:-1],
    },
    "messages": {
        "ping": wire.PING,
        "empty text": wire.text(0, ""),
        "end mark of another protocol": wire.DONE,
        "no JSON": b"event: content_block_delta\ndata: {\n\n",
        "comment": COMMENT,
        "half an event": wire.text(0, "x")[:-1],
    },
}
"""What shows that the server lives, and nothing of the model."""
PROGRESS: dict[str, dict[str, bytes]] = {
    "chat": {
        "finish reason": chat.finish(),
        "usage": chat.USAGE,
        "unknown event": chat.event({"object": "brand.new"}),
    },
    "responses": {
        "item": responses.added(1),
        "part": responses.sub("content_part.added", content_index=1, part=responses.PART),
        "unknown event": responses.event("response.brand_new"),
    },
    "messages": {
        "block": wire.block_stop(0),
        "next block": wire.block_start(1, "thinking", thinking="", signature=""),
        "stop reason": wire.block_stop(0) + wire.message_delta(),
        "unknown event": wire.FUTURE,
    },
}
"""What shows that the model goes on, although nothing of the answer has come."""
OUTPUT: dict[str, dict[str, bytes]] = {
    "chat": {
        "text": chat.text("x"),
        "list of parts": chat.delta(content=[{"type": "text", "text": "x"}]),
        "refusal": chat.delta(refusal="x"),
        "reasoning": chat.delta(reasoning_content="x"),
        "reasoning of others": chat.delta(reasoning="x"),
        "details of reasoning": chat.delta(reasoning_details=[{"type": "reasoning.text", "text": "x"}]),
        "call": chat.calls(chat.call(0, "", "call_1", "f")),
        "arguments": chat.calls(chat.call(0, "{", "call_1", "f")),
        "sound": chat.delta(audio={"data": "AAAA"}),
        "second choice": chat.text("x", index=1),
    },
    "responses": {
        "text": responses.text("x"),
        "refusal": responses.sub("refusal.delta", content_index=0, delta="x"),
        "call": responses.added(1, "function_call", call_id="c", name="f", arguments=""),
        "whole text": responses.TEXT_DONE,
        "reasoning": responses.added(1, "reasoning", summary=[])
        + responses.sub("reasoning_text.delta", 1, "reasoning_1", content_index=0, delta="x"),
        "summary": responses.added(1, "reasoning", summary=[])
        + responses.sub("reasoning_summary_text.delta", 1, "reasoning_1", summary_index=0, delta="x"),
    },
    "messages": {
        "text": wire.text(0, "x"),
        "reasoning": wire.block_start(1, "thinking", thinking="", signature="")
        + wire.delta(1, "thinking_delta", thinking="x"),
        "call": wire.block_start(1, "tool_use", id="t", name="f", input={}),
        "server tool": wire.block_start(1, "server_tool_use", id="t", name="f", input={}),
        "text from the start": wire.block_start(1, "text", text="x"),
    },
}
"""What is a part of the answer."""


def each(events: dict[str, dict[str, bytes]]) -> pytest.MarkDecorator:
    cases = [(name, frame) for name, frames in events.items() for frame in frames.values()]
    ids = [f"{name}, {what}" for name, frames in events.items() for what in frames]
    return pytest.mark.parametrize(("name", "frame"), cases, ids=ids)


def after(name: str, frame: bytes, observe: Any = "full") -> tuple[Relay, Output]:
    """A relay that got the head of an answer at 0 s, and this at 5 s."""
    protocol, head = HEADS[name]
    config = RelayConfig(keepalive=None, stall=Stall(idle_progress=10.0), observe=observe)
    relay = Relay(protocol, config, now=0.0)
    assert relay.receive_data(head, 0.0).deadline == 10.0
    assert not relay.output_started
    return relay, relay.receive_data(frame, 5.0)


@each(NOTHING)
@pytest.mark.parametrize("observe", ["full", "light"])
def test_what_is_no_progress(name: str, frame: bytes, observe: str) -> None:
    relay, output = after(name, frame, observe)
    assert output.deadline == 10.0
    assert not relay.output_started
    assert relay.counters.last_progress_at != 5.0
    # Bytes they are.
    protocol, head = HEADS[name]
    config = RelayConfig(keepalive=None, stall=Stall(idle_progress=None, idle_bytes=10.0))
    relay = Relay(protocol, config, now=0.0)
    relay.receive_data(head, 0.0)
    assert relay.receive_data(frame, 5.0).deadline == 15.0


@each(PROGRESS)
@pytest.mark.parametrize("observe", ["full", "light"])
def test_what_is_progress(name: str, frame: bytes, observe: str) -> None:
    relay, output = after(name, frame, observe)
    assert output.deadline == 15.0
    assert not relay.output_started
    assert relay.counters.last_progress_at == 5.0
    assert relay.counters.first_output_at is None


@each(OUTPUT)
@pytest.mark.parametrize("observe", ["full", "light"])
def test_what_is_output(name: str, frame: bytes, observe: str) -> None:
    relay, output = after(name, frame, observe)
    assert output.deadline == 15.0
    assert relay.output_started
    assert relay.counters.first_output_at == relay.counters.last_progress_at == 5.0


@pytest.mark.parametrize("observe", ["full", "light"])
@pytest.mark.parametrize("name", HEADS)
def test_pieces_are_progress_every_time(name: str, observe: str) -> None:
    piece = OUTPUT[name]["text"]
    relay, _ = after(name, piece, observe)
    for now in (9.0, 14.0, 23.0):
        assert relay.receive_data(piece, now).deadline == now + 10
        assert relay.counters.last_progress_at == now
    assert relay.counters.first_output_at == 5.0


BEGUN: dict[str, tuple[str, bytes, bytes]] = {
    "chat, arguments": (
        "chat",
        chat.calls(chat.call(0, "", "call_1", "f")),
        chat.calls(chat.call(0, "x")),
    ),
    "responses, arguments": (
        "responses",
        responses.added(1, "function_call", call_id="c", name="f", arguments=""),
        responses.sub("function_call_arguments.delta", 1, "function_call_1", delta="x"),
    ),
    "messages, arguments": (
        "messages",
        wire.block_start(1, "tool_use", id="t", name="f", input={}),
        wire.delta(1, "input_json_delta", partial_json="x"),
    ),
    "messages, signature": (
        "messages",
        wire.block_stop(0) + wire.block_start(1, "thinking", thinking="", signature=""),
        wire.delta(1, "signature_delta", signature="x"),
    ),
}
"""Pieces of what has to begin first."""


@pytest.mark.parametrize(("name", "begin", "piece"), BEGUN.values(), ids=BEGUN)
@pytest.mark.parametrize("observe", ["full", "light"])
def test_pieces_of_what_has_begun_are_progress(
    name: str, begin: bytes, piece: bytes, observe: str
) -> None:
    relay, _ = after(name, begin, observe)
    for times in (1, 2, 1, 3):
        now = 5.0 + relay.counters.events
        assert relay.receive_data(piece * times, now).deadline == now + 10
        assert relay.counters.last_progress_at == now
    arguments = None if observe == "light" else 7 if b"signature_delta" not in piece else 0
    assert relay.counters.arguments == arguments
    assert relay.output_started is (b"signature_delta" not in piece)


def test_a_keep_alive_of_our_own_is_neither() -> None:
    relay = Relay(CHAT, RelayConfig(stall=Stall(idle_progress=25.0, idle_bytes=60.0)), now=0.0)
    relay.receive_data(CHAT_HEAD + chat.text("x"), 0.0)
    assert KeepAliveQueued() in relay.handle_timeout(10.0).events
    assert relay.handle_timeout(20.0).deadline == 25.0
    assert relay.counters.last_progress_at == 0.0


def test_usage_is_told_when_it_changes() -> None:
    relay = Relay(MESSAGES, FULL, now=0.0)
    output = relay.receive_data(wire.ANSWER, 0.0)
    told = [event.usage for event in output.events if isinstance(event, UsageChanged)]
    assert [(usage.status, usage.input, usage.output) for usage in told] == [
        ("partial", 5, 1),
        ("final", 5, 3),
    ]
    assert told[-1] == relay.usage


def test_usage_and_counters_are_there_at_a_cut() -> None:
    end = wire.ANSWER.index(b"event: message_delta")
    relay, _ = relayed(MESSAGES, wire.ANSWER[:end])
    assert relay.usage.status == "partial"
    assert (relay.usage.input, relay.usage.output) == (5, 1)
    text = "你好, world \u2028🌍"
    counters = relay.counters
    assert isinstance(counters, Counters)
    assert (counters.text, counters.reasoning, counters.arguments) == (len(text), 2, 7)


@pytest.mark.parametrize("observe", ["full", "light"])
def test_usage_so_far_is_not_final(observe: Any) -> None:
    counts = {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6}
    running = chat.chunk(chat.choice({"content": "x"}), usage=counts)
    config = RelayConfig(keepalive=None, stall=None, observe=observe)
    relay, statuses = Relay(CHAT, config, now=0.0), list[str]()
    # Nothing that comes behind it may belong to the answer.
    for frame in (chat.role() + running * 3, chat.finish(), chat.USAGE, chat.text("y"), chat.USAGE):
        relay.receive_data(frame, 0.0)
        statuses.append(relay.usage.status)
    # The usage beside the last text counts all that had come when the model stopped.
    assert statuses == ["partial", "final", "final", "partial", "final"]


def test_usage_beside_an_empty_delta_behind_the_finish_reason_is_final() -> None:
    # As OpenRouter sends it, in every answer.
    counts = {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6}
    usage = chat.chunk(chat.choice({"role": "assistant", "content": ""}), usage=counts)
    relay, _ = relayed(CHAT, chat.role() + chat.text("x") + chat.finish() + usage)
    assert relay.usage.status == "final"
    relay, _ = relayed(CHAT, chat.role() + chat.text("x") + usage)
    assert relay.usage.status == "partial"


def test_the_date_of_expiry_of_a_sound_is_no_sound() -> None:
    # As OpenAI sends it, behind the usage.
    sound = chat.role() + chat.delta(audio={"id": "a", "data": "AAAA"}) + chat.USAGE
    relay, _ = relayed(CHAT, sound + chat.delta(audio={"expires_at": 1}) + chat.DONE)
    assert relay.usage.status == "final"
    relay, _ = relayed(CHAT, sound + chat.delta(audio={"data": "AAAA"}) + chat.DONE)
    assert relay.usage.status == "partial"


def test_what_nobody_told_the_protocol_of_counts_nothing() -> None:
    meter = UNDECIDED.meter()
    assert meter.counts({"input_tokens": 1}) == {}
    assert not meter.is_only_usage(Comment(text=""))
    assert meter.opening(Identity(id="a", model="m", created=0)) is None
    assert meter.closed


@pytest.mark.parametrize("counts", [{"usage": None}, {"usage": {"prompt_tokens": 3}}])
def test_runs_of_chunks_are_counted(counts: Any) -> None:
    pieces = [chat.calls(chat.call(0, "", "c", "f"))]
    pieces += [
        chat.chunk(chat.choice({"tool_calls": [chat.call(0, '"ab')]}), **counts) for _ in range(5)
    ]
    texts = [chat.chunk(chat.choice({"content": text}), **counts) for text in ("ab", "", "", "", "c")]
    reasons = [chat.chunk(chat.choice({"reasoning": "xyz"}), **counts)] * 4
    relay, _ = relayed(CHAT, b"".join(reasons + texts + pieces) + chat.finish() + chat.DONE)
    counters = relay.counters
    assert (counters.text, counters.reasoning, counters.arguments) == (3, 12, 15)
    assert relay.usage.input == (counts["usage"] and 3)


def test_a_chunk_that_ends_in_an_error_is_counted() -> None:
    failed = chat.chunk(chat.choice({"content": "abc"}, "error"), usage={"prompt_tokens": 2})
    relay, _ = relayed(CHAT, failed)
    assert (relay.outcome, relay.counters.text, relay.usage.input) == ("failed_upstream", 3, 2)


def test_blocks_that_begin_whole_are_counted() -> None:
    stream = (
        wire.start()
        + wire.block_start(0, "text", text="ab")
        + wire.block_stop(0)
        + wire.block_start(1, "thinking", thinking="abc", signature="")
        + wire.delta(1, "signature_delta", signature="x") * 4
        + wire.block_stop(1)
        + wire.block_start(2, "tool_use", id="t", name="f", input={"a": 1})
    )
    counters = relayed(MESSAGES, stream)[0].counters
    assert (counters.text, counters.reasoning, counters.arguments) == (2, 3, len('{"a":1}'))


def test_odd_members_of_items_count_nothing() -> None:
    part = {"output_index": 0, "item_id": "m", "content_index": 0}
    items: list[Any] = [
        1,
        {"type": ["list"], "content": [{"text": "ab"}]},
        {"type": "message", "content": [1, {"type": "output_text"}]},
        {"type": "shell_call", "action": {"commands": [1, "ls"]}},
    ]
    stream = responses.lifecycle("created") + responses.event(
        "response.content_part.added", **part, part={"type": "x"}
    )
    end = responses.event("response.completed", response=responses.response("completed", output=items))
    relay, _ = relayed(RESPONSES, stream + end)
    counters = relay.counters
    assert (counters.text, counters.reasoning, counters.arguments) == (0, 0, 4)


def test_a_response_that_breaks_off_has_the_usage_that_was_told() -> None:
    counts = {"input_tokens": 5, "output_tokens": 0, "total_tokens": 5}
    running = responses.event(
        "response.in_progress", response=responses.response("in_progress", usage=counts)
    )
    relay, data = relayed(RESPONSES, responses.lifecycle("created") + running)
    failed = json.loads(data.rstrip().rpartition(b"data: ")[2])
    assert failed["response"]["usage"] == counts
    assert relay.usage.status == "partial"


@pytest.mark.parametrize("protocol", [CHAT, RESPONSES, MESSAGES], ids=["chat", "responses", "messages"])
def test_a_stall_ends_what_was_not_looked_into_as_it_ends_the_rest(protocol: Protocol[Any, Any]) -> None:
    # No end of the input comes before it, so what was passed over is counted only here.
    pieces = {CHAT: chat.text("x"), RESPONSES: responses.text("x"), MESSAGES: wire.text(0, "x")}
    body = HEADS[protocol.name][1] + pieces[protocol] * 5
    if protocol is RESPONSES:
        events = [event + b"\n\n" for event in body.split(b"\n\n")[:-1]]
        body = responses.numbered(*events)
    ends, stall = list[bytes](), Stall(idle_progress=10.0)
    for config in (
        RelayConfig(stall=stall, keepalive=None),
        RelayConfig(stall=stall, keepalive=None, observe="light"),
    ):
        relay = Relay(protocol, config, now=0.0)
        relay.receive_data(body, 0.0)
        ends.append(relay.handle_timeout(10.0).data)
    assert ends[0] == ends[1] != b""
    assert (b'"sequence_number":8' in ends[0]) is (protocol is RESPONSES)


@pytest.mark.parametrize("config", [FULL, LIGHT], ids=["full", "light"])
def test_usage_does_not_count_what_goes_on_from_an_empty_piece(config: RelayConfig) -> None:
    # The empty piece is what the others are like, so those are never looked at one by one.
    stream = chat.role() + chat.text("a") + chat.USAGE + chat.text("") + chat.text("b") * 3
    relay, _ = relayed(CHAT, stream + chat.finish() + chat.DONE, config)
    assert relay.usage.status == "partial"
