"""Every cell of the Messages tables, written down a second time by hand; see `tests.tables`."""

from __future__ import annotations

import enum

import pytest

from sse_machines import MESSAGES
from sse_machines._machine import Table
from sse_machines.messages import events, grammar
from tests import tables

STREAM = """
symbol                          | IDLE | BETWEEN | PREFILLED | IN_BLOCK | UNDECIDED | TAIL | STOPPED | ERRORED | ENDED
message_start                   | BETWEEN | ~BETWEEN late_message_start | ~PREFILLED late_message_start | ~IN_BLOCK late_message_start | ~UNDECIDED late_message_start | ~TAIL late_message_start | -event_after_stop | -event_after_error | !
message_start[prefilled]        | PREFILLED | ~BETWEEN late_message_start | ~PREFILLED late_message_start | ~IN_BLOCK late_message_start | ~UNDECIDED late_message_start | ~TAIL late_message_start | -event_after_stop | -event_after_error | !
message_start[same id]          | ! | -duplicate_message_start | -duplicate_message_start | -duplicate_message_start | -duplicate_message_start | -duplicate_message_start | -event_after_stop | -event_after_error | !
message_start[other id]         | ! | !spliced_message | !spliced_message | !spliced_message | !spliced_message | !spliced_message | -event_after_stop | -event_after_error | !
content_block_start             | ~IN_BLOCK event_before_message_start | IN_BLOCK | IN_BLOCK | ~IN_BLOCK interleaved_blocks | ~UNDECIDED block_after_message_delta | ~TAIL block_after_message_delta | -event_after_stop | -event_after_error | !
content_block_start[gap]        | ~IN_BLOCK event_before_message_start | ~IN_BLOCK block_index_gap | ~IN_BLOCK block_index_gap | ~IN_BLOCK interleaved_blocks | ~UNDECIDED block_after_message_delta | ~TAIL block_after_message_delta | -event_after_stop | -event_after_error | !
content_block_delta             | ~IN_BLOCK event_before_message_start | .IN_BLOCK | .IN_BLOCK | IN_BLOCK | ~UNDECIDED block_after_message_delta | ~TAIL block_after_message_delta | -event_after_stop | -event_after_error | !
content_block_stop              | ~IDLE event_before_message_start | .BETWEEN | .PREFILLED | BETWEEN | ~UNDECIDED block_after_message_delta | ~TAIL block_after_message_delta | -event_after_stop | -event_after_error | !
content_block_stop[others open] | ! | ! | ! | .IN_BLOCK | ~UNDECIDED block_after_message_delta | ~TAIL block_after_message_delta | -event_after_stop | -event_after_error | !
message_delta                   | ~TAIL event_before_message_start | TAIL | TAIL | .TAIL | TAIL | TAIL | -event_after_stop | -event_after_error | !
message_delta[no stop_reason]   | ~UNDECIDED event_before_message_start | UNDECIDED | UNDECIDED | .UNDECIDED | UNDECIDED | TAIL | -event_after_stop | -event_after_error | !
message_delta[max_tokens]       | ! | ! | ! | TAIL | .TAIL | .TAIL | -event_after_stop | -event_after_error | !
message_stop                    | !event_before_message_start | ~STOPPED missing_message_delta | STOPPED | ~STOPPED missing_message_delta | STOPPED | STOPPED | -event_after_stop | -event_after_error | !
ping                            | IDLE | BETWEEN | PREFILLED | IN_BLOCK | UNDECIDED | TAIL | -event_after_stop | -event_after_error | !
error                           | ERRORED | ERRORED | ERRORED | ERRORED | ERRORED | ERRORED | -event_after_stop | -event_after_error | !
unknown                         | IDLE | BETWEEN | PREFILLED | IN_BLOCK | UNDECIDED | TAIL | -event_after_stop | -event_after_error | !
[DONE]                          | -stray_done | -stray_done | -stray_done | -stray_done | -stray_done | -stray_done | -trailing_done | -trailing_done | !
eof                             | !eof_before_message_start | !truncated | ~ENDED missing_message_stop | !truncated | !truncated | ~ENDED missing_message_stop | STOPPED | ERRORED | !
eof[inside an event]            | !eof_before_message_start | !truncated | !truncated | !truncated | !truncated | !truncated | STOPPED | ERRORED | !
"""

BLOCK = """
symbol                                 | ABSENT | TEXT | THINKING | TOOL | COMPACTION | WHOLE | OPAQUE | CLOSED
text                                   | TEXT | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused
thinking                               | THINKING | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused
tool_use                               | TOOL | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused
server_tool_use                        | TOOL | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused
mcp_tool_use                           | TOOL | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused
compaction                             | COMPACTION | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused
redacted_thinking                      | WHOLE | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused
web_search_tool_result                 | WHOLE | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused
web_fetch_tool_result                  | WHOLE | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused
code_execution_tool_result             | WHOLE | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused
bash_code_execution_tool_result        | WHOLE | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused
text_editor_code_execution_tool_result | WHOLE | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused
tool_search_tool_result                | WHOLE | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused
mcp_tool_result                        | WHOLE | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused
mcp_tool_listing                       | WHOLE | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused
advisor_tool_result                    | WHOLE | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused
container_upload                       | WHOLE | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused
fallback                               | WHOLE | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused
unknown_block                          | OPAQUE | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused | !block_index_reused
text_delta                             | ~TEXT delta_without_start | TEXT | -delta_type_mismatch | -delta_type_mismatch | -delta_type_mismatch | -delta_type_mismatch | OPAQUE | -delta_for_closed_block
citations_delta                        | ~TEXT delta_without_start | TEXT | -delta_type_mismatch | -delta_type_mismatch | -delta_type_mismatch | -delta_type_mismatch | OPAQUE | -delta_for_closed_block
thinking_delta                         | ~THINKING delta_without_start | -delta_type_mismatch | THINKING | -delta_type_mismatch | -delta_type_mismatch | -delta_type_mismatch | OPAQUE | -delta_for_closed_block
signature_delta                        | ~THINKING delta_without_start | -delta_type_mismatch | THINKING | -delta_type_mismatch | -delta_type_mismatch | -delta_type_mismatch | OPAQUE | -delta_for_closed_block
input_json_delta                       | ~TOOL delta_without_start | -delta_type_mismatch | -delta_type_mismatch | TOOL | -delta_type_mismatch | -delta_type_mismatch | OPAQUE | -delta_for_closed_block
compaction_delta                       | ~COMPACTION delta_without_start | -delta_type_mismatch | -delta_type_mismatch | -delta_type_mismatch | COMPACTION | -delta_type_mismatch | OPAQUE | -delta_for_closed_block
unknown_delta                          | ~OPAQUE delta_without_start | TEXT | THINKING | TOOL | COMPACTION | WHOLE | OPAQUE | -delta_for_closed_block
content_block_stop                     | -stop_without_start | CLOSED | CLOSED | CLOSED | CLOSED | CLOSED | CLOSED | -stop_for_closed_block
message_delta                          | ! | ~CLOSED block_left_open | ~CLOSED block_left_open | ~CLOSED block_left_open | ~CLOSED block_left_open | ~CLOSED block_left_open | ~CLOSED block_left_open | !
message_delta[no stop_reason]          | ! | ~CLOSED block_left_open | ~CLOSED block_left_open | ~CLOSED block_left_open | ~CLOSED block_left_open | ~CLOSED block_left_open | ~CLOSED block_left_open | !
message_delta[max_tokens]              | ! | ~CLOSED block_left_open | ~CLOSED block_left_open | CLOSED | ~CLOSED block_left_open | ~CLOSED block_left_open | ~CLOSED block_left_open | !
message_stop                           | ! | ~CLOSED block_left_open | ~CLOSED block_left_open | ~CLOSED block_left_open | ~CLOSED block_left_open | ~CLOSED block_left_open | ~CLOSED block_left_open | !
"""


TABLES = [(grammar.STREAM, STREAM), (grammar.BLOCK, BLOCK)]
IDS = [table.name for table, _ in TABLES]


@pytest.mark.parametrize(("table", "grid"), TABLES, ids=IDS)
def test_every_cell(table: Table, grid: str) -> None:
    tables.check_every_cell(table, grid)


@pytest.mark.parametrize("table", MESSAGES.tables, ids=IDS)
def test_the_shape(table: Table) -> None:
    tables.check_the_shape(table)


@pytest.mark.parametrize("table", MESSAGES.tables, ids=IDS)
def test_every_state_can_be_reached(table: Table) -> None:
    assert tables.reachable(table, table.first.state) == set(table.states)


@pytest.mark.parametrize(
    ("table", "ends"),
    [(grammar.STREAM, set(MESSAGES.outcomes)), (grammar.BLOCK, {grammar.CLOSED})],
    ids=IDS,
)
def test_every_state_can_end(table: Table, ends: set[enum.Enum]) -> None:
    assert all(tables.reachable(table, state) & ends for state in table.states)


def test_the_symbols_of_the_stream_are_the_events() -> None:
    names = {symbol.partition("[")[0] for symbol in grammar.STREAM.symbols}
    assert names == {*events.EVENT_TYPES, "unknown", "eof", ""}


def test_every_published_block_and_delta_type_is_there() -> None:
    assert len(grammar.BLOCK_STATES) == 18 + 1
    assert len(grammar.DELTA_STATES) == 6 + 1
    assert grammar.BLOCK_STATES.keys() | grammar.DELTA_STATES.keys() < set(grammar.BLOCK.symbols)
