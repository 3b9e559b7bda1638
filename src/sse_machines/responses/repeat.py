"""OpenAI Responses: the shortcut for the events that nearly all of a stream consists of.

One more delta in the same part of the same item, with the number that is due, is legal where the one
before it was legal and moved nothing. Such an event is known by its text, without a parser, and made
from the one before it. This module deliberately decides nothing else: whatever it does not recognise
takes the long way, and comes out the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from .._machine import Machine
from .._protocol import slot_setter
from .._template import Model, is_flat
from .events import PUBLISHED, UNPUBLISHED, ReasoningSummaryTextDelta
from .roles import InputDelta, ItemEvent, TextDelta

Delta = TextDelta | InputDelta | ReasoningSummaryTextDelta
_LOGPROBS = "logprobs"


class Memory(Protocol):
    """What is needed of the memory of a stream."""

    model: Model
    next_number: int | None


def learn(event: Delta, machine: Machine, memory: Memory) -> None:
    """Expect a delta to come again, with another text and the next number."""
    payload = event.payload
    plain = is_flat(payload, _LOGPROBS) and not payload.get(_LOGPROBS)
    if plain and type(event.delta) is str:
        number = "" if memory.next_number is None else "sequence_number"
        memory.model.learn(event, machine.settled, payload, ("delta", "obfuscation"), number)
        memory.model.maker = _MAKERS[event.type]


def repeat(data: str, raw: bytes, memory: Memory) -> Any:
    """Make the event of a delta that goes on where the last one stood, as is expected."""
    model = memory.model
    number = memory.next_number
    found = model.template.read(data, number) if model.template else None
    if found is None:
        return None
    model.used = True
    payload = model.payload.copy()
    payload.update(found)
    if number is not None:
        payload["sequence_number"] = number
        memory.next_number = number + 1
    if payload.get(_LOGPROBS) is not None:
        payload[_LOGPROBS] = []
    # The other fields are looked up in the payload when somebody asks for them.
    cls, put_delta = model.maker
    event = _new(cls)
    _put_raw(event, raw)
    _put_payload(event, payload)
    put_delta(event, found["delta"])
    return event


def repeats(data: str, name: str, machine: Machine, memory: Memory) -> bool:
    """Whether a text is that of a delta that goes on where the last one stood; it is counted then."""
    number = memory.next_number
    found = memory.model.fits(data, name, machine.settled, number)
    if found and number is not None:
        memory.next_number = number + 1
    return found


_new = object.__new__
_put_raw, _put_payload = slot_setter(ItemEvent, "raw"), slot_setter(ItemEvent, "payload")
_DELTAS: tuple[type[Delta], ...] = tuple(
    cls
    for cls in (*PUBLISHED, *UNPUBLISHED)
    if issubclass(cls, TextDelta | InputDelta | ReasoningSummaryTextDelta)
)
_MAKERS = {cls.type: (cls, slot_setter(cls, "delta")) for cls in _DELTAS}
LEARN: dict[type, Callable[[Any, Machine, Any], None]] = dict.fromkeys(_DELTAS, learn)
