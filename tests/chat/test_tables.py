"""Every cell of the chat tables, written down a second time; see `tests.tables`.

The law they are held against: a choice begins with its role and ends with its finish reason, the stream
ends with its mark, and what vendors do beside that is accepted with a code of its own.
"""

from __future__ import annotations

import enum

import pytest

from sse_machines import CHAT
from sse_machines._machine import Table
from sse_machines.chat import events, grammar
from tests import tables

STREAM = """
symbol                              | IDLE | STREAMING | FINISHED | DONE | ERRORED | ENDED
chat.completion.chunk               | STREAMING | STREAMING | STREAMING | -event_after_done | -event_after_error | !
chat.completion.chunk[all finished] | FINISHED | FINISHED | FINISHED | -event_after_done | -event_after_error | !
chat.completion.chunk[annotation]   | IDLE | STREAMING | FINISHED | -event_after_done | -event_after_error | !
error                               | ERRORED | ERRORED | ERRORED | -event_after_done | -event_after_error | !
unknown                             | IDLE | STREAMING | FINISHED | -event_after_done | -event_after_error | !
chat.completion.chunk[usage]        | ~STREAMING usage_before_content | STREAMING | FINISHED | -event_after_done | -event_after_error | !
[DONE]                              | ~DONE empty_stream | ~DONE done_without_finish_reason | DONE | -duplicate_done | ERRORED | !
eof                                 | !eof_before_first_chunk | !truncated | ~ENDED missing_done | DONE | ERRORED | !
eof[inside an event]                | !eof_before_first_chunk | !truncated | !truncated | DONE | ERRORED | !
"""

CHOICE = """
symbol                          | ABSENT | ANNOUNCED | OPEN | REPEATING | FINISHED
delta[role]                     | OPEN | OPEN | ~REPEATING role_repeated | .REPEATING | ~FINISHED role_repeated
delta[role and content]         | OPEN | OPEN | ~REPEATING role_repeated | .REPEATING | ~FINISHED delta_after_finish
delta[role and audio]           | OPEN | OPEN | OPEN | REPEATING | ~FINISHED delta_after_finish
finish_reason[role]             | FINISHED | FINISHED | ~FINISHED role_repeated | .FINISHED | ~FINISHED second_finish_reason
finish_reason[role and content] | FINISHED | FINISHED | ~FINISHED role_repeated | .FINISHED | ~FINISHED delta_after_finish
delta[absent]                   | ANNOUNCED | ANNOUNCED | OPEN | REPEATING | FINISHED
finish_reason                   | ~FINISHED role_missing | FINISHED | FINISHED | FINISHED | ~FINISHED second_finish_reason
finish_reason[content]          | ~FINISHED role_missing | FINISHED | FINISHED | FINISHED | ~FINISHED delta_after_finish
delta[audio.expires_at]         | ~FINISHED role_missing | FINISHED | FINISHED | FINISHED | FINISHED
delta                           | ~OPEN role_missing | OPEN | OPEN | REPEATING | ~FINISHED delta_after_finish
delta[empty]                    | ~ANNOUNCED role_missing | ANNOUNCED | OPEN | REPEATING | FINISHED
finish_reason[delta absent]     | ~FINISHED role_missing | ~FINISHED delta_missing | ~FINISHED delta_missing | ~FINISHED delta_missing | ~FINISHED second_finish_reason
"""

CALL = """
symbol                               | ABSENT | OPEN | UNINDEXED | CLOSED
tool_calls[new]                      | OPEN | ! | ! | !
tool_calls                           | ! | OPEN | UNINDEXED | OPEN
tool_calls[another call]             | ! | CLOSED | CLOSED | CLOSED
finish_reason                        | ! | CLOSED | CLOSED | CLOSED
tool_calls[new, no index]            | ~UNINDEXED tool_index_missing | ! | ! | !
tool_calls[new, bad index]           | ~UNINDEXED tool_index_invalid | ! | ! | !
tool_calls[new, index in use]        | ~OPEN tool_index_reused | ! | ! | !
tool_calls[new, neither id nor name] | ~OPEN tool_call_without_start | ! | ! | !
tool_calls[new, no id]               | ~OPEN tool_id_missing | ! | ! | !
tool_calls[new, index gap]           | ~OPEN tool_index_gap | ! | ! | !
tool_calls[too many]                 | !too_many_tool_calls | ! | ! | !
tool_calls[no index]                 | ! | ~UNINDEXED tool_index_missing | .UNINDEXED | ~UNINDEXED tool_index_missing
tool_calls[bad index]                | ! | ~UNINDEXED tool_index_invalid | ~UNINDEXED tool_index_invalid | ~UNINDEXED tool_index_invalid
"""

ENVELOPE = """
symbol        | STEADY | REPORTED
missing       | ~REPORTED missing_member | .REPORTED
changed       | ~REPORTED id_changed | .REPORTED
another value | ~REPORTED unexpected_object | .REPORTED
"""

TABLES = [
    (grammar.STREAM, STREAM),
    (grammar.CHOICE, CHOICE),
    (grammar.CALL, CALL),
    (grammar.ENVELOPE, ENVELOPE),
]
IDS = [table.name for table, _ in TABLES]


@pytest.mark.parametrize(("table", "grid"), TABLES, ids=IDS)
def test_every_cell(table: Table, grid: str) -> None:
    tables.check_every_cell(table, grid)


@pytest.mark.parametrize("table", CHAT.tables, ids=IDS)
def test_the_shape(table: Table) -> None:
    tables.check_the_shape(table)


@pytest.mark.parametrize("table", CHAT.tables, ids=IDS)
def test_every_state_can_be_reached(table: Table) -> None:
    assert tables.reachable(table, table.first.state) == set(table.states)


@pytest.mark.parametrize(
    ("table", "ends"),
    [
        (grammar.STREAM, set(CHAT.outcomes)),
        (grammar.CHOICE, {grammar.ChoiceState.FINISHED}),
        (grammar.CALL, {grammar.Call.CLOSED}),
    ],
    ids=IDS[:3],
)
def test_every_state_can_end(table: Table, ends: set[enum.Enum]) -> None:
    assert all(tables.reachable(table, state) & ends for state in table.states)


def test_the_symbols_of_the_stream_are_the_events() -> None:
    names = {symbol.partition("[")[0] or symbol for symbol in grammar.STREAM.symbols}
    assert names == {*events.EVENT_TYPES, "unknown", "eof"}
