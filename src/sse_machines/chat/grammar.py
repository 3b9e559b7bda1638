"""OpenAI Chat Completions: which chunk may come when.

``chunk* [usage chunk] [DONE]``, with every choice beginning with its role and ending with its
``finish_reason``; an error ends it all. Four tables: the stream, each choice by its index, each tool
call by its choice and its number in it, and the envelope, whose members have to be there and stay the
same in every chunk. Everything that is legal or tolerated is a cell of these tables; the only code turns
chunks into symbols, counts the choices that are open, and puts pieces of tool calls to their calls
(`tool_calls`).

Symbols of the stream are wire names. A bracket behind one is the guard that the code found to hold:

* ``chat.completion.chunk[all finished]`` leaves no choice open
* ``chat.completion.chunk[usage]`` has the usage, and adds to no choice
* ``chat.completion.chunk[annotation]`` adds to no choice and has no usage: filters, moderation
* ``eof[inside an event]`` cuts an event in two

Symbols of a choice are its members. ``delta[empty]`` has nothing in it, or no more than empty strings.

Sources: OpenAI's API reference; what OpenAI and Azure are seen to send, each row with its evidence; and
recordings of the servers of forty other vendors.
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
from . import tool_calls
from .events import ChatCompletionChunk, Choice, Error
from .tool_calls import Calls, Correlation

Legal = dict[enum.Enum, dict[str, enum.Enum]]
Tolerated = dict[enum.Enum, dict[str, Cell]]


class State(enum.Enum):
    """Where a stream stands."""

    IDLE = auto()
    """No choice has begun."""
    STREAMING = auto()
    """A choice is open."""
    FINISHED = auto()
    """All choices that have begun are finished."""
    DONE = auto()
    """The end mark came."""
    ERRORED = auto()
    """An error came."""
    ENDED = auto()
    """The input ended after the last finish reason, without the end mark."""


class ChoiceState(enum.Enum):
    """Where a choice stands."""

    ABSENT = auto()
    ANNOUNCED = auto()
    """It was spoken of, but nothing was added to it."""
    OPEN = auto()
    REPEATING = auto()
    """Open, and the server says the role more than once."""
    FINISHED = auto()


class Call(enum.Enum):
    """Where a tool call stands."""

    ABSENT = auto()
    OPEN = auto()
    UNINDEXED = auto()
    """Open, and the server leaves out indexes."""
    CLOSED = auto()
    """Another call went on, or the choice is finished. More pieces open it again."""


class Member(enum.Enum):
    """What is known of a member of the envelope."""

    STEADY = auto()
    REPORTED = auto()
    """It deviates, and that was said once."""


IDLE, STREAMING, FINISHED, DONE, ERRORED, ENDED = State
ABSENT, ANNOUNCED, OPEN, REPEATING, CHOICE_FINISHED = ChoiceState
CALL_ABSENT, CALL_OPEN, UNINDEXED, CLOSED = Call
STEADY, REPORTED = Member

CHUNK = ChatCompletionChunk.type
CHUNK_FINISHED = f"{CHUNK}[all finished]"
CHUNK_USAGE = f"{CHUNK}[usage]"
CHUNK_ANNOTATION = f"{CHUNK}[annotation]"
ERROR = Error.type

DELTA = "delta"
DELTA_ROLE = "delta[role]"
DELTA_ROLE_CONTENT = "delta[role and content]"
DELTA_ROLE_AUDIO = "delta[role and audio]"
DELTA_EMPTY = "delta[empty]"
DELTA_EXPIRES = "delta[audio.expires_at]"
NO_DELTA = "delta[absent]"
FINISH = "finish_reason"
FINISH_CONTENT = "finish_reason[content]"
FINISH_ROLE = "finish_reason[role]"
FINISH_ROLE_CONTENT = "finish_reason[role and content]"
FINISH_NO_DELTA = "finish_reason[delta absent]"

NEXT_CALL = "tool_calls[another call]"

MISSING = "missing"
CHANGED = "changed"
OTHER = "another value"

_SYMBOLS = {
    # has a finish reason, has a role, has content
    (False, False, False): DELTA_EMPTY,
    (False, False, True): DELTA,
    (False, True, False): DELTA_ROLE,
    (False, True, True): DELTA_ROLE_CONTENT,
    (True, False, False): FINISH,
    (True, False, True): FINISH_CONTENT,
    (True, True, False): FINISH_ROLE,
    (True, True, True): FINISH_ROLE_CONTENT,
}
_ADDING = (CHUNK, CHUNK_FINISHED)
_ALL = (*_ADDING, CHUNK_USAGE, CHUNK_ANNOTATION, ERROR, UNKNOWN)


def _anywhere(state: State) -> dict[str, enum.Enum]:
    """What may come in every state before the end."""
    return {CHUNK_ANNOTATION: state, ERROR: ERRORED, UNKNOWN: state}


STREAM_LEGAL: Legal = {
    IDLE: {CHUNK: STREAMING, CHUNK_FINISHED: FINISHED, **_anywhere(IDLE)},
    STREAMING: {
        CHUNK: STREAMING,
        CHUNK_FINISHED: FINISHED,
        # Seen from OpenAI: audio ends with the usage before its last chunk.
        CHUNK_USAGE: STREAMING,
        **_anywhere(STREAMING),
    },
    FINISHED: {
        CHUNK: STREAMING,
        CHUNK_FINISHED: FINISHED,
        CHUNK_USAGE: FINISHED,
        DONE_MARK: DONE,
        **_anywhere(FINISHED),
    },
    DONE: dict.fromkeys((EOF, EOF_INSIDE), DONE),
    # OpenAI, vLLM and LiteLLM send the end mark behind an error.
    ERRORED: dict.fromkeys((DONE_MARK, EOF, EOF_INSIDE), ERRORED),
    ENDED: {},
}

_CUT = Refuse("truncated", "the input ended first")

STREAM_TOLERATED: Tolerated = {
    IDLE: {
        CHUNK_USAGE: To(STREAMING, "usage_before_content", "servers that begin by counting the prompt"),
        DONE_MARK: To(DONE, "empty_stream", "gateways whose upstream gave nothing"),
        EOF: Refuse("eof_before_first_chunk", "the input ended before the answer began"),
        EOF_INSIDE: Refuse("eof_before_first_chunk", "the input ended inside its first event"),
    },
    STREAMING: {
        DONE_MARK: To(
            DONE,
            "done_without_finish_reason",
            "seen from Snowflake, TGI, LiteLLM; LM Studio out of context",
        ),
        EOF: _CUT,
        EOF_INSIDE: _CUT,
    },
    FINISHED: {
        EOF: To(ENDED, "missing_done", "seen from Perplexity, Writer, Hugging Face, GPUStack"),
        EOF_INSIDE: _CUT,
    },
    DONE: {
        **dict.fromkeys(_ALL, Drop("event_after_done", "upstreams that go on after the end")),
        DONE_MARK: Drop("duplicate_done", "gateways that add their own end mark"),
    },
    ERRORED: dict.fromkeys(
        _ALL, Drop("event_after_error", "servers that end a failed answer as if whole")
    ),
}

_BEGINNING: dict[str, enum.Enum] = {
    DELTA_ROLE: OPEN,
    DELTA_ROLE_CONTENT: OPEN,
    DELTA_ROLE_AUDIO: OPEN,
    FINISH_ROLE: CHOICE_FINISHED,
    FINISH_ROLE_CONTENT: CHOICE_FINISHED,
}
_GOING_ON: dict[str, enum.Enum] = {
    FINISH: CHOICE_FINISHED,
    FINISH_CONTENT: CHOICE_FINISHED,
    # Seen from OpenAI: the last update of audio has no finish reason.
    DELTA_EXPIRES: CHOICE_FINISHED,
}
# Seen from OpenAI: sound begins with the role again, after the transcript.
_MORE = (DELTA, DELTA_EMPTY, DELTA_ROLE_AUDIO, NO_DELTA)
_DELTA_MISSING = To(CHOICE_FINISHED, "delta_missing", "servers that send null for an empty delta")
_NO_ROLE = "seen from Mistral, Cloudflare, GPUStack"
_ROLES = "seen from OpenRouter, Perplexity, Databricks, Z.ai, TGI"
_REPEATED = "reported when it began"
_LATE = "seen from Cerebras and Together, whose streams are glued together"
_TWICE = "seen from OpenRouter, Doubleword, Avian: the second one has the usage"

CHOICE_LEGAL: Legal = {
    # Seen from Azure, with asynchronous filters: no delta in the first chunk, and no role later.
    ABSENT: {**_BEGINNING, NO_DELTA: ANNOUNCED},
    ANNOUNCED: {
        **_BEGINNING,
        **_GOING_ON,
        DELTA: OPEN,
        DELTA_EMPTY: ANNOUNCED,
        NO_DELTA: ANNOUNCED,
    },
    OPEN: {**_GOING_ON, **dict.fromkeys(_MORE, OPEN)},
    REPEATING: {**_GOING_ON, **dict.fromkeys(_MORE, REPEATING)},
    CHOICE_FINISHED: dict.fromkeys((DELTA_EMPTY, DELTA_EXPIRES, NO_DELTA), CHOICE_FINISHED),
}
CHOICE_TOLERATED: Tolerated = {
    ABSENT: {
        DELTA: To(OPEN, "role_missing", _NO_ROLE),
        DELTA_EMPTY: To(ANNOUNCED, "role_missing", _NO_ROLE),
        **dict.fromkeys((*_GOING_ON, FINISH_NO_DELTA), To(CHOICE_FINISHED, "role_missing", _NO_ROLE)),
    },
    ANNOUNCED: {FINISH_NO_DELTA: _DELTA_MISSING},
    OPEN: {
        **dict.fromkeys((DELTA_ROLE, DELTA_ROLE_CONTENT), To(REPEATING, "role_repeated", _ROLES)),
        **dict.fromkeys(
            (FINISH_ROLE, FINISH_ROLE_CONTENT), To(CHOICE_FINISHED, "role_repeated", _ROLES)
        ),
        FINISH_NO_DELTA: _DELTA_MISSING,
    },
    REPEATING: {
        **dict.fromkeys((DELTA_ROLE, DELTA_ROLE_CONTENT), Follow(REPEATING, _REPEATED)),
        **dict.fromkeys((FINISH_ROLE, FINISH_ROLE_CONTENT), Follow(CHOICE_FINISHED, _REPEATED)),
        FINISH_NO_DELTA: _DELTA_MISSING,
    },
    CHOICE_FINISHED: {
        DELTA_ROLE: To(CHOICE_FINISHED, "role_repeated", "seen from DashScope and LiteLLM"),
        **dict.fromkeys(
            (DELTA, DELTA_ROLE_CONTENT, DELTA_ROLE_AUDIO, FINISH_CONTENT, FINISH_ROLE_CONTENT),
            To(CHOICE_FINISHED, "delta_after_finish", _LATE),
        ),
        **dict.fromkeys(
            (FINISH, FINISH_ROLE, FINISH_NO_DELTA),
            To(CHOICE_FINISHED, "second_finish_reason", _TWICE),
        ),
    },
}

_NO_INDEX = "seen from Mistral, Gemini, Ollama"
_BAD_INDEX = "made up by proxies in other languages: negative, true, beyond all bounds"


def _more(state: Call) -> dict[str, Cell]:
    """Pieces for a call that has begun, but without an index that can be used."""
    return {
        tool_calls.PIECE_NO_INDEX: Follow(UNINDEXED, _REPEATED)
        if state is UNINDEXED
        else To(UNINDEXED, "tool_index_missing", _NO_INDEX),
        tool_calls.PIECE_BAD_INDEX: To(UNINDEXED, "tool_index_invalid", _BAD_INDEX),
    }


CALL_LEGAL: Legal = {
    CALL_ABSENT: {tool_calls.NEW: CALL_OPEN},
    CALL_OPEN: {tool_calls.PIECE: CALL_OPEN, NEXT_CALL: CLOSED, FINISH: CLOSED},
    UNINDEXED: {tool_calls.PIECE: UNINDEXED, NEXT_CALL: CLOSED, FINISH: CLOSED},
    # Interleaved pieces of parallel calls are not forbidden.
    CLOSED: {tool_calls.PIECE: CALL_OPEN, NEXT_CALL: CLOSED, FINISH: CLOSED},
}
CALL_TOLERATED: Tolerated = {
    CALL_ABSENT: {
        tool_calls.NEW_NO_INDEX: To(UNINDEXED, "tool_index_missing", _NO_INDEX),
        tool_calls.NEW_BAD_INDEX: To(UNINDEXED, "tool_index_invalid", _BAD_INDEX),
        tool_calls.NEW_REUSED: To(CALL_OPEN, "tool_index_reused", "seen from Mistral: all calls are 0"),
        tool_calls.NEW_NAMELESS: To(CALL_OPEN, "tool_call_without_start", "the first piece was lost"),
        tool_calls.NEW_NO_ID: To(CALL_OPEN, "tool_id_missing", "servers that know calls by name"),
        tool_calls.NEW_GAP: To(CALL_OPEN, "tool_index_gap", "gateways that count Claude's blocks"),
        tool_calls.TOO_MANY: Refuse("too_many_tool_calls", "more calls than anybody makes"),
    },
    CALL_OPEN: _more(CALL_OPEN),
    UNINDEXED: _more(UNINDEXED),
    CLOSED: _more(CLOSED),
}

_STEADIES = {
    MISSING: To(REPORTED, "missing_member", "seen from AI21, Copilot, Gemini, Ollama"),
    CHANGED: To(REPORTED, "id_changed", "seen from Avian, Groq, Perplexity, Cerebras"),
    OTHER: To(REPORTED, "unexpected_object", "seen from Perplexity and Together"),
}
ENVELOPE_LEGAL: Legal = {STEADY: {}, REPORTED: {}}
ENVELOPE_TOLERATED: Tolerated = {
    STEADY: {**_STEADIES},
    REPORTED: dict.fromkeys(_STEADIES, Follow(REPORTED, _REPEATED)),
}

STREAM = Table("stream", STREAM_LEGAL, STREAM_TOLERATED)
CHOICE = Table("choice", CHOICE_LEGAL, CHOICE_TOLERATED)
CALL = Table("tool call", CALL_LEGAL, CALL_TOLERATED)
ENVELOPE = Table("envelope", ENVELOPE_LEGAL, ENVELOPE_TOLERATED)

OUTCOMES: dict[enum.Enum, Outcome] = {
    DONE: Outcome.COMPLETED,
    ERRORED: Outcome.FAILED,
    ENDED: Outcome.COMPLETED_NO_DONE,
}

_STILL_OPEN = (ANNOUNCED, OPEN, REPEATING)


@attrs.define
class Memory:
    """What a stream remembers beside its tables.

    Attributes:
        id: The first id that is not empty.
        open_choices: How many choices are open.
        calls: Choice → its tool calls.
        model: The chunk that is expected to come again.
        next_open_choices: What ``open_choices`` will be, once the chunk in hand is accepted.
        placed: What that chunk will have changed in ``calls``.
    """

    id: str | None = None
    open_choices: int = 0
    calls: dict[int, Calls] = attrs.field(factory=dict)
    model: Model = attrs.field(factory=Model)
    next_open_choices: int = 0
    placed: dict[int, Correlation] = attrs.field(factory=dict)


def _chunk_moves(event: ChatCompletionChunk, machine: Machine, memory: Memory) -> tuple[Move, ...]:
    moves: list[Move] = []
    states: dict[int, enum.Enum] = {}
    memory.placed = {}
    opened = memory.open_choices
    adding = False
    for choice in event.choices:
        index, symbol = choice.get("index", 0), _symbol(choice)
        adding = adding or symbol is not NO_DELTA
        before = states.get(index) or machine.state("choice", index)
        states[index] = after = CHOICE.after(before, symbol)
        opened += (after in _STILL_OPEN) - (before in _STILL_OPEN)
        moves.append(("choice", index, symbol))
        moves += _call_moves(index, choice, memory)
    memory.next_open_choices = opened
    if adding:
        symbol = CHUNK if opened else CHUNK_FINISHED
    else:
        symbol = CHUNK_ANNOTATION if event.usage is None else CHUNK_USAGE
    return (("stream", None, symbol), *moves, *_envelope_moves(event, memory))


def _symbol(choice: Choice) -> str:
    """What a choice in a chunk is: one of the symbols of the table of choices."""
    delta: Any = choice.get("delta")
    finish = bool(choice.get("finish_reason"))
    if delta is None:
        return FINISH_NO_DELTA if finish else NO_DELTA
    role = bool(delta.get("role"))
    if not finish and not role and delta.get("content"):
        return DELTA
    contents = [value for name, value in delta.items() if value and name != "role"]
    if contents and not finish and contents == [delta.get("audio")]:
        if role:
            return DELTA_ROLE_AUDIO
        if [*contents[0]] == ["expires_at"]:
            return DELTA_EXPIRES
    return _SYMBOLS[finish, role, bool(contents)]


def _call_moves(index: int, choice: Choice, memory: Memory) -> list[Move]:
    """Put the pieces of tool calls in a choice to their calls."""
    pieces: list[Any] = (choice.get("delta") or {}).get("tool_calls") or []
    finish = choice.get("finish_reason")
    calls = memory.calls.get(index)
    if not pieces and (calls is None or not finish):
        return []
    correlation = memory.placed.setdefault(index, Correlation(calls or Calls()))
    moves: list[Move] = []
    for piece in pieces:
        latest = correlation.latest
        call, symbol = correlation.place(piece)
        if latest is not None and latest != call:
            moves.append(("tool call", (index, latest), NEXT_CALL))
        moves.append(("tool call", (index, call), symbol))
    if finish and correlation.latest is not None:
        moves.append(("tool call", (index, correlation.latest), FINISH))
    return moves


def _envelope_moves(event: ChatCompletionChunk, memory: Memory) -> list[Move]:
    payload = event.payload
    moves: list[Move] = [
        ("envelope", member, MISSING)
        for member, kind in ENVELOPE_MEMBERS.items()
        if type(payload.get(member)) is not kind
    ]
    if event.id and memory.id is not None and event.id != memory.id:
        moves.append(("envelope", "id", CHANGED))
    # Seen from Azure: empty strings in chunks that are about filters.
    if payload.get(CHUNK_OBJECT, CHUNK) not in (CHUNK, ""):
        moves.append(("envelope", CHUNK_OBJECT, OTHER))
    return moves


ENVELOPE_MEMBERS = {"id": str, "object": str, "created": int, "model": str}
"""The members that every chunk has, besides its choices."""

CHUNK_OBJECT = ChatCompletionChunk.tag


MOVES: dict[type, Moves] = {
    ChatCompletionChunk: _chunk_moves,
    Error: asks(ERROR),
    Done: asks(DONE_MARK),
    Unknown: asks(UNKNOWN),
}


def _remember_chunk(event: ChatCompletionChunk, machine: Machine, memory: Memory) -> None:
    memory.id = memory.id or event.id or None
    memory.open_choices = memory.next_open_choices
    for index, correlation in memory.placed.items():
        memory.calls[index] = correlation.commit()
    memory.placed = {}


REMEMBER: dict[type, Callable[[Any, Machine, Any], None]] = {ChatCompletionChunk: _remember_chunk}
