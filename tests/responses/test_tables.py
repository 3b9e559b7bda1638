"""Every cell of the Responses tables, written down a second time; see `tests.tables`.

The table of items has some eighty symbols in nineteen states. It is written as what belongs to which
type of item, and as the rules for all the rest.
"""

from __future__ import annotations

import enum

import pytest

from sse_machines import RESPONSES
from sse_machines._machine import Table
from sse_machines.responses import Item, grammar
from sse_machines.responses.events import PUBLISHED, UNPUBLISHED
from sse_machines.responses.roles import ItemEvent, OutputItemEvent
from tests import tables

STREAM = """
symbol                          | IDLE | RESUMED | OPEN | ERRORED | COMPLETED | INCOMPLETE | FAILED | CANCELLED
response.created                | OPEN | OPEN | ~OPEN late_created | -event_after_error | -event_after_terminal | -event_after_terminal | -event_after_terminal | -event_after_terminal
keepalive                       | IDLE | RESUMED | OPEN | ERRORED | -event_after_terminal | -event_after_terminal | -event_after_terminal | -event_after_terminal
error                           | ERRORED | ERRORED | ERRORED | -event_after_error | -event_after_terminal | -event_after_terminal | -event_after_terminal | -event_after_terminal
unknown                         | IDLE | RESUMED | OPEN | -event_after_error | -event_after_terminal | -event_after_terminal | -event_after_terminal | -event_after_terminal
response.queued                 | ~OPEN missing_created | OPEN | OPEN | -event_after_error | -event_after_terminal | -event_after_terminal | -event_after_terminal | -event_after_terminal
response.in_progress            | ~OPEN missing_created | OPEN | OPEN | -event_after_error | -event_after_terminal | -event_after_terminal | -event_after_terminal | -event_after_terminal
response.output_item.added      | ~OPEN missing_created | OPEN | OPEN | -event_after_error | -event_after_terminal | -event_after_terminal | -event_after_terminal | -event_after_terminal
response.*                      | ~OPEN missing_created | OPEN | OPEN | -event_after_error | -event_after_terminal | -event_after_terminal | -event_after_terminal | -event_after_terminal
response.completed              | ~COMPLETED missing_created | COMPLETED | COMPLETED | -event_after_error | -event_after_terminal | -event_after_terminal | -event_after_terminal | -event_after_terminal
response.incomplete             | ~INCOMPLETE missing_created | INCOMPLETE | INCOMPLETE | -event_after_error | -event_after_terminal | -event_after_terminal | -event_after_terminal | -event_after_terminal
response.failed                 | ~FAILED failed_before_created | FAILED | FAILED | FAILED | -event_after_terminal | -event_after_terminal | -event_after_terminal | -event_after_terminal
eof                             | !eof_before_first_event | !eof_before_first_event | !truncated | ERRORED | COMPLETED | INCOMPLETE | FAILED | CANCELLED
eof[inside an event]            | !eof_before_first_event | !eof_before_first_event | !truncated | ERRORED | COMPLETED | INCOMPLETE | FAILED | CANCELLED
response.output_item.added[gap] | ~OPEN missing_created | ~OPEN output_index_gap | ~OPEN output_index_gap | -event_after_error | -event_after_terminal | -event_after_terminal | -event_after_terminal | -event_after_terminal
response.completed[no output]   | ~COMPLETED missing_created | ~COMPLETED terminal_output_empty | ~COMPLETED terminal_output_empty | -event_after_error | -event_after_terminal | -event_after_terminal | -event_after_terminal | -event_after_terminal
response.cancelled              | ~CANCELLED nonstandard_terminal | ~CANCELLED nonstandard_terminal | ~CANCELLED nonstandard_terminal | -event_after_error | -event_after_terminal | -event_after_terminal | -event_after_terminal | -event_after_terminal
response.done                   | ~COMPLETED nonstandard_terminal | ~COMPLETED nonstandard_terminal | ~COMPLETED nonstandard_terminal | -event_after_error | -event_after_terminal | -event_after_terminal | -event_after_terminal | -event_after_terminal
response.*[too many parts]      | !too_many_parts | !too_many_parts | !too_many_parts | -event_after_error | -event_after_terminal | -event_after_terminal | -event_after_terminal | -event_after_terminal
[DONE]                          | -stray_done | -stray_done | -stray_done | -trailing_done | -trailing_done | -trailing_done | -trailing_done | -trailing_done
response.created[same id]       | ! | ! | -duplicate_created | -event_after_error | -event_after_terminal | -event_after_terminal | -event_after_terminal | -event_after_terminal
response.created[another id]    | ! | ! | !second_response | -event_after_error | -event_after_terminal | -event_after_terminal | -event_after_terminal | -event_after_terminal
"""

CONTENT = """
symbol                                | ABSENT | UNSEEN | OPEN | TEXT_DONE | DONE | CLOSED
response.content_part.added           | OPEN | OPEN | ~OPEN duplicate_part_added | ~OPEN duplicate_part_added | ~DONE event_after_part_done | !
response.reasoning_part.added         | OPEN | OPEN | ~OPEN duplicate_part_added | ~OPEN duplicate_part_added | ~DONE event_after_part_done | !
response.output_text.delta            | ~OPEN delta_before_part_added | OPEN | OPEN | ~TEXT_DONE delta_after_text_done | ~DONE event_after_part_done | !
response.refusal.delta                | ~OPEN delta_before_part_added | OPEN | OPEN | ~TEXT_DONE delta_after_text_done | ~DONE event_after_part_done | !
response.reasoning_text.delta         | ~OPEN delta_before_part_added | OPEN | OPEN | ~TEXT_DONE delta_after_text_done | ~DONE event_after_part_done | !
response.output_text.annotation.added | ~OPEN delta_before_part_added | OPEN | OPEN | ~TEXT_DONE annotation_after_text_done | ~DONE event_after_part_done | !
response.output_text.done             | ~TEXT_DONE text_done_before_part_added | TEXT_DONE | TEXT_DONE | ~TEXT_DONE duplicate_text_done | ~DONE event_after_part_done | !
response.refusal.done                 | ~TEXT_DONE text_done_before_part_added | TEXT_DONE | TEXT_DONE | ~TEXT_DONE duplicate_text_done | ~DONE event_after_part_done | !
response.reasoning_text.done          | ~TEXT_DONE text_done_before_part_added | TEXT_DONE | TEXT_DONE | ~TEXT_DONE duplicate_text_done | ~DONE event_after_part_done | !
response.content_part.done            | ~DONE part_done_before_added | DONE | ~DONE text_done_missing | DONE | ~DONE event_after_part_done | !
response.reasoning_part.done          | ~DONE part_done_before_added | DONE | ~DONE text_done_missing | DONE | ~DONE event_after_part_done | !
response.output_item.done             | ! | ! | ~CLOSED part_left_open | ~CLOSED part_left_open | CLOSED | !
"""

SUMMARY = """
symbol                                | ABSENT | UNSEEN | OPEN | TEXT_DONE | DONE | CLOSED
response.reasoning_summary_part.added | OPEN | OPEN | ~OPEN duplicate_part_added | ~OPEN duplicate_part_added | ~DONE event_after_part_done | !
response.reasoning_summary_text.delta | ~OPEN delta_before_part_added | OPEN | OPEN | ~TEXT_DONE delta_after_text_done | ~DONE event_after_part_done | !
response.reasoning_summary_text.done  | ~TEXT_DONE text_done_before_part_added | TEXT_DONE | TEXT_DONE | ~TEXT_DONE duplicate_text_done | ~DONE event_after_part_done | !
response.reasoning_summary_part.done  | ~DONE part_done_before_added | DONE | ~DONE text_done_missing | DONE | ~DONE event_after_part_done | !
response.output_item.done             | ! | ! | ~CLOSED part_left_open | ~CLOSED part_left_open | CLOSED | !
"""

SLOT = """
symbol                    | ABSENT | OPEN | DONE | CLOSED
.added                    | OPEN | ~OPEN duplicate_command_added | ~OPEN duplicate_command_added | !
.delta                    | OPEN | OPEN | ~DONE delta_after_done | !
.done                     | DONE | DONE | ~DONE duplicate_done | !
response.output_item.done | ! | CLOSED | CLOSED | !
"""

STATUS = """
symbol                    | ABSENT | STARTED | WORKING | ENDED | CLOSED
.in_progress              | STARTED | STARTED | ~WORKING status_goes_back | ~ENDED status_after_end | !
.searching                | WORKING | WORKING | WORKING | ~ENDED status_after_end | !
.generating               | WORKING | WORKING | WORKING | ~ENDED status_after_end | !
.interpreting             | WORKING | WORKING | WORKING | ~ENDED status_after_end | !
.completed                | ENDED | ENDED | ENDED | ~ENDED status_after_end | !
.failed                   | ENDED | ENDED | ENDED | ~ENDED status_after_end | !
response.output_item.done | ! | CLOSED | CLOSED | CLOSED | !
"""

SEQUENCE = """
symbol                    | FRESH | NUMBERED | UNNUMBERED
sequence_number           | NUMBERED | NUMBERED | ~NUMBERED late_sequence_number
sequence_number[absent]   | ~UNNUMBERED missing_sequence_number | ~NUMBERED missing_sequence_number | UNNUMBERED
sequence_number[gap]      | ~NUMBERED sequence_gap | ~NUMBERED sequence_gap | ~NUMBERED late_sequence_number
sequence_number[repeated] | ~NUMBERED sequence_repeat | ~NUMBERED sequence_repeat | ~NUMBERED late_sequence_number
"""

IDENTITY = """
symbol           | STEADY | REPORTED
id[changed]      | ~REPORTED response_id_changed | .REPORTED
item_id[changed] | ~REPORTED item_id_changed | .REPORTED
"""

TABLES = [
    (grammar.STREAM, STREAM),
    (grammar.CONTENT, CONTENT),
    (grammar.SUMMARY, SUMMARY),
    (grammar.SLOT, SLOT),
    (grammar.STATUS, STATUS),
    (grammar.SEQUENCE, SEQUENCE),
    (grammar.IDENTITY, IDENTITY),
]
IDS = [table.name for table, _ in TABLES]

OWN = {
    "MESSAGE": """
        content_part.added output_text.delta output_text.annotation.added output_text.done
        refusal.delta refusal.done content_part.done
    """,
    "REASONING": """
        reasoning_summary_part.added reasoning_summary_text.delta reasoning_summary_text.done
        reasoning_summary_part.done content_part.added reasoning_text.delta reasoning_text.done
        content_part.done
    """,
    "FUNCTION_CALL": "function_call_arguments.delta function_call_arguments.done",
    "CUSTOM_TOOL_CALL": "custom_tool_call_input.delta custom_tool_call_input.done",
    "MCP_CALL": """
        mcp_call.in_progress mcp_call.completed mcp_call.failed
        mcp_call_arguments.delta mcp_call_arguments.done
    """,
    "MCP_LIST_TOOLS": "mcp_list_tools.in_progress mcp_list_tools.completed mcp_list_tools.failed",
    "WEB_SEARCH_CALL": """
        web_search_call.in_progress web_search_call.searching web_search_call.completed
    """,
    "FILE_SEARCH_CALL": """
        file_search_call.in_progress file_search_call.searching file_search_call.completed
    """,
    "CODE_INTERPRETER_CALL": """
        code_interpreter_call.in_progress code_interpreter_call.interpreting
        code_interpreter_call.completed code_interpreter_call_code.delta code_interpreter_call_code.done
    """,
    "IMAGE_GENERATION_CALL": """
        image_generation_call.in_progress image_generation_call.generating
        image_generation_call.partial_image image_generation_call.completed
    """,
    "SHELL_CALL": "shell_call_command.added shell_call_command.delta shell_call_command.done",
    "SHELL_CALL_OUTPUT": "shell_call_output_content.delta shell_call_output_content.done",
    "APPLY_PATCH_CALL": """
        apply_patch_call_operation_diff.delta apply_patch_call_operation_diff.done
    """,
    "COMPACTION": "compaction.compacting",
    "WHOLE": "",
}
"""What belongs to an item of a type, between its first event and its last."""

TYPES = {
    **{state: state.lower() for state in OWN if state != "WHOLE"},
    "WHOLE": """
        function_call_output computer_call computer_call_output program program_output
        tool_search_call tool_search_output additional_tools local_shell_call local_shell_call_output
        apply_patch_call_output mcp_approval_request mcp_approval_response custom_tool_call_output
    """,
    "OPAQUE": "unknown_item",
}
"""The types of items that open in a state."""

VENDORS = ("reasoning_part.added", "reasoning_part.done")
ENDS = ("completed", "incomplete", "failed", "cancelled", "done")
ADDED = {f"output_item.added[{kind}]": state for state, kinds in TYPES.items() for kind in kinds.split()}
# An item that was never added is what its events belong to; some belong to several types.
BEGINS = {name: state for state, names in OWN.items() for name in names.split()}
BEGINS |= {"content_part.added": "OPAQUE", "content_part.done": "OPAQUE"}
BEGINS |= dict.fromkeys(VENDORS, "REASONING")


def cell(state: str, name: str) -> str:
    """What the table of items has to say."""
    if state == "DONE":
        return done_cell(name)
    if state in ("ABSENT", "UNSEEN"):
        return new_cell(state, name)
    return open_cell(state, name)


def new_cell(state: str, name: str) -> str:
    if name in ADDED:
        return ADDED[name]
    tolerated = state == "ABSENT"
    if name == "output_item.done":
        return "~DONE item_done_without_added" if tolerated else "DONE"
    if name in ENDS:
        return "!"
    if tolerated:
        return f"~{BEGINS[name]} sub_event_before_item_added"
    return f"~{BEGINS[name]} nonstandard_event" if name in VENDORS else BEGINS[name]


def open_cell(state: str, name: str) -> str:
    if name in ADDED:
        return f"~{ADDED[name]} duplicate_item_added"
    if name in ("completed", "done"):
        return "DONE" if state == "MCP_LIST_TOOLS" else "~DONE item_left_open"
    if name in ENDS or name == "output_item.done":
        return "DONE"
    if state == "OPAQUE" or name in OWN[state].split():
        return state
    if state == "REASONING" and name in VENDORS:
        return f"~{state} nonstandard_event"
    return f"~{state} event_item_type_mismatch"


def done_cell(name: str) -> str:
    if name in ADDED:
        return f"~{ADDED[name]} duplicate_item_added"
    if name == "output_item.done":
        return "~DONE duplicate_item_done"
    return "DONE" if name in ENDS else "~DONE sub_event_after_item_done"


def test_every_cell_of_the_items() -> None:
    names = [*ADDED, *BEGINS, "output_item.done", *ENDS]
    states = ["ABSENT", "UNSEEN", *OWN, "OPAQUE", "DONE"]
    expected = {(state, f"response.{name}"): cell(state, name) for state in states for name in names}
    actual = {
        (state.name, symbol): tables.written(grammar.ITEM, state, symbol)
        for state in grammar.ITEM.states
        for symbol in grammar.ITEM.symbols
    }
    assert actual == expected


@pytest.mark.parametrize(("table", "grid"), TABLES, ids=IDS)
def test_every_cell(table: Table, grid: str) -> None:
    tables.check_every_cell(table, grid)


@pytest.mark.parametrize("table", RESPONSES.tables, ids=lambda table: table.name)
def test_the_shape(table: Table) -> None:
    tables.check_the_shape(table)


@pytest.mark.parametrize("table", RESPONSES.tables, ids=lambda table: table.name)
def test_every_state_can_be_reached(table: Table) -> None:
    # A stream that resumes begins in states of its own.
    begins = [state for state in table.states if state.name in ("RESUMED", "UNSEEN")]
    reached = [tables.reachable(table, state) for state in [table.first.state, *begins]]
    assert set.union(*reached) == set(table.states)


@pytest.mark.parametrize(
    ("table", "ends"),
    [
        (grammar.STREAM, set(RESPONSES.outcomes)),
        (grammar.ITEM, {Item.DONE}),
        (grammar.CONTENT, {grammar.Part.CLOSED}),
        (grammar.SUMMARY, {grammar.Part.CLOSED}),
        (grammar.SLOT, {grammar.Slot.CLOSED}),
        (grammar.STATUS, {grammar.Progress.CLOSED}),
    ],
)
def test_every_state_can_end(table: Table, ends: set[enum.Enum]) -> None:
    assert all(tables.reachable(table, state) & ends for state in table.states)


def test_every_published_item_type_is_there() -> None:
    assert len(grammar.ITEM_STATES) == 28 + 1
    assert set(grammar.ITEM_STATES) == {kind for kinds in TYPES.values() for kind in kinds.split()}


def test_every_event_of_an_item_is_in_the_table_of_items() -> None:
    classes = [cls for cls in (*PUBLISHED, *UNPUBLISHED) if issubclass(cls, ItemEvent)]
    names = {cls.type for cls in classes if not issubclass(cls, OutputItemEvent)}
    assert names == {f"response.{name}" for name in BEGINS}
    assert len(PUBLISHED) == 59
