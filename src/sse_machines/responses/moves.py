"""OpenAI Responses: what an event asks of the tables.

This is all of the protocol that is code: it counts indexes and sequence numbers, compares ids, and knows
which things of an item are open. What the symbols mean is in the tables of `grammar`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import attrs

from .._machine import Machine, Move, asks
from .._protocol import DONE_MARK, MAX_INDEX, UNKNOWN, Done as DoneMark, Event, JSONObject, Unknown
from .._template import Model
from . import grammar
from .events import (
    PUBLISHED,
    UNPUBLISHED,
    Completed,
    Created,
    Error,
    InProgress,
    Keepalive,
    OutputItemAdded,
    OutputItemDone,
    OutputTextAnnotationAdded,
    Queued,
    ReasoningSummaryTextDelta,
    ReasoningSummaryTextDone,
)
from .roles import (
    CommandEvent,
    ContentPartEvent,
    InputDelta,
    InputDone,
    ItemEvent,
    LifecycleEvent,
    SequencedEvent,
    StatusEvent,
    SummaryPartEvent,
    TextDelta,
    TextDone,
)

Moves = tuple[Move, ...]
Place = tuple[str, Any]
"""A table of parts, and a key in it."""

_MAX_ID = 256
"""Most characters of an item's id that tell it from others."""


@attrs.define
class Memory:
    """What a stream remembers beside its tables.

    Attributes:
        next_number: The ``sequence_number`` that is due; None where events carry none.
        next_index: The ``output_index`` of the next item; None while a resumed stream has shown none.
        created: Whether the response.created came.
        response_id: The first id of the response.
        response: The response as it was when it was last told, before its end.
        items: The ``output_index`` of each item that is open, and its first id.
        parts: ``output_index`` → the parts, slots and states of tools that are open in that item.
        count: How many those are.
        model: The delta that is expected to come again.
    """

    next_number: int | None = 0
    next_index: int | None = 0
    created: bool = False
    response_id: Any = None
    response: JSONObject | None = None
    items: dict[int, Any] = attrs.field(factory=dict)
    parts: dict[int, dict[Place, None]] = attrs.field(factory=dict)
    count: int = 0
    model: Model = attrs.field(factory=Model)


def resume(machine: Machine, memory: Memory, starting_after: int) -> None:
    """Let a stream begin in the middle."""
    machine.begin("stream", grammar.RESUMED)
    machine.begin("item", grammar.Item.UNSEEN)
    machine.begin("content", grammar.Part.UNSEEN)
    machine.begin("summary", grammar.Part.UNSEEN)
    memory.next_number = starting_after + 1
    memory.next_index = None


def numbered(payload: JSONObject, memory: Memory) -> JSONObject:
    """A payload with its number: its own, or the one that is due. A stream without numbers stays so."""
    number = memory.next_number
    if number is None or payload.get("sequence_number") is not None:
        return payload
    payload = payload.copy()
    payload["sequence_number"] = number
    return payload


def _stream(symbol: str, number: int | None, memory: Memory) -> Moves:
    """The moves of the stream itself, and of the numbers of its events."""
    return (("stream", None, symbol), ("sequence", None, _number_symbol(number, memory)))


def _number_symbol(number: int | None, memory: Memory) -> str:
    if number is None:
        return grammar.NO_NUMBER
    due = memory.next_number
    if due is None or number == due:
        return grammar.NUMBER
    return grammar.NUMBER_GAP if number > due else grammar.NUMBER_REPEATED


def _optional(symbol: str, number: int | None, memory: Memory) -> Moves:
    """The moves of what a proxy may put in without a number."""
    return (("stream", None, symbol),) if number is None else _stream(symbol, number, memory)


def _optional_moves(event: SequencedEvent, machine: Machine, memory: Memory) -> Moves:
    """The moves of a sign of life or of an error."""
    return _optional(event.type, event.sequence_number, memory)


def _audio_moves(event: SequencedEvent, machine: Machine, memory: Memory) -> Moves:
    return _stream(grammar.OF_AN_ITEM, event.sequence_number, memory)


def _lifecycle_moves(event: LifecycleEvent, machine: Machine, memory: Memory) -> Moves:
    return _stream(event.type, event.sequence_number, memory) + _id_moves(event, memory)


def _created_moves(event: Created, machine: Machine, memory: Memory) -> Moves:
    if not memory.created:
        return _lifecycle_moves(event, machine, memory)
    id_ = event.response.get("id")
    same = None in (id_, memory.response_id) or id_ == memory.response_id
    return _stream(
        grammar.CREATED_SAME if same else grammar.CREATED_OTHER, event.sequence_number, memory
    )


def _terminal_moves(event: LifecycleEvent, machine: Machine, memory: Memory) -> Moves:
    empty = type(event) is Completed and event.response.get("output") == [] and memory.next_index
    moves = _stream(grammar.COMPLETED_EMPTY if empty else event.type, event.sequence_number, memory)
    items = tuple(("item", index, event.type) for index in memory.items)
    return moves + _id_moves(event, memory) + items


def _id_moves(event: LifecycleEvent, memory: Memory) -> Moves:
    id_ = event.response.get("id")
    if None in (id_, memory.response_id) or id_ == memory.response_id:
        return ()
    return (("identity", "response", grammar.ID_CHANGED),)


def _added_moves(event: OutputItemAdded, machine: Machine, memory: Memory) -> Moves:
    index = event.output_index
    gap = memory.next_index is not None and index > memory.next_index
    symbol = grammar.ADDED_GAP if gap else grammar.ADDED
    return (
        *_stream(symbol, event.sequence_number, memory),
        ("item", index, grammar.added(event.item.get("type"))),
    )


def _done_moves(event: OutputItemDone, machine: Machine, memory: Memory) -> Moves:
    index = event.output_index
    parts = tuple((table, key, grammar.ITEM_DONE) for table, key in memory.parts.get(index, ()))
    return (
        *_stream(grammar.OF_AN_ITEM, event.sequence_number, memory),
        ("item", index, event.type),
        *_item_id_moves(index, event.item.get("id"), memory),
        *parts,
    )


def _item_id_moves(index: int, id_: Any, memory: Memory) -> Moves:
    known = memory.items.get(index)
    if None in (id_, known) or _short(id_) == known:
        return ()
    return (("identity", index, grammar.ITEM_ID_CHANGED),)


def _item_moves(event: ItemEvent, machine: Machine, memory: Memory) -> Moves:
    """The moves of an event between the first and the last of its item."""
    index = event.output_index
    place = _place(event)
    moves = (
        ("item", index, event.type),
        *_item_id_moves(index, getattr(event, "item_id", None), memory),
    )
    if place is None or machine.state("item", index) is grammar.Item.DONE:
        # The parts of a finished item are forgotten; the item's own table says that this is late.
        return _stream(grammar.OF_AN_ITEM, event.sequence_number, memory) + moves
    new = place not in memory.parts.get(index, ())
    many = new and memory.count > MAX_INDEX
    symbol = event.type if place[0] in _NAMED_TABLES else f".{event.type.rpartition('.')[2]}"
    return (
        *_stream(grammar.TOO_MANY_PARTS if many else grammar.OF_AN_ITEM, event.sequence_number, memory),
        *moves,
        (*place, symbol),
    )


_NAMED_TABLES = ("content", "summary")


def _place(event: ItemEvent) -> Place | None:
    """The part, slot or status that an event of an item is about; None if it is about none."""
    table, part_index = _PLACES[type(event)]
    if not table:
        return None
    index = event.output_index
    return table, (index, getattr(event, part_index)) if part_index else (index,)


def _unknown_moves(event: Unknown, machine: Machine, memory: Memory) -> Moves:
    return _optional(UNKNOWN, _number_of(event), memory)


def _number_of(event: Any) -> int | None:
    """The number of any event: those that are not known here are numbered, too."""
    payload = getattr(event, "payload", None)
    number = payload.get("sequence_number") if type(payload) is dict else None
    return number if type(number) is int else None


def skipped(event: Event, memory: Memory) -> None:
    """Count the number of an event that was dropped: the next one goes on from there."""
    _count(_number_of(event), memory)


def _remember_number(event: SequencedEvent, machine: Machine, memory: Memory) -> None:
    if event.sequence_number is None and memory.next_number == 0:
        memory.next_number = None
    _count(event.sequence_number, memory)


def _remember_optional(event: SequencedEvent, machine: Machine, memory: Memory) -> None:
    _count(event.sequence_number, memory)


def _remember_unknown(event: Unknown, machine: Machine, memory: Memory) -> None:
    _count(_number_of(event), memory)


def _count(number: int | None, memory: Memory) -> None:
    if number is not None:
        memory.next_number = max(number + 1, memory.next_number or 0)


def _remember_lifecycle(event: LifecycleEvent, machine: Machine, memory: Memory) -> None:
    _remember_number(event, machine, memory)
    memory.created = memory.created or isinstance(event, Created)
    memory.response = dict(event.response)
    if memory.response_id is None:
        memory.response_id = event.response.get("id")


def _remember_terminal(event: LifecycleEvent, machine: Machine, memory: Memory) -> None:
    _remember_number(event, machine, memory)
    memory.items.clear()
    memory.parts.clear()


def _remember_added(event: OutputItemAdded, machine: Machine, memory: Memory) -> None:
    _remember_number(event, machine, memory)
    _remember_index(event.output_index, memory)
    memory.items[event.output_index] = _short(event.item.get("id"))


def _remember_done(event: OutputItemDone, machine: Machine, memory: Memory) -> None:
    _remember_number(event, machine, memory)
    _remember_index(event.output_index, memory)
    memory.items.pop(event.output_index, None)
    memory.count -= len(memory.parts.pop(event.output_index, ()))


def _remember_item(event: ItemEvent, machine: Machine, memory: Memory) -> None:
    index = event.output_index
    _remember_number(event, machine, memory)
    if machine.state("item", index) is grammar.Item.DONE:
        return
    _remember_index(index, memory)
    if memory.items.get(index) is None:
        memory.items[index] = _short(getattr(event, "item_id", None))
    place = _place(event)
    parts = memory.parts.setdefault(index, {})
    if place is not None and place not in parts:
        parts[place] = None
        memory.count += 1


def _remember_index(index: int, memory: Memory) -> None:
    memory.next_index = max(index + 1, memory.next_index or 0)


def _short(id_: Any) -> str | None:
    """As much of an id as is kept for as long as its item is open."""
    return id_[:_MAX_ID] if type(id_) is str else None


_PLACE_ROLES: dict[type, tuple[str, str]] = {
    TextDelta: ("content", "content_index"),
    TextDone: ("content", "content_index"),
    ContentPartEvent: ("content", "content_index"),
    OutputTextAnnotationAdded: ("content", "content_index"),
    SummaryPartEvent: ("summary", "summary_index"),
    ReasoningSummaryTextDelta: ("summary", "summary_index"),
    ReasoningSummaryTextDone: ("summary", "summary_index"),
    InputDelta: ("slot", ""),
    InputDone: ("slot", ""),
    CommandEvent: ("slot", "command_index"),
    StatusEvent: ("status", ""),
    SequencedEvent: ("", ""),
}

Rule = tuple[Callable[[Any, Machine, Any], Moves], Callable[[Any, Machine, Any], None]]

_RULES: dict[type, Rule] = {
    Created: (_created_moves, _remember_lifecycle),
    Queued: (_lifecycle_moves, _remember_lifecycle),
    InProgress: (_lifecycle_moves, _remember_lifecycle),
    LifecycleEvent: (_terminal_moves, _remember_terminal),
    OutputItemAdded: (_added_moves, _remember_added),
    OutputItemDone: (_done_moves, _remember_done),
    ItemEvent: (_item_moves, _remember_item),
    Keepalive: (_optional_moves, _remember_optional),
    Error: (_optional_moves, _remember_optional),
    SequencedEvent: (_audio_moves, _remember_number),
}

_Value = TypeVar("_Value")


def _by_role(cls: type, roles: dict[type, _Value]) -> _Value:
    """What is said of the nearest class that an event class stands under."""
    return next(roles[base] for base in cls.__mro__ if base in roles)


_CLASSES = (*PUBLISHED, *UNPUBLISHED)
_PLACES = {cls: _by_role(cls, _PLACE_ROLES) for cls in _CLASSES}

MOVES: dict[type, Callable[[Any, Machine, Any], Moves]] = {
    **{cls: _by_role(cls, _RULES)[0] for cls in _CLASSES},
    Unknown: _unknown_moves,
    DoneMark: asks(DONE_MARK),
}
REMEMBER: dict[type, Callable[[Any, Machine, Any], None]] = {
    **{cls: _by_role(cls, _RULES)[1] for cls in _CLASSES},
    Unknown: _remember_unknown,
}
