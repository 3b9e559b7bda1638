"""Anthropic Messages: which event may come when.

``message_start (block)* message_delta+ message_stop``, a block being ``content_block_start (delta)*
content_block_stop``, with ``ping`` anywhere; ``error`` ends it all. Two tables: the stream, and each
content block by its index. Everything that is legal or tolerated is a cell of these tables; the only
code turns what needs a memory (the id of the message, which index comes next) into symbols.

Symbols are wire names. A bracket behind one is the guard that the code found to hold:

* ``message_start[prefilled]`` has its stop reason already; ``[same id]`` and ``[other id]`` are not
  the first one of the stream
* ``content_block_start[gap]`` skips an index
* ``content_block_stop[others open]`` does not close the last open block
* ``message_delta[no stop_reason]`` leaves the reason open; ``[max_tokens]`` finds a block open and says
  that the model ran out of tokens
* ``eof[inside an event]`` cuts an event in two

Sources: Anthropic's "Streaming Messages"; what the first party is seen to send, each row with its
evidence; and public bug reports of other servers and gateways.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from enum import auto
from typing import Any

import attrs

from .._machine import Cell, Drop, Follow, Machine, Move, Moves, Refuse, Table, To, asks
from .._protocol import DONE_MARK, EOF, EOF_INSIDE, UNKNOWN, Done, Outcome, Unknown
from .._template import Model
from .events import (
    ContentBlockDelta,
    ContentBlockStart,
    ContentBlockStop,
    Error,
    MessageDelta,
    MessageStart,
    MessageStop,
    Ping,
)

Legal = dict[enum.Enum, dict[str, enum.Enum]]
Tolerated = dict[enum.Enum, dict[str, Cell]]


class State(enum.Enum):
    """Where a stream stands."""

    IDLE = auto()
    """Nothing has come."""
    BETWEEN = auto()
    """No content block is open."""
    PREFILLED = auto()
    """The message came with its stop reason and maybe its content."""
    IN_BLOCK = auto()
    """A content block is open."""
    UNDECIDED = auto()
    """A message_delta came, but no stop reason yet."""
    TAIL = auto()
    """The stop reason is known."""
    STOPPED = auto()
    """The message_stop came."""
    ERRORED = auto()
    """An error event came."""
    ENDED = auto()
    """The input ended after the stop reason, without message_stop."""


class Block(enum.Enum):
    """Where a content block stands; the open states say which deltas fit."""

    ABSENT = auto()
    TEXT = auto()
    THINKING = auto()
    TOOL = auto()
    COMPACTION = auto()
    WHOLE = auto()
    """A block that came complete and takes no deltas."""
    OPAQUE = auto()
    """A block of a type that is not known here: anything may fit."""
    CLOSED = auto()


IDLE, BETWEEN, PREFILLED, IN_BLOCK, UNDECIDED, TAIL, STOPPED, ERRORED, ENDED = State
ABSENT, TEXT, THINKING, TOOL, COMPACTION, WHOLE, OPAQUE, CLOSED = Block

START = "message_start"
START_PREFILLED = "message_start[prefilled]"
START_SAME = "message_start[same id]"
START_OTHER = "message_start[other id]"
BLOCK_START = "content_block_start"
BLOCK_START_GAP = "content_block_start[gap]"
BLOCK_DELTA = "content_block_delta"
BLOCK_STOP = "content_block_stop"
BLOCK_STOP_OTHERS = "content_block_stop[others open]"
DELTA = "message_delta"
DELTA_NO_REASON = "message_delta[no stop_reason]"
DELTA_MAX_TOKENS = "message_delta[max_tokens]"
STOP = "message_stop"
PING = "ping"
ERROR = "error"
UNKNOWN_BLOCK = "unknown_block"
UNKNOWN_DELTA = "unknown_delta"

BLOCK_STATES = {
    "text": TEXT,
    "thinking": THINKING,
    "tool_use": TOOL,
    "server_tool_use": TOOL,
    "mcp_tool_use": TOOL,
    "compaction": COMPACTION,
    "redacted_thinking": WHOLE,
    "web_search_tool_result": WHOLE,
    "web_fetch_tool_result": WHOLE,
    "code_execution_tool_result": WHOLE,
    "bash_code_execution_tool_result": WHOLE,
    "text_editor_code_execution_tool_result": WHOLE,
    "tool_search_tool_result": WHOLE,
    "mcp_tool_result": WHOLE,
    "mcp_tool_listing": WHOLE,
    "advisor_tool_result": WHOLE,
    "container_upload": WHOLE,
    "fallback": WHOLE,
    UNKNOWN_BLOCK: OPAQUE,
}
"""Block types, and the state each opens in."""

DELTA_STATES = {
    "text_delta": TEXT,
    "citations_delta": TEXT,
    "thinking_delta": THINKING,
    "signature_delta": THINKING,
    "input_json_delta": TOOL,
    "compaction_delta": COMPACTION,
    UNKNOWN_DELTA: OPAQUE,
}
"""Delta types, and the block state each belongs to."""

_OPEN = (TEXT, THINKING, TOOL, COMPACTION, WHOLE, OPAQUE)
_BLOCK_EVENTS = (BLOCK_START, BLOCK_START_GAP, BLOCK_DELTA, BLOCK_STOP, BLOCK_STOP_OTHERS)
_STARTS = (START, START_PREFILLED, START_SAME, START_OTHER)
_ALL = (
    *_STARTS,
    *_BLOCK_EVENTS,
    DELTA,
    DELTA_NO_REASON,
    DELTA_MAX_TOKENS,
    STOP,
    PING,
    ERROR,
    UNKNOWN,
)


def _anywhere(state: State) -> dict[str, enum.Enum]:
    """What may come in every state before the end."""
    return {PING: state, ERROR: ERRORED, UNKNOWN: state}


STREAM_LEGAL: Legal = {
    IDLE: {START: BETWEEN, START_PREFILLED: PREFILLED, **_anywhere(IDLE)},
    BETWEEN: {
        BLOCK_START: IN_BLOCK,
        DELTA: TAIL,
        DELTA_NO_REASON: UNDECIDED,
        **_anywhere(BETWEEN),
    },
    PREFILLED: {
        BLOCK_START: IN_BLOCK,
        DELTA: TAIL,
        DELTA_NO_REASON: UNDECIDED,
        # Seen from Anthropic: the follow-up answers of programmatic tool calling have no message_delta.
        STOP: STOPPED,
        **_anywhere(PREFILLED),
    },
    IN_BLOCK: {
        BLOCK_DELTA: IN_BLOCK,
        BLOCK_STOP: BETWEEN,
        # Seen from Anthropic: out of tokens inside a tool call, whose block is then left open.
        DELTA_MAX_TOKENS: TAIL,
        **_anywhere(IN_BLOCK),
    },
    UNDECIDED: {
        DELTA: TAIL,
        DELTA_NO_REASON: UNDECIDED,
        STOP: STOPPED,
        **_anywhere(UNDECIDED),
    },
    # The documentation says "one or more" message_delta events; recordings have exactly one.
    TAIL: {DELTA: TAIL, DELTA_NO_REASON: TAIL, STOP: STOPPED, **_anywhere(TAIL)},
    STOPPED: {EOF: STOPPED, EOF_INSIDE: STOPPED},
    ERRORED: {EOF: ERRORED, EOF_INSIDE: ERRORED},
    ENDED: {},
}

_SPLICED = Refuse("spliced_message", "a retrying gateway glued a second answer on: one of them is cut")
_DUPLICATE = Drop("duplicate_message_start", "gateways repeat the start they have sent already")
_STRAY_DONE = Drop("stray_done", "the end mark of another protocol, before the end of this one")
_TRAILING_DONE = Drop("trailing_done", "OpenRouter ends with the end mark of Chat Completions")
_NO_START = "a proxy lost the start, or sends it late"
_CUT = Refuse("truncated", "the input ended first")
_LATE_BLOCK = "a gateway that sends the stop reason before the last block is through"
_JUDGED_BY_BLOCK = "the block's own table reports it"


def _started(state: State) -> dict[str, Cell]:
    """Starts in the middle, and ends of the input, in a state where neither belongs."""
    return {
        START: To(state, "late_message_start", _NO_START),
        START_PREFILLED: To(state, "late_message_start", _NO_START),
        START_SAME: _DUPLICATE,
        START_OTHER: _SPLICED,
        DONE_MARK: _STRAY_DONE,
        EOF: _CUT,
        EOF_INSIDE: _CUT,
    }


def _after_reason(state: State) -> dict[str, Cell]:
    late = To(state, "block_after_message_delta", _LATE_BLOCK)
    return {
        **_started(state),
        **dict.fromkeys(_BLOCK_EVENTS, late),
        DELTA_MAX_TOKENS: Follow(TAIL, _JUDGED_BY_BLOCK),
    }


def _before_blocks(state: State) -> dict[str, Cell]:
    return {
        **_started(state),
        BLOCK_START_GAP: To(IN_BLOCK, "block_index_gap", "a proxy that dropped a block kept the count"),
        BLOCK_DELTA: Follow(IN_BLOCK, _JUDGED_BY_BLOCK),
        BLOCK_STOP: Follow(state, _JUDGED_BY_BLOCK),
        STOP: To(STOPPED, "missing_message_delta", "servers that send no stop reason"),
    }


_COMPLETE = To(ENDED, "missing_message_stop", "gateways that close right after the stop reason")

STREAM_TOLERATED: Tolerated = {
    IDLE: {
        BLOCK_START: To(IN_BLOCK, "event_before_message_start", _NO_START),
        BLOCK_START_GAP: To(IN_BLOCK, "event_before_message_start", _NO_START),
        BLOCK_DELTA: To(IN_BLOCK, "event_before_message_start", _NO_START),
        BLOCK_STOP: To(IDLE, "event_before_message_start", _NO_START),
        DELTA: To(TAIL, "event_before_message_start", _NO_START),
        DELTA_NO_REASON: To(UNDECIDED, "event_before_message_start", _NO_START),
        STOP: Refuse("event_before_message_start", "an end of nothing"),
        DONE_MARK: _STRAY_DONE,
        EOF: Refuse("eof_before_message_start", "the input ended before the answer began"),
        EOF_INSIDE: Refuse("eof_before_message_start", "the input ended inside its first event"),
    },
    BETWEEN: _before_blocks(BETWEEN),
    PREFILLED: {key: cell for key, cell in _before_blocks(PREFILLED).items() if key != STOP}
    | {EOF: _COMPLETE},
    IN_BLOCK: {
        **_started(IN_BLOCK),
        BLOCK_START: To(IN_BLOCK, "interleaved_blocks", "seen from agentgateway in front of Bedrock"),
        BLOCK_START_GAP: To(IN_BLOCK, "interleaved_blocks", "as with the index that was due"),
        BLOCK_STOP_OTHERS: Follow(IN_BLOCK, "the interleaving was reported when it began"),
        DELTA: Follow(TAIL, _JUDGED_BY_BLOCK),
        DELTA_NO_REASON: Follow(UNDECIDED, _JUDGED_BY_BLOCK),
        STOP: To(STOPPED, "missing_message_delta", "servers that send no stop reason"),
    },
    UNDECIDED: _after_reason(UNDECIDED),
    TAIL: {**_after_reason(TAIL), EOF: _COMPLETE},
    STOPPED: {
        **dict.fromkeys(_ALL, Drop("event_after_stop", "upstreams that go on after the end")),
        DONE_MARK: _TRAILING_DONE,
    },
    ERRORED: {
        **dict.fromkeys(_ALL, Drop("event_after_error", "servers that end a failed answer as if whole")),
        DONE_MARK: _TRAILING_DONE,
    },
}


def _fits(state: Block) -> dict[str, enum.Enum]:
    """The deltas of a block state; those that are not known here fit everywhere."""
    return {
        delta: state
        for delta, home in DELTA_STATES.items()
        if state is OPAQUE or home in (state, OPAQUE)
    }


BLOCK_LEGAL: Legal = {
    ABSENT: dict(BLOCK_STATES),
    **{state: {**_fits(state), BLOCK_STOP: CLOSED} for state in _OPEN},
    CLOSED: {},
}
BLOCK_LEGAL[TOOL][DELTA_MAX_TOKENS] = CLOSED

_REUSED = Refuse("block_index_reused", "two blocks under one index: a second answer, glued on")
_LEFT_OPEN = To(CLOSED, "block_left_open", "servers that close nothing at the end")
_MISFIT = Drop("delta_type_mismatch", "stray text in a tool call, seen from gateways; SDKs ignore it")

BLOCK_TOLERATED: Tolerated = {
    ABSENT: {
        **{
            delta: To(state, "delta_without_start", "gateways that abbreviate open a block by its delta")
            for delta, state in DELTA_STATES.items()
        },
        BLOCK_STOP: Drop("stop_without_start", "a stop for a block that never was"),
    },
    **{
        state: {
            **dict.fromkeys(BLOCK_STATES, _REUSED),
            **{delta: _MISFIT for delta in DELTA_STATES if delta not in BLOCK_LEGAL[state]},
            DELTA: _LEFT_OPEN,
            DELTA_NO_REASON: _LEFT_OPEN,
            **({} if state is TOOL else {DELTA_MAX_TOKENS: _LEFT_OPEN}),
            STOP: _LEFT_OPEN,
        }
        for state in _OPEN
    },
    CLOSED: {
        **dict.fromkeys(BLOCK_STATES, _REUSED),
        # A closed block stays closed: its signature covers what it held.
        **dict.fromkeys(DELTA_STATES, Drop("delta_for_closed_block", "deltas that come too late")),
        BLOCK_STOP: Drop("stop_for_closed_block", "a second stop"),
    },
}

STREAM = Table("stream", STREAM_LEGAL, STREAM_TOLERATED)
BLOCK = Table("block", BLOCK_LEGAL, BLOCK_TOLERATED, closed=CLOSED, rising=True)

OUTCOMES: dict[enum.Enum, Outcome] = {
    STOPPED: Outcome.COMPLETED,
    ERRORED: Outcome.FAILED,
    ENDED: Outcome.COMPLETED_NO_DONE,
}


@attrs.define
class Memory:
    """What a stream remembers beside its tables."""

    started: bool = False
    message_id: Any = None
    model: Model = attrs.field(factory=Model)


def _start_moves(event: MessageStart, machine: Machine, memory: Memory) -> tuple[Move, ...]:
    if memory.started:
        return _stream(START_SAME if event.message.get("id") == memory.message_id else START_OTHER)
    return _stream(START if event.message.get("stop_reason") is None else START_PREFILLED)


def _block_start_moves(event: ContentBlockStart, machine: Machine, memory: Memory) -> tuple[Move, ...]:
    index = event.index
    kind = event.content_block["type"]
    symbol = BLOCK_START_GAP if index > machine.next_key("block") else BLOCK_START
    return (
        ("stream", None, symbol),
        ("block", index, kind if kind in BLOCK_STATES else UNKNOWN_BLOCK),
    )


def _block_delta_moves(event: ContentBlockDelta, machine: Machine, memory: Memory) -> tuple[Move, ...]:
    kind = event.delta["type"]
    symbol = kind if kind in DELTA_STATES else UNKNOWN_DELTA
    return (("stream", None, BLOCK_DELTA), ("block", event.index, symbol))


def _block_stop_moves(event: ContentBlockStop, machine: Machine, memory: Memory) -> tuple[Move, ...]:
    open_blocks = machine.open_keys("block")
    others = len(open_blocks) - (event.index in open_blocks)
    symbol = BLOCK_STOP_OTHERS if others else BLOCK_STOP
    return (("stream", None, symbol), ("block", event.index, BLOCK_STOP))


def _delta_moves(event: MessageDelta, machine: Machine, memory: Memory) -> tuple[Move, ...]:
    reason = event.delta.get("stop_reason")
    symbol = DELTA if reason is not None else DELTA_NO_REASON
    if reason == "max_tokens" and machine.open_keys("block"):
        symbol = DELTA_MAX_TOKENS
    return _stream(symbol) + _of_open_blocks(machine, symbol)


def _stop_moves(event: MessageStop, machine: Machine, memory: Memory) -> tuple[Move, ...]:
    return _stream(STOP) + _of_open_blocks(machine, STOP)


def _stream(symbol: str) -> tuple[Move, ...]:
    return (("stream", None, symbol),)


def _of_open_blocks(machine: Machine, symbol: str) -> tuple[Move, ...]:
    return tuple(("block", index, symbol) for index in machine.open_keys("block"))


MOVES: dict[type, Moves] = {
    MessageStart: _start_moves,
    ContentBlockStart: _block_start_moves,
    ContentBlockDelta: _block_delta_moves,
    ContentBlockStop: _block_stop_moves,
    MessageDelta: _delta_moves,
    MessageStop: _stop_moves,
    Ping: asks(PING),
    Error: asks(ERROR),
    Unknown: asks(UNKNOWN),
    Done: asks(DONE_MARK),
}


def _remember_start(event: MessageStart, machine: Machine, memory: Memory) -> None:
    memory.started = True
    memory.message_id = event.message.get("id")


REMEMBER: dict[type, Callable[[Any, Machine, Any], None]] = {MessageStart: _remember_start}
