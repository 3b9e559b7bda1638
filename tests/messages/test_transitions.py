"""Every event in every state of a Messages stream, from bytes to where it leads.

The expectations are written by hand: the codes that are reported, and the state afterwards. ``x`` in
front of a code means that the event was dropped, ``!`` that reading ends there.
"""

from __future__ import annotations

import pytest

from sse_machines import MESSAGES, Event, Receiver
from tests import transitions, wire

OPEN_BLOCK = wire.block_start(0, text="")
PREFIX = {
    "IDLE": b"",
    "BETWEEN": wire.start() + OPEN_BLOCK + wire.block_stop(0),
    "PREFILLED": wire.start(stop_reason="tool_use"),
    "IN_BLOCK": wire.start() + OPEN_BLOCK,
    "UNDECIDED": wire.start() + wire.message_delta(None),
    "TAIL": wire.start() + wire.message_delta(),
    "STOPPED": wire.start() + OPEN_BLOCK + wire.block_stop(0) + wire.message_delta() + wire.STOP,
    "ERRORED": wire.start() + OPEN_BLOCK + wire.ERROR,
}
EVENTS = {
    "same start": wire.start(),
    "other start": wire.start(id="msg_2"),
    "text 0": OPEN_BLOCK,
    "text 1": wire.block_start(1, text=""),
    "text 7": wire.block_start(7, text=""),
    "delta 0": wire.text(0, "a"),
    "delta 9": wire.text(9, "a"),
    "misfit 0": wire.delta(0, "input_json_delta", partial_json="{"),
    "stop 0": wire.block_stop(0),
    "stop 9": wire.block_stop(9),
    "end_turn": wire.message_delta(),
    "no reason": wire.message_delta(None),
    "max_tokens": wire.message_delta("max_tokens"),
    "message_stop": wire.STOP,
    "ping": wire.PING,
    "error": wire.ERROR,
    "future": wire.FUTURE,
    "[DONE]": wire.DONE,
}

EARLY = "event_before_message_start"
LATE = "block_after_message_delta"
OLD = "delta_for_closed_block"
NEW = "delta_without_start"
AFTER = {"STOPPED": "x event_after_stop", "ERRORED": "x event_after_error"}
EXPECTED = {
    "IDLE": {
        "same start": "BETWEEN",
        "other start": "BETWEEN",
        "text 0": f"{EARLY} IN_BLOCK",
        "text 1": f"{EARLY} IN_BLOCK",
        "text 7": f"{EARLY} IN_BLOCK",
        "delta 0": f"{EARLY} {NEW} IN_BLOCK",
        "delta 9": f"{EARLY} {NEW} IN_BLOCK",
        "misfit 0": f"{EARLY} {NEW} IN_BLOCK",
        "stop 0": f"x {EARLY} stop_without_start IDLE",
        "stop 9": f"x {EARLY} stop_without_start IDLE",
        "end_turn": f"{EARLY} TAIL",
        "no reason": f"{EARLY} UNDECIDED",
        "max_tokens": f"{EARLY} TAIL",
        "message_stop": f"! {EARLY} IDLE",
        "ping": "IDLE",
        "error": "ERRORED",
        "future": "IDLE",
        "[DONE]": "x stray_done IDLE",
    },
    "BETWEEN": {
        "same start": "x duplicate_message_start BETWEEN",
        "other start": "! spliced_message BETWEEN",
        "text 0": "! block_index_reused BETWEEN",
        "text 1": "IN_BLOCK",
        "text 7": "block_index_gap IN_BLOCK",
        "delta 0": f"x {OLD} BETWEEN",
        "delta 9": f"{NEW} IN_BLOCK",
        "misfit 0": f"x {OLD} BETWEEN",
        "stop 0": "x stop_for_closed_block BETWEEN",
        "stop 9": "x stop_without_start BETWEEN",
        "end_turn": "TAIL",
        "no reason": "UNDECIDED",
        "max_tokens": "TAIL",
        "message_stop": "missing_message_delta STOPPED",
        "ping": "BETWEEN",
        "error": "ERRORED",
        "future": "BETWEEN",
        "[DONE]": "x stray_done BETWEEN",
    },
    "PREFILLED": {
        "same start": "x duplicate_message_start PREFILLED",
        "other start": "! spliced_message PREFILLED",
        "text 0": "IN_BLOCK",
        "text 1": "block_index_gap IN_BLOCK",
        "text 7": "block_index_gap IN_BLOCK",
        "delta 0": f"{NEW} IN_BLOCK",
        "delta 9": f"{NEW} IN_BLOCK",
        "misfit 0": f"{NEW} IN_BLOCK",
        "stop 0": "x stop_without_start PREFILLED",
        "stop 9": "x stop_without_start PREFILLED",
        "end_turn": "TAIL",
        "no reason": "UNDECIDED",
        "max_tokens": "TAIL",
        "message_stop": "STOPPED",
        "ping": "PREFILLED",
        "error": "ERRORED",
        "future": "PREFILLED",
        "[DONE]": "x stray_done PREFILLED",
    },
    "IN_BLOCK": {
        "same start": "x duplicate_message_start IN_BLOCK",
        "other start": "! spliced_message IN_BLOCK",
        "text 0": "! block_index_reused IN_BLOCK",
        "text 1": "interleaved_blocks IN_BLOCK",
        "text 7": "interleaved_blocks IN_BLOCK",
        "delta 0": "IN_BLOCK",
        "delta 9": f"{NEW} IN_BLOCK",
        "misfit 0": "x delta_type_mismatch IN_BLOCK",
        "stop 0": "BETWEEN",
        "stop 9": "x stop_without_start IN_BLOCK",
        "end_turn": "block_left_open TAIL",
        "no reason": "block_left_open UNDECIDED",
        "max_tokens": "block_left_open TAIL",
        "message_stop": "missing_message_delta block_left_open STOPPED",
        "ping": "IN_BLOCK",
        "error": "ERRORED",
        "future": "IN_BLOCK",
        "[DONE]": "x stray_done IN_BLOCK",
    },
    "UNDECIDED": {
        "same start": "x duplicate_message_start UNDECIDED",
        "other start": "! spliced_message UNDECIDED",
        "text 0": f"{LATE} UNDECIDED",
        "text 1": f"{LATE} UNDECIDED",
        "text 7": f"{LATE} UNDECIDED",
        "delta 0": f"{LATE} {NEW} UNDECIDED",
        "delta 9": f"{LATE} {NEW} UNDECIDED",
        "misfit 0": f"{LATE} {NEW} UNDECIDED",
        "stop 0": f"x {LATE} stop_without_start UNDECIDED",
        "stop 9": f"x {LATE} stop_without_start UNDECIDED",
        "end_turn": "TAIL",
        "no reason": "UNDECIDED",
        "max_tokens": "TAIL",
        "message_stop": "STOPPED",
        "ping": "UNDECIDED",
        "error": "ERRORED",
        "future": "UNDECIDED",
        "[DONE]": "x stray_done UNDECIDED",
    },
    "TAIL": {
        "same start": "x duplicate_message_start TAIL",
        "other start": "! spliced_message TAIL",
        "text 0": f"{LATE} TAIL",
        "text 1": f"{LATE} TAIL",
        "text 7": f"{LATE} TAIL",
        "delta 0": f"{LATE} {NEW} TAIL",
        "delta 9": f"{LATE} {NEW} TAIL",
        "misfit 0": f"{LATE} {NEW} TAIL",
        "stop 0": f"x {LATE} stop_without_start TAIL",
        "stop 9": f"x {LATE} stop_without_start TAIL",
        "end_turn": "TAIL",
        "no reason": "TAIL",
        "max_tokens": "TAIL",
        "message_stop": "STOPPED",
        "ping": "TAIL",
        "error": "ERRORED",
        "future": "TAIL",
        "[DONE]": "x stray_done TAIL",
    },
    "STOPPED": dict.fromkeys(EVENTS, f"{AFTER['STOPPED']} STOPPED")
    | {"[DONE]": "x trailing_done STOPPED"},
    "ERRORED": dict.fromkeys(EVENTS, f"{AFTER['ERRORED']} ERRORED")
    | {"[DONE]": "x trailing_done ERRORED"},
}
CELLS = [(state, event) for state, row in EXPECTED.items() for event in row]


def test_every_event_is_expected_in_every_state() -> None:
    assert len(CELLS) == len(PREFIX) * len(EVENTS)


def in_state(state: str, *, strict: bool) -> Receiver[Event]:
    return transitions.in_state(MESSAGES, PREFIX[state], state, strict=strict)


@pytest.mark.parametrize(("state", "event"), CELLS)
def test_lenient(state: str, event: str) -> None:
    transitions.check_lenient(in_state(state, strict=False), EVENTS[event], EXPECTED[state][event])


@pytest.mark.parametrize(("state", "event"), CELLS)
def test_strict_raises_the_first_thing_that_lenient_reports(state: str, event: str) -> None:
    transitions.check_strict(in_state(state, strict=True), EVENTS[event], EXPECTED[state][event])
