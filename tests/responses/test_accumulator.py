"""Responses made of events: every event class against an item of its own, and the answers of streams.

Tests with an id are public bug reports, as in ``test_cases.py``. What the official SDK makes of the same
events is compared at the end.
"""

from __future__ import annotations

import copy
import json
import pickle
from collections import deque
from collections.abc import Sequence
from importlib import resources
from itertools import accumulate
from typing import Any, cast

import pytest
from hypothesis import given, strategies as st
from openai import omit
from openai._models import construct_type
from openai.lib.responses_websocket._accumulator import ResponsesWebSocketAccumulator
from openai.lib.streaming.responses._responses import ResponseStreamState
from openai.types.responses import ResponseStreamEvent

from sse_machines import RESPONSES, AnswerTooLarge, Limits, Outcome, Result, ToolCall, collect
from sse_machines._accumulator import PART_SIZE
from sse_machines._protocol import ErrorInfo, Malformed, WireEvent
from sse_machines.responses import Accumulator
from sse_machines.responses.events import PUBLISHED, UNPUBLISHED
from tests.responses import wire
from tests.responses.wire import CREATED, added, done, event, item, lifecycle, sub, text

SAMPLE = (resources.files("sse_machines") / "samples" / "responses.sse").read_bytes()
USAGE = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
CUT = {"reason": "max_output_tokens"}
WHO: dict[str, Any] = {"call_id": "call_1", "name": "f"}
FUNCTION = added(0, "function_call", **WHO, arguments="")
CUSTOM = added(0, "custom_tool_call", **WHO, input="")


def read(*frames: bytes) -> Result:
    return collect(b"".join(frames), RESPONSES)


def accumulated(*frames: bytes) -> Accumulator:
    accumulator = read(*frames).accumulator
    assert isinstance(accumulator, Accumulator)
    return accumulator


def output(*frames: bytes) -> list[Any]:
    items: list[Any] = accumulated(CREATED, *frames).snapshot()["output"]
    return items


def made(kind: str, **members: Any) -> Any:
    """An event by the name on the wire."""
    try:
        return RESPONSES.decode({"type": kind, **members}, kind, b"")
    except Malformed as fault:
        # Reported, and gone on with: a gateway's response that has not all of its members.
        return fault.event


def fed(*events: Any) -> Accumulator:
    """What events make that no receiver has judged."""
    accumulator = Accumulator()
    for each in events:
        accumulator.apply(each)
    return accumulator


def wire_events(*frames: bytes) -> list[Any]:
    """The events of a stream as a receiver gives them, without what it has to say about them."""
    return [each for each in wire.receive(b"".join(frames))[1] if isinstance(each, WireEvent)]


def pieces(*values: str, index: int = 0) -> bytes:
    return b"".join(sub("function_call_arguments.delta", index, delta=value) for value in values)


def whole(index: int = 0, kind: str = "function_call", **members: Any) -> bytes:
    """An item that is done and has only these members."""
    return event("response.output_item.done", output_index=index, item={"type": kind, **members})


def answer_of(*frames: bytes) -> tuple[str, bool, Any]:
    """Arguments, completeness and input of the one call."""
    (call,) = accumulated(CREATED, *frames).tool_calls
    return call.arguments, call.complete, call.input


# --- what each event does to an item


def output_text(value: str, *annotations: Any, **members: Any) -> dict[str, Any]:
    return {"type": "output_text", "text": value, "annotations": [*annotations], **members}


def refusal(value: str) -> dict[str, Any]:
    return {"type": "refusal", "refusal": value}


def thought(value: str) -> dict[str, Any]:
    return {"type": "reasoning_text", "text": value}


def summary(value: str) -> dict[str, Any]:
    return {"type": "summary_text", "text": value}


def message(*content: Any) -> dict[str, Any]:
    return item(content=[*content])


def reasoning(*parts: Any, member: str = "content") -> dict[str, Any]:
    return {"id": "rs_1", "type": "reasoning", "summary": [], member: [*parts]}


FIRST = output_text("first")
OPENED = {"type": "message", "role": "assistant", "status": "in_progress"}
THINKING: dict[str, Any] = {"type": "reasoning", "summary": []}


def running(kind: str, **members: Any) -> dict[str, Any]:
    """An item as it is implied by an event of its family."""
    return {"type": kind, "status": "in_progress", **members}


# An event that is not published, or "response." before it; its members; the item before; the item after;
# and what it implies where there was no item.
ROWS: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any], dict[str, Any] | None]] = [
    (
        "content_part.added",
        {"content_index": 1, "part": output_text("")},
        message(FIRST),
        message(FIRST, output_text("")),
        {**OPENED, "content": [output_text("")]},
    ),
    (
        "content_part.added",
        {"content_index": 0, "part": thought("")},
        reasoning(),
        reasoning(thought("")),
        {**THINKING, "content": [thought("")]},
    ),
    (
        "content_part.done",
        {"content_index": 1, "part": output_text("whole", 1)},
        message(FIRST, output_text("wh")),
        message(FIRST, output_text("whole", 1)),
        {**OPENED, "content": [output_text("whole", 1)]},
    ),
    (
        "content_part.done",
        {"content_index": 0, "part": thought("whole")},
        reasoning(thought("wh")),
        reasoning(thought("whole")),
        {**THINKING, "content": [thought("whole")]},
    ),
    (
        "output_text.delta",
        {"content_index": 1, "delta": "lo"},
        message(FIRST, output_text("Hel")),
        message(FIRST, output_text("Hello")),
        {**OPENED, "content": [output_text("lo")]},
    ),
    (
        "output_text.delta",
        {"content_index": 0, "delta": "lo", "logprobs": [2]},
        message(output_text("Hel", logprobs=[1])),
        message(output_text("Hello", logprobs=[1, 2])),
        {**OPENED, "content": [output_text("lo", logprobs=[2])]},
    ),
    (
        "output_text.done",
        {"content_index": 0, "text": "whole"},
        message(output_text("wh", logprobs=[1]), FIRST),
        message(output_text("whole", logprobs=[1]), FIRST),
        {**OPENED, "content": [output_text("whole")]},
    ),
    (
        "output_text.done",
        {"content_index": 0, "text": "whole", "logprobs": []},
        message(output_text("wh", logprobs=[1])),
        message(output_text("whole", logprobs=[])),
        {**OPENED, "content": [output_text("whole", logprobs=[])]},
    ),
    (
        "output_text.annotation.added",
        {"content_index": 0, "annotation_index": 1, "annotation": {"type": "url_citation"}},
        message(output_text("a", "first"), FIRST),
        message(output_text("a", "first", {"type": "url_citation"}), FIRST),
        {**OPENED, "content": [output_text("", {"type": "url_citation"})]},
    ),
    (
        "refusal.delta",
        {"content_index": 1, "delta": "no"},
        message(FIRST, refusal("I can")),
        message(FIRST, refusal("I canno")),
        {**OPENED, "content": [refusal("no")]},
    ),
    (
        "refusal.done",
        {"content_index": 1, "refusal": "no"},
        message(FIRST, refusal("I can")),
        message(FIRST, refusal("no")),
        {**OPENED, "content": [refusal("no")]},
    ),
    (
        "reasoning_text.delta",
        {"content_index": 1, "delta": "m"},
        reasoning(thought("first"), thought("h")),
        reasoning(thought("first"), thought("hm")),
        {**THINKING, "content": [thought("m")]},
    ),
    (
        "reasoning_text.done",
        {"content_index": 1, "text": "hm!"},
        reasoning(thought("first"), thought("h")),
        reasoning(thought("first"), thought("hm!")),
        {**THINKING, "content": [thought("hm!")]},
    ),
    (
        "reasoning_part.added",
        {"content_index": 1, "part": thought("")},
        reasoning(thought("first")),
        reasoning(thought("first"), thought("")),
        {**THINKING, "content": [thought("")]},
    ),
    (
        "reasoning_part.done",
        {"content_index": 0, "part": {"type": "other"}},
        reasoning(thought("h")),
        reasoning({"type": "other"}),
        {**THINKING, "content": [{"type": "other"}]},
    ),
    (
        "reasoning_summary_part.added",
        {"summary_index": 1, "part": summary("")},
        reasoning(summary("first"), member="summary"),
        reasoning(summary("first"), summary(""), member="summary"),
        {"type": "reasoning", "summary": [summary("")]},
    ),
    (
        "reasoning_summary_part.done",
        {"summary_index": 1, "part": summary("whole")},
        reasoning(summary("first"), summary("wh"), member="summary"),
        reasoning(summary("first"), summary("whole"), member="summary"),
        {"type": "reasoning", "summary": [summary("whole")]},
    ),
    (
        "reasoning_summary_text.delta",
        {"summary_index": 1, "delta": "m"},
        reasoning(summary("first"), summary("h"), member="summary"),
        reasoning(summary("first"), summary("hm"), member="summary"),
        {"type": "reasoning", "summary": [summary("m")]},
    ),
    (
        "reasoning_summary_text.done",
        {"summary_index": 1, "text": "hm!"},
        reasoning(summary("first"), summary("h"), member="summary"),
        reasoning(summary("first"), summary("hm!"), member="summary"),
        {"type": "reasoning", "summary": [summary("hm!")]},
    ),
    (
        "function_call_arguments.delta",
        {"delta": "1}"},
        item("function_call", arguments='{"a":'),
        item("function_call", arguments='{"a":1}'),
        running("function_call", arguments="1}"),
    ),
    (
        "function_call_arguments.done",
        {"arguments": "{}"},
        item("function_call", arguments='{"a":'),
        item("function_call", arguments="{}"),
        running("function_call", arguments="{}"),
    ),
    (
        "mcp_call_arguments.delta",
        {"delta": "1}"},
        item("mcp_call", arguments='{"a":'),
        item("mcp_call", arguments='{"a":1}'),
        running("mcp_call", arguments="1}"),
    ),
    (
        "mcp_call_arguments.done",
        {"arguments": "{}"},
        item("mcp_call", arguments='{"a":'),
        item("mcp_call", arguments="{}"),
        running("mcp_call", arguments="{}"),
    ),
    (
        "custom_tool_call_input.delta",
        {"delta": "s"},
        item("custom_tool_call", input="l"),
        item("custom_tool_call", input="ls"),
        running("custom_tool_call", input="s"),
    ),
    (
        "custom_tool_call_input.done",
        {"input": "ls -l"},
        item("custom_tool_call", input="l"),
        item("custom_tool_call", input="ls -l"),
        running("custom_tool_call", input="ls -l"),
    ),
    (
        "code_interpreter_call_code.delta",
        {"delta": "1"},
        item("code_interpreter_call", code="1+"),
        item("code_interpreter_call", code="1+1"),
        running("code_interpreter_call", code="1"),
    ),
    (
        "code_interpreter_call_code.delta",
        {"delta": None},
        item("code_interpreter_call", code="1+"),
        item("code_interpreter_call", code="1+"),
        running("code_interpreter_call", code=""),
    ),
    (
        "code_interpreter_call_code.done",
        {"code": "1+1"},
        item("code_interpreter_call", code=None),
        item("code_interpreter_call", code="1+1"),
        running("code_interpreter_call", code="1+1"),
    ),
    (
        "apply_patch_call_operation_diff.delta",
        {"delta": "+b"},
        item("apply_patch_call", operation={"path": "p", "diff": "-a"}),
        item("apply_patch_call", operation={"path": "p", "diff": "-a+b"}),
        running("apply_patch_call", operation={"diff": "+b"}),
    ),
    (
        "apply_patch_call_operation_diff.done",
        {"diff": "+b"},
        item("apply_patch_call", operation={"path": "p", "diff": "-a"}),
        item("apply_patch_call", operation={"path": "p", "diff": "+b"}),
        running("apply_patch_call", operation={"diff": "+b"}),
    ),
    (
        "shell_call_command.added",
        {"command_index": 1, "command": "l"},
        item("shell_call", action={"timeout": 1, "commands": ["pwd"]}),
        item("shell_call", action={"timeout": 1, "commands": ["pwd", "l"]}),
        running("shell_call", action={"commands": ["l"]}),
    ),
    (
        "shell_call_command.delta",
        {"command_index": 1, "delta": "s"},
        item("shell_call", action={"timeout": 1, "commands": ["pwd", "l"]}),
        item("shell_call", action={"timeout": 1, "commands": ["pwd", "ls"]}),
        running("shell_call", action={"commands": ["s"]}),
    ),
    (
        "shell_call_command.done",
        {"command_index": 0, "command": "cd"},
        item("shell_call", action={"commands": ["pwd", "l"]}),
        item("shell_call", action={"commands": ["cd", "l"]}),
        running("shell_call", action={"commands": ["cd"]}),
    ),
    (
        "shell_call_output_content.delta",
        {"command_index": 1, "delta": {"stdout": "b", "stderr": "!"}},
        item("shell_call_output", output=[{"stdout": "x"}, {"stdout": "a", "stderr": ""}]),
        item("shell_call_output", output=[{"stdout": "x"}, {"stdout": "ab", "stderr": "!"}]),
        running("shell_call_output", output=[{"stdout": "b", "stderr": "!"}]),
    ),
    (
        "shell_call_output_content.delta",
        {"command_index": 0, "delta": {"stderr": "!", "stdout": None}},
        item("shell_call_output", output=[{"stdout": "x"}]),
        item("shell_call_output", output=[{"stdout": "x", "stderr": "!"}]),
        running("shell_call_output", output=[{"stderr": "!"}]),
    ),
    (
        "shell_call_output_content.done",
        {"command_index": 1, "output": [{"stdout": "ab", "outcome": {"type": "timeout"}}, {}]},
        item("shell_call_output", output=[{"stdout": "x"}, {"stdout": "a"}]),
        item(
            "shell_call_output",
            output=[{"stdout": "x"}, {"stdout": "ab", "outcome": {"type": "timeout"}}],
        ),
        running("shell_call_output", output=[{"stdout": "ab", "outcome": {"type": "timeout"}}]),
    ),
    (
        "shell_call_output_content.done",
        {"command_index": 0, "output": []},
        item("shell_call_output", output=[{"stdout": "x"}]),
        item("shell_call_output", output=[{"stdout": "x"}]),
        running("shell_call_output"),
    ),
    (
        "output_item.added",
        {"item": {"type": "message", "id": "new"}},
        message(FIRST),
        {"type": "message", "id": "new"},
        {"type": "message", "id": "new"},
    ),
    (
        "output_item.done",
        {"item": {"type": "message", "id": "new"}},
        message(FIRST),
        {"type": "message", "id": "new"},
        {"type": "message", "id": "new"},
    ),
    *(
        (
            f"{kind}.{status}",
            {},
            item(kind, status="?"),
            item(kind, status=status),
            running(kind, status=status),
        )
        for kind, statuses in (
            ("code_interpreter_call", ("in_progress", "interpreting", "completed")),
            ("file_search_call", ("in_progress", "searching", "completed")),
            ("image_generation_call", ("in_progress", "generating", "completed")),
            ("mcp_call", ("in_progress", "completed", "failed")),
            ("web_search_call", ("in_progress", "searching", "completed")),
        )
        for status in statuses
    ),
    *(
        (name, members, item(kind), item(kind), None)
        for name, kind, members in (
            ("audio.delta", "message", {"delta": "AA=="}),
            ("audio.done", "message", {}),
            ("audio.transcript.delta", "message", {"delta": "a"}),
            ("audio.transcript.done", "message", {}),
            ("compaction.compacting", "compaction", {}),
            (
                "image_generation_call.partial_image",
                "image_generation_call",
                {"partial_image_index": 0, "partial_image_b64": "AA=="},
            ),
            ("mcp_list_tools.in_progress", "mcp_list_tools", {}),
            ("mcp_list_tools.completed", "mcp_list_tools", {}),
            ("mcp_list_tools.failed", "mcp_list_tools", {}),
            ("keepalive", "message", {}),
        )
    ),
]
# What has the response, or an error, has tests of its own below.
LIFECYCLE = (
    "created",
    "queued",
    "in_progress",
    "completed",
    "incomplete",
    "failed",
    "cancelled",
    "done",
)
OF_THEIR_OWN = {*(f"response.{kind}" for kind in LIFECYCLE), "error"}


def name_of(row: str) -> str:
    return row if row == "keepalive" else f"response.{row}"


def test_every_event_class_has_a_row() -> None:
    assert {name_of(row[0]) for row in ROWS} | OF_THEIR_OWN == {
        cls.type for cls in (*PUBLISHED, *UNPUBLISHED)
    }


@pytest.mark.parametrize(("name", "members", "before", "after", "implied"), ROWS)
def test_what_an_event_does_to_its_item(
    name: str, members: Any, before: Any, after: Any, implied: Any
) -> None:
    payload = {"output_index": 1, **members}
    given, other = copy.deepcopy(before), item(id="other")
    begin = [
        made("response.output_item.added", output_index=0, item=other),
        made("response.output_item.added", output_index=1, item=given),
    ]
    it = made(name_of(name), **payload)
    untouched = copy.deepcopy(payload)
    accumulator = fed(*begin, it)
    assert accumulator.snapshot()["output"] == [other, after]
    # Without the item before it, it goes where its index tells; and again, where a repetition looks.
    assert fed(it).snapshot() == ({} if implied is None else {"object": "response", "output": [implied]})
    assert (given, payload) == (before, untouched)
    assert (accumulator.usage, accumulator.error, accumulator.finish_reason) == (None, None, None)
    assert accumulator.outcome is Outcome.OPEN


@pytest.mark.parametrize(("name", "members", "before", "after", "implied"), ROWS)
def test_an_item_that_is_done_stays(
    name: str, members: Any, before: Any, after: Any, implied: Any
) -> None:
    del after, implied
    end = made("response.output_item.done", output_index=0, item=before)
    late = made(name_of(name), output_index=0, **members)
    kept = members["item"] if name.startswith("output_item.") else before
    assert fed(end, late).snapshot()["output"] == [kept]


@pytest.mark.parametrize("status", ["in_progress", "completed"])
def test_what_an_item_says_at_its_end_counts_more_than_its_pieces(status: str) -> None:
    end = item(status=status, content=[output_text("end")], encrypted_content="x")
    assert output(
        added(), text("pieces"), event("response.output_item.done", output_index=0, item=end)
    ) == [end]


def test_pieces_go_on_after_a_part_was_replaced() -> None:
    part = sub("content_part.done", content_index=0, part=output_text("B"))
    assert output(text("a"), part, text("b"))[0]["content"] == [output_text("Bb")]
    corrected = sub("output_text.done", content_index=0, text="C")
    assert output(text("a"), corrected, text("c"))[0]["content"] == [output_text("Cc")]
    # A part that is another one, after which the text that grew before is not in the item any more.
    other = sub("content_part.added", content_index=0, part=refusal("no"))
    assert output(text("a"), other, text("b"))[0]["content"] == [{**refusal("no"), "text": "b"}]


def test_pieces_go_on_after_an_item_was_added_again() -> None:
    again = added(content=[output_text("B")])
    assert output(added(), text("a"), again, text("b"))[0]["content"] == [output_text("Bb")]


def test_annotations_stand_by_index_with_gaps_and_over_those_that_were_there() -> None:
    def note(number: int, value: Any) -> bytes:
        return sub(
            "output_text.annotation.added", content_index=0, annotation_index=number, annotation=value
        )

    frames = [added(content=[output_text("", "a", "b")]), note(7, None), note(1, "B"), note(5, {"n": 5})]
    assert output(*frames)[0]["content"] == [output_text("", "a", "B", {"n": 5}, None)]
    null = added(content=[{**output_text(""), "annotations": None}])
    assert output(null, note(3, "n"))[0]["content"] == [output_text("", "n")]


def test_logprobs_extend_and_are_replaced_where_they_come() -> None:
    frames = [text("a", logprobs=[1]), text("b"), text("c", logprobs=[]), text("d", logprobs=[2, 3])]
    (part,) = output(*frames)[0]["content"]
    assert part == output_text("abcd", logprobs=[1, 2, 3])
    end = sub("output_text.done", content_index=0, text="abcd")
    assert output(*frames, end)[0]["content"] == [part]
    end = sub("output_text.done", content_index=0, text="abcd", logprobs=[9])
    assert output(*frames, end)[0]["content"] == [output_text("abcd", logprobs=[9])]
    assert output(text("a", logprobs="odd"))[0]["content"] == [output_text("a")]


@pytest.mark.parametrize(
    ("name", "members"),
    [(row[0], row[1]) for row in ROWS if row[0].endswith(("delta", "done", "added"))],
)
def test_logprobs_stand_beside_text_alone(name: str, members: Any) -> None:
    if name in ("output_text.delta", "output_text.done"):
        return
    plainly = fed(made(f"response.{name}", output_index=0, **members))
    beside = fed(made(f"response.{name}", output_index=0, **members, logprobs=[1]))
    assert beside.snapshot() == plainly.snapshot()


# --- items and their order


def test_hopbase_sends_neither_items_nor_parts() -> None:
    hello = event("response.output_text.delta", delta="Hello")
    begin = event("response.created", response={"id": "resp_1", "status": "in_progress"})
    end = event("response.completed", response={"id": "resp_1", "status": "completed", "usage": USAGE})
    result = read(begin, hello, event("response.output_text.delta", delta="!"), end)
    assert (result.text, result.outcome, result.usage) == ("Hello!", Outcome.COMPLETED, USAGE)
    assert result.message == {
        "id": "resp_1",
        "status": "completed",
        "usage": USAGE,
        "output": [{**OPENED, "content": [output_text("Hello!")]}],
    }


def test_parallel_items_keep_apart() -> None:
    frames = [
        added(0, "reasoning", summary=[]),
        added(1),
        added(2, "function_call", **WHO, arguments=""),
        text("a", 1),
        sub("reasoning_summary_text.delta", 0, summary_index=0, delta="x"),
        pieces("{", index=2),
        text("b", 1, 1),
        text("A", 1),
        pieces("}", index=2),
        sub("reasoning_summary_text.delta", 0, summary_index=1, delta="y"),
        sub("reasoning_summary_text.delta", 0, summary_index=0, delta="z"),
    ]
    accumulator = accumulated(CREATED, *frames)
    assert (accumulator.text, accumulator.reasoning) == ("aAb", "xzy")
    assert [call.arguments for call in accumulator.tool_calls] == ["{}"]
    lengths = accumulator.text_length, accumulator.reasoning_length, accumulator.arguments_length
    assert lengths == (3, 3, 2)


def test_indexes_are_keys_and_not_positions() -> None:
    frames = [added(65_535, "a"), text("x", 7, 9), text("y", 7, 4), added(3, "b", status="completed")]
    items = output(*frames, done(3, "b"))
    assert [it["type"] for it in items] == ["b", "message", "a"]
    assert items[1]["content"] == [output_text("y"), output_text("x")]
    assert [it.type for it in accumulated(CREATED, *frames).items] == ["b", "message", "a"]


def test_in_the_middle_items_are_done_or_as_far_as_they_have_come() -> None:
    end = item(status="completed", content=[output_text("end")])
    frames = [text("par", 1), text("lost"), event("response.output_item.done", output_index=0, item=end)]
    result = read(CREATED, *frames)
    assert result.message == wire.response(
        "created", output=[end, {**OPENED, "content": [output_text("par")]}]
    )


def test_an_item_without_an_index_is_found_by_its_id() -> None:
    end = event("response.output_item.done", item=item(id="b", content=[output_text("B")]))
    assert [it.get("id") for it in output(added(0, id="a"), added(1, id="b"), end)] == ["a", "b"]
    assert read(CREATED, added(0, id="a"), added(1, id="b"), text("b", 1), end).text == "B"
    assert [it.get("id") for it in output(added(0, id="a"), added(1, id="z"), end)] == ["b", "z"]


def test_an_item_with_an_index_is_not_looked_for_by_its_id() -> None:
    # Seen from servers that give all items one id.
    end = whole(1, "message", id="message_1", content=[output_text("B")])
    assert read(CREATED, text("a"), added(0), added(1), end).text == "B"
    assert [it.get("content") for it in output(added(0), added(1), end)] == [None, [output_text("B")]]


# --- the response


@pytest.mark.parametrize("kind", LIFECYCLE)
def test_a_response_replaces_the_one_before(kind: str) -> None:
    first = made("response.created", response=wire.response(metadata={"a": "b"}, user="u"))
    second = made(f"response.{kind}", response={"id": "resp_1", "status": "x", "metadata": {"c": "d"}})
    assert fed(first, second).snapshot() == {
        "id": "resp_1",
        "status": "x",
        "metadata": {"c": "d"},
        "output": [],
    }


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        *((kind, Outcome.OPEN) for kind in ("created", "queued", "in_progress")),
        *((kind, Outcome.COMPLETED) for kind in ("completed", "done")),
        ("incomplete", Outcome.INCOMPLETE),
        ("failed", Outcome.FAILED),
        ("cancelled", Outcome.CANCELLED),
    ],
)
def test_a_response_that_has_ended_says_how(kind: str, outcome: Outcome) -> None:
    ended = outcome is not Outcome.OPEN
    accumulator = fed(made(f"response.{kind}", response=wire.response("said", usage=USAGE)))
    assert accumulator.outcome is outcome
    assert accumulator.finish_reason == ("said" if ended else None)
    assert (accumulator.usage, accumulator.usage_final) == (USAGE, ended)
    unsaid = fed(made(f"response.{kind}", response={"id": "resp_1"}))
    assert unsaid.finish_reason == (kind if ended else None)
    assert (unsaid.usage, unsaid.usage_final) == (None, False)


@pytest.mark.parametrize(
    ("details", "status", "reason"),
    [
        (CUT, "incomplete", "max_output_tokens"),
        ({"reason": None}, "incomplete", "incomplete"),
        ({}, "said", "said"),
        (None, None, "incomplete"),
        ("odd", "", "incomplete"),
        ({"reason": [1]}, ["odd"], "incomplete"),
    ],
)
def test_why_a_response_ended_is_a_word(details: Any, status: Any, reason: str) -> None:
    end = event("response.incomplete", response=wire.response(status, incomplete_details=details))
    assert read(CREATED, end).finish_reason == reason


def test_usage_is_replaced_member_by_member_and_none_is_not_0() -> None:
    frames = [lifecycle("in_progress", usage=None), lifecycle("in_progress", usage={"input_tokens": 3})]
    result = read(CREATED, *frames)
    assert (result.usage, result.usage_final) == ({"input_tokens": 3}, False)
    counts = {"input_tokens": None, "output_tokens": 0}
    result = read(CREATED, *frames, lifecycle("completed", usage=counts))
    assert (result.usage, result.usage_final) == ({"input_tokens": 3, "output_tokens": 0}, True)
    result = read(CREATED, *frames, lifecycle("completed"))
    assert (result.usage, result.usage_final) == ({"input_tokens": 3}, False)


def test_what_the_response_has_at_its_end_counts_most() -> None:
    final = [item(status="completed", content=[output_text("end")]), item("function_call", **WHO)]
    frames = [
        text("pieces"),
        done(1, "message", content=[output_text("x")]),
        added(2, "web_search_call"),
    ]
    result = read(CREATED, *frames, lifecycle("completed", output=final))
    assert result.text == "end"
    assert result.message == wire.response("completed", output=[final[0], {**final[1], "arguments": ""}])


@pytest.mark.parametrize("members", [{"output": None}, {"output": []}, {"output": "odd"}, {}])
def test_items_stand_in_where_the_end_has_no_output(members: Any) -> None:
    response = {**wire.response("completed"), **members}
    if not members:
        del response["output"]
    frames = [text("par", 1), added(), done(0, "message", content=[output_text("end")])]
    result = read(CREATED, *frames, event("response.completed", response=response))
    assert result.text == "endpar"
    assert result.message is not None
    assert [it.get("id") for it in result.message["output"]] == ["message_1", None]


def test_what_is_no_object_in_an_output_is_left_out() -> None:
    end = lifecycle("completed", output=[1, item(id="a"), None, item(id="b")])
    assert [it["id"] for it in output(end)] == ["a", "b"]


def test_an_output_at_the_beginning_begins_items_but_replaces_none() -> None:
    # A stream that is taken up again begins with what there was.
    begin = lifecycle("created", output=[item(content=[output_text("Hel")])])
    assert read(begin, text("lo")).text == "Hello"
    later = lifecycle("in_progress", output=[item(content=[output_text("x")]), item(id="b")])
    result = read(begin, text("lo"), later)
    assert result.text == "Hello"
    assert result.message is not None
    assert [it["id"] for it in result.message["output"]] == ["message_1", "b"]


def test_an_error_alone_fails_the_answer_and_keeps_it() -> None:
    result = read(CREATED, text("par"), wire.ERROR)
    assert (result.text, result.outcome, result.finish_reason) == ("par", Outcome.FAILED, None)
    assert result.error == ErrorInfo.of(
        {"type": "server_error", "code": "server_error", "message": "m"}, {"server_error": True}
    )


def test_the_error_of_a_failed_response_counts_more_than_the_event_before() -> None:
    failed = {"code": "rate_limit_exceeded", "message": "slow down"}
    for frames in ([wire.ERROR, lifecycle("failed", error=failed)], [lifecycle("failed", error=failed)]):
        result = read(CREATED, *frames)
        assert result.error is not None
        assert (result.error.code, result.outcome) == ("rate_limit_exceeded", Outcome.FAILED)
        assert result.finish_reason == "failed"
    result = read(CREATED, wire.ERROR, lifecycle("failed"))
    assert result.error is not None
    assert result.error.code == "server_error"


def test_nothing_has_come_of_nothing() -> None:
    for accumulator in (Accumulator(), accumulated(b": hello\n\n"), accumulated(wire.KEEPALIVE)):
        assert accumulator.snapshot() == {}
        assert accumulator.text == accumulator.reasoning == accumulator.refusal == ""
        assert (accumulator.tool_calls, accumulator.items) == ((), ())
        assert (accumulator.usage, accumulator.finish_reason, accumulator.error) == (None, None, None)
        assert (accumulator.output_started, accumulator.usage_final) == (False, False)
    assert read(wire.KEEPALIVE).message is None


@pytest.mark.parametrize(
    ("frame", "started"),
    [
        (added(), False),
        (added(0, "reasoning", encrypted_content="x"), False),
        (wire.PART_ADDED, False),
        (text(""), False),
        (text("h"), True),
        (sub("refusal.delta", content_index=0, delta="n"), True),
        (sub("reasoning_text.delta", content_index=0, delta="h"), True),
        (sub("reasoning_summary_text.delta", summary_index=0, delta="h"), True),
        (added(0, "web_search_call"), True),
        (FUNCTION, True),
        (sub("mcp_call.in_progress"), True),
        (lifecycle("in_progress"), False),
    ],
)
def test_output_has_started_where_anything_was_said_or_done(frame: bytes, started: bool) -> None:
    assert accumulated(CREATED, frame).output_started is started


def test_refusals_are_not_text_but_count_as_it() -> None:
    frames = [text("a"), sub("refusal.delta", content_index=1, delta="no"), text("b", 0, 2)]
    accumulator = accumulated(CREATED, *frames)
    assert (accumulator.text, accumulator.refusal, accumulator.text_length) == ("ab", "no", 4)


def test_reasoning_is_what_is_shown_of_it_and_else_the_summaries() -> None:
    short = [sub("reasoning_summary_text.delta", summary_index=i, delta=f"s{i}") for i in range(2)]
    accumulator = accumulated(CREATED, *short)
    assert (accumulator.reasoning, accumulator.reasoning_length) == ("s0s1", 4)
    long = sub("reasoning_text.delta", content_index=0, delta="long!")
    accumulator = accumulated(CREATED, *short, long)
    assert (accumulator.reasoning, accumulator.reasoning_length) == ("long!", 5)


def test_a_part_without_text_has_none() -> None:
    bare = sub("content_part.added", content_index=0, part={"type": "output_text", "text": None})
    assert read(CREATED, bare, text("a", 0, 1)).text == "a"


# --- calls


def test_a_call_is_the_same_from_its_beginning_to_its_end() -> None:
    accumulator = Accumulator()
    call: ToolCall | None = None
    seen: list[tuple[str, bool]] = []
    final = item("function_call", **WHO, arguments='{"a":1}', status="completed")
    end = lifecycle("completed", output=[final])
    frames = [FUNCTION, pieces('{"a"', ":1}"), whole(**WHO, arguments='{"a":1}')]
    for each in wire_events(CREATED, *frames, end):
        accumulator.apply(each)
        for known in accumulator.tool_calls:
            call = call or known
            assert known is call
            seen.append((known.arguments, known.complete))
    assert seen == [("", False), ('{"a"', False), *[('{"a":1}', it) for it in (False, True, True)]]
    assert call is not None
    assert (call.id, call.name, call.type, call.index) == ("call_1", "f", "function_call", 0)
    assert call.input == {"a": 1}


def test_who_is_called_and_in_which_order() -> None:
    frames = [
        added(5, "function_call", call_id="e", name="E", arguments="{}"),
        added(2, "custom_tool_call", call_id="b", name="B", input="x"),
        added(3, "mcp_call", name="M", arguments="{}"),
    ]
    calls = accumulated(CREATED, *frames).tool_calls
    assert [(call.id, call.name, call.type, call.index) for call in calls] == [
        ("b", "B", "custom_tool_call", 2),
        ("e", "E", "function_call", 5),
    ]
    odd = added(0, "function_call", call_id=[1], name={})
    (call,) = accumulated(CREATED, odd).tool_calls
    assert (call.id, call.name) == (None, None)


ENDED = sub("function_call_arguments.done", arguments="{}")
EMPTY = sub("function_call_arguments.done", arguments="")


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        ([FUNCTION, pieces("{}")], ("{}", False, None)),
        ([FUNCTION, ENDED], ("{}", True, {})),
        ([FUNCTION, pieces("{"), ENDED], ("{}", True, {})),
        ([FUNCTION, sub("function_call_arguments.done", arguments="{")], ("{", False, None)),
        ([FUNCTION, EMPTY], ("", False, None)),
        ([FUNCTION, EMPTY, whole(**WHO, arguments="")], ("", True, {})),
        ([FUNCTION, EMPTY, lifecycle("completed")], ("", True, {})),
        ([FUNCTION, lifecycle("completed", output=None)], ("", True, {})),
        ([FUNCTION, EMPTY, lifecycle("incomplete")], ("", False, None)),
        ([FUNCTION, EMPTY, lifecycle("failed")], ("", False, None)),
        ([FUNCTION, pieces('{"a'), whole(**WHO, arguments='{"a')], ('{"a', False, None)),
        ([FUNCTION, pieces("{}"), whole(**WHO, arguments="[1]")], ("[1]", True, [1])),
        # A status counts more than the event.
        ([FUNCTION, ENDED, whole(**WHO, arguments="{}", status="incomplete")], ("{}", False, None)),
        (
            [FUNCTION, whole(**WHO, arguments="", status="incomplete"), lifecycle("completed")],
            ("", False, None),
        ),
        (
            [FUNCTION, whole(**WHO, arguments="{}", status="completed"), lifecycle("incomplete")],
            ("{}", True, {}),
        ),
        # An item is not wiped by an end that leaves out what it was.
        ([FUNCTION, pieces("[1]"), whole()], ("[1]", True, [1])),
        ([FUNCTION, pieces("[1]"), whole(**WHO, arguments=None)], ("[1]", True, [1])),
        ([FUNCTION, whole(**WHO, arguments={"a": [1]})], ('{"a": [1]}', True, {"a": [1]})),
        # Another event's end is not that of the arguments.
        ([FUNCTION, pieces("{}"), wire.TEXT_DONE, wire.PART_DONE], ("{}", False, None)),
        ([FUNCTION, ENDED, pieces(" x")], ("{} x", False, None)),
        (
            [FUNCTION, pieces("[1]"), sub("output_text.delta", content_index=0, delta="x")],
            ("[1]", False, None),
        ),
    ],
)
def test_when_a_call_is_complete(frames: list[bytes], expected: Any) -> None:
    assert answer_of(*frames) == expected


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        ([CUSTOM, sub("custom_tool_call_input.delta", delta="ls")], ("ls", False, None)),
        ([CUSTOM, sub("custom_tool_call_input.done", input="{")], ("{", True, "{")),
        ([CUSTOM, whole(0, "custom_tool_call", **WHO, input="")], ("", True, "")),
        ([CUSTOM, sub("custom_tool_call_input.delta", delta="l"), wire.TEXT_DONE], ("l", False, None)),
    ],
)
def test_the_input_of_a_custom_tool_is_free_text(frames: list[bytes], expected: Any) -> None:
    assert answer_of(*frames) == expected


@pytest.mark.parametrize("arguments", ["", "{}"])
@pytest.mark.parametrize("kind", ["incomplete", "completed", "done", "failed", "cancelled"])
def test_the_last_call_of_an_answer_that_was_cut_is_not_complete(kind: str, arguments: str) -> None:
    # Bridges make a completed response of a cut one, and leave its status as it was.
    status = "incomplete" if kind in ("completed", "done") else kind
    call = item("function_call", **WHO, arguments=arguments)
    outputs: list[list[Any]] = [[call], []]
    for output in outputs:
        members = {"output": output}
        response = {**wire.response(status, incomplete_details=CUT), **members}
        end = event(f"response.{kind}", response=response)
        frames = [FUNCTION, whole(**WHO, arguments=arguments), end]
        assert answer_of(*frames) == (arguments, False, None)
        assert answer_of(FUNCTION, pieces(arguments), end) == (arguments, False, None)
    call["status"] = "completed"
    end = event(f"response.{kind}", response=wire.response(status, output=[call]))
    assert answer_of(FUNCTION, end)[1]


def test_calls_before_the_last_one_stay_complete_at_a_cut() -> None:
    half = "half of a patch"
    frames = [
        whole(0, **WHO, arguments="{}"),
        whole(1, **WHO, arguments="{}", status="incomplete"),
        whole(2, "custom_tool_call", **WHO, input=half),
    ]
    for end in (
        lifecycle("incomplete", incomplete_details=CUT),
        lifecycle(
            "incomplete",
            output=[
                item("function_call", **WHO, arguments="{}"),
                item("function_call", **WHO, arguments="{}", status="incomplete"),
                {"type": "custom_tool_call", **WHO, "input": half},
            ],
        ),
    ):
        calls = read(CREATED, *frames, end).tool_calls
        assert [call.complete for call in calls] == [True, False, False]
        assert calls[2].arguments == half


def test_a_call_that_is_held_never_becomes_another_one() -> None:
    accumulator = Accumulator()
    a = item("function_call", call_id="A", name="a", arguments="{}")
    b = item("function_call", call_id="B", name="b", arguments="[]")
    frames = [
        added(1, "function_call", call_id="A", name="a", arguments="x"),
        added(2, "function_call", call_id="B", name="b", arguments="y"),
    ]
    held: tuple[ToolCall, ...] = ()
    # The indexes have a gap, which the output at the end has not.
    for each in wire_events(CREATED, *frames, lifecycle("completed", output=[a, b])):
        held = held or (accumulator.tool_calls if len(accumulator.tool_calls) == 2 else ())
        accumulator.apply(each)
    assert [(call.id, call.name, call.arguments, call.complete) for call in held] == [
        ("A", "a", "x", False),
        ("B", "b", "y", False),
    ]
    assert [(call.id, call.index, call.input) for call in accumulator.tool_calls] == [
        ("A", 0, {}),
        ("B", 1, []),
    ]


def test_an_item_that_turns_out_to_be_of_another_type() -> None:
    assert read(CREATED, FUNCTION, whole(0, "message")).tool_calls == ()
    (call,) = read(CREATED, FUNCTION, whole(0, "custom_tool_call", **WHO, input="x")).tool_calls
    assert (call.type, call.input) == ("custom_tool_call", "x")
    (call,) = read(CREATED, added(), whole(0, **WHO, arguments="{}")).tool_calls
    assert (call.id, call.input) == ("call_1", {})


def test_a_call_that_is_implied_learns_its_name_at_its_end() -> None:
    (call,) = read(CREATED, pieces("{}")).tool_calls
    assert (call.id, call.name, call.complete) == (None, None, False)
    accumulator = Accumulator()
    events = wire_events(CREATED, pieces("{}"), whole(**WHO, arguments="{}"))
    accumulator.apply(events[0])
    accumulator.apply(events[1])
    (call,) = accumulator.tool_calls
    accumulator.apply(events[2])
    assert accumulator.tool_calls == (call,)
    assert (call.id, call.name, call.input) == ("call_1", "f", {})


@pytest.mark.parametrize(("end", "again"), [('{"a":1}', False), ('{"a":2}', True)])
def test_arguments_that_are_corrected_are_read_again(end: str, again: bool) -> None:
    accumulator = Accumulator()
    events = wire_events(CREATED, FUNCTION, pieces('{"a":', "1}"), whole(**WHO, arguments=end))
    for each in events[:-1]:
        accumulator.apply(each)
    (call,) = accumulator.tool_calls
    reader = call.partial_input
    assert reader.value == {"a": 1}
    accumulator.apply(events[-1])
    assert (call.partial_input is not reader) is again
    assert call.partial_input.value == call.input == json.loads(end)


@pytest.mark.parametrize(
    ("frames", "length"),
    [
        ([FUNCTION, pieces("12", "3")], 3),
        ([CUSTOM, sub("custom_tool_call_input.delta", delta="12")], 2),
        ([added(0, "mcp_call", arguments="1"), sub("mcp_call_arguments.delta", delta="2")], 2),
        ([added(0, "mcp_call", arguments="123")], 3),
        ([sub("code_interpreter_call_code.done", code="1+1")], 3),
        ([added(0, "code_interpreter_call", code=None)], 0),
        ([added(0, "apply_patch_call", operation={"path": "p", "diff": "+"})], 1),
        ([sub("apply_patch_call_operation_diff.delta", delta="-a")], 2),
        ([added(0, "apply_patch_call", operation={"path": "p"})], 0),
        ([added(0, "apply_patch_call", operation="odd")], 0),
        ([added(0, "shell_call", action={"commands": ["ls", 7, "pwd"]})], 5),
        ([sub("shell_call_command.delta", command_index=i, delta="ls") for i in (0, 4)], 4),
        ([added(0, "shell_call", action={"commands": "odd"})], 0),
        ([added(0, "shell_call", action=None)], 0),
        ([added(0, "web_search_call", arguments="no"), added(1, content=[output_text("no")])], 0),
        ([FUNCTION, pieces("1"), added(1, "mcp_call", arguments="23")], 3),
    ],
)
def test_characters_that_any_tool_is_called_with_are_counted(frames: list[bytes], length: int) -> None:
    assert accumulated(CREATED, *frames).arguments_length == length


# --- public bug reports


TEXT_ITEM = item(status="completed", role="assistant", content=[output_text("hi")])
COMPLETED = lifecycle("completed", output=[TEXT_ITEM], usage=USAGE)
BEGIN = (CREATED, added(), wire.PART_ADDED)


def test_po28_text_before_its_item() -> None:
    result = read(wire.numbered(text("hi"), COMPLETED), wire.DONE)
    assert (result.text, result.outcome, result.usage) == ("hi", Outcome.COMPLETED, USAGE)
    assert result.message == wire.response("completed", output=[TEXT_ITEM], usage=USAGE)
    assert read(text("hi")).text == "hi"


def test_po29_the_end_comes_first() -> None:
    result = read(COMPLETED)
    assert (result.text, result.outcome) == ("hi", Outcome.COMPLETED)
    assert (result.usage, result.usage_final) == (USAGE, True)


def test_po31_numbers_that_are_lost_and_repeated() -> None:
    stream = (
        wire.numbered(*BEGIN, text("a"))
        + wire.numbered(text("b"), start=3)
        + wire.numbered(text("c"), start=9)
    )
    assert read(stream).text == "abc"
    result = read(stream, wire.numbered(lifecycle("completed"), start=10))
    assert (result.text, result.outcome) == ("abc", Outcome.COMPLETED)


def test_po34_two_items_under_one_index() -> None:
    frames = (CREATED, added(), FUNCTION, pieces("{}"), text("hi"))
    result = read(wire.numbered(*frames))
    assert (result.text, [call.arguments for call in result.tool_calls]) == ("hi", ["{}"])
    result = read(wire.numbered(*frames, COMPLETED))
    assert (result.text, result.tool_calls, result.outcome) == ("hi", (), Outcome.COMPLETED)


def test_po35_the_end_has_no_output() -> None:
    end = event("response.output_item.done", output_index=0, item=TEXT_ITEM)
    frames = (*BEGIN, text("hi"), wire.TEXT_DONE, wire.PART_DONE, end)
    result = read(wire.numbered(*frames, lifecycle("completed", usage=USAGE)))
    assert (result.text, result.outcome) == ("hi", Outcome.COMPLETED)
    assert result.message == wire.response("completed", output=[TEXT_ITEM], usage=USAGE)


def test_po37_incomplete_is_an_end_of_its_own() -> None:
    end = lifecycle("incomplete", incomplete_details=CUT, usage=USAGE)
    result = read(wire.numbered(*BEGIN, text("hal"), end))
    assert (result.text, result.outcome) == ("hal", Outcome.INCOMPLETE)
    assert (result.usage, result.usage_final) == (USAGE, True)
    assert result.finish_reason == "max_output_tokens"


@pytest.mark.parametrize("rest", [b"", b"event: response.output_text.delta\ndata: {", wire.DONE])
def test_po38_cut_before_the_end(rest: bytes) -> None:
    result = read(wire.numbered(*BEGIN, text("par"), FUNCTION, pieces("{}")), rest)
    assert result.outcome is Outcome.TRUNCATED
    assert [(call.complete, call.input) for call in result.tool_calls] == [(False, None)]
    assert read(wire.numbered(*BEGIN, text("par")), rest).text == "par"
    assert (result.finish_reason, result.usage, result.usage_final) == (None, None, False)


@pytest.mark.parametrize(
    "error",
    [
        event("error", code="server_error", message="boom", param=None),
        event("error", error={"code": "server_error", "message": "boom"}),
        lifecycle("failed", error={"code": "server_error", "message": "boom"}),
    ],
)
def test_me15_errors_flat_nested_and_in_the_response(error: bytes) -> None:
    result = read(wire.numbered(CREATED, error))
    assert result.outcome is Outcome.FAILED
    assert isinstance(result.error, ErrorInfo)
    assert (result.error.code, result.error.message) == ("server_error", "boom")
    assert result.error.retryable is True


# --- at any moment


STREAMS = [SAMPLE, wire.ANSWER, wire.numbered(CREATED, *wire.MESSAGE, wire.ERROR)]


@pytest.mark.parametrize("stream", STREAMS)
def test_a_snapshot_is_json_of_its_own_at_every_moment(stream: bytes) -> None:
    accumulator = Accumulator()
    events = wire_events(stream)
    payloads = copy.deepcopy([each.payload for each in events])
    for each in events:
        accumulator.apply(each)
        snapshot = accumulator.snapshot()
        before = json.dumps(snapshot)
        spoil(snapshot)
        usage = accumulator.usage
        spoil(usage)
        assert json.dumps(accumulator.snapshot()) == before
        assert (accumulator.usage is None) is (usage is None)
    assert [each.payload for each in events] == payloads


def spoil(value: Any) -> None:
    """Empty everything in a value."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            spoil(inner)
        value.clear()


@pytest.mark.parametrize("stream", STREAMS)
def test_an_answer_goes_on_as_a_copy(stream: bytes) -> None:
    events = wire_events(stream)
    expected = fed(*events)
    for cut in range(len(events)):
        begun = fed(*events[:cut])
        for copied in (copy.copy(begun), pickle.loads(pickle.dumps(begun))):
            for each in events[cut:]:
                copied.apply(each)
            assert copied.snapshot() == expected.snapshot()
            assert [call.input for call in copied.tool_calls] == [
                call.input for call in expected.tool_calls
            ]
        assert begun.snapshot() == fed(*events[:cut]).snapshot()


def test_the_sample_is_what_it_says_at_its_end() -> None:
    events = wire_events(SAMPLE)
    result = read(SAMPLE)
    assert result.message == events[-1].response
    # The pieces tell the same.
    without_output = copy.deepcopy(events[-1].payload)
    without_output["response"]["output"] = None
    pieced = fed(*events[:-1], made(**{"kind": without_output.pop("type"), **without_output}))
    assert pieced.snapshot() == result.message
    assert (pieced.text, pieced.reasoning) == (result.text, result.reasoning) != ("", "")
    assert [call.input for call in pieced.tool_calls] == [call.input for call in result.tool_calls]


@given(st.lists(st.text(max_size=6), max_size=30))
def test_text_is_the_same_however_it_is_split(values: list[str]) -> None:
    text_events = [
        made("response.output_text.delta", delta=value, content_index=0, output_index=0)
        for value in values
    ]
    call_events = [
        made("response.function_call_arguments.delta", delta=value, output_index=1) for value in values
    ]
    begin = made("response.created", response=wire.response())
    accumulator = fed(begin, *text_events, *call_events)
    want = "".join(values)
    assert accumulator.text == want
    assert accumulator.text_length == accumulator.arguments_length == len(want)
    assert [call.arguments for call in accumulator.tool_calls] == ([want] if values else [])
    mixed = [each for pair in zip(text_events, call_events, strict=True) for each in pair]
    assert fed(begin, *mixed).snapshot() == accumulator.snapshot()


@given(st.lists(st.sampled_from(["a", "好", "\U0001f30d", "", "long " * 9]), max_size=12), st.data())
def test_a_cut_leaves_a_beginning(values: list[str], data: st.DataObject) -> None:
    frames = [CREATED, added(), wire.PART_ADDED, *map(text, values)]
    want = "".join(values)
    end = item(status="completed", content=[output_text(want)])
    frames += [
        sub("output_text.done", content_index=0, text=want),
        sub("content_part.done", content_index=0, part=output_text(want)),
        event("response.output_item.done", output_index=0, item=end),
        lifecycle("completed", output=[end]),
    ]
    texts = ["", "", "", *accumulate(values)] + [want] * 4
    cut = data.draw(st.integers(1, len(frames)))
    result = read(*frames[:cut])
    assert result.text == texts[cut - 1]
    assert result.outcome is (Outcome.COMPLETED if cut == len(frames) else Outcome.TRUNCATED)
    # However the bytes are cut into pieces.
    body = b"".join(frames[:cut])
    at = data.draw(st.integers(0, len(body)))
    assert collect([body[:at], body[at:]], RESPONSES).message == result.message


@pytest.mark.parametrize("stream", STREAMS)
def test_a_stream_that_is_cut_anywhere_has_a_beginning_of_its_text(stream: bytes) -> None:
    events = wire_events(stream)
    texts = [fed(*events[:cut]).text for cut in range(len(events) + 1)]
    longest = max(texts, key=len)
    assert longest
    assert all(longest.startswith(each) for each in texts)


# --- odd shapes and much of everything


ODD: list[Any] = [
    None,
    True,
    7,
    1.5,
    "x",
    [],
    [[]],
    [None, 1, "x"],
    {},
    {"type": ["list"]},
    {"type": {}},
]
# Members that the decoder does not look into.
INSIDE = (
    *("type", "id", "status", "content", "summary", "arguments", "input", "code", "action"),
    *("operation", "output", "call_id", "name"),
)
PIECES = [
    made(name_of(row[0]), output_index=0, **row[1])
    for row in ROWS
    if not row[0].startswith("output_item.")
]


def check_all(accumulator: Accumulator) -> None:
    """Everything that can be asked for is of its type."""
    json.dumps(accumulator.snapshot())
    assert all(type(it) is str for it in (accumulator.text, accumulator.reasoning, accumulator.refusal))
    lengths = (accumulator.text_length, accumulator.reasoning_length, accumulator.arguments_length)
    assert all(type(length) is int for length in lengths)
    assert accumulator.text_length == len(accumulator.text) + len(accumulator.refusal)
    assert accumulator.reasoning_length == len(accumulator.reasoning)
    assert type(accumulator.finish_reason) in (str, type(None))
    assert type(accumulator.output_started) is bool
    for call in accumulator.tool_calls:
        assert {type(call.id), type(call.name)} <= {str, type(None)}
        assert call.complete or call.input is None
        assert type(call.arguments) is str


@pytest.mark.parametrize("odd", ODD, ids=repr)
@pytest.mark.parametrize(
    "kind", ["message", "reasoning", "function_call", "custom_tool_call", "shell_call"]
)
def test_odd_members_of_items_do_no_harm(kind: str, odd: Any) -> None:
    for member in INSIDE:
        begin = made("response.output_item.added", output_index=0, item={"type": kind, member: odd})
        end = made("response.output_item.done", output_index=0, item={"type": kind, member: odd})
        final = made("response.completed", response={"output": [{"type": kind, member: odd}]})
        for each in PIECES:
            check_all(fed(begin, each))
        check_all(fed(begin, *PIECES))
        check_all(fed(begin, *PIECES, end, *PIECES, final))


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_odd_parts_annotations_and_responses_do_no_harm(odd: Any) -> None:
    parts: list[Any] = [
        {"type": odd},
        *(
            {"type": kind, "text": odd, "refusal": odd}
            for kind in ("output_text", "refusal", "reasoning_text")
        ),
        {"type": "output_text", "text": "", "annotations": odd, "logprobs": odd},
    ]
    for part in parts:
        begin = made("response.content_part.added", output_index=0, content_index=0, part=part)
        check_all(fed(begin))
        check_all(fed(begin, *PIECES, begin))
        check_all(
            fed(made("response.output_item.added", output_index=0, item=message(part, odd)), *PIECES)
        )
    for member in ("usage", "output", "status", "incomplete_details", "error", "id"):
        for kind in ("in_progress", "completed", "incomplete", "failed"):
            begin = event(f"response.{kind}", response={**wire.response(), member: odd})
            check_all(accumulated(CREATED, text("a"), begin))
    check_all(accumulated(CREATED, text("a"), event("error", error=odd)))
    check_all(
        accumulated(CREATED, text("a", logprobs=odd), sub("output_text.done", text="", logprobs=odd))
    )


FEW = {"k": "x" * 1000}
MANY: dict[str, Any] = {
    "items that are added": lambda i: made("response.output_item.added", output_index=i, item={}),
    "items that are done": lambda i: made("response.output_item.done", output_index=i, item={}),
    "items that are implied": lambda i: made("response.mcp_call.in_progress", output_index=i),
    "one item, again": lambda _: made("response.output_item.added", output_index=0, item=FEW),
    "one item, done again": lambda _: made("response.output_item.done", output_index=0, item=FEW),
    "parts by text": lambda i: made(
        "response.output_text.delta", output_index=0, content_index=i, delta=""
    ),
    "parts": lambda i: made("response.content_part.added", output_index=0, content_index=i, part={}),
    "parts of a summary": lambda i: made(
        "response.reasoning_summary_part.added", output_index=0, summary_index=i, part=FEW
    ),
    "commands": lambda i: made(
        "response.shell_call_command.delta", output_index=0, command_index=i, delta=""
    ),
    "whole commands": lambda i: made(
        "response.shell_call_command.added", output_index=0, command_index=i, command=""
    ),
    "what is printed": lambda i: made(
        "response.shell_call_output_content.delta", output_index=0, command_index=i, delta={"stderr": ""}
    ),
    "all that is printed": lambda i: made(
        "response.shell_call_output_content.done", output_index=0, command_index=i, output=[FEW]
    ),
    "annotations": lambda i: made(
        "response.output_text.annotation.added",
        output_index=0,
        content_index=0,
        annotation_index=i,
        annotation=None,
    ),
    "logprobs": lambda _: made(
        "response.output_text.delta", output_index=0, content_index=0, delta="", logprobs=[1]
    ),
    "logprobs at the end": lambda _: made(
        "response.output_text.done", output_index=0, content_index=0, text="", logprobs=[FEW]
    ),
    "text": lambda _: made(
        "response.output_text.delta", output_index=0, content_index=0, delta="x" * 100
    ),
    "arguments": lambda _: made(
        "response.function_call_arguments.delta", output_index=0, delta="x" * 100
    ),
    "text that is printed": lambda _: made(
        "response.shell_call_output_content.delta",
        output_index=0,
        command_index=0,
        delta={"stdout": "x" * 100},
    ),
    "responses": lambda _: made("response.in_progress", response={"id": "r", "metadata": FEW}),
}


@pytest.mark.parametrize("make", MANY.values(), ids=MANY)
def test_much_of_anything_reaches_the_limit(make: Any) -> None:
    size = 50 * PART_SIZE
    accumulator = Accumulator(max_size=size)
    with pytest.raises(AnswerTooLarge) as caught:
        deque(map(accumulator.apply, map(make, range(5000))), maxlen=0)
    assert caught.value.limit == size
    kept = json.dumps(accumulator.snapshot())
    assert len(kept) < 2 * size
    with pytest.raises(AnswerTooLarge):
        accumulator.apply(make(0))
    assert json.dumps(accumulator.snapshot()) == kept
    unlimited = Accumulator(max_size=None)
    for number in range(5000):
        unlimited.apply(make(number))
    assert len(json.dumps(unlimited.snapshot())) >= len(kept)


def test_a_receiver_ends_where_the_answer_is_too_large() -> None:
    body = CREATED + text("x" * 3000) + text("y")
    result = collect(body, RESPONSES, limits=Limits(max_answer_size=3000))
    assert isinstance(result.error, AnswerTooLarge)
    assert (result.outcome, result.text) == (Outcome.LIMIT, "x" * 3000)


# --- beside the official SDK


def official(events: Sequence[Any]) -> Any:
    """The response that the official helper for streams makes of the same payloads."""
    state: ResponseStreamState[Any] = ResponseStreamState(input_tools=omit, text_format=omit)
    for each in events:
        state.handle_event(cast("Any", construct_type(type_=ResponseStreamEvent, value=each.payload)))
    assert state._completed_response is not None
    return state._completed_response.to_dict()


def present(value: Any) -> Any:
    """JSON without what is null, or was parsed by the helper for those who gave it a schema."""
    if isinstance(value, dict):
        return {
            name: present(inner)
            for name, inner in value.items()
            if inner is not None and name not in ("parsed", "parsed_arguments")
        }
    return [present(inner) for inner in value] if isinstance(value, list) else value


REASONED = item(
    "reasoning", status="completed", summary=[summary("one"), summary("two")], encrypted_content="e"
)
CALLED = item("function_call", **WHO, arguments='{"a":1}', status="completed")
TYPED = item("custom_tool_call", **WHO, id="ct", input="ls", status="completed")
SAID = item(
    role="assistant",
    status="completed",
    content=[output_text("hi", logprobs=[]), refusal("no")],
)
FRAMES = (
    CREATED.replace(b'"created"', b'"in_progress"'),
    added(0, "reasoning", summary=[]),
    sub("reasoning_summary_part.added", summary_index=0, part=summary("")),
    sub("reasoning_summary_text.delta", summary_index=0, delta="one"),
    event("response.output_item.done", output_index=0, item=REASONED),
    added(1, role="assistant", content=[]),
    sub("content_part.added", 1, content_index=0, part=output_text("")),
    text("h", 1, logprobs=[]),
    text("i", 1, logprobs=[]),
    sub("output_text.done", 1, content_index=0, text="hi", logprobs=[]),
    sub("content_part.done", 1, content_index=0, part=output_text("hi", logprobs=[])),
    event("response.output_item.done", output_index=1, item=SAID),
    added(2, "function_call", **WHO, arguments=""),
    pieces('{"a":', index=2),
    pieces("1}", index=2),
    event("response.output_item.done", output_index=2, item=CALLED),
    event("response.output_item.done", output_index=3, item=TYPED),
)
OUTPUT = [REASONED, SAID, CALLED, TYPED]


@pytest.mark.parametrize(
    "stream",
    [
        SAMPLE,
        wire.numbered(*FRAMES, lifecycle("completed", output=OUTPUT, usage=USAGE)),
        wire.numbered(*FRAMES, lifecycle("completed", output=None, usage=USAGE)),
    ],
)
def test_the_official_helper_makes_the_same_response(stream: bytes) -> None:
    events = wire_events(stream)
    mine = fed(*events)
    assert mine.outcome is Outcome.COMPLETED
    assert mine.snapshot()["output"]
    assert present(mine.snapshot()) == present(official(events))


def test_the_official_helper_for_web_sockets_makes_the_same_pieces() -> None:
    theirs, ours = ResponsesWebSocketAccumulator(), Accumulator()
    for each in wire_events(SAMPLE)[:-1]:
        theirs.add_event(cast("Any", construct_type(type_=ResponseStreamEvent, value=each.payload)))
        ours.apply(each)
        projected = theirs.snapshot()
        assert ours.text == projected.output_text
        assert [it.snapshot().get("id") for it in ours.items] == [it.item_id for it in projected.output]
        assert [it.snapshot().get("arguments", "") for it in ours.items] == [
            it.arguments for it in projected.output
        ]
        rows = theirs.detailed_snapshot()["output"]
        for row, it in zip(rows, ours.items, strict=True):
            assert present(it.snapshot().get("summary")) == present(row["item"].get("summary"))
    assert ours.text
    assert ours.tool_calls
