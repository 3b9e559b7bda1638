"""Every kind of event in every state of a Responses stream, from bytes to where it leads.

The expectations are written by hand: the codes that are reported, and the state afterwards. ``x`` in
front of a code means that the event was dropped, ``!`` that reading ends there.
"""

from __future__ import annotations

from typing import Any

import pytest

from sse_machines import RESPONSES, Event, Receiver, Violation
from sse_machines.responses import moves
from tests import transitions, wire as common
from tests.responses import wire

BEGIN = (wire.CREATED, wire.added(), wire.PART_ADDED)
PREFIX = {
    "IDLE": (),
    "OPEN": BEGIN,
    "ERRORED": (wire.CREATED, wire.ERROR),
    "COMPLETED": (wire.CREATED, wire.lifecycle("completed")),
    "INCOMPLETE": (*BEGIN, wire.lifecycle("incomplete")),
    "FAILED": (*BEGIN, wire.lifecycle("failed")),
}
EVENTS = {
    "created": wire.CREATED,
    "other created": wire.lifecycle("created", id="resp_2"),
    "queued": wire.lifecycle("queued"),
    "in_progress": wire.lifecycle("in_progress"),
    "other in_progress": wire.lifecycle("in_progress", id="resp_2"),
    "item 0": wire.added(0),
    "item 1": wire.added(1),
    "item 5": wire.added(5),
    "item 0 done": wire.done(0),
    "item 1 done": wire.done(1),
    "part 0": wire.PART_ADDED,
    "part 0 done": wire.PART_DONE,
    "text 0": wire.text("a"),
    "text of part 1": wire.text("a", part=1),
    "text of item 1": wire.text("a", index=1),
    "text done": wire.TEXT_DONE,
    "annotation": wire.sub(
        "output_text.annotation.added", content_index=0, annotation_index=0, annotation={}
    ),
    "other item_id": wire.text("a", item_id="other"),
    "arguments of 0": wire.sub("function_call_arguments.delta", delta="{"),
    "completed": wire.COMPLETED,
    "completed, empty": wire.lifecycle("completed"),
    "incomplete": wire.lifecycle("incomplete"),
    "failed": wire.lifecycle("failed"),
    "cancelled": wire.lifecycle("cancelled"),
    "done": wire.lifecycle("done"),
    "audio": wire.event("response.audio.delta", delta="AA"),
    "keepalive": wire.KEEPALIVE,
    "error": wire.ERROR,
    "future": wire.event("response.new_thing"),
}

NEW = "missing_created"
ITEM = "sub_event_before_item_added"
PART = "delta_before_part_added"
OPEN_END = "item_left_open COMPLETED"
EXPECTED: dict[str, dict[str, str]] = {
    "IDLE": {
        "created": "OPEN",
        "other created": "OPEN",
        "queued": f"{NEW} OPEN",
        "in_progress": f"{NEW} OPEN",
        "other in_progress": f"{NEW} OPEN",
        "item 0": f"{NEW} OPEN",
        "item 1": f"{NEW} OPEN",
        "item 5": f"{NEW} OPEN",
        "item 0 done": f"{NEW} item_done_without_added OPEN",
        "item 1 done": f"{NEW} item_done_without_added OPEN",
        "part 0": f"{NEW} {ITEM} OPEN",
        "part 0 done": f"{NEW} {ITEM} part_done_before_added OPEN",
        "text 0": f"{NEW} {ITEM} {PART} OPEN",
        "text of part 1": f"{NEW} {ITEM} {PART} OPEN",
        "text of item 1": f"{NEW} {ITEM} {PART} OPEN",
        "text done": f"{NEW} {ITEM} text_done_before_part_added OPEN",
        "annotation": f"{NEW} {ITEM} {PART} OPEN",
        "other item_id": f"{NEW} {ITEM} {PART} OPEN",
        "arguments of 0": f"{NEW} {ITEM} OPEN",
        "completed": f"{NEW} COMPLETED",
        "completed, empty": f"{NEW} COMPLETED",
        "incomplete": f"{NEW} INCOMPLETE",
        "failed": "failed_before_created FAILED",
        "cancelled": "nonstandard_terminal CANCELLED",
        "done": "nonstandard_terminal COMPLETED",
        "audio": f"{NEW} OPEN",
        "keepalive": "IDLE",
        "error": "ERRORED",
        "future": "IDLE",
    },
    "OPEN": {
        "created": "x duplicate_created OPEN",
        "other created": "! second_response OPEN",
        "queued": "OPEN",
        "in_progress": "OPEN",
        "other in_progress": "response_id_changed OPEN",
        "item 0": "duplicate_item_added OPEN",
        "item 1": "OPEN",
        "item 5": "output_index_gap OPEN",
        "item 0 done": "part_left_open OPEN",
        "item 1 done": "item_done_without_added OPEN",
        "part 0": "duplicate_part_added OPEN",
        "part 0 done": "text_done_missing OPEN",
        "text 0": "OPEN",
        "text of part 1": f"{PART} OPEN",
        "text of item 1": f"{ITEM} {PART} OPEN",
        "text done": "OPEN",
        "annotation": "OPEN",
        "other item_id": "item_id_changed OPEN",
        "arguments of 0": "event_item_type_mismatch OPEN",
        "completed": OPEN_END,
        "completed, empty": f"terminal_output_empty {OPEN_END}",
        "incomplete": "INCOMPLETE",
        "failed": "FAILED",
        "cancelled": "nonstandard_terminal CANCELLED",
        "done": f"nonstandard_terminal {OPEN_END}",
        "audio": "OPEN",
        "keepalive": "OPEN",
        "error": "ERRORED",
        "future": "OPEN",
    },
    "ERRORED": dict.fromkeys(EVENTS, "x event_after_error ERRORED")
    | {"failed": "FAILED", "keepalive": "ERRORED"},
    **{
        state: dict.fromkeys(EVENTS, f"x event_after_terminal {state}")
        for state in ("COMPLETED", "INCOMPLETE", "FAILED")
    },
}
CELLS = [(state, event) for state, row in EXPECTED.items() for event in row]


def test_every_event_is_expected_in_every_state() -> None:
    assert len(CELLS) == len(PREFIX) * len(EVENTS)


def in_state(state: str, *, strict: bool) -> Receiver[Event]:
    return transitions.in_state(RESPONSES, wire.numbered(*PREFIX[state]), state, strict=strict)


def numbered(state: str, event: str) -> bytes:
    return wire.numbered(EVENTS[event], start=len(PREFIX[state]))


@pytest.mark.parametrize(("state", "event"), CELLS)
def test_lenient(state: str, event: str) -> None:
    transitions.check_lenient(
        in_state(state, strict=False), numbered(state, event), EXPECTED[state][event]
    )


@pytest.mark.parametrize(("state", "event"), CELLS)
def test_strict_raises_the_first_thing_that_lenient_reports(state: str, event: str) -> None:
    transitions.check_strict(
        in_state(state, strict=True), numbered(state, event), EXPECTED[state][event]
    )


ENDS = {
    "IDLE": ("eof_before_first_event", "truncated"),
    "OPEN": ("truncated", "truncated"),
    "ERRORED": ("", "failed"),
    "COMPLETED": ("", "completed"),
    "INCOMPLETE": ("", "incomplete"),
    "FAILED": ("", "failed"),
}


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("state", ENDS)
def test_the_end_of_the_input(state: str, strict: bool) -> None:
    code, outcome = ENDS[state]
    for rest in (b"", b"event: response.comp"):
        receiver, events = wire.receive(wire.numbered(*PREFIX[state]) + rest, strict=strict)
        assert common.codes(events) == ([code] if code else [])
        assert receiver.outcome == outcome


@pytest.mark.parametrize("state", ENDS)
def test_the_end_mark_of_another_protocol(state: str) -> None:
    code = "stray_done" if state in ("IDLE", "OPEN") else "trailing_done"
    receiver, events = wire.receive(wire.numbered(*PREFIX[state]) + wire.DONE)
    assert common.codes(events)[0] == code
    assert receiver.outcome == ENDS[state][1]


def test_what_would_have_been_legal() -> None:
    receiver = in_state("OPEN", strict=False)
    assert receiver.legal() == (
        *("response.queued", "response.in_progress", "response.output_item.added", "response.*"),
        *("response.completed", "response.incomplete", "response.failed", "keepalive", "error"),
    )
    receiver.receive_data(wire.numbered(EVENTS["arguments of 0"], start=3))
    violation = next(receiver)
    assert isinstance(violation, Violation)
    assert (violation.key, violation.state and violation.state.name) == (0, "MESSAGE")
    assert violation.legal[:2] == ("response.content_part.added", "response.output_text.delta")
    assert "response.output_item.done" in violation.legal


def reported(*frames: bytes, **options: Any) -> list[str]:
    return common.codes(wire.receive(wire.numbered(*frames), **options)[1])


def item(kind: str, *frames: bytes) -> tuple[bytes, ...]:
    return (wire.CREATED, wire.added(0, kind), *frames, wire.done(0, kind), wire.COMPLETED)


def arguments(*steps: str) -> list[bytes]:
    values: dict[str, dict[str, Any]] = {"delta": {"delta": "{"}, "done": {"arguments": "{}"}}
    kind = "function_call_arguments"
    return [wire.sub(f"{kind}.{step}", item_id="function_call_1", **values[step]) for step in steps]


SLOTS: list[tuple[list[str], list[str]]] = [
    ([], []),
    (["delta", "delta", "done"], []),
    (["done"], []),
    (["delta"], []),
    (["done", "delta"], ["delta_after_done"]),
    (["done", "done"], ["duplicate_done"]),
]


@pytest.mark.parametrize(("steps", "codes"), SLOTS)
def test_what_a_tool_is_called_with(steps: list[str], codes: list[str]) -> None:
    assert reported(*item("function_call", *arguments(*steps))) == codes


def test_what_would_have_been_legal_in_a_slot_is_named_as_on_the_wire() -> None:
    _, events = wire.receive(wire.numbered(*item("function_call", *arguments("done", "delta"))))
    (violation,) = [event for event in events if isinstance(event, Violation)]
    assert violation.message.startswith(
        "response.function_call_arguments.delta while the slot (0,) is DONE"
    )
    assert violation.legal == ("response.output_item.done",)


def command(step: str, index: int = 0) -> bytes:
    value = {"delta": "l"} if step == "delta" else {"command": "ls"}
    return wire.event(
        f"response.shell_call_command.{step}", output_index=0, command_index=index, **value
    )


def test_commands_of_a_shell_have_no_item_id() -> None:
    steps = [command("added"), command("delta"), command("done")]
    more = [command("added", 1), command("done", 1)]
    assert reported(*item("shell_call", *steps, *more), strict=True) == []
    again = [*steps, command("added"), command("added")]
    assert reported(*item("shell_call", *again)) == ["duplicate_command_added"] * 2


def status(kind: str, *steps: str) -> list[bytes]:
    return [wire.sub(f"{kind}.{step}", item_id=f"{kind}_1") for step in steps]


STATUSES: list[tuple[str, list[str], list[str]]] = [
    ("web_search_call", ["in_progress", "searching", "completed"], []),
    ("web_search_call", ["searching"], []),
    ("web_search_call", ["in_progress", "in_progress", "searching", "searching", "completed"], []),
    ("web_search_call", ["searching", "in_progress", "completed"], ["status_goes_back"]),
    ("web_search_call", ["completed", "searching"], ["status_after_end"]),
    ("file_search_call", ["in_progress", "searching", "completed", "completed"], ["status_after_end"]),
    ("code_interpreter_call", ["in_progress", "interpreting", "completed"], []),
    ("image_generation_call", ["in_progress", "generating"], []),
    ("mcp_call", ["in_progress", "in_progress", "failed"], []),
    ("mcp_list_tools", ["in_progress", "failed"], []),
    ("mcp_list_tools", ["failed", "in_progress"], ["status_after_end"]),
    ("compaction", ["compacting", "compacting"], []),
]


@pytest.mark.parametrize(("kind", "steps", "codes"), STATUSES)
def test_how_far_a_tool_has_come(kind: str, steps: list[str], codes: list[str]) -> None:
    assert reported(*item(kind, *status(kind, *steps))) == codes


def test_status_has_the_last_word_of_the_type() -> None:
    _, events = wire.receive(wire.numbered(*item("mcp_call", *status("mcp_call", "in_progress"))))
    assert [event.status for event in events if hasattr(event, "status")] == ["in_progress"]


PART_1: dict[str, Any] = {"content_index": 0, "part": wire.PART}
PARTS: list[tuple[list[bytes], list[str]]] = [
    ([wire.PART_ADDED, wire.TEXT_DONE, wire.PART_DONE], []),
    ([wire.PART_ADDED, EVENTS["annotation"], wire.TEXT_DONE, wire.PART_DONE], []),
    ([wire.PART_ADDED, wire.TEXT_DONE, wire.text("a"), wire.PART_DONE], ["delta_after_text_done"]),
    (
        [wire.PART_ADDED, wire.TEXT_DONE, EVENTS["annotation"], wire.PART_DONE],
        ["annotation_after_text_done"],
    ),
    ([wire.PART_ADDED, wire.TEXT_DONE, wire.TEXT_DONE, wire.PART_DONE], ["duplicate_text_done"]),
    ([wire.PART_ADDED, wire.TEXT_DONE], ["part_left_open"]),
    ([wire.PART_ADDED, wire.text("a"), wire.PART_DONE], ["text_done_missing"]),
    ([wire.PART_ADDED, wire.TEXT_DONE, wire.PART_DONE, wire.text("a")], ["event_after_part_done"]),
    ([wire.sub("reasoning_part.added", **PART_1)], ["event_item_type_mismatch", "part_left_open"]),
]


@pytest.mark.parametrize(("frames", "codes"), PARTS)
def test_parts_of_a_message(frames: list[bytes], codes: list[str]) -> None:
    assert reported(*item("message", *frames)) == codes


def summary(kind: str, **members: Any) -> bytes:
    return wire.sub(f"reasoning_summary_{kind}", item_id="reasoning_1", summary_index=0, **members)


SUMMARY = [
    summary("part.added", part={"type": "summary_text", "text": ""}),
    summary("text.delta", delta="h"),
    summary("text.delta", delta="m"),
    summary("text.done", text="hm"),
    summary("part.done", part={"type": "summary_text", "text": "hm"}),
]


def test_parts_of_a_summary() -> None:
    assert reported(*item("reasoning", *SUMMARY), strict=True) == []
    # Seen from Ollama.
    assert reported(*item("reasoning", *SUMMARY[1:])) == ["delta_before_part_added"]


def test_reasoning_in_the_names_of_vllm() -> None:
    part: dict[str, Any] = {
        "content_index": 0,
        "item_id": "reasoning_1",
        "part": {"type": "reasoning_text", "text": ""},
    }
    frames = [
        wire.sub("reasoning_part.added", **part),
        wire.sub("reasoning_text.delta", item_id="reasoning_1", content_index=0, delta="h"),
        wire.sub("reasoning_text.done", item_id="reasoning_1", content_index=0, text="h"),
        wire.sub("reasoning_part.done", **part),
    ]
    assert reported(*item("reasoning", *frames)) == ["nonstandard_event", "nonstandard_event"]


def test_what_comes_for_an_item_that_is_done() -> None:
    late = [wire.text("a"), wire.text("b", part=7), wire.done(), wire.added()]
    assert reported(*item("message")[:-1], *late, wire.done(), wire.COMPLETED) == [
        *("sub_event_after_item_done", "sub_event_after_item_done"),
        *("duplicate_item_done", "duplicate_item_added"),
    ]


def test_several_items_may_be_open_and_end_in_any_order() -> None:
    # Seen from xAI.
    added = [wire.added(index, "function_call") for index in range(3)]
    done = [wire.done(index, "function_call") for index in (1, 0, 2)]
    assert reported(wire.CREATED, *added, *done, wire.COMPLETED, strict=True) == []


def test_listings_of_tools_need_no_end() -> None:
    # Seen from OpenAI.
    frames = [wire.added(index, "mcp_list_tools") for index in range(3)]
    assert reported(wire.CREATED, *frames, wire.COMPLETED, strict=True) == []


def test_items_of_the_future() -> None:
    text = wire.text("a")
    frames = [wire.added(0, "new_call"), wire.PART_ADDED, text, wire.event("response.new_call.started")]
    end = [wire.TEXT_DONE, wire.PART_DONE, wire.done(0, "new_call"), wire.COMPLETED]
    frames = [frame.replace(b"message_1", b"new_call_1") for frame in [*frames, *end]]
    assert reported(wire.CREATED, *frames, strict=True) == []


@pytest.mark.parametrize("number", [None, "7", True])
def test_an_event_of_the_future_without_a_number_is_none_that_is_lost(number: Any) -> None:
    future = wire.event("response.new_thing", sequence_number=number)
    stream = wire.numbered(wire.CREATED) + future + wire.numbered(wire.COMPLETED, start=1)
    assert common.codes(wire.receive(stream, strict=True)[1]) == []


def test_nothing_is_kept_behind_the_end() -> None:
    receiver, _ = wire.receive(wire.ANSWER.replace(b"response.output_item.done", b"response.new_thing"))
    memory = receiver._memory
    assert (memory.items, memory.parts) == ({}, {})


def test_ids_that_change_are_said_once() -> None:
    # Seen from GitHub Copilot: another id in every event.
    texts = [wire.text("a", item_id=f"msg_{number}") for number in range(4)]
    end = wire.event(
        "response.completed", response=wire.response("completed", id="r9", output=[wire.item()])
    )
    frames = [*BEGIN, *texts, wire.TEXT_DONE, wire.PART_DONE, wire.done(id="z")]
    middle = wire.lifecycle("in_progress", id="r8")
    assert reported(*frames, middle, end) == ["item_id_changed", "response_id_changed"]
    receiver, events = wire.receive(wire.numbered(*frames, middle, end))
    assert sum(event.type == "response.output_text.delta" for event in events) == 4
    assert receiver.outcome == "completed"


def test_an_id_that_is_missing_is_no_other_id() -> None:
    frames = [*BEGIN, wire.text("a", item_id=None), wire.TEXT_DONE, wire.PART_DONE, wire.done(id=None)]
    assert reported(*frames, wire.COMPLETED) == []


@pytest.mark.parametrize("ids", [("resp_1", None), (None, "resp_1")])
def test_a_start_without_an_id_is_no_second_answer(ids: Any) -> None:
    starts = [wire.lifecycle("created", id=id_) for id_ in ids]
    codes = reported(*starts)
    assert "duplicate_created" in codes
    assert "second_response" not in codes


def test_created_may_come_late() -> None:
    # Seen from OmniRoute.
    frames = [wire.lifecycle("in_progress"), wire.CREATED, wire.added(), wire.done(), wire.COMPLETED]
    assert reported(*frames) == ["missing_created", "late_created"]


SEQUENCES: list[tuple[list[int | None], list[str]]] = [
    ([0, 1, 2, 3], []),
    ([1, 2, 3, 4], ["sequence_gap"]),
    ([0, 1, 5, 6], ["sequence_gap"]),
    ([0, 1, 1, 2], ["sequence_repeat"]),
    ([0, 3, 1, 4], ["sequence_gap", "sequence_repeat"]),
    ([None, None, None, None], ["missing_sequence_number"]),
    ([0, None, 1, 2], ["missing_sequence_number"]),
    ([None, None, 7, 8], ["missing_sequence_number", "late_sequence_number"]),
]


@pytest.mark.parametrize(("numbers", "codes"), SEQUENCES)
def test_sequence_numbers(numbers: list[int | None], codes: list[str]) -> None:
    frames = [wire.CREATED, wire.added(), wire.done(), wire.COMPLETED]
    stream = b"".join(
        frame if number is None else wire.numbered(frame, start=number)
        for frame, number in zip(frames, numbers, strict=True)
    )
    assert common.codes(wire.receive(stream)[1]) == codes


def test_a_repeated_number_is_not_counted_down() -> None:
    frames = [*BEGIN, *[wire.text("a")] * 3]
    stream = wire.numbered(*frames) + wire.numbered(wire.text("b"), start=2)
    stream += wire.numbered(wire.text("c"), start=6)
    assert common.codes(wire.receive(stream)[1]) == ["sequence_repeat", "truncated"]


@pytest.mark.parametrize("frame", [wire.KEEPALIVE, wire.ERROR])
def test_what_a_proxy_puts_in_needs_no_number(frame: bytes) -> None:
    stream = wire.numbered(wire.CREATED) + frame + wire.numbered(wire.lifecycle("failed"), start=1)
    assert common.codes(wire.receive(stream, strict=True)[1]) == []


def test_signs_of_life_before_the_beginning_count() -> None:
    # Seen from OpenAI.
    frames = [wire.KEEPALIVE] * 3 + [wire.CREATED, wire.KEEPALIVE, wire.COMPLETED]
    assert reported(*frames, strict=True) == []


@pytest.mark.parametrize(
    "begin",
    [
        wire.text("a"),
        wire.lifecycle("in_progress"),
        wire.TEXT_DONE,
        wire.PART_DONE,
        wire.done(),
        wire.added(3),
    ],
)
def test_a_stream_that_goes_on_in_the_middle(begin: bytes) -> None:
    stream = wire.numbered(begin, wire.COMPLETED, start=42)
    codes = common.codes(wire.receive(stream, starting_after=41)[1])
    assert codes in ([], ["item_left_open"])
    assert common.codes(wire.receive(stream)[1])[0] in ("missing_created", "sequence_gap")
    assert common.codes(wire.receive(stream, starting_after=39)[1])[0] == "sequence_gap"
    assert common.codes(wire.receive(stream, starting_after=42)[1])[0] == "sequence_repeat"


def test_a_stream_that_goes_on_knows_what_it_has_seen() -> None:
    frames = [
        wire.text("a"),
        wire.text("b"),
        wire.done(),
        wire.added(1),
        wire.added(4),
        wire.text("c", part=9),
    ]
    stream = wire.numbered(*frames, start=7)
    assert common.codes(wire.receive(stream, starting_after=6)[1]) == [
        *("part_left_open", "output_index_gap", "sub_event_after_item_done", "truncated"),
    ]


def test_there_is_an_end_to_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moves, "MAX_INDEX", 20)
    texts = [wire.text("a", index, part) for index in range(3) for part in range(7)]
    closed = [wire.done(0), wire.done(1), wire.added(3)]
    assert (
        reported(*BEGIN, *texts, *closed, *[wire.text("a", 3, part) for part in range(9)])[-1]
        == "truncated"
    )
    assert reported(*BEGIN, *texts, wire.text("a", 2, 8))[-1] == "too_many_parts"


CODES_FROM_BYTES = {
    *(word for row in EXPECTED.values() for cell in row.values() for word in cell.split()),
    *(code for _, codes in [*SLOTS, *PARTS, *SEQUENCES] for code in codes),
    *(code for _, _, codes in STATUSES for code in codes),
    *(code for code, _ in ENDS.values()),
    *("stray_done", "trailing_done", "duplicate_command_added", "nonstandard_event", "late_created"),
    *("sub_event_after_item_done", "duplicate_item_done", "too_many_parts"),
}


def test_every_code_of_the_tables_occurs() -> None:
    codes = {row[4] for table in RESPONSES.tables for row in table.as_rows()} - {""}
    assert codes <= CODES_FROM_BYTES
