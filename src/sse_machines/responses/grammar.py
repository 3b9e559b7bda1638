"""OpenAI Responses: which event may come when.

``response.created (response.queued | response.in_progress)* item* (response.completed |
response.incomplete | response.failed)``, with ``keepalive`` anywhere and ``error`` instead of the
rest. An item is ``response.output_item.added``, what belongs to its type, and
``response.output_item.done``; several may be open at once.

The tables: the stream; each item by its ``output_index``; each part of a content and of a summary; each
text that a tool is called with (a slot); how far each tool on the server has come (status); the numbers
of the events; and ids, which should not change. Everything that is legal or tolerated is a cell of these
tables; `moves` turns events into symbols.

Symbols are wire names. A bracket behind one is the guard that the code found to hold:

* ``response.created[same id]`` and ``[another id]`` are not the first one
* ``response.output_item.added[gap]`` skips an index; in the table of items, the bracket has the type
* ``response.completed[no output]`` has an empty output although items came
* ``response.*`` is, for the stream, any event that belongs to an item
* a symbol that begins with a dot ends the wire name of the event's own family

In a stream that resumes in the middle, keys that are new may have begun before: they are UNSEEN.

Sources: OpenAI's API reference; what OpenAI and Azure are seen to send, each row with its evidence; and
recordings of other servers and gateways.
"""

from __future__ import annotations

import enum
from enum import auto

from .._machine import Cell, Drop, Follow, Refuse, Table, To
from .._protocol import DONE_MARK, EOF, EOF_INSIDE, UNKNOWN, Outcome
from .events import (
    Cancelled,
    Completed,
    Created,
    Done,
    Error,
    Failed,
    Incomplete,
    InProgress,
    Keepalive,
    OutputItemAdded,
    OutputItemDone,
    Queued,
)

Legal = dict[enum.Enum, dict[str, enum.Enum]]
Tolerated = dict[enum.Enum, dict[str, Cell]]


class State(enum.Enum):
    """Where a stream stands."""

    IDLE = auto()
    """Nothing has come."""
    RESUMED = auto()
    """Nothing has come, and the stream goes on where another one was cut."""
    OPEN = auto()
    ERRORED = auto()
    """An error event came; a response.failed may follow."""
    COMPLETED = auto()
    INCOMPLETE = auto()
    FAILED = auto()
    CANCELLED = auto()


class Item(enum.Enum):
    """Where an item stands; the open states are the types of items that have events of their own."""

    ABSENT = auto()
    UNSEEN = auto()
    MESSAGE = auto()
    REASONING = auto()
    FUNCTION_CALL = auto()
    CUSTOM_TOOL_CALL = auto()
    MCP_CALL = auto()
    MCP_LIST_TOOLS = auto()
    WEB_SEARCH_CALL = auto()
    FILE_SEARCH_CALL = auto()
    CODE_INTERPRETER_CALL = auto()
    IMAGE_GENERATION_CALL = auto()
    SHELL_CALL = auto()
    SHELL_CALL_OUTPUT = auto()
    APPLY_PATCH_CALL = auto()
    COMPACTION = auto()
    WHOLE = auto()
    """An item of a type that has no events between its first and its last."""
    OPAQUE = auto()
    """An item of a type that is not known here: anything may belong to it."""
    DONE = auto()


class Part(enum.Enum):
    """Where a part of a content or of a summary stands."""

    ABSENT = auto()
    UNSEEN = auto()
    OPEN = auto()
    TEXT_DONE = auto()
    DONE = auto()
    CLOSED = auto()
    """Its item is complete."""


class Slot(enum.Enum):
    """Where a text stands that a tool is called with."""

    ABSENT = auto()
    OPEN = auto()
    DONE = auto()
    CLOSED = auto()
    """Its item is complete."""


class Progress(enum.Enum):
    """How far a tool on the server has come."""

    ABSENT = auto()
    STARTED = auto()
    WORKING = auto()
    ENDED = auto()
    CLOSED = auto()
    """Its item is complete."""


class Numbering(enum.Enum):
    """Whether events carry a ``sequence_number``."""

    FRESH = auto()
    NUMBERED = auto()
    UNNUMBERED = auto()


class Identity(enum.Enum):
    """Whether the ids of a thing stay the same."""

    STEADY = auto()
    REPORTED = auto()
    """They do not, and that was said once."""


IDLE, RESUMED, OPEN, ERRORED, COMPLETED, INCOMPLETE, FAILED, CANCELLED = State
STEADY, REPORTED = Identity
FRESH, NUMBERED, UNNUMBERED = Numbering

CREATED = Created.type
CREATED_SAME = f"{CREATED}[same id]"
CREATED_OTHER = f"{CREATED}[another id]"
ADDED = OutputItemAdded.type
ADDED_GAP = f"{ADDED}[gap]"
OF_AN_ITEM = "response.*"
TOO_MANY_PARTS = "response.*[too many parts]"
COMPLETED_EMPTY = f"{Completed.type}[no output]"
ITEM_DONE = OutputItemDone.type
ID_CHANGED = "id[changed]"
ITEM_ID_CHANGED = "item_id[changed]"
NUMBER = "sequence_number"
NUMBER_GAP = "sequence_number[gap]"
NUMBER_REPEATED = "sequence_number[repeated]"
NO_NUMBER = "sequence_number[absent]"

TERMINALS: dict[str, State] = {
    Completed.type: COMPLETED,
    Incomplete.type: INCOMPLETE,
    Failed.type: FAILED,
}
"""The events that end a response, and how."""

_FOREIGN_TERMINALS: dict[str, State] = {Cancelled.type: CANCELLED, Done.type: COMPLETED}
_ITEMS = (ADDED, OF_AN_ITEM)
_ALL = (
    *(CREATED, CREATED_SAME, CREATED_OTHER, Queued.type, InProgress.type),
    *(*_ITEMS, ADDED_GAP, TOO_MANY_PARTS, *TERMINALS, COMPLETED_EMPTY, *_FOREIGN_TERMINALS),
    *(Keepalive.type, Error.type, UNKNOWN),
)
_ENDS = (EOF, EOF_INSIDE)


def _anywhere(state: State) -> dict[str, enum.Enum]:
    """What may come in every state before the end; OpenAI sends the first one before everything."""
    return {Keepalive.type: state, Error.type: ERRORED, UNKNOWN: state}


_OPEN_LEGAL: dict[str, enum.Enum] = {
    Queued.type: OPEN,
    InProgress.type: OPEN,
    **dict.fromkeys(_ITEMS, OPEN),
    **TERMINALS,
}

STREAM_LEGAL: Legal = {
    IDLE: {CREATED: OPEN, **_anywhere(IDLE)},
    RESUMED: {CREATED: OPEN, **_OPEN_LEGAL, **_anywhere(RESUMED)},
    OPEN: {**_OPEN_LEGAL, **_anywhere(OPEN)},
    # Seen from OpenAI: a nested error, then the failed response.
    ERRORED: {Failed.type: FAILED, Keepalive.type: ERRORED, **dict.fromkeys(_ENDS, ERRORED)},
    **{state: dict.fromkeys(_ENDS, state) for state in (COMPLETED, INCOMPLETE, FAILED, CANCELLED)},
}

_ABBREVIATED = "gateways that abbreviate, proxies that begin themselves"
_CUT = Refuse("truncated", "the input ended first")
_NOTHING = Refuse("eof_before_first_event", "the input ended before the answer began")
_STRAY_DONE = Drop("stray_done", "the end mark of another protocol, before the end of this one")
_TRAILING_DONE = Drop("trailing_done", "OpenRouter, LiteLLM end with the mark of Chat Completions")
_MANY_PARTS = Refuse("too_many_parts", "more parts at once than anybody sends")
_FOREIGN = "seen from xAI and others; the published end is response.incomplete or response.failed"
_MISSING_CREATED = To(OPEN, "missing_created", _ABBREVIATED)


def _begun(state: State) -> dict[str, Cell]:
    """What does not belong into a state before the end."""
    return {
        ADDED_GAP: To(OPEN, "output_index_gap", "a proxy that dropped an item kept the count"),
        COMPLETED_EMPTY: To(COMPLETED, "terminal_output_empty", "seen from the backend of Codex"),
        **{name: To(end, "nonstandard_terminal", _FOREIGN) for name, end in _FOREIGN_TERMINALS.items()},
        TOO_MANY_PARTS: _MANY_PARTS,
        DONE_MARK: _STRAY_DONE,
        EOF: _CUT,
        EOF_INSIDE: _CUT,
    }


_OVER: dict[str, Cell] = {
    **dict.fromkeys(_ALL, Drop("event_after_terminal", "upstreams that go on after the end")),
    DONE_MARK: _TRAILING_DONE,
}

STREAM_TOLERATED: Tolerated = {
    IDLE: {
        **_begun(IDLE),
        **dict.fromkeys((Queued.type, InProgress.type, *_ITEMS, ADDED_GAP), _MISSING_CREATED),
        **{
            name: To(end, "missing_created", _ABBREVIATED)
            for name, end in {**TERMINALS, COMPLETED_EMPTY: COMPLETED}.items()
        },
        Failed.type: To(FAILED, "failed_before_created", "gateways that fail before the model begins"),
        **dict.fromkeys(_ENDS, _NOTHING),
    },
    RESUMED: {**_begun(RESUMED), **dict.fromkeys(_ENDS, _NOTHING)},
    OPEN: {
        **_begun(OPEN),
        CREATED: To(OPEN, "late_created", "proxies that send response.in_progress themselves"),
        CREATED_SAME: Drop("duplicate_created", "gateways repeat the start they have sent already"),
        CREATED_OTHER: Refuse("second_response", "a second answer was glued on: one of them is cut"),
    },
    ERRORED: {
        **{
            symbol: Drop("event_after_error", "servers that go on as if nothing had happened")
            for symbol in _ALL
            if symbol not in STREAM_LEGAL[ERRORED]
        },
        DONE_MARK: _TRAILING_DONE,
    },
    COMPLETED: _OVER,
    INCOMPLETE: _OVER,
    FAILED: _OVER,
    CANCELLED: _OVER,
}

_TEXT_EVENTS = (
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.annotation.added",
    "response.output_text.done",
    "response.refusal.delta",
    "response.refusal.done",
    "response.content_part.done",
)
_REASONING_EVENTS = (
    "response.reasoning_summary_part.added",
    "response.reasoning_summary_text.delta",
    "response.reasoning_summary_text.done",
    "response.reasoning_summary_part.done",
    "response.content_part.added",
    "response.reasoning_text.delta",
    "response.reasoning_text.done",
    "response.content_part.done",
)
_VENDOR_EVENTS = ("response.reasoning_part.added", "response.reasoning_part.done")


def _family(name: str, *endings: str) -> tuple[str, ...]:
    return tuple(f"response.{name}.{ending}" for ending in endings)


ITEM_EVENTS: dict[Item, tuple[str, ...]] = {
    Item.MESSAGE: _TEXT_EVENTS,
    Item.REASONING: _REASONING_EVENTS,
    Item.FUNCTION_CALL: _family("function_call_arguments", "delta", "done"),
    Item.CUSTOM_TOOL_CALL: _family("custom_tool_call_input", "delta", "done"),
    Item.MCP_CALL: (
        *_family("mcp_call", "in_progress", "completed", "failed"),
        *_family("mcp_call_arguments", "delta", "done"),
    ),
    Item.MCP_LIST_TOOLS: _family("mcp_list_tools", "in_progress", "completed", "failed"),
    Item.WEB_SEARCH_CALL: _family("web_search_call", "in_progress", "searching", "completed"),
    Item.FILE_SEARCH_CALL: _family("file_search_call", "in_progress", "searching", "completed"),
    Item.CODE_INTERPRETER_CALL: (
        *_family("code_interpreter_call", "in_progress", "interpreting", "completed"),
        *_family("code_interpreter_call_code", "delta", "done"),
    ),
    Item.IMAGE_GENERATION_CALL: _family(
        "image_generation_call", "in_progress", "generating", "partial_image", "completed"
    ),
    Item.SHELL_CALL: _family("shell_call_command", "added", "delta", "done"),
    Item.SHELL_CALL_OUTPUT: _family("shell_call_output_content", "delta", "done"),
    Item.APPLY_PATCH_CALL: _family("apply_patch_call_operation_diff", "delta", "done"),
    Item.COMPACTION: _family("compaction", "compacting"),
    Item.WHOLE: (),
}
"""The events that belong to an item of a type, between its first and its last."""

WHOLE_ITEMS = (
    *("function_call_output", "computer_call", "computer_call_output", "program", "program_output"),
    *("tool_search_call", "tool_search_output", "additional_tools", "local_shell_call"),
    *("local_shell_call_output", "apply_patch_call_output", "mcp_approval_request"),
    *("mcp_approval_response", "custom_tool_call_output"),
)
"""The item types that have no events of their own."""

ITEM_STATES: dict[str, Item] = {
    **{state.name.lower(): state for state in ITEM_EVENTS if state is not Item.WHOLE},
    **dict.fromkeys(WHOLE_ITEMS, Item.WHOLE),
    "unknown_item": Item.OPAQUE,
}
"""Item types, and the state each opens in."""

_HOMES: dict[str, Item] = {
    name: state for state, names in reversed(ITEM_EVENTS.items()) for name in names
} | {
    # These say too little to tell a message from a reasoning.
    "response.content_part.added": Item.OPAQUE,
    "response.content_part.done": Item.OPAQUE,
    **dict.fromkeys(_VENDOR_EVENTS, Item.REASONING),
}
"""Events of items, and the state of an item that begins with one."""


def added(item_type: object) -> str:
    """The symbol for the first event of an item of a type."""
    known = item_type if type(item_type) is str and item_type in ITEM_STATES else "unknown_item"
    return f"{ADDED}[{known}]"


_ADDED = {added(item_type): state for item_type, state in ITEM_STATES.items()}
_OPEN_ITEMS = (*ITEM_EVENTS, Item.OPAQUE)
_ITEM_ENDS = (ITEM_DONE, *TERMINALS, *_FOREIGN_TERMINALS)


def _item_row(state: Item) -> dict[str, enum.Enum]:
    own = (*_HOMES,) if state is Item.OPAQUE else ITEM_EVENTS[state]
    ends = dict.fromkeys(_ITEM_ENDS, Item.DONE)
    if state is not Item.MCP_LIST_TOOLS:
        # Seen from OpenAI: of several listings of tools, only the last one gets its end.
        del ends[Completed.type], ends[Done.type]
    return {**dict.fromkeys(own, state), **ends}


ITEM_LEGAL: Legal = {
    Item.ABSENT: dict(_ADDED),
    Item.UNSEEN: {
        **_ADDED,
        **{name: state for name, state in _HOMES.items() if name not in _VENDOR_EVENTS},
        ITEM_DONE: Item.DONE,
    },
    **{state: _item_row(state) for state in _OPEN_ITEMS},
    # The end of the response is none of a finished item's business.
    Item.DONE: dict.fromkeys((*TERMINALS, *_FOREIGN_TERMINALS), Item.DONE),
}

_DUPLICATE_ITEM = "a gateway that gives two items one index"
_LEFT_OPEN = To(Item.DONE, "item_left_open", "gateways that abbreviate close nothing")
_MISFIT = "another item's event under this index"

ITEM_TOLERATED: Tolerated = {
    Item.ABSENT: {
        **{
            name: To(state, "sub_event_before_item_added", _ABBREVIATED)
            for name, state in _HOMES.items()
        },
        ITEM_DONE: To(Item.DONE, "item_done_without_added", _ABBREVIATED),
    },
    **{
        state: {
            **{
                name: To(opened, "duplicate_item_added", _DUPLICATE_ITEM)
                for name, opened in _ADDED.items()
            },
            **{
                name: To(state, "event_item_type_mismatch", _MISFIT)
                for name in _HOMES
                if name not in ITEM_LEGAL[state]
            },
            **{name: _LEFT_OPEN for name in _ITEM_ENDS if name not in ITEM_LEGAL[state]},
        }
        for state in _OPEN_ITEMS
    },
    Item.DONE: {
        **{name: To(opened, "duplicate_item_added", _DUPLICATE_ITEM) for name, opened in _ADDED.items()},
        **dict.fromkeys(_HOMES, To(Item.DONE, "sub_event_after_item_done", "deltas that come too late")),
        ITEM_DONE: To(Item.DONE, "duplicate_item_done", "servers that say it twice"),
    },
}
_NONSTANDARD = To(
    Item.REASONING, "nonstandard_event", "vLLM's name for a content part; seen from Bedrock"
)
ITEM_TOLERATED[Item.UNSEEN] = dict.fromkeys(_VENDOR_EVENTS, _NONSTANDARD)
ITEM_TOLERATED[Item.REASONING].update(dict.fromkeys(_VENDOR_EVENTS, _NONSTANDARD))

_LATE_PART = "deltas that come too late"
_PART_MISSING = "seen from Ollama, agentgateway and gateways that abbreviate"
_PART_OPEN = "servers that close nothing"


def _part_tables(
    begins: tuple[str, ...],
    pieces: tuple[str, ...],
    notes: tuple[str, ...],
    texts: tuple[str, ...],
    ends: tuple[str, ...],
) -> tuple[Legal, Tolerated]:
    """The law of parts, for a content and for a summary: the same but for the names of the events."""
    names = (*begins, *pieces, *notes, *texts, *ends)
    opens = dict.fromkeys((*pieces, *notes), Part.OPEN)
    known = {**opens, **dict.fromkeys(texts, Part.TEXT_DONE), **dict.fromkeys(ends, Part.DONE)}
    legal: Legal = {
        Part.ABSENT: dict.fromkeys(begins, Part.OPEN),
        Part.UNSEEN: {**dict.fromkeys(begins, Part.OPEN), **known},
        Part.OPEN: {**opens, **dict.fromkeys(texts, Part.TEXT_DONE)},
        Part.TEXT_DONE: dict.fromkeys(ends, Part.DONE),
        Part.DONE: {ITEM_DONE: Part.CLOSED},
        Part.CLOSED: {},
    }
    again = dict.fromkeys(begins, To(Part.OPEN, "duplicate_part_added", "servers that say it twice"))
    left_open = To(Part.CLOSED, "part_left_open", _PART_OPEN)
    tolerated: Tolerated = {
        Part.ABSENT: {
            **dict.fromkeys((*pieces, *notes), To(Part.OPEN, "delta_before_part_added", _PART_MISSING)),
            **dict.fromkeys(texts, To(Part.TEXT_DONE, "text_done_before_part_added", _PART_MISSING)),
            **dict.fromkeys(ends, To(Part.DONE, "part_done_before_added", _PART_MISSING)),
        },
        Part.OPEN: {
            **again,
            **dict.fromkeys(ends, To(Part.DONE, "text_done_missing", _PART_MISSING)),
            ITEM_DONE: left_open,
        },
        Part.TEXT_DONE: {
            **again,
            **dict.fromkeys(pieces, To(Part.TEXT_DONE, "delta_after_text_done", _LATE_PART)),
            **dict.fromkeys(notes, To(Part.TEXT_DONE, "annotation_after_text_done", _LATE_PART)),
            **dict.fromkeys(
                texts, To(Part.TEXT_DONE, "duplicate_text_done", "servers that say it twice")
            ),
            ITEM_DONE: left_open,
        },
        Part.DONE: dict.fromkeys(names, To(Part.DONE, "event_after_part_done", _LATE_PART)),
    }
    return legal, tolerated


CONTENT_LEGAL, CONTENT_TOLERATED = _part_tables(
    ("response.content_part.added", "response.reasoning_part.added"),
    ("response.output_text.delta", "response.refusal.delta", "response.reasoning_text.delta"),
    ("response.output_text.annotation.added",),
    ("response.output_text.done", "response.refusal.done", "response.reasoning_text.done"),
    ("response.content_part.done", "response.reasoning_part.done"),
)
SUMMARY_LEGAL, SUMMARY_TOLERATED = _part_tables(
    ("response.reasoning_summary_part.added",),
    ("response.reasoning_summary_text.delta",),
    (),
    ("response.reasoning_summary_text.done",),
    ("response.reasoning_summary_part.done",),
)

# OpenAI and LM Studio leave out the pieces, or the end.
SLOT_LEGAL: Legal = {
    Slot.ABSENT: {".added": Slot.OPEN, ".delta": Slot.OPEN, ".done": Slot.DONE},
    Slot.OPEN: {".delta": Slot.OPEN, ".done": Slot.DONE, ITEM_DONE: Slot.CLOSED},
    Slot.DONE: {ITEM_DONE: Slot.CLOSED},
    Slot.CLOSED: {},
}
SLOT_TOLERATED: Tolerated = {
    Slot.OPEN: {".added": To(Slot.OPEN, "duplicate_command_added", "servers that say it twice")},
    Slot.DONE: {
        ".added": To(Slot.OPEN, "duplicate_command_added", "servers that say it twice"),
        ".delta": To(Slot.DONE, "delta_after_done", _LATE_PART),
        ".done": To(Slot.DONE, "duplicate_done", "servers that say it twice"),
    },
}

_WORK = (".searching", ".generating", ".interpreting")
_FINISH = (".completed", ".failed")
_ONWARD: dict[str, enum.Enum] = {
    **dict.fromkeys(_WORK, Progress.WORKING),
    **dict.fromkeys(_FINISH, Progress.ENDED),
    ITEM_DONE: Progress.CLOSED,
}
# Every step may be missing: Azure leaves out the last one.
STATUS_LEGAL: Legal = {
    Progress.ABSENT: {
        ".in_progress": Progress.STARTED,
        **{symbol: state for symbol, state in _ONWARD.items() if symbol != ITEM_DONE},
    },
    # Seen from OpenAI: mcp_call is in progress before and after its arguments.
    Progress.STARTED: {".in_progress": Progress.STARTED, **_ONWARD},
    Progress.WORKING: dict(_ONWARD),
    Progress.ENDED: {ITEM_DONE: Progress.CLOSED},
    Progress.CLOSED: {},
}
_OVERTAKEN = "servers whose events overtake each other"
STATUS_TOLERATED: Tolerated = {
    Progress.WORKING: {".in_progress": To(Progress.WORKING, "status_goes_back", _OVERTAKEN)},
    Progress.ENDED: dict.fromkeys(
        (".in_progress", *_WORK, *_FINISH), To(Progress.ENDED, "status_after_end", _OVERTAKEN)
    ),
}

SEQUENCE_LEGAL: Legal = {
    FRESH: {NUMBER: NUMBERED},
    NUMBERED: {NUMBER: NUMBERED},
    UNNUMBERED: {NO_NUMBER: UNNUMBERED},
}
_LOST = "events that were lost on the way, or that a proxy left out"
_NO_NUMBERS = "seen from OpenAI's own documentation, older servers, gateways that abbreviate"
SEQUENCE_TOLERATED: Tolerated = {
    FRESH: {
        NO_NUMBER: To(UNNUMBERED, "missing_sequence_number", _NO_NUMBERS),
        NUMBER_GAP: To(NUMBERED, "sequence_gap", _LOST),
        NUMBER_REPEATED: To(NUMBERED, "sequence_repeat", "a stream that resumes too early"),
    },
    NUMBERED: {
        NO_NUMBER: To(NUMBERED, "missing_sequence_number", "events that a proxy put in"),
        NUMBER_GAP: To(NUMBERED, "sequence_gap", _LOST),
        NUMBER_REPEATED: To(NUMBERED, "sequence_repeat", "events that were sent twice"),
    },
    UNNUMBERED: {
        **dict.fromkeys(
            (NUMBER, NUMBER_GAP, NUMBER_REPEATED),
            To(NUMBERED, "late_sequence_number", "streams that are put together of two"),
        ),
    },
}

_CHANGES = {
    ID_CHANGED: To(REPORTED, "response_id_changed", "seen from GitHub Copilot"),
    ITEM_ID_CHANGED: To(REPORTED, "item_id_changed", "seen from GitHub Copilot, mistral.rs, smg"),
}
IDENTITY_LEGAL: Legal = {STEADY: {}, REPORTED: {}}
IDENTITY_TOLERATED: Tolerated = {
    STEADY: {**_CHANGES},
    REPORTED: dict.fromkeys(_CHANGES, Follow(REPORTED, "reported when it began")),
}

STREAM = Table("stream", STREAM_LEGAL, STREAM_TOLERATED)
ITEM = Table("item", ITEM_LEGAL, ITEM_TOLERATED)
CONTENT = Table("content", CONTENT_LEGAL, CONTENT_TOLERATED, closed=Part.CLOSED)
SUMMARY = Table("summary", SUMMARY_LEGAL, SUMMARY_TOLERATED, closed=Part.CLOSED)
SLOT = Table("slot", SLOT_LEGAL, SLOT_TOLERATED, closed=Slot.CLOSED)
STATUS = Table("status", STATUS_LEGAL, STATUS_TOLERATED, closed=Progress.CLOSED)
SEQUENCE = Table("sequence", SEQUENCE_LEGAL, SEQUENCE_TOLERATED)
IDENTITY = Table("identity", IDENTITY_LEGAL, IDENTITY_TOLERATED)
TABLES = (STREAM, ITEM, CONTENT, SUMMARY, SLOT, STATUS, SEQUENCE, IDENTITY)

OUTCOMES: dict[enum.Enum, Outcome] = {
    COMPLETED: Outcome.COMPLETED,
    INCOMPLETE: Outcome.INCOMPLETE,
    FAILED: Outcome.FAILED,
    ERRORED: Outcome.FAILED,
    CANCELLED: Outcome.CANCELLED,
}
