"""Anthropic Messages: the shortcut for the events that nearly all of a stream consists of.

One more delta of a content block is legal where the one before it was legal and moved nothing. Such an
event is known by its text, without a parser, and made from the one before it. This module deliberately
decides nothing else: whatever it does not recognise takes the long way, and comes out the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from .._machine import Machine
from .._protocol import slot_setter
from .._template import Model, is_flat
from .events import DELTA_TEXTS, ContentBlockDelta


class Memory(Protocol):
    """What is needed of the memory of a stream."""

    model: Model


def learn(event: ContentBlockDelta, machine: Machine, memory: Memory) -> None:
    """Expect a delta to come again, with another text."""
    delta: Any = event.delta
    member = DELTA_TEXTS.get(delta["type"])
    if member and is_flat(event.payload, "delta") and is_flat(delta):
        memory.model.learn(event, machine.settled, delta, (member,))


def repeat(data: str, raw: bytes, memory: Memory) -> ContentBlockDelta | None:
    """Make the event of a delta that goes on where the last one stood, as is expected."""
    model = memory.model
    found = model.template.read(data, None) if model.template else None
    if found is None:
        return None
    model.used = True
    delta = model.inner.copy()
    delta.update(found)
    payload = model.payload.copy()
    payload["delta"] = delta
    # The index is looked up in the payload when somebody asks for it.
    event = _new(ContentBlockDelta)
    _put_raw(event, raw)
    _put_payload(event, payload)
    _put_delta(event, delta)
    return event


def repeats(data: str, name: str, machine: Machine, memory: Memory) -> bool:
    """Whether a text is that of an event that goes on where the last one stood."""
    return memory.model.fits(data, name, machine.settled, None)


_new = object.__new__
_put_raw, _put_payload, _put_delta = (
    slot_setter(ContentBlockDelta, name) for name in ("raw", "payload", "delta")
)

LEARN: dict[type, Callable[[Any, Machine, Any], None]] = {ContentBlockDelta: learn}
