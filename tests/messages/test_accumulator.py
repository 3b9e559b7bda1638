"""Messages made of events: what each event does, when a call is whole, and what the usage counts.

Tests with an id are public bug reports, as in ``test_cases.py``.
"""

from __future__ import annotations

import copy
import itertools
import json
import math
import pickle
from collections.abc import Iterable
from importlib import resources
from typing import Any, cast

import pytest
from anthropic.lib.streaming import _beta_messages as sdk_beta, _messages as sdk
from hypothesis import HealthCheck, given, settings, strategies as st

from sse_machines import MESSAGES, AnswerTooLarge, Limits, Outcome, Receiver, collect
from sse_machines._accumulator import PART_SIZE
from sse_machines._collect import Result
from sse_machines._protocol import WireEvent
from sse_machines.messages import (
    Accumulator,
    ContentBlockDelta,
    ContentBlockStart,
    ContentBlockStop,
    MessageDelta,
    MessageStart,
)
from sse_machines.messages.accumulator import TOOL_BLOCKS
from sse_machines.messages.grammar import (
    BLOCK_STATES,
    DELTA_STATES,
    UNKNOWN_BLOCK,
    UNKNOWN_DELTA,
)
from sse_machines.partial_json import PartialJSON
from tests import wire

SAMPLE = (resources.files("sse_machines") / "samples" / "messages.sse").read_bytes()
TEXT = wire.block_start(0, text="")
HI = wire.text(0, "hi")
END = wire.message_delta() + wire.STOP
USAGE = {"input_tokens": 5, "output_tokens": 1}
FULL = {"input_tokens": 5, "output_tokens": 3}


def read(*frames: bytes) -> Result:
    return collect(b"".join(frames), MESSAGES)


def accumulated(*frames: bytes) -> Accumulator:
    accumulator = read(*frames).accumulator
    assert isinstance(accumulator, Accumulator)
    return accumulator


def content(*frames: bytes) -> list[Any]:
    """The content of the message that a start and these frames make."""
    blocks = accumulated(wire.start(), *frames).snapshot()["content"]
    assert type(blocks) is list
    return blocks


def applied(*events: WireEvent, max_size: int | None = None) -> Accumulator:
    """An accumulator given events without a receiver that drops what does not fit."""
    accumulator = Accumulator(max_size=max_size)
    for event in events:
        accumulator.apply(event)
    return accumulator


def begin(index: int, block: Any) -> ContentBlockStart:
    return ContentBlockStart(index=index, content_block=block)


def delta(index: int, value: Any) -> ContentBlockDelta:
    return ContentBlockDelta(index=index, delta=value)


def tool(index: int = 0, kind: str = "tool_use", **members: Any) -> bytes:
    return wire.block_start(index, kind, **{"id": "toolu_1", "name": "f", "input": {}, **members})


def piece(index: int, text: str) -> bytes:
    return wire.delta(index, "input_json_delta", partial_json=text)


def states(accumulator: Accumulator) -> tuple[Any, ...]:
    """All that can be asked for."""
    return (
        accumulator.snapshot(),
        accumulator.text,
        accumulator.reasoning,
        [(call.id, call.arguments, call.complete, call.input) for call in accumulator.tool_calls],
        accumulator.finish_reason,
        accumulator.output_started,
        accumulator.usage,
        accumulator.usage_final,
        accumulator.text_length,
        accumulator.reasoning_length,
        accumulator.arguments_length,
    )


CITATION = {"type": "char_location", "cited_text": "c", "document_index": 0}
RESULTS: dict[str, dict[str, Any]] = {
    "web_search_tool_result": {"content": [{"type": "web_search_result", "url": "u"}]},
    "web_fetch_tool_result": {"content": {"type": "web_fetch_result"}, "caller": {"type": "direct"}},
    "code_execution_tool_result": {"content": {"stdout": "1\n", "return_code": 0}},
    "bash_code_execution_tool_result": {"content": {"stderr": ""}},
    "text_editor_code_execution_tool_result": {"content": {"lines": ["a"]}},
    "tool_search_tool_result": {"content": {"tool_references": []}},
    "advisor_tool_result": {"content": "yes"},
    "mcp_tool_result": {"content": [{"type": "text", "text": "t"}], "is_error": False},
}
WHOLE: dict[str, dict[str, Any]] = {
    **{kind: {"tool_use_id": "srvtoolu_1", **members} for kind, members in RESULTS.items()},
    "redacted_thinking": {"data": "ZGF0YQ=="},
    "container_upload": {"file_id": "file_1"},
    "fallback": {"from": {"model": "claude-x"}, "to": {"model": "claude-y"}, "trigger": None},
    "mcp_tool_listing": {"mcp_server_name": "s", "tools": [{"name": "t"}]},
}
EMPTY: dict[str, dict[str, Any]] = {
    "text": {"text": ""},
    "thinking": {"thinking": "", "signature": ""},
    "tool_use": {"id": "toolu_1", "name": "f", "input": {}},
    "server_tool_use": {"id": "srvtoolu_1", "name": "web_search", "input": {}},
    "mcp_tool_use": {"id": "mcptoolu_1", "name": "f", "server_name": "s", "input": {}},
    "compaction": {},
    **WHOLE,
}
DELTAS: dict[str, dict[str, Any]] = {
    "text_delta": {"text": "t"},
    "citations_delta": {"citation": CITATION},
    "thinking_delta": {"thinking": "h"},
    "signature_delta": {"signature": "s"},
    "input_json_delta": {"partial_json": "{}"},
    "compaction_delta": {"content": "c", "encrypted_content": "e"},
}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "f"}


def test_the_tables_of_this_file_know_every_block_and_every_delta() -> None:
    assert EMPTY.keys() == BLOCK_STATES.keys() - {UNKNOWN_BLOCK}
    assert DELTAS.keys() == DELTA_STATES.keys() - {UNKNOWN_DELTA}


# What the first party sends: blocks before, between and after deltas.

GROWTH: list[tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]]] = [
    (
        {"type": "text", "text": ""},
        [{"type": "text_delta", "text": "Hel"}, {"type": "text_delta", "text": "lo"}],
        {"type": "text", "text": "Hello"},
    ),
    (
        {"type": "text", "text": "He"},
        [{"type": "text_delta", "text": "llo"}, {"type": "text_delta", "text": ""}],
        {"type": "text", "text": "Hello"},
    ),
    (
        {"type": "text", "text": "", "citations": None},
        [{"type": "citations_delta", "citation": CITATION}, {"type": "text_delta", "text": "c"}],
        {"type": "text", "text": "c", "citations": [CITATION]},
    ),
    (
        {"type": "text", "text": "", "citations": [{"type": "page_location"}]},
        [
            {"type": "citations_delta", "citation": CITATION},
            {"type": "citations_delta", "citation": {"type": "web_search_result_location"}},
        ],
        {
            "type": "text",
            "text": "",
            "citations": [
                {"type": "page_location"},
                CITATION,
                {"type": "web_search_result_location"},
            ],
        },
    ),
    (
        {"type": "thinking", "thinking": "", "signature": ""},
        [
            {"type": "thinking_delta", "thinking": "a", "estimated_tokens": 1},
            {"type": "thinking_delta", "thinking": "b"},
            {"type": "signature_delta", "signature": "one"},
            {"type": "signature_delta", "signature": "two"},
        ],
        {"type": "thinking", "thinking": "ab", "signature": "two"},
    ),
    (
        # Thinking that is not shown has nothing but its signature.
        {"type": "thinking", "thinking": ""},
        [{"type": "signature_delta", "signature": "s"}],
        {"type": "thinking", "thinking": "", "signature": "s"},
    ),
    (
        {**CALL, "input": {}, "caller": {"type": "direct"}},
        [
            {"type": "input_json_delta", "partial_json": ""},
            {"type": "input_json_delta", "partial_json": '{"a"'},
            {"type": "input_json_delta", "partial_json": ":[1]}"},
        ],
        {**CALL, "input": {"a": [1]}, "caller": {"type": "direct"}},
    ),
    (
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
        [{"type": "input_json_delta", "partial_json": '{"query":"q"}'}],
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
    ),
    (
        {"type": "mcp_tool_use", "id": "m", "name": "f", "server_name": "s", "input": {}},
        [{"type": "input_json_delta", "partial_json": '{"x":null}'}],
        {"type": "mcp_tool_use", "id": "m", "name": "f", "server_name": "s", "input": {"x": None}},
    ),
    (
        {"type": "compaction"},
        [{"type": "compaction_delta", "content": "sum", "encrypted_content": None}],
        {"type": "compaction", "content": "sum"},
    ),
    (
        {"type": "compaction", "content": "old", "encrypted_content": "e", "signature": "s"},
        [
            {"type": "compaction_delta", "content": None, "encrypted_content": "f"},
            {"type": "compaction_delta", "content": "new"},
        ],
        {"type": "compaction", "content": "new", "encrypted_content": "f", "signature": "s"},
    ),
    (
        # Of the future: kept as it began.
        {"type": "future_block", "payload": ["z"], "text": "x", "input": {"a": 1}},
        [{"type": "future_delta", "x": 1}, {"type": "text_delta", "text": "y"}],
        {"type": "future_block", "payload": ["z"], "text": "x", "input": {"a": 1}},
    ),
    *(({"type": kind, **members}, [], {"type": kind, **members}) for kind, members in WHOLE.items()),
]


@pytest.mark.parametrize(("before", "deltas", "after"), GROWTH)
def test_a_block_grows_by_its_deltas(
    before: dict[str, Any], deltas: list[dict[str, Any]], after: dict[str, Any]
) -> None:
    opening = wire.event("content_block_start", index=0, content_block=before)
    frames = [wire.event("content_block_delta", index=0, delta=value) for value in deltas]
    assert content(opening, *frames, wire.block_stop(0), END) == [after]


MISFITS = [
    (block, kind)
    for block, kind in itertools.product(EMPTY, DELTAS)
    if BLOCK_STATES[block] is not DELTA_STATES[kind]
]


@pytest.mark.parametrize(("block", "kind"), MISFITS)
def test_a_delta_that_does_not_fit_its_block_changes_nothing(block: str, kind: str) -> None:
    accumulator = applied(begin(0, {"type": block, **EMPTY[block]}), max_size=10_000)
    before = states(accumulator)
    for _ in range(1000):
        # Not even the room that is left: what is not kept does not count.
        accumulator.apply(delta(0, {"type": kind, **DELTAS[kind]}))
    assert states(accumulator) == before


@pytest.mark.parametrize("kind", DELTAS)
def test_a_known_delta_adds_nothing_to_an_unknown_block(kind: str) -> None:
    frames = wire.block_start(0, "future_block", x=1) + wire.delta(0, kind, **DELTAS[kind])
    assert content(frames) == [{"type": "future_block", "x": 1}]


@pytest.mark.parametrize("block", EMPTY)
def test_an_unknown_delta_adds_nothing_to_any_block(block: str) -> None:
    opening = wire.block_start(0, block, **EMPTY[block])
    odd = wire.delta(0, "future_delta", text="t", thinking="h", partial_json="{}", signature="s")
    assert content(opening, odd) == content(opening)


IMPLIED: dict[str, dict[str, Any]] = {
    "text_delta": {"type": "text", "text": "t"},
    "citations_delta": {"type": "text", "text": "", "citations": [CITATION]},
    "thinking_delta": {"type": "thinking", "thinking": "h", "signature": ""},
    "signature_delta": {"type": "thinking", "thinking": "", "signature": "s"},
    "input_json_delta": {
        "type": "tool_use",
        "id": None,
        "name": None,
        "input": None,
        "partial_json": "{}",
    },
    "compaction_delta": {"type": "compaction", "content": "c", "encrypted_content": "e"},
}


@pytest.mark.parametrize("kind", DELTAS)
def test_a_delta_without_a_start_opens_the_block_it_belongs_to(kind: str) -> None:
    assert content(wire.delta(3, kind, **DELTAS[kind])) == [IMPLIED[kind]]
    # Another answer begins with nothing of this one.
    assert content(wire.delta(0, kind, **DELTAS[kind])) == [IMPLIED[kind]]


def test_an_implied_call_is_a_call_without_id_and_name() -> None:
    (call,) = read(wire.start(), piece(4, '{"a":1}'), wire.block_stop(4), END).tool_calls
    assert (call.id, call.name, call.type, call.index) == (None, None, "tool_use", 4)
    assert (call.complete, call.input) == (True, {"a": 1})


def test_an_unknown_delta_without_a_start_opens_nothing() -> None:
    frames = wire.start() + wire.delta(0, "future_delta", x=1)
    assert accumulated(frames).blocks == ()
    # What comes next under that index tells what the block is.
    assert accumulated(frames, HI).snapshot()["content"] == [{"type": "text", "text": "hi"}]


def test_a_stop_without_a_start_and_a_stop_of_a_text_change_nothing() -> None:
    before = states(applied(begin(0, {"type": "text", "text": "a"})))
    accumulator = applied(
        begin(0, {"type": "text", "text": "a"}), ContentBlockStop(index=0), ContentBlockStop(index=7)
    )
    assert states(accumulator) == before


def test_interleaved_blocks_and_index_gaps_are_put_in_order() -> None:
    frames = (
        wire.block_start(2, "thinking", thinking="", signature="")
        + wire.block_start(5, text="")
        + wire.text(5, "last")
        + wire.delta(2, "thinking_delta", thinking="first")
        + wire.text(5, "!")
        + wire.block_stop(2)
        + wire.block_stop(5)
    )
    assert content(frames, END) == [
        {"type": "thinking", "thinking": "first", "signature": ""},
        {"type": "text", "text": "last!"},
    ]


def test_blocks_go_on_growing() -> None:
    accumulator = applied(begin(1, {"type": "text", "text": "a"}), begin(0, {**CALL, "input": {}}))
    call, text = accumulator.blocks
    assert (call.type, call.text, text.type, text.call) == ("tool_use", None, "text", None)
    assert call.call is accumulator.tool_calls[0]
    accumulator.apply(delta(1, {"type": "text_delta", "text": "b"}))
    assert str(text.text) == "ab"
    assert text.snapshot() == {"type": "text", "text": "ab"}


# The message.


def test_nothing_is_an_empty_snapshot() -> None:
    accumulator = Accumulator()
    assert states(accumulator) == ({}, "", "", [], None, False, None, False, 0, 0, 0)
    assert accumulator.error is None
    assert accumulator.outcome is Outcome.OPEN
    assert accumulator.blocks == ()
    assert read(wire.PING, b": hello\n\n", wire.FUTURE).message is None


def test_a_message_start_is_the_beginning_of_the_message() -> None:
    frames = wire.start(container={"id": "c"}, stop_details=None, diagnostics=None, future=1)
    assert accumulated(frames).snapshot() == {
        **wire.message(container={"id": "c"}, stop_details=None, diagnostics=None, future=1),
        "content": [],
    }


def test_members_that_gateways_leave_out_are_null() -> None:
    assert accumulated(wire.event("message_start", message={"id": "m"})).snapshot() == {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": None,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": None,
    }


@pytest.mark.parametrize(
    "message",
    [{"content": [{"type": "text", "text": "x"}]}, {"usage": {"input_tokens": 1}}, {"id": "m"}],
)
def test_one_member_is_enough_for_a_snapshot(message: dict[str, Any]) -> None:
    (name,) = message
    assert accumulated(wire.event("message_start", message=message)).snapshot()[name] == message[name]


def test_a_block_is_enough_for_a_snapshot() -> None:
    snapshot = accumulated(TEXT, HI).snapshot()
    assert (snapshot["id"], snapshot["content"]) == (None, [{"type": "text", "text": "hi"}])


def test_programmatic_tool_calling_comes_whole_in_message_start() -> None:
    block = {**CALL, "input": {"a": 1}}
    result = read(wire.start(content=[block], stop_reason="tool_use"), wire.STOP)
    assert result.message == wire.message(content=[block], stop_reason="tool_use")
    (call,) = result.tool_calls
    assert (call.index, call.arguments, call.complete, call.input) == (0, '{"a":1}', True, {"a": 1})
    assert result.usage_final
    assert result.finish_reason == "tool_use"
    assert result.outcome is Outcome.COMPLETED


def test_blocks_follow_the_content_that_message_start_has() -> None:
    given_text = {"type": "text", "text": "given"}
    given_call = {**CALL, "id": "toolu_0", "input": {}}
    frames = wire.start(content=[given_text, given_call]) + TEXT + HI + wire.block_stop(0) + END
    accumulator = accumulated(frames)
    assert accumulator.snapshot()["content"] == [given_text, given_call, {"type": "text", "text": "hi"}]
    assert accumulator.text == "givenhi"
    (call,) = accumulator.tool_calls
    assert (call.index, call.complete, call.input) == (1, True, {})


def test_a_fallback_says_which_model_goes_on() -> None:
    hop = wire.block_start(0, "fallback", **WHOLE["fallback"])
    accumulator = accumulated(wire.start(), hop, wire.block_stop(0), END)
    assert accumulator.snapshot()["model"] == "claude-y"
    assert accumulator.output_started


@pytest.mark.parametrize(
    "members", [{}, *({"to": to} for to in (None, {}, {"model": None}, "claude-y", ["model"], 1))]
)
def test_a_fallback_that_does_not_say_it_leaves_the_model(members: dict[str, Any]) -> None:
    accumulator = accumulated(wire.start(), wire.block_start(0, "fallback", **members))
    assert accumulator.snapshot()["model"] == "claude-x"
    assert accumulator.snapshot()["content"] == [{"type": "fallback", **members}]


def test_message_delta_tells_why_the_model_stopped() -> None:
    details = {"type": "refusal", "category": "bio", "explanation": None}
    frames = (
        wire.start(stop_details=None)
        + wire.message_delta(
            "refusal",
            stop_sequence="###",
            stop_details=details,
            container={"id": "c", "expires_at": "e"},
        )
        + wire.STOP
    )
    result = read(frames)
    assert result.message == wire.message(
        stop_reason="refusal",
        stop_sequence="###",
        stop_details=details,
        container={"id": "c", "expires_at": "e"},
        usage=FULL,
    )
    assert result.finish_reason == "refusal"


def test_members_beside_the_delta_of_message_delta_are_taken_too() -> None:
    told = wire.event(
        "message_delta",
        delta={"stop_reason": "end_turn"},
        usage={"output_tokens": 3},
        context_management={"applied_edits": []},
        input_transformations=[{"type": "t"}],
        request_id="r",
    )
    snapshot = accumulated(wire.start(context_management=None), told).snapshot()
    assert snapshot["context_management"] == {"applied_edits": []}
    assert snapshot["input_transformations"] == [{"type": "t"}]
    assert "request_id" not in snapshot


def test_null_changes_nothing() -> None:
    first = wire.event(
        "message_delta",
        delta={"stop_reason": "stop_sequence", "stop_sequence": "x", "container": {"id": "c"}},
        usage={"output_tokens": 3},
        context_management={"applied_edits": []},
    )
    nulls = dict.fromkeys(("stop_reason", "stop_sequence", "stop_details", "container"))
    second = wire.event(
        "message_delta",
        delta=nulls,
        usage={"output_tokens": None, "input_tokens": None},
        context_management=None,
        input_transformations=None,
    )
    once, twice = accumulated(wire.start(), first), accumulated(wire.start(), first, second)
    assert twice.snapshot() == once.snapshot()
    assert twice.finish_reason == "stop_sequence"
    assert twice.usage_final


def test_the_last_message_delta_counts() -> None:
    frames = wire.start() + wire.message_delta("pause_turn", container={"id": "a"})
    snapshot = accumulated(frames, wire.message_delta(stop_sequence="y")).snapshot()
    assert (snapshot["stop_reason"], snapshot["stop_sequence"]) == ("end_turn", "y")
    assert snapshot["container"] == {"id": "a"}


def test_a_start_that_comes_late_takes_nothing_back() -> None:
    hop = wire.block_start(0, "fallback", **WHOLE["fallback"]) + wire.block_stop(0)
    result = read(hop, wire.message_delta(), wire.start(), wire.STOP)
    assert result.message is not None
    assert (result.message["id"], result.message["model"]) == ("msg_1", "claude-y")
    assert result.finish_reason == "end_turn"
    assert result.usage == FULL
    assert result.usage_final


def test_a_start_that_comes_late_makes_no_usage_final() -> None:
    bare = wire.event("message_delta", delta={"stop_reason": "end_turn"})
    result = read(bare, wire.start(), wire.STOP)
    assert (result.finish_reason, result.usage, result.usage_final) == ("end_turn", USAGE, False)


# Text and reasoning.


def test_text_and_reasoning_are_those_of_all_their_blocks() -> None:
    frames = (
        wire.start()
        + wire.block_start(0, "thinking", thinking="a", signature="")
        + wire.delta(0, "thinking_delta", thinking="b")
        + wire.block_stop(0)
        + wire.block_start(1, text="one ")
        + wire.block_stop(1)
        + wire.block_start(2, "thinking", thinking="", signature="")
        + wire.delta(2, "thinking_delta", thinking="cd")
        + wire.block_stop(2)
        + tool(3)
        + piece(3, '{"x":')
        + piece(3, "1}")
        + wire.block_stop(3)
        + tool(4, "server_tool_use")
        + piece(4, "{}")
        + wire.block_stop(4)
        + TEXT.replace(b'"index": 0', b'"index": 5')
        + wire.text(5, "two")
        + wire.block_stop(5)
        + END
    )
    accumulator = accumulated(frames)
    assert (accumulator.text, accumulator.text_length) == ("one two", 7)
    assert (accumulator.reasoning, accumulator.reasoning_length) == ("abcd", 4)
    assert accumulator.arguments_length == 9
    assert accumulator.refusal == ""


def test_halves_of_a_character_become_one() -> None:
    accumulator = accumulated(wire.start(), TEXT, wire.text(0, "a\ud83c"), wire.text(0, "\udf0d"), END)
    assert accumulator.text == "a\U0001f30d"
    assert accumulator.snapshot()["content"] == [{"type": "text", "text": "a\U0001f30d"}]
    assert accumulator.text_length == 3


@pytest.mark.parametrize(
    ("frames", "started"),
    [
        (b"", False),
        (TEXT, False),
        (wire.block_start(0, "thinking", thinking="", signature=""), False),
        (wire.delta(0, "signature_delta", signature="s"), False),
        (wire.message_delta(), False),
        (TEXT + wire.text(0, ""), False),
        (TEXT + wire.text(0, " "), True),
        (wire.block_start(0, text="x"), True),
        (wire.delta(0, "thinking_delta", thinking="h"), True),
        (tool(), True),
        (tool(kind="mcp_tool_use"), True),
        (wire.block_start(0, "redacted_thinking", data=""), True),
        (wire.block_start(0, "future_block"), True),
    ],
)
def test_output_has_started_once_there_is_something_of_it(frames: bytes, started: bool) -> None:
    assert accumulated(wire.start(), frames).output_started is started


# Calls.


def call_of(*frames: bytes) -> tuple[bool, Any]:
    """Whether the first call is whole, and its input; the snapshot says the same."""
    result = read(wire.start(), *frames)
    call = result.tool_calls[0]
    assert result.message is not None
    block = result.message["content"][0]
    assert block["input"] == call.input
    assert block.get("partial_json") == (None if call.complete else call.arguments)
    return call.complete, call.input


NO = (False, None)
WHOLE_JSON = tool() + piece(0, '{"a":1}')
CUT_JSON = tool() + piece(0, '{"a":1,"b":"x')
STOPPED = wire.block_stop(0)
GOES_ON = ["end_turn", "tool_use", "stop_sequence", "pause_turn", "compaction", "future_reason"]
CUTS = ["max_tokens", "model_context_window_exceeded", "refusal"]


def test_a_call_that_is_open_is_not_whole() -> None:
    assert call_of(WHOLE_JSON) == NO
    assert call_of(tool(input={"a": 1})) == NO
    assert call_of(tool()) == NO


def test_a_call_is_whole_once_its_block_has_stopped() -> None:
    assert call_of(WHOLE_JSON, STOPPED) == (True, {"a": 1})
    assert call_of(tool(input={"a": 1}), STOPPED) == (True, {"a": 1})


@pytest.mark.parametrize("reason", GOES_ON + CUTS)
def test_a_call_whose_json_is_cut_is_never_whole(reason: str) -> None:
    assert call_of(CUT_JSON, STOPPED) == NO
    assert call_of(CUT_JSON, STOPPED, wire.message_delta(reason), wire.STOP) == NO
    assert call_of(CUT_JSON, wire.message_delta(reason), wire.STOP) == NO
    assert read(wire.start(), CUT_JSON, END).tool_calls[0].arguments == '{"a":1,"b":"x'


@pytest.mark.parametrize("reason", CUTS)
def test_a_stop_reason_that_cuts_makes_no_call_whole(reason: str) -> None:
    end = wire.message_delta(reason) + wire.STOP
    assert call_of(WHOLE_JSON, end) == NO
    assert call_of(tool(), end) == NO
    assert call_of(tool(), STOPPED, end) == NO
    assert call_of(tool(), STOPPED, wire.message_delta(reason), wire.message_delta(None)) == NO
    # What had ended before is not cut.
    assert call_of(WHOLE_JSON, STOPPED, end) == (True, {"a": 1})


@pytest.mark.parametrize("reason", GOES_ON)
def test_any_other_stop_reason_makes_calls_whole(reason: str) -> None:
    end = wire.message_delta(reason) + wire.STOP
    assert call_of(WHOLE_JSON, end) == (True, {"a": 1})
    assert call_of(tool(), end) == (True, {})
    assert call_of(tool(), STOPPED, end) == (True, {})
    assert call_of(tool(), piece(0, " \n"), STOPPED, end) == (True, {})


def test_no_arguments_are_an_empty_object_only_once_the_model_went_on() -> None:
    assert call_of(tool(), STOPPED) == NO
    assert call_of(tool(), STOPPED, wire.message_delta(None)) == NO
    assert call_of(tool(), STOPPED, wire.STOP) == NO
    following = wire.block_start(1, text="")
    assert call_of(tool(), STOPPED, following) == (True, {})
    assert call_of(tool(), STOPPED, wire.text(1, "x")) == (True, {})
    assert call_of(tool(), STOPPED, following, wire.message_delta("max_tokens")) == (True, {})
    # A block that begins while the call is open says nothing of it.
    assert call_of(tool(), following) == NO
    assert call_of(tool(), following, STOPPED) == NO


def test_no_arguments_are_an_empty_object_once_another_call_ended_after_it() -> None:
    both = tool() + tool(1, id="toolu_2")
    assert call_of(both, STOPPED, wire.block_stop(1)) == (True, {})
    last = read(wire.start(), both, STOPPED, wire.block_stop(1)).tool_calls[1]
    assert not last.complete


def test_a_second_stop_makes_no_call_whole() -> None:
    stop = ContentBlockStop(index=0)
    accumulator = applied(begin(0, {**CALL, "input": {}}), stop, stop)
    assert not accumulator.tool_calls[0].complete


def test_a_call_without_arguments_that_stops_after_the_stop_reason_is_whole() -> None:
    assert call_of(wire.message_delta("tool_use"), tool()) == NO
    assert call_of(wire.message_delta("tool_use"), tool(), STOPPED) == (True, {})
    assert call_of(wire.message_delta("max_tokens"), tool(), STOPPED) == NO


def test_calls_of_the_server_are_not_for_the_client_to_answer() -> None:
    frames = wire.start()
    for index, kind in enumerate(TOOL_BLOCKS):
        frames += tool(index, kind) + piece(index, '{"n":1}') + wire.block_stop(index)
    accumulator = accumulated(frames, END)
    assert [call.type for call in accumulator.tool_calls] == ["tool_use"]
    assert accumulator.arguments_length == 3 * 7
    assert [block["input"] for block in accumulator.snapshot()["content"]] == [{"n": 1}] * 3


def test_a_call_of_the_server_that_is_cut_has_no_input_either() -> None:
    assert content(tool(0, "server_tool_use"), piece(0, '{"q'), STOPPED) == [
        {
            "type": "server_tool_use",
            "id": "toolu_1",
            "name": "f",
            "input": None,
            "partial_json": '{"q',
        }
    ]


def test_pieces_replace_the_input_that_a_call_began_with() -> None:
    began = tool(input={"old": True})
    call = read(wire.start(), began, piece(0, ""), STOPPED).tool_calls[0]
    assert call.arguments == '{"old":true}'
    accumulator = applied(begin(0, {**CALL, "input": {"old": True}}))
    (call,) = accumulator.tool_calls
    assert call.partial_input.value == {"old": True}
    for text in ('{"new"', ":[1", "]}"):
        accumulator.apply(delta(0, {"type": "input_json_delta", "partial_json": text}))
    assert call.arguments == '{"new":[1]}'
    assert call.partial_input.value == {"new": [1]}
    assert accumulator.arguments_length == 11
    assert call_of(began, piece(0, '{"cut'), STOPPED, END) == NO


INPUTS = [[1, {"a": None}], "text", "\ud800", "\u2028", 7, 1.5, True, {"k": "\udfff\U0001f30d"}]


@pytest.mark.parametrize("value", INPUTS)
def test_an_input_that_is_no_object_is_kept_as_it_is(value: Any) -> None:
    assert call_of(tool(input=value), STOPPED) == (True, value)
    assert call_of(tool(), piece(0, json.dumps(value)), STOPPED) == (True, value)
    result = read(wire.start(content=[{**CALL, "input": value}]))
    assert result.tool_calls[0].input == value


@pytest.mark.parametrize("value", [None, "", 0, [], False])
def test_an_input_of_nothing_waits_for_its_pieces(value: Any) -> None:
    assert call_of(tool(input=value), STOPPED) == NO
    assert call_of(tool(input=value), piece(0, "[2]"), STOPPED) == (True, [2])
    assert call_of(tool(input=value), END) == (True, {})


def test_a_call_with_a_number_that_has_no_text_is_never_whole() -> None:
    huge = tool(input={"a": "?"}).replace(b'"?"', b"1e999")
    assert call_of(huge, STOPPED, END) == NO
    prefilled = wire.start(content=[{**CALL, "input": ["?"]}]).replace(b'"?"', b"-1e999")
    assert not read(prefilled).tool_calls[0].complete
    # In pieces it has one.
    assert call_of(tool(), piece(0, "1e999"), STOPPED) == (True, math.inf)


# Usage.


def test_usage_is_replaced_member_by_member_and_null_keeps() -> None:
    begun = {
        "input_tokens": 10,
        "output_tokens": 1,
        "cache_creation_input_tokens": None,
        "cache_read_input_tokens": 4,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        "service_tier": "standard",
        "server_tool_use": {"web_search_requests": 0},
    }
    told = {
        "input_tokens": 100,
        "output_tokens": 7,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": None,
        "server_tool_use": {"web_fetch_requests": 2},
        "output_tokens_details": {"thinking_tokens": 3},
        "iterations": [{"type": "message"}],
        "fallback_credit": None,
    }
    result = read(wire.start(usage=begun), wire.message_delta(usage=told), wire.STOP)
    assert result.usage == {
        "input_tokens": 100,
        "output_tokens": 7,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 4,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        "service_tier": "standard",
        "server_tool_use": {"web_fetch_requests": 2},
        "output_tokens_details": {"thinking_tokens": 3},
        "iterations": [{"type": "message"}],
        "fallback_credit": None,
    }
    assert result.message is not None
    assert result.message["usage"] == result.usage


BARE = wire.event("message_delta", delta={"stop_reason": "end_turn"})
START_ONLY = wire.event("message_start", message={"id": "m"})


@pytest.mark.parametrize(
    ("frames", "usage", "final"),
    [
        (wire.PING, None, False),
        (wire.start(), USAGE, False),
        (wire.start() + wire.STOP, USAGE, False),
        (wire.start() + TEXT + HI + wire.block_stop(0) + wire.STOP, USAGE, False),
        (wire.start() + END, FULL, True),
        (wire.start() + wire.message_delta(), FULL, True),
        (wire.start() + wire.message_delta(None), FULL, False),
        (wire.start() + wire.message_delta(None) + BARE, FULL, False),
        (wire.start() + wire.message_delta(None) + wire.message_delta(), FULL, True),
        (wire.start() + BARE, USAGE, False),
        (wire.start() + BARE + wire.message_delta(None), FULL, True),
        (START_ONLY + BARE + wire.STOP, None, False),
        (START_ONLY + wire.message_delta(), {"output_tokens": 3}, True),
        (wire.start(usage=None) + wire.STOP, None, False),
        (wire.start(usage=5) + wire.message_delta(usage="x"), None, False),
        (wire.start(usage=[1], stop_reason="tool_use") + wire.STOP, None, False),
        (wire.start(stop_reason="tool_use"), USAGE, True),
        (wire.start() + wire.ERROR, USAGE, False),
    ],
)
def test_usage_is_final_once_it_came_with_a_stop_reason(
    frames: bytes, usage: dict[str, Any] | None, final: bool
) -> None:
    result = read(frames)
    assert result.usage == usage
    assert result.usage_final is final


# Ends.


def test_an_error_is_kept_beside_what_came_before_it() -> None:
    accumulator = accumulated(wire.start(), TEXT, HI, wire.ERROR, wire.message_delta(), wire.STOP)
    assert accumulator.error is not None
    assert (accumulator.error.type, accumulator.error.retryable) == ("overloaded_error", True)
    assert accumulator.outcome is Outcome.FAILED
    assert accumulator.text == "hi"
    assert accumulator.finish_reason is None


def test_an_error_after_the_end_of_an_answer_would_still_be_an_error() -> None:
    accumulator = accumulated(wire.start(), END)
    before = accumulator.outcome
    error = next(event for event in wire.receive(wire.ERROR)[1] if event.type == "error")
    accumulator.apply(error)
    assert (before, accumulator.outcome) == (Outcome.COMPLETED, Outcome.FAILED)


def test_message_stop_completes_an_answer_before_its_input_ends() -> None:
    receiver = Receiver(MESSAGES, accumulate=True)
    receiver.receive_data(wire.start() + END)
    outcomes = []
    for _ in receiver:
        assert receiver.accumulator is not None
        outcomes.append(receiver.accumulator.outcome)
    assert outcomes == [Outcome.OPEN, Outcome.OPEN, Outcome.COMPLETED]


def test_an_answer_without_message_stop_is_complete_in_another_way() -> None:
    assert accumulated(wire.start(), wire.message_delta()).outcome is Outcome.COMPLETED_NO_DONE
    cut = read(wire.start(), TEXT, HI)
    assert cut.outcome is Outcome.TRUNCATED
    assert cut.accumulator.outcome is Outcome.TRUNCATED


# Shapes that no server should send and that pass the decoder.


@pytest.mark.parametrize("odd", [None, 5, "x", {"type": "text"}, True])
def test_content_that_is_no_list_is_none(odd: Any) -> None:
    assert accumulated(wire.start(content=odd)).snapshot()["content"] == []


def test_content_that_is_no_block_is_left_out() -> None:
    odd: list[Any] = [None, 1, "x", [], {}, {"type": 1}, {"type": ["text"]}]
    entries = [*odd, {"type": "text", "text": "ok"}]
    accumulator = accumulated(wire.start(content=entries))
    assert accumulator.snapshot()["content"] == [{"type": "text", "text": "ok"}]
    assert accumulator.text == "ok"


@pytest.mark.parametrize("odd", [None, 5, ["x"], {"a": 1}])
@pytest.mark.parametrize("kind", ["text", "thinking"])
def test_a_text_that_is_no_string_begins_empty(kind: str, odd: Any) -> None:
    opening = wire.block_start(0, kind, **{kind: odd})
    grow = wire.delta(0, f"{kind}_delta", **{kind: "x"})
    assert content(opening) == [{"type": kind, kind: ""}]
    assert content(opening, grow) == [{"type": kind, kind: "x"}]
    assert content(wire.block_start(0, kind)) == [{"type": kind, kind: ""}]


@pytest.mark.parametrize("odd", [None, 5, "abc", {"a": 1}, True])
def test_citations_that_are_no_list_are_replaced(odd: Any) -> None:
    opening = wire.block_start(0, text="", citations=odd)
    assert content(opening) == [{"type": "text", "text": "", "citations": odd}]
    cited = wire.delta(0, "citations_delta", citation=CITATION)
    assert content(opening, cited) == [{"type": "text", "text": "", "citations": [CITATION]}]


@pytest.mark.parametrize("members", [{}, {"citation": None}, {"citation": "x"}, {"citation": [1]}])
def test_a_citation_of_any_shape_is_kept(members: dict[str, Any]) -> None:
    (block,) = content(TEXT, wire.delta(0, "citations_delta", **members))
    assert block["citations"] == [members.get("citation")]


def test_members_of_the_delta_cannot_replace_content_and_usage() -> None:
    odd = wire.event("message_delta", delta={"content": 1, "usage": 2}, usage={"output_tokens": 3})
    snapshot = accumulated(wire.start(), TEXT, HI, odd).snapshot()
    assert snapshot["content"] == [{"type": "text", "text": "hi"}]
    assert snapshot["usage"] == FULL


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(), max_size=5)
    | st.sampled_from(["text", "tool_use", "thinking", "\ud800", "max_tokens"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "text", "input", "to", "model", "citation", "citations", "usage"])
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)
OBJECTS = st.dictionaries(
    st.sampled_from(
        [
            *("id", "name", "input", "text", "thinking", "signature", "citations", "to", "content"),
            *("citation", "encrypted_content", "model", "usage", "stop_reason", "container"),
        ]
    ),
    JSON,
)
TEXTS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}


@st.composite
def hostile_frames(draw: st.DrawFn) -> bytes:
    """A frame of a published type whose members are anything that the decoder lets through."""
    kind = draw(st.sampled_from(["start", "block", "delta", "stop", "message_delta"]))
    members, index = draw(OBJECTS), draw(st.integers(0, 3))
    if kind == "start":
        return wire.event("message_start", message=members)
    if kind == "block":
        block = {**members, "type": draw(st.sampled_from([*EMPTY, "future_block"]))}
        return wire.event("content_block_start", index=index, content_block=block)
    if kind == "delta":
        name = draw(st.sampled_from([*DELTAS, "future_delta"]))
        text = {TEXTS[name]: draw(st.text(max_size=5) | st.just("{}"))} if name in TEXTS else {}
        return wire.event("content_block_delta", index=index, delta={**members, **text, "type": name})
    if kind == "stop":
        return wire.block_stop(index)
    return wire.event("message_delta", delta=members, usage=draw(JSON))


# On a busy machine, making the frames takes long.
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(hostile_frames(), max_size=12))
def test_no_shape_that_passes_the_decoder_raises(frames: list[bytes]) -> None:
    # Infinity is what Python writes for a number beyond a float, and what is refused as JSON.
    result = read(*(frame.replace(b"Infinity", b"1e999") for frame in frames))
    assert not result.accumulator.output_started or result.message is not None
    assert json.loads(json.dumps(result.message)) == result.message
    for call in result.tool_calls:
        assert call.complete or call.input is None


# Streams as a whole.


def frames_of(stream: bytes) -> list[bytes]:
    return [frame + b"\n\n" for frame in stream.split(b"\n\n") if frame]


CITED = (
    wire.start()
    + wire.block_start(0, text="", citations=[])
    + wire.delta(0, "citations_delta", citation=CITATION)
    + wire.text(0, "one")
    + wire.delta(0, "citations_delta", citation={**CITATION, "document_index": 1})
    + wire.block_stop(0)
    + wire.block_start(1, text="")
    + wire.text(1, " two")
    + wire.block_stop(1)
    + END
)
SERVER = (
    wire.start(
        usage={**USAGE, "server_tool_use": {"web_search_requests": 0}, "service_tier": "standard"}
    )
    + wire.block_start(0, "server_tool_use", **EMPTY["server_tool_use"])
    + piece(0, "")
    + piece(0, '{"query": "w')
    + wire.PING
    + piece(0, 'eather"}')
    + wire.block_stop(0)
    + wire.block_start(1, "web_search_tool_result", **WHOLE["web_search_tool_result"])
    + wire.block_stop(1)
    + tool(2, input={"n": 1.0}, caller={"type": "code_execution_20250825", "tool_id": "srvtoolu_1"})
    + wire.block_stop(2)
    + tool(3)
    + wire.block_stop(3)
    + wire.message_delta(
        "tool_use",
        stop_sequence=None,
        container={"id": "container_1", "expires_at": "2026-01-01T00:00:00Z"},
        usage={"output_tokens": 9, "input_tokens": 700, "server_tool_use": {"web_search_requests": 1}},
    )
    + wire.STOP
)
CLEAN = {
    "sample": SAMPLE,
    "answer": wire.ANSWER,
    "cited": CITED,
    "server": SERVER,
    "prefilled": wire.start(content=[{**CALL, "input": {"a": 1}}], stop_reason="tool_use") + wire.STOP,
    "out of tokens": wire.start()
    + TEXT
    + HI
    + wire.block_stop(0)
    + wire.message_delta("max_tokens")
    + wire.STOP,
    "stop sequence": wire.start() + wire.message_delta("stop_sequence", stop_sequence="##") + wire.STOP,
    "refusal": wire.start()
    + wire.PING
    + wire.message_delta("refusal", stop_details={"type": "refusal", "category": "cyber"})
    + wire.STOP,
    "two deltas": wire.start()
    + wire.message_delta(None, usage={"output_tokens": 2})
    + wire.message_delta("end_turn", usage={"output_tokens": 3, "output_tokens_details": {}})
    + wire.STOP,
}
BETA = {
    "compaction": wire.start()
    + wire.block_start(0, "compaction", content=None)
    + wire.delta(0, "compaction_delta", content="summary", encrypted_content="c2Vj")
    + wire.block_stop(0)
    + wire.message_delta(
        "compaction", usage={"output_tokens": 1, "iterations": [{"type": "compaction"}]}
    )
    + wire.STOP,
    "fallback": wire.start()
    + wire.block_start(0, "fallback", **{"from": {"model": "claude-x"}, "to": {"model": "claude-y"}})
    + wire.block_stop(0)
    + wire.block_start(1, "mcp_tool_use", **EMPTY["mcp_tool_use"])
    + piece(1, '{"deep": [{"x": -1.5e3}]}')
    + wire.block_stop(1)
    + wire.block_start(2, "mcp_tool_result", **WHOLE["mcp_tool_result"])
    + wire.block_stop(2)
    + wire.event(
        "message_delta",
        delta={"stop_reason": "end_turn", "stop_sequence": None},
        usage={"output_tokens": 3, "fallback_credit": {"tokens": 1}},
        context_management={"applied_edits": []},
        input_transformations=[
            {"type": "thinking_dropped", "path": "p", "reason": "model_binding_mismatch"}
        ],
    )
    + wire.STOP,
}
STREAMS = {**CLEAN, **BETA, "failed": wire.start() + TEXT + HI + wire.ERROR}


def without_nulls(value: Any) -> Any:
    """JSON as the SDK sees it, for which null and absent are the same."""
    if isinstance(value, dict):
        return {name: without_nulls(member) for name, member in value.items() if member is not None}
    return [without_nulls(entry) for entry in value] if isinstance(value, list) else value


def payloads(stream: bytes) -> Iterable[Any]:
    known = ("message_", "content_")
    events = wire.receive(stream)[1]
    return (event.payload for event in events if event.type.startswith(known))


@pytest.mark.parametrize("name", CLEAN)
def test_a_clean_stream_is_what_the_sdk_accumulates(name: str) -> None:
    message: Any = None
    buffers: dict[int, bytes] = {}
    for payload in payloads(CLEAN[name]):
        message = sdk.accumulate_event(event=payload, current_snapshot=message, json_bufs=buffers)
    ours = accumulated(CLEAN[name]).snapshot()
    assert without_nulls(ours) == without_nulls(message.to_dict(mode="json"))


@pytest.mark.parametrize("name", CLEAN | BETA)
def test_a_clean_stream_is_what_the_beta_sdk_accumulates(name: str) -> None:
    message: Any = None
    buffers: dict[int, bytes] = {}
    for payload in payloads((CLEAN | BETA)[name]):
        message = sdk_beta.accumulate_event(
            event=payload,
            current_snapshot=message,
            json_bufs=buffers,
            request_headers=cast("Any", {}),
        )
    ours = accumulated((CLEAN | BETA)[name]).snapshot()
    assert without_nulls(ours) == without_nulls(message.to_dict(mode="json"))


def test_the_sdk_mends_a_cut_call_and_we_do_not() -> None:
    stream = wire.start() + CUT_JSON + wire.message_delta("max_tokens") + wire.STOP
    message: Any = None
    buffers: dict[int, bytes] = {}
    for payload in payloads(stream):
        message = sdk.accumulate_event(event=payload, current_snapshot=message, json_bufs=buffers)
    assert message.content[0].input == {"a": 1}
    assert accumulated(stream).snapshot()["content"][0]["input"] is None


@pytest.mark.parametrize("name", STREAMS)
def test_a_snapshot_is_json_at_every_event_and_a_copy(name: str) -> None:
    accumulator, twin = Accumulator(), Accumulator()
    for event in wire.receive(STREAMS[name])[1]:
        payload = copy.deepcopy(getattr(event, "payload", None))
        accumulator.apply(event)
        twin.apply(event)
        snapshot = accumulator.snapshot()
        assert json.loads(json.dumps(snapshot)) == snapshot
        spoil(snapshot)
        spoil(accumulator.usage)
        for call in accumulator.tool_calls:
            spoil(call.input)
        assert states(accumulator) == states(twin)
        assert getattr(event, "payload", None) == payload


def spoil(value: Any) -> None:
    """Change every object and list in a value."""
    for member in list(value.values() if isinstance(value, dict) else value or ()):
        if isinstance(member, dict | list):
            spoil(member)
    if isinstance(value, dict):
        value.clear()
        value["spoilt"] = True
    elif isinstance(value, list):
        value[:] = ["spoilt"]


def test_an_implied_block_is_not_shared_between_answers() -> None:
    for kind, members in DELTAS.items():
        spoil(applied(delta(0, {"type": kind, **members})).snapshot())
    for kind, members in DELTAS.items():
        accumulator = applied(delta(0, {"type": kind, **members}))
        assert accumulator.snapshot()["content"] == [IMPLIED[kind]]


@pytest.mark.parametrize("name", STREAMS)
def test_an_answer_can_be_copied_and_pickled_at_every_event(name: str) -> None:
    accumulator = Accumulator()
    for event in wire.receive(STREAMS[name])[1]:
        accumulator = pickle.loads(pickle.dumps(copy.copy(accumulator)))
        accumulator.apply(event)
    whole = accumulated(STREAMS[name])
    assert states(accumulator) == states(whole)
    assert accumulator.outcome is whole.outcome


@pytest.mark.parametrize("name", STREAMS)
def test_a_cut_answer_is_the_beginning_of_the_whole(name: str) -> None:
    frames = frames_of(STREAMS[name])
    whole = accumulated(*frames)
    inputs = [call.input for call in whole.tool_calls]
    for count in range(len(frames)):
        cut = accumulated(*frames[:count])
        assert whole.text.startswith(cut.text)
        assert whole.reasoning.startswith(cut.reasoning)
        assert [call.arguments for call in whole.tool_calls][: len(cut.tool_calls)] == [
            whole_call.arguments for whole_call in whole.tool_calls[: len(cut.tool_calls)]
        ]
        for call, arguments, value in zip(
            cut.tool_calls, [call.arguments for call in whole.tool_calls], inputs, strict=False
        ):
            assert arguments.startswith(call.arguments)
            assert call.input == (value if call.complete else None)


@st.composite
def in_pieces(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> list[str]:
    """A text in any pieces, empty ones included."""
    text = draw(texts)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=8)))
    return [text[left:right] for left, right in itertools.pairwise([0, *cuts, len(text)])]


@given(in_pieces(st.text(max_size=40)), st.sampled_from(["text", "thinking"]))
def test_a_text_in_any_pieces_is_the_same(pieces: list[str], kind: str) -> None:
    opening = wire.start() + wire.block_start(0, kind, **{kind: ""})
    deltas = [wire.delta(0, f"{kind}_delta", **{kind: text}) for text in pieces]
    end = wire.block_stop(0) + END
    whole = wire.delta(0, f"{kind}_delta", **{kind: "".join(pieces)})
    accumulator = accumulated(opening, *deltas, end)
    assert (accumulator.text + accumulator.reasoning) == "".join(pieces)
    assert states(accumulator) == states(accumulated(opening, whole, end))


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(in_pieces(st.dictionaries(st.text(), VALUES, min_size=1, max_size=3).map(json.dumps)))
def test_arguments_in_any_pieces_are_the_same(pieces: list[str]) -> None:
    accumulator = applied(begin(0, {**CALL, "input": {}}))
    (call,) = accumulator.tool_calls
    fresh = PartialJSON()
    for text in pieces:
        accumulator.apply(delta(0, {"type": "input_json_delta", "partial_json": text}))
        fresh.feed(text)
        assert call.partial_input.value == fresh.value
        assert call.partial_input.complete == fresh.complete
        assert not call.complete
    accumulator.apply(ContentBlockStop(index=0))
    assert call.input == json.loads("".join(pieces)) == call.partial_input.value
    assert accumulator.arguments_length == len("".join(pieces))


# Sizes. Documented: characters of text, and 1,024 more for every block. What a value that is no text
# counts is nowhere promised, so these tests find it out.


def room_for(*events: WireEvent) -> int:
    """The smallest ``max_size`` with which another event is taken after these."""
    after = MessageDelta(delta={})
    low, high = 0, 10_000_000
    while low < high:
        middle = (low + high) // 2
        try:
            applied(*events, after, max_size=middle)
        except AnswerTooLarge:
            low = middle + 1
        else:
            high = middle
    return low


@pytest.mark.parametrize(
    "grow",
    [
        {"type": "text_delta", "text": "x" * 100},
        {"type": "thinking_delta", "thinking": "x" * 100},
        {"type": "input_json_delta", "partial_json": "x" * 100},
    ],
)
def test_every_character_of_text_counts_once(grow: dict[str, Any]) -> None:
    base = room_for(delta(0, grow))
    assert room_for(*[delta(0, grow)] * 6) == base + 500


def test_the_limit_is_the_last_size_that_is_kept() -> None:
    opening = begin(0, {"type": "text", "text": ""})
    size = room_for(opening) + 10
    accumulator = applied(opening, max_size=size)
    for _ in range(11):
        accumulator.apply(delta(0, {"type": "text_delta", "text": "x"}))
    with pytest.raises(AnswerTooLarge, match=f"larger than {size} bytes") as caught:
        accumulator.apply(delta(0, {"type": "text_delta", "text": "y"}))
    assert caught.value.limit == size
    # Nothing changes any more.
    assert accumulator.text == "x" * 11
    with pytest.raises(AnswerTooLarge):
        accumulator.apply(MessageDelta(delta={"stop_reason": "end_turn"}))
    assert accumulator.finish_reason is None


def test_every_block_counts_1024_more() -> None:
    blocks = [begin(index, {"type": "text", "text": ""}) for index in range(10)]
    deltas = [delta(index, {"type": "text_delta", "text": ""}) for index in range(10)]
    inside = MessageStart(message=cast("Any", {"content": [{"type": "text", "text": ""}] * 10}))
    for events in (blocks, deltas, [inside]):
        assert 10 * PART_SIZE < room_for(*events) < 10 * PART_SIZE + 5000


@pytest.mark.parametrize(
    "grow",
    [
        delta(0, {"type": "citations_delta", "citation": {"cited_text": "x" * 100}}),
        delta(0, {"type": "citations_delta"}),
        MessageDelta(delta={}, usage=cast("Any", {"future": ["x" * 100]})),
        MessageDelta(delta=cast("Any", {"future": "x" * 100})),
        MessageDelta(delta={}, payload={"context_management": {"x": ["y" * 100]}}),
    ],
)
def test_nothing_grows_without_end(grow: WireEvent) -> None:
    accumulator = applied(begin(0, {"type": "text", "text": ""}), max_size=10_000)
    with pytest.raises(AnswerTooLarge):
        [*map(accumulator.apply, [grow] * 200)]


def test_what_is_replaced_counts_once() -> None:
    signed = delta(0, {"type": "signature_delta", "signature": "x" * 1000})
    assert room_for(*[signed] * 5) == room_for(signed)
    shorter = delta(0, {"type": "signature_delta", "signature": "x"})
    assert room_for(shorter, signed) == room_for(shorter) + 999
    compacted = delta(0, {"type": "compaction_delta", "content": "x" * 1000})
    assert room_for(*[compacted] * 5) == room_for(compacted)
    assert room_for(compacted) > PART_SIZE + 1000


@pytest.mark.parametrize(
    "start",
    [
        {"content": [{"type": "text", "text": "x" * 5000}]},
        {"future": ["x" * 5000]},
        {"usage": {"future": "x" * 5000}},
    ],
)
def test_all_of_a_start_counts(start: dict[str, Any]) -> None:
    assert room_for(MessageStart(message=cast("Any", start))) > 5000
    assert room_for(begin(0, {"type": "future_block", **start})) > 5000


def test_a_receiver_ends_an_answer_that_is_too_large_and_keeps_what_came() -> None:
    many = b"".join(wire.block_start(index, text="") + wire.block_stop(index) for index in range(100))
    result = collect(wire.start() + many + END, MESSAGES, limits=Limits(max_answer_size=20_000))
    assert isinstance(result.error, AnswerTooLarge)
    assert result.outcome is Outcome.LIMIT
    assert result.message is not None
    assert 10 < len(result.message["content"]) < 20


def test_without_a_limit_everything_is_kept() -> None:
    accumulator = applied(*[delta(0, {"type": "text_delta", "text": "x" * 1_000_000})] * 70)
    assert accumulator.text_length == 70_000_000
    accumulator.apply(MessageDelta(delta={"stop_reason": "end_turn"}))
    assert accumulator.finish_reason == "end_turn"


# Public bug reports.


def told(result: Result) -> list[tuple[str | None, str | None, str, bool]]:
    return [(call.id, call.name, call.arguments, call.complete) for call in result.tool_calls]


def test_po01_block_before_message_start() -> None:
    result = read(TEXT, HI, wire.start(), wire.block_stop(0), END)
    assert (result.text, result.outcome) == ("hi", Outcome.COMPLETED)
    assert result.message == wire.message(
        content=[{"type": "text", "text": "hi"}], stop_reason="end_turn", usage=FULL
    )


def test_po02_duplicate_message_start() -> None:
    result = read(wire.start(), wire.start(model="other"), TEXT, HI, wire.block_stop(0), END)
    assert (result.text, result.outcome) == ("hi", Outcome.COMPLETED)
    assert result.message is not None
    assert result.message["model"] == "claude-x"


def test_po04_index_gap_and_delta_for_another_block() -> None:
    result = read(
        wire.start(),
        TEXT,
        wire.text(0, "a"),
        wire.block_stop(0),
        wire.block_start(2, text=""),
        wire.text(3, "b"),
        wire.block_stop(3),
        END,
    )
    assert (result.text, result.outcome) == ("ab", Outcome.COMPLETED)
    assert result.message is not None
    assert [block["text"] for block in result.message["content"]] == ["a", "", "b"]


def test_po05_delta_type_does_not_fit_its_block() -> None:
    stream = wire.start() + tool() + piece(0, "{}") + wire.text(0, "\n") + wire.block_stop(0)
    result = read(stream, wire.message_delta("tool_use"), wire.STOP)
    assert told(result) == [("toolu_1", "f", "{}", True)]
    assert result.text == ""


def test_po07_delta_after_its_block_was_closed() -> None:
    result = read(
        wire.start(),
        wire.block_start(0, "thinking", thinking="", signature=""),
        wire.delta(0, "thinking_delta", thinking="a"),
        wire.block_stop(0),
        tool(1),
        piece(1, "{}"),
        wire.block_stop(1),
        wire.delta(0, "thinking_delta", thinking="b"),
        piece(1, "{}"),
        wire.message_delta("tool_use"),
        wire.STOP,
    )
    assert (result.reasoning, result.outcome) == ("a", Outcome.COMPLETED)
    assert told(result) == [("toolu_1", "f", "{}", True)]


def test_po08_block_left_open() -> None:
    result = read(wire.start(), TEXT, HI, END)
    assert (result.text, result.finish_reason) == ("hi", "end_turn")
    assert result.outcome is Outcome.COMPLETED


def test_po10_error_ends_the_message() -> None:
    error = {"type": "api_error", "message": "Response stream interrupted, please retry"}
    result = read(wire.start(), TEXT, wire.text(0, "par"), wire.event("error", error=error))
    assert (result.text, result.outcome) == ("par", Outcome.FAILED)
    assert result.accumulator.error is not None
    assert result.accumulator.error.raw == error
    assert result.accumulator.error.message == error["message"]


def test_po11_no_event_names() -> None:
    stream = wire.start() + TEXT + HI + wire.block_stop(0) + END
    nameless = b"\n".join(line for line in stream.split(b"\n") if not line.startswith(b"event:"))
    result = read(nameless)
    assert (result.text, result.outcome) == ("hi", Outcome.COMPLETED)
    assert result.message == accumulated(stream).snapshot()


def test_po13_event_name_and_type_disagree() -> None:
    stop = wire.block_stop(0).replace(b"event: content_block_stop", b"event: content_block_delta")
    result = read(wire.start(), tool(), piece(0, "{}"), stop)
    assert told(result) == [("toolu_1", "f", "{}", True)]


def test_po14_block_start_with_content() -> None:
    result = read(
        wire.start(),
        wire.block_start(0, text="He"),
        wire.text(0, "llo"),
        wire.block_stop(0),
        tool(1, input={"k": 1}),
        wire.block_stop(1),
        wire.message_delta("tool_use"),
        wire.STOP,
    )
    assert result.text == "Hello"
    assert told(result) == [("toolu_1", "f", '{"k":1}', True)]


def test_tc11_pieces_are_joined_and_none_are_an_empty_object() -> None:
    result = read(
        wire.start(),
        tool(name="write"),
        *(piece(0, text) for text in ("", '{"file_', 'path":"a.py","n":1', "}")),
        wire.block_stop(0),
        tool(1, id="toolu_2", name="noargs"),
        wire.block_stop(1),
        wire.message_delta("tool_use"),
        wire.STOP,
    )
    assert told(result) == [
        ("toolu_1", "write", '{"file_path":"a.py","n":1}', True),
        ("toolu_2", "noargs", "", True),
    ]
    assert [call.input for call in result.tool_calls] == [{"file_path": "a.py", "n": 1}, {}]


def test_tc13_out_of_tokens_inside_an_input_whose_block_is_closed() -> None:
    text = '{"path":"/etc/x","content":"line1'
    result = read(
        wire.start(),
        tool(name="write"),
        piece(0, text),
        wire.block_stop(0),
        wire.message_delta("max_tokens"),
        wire.STOP,
    )
    assert told(result) == [("toolu_1", "write", text, False)]
    assert result.tool_calls[0].input is None
    assert (result.finish_reason, result.outcome) == ("max_tokens", Outcome.COMPLETED)


def test_me02_error_without_event_name() -> None:
    error = {"type": "rate_limit_error", "message": "Concurrency limit exceeded"}
    result = read(wire.event("error", error=error).removeprefix(b"event: error\n"))
    assert result.accumulator.error is not None
    assert (result.accumulator.error.type, result.accumulator.error.message) == tuple(error.values())
    assert result.outcome is Outcome.FAILED
    assert result.message is None


def test_me06_error_that_is_a_string() -> None:
    text = '{"message":"Bedrock is unable to process your request."}'
    result = read(wire.start(), wire.event("error", error=text))
    assert result.accumulator.error is not None
    assert (result.accumulator.error.type, result.accumulator.error.message) == (None, text)
    assert result.outcome is Outcome.FAILED


def test_px08_a_second_answer_glued_on() -> None:
    stream = wire.start() + TEXT + wire.text(0, "Once upon") + wire.start(id="msg_2")
    result = read(stream, TEXT, wire.text(0, "Once upon a time"), wire.block_stop(0), END)
    assert (result.text, result.outcome) == ("Once upon", Outcome.PROTOCOL_ERROR)
    assert result.message is not None
    assert result.message["id"] == "msg_1"


def test_us02_message_delta_with_input_tokens_null() -> None:
    result = read(
        wire.start(usage={"input_tokens": 9325, "output_tokens": 2}),
        TEXT,
        HI,
        wire.block_stop(0),
        wire.message_delta(usage={"input_tokens": None, "output_tokens": 76}),
        wire.STOP,
    )
    assert result.usage == {"input_tokens": 9325, "output_tokens": 76}


def test_us04_several_message_deltas_whose_usage_is_cumulative() -> None:
    result = read(
        wire.start(usage={"input_tokens": 10, "output_tokens": 1}),
        TEXT,
        HI,
        wire.block_stop(0),
        wire.message_delta(None, stop_sequence=None, usage={"output_tokens": 5}),
        wire.message_delta("end_turn", usage={"input_tokens": 10, "output_tokens": 7}),
        wire.STOP,
    )
    assert result.usage == {"input_tokens": 10, "output_tokens": 7}
    assert (result.finish_reason, result.usage_final) == ("end_turn", True)


def test_us05_usage_of_an_answer_that_was_cut() -> None:
    started = wire.start(usage={"input_tokens": 42, "output_tokens": 1})
    result = read(started, TEXT, wire.text(0, "some text"))
    assert (result.usage, result.usage_final) == ({"input_tokens": 42, "output_tokens": 1}, False)
    assert result.accumulator.text_length == 9
    assert result.outcome is Outcome.TRUNCATED


def test_fc02_unknown_event_and_block_types() -> None:
    blocks = content(
        wire.FUTURE,
        wire.block_start(0, "server_tool_use", id="srv_1", name="web_search", input={}),
        piece(0, '{"q":"x"}'),
        wire.block_stop(0),
        wire.block_start(1, "future_block", payload="z"),
        wire.block_stop(1),
        END,
    )
    assert blocks == [
        {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"q": "x"}},
        {"type": "future_block", "payload": "z"},
    ]


def test_cb06_what_there_is_when_the_caller_breaks_off() -> None:
    stream = wire.start() + TEXT + wire.text(0, "Hel") + wire.text(0, "lo") + tool(1) + piece(1, '{"a"')
    receiver, _ = wire.receive(stream, clean=False, accumulate=True)
    accumulator = receiver.accumulator
    assert isinstance(accumulator, Accumulator)
    assert (accumulator.text, accumulator.finish_reason) == ("Hello", None)
    (call,) = accumulator.tool_calls
    assert (call.id, call.name, call.arguments, call.complete) == ("toolu_1", "f", '{"a"', False)
    assert (accumulator.usage, accumulator.usage_final) == (USAGE, False)


def test_cb06_a_cancelled_answer_says_so() -> None:
    accumulator = Accumulator()
    for event in wire.receive(wire.start() + TEXT + HI)[1][:-1]:
        accumulator.apply(event)
    accumulator.end(Outcome.CANCELLED)
    assert (accumulator.outcome, accumulator.text) == (Outcome.CANCELLED, "hi")
