"""Responses made of events: every rule of accumulation, and the public bug reports about it.

The ids are those of the project's collection of cases.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from sse_machines import RESPONSES, AnswerTooLarge, Outcome, Result, collect
from sse_machines.responses import Accumulator, AnyEvent, SequencedEvent
from tests.responses import wire
from tests.responses.wire import (
    COMPLETED,
    CREATED,
    PART,
    PART_ADDED,
    added,
    done,
    event,
    item,
    lifecycle,
    numbered,
    response,
    sub,
    text,
)

USAGE = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}


def read(*frames: bytes) -> Result:
    return collect(b"".join(frames), RESPONSES)


def answer(*frames: bytes) -> Accumulator:
    result = read(*frames).accumulator
    assert isinstance(result, Accumulator)
    return result


def output(*frames: bytes) -> list[Any]:
    found: list[Any] = answer(CREATED, *frames).snapshot()["output"]
    return found


def call(*frames: bytes) -> tuple[str, bool, Any]:
    """Arguments, completeness and input of the one call."""
    (found,) = answer(CREATED, *frames).tool_calls
    return found.arguments, found.complete, found.input


# --- every event, by hand: the item before it, the event, the item after it

TEXT = {"type": "output_text", "text": "Hel", "annotations": []}
THOUGHT = {"type": "reasoning_text", "text": "Hel"}
SUMMARY = {"type": "summary_text", "text": "Hel"}
REFUSAL = {"type": "refusal", "refusal": "Hel"}


def _part(kind: str, part: Any, member: str = "content") -> dict[str, Any]:
    return {"type": kind, member: [part]}


EVENTS: list[tuple[str, Any, dict[str, Any], Any]] = [
    (
        "output_text.delta",
        _part("message", TEXT),
        {"content_index": 0, "delta": "lo"},
        {**TEXT, "text": "Hello"},
    ),
    (
        "output_text.done",
        _part("message", TEXT),
        {"content_index": 0, "text": "Bye"},
        {**TEXT, "text": "Bye"},
    ),
    (
        "refusal.delta",
        _part("message", REFUSAL),
        {"content_index": 0, "delta": "lo"},
        {**REFUSAL, "refusal": "Hello"},
    ),
    (
        "refusal.done",
        _part("message", REFUSAL),
        {"content_index": 0, "refusal": "Bye"},
        {**REFUSAL, "refusal": "Bye"},
    ),
    (
        "reasoning_text.delta",
        _part("reasoning", THOUGHT),
        {"content_index": 0, "delta": "lo"},
        {**THOUGHT, "text": "Hello"},
    ),
    (
        "reasoning_text.done",
        _part("reasoning", THOUGHT),
        {"content_index": 0, "text": "Bye"},
        {**THOUGHT, "text": "Bye"},
    ),
    ("content_part.added", _part("message", TEXT), {"content_index": 0, "part": REFUSAL}, REFUSAL),
    ("content_part.done", _part("message", TEXT), {"content_index": 0, "part": REFUSAL}, REFUSAL),
    ("reasoning_part.added", _part("reasoning", TEXT), {"content_index": 0, "part": THOUGHT}, THOUGHT),
    ("reasoning_part.done", _part("reasoning", TEXT), {"content_index": 0, "part": THOUGHT}, THOUGHT),
    (
        "output_text.annotation.added",
        _part("message", {**TEXT, "annotations": ["a"]}),
        {"content_index": 0, "annotation_index": 1, "annotation": {"url": "u"}},
        {**TEXT, "annotations": ["a", {"url": "u"}]},
    ),
    (
        "reasoning_summary_part.added",
        _part("reasoning", TEXT, "summary"),
        {"summary_index": 0, "part": SUMMARY},
        SUMMARY,
    ),
    (
        "reasoning_summary_part.done",
        _part("reasoning", TEXT, "summary"),
        {"summary_index": 0, "part": SUMMARY},
        SUMMARY,
    ),
    (
        "reasoning_summary_text.delta",
        _part("reasoning", SUMMARY, "summary"),
        {"summary_index": 0, "delta": "lo"},
        {**SUMMARY, "text": "Hello"},
    ),
    (
        "reasoning_summary_text.done",
        _part("reasoning", SUMMARY, "summary"),
        {"summary_index": 0, "text": "Bye"},
        {**SUMMARY, "text": "Bye"},
    ),
]
# The same for what is in the item itself: the whole item after it.
MEMBERS: list[tuple[str, Any, dict[str, Any], Any]] = [
    (
        "function_call_arguments.delta",
        {"type": "function_call", "arguments": "Hel"},
        {"delta": "lo"},
        {"arguments": "Hello"},
    ),
    (
        "function_call_arguments.done",
        {"type": "function_call", "arguments": "Hel"},
        {"arguments": "Bye"},
        {"arguments": "Bye"},
    ),
    (
        "mcp_call_arguments.delta",
        {"type": "mcp_call", "arguments": "Hel"},
        {"delta": "lo"},
        {"arguments": "Hello"},
    ),
    (
        "mcp_call_arguments.done",
        {"type": "mcp_call", "arguments": "Hel"},
        {"arguments": "Bye"},
        {"arguments": "Bye"},
    ),
    (
        "custom_tool_call_input.delta",
        {"type": "custom_tool_call", "input": "Hel"},
        {"delta": "lo"},
        {"input": "Hello"},
    ),
    (
        "custom_tool_call_input.done",
        {"type": "custom_tool_call", "input": "Hel"},
        {"input": "Bye"},
        {"input": "Bye"},
    ),
    (
        "code_interpreter_call_code.delta",
        {"type": "code_interpreter_call", "code": "Hel"},
        {"delta": "lo"},
        {"code": "Hello"},
    ),
    (
        "code_interpreter_call_code.delta",
        {"type": "code_interpreter_call", "code": "Hel"},
        {"delta": None},
        {"code": "Hel"},
    ),
    (
        "code_interpreter_call_code.done",
        {"type": "code_interpreter_call", "code": None},
        {"code": "Bye"},
        {"code": "Bye"},
    ),
    (
        "apply_patch_call_operation_diff.delta",
        {"type": "apply_patch_call", "operation": {"path": "p", "diff": "Hel"}},
        {"delta": "lo"},
        {"operation": {"path": "p", "diff": "Hello"}},
    ),
    (
        "apply_patch_call_operation_diff.done",
        {"type": "apply_patch_call", "operation": {"path": "p"}},
        {"diff": "Bye"},
        {"operation": {"path": "p", "diff": "Bye"}},
    ),
    (
        "shell_call_command.added",
        {"type": "shell_call", "action": {"commands": ["a"]}},
        {"command_index": 1, "command": "b"},
        {"action": {"commands": ["a", "b"]}},
    ),
    (
        "shell_call_command.delta",
        {"type": "shell_call", "action": {"commands": ["a"]}},
        {"command_index": 0, "delta": "b"},
        {"action": {"commands": ["ab"]}},
    ),
    (
        "shell_call_command.done",
        {"type": "shell_call", "action": {"commands": ["a"]}},
        {"command_index": 0, "command": "b"},
        {"action": {"commands": ["b"]}},
    ),
    (
        "shell_call_output_content.delta",
        {"type": "shell_call_output", "output": [{"stdout": "Hel"}]},
        {"command_index": 0, "delta": {"stdout": "lo", "stderr": "!"}},
        {"output": [{"stdout": "Hello", "stderr": "!"}]},
    ),
    (
        "shell_call_output_content.done",
        {"type": "shell_call_output", "output": []},
        {"command_index": 0, "output": [{"stdout": "x"}]},
        {"output": [{"stdout": "x"}]},
    ),
    (
        "shell_call_output_content.done",
        {"type": "shell_call_output", "output": [{"stdout": "x"}]},
        {"command_index": 0, "output": []},
        {"output": [{"stdout": "x"}]},
    ),
    *[
        (f"{tool}.{status}", {"type": tool, "status": "?"}, {}, {"status": status})
        for tool, statuses in {
            "code_interpreter_call": ("in_progress", "interpreting", "completed"),
            "file_search_call": ("in_progress", "searching", "completed"),
            "image_generation_call": ("in_progress", "generating", "completed"),
            "mcp_call": ("in_progress", "completed", "failed"),
            "web_search_call": ("in_progress", "searching", "completed"),
        }.items()
        for status in statuses
    ],
]
# What adds nothing to the response: the wire names and the members they need.
NOTHING: dict[str, dict[str, Any]] = {
    "response.audio.delta": {"delta": "AA"},
    "response.audio.done": {},
    "response.audio.transcript.delta": {"delta": "a"},
    "response.audio.transcript.done": {},
    "response.compaction.compacting": {"output_index": 0},
    "response.image_generation_call.partial_image": {
        "output_index": 0,
        "partial_image_index": 0,
        "partial_image_b64": "AA",
    },
    "response.mcp_list_tools.in_progress": {"output_index": 0},
    "response.mcp_list_tools.completed": {"output_index": 0},
    "response.mcp_list_tools.failed": {"output_index": 0},
    "keepalive": {},
}
LIFECYCLE = {
    f"response.{kind}"
    for kind in (
        *("created", "queued", "in_progress", "completed", "incomplete", "failed", "cancelled", "done"),
        *("output_item.added", "output_item.done"),
    )
}


@pytest.mark.parametrize(("name", "before", "members", "after"), EVENTS)
def test_what_an_event_does_to_a_part(name: str, before: Any, members: Any, after: Any) -> None:
    (found,) = output(
        event("response.output_item.added", output_index=0, item=before), sub(name, **members)
    )
    assert [*found.values()][1:] == [[after]]


@pytest.mark.parametrize(("name", "before", "members", "after"), MEMBERS)
def test_what_an_event_does_to_an_item(name: str, before: Any, members: Any, after: Any) -> None:
    (found,) = output(
        event("response.output_item.added", output_index=0, item=before), sub(name, **members)
    )
    assert found == {**before, **after}


@pytest.mark.parametrize("name", NOTHING)
def test_what_adds_nothing(name: str) -> None:
    assert output(added(kind="x"), event(name, **NOTHING[name])) == [item("x")]


def test_every_event_class_is_accounted_for() -> None:
    known = {f"response.{row[0]}" for row in (*EVENTS, *MEMBERS)}
    wired = {it.type for it in AnyEvent.__args__ if issubclass(it, SequencedEvent)}
    assert known | {*NOTHING} | LIFECYCLE | {"error"} == wired


# --- items


def test_a_whole_item_counts_more_than_its_pieces() -> None:
    whole = item(status="completed", content=[{**PART, "text": "Bye"}], encrypted_content="x")
    frames = [
        added(),
        PART_ADDED,
        text("Hel"),
        event("response.output_item.done", output_index=0, item=whole),
    ]
    late = [
        text("late"),
        wire.TEXT_DONE,
        sub("output_text.annotation.added", content_index=0, annotation_index=0, annotation=1),
        sub("shell_call_output_content.delta", command_index=0, delta={"stdout": "a"}),
        sub("shell_call_output_content.done", command_index=0, output=[{}]),
        sub("web_search_call.searching"),
    ]
    assert output(*frames, *late) == [whole]
    assert answer(CREATED, *frames, *late).text == "Bye"


def test_events_without_their_beginnings() -> None:
    assert output(text("h"), text("i")) == [
        {
            "type": "message",
            "role": "assistant",
            "status": "in_progress",
            "content": [{"type": "output_text", "text": "hi", "annotations": []}],
        }
    ]
    thought = sub("content_part.added", content_index=0, part={"type": "reasoning_text", "text": ""})
    assert output(thought)[0]["type"] == "reasoning"
    assert output(sub("reasoning_text.delta", content_index=0, delta="h"))[0]["content"] == [
        {"type": "reasoning_text", "text": "h"}
    ]
    summary = sub("reasoning_summary_text.delta", summary_index=0, delta="h")
    assert output(summary)[0]["summary"] == [{"type": "summary_text", "text": "h"}]
    assert output(sub("web_search_call.searching")) == [
        {"type": "web_search_call", "status": "searching"}
    ]
    printed = sub(
        "shell_call_output_content.delta", command_index=0, delta={"stdout": "a", "stderr": None}
    )
    assert output(printed)[0]["output"] == [{"stdout": "a"}]
    all_printed = sub("shell_call_output_content.done", command_index=0, output=[{"stdout": "a"}])
    assert output(all_printed)[0]["output"] == [{"stdout": "a"}]
    note = sub("output_text.annotation.added", content_index=0, annotation_index=3, annotation="n")
    assert output(note)[0]["content"][0]["annotations"] == ["n"]


def test_an_item_that_ends_without_its_index_is_known_by_its_id() -> None:
    def end(id: str, value: str) -> bytes:
        whole = item(id=id, content=[{**PART, "text": value}])
        return event("response.output_item.done", item=whole)

    frames = [added(0, id="a"), text("A"), end("a", "A"), added(1, id="b"), text("B", 1), end("b", "B")]
    assert answer(CREATED, *frames).text == "AB"
    assert len(answer(CREATED, end("zzz", "Z")).items) == 1


def test_items_are_in_the_order_of_their_index() -> None:
    frames = [added(3, "a"), added(1, "b"), text("x", 7)]
    assert [it["type"] for it in output(*frames)] == ["b", "a", "message"]


def test_parallel_items() -> None:
    frames = [added(0), added(1, id="m2"), text("a", 0), text("b", 1), text("A", 0), text("B", 1)]
    assert answer(CREATED, *frames).text == "aAbB"
    assert answer(CREATED, *frames).text_length == 4


def test_logprobs() -> None:
    frames = [text("h", logprobs=[1]), text("i", logprobs=[2]), text("!", logprobs=[])]
    assert output(*frames)[0]["content"][0]["logprobs"] == [1, 2]
    ended = sub("output_text.done", content_index=0, text="hi!", logprobs=[3])
    assert output(*frames, ended)[0]["content"][0]["logprobs"] == [3]
    assert output(added(), text("h", logprobs={"odd": 1}))[0]["content"][0]["text"] == "h"


# --- the response


def test_snapshots_replace_each_other() -> None:
    frames = [CREATED, lifecycle("in_progress", metadata={"a": "b"}), text("h")]
    snapshot = answer(*frames).snapshot()
    assert snapshot.pop("output")[0]["content"][0]["text"] == "h"
    expected = response("in_progress", metadata={"a": "b"})
    del expected["output"]
    assert snapshot == expected


def test_the_response_at_its_end_counts_most() -> None:
    final = item(status="completed", content=[{**PART, "text": "final"}])
    result = read(
        CREATED, text("hal"), text("x", 5), lifecycle("completed", output=[final], usage=USAGE)
    )
    assert result.text == "final"
    assert result.message == response("completed", output=[final], usage=USAGE)
    assert (result.usage, result.usage_final, result.finish_reason) == (USAGE, True, "completed")


@pytest.mark.parametrize(
    "members", [{"output": []}, {"output": None}, {"output": [1, "x"]}, {"output": "odd"}]
)
def test_po35_items_stand_in_for_an_output_that_is_not_there(members: Any) -> None:
    result = read(CREATED, added(), text("hi"), lifecycle("completed", **members))
    assert result.text == "hi"
    assert result.outcome is Outcome.COMPLETED


def test_po37_an_incomplete_response() -> None:
    details = {"reason": "max_output_tokens"}
    ended = lifecycle("incomplete", incomplete_details=details, usage=USAGE)
    result = read(CREATED, text("hal"), ended)
    assert (result.text, result.finish_reason) == ("hal", "max_output_tokens")
    assert (result.outcome, result.usage_final) == (Outcome.INCOMPLETE, True)


def test_po38_a_cut() -> None:
    result = read(CREATED, text("par"))
    assert (result.text, result.finish_reason, result.usage) == ("par", None, None)
    assert result.outcome is Outcome.TRUNCATED
    assert not result.usage_final


def test_usage_that_is_told_early_is_not_final() -> None:
    result = read(CREATED, lifecycle("in_progress", usage=USAGE), text("a"))
    assert (result.usage, result.usage_final) == (USAGE, False)


@pytest.mark.parametrize(
    ("kind", "members", "reason", "outcome"),
    [
        ("completed", {"incomplete_details": None}, "completed", Outcome.COMPLETED),
        ("incomplete", {"incomplete_details": "odd"}, "incomplete", Outcome.INCOMPLETE),
        ("cancelled", {}, "cancelled", Outcome.CANCELLED),
        ("done", {"status": None}, "done", Outcome.COMPLETED),
        ("failed", {"error": {"code": "server_error", "message": "m"}}, "failed", Outcome.FAILED),
    ],
)
def test_how_a_response_ended(kind: str, members: Any, reason: str, outcome: Outcome) -> None:
    payload = {**response(kind), **members}
    accumulator = RESPONSES.accumulator()
    for received in wire.receive(CREATED + event(f"response.{kind}", response=payload))[1][:-1]:
        assert accumulator.finish_reason is None
        accumulator.apply(received)
    assert (accumulator.finish_reason, accumulator.outcome) == (reason, outcome)
    assert (accumulator.error is not None) is (kind == "failed")


def test_me15_errors() -> None:
    flat = event("error", code="server_error", message="boom", param=None)
    result = read(CREATED, text("par"), flat)
    assert (result.text, result.outcome) == ("par", Outcome.FAILED)
    assert result.error is not None
    assert (result.error.code, result.finish_reason) == ("server_error", None)
    both = read(CREATED, wire.ERROR, lifecycle("failed", error=None))
    assert both.error is not None
    assert (both.error.code, both.finish_reason) == ("server_error", "failed")


def test_a_response_that_was_told_with_its_items() -> None:
    begun = item(content=[{**PART, "text": "Hel"}])
    frames = [lifecycle("created", output=[begun]), text("lo")]
    assert answer(*frames).text == "Hello"


def test_nothing_has_come() -> None:
    nothing = answer(b": hello\n\n")
    assert nothing.snapshot() == {}
    assert (nothing.text, nothing.reasoning, nothing.refusal, nothing.tool_calls) == ("", "", "", ())
    assert answer(text("a")).snapshot()["object"] == "response"


def test_when_output_starts() -> None:
    assert not answer(CREATED, added(), PART_ADDED, added(1, "reasoning")).output_started
    assert answer(CREATED, added(), text("h")).output_started
    assert answer(CREATED, sub("reasoning_text.delta", content_index=0, delta="h")).output_started
    assert answer(CREATED, sub("refusal.delta", content_index=0, delta="h")).output_started
    assert answer(CREATED, added(0, "web_search_call")).output_started


def test_a_part_without_its_text_has_none() -> None:
    bare = sub("content_part.added", content_index=0, part={"type": "output_text"})
    assert answer(CREATED, bare, text("a", 0, 1)).text == "a"


def test_refusals_and_reasoning() -> None:
    refused = answer(CREATED, sub("refusal.delta", content_index=0, delta="no"))
    assert (refused.refusal, refused.text, refused.text_length) == ("no", "", 2)
    summary = sub("reasoning_summary_text.delta", summary_index=0, delta="short")
    both = [summary, sub("reasoning_text.delta", content_index=0, delta="long")]
    assert answer(CREATED, summary).reasoning == "short"
    assert answer(CREATED, *both).reasoning == "long"
    assert answer(CREATED, *both).reasoning_length == 4


# --- calls


def function(arguments: str = "") -> bytes:
    return added(0, "function_call", call_id="call_1", name="f", arguments=arguments)


def arguments(piece: str) -> bytes:
    return sub("function_call_arguments.delta", delta=piece)


def test_a_call_from_its_beginning_to_its_end() -> None:
    accumulator = RESPONSES.accumulator()
    seen = []
    for received in wire.receive(wire.ANSWER)[1]:
        accumulator.apply(received)
        seen += [(id(it), it.arguments, it.complete) for it in accumulator.tool_calls]
    assert [it[1:] for it in dict.fromkeys(seen)] == [
        ("", False),
        ('{"a":', False),
        ('{"a":1}', False),
        ('{"a":1}', True),
    ]
    assert len({it[0] for it in seen}) == 1


def test_who_is_called() -> None:
    (found,) = answer(CREATED, function("{}")).tool_calls
    assert (found.id, found.name, found.index, found.type) == ("call_1", "f", 0, "function_call")


def test_when_a_call_is_complete() -> None:
    ended = sub("function_call_arguments.done", arguments="{}")
    assert call(function(), arguments("{}")) == ("{}", False, None)
    assert call(function(), arguments("{"), ended) == ("{}", True, {})
    assert call(function(), sub("function_call_arguments.done", arguments="")) == ("", False, None)
    whole = {"call_id": "call_1", "name": "f"}
    assert call(function(), done(0, "function_call", **whole, arguments="")) == ("", True, {})
    assert call(function(), done(0, "function_call", **whole, arguments='{"a"')) == ('{"a"', False, None)
    cut = done(0, "function_call", **whole, arguments="{}", status="incomplete")
    assert call(function(), arguments("{}"), ended, cut) == ("{}", False, None)
    assert call(function(), arguments("{}"), lifecycle("completed")) == ("{}", True, {})
    assert call(function(), arguments("{}"), lifecycle("incomplete")) == ("{}", False, None)
    assert call(arguments("{}"), arguments(" ")) == ("{} ", False, None)


def test_a_custom_tool() -> None:
    piece = sub("custom_tool_call_input.delta", delta="ls")
    assert call(added(0, "custom_tool_call", call_id="c", name="sh", input=""), piece) == (
        "ls",
        False,
        None,
    )
    whole = done(0, "custom_tool_call", call_id="c", name="sh", input="ls -l")
    assert call(piece, whole) == ("ls -l", True, "ls -l")


def test_an_item_that_turns_out_to_be_another() -> None:
    assert answer(CREATED, function("{}"), done(0, "message")).tool_calls == ()
    (found,) = answer(
        CREATED, function("{}"), done(0, "custom_tool_call", input="x", call_id="c")
    ).tool_calls
    assert (found.type, found.input) == ("custom_tool_call", "x")


def test_arguments_of_all_tools_are_counted() -> None:
    frames = [
        function("12"),
        added(1, "mcp_call", arguments="123"),
        added(2, "code_interpreter_call", code="1234"),
        added(3, "shell_call", action={"commands": ["1", "2"]}),
        sub("shell_call_command.delta", 3, command_index=1, delta="2"),
        added(4, "apply_patch_call", operation={"diff": "12345"}),
        added(5, "apply_patch_call", operation="odd"),
        added(6, "shell_call", action={"commands": "odd"}),
        added(7, "code_interpreter_call", code=None),
        added(8, "message"),
    ]
    assert answer(CREATED, *frames).arguments_length == 2 + 3 + 4 + 3 + 5


# --- being JSON, odd shapes, bounds


@pytest.mark.parametrize("stream", [wire.ANSWER, numbered(CREATED, *wire.MESSAGE, wire.ERROR)])
def test_at_every_moment_a_snapshot_is_json_of_its_own(stream: bytes) -> None:
    accumulator = RESPONSES.accumulator()
    events = wire.receive(stream)[1]
    payloads = copy.deepcopy([getattr(event, "payload", None) for event in events])
    for received in events:
        accumulator.apply(received)
        before = json.dumps(accumulator.snapshot())
        snapshot = accumulator.snapshot()
        for it in snapshot["output"]:
            for part in it.get("content") or []:
                part.clear()
            it.clear()
        snapshot["output"].append(1)
        snapshot["tools"].append(1)
        assert json.dumps(accumulator.snapshot()) == before
    assert [getattr(event, "payload", None) for event in events] == payloads


ODD: list[Any] = [None, 1, "x", [], [1], {}, {"type": 5}, {"content": 1}]


@pytest.mark.parametrize("odd", ODD)
def test_odd_shapes_do_no_harm(odd: Any) -> None:
    events = [
        event("response.output_item.added", output_index=0, item=odd),
        event(
            "response.output_item.added",
            output_index=0,
            item={
                "type": odd,
                "content": odd,
                "summary": odd,
                "action": odd,
                "operation": odd,
                "output": odd,
            },
        ),
    ]
    pieces = [text("h"), arguments("{}"), sub("shell_call_command.delta", command_index=0, delta="a")]
    pieces += [sub(row[0], **row[2]) for row in (*EVENTS, *MEMBERS)]
    for begin in events:
        for end in (
            b"",
            lifecycle("completed", output=odd),
            lifecycle("completed", output=[odd], usage=odd),
        ):
            result = read(CREATED, begin, *pieces, end)
            json.dumps(result.message)
            assert result.accumulator.arguments_length >= 0
            assert result.text is not None


MANY: dict[str, list[bytes]] = {
    "items": [added(index) for index in range(200)],
    "parts": [text("", 0, index) for index in range(200)],
    "annotations": [
        sub("output_text.annotation.added", content_index=0, annotation_index=index, annotation=1)
        for index in range(2000)
    ],
    "wholes": [sub("content_part.added", content_index=index, part=PART) for index in range(2000)],
    "logprobs": [text("", logprobs=[{}]) for _ in range(1500)],
    "ended": [sub("output_text.done", content_index=0, text="", logprobs=[{}]) for _ in range(1500)],
    "text": [text("x" * 1000) for _ in range(120)],
    "printed": [
        sub("shell_call_output_content.delta", command_index=0, delta={"stdout": "x" * 1000})
        for _ in range(120)
    ],
    "all printed": [
        sub("shell_call_output_content.done", command_index=index, output=[{"stdout": "x"}])
        for index in range(2000)
    ],
    "lifecycle": [lifecycle("in_progress", metadata={"k": "x" * 1000}) for _ in range(120)],
    "whole items": [done(index, text="x" * 1000) for index in range(60)],
    "statuses": [sub("web_search_call.searching", index) for index in range(200)],
}


@pytest.mark.parametrize("name", MANY)
def test_whatever_there_is_much_of_reaches_the_limit(name: str) -> None:
    accumulator = RESPONSES.accumulator(max_size=100_000)
    events = wire.receive(CREATED + b"".join(MANY[name]))[1]
    with pytest.raises(AnswerTooLarge):
        [*map(accumulator.apply, events)]
    assert len(json.dumps(accumulator.snapshot())) < 400_000


@given(st.lists(st.text(max_size=6), max_size=40))
def test_any_pieces_make_the_same_text(pieces: list[str]) -> None:
    whole = "".join(pieces)
    frames = [
        added(),
        *map(text, pieces),
        added(1, "function_call", call_id="c", name="f", arguments=""),
    ]
    frames += [sub("function_call_arguments.delta", 1, delta=piece) for piece in pieces]
    found = answer(CREATED, *frames)
    assert (found.text, found.tool_calls[0].arguments) == (whole, whole)


def test_a_cut_keeps_what_was_there() -> None:
    frames = [CREATED, *wire.MESSAGE, COMPLETED]
    texts = [answer(*frames[:end]).text for end in range(1, len(frames) - 2)]
    assert texts == ["", "", "", "h", "hi", "hi", "hi"][: len(texts)]
