"""OpenAI Chat Completions: the shortcut for the events that nearly all of a stream consists of.

One more piece of text for a choice, or of the arguments of a tool call, is legal where the one before it
was legal and moved nothing. Such an event is known by its text, without a parser, and made from the one
before it. This module deliberately decides nothing else: whatever it does not recognise takes the long
way, and comes out the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from .._machine import Machine
from .._protocol import slot_setter
from .._template import Model, is_flat
from .events import REASONING_MEMBERS, ChatCompletionChunk

_TEXTS = ("content", *REASONING_MEMBERS)
_MASK = "obfuscation"
"""A random string that hides how long a chunk is."""


class Memory(Protocol):
    """What is needed of the memory of a stream."""

    model: Model


def learn(event: ChatCompletionChunk, machine: Machine, memory: Memory) -> None:
    """Expect a chunk to come again, if it adds one piece to one choice."""
    if memory.model.patience < 0 or len(event.choices) != 1 or not is_flat(event.payload, "choices"):
        return
    choice: Any = event.choices[0]
    delta: Any = choice.get("delta")
    if not delta or len(delta) != 1 or not is_flat(choice, "delta"):
        return
    (member,) = delta
    if member in _TEXTS and type(delta[member]) is str:
        memory.model.learn(event, machine.settled, choice, (member, _MASK))
    elif member == "tool_calls" and _is_piece(delta[member]):
        memory.model.learn(event, machine.settled, choice, ("arguments", _MASK))


def _is_piece(calls: Any) -> bool:
    """Whether tool calls in a delta are one piece of the arguments of one call."""
    function: Any = calls[0].get("function") if calls and len(calls) == 1 else None
    if not function or type(function.get("arguments")) is not str:
        return False
    return is_flat(calls[0], "function") and is_flat(function)


def repeat(data: str, raw: bytes, memory: Memory) -> ChatCompletionChunk | None:
    """Make the event of a chunk that goes on where the last one stood, as is expected."""
    model = memory.model
    found = model.template.read(data, None) if model.template else None
    if found is None:
        return None
    model.used = True
    choice = model.inner.copy()
    choice["delta"] = _delta(model, found[model.member])
    choices = [choice]
    payload = model.payload.copy()
    payload["choices"] = choices
    if _MASK in found:
        # Bedrock masks the choice instead of the chunk.
        masked = payload if _MASK in payload else choice
        masked[_MASK] = found[_MASK]
    event = _new(ChatCompletionChunk)
    _put_raw(event, raw)
    _put_payload(event, payload)
    _put_choices(event, choices)
    return event


def _delta(model: Model, text: str) -> Any:
    if model.member != "arguments":
        return {model.member: text}
    (piece,) = model.inner["delta"]["tool_calls"]
    return {"tool_calls": [{**piece, "function": {**piece["function"], "arguments": text}}]}


def repeats(data: str, name: str, machine: Machine, memory: Memory) -> bool:
    """Whether a text is that of an event that goes on where the last one stood."""
    return memory.model.fits(data, name, machine.settled, None)


_new = object.__new__
_put_raw, _put_payload, _put_choices = (
    slot_setter(ChatCompletionChunk, name) for name in ("raw", "payload", "choices")
)

LEARN: dict[type, Callable[[Any, Machine, Any], None]] = {ChatCompletionChunk: learn}
