"""OpenAI Responses: JSON to events.

Every class of `events` gets a decoder that checks the types of its fields. Indexes are keys off the wire
and have to be small numbers; where one is missing, it counts as 0 and is reported, since gateways that
abbreviate leave them out. Nothing here knows in which order events may come.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._protocol import (
    INDEX_RANGE,
    MAX_INDEX,
    JSONObject,
    Malformed,
    fault_of_counts,
    malformed,
    unknown,
    wire_decoder,
)
from .events import (
    PUBLISHED,
    UNPUBLISHED,
    AnyEvent,
    CodeInterpreterCallCodeDelta,
    Error,
    ShellCallOutputContentDelta,
)
from .roles import LifecycleEvent, SequencedEvent

Decoder = Callable[[JSONObject, str, bytes], Any]

OLD_NAMES = {
    "response.output_text_annotation.added": "response.output_text.annotation.added",
    "response.code_interpreter_call.code.delta": "response.code_interpreter_call_code.delta",
    "response.code_interpreter_call.code.done": "response.code_interpreter_call_code.done",
    "response.mcp_call.arguments_delta": "response.mcp_call_arguments.delta",
    "response.mcp_call.arguments_done": "response.mcp_call_arguments.done",
    "response.reasoning.delta": "response.reasoning_text.delta",
    "response.reasoning.done": "response.reasoning_text.done",
    "response.reasoning_summary.delta": "response.reasoning_summary_text.delta",
    "response.reasoning_summary.done": "response.reasoning_summary_text.done",
}
"""What OpenAI called some events in the spring of 2025, and what they are called now."""

_INDEXES = (
    "output_index",
    "content_index",
    "summary_index",
    "command_index",
    "annotation_index",
    "partial_image_index",
)
_KINDS: dict[str, type | None] = {
    "response": dict,
    "item": dict,
    "part": dict,
    "delta": str,
    "text": str,
    "refusal": str,
    "arguments": str,
    "input": str,
    "code": str,
    "diff": str,
    "command": str,
    "output": list,
    "partial_image_b64": str,
}
_OTHER_KINDS: dict[type, dict[str, type | None]] = {
    # What a command printed comes as an object; null counts as no code.
    ShellCallOutputContentDelta: {"delta": dict},
    CodeInterpreterCallCodeDelta: {"delta": None},
}
_REQUIRED = (
    "id",
    "object",
    "created_at",
    "model",
    "output",
    "parallel_tool_calls",
    "tool_choice",
    "tools",
)
"""The members that every published response has."""

_COUNTS = ("input_tokens", "output_tokens", "total_tokens")


def decode(payload: Any, name: str, raw: bytes) -> AnyEvent:
    """Turn the JSON of a frame into an event.

    Raises:
        Malformed: The payload is not what its type says; it carries the event to go on with.
    """
    try:
        decoder = _DECODERS[payload["type"]]
    except (KeyError, TypeError):
        # No object, no type, a type that is not even hashable, or one that is not known.
        return _decode_unnamed(payload, name, raw)
    event: AnyEvent = decoder(payload, name, raw)
    return event


def _decode_unnamed(payload: Any, name: str, raw: bytes) -> AnyEvent:
    """Decode what has no type that is known: old names, lost types, and events of the future."""
    if type(payload) is not dict:
        raise malformed("the payload must be an object", payload, name, raw)
    if "type" not in payload:
        return _decode_untyped(payload, name, raw)
    if type(payload["type"]) is not str:
        raise malformed("type must be a string", payload, name, raw)
    new = OLD_NAMES.get(payload["type"])
    if new is None:
        return unknown(payload, name, raw)
    event = _DECODERS[new](payload, name, raw)
    raise Malformed("old_event_name", f"{payload['type']} is called {new} since 2025", event)


def _decode_untyped(payload: JSONObject, name: str, raw: bytes) -> AnyEvent:
    decoder = _DECODERS.get(Error.type if payload.get("error") else name)
    if decoder is None:
        raise malformed("the payload has no type", payload, name, raw)
    raise Malformed("missing_type", "only the frame names the event", decoder(payload, name, raw))


def recognises(payload: Any, name: str) -> bool:
    """Whether a frame can only belong to this protocol.

    An error that is not numbered looks like one of Messages, unless it is flat.
    """
    kind = payload.get("type", name) if type(payload) is dict else None
    if kind == Error.type:
        return "sequence_number" in payload or ("error" not in payload and "message" in payload)
    return type(kind) is str and (kind.startswith("response.") or kind in _DECODERS)


def _decoder(cls: type[SequencedEvent]) -> Decoder:
    kinds = {name: kind for name, kind in _KINDS.items() if name in cls.wire_names}
    kinds.update(_OTHER_KINDS.get(cls, {}))
    decode_fields = wire_decoder(cls, **kinds)
    indexes = [name for name in _INDEXES if name in cls.wire_names]
    return _indexed(decode_fields, indexes) if indexes else decode_fields


def _indexed(decode_fields: Decoder, indexes: list[str]) -> Decoder:
    """Let a decoder check the indexes, too."""

    def decode_indexed(payload: JSONObject, name: str, raw: bytes) -> Any:
        event = decode_fields(payload, name, raw)
        missing = [index for index in indexes if payload.get(index) is None]
        for index in indexes:
            if index in missing:
                object.__setattr__(event, index, 0)
            elif type(payload[index]) is not int or not 0 <= payload[index] <= MAX_INDEX:
                raise malformed(f"{index}: {INDEX_RANGE}", payload, name, raw)
        if missing:
            raise Malformed("missing_index", f"{' and '.join(missing)} counts as 0", event)
        return event

    return decode_indexed


def _lifecycle_decoder(cls: type[LifecycleEvent]) -> Decoder:
    decode_fields = wire_decoder(cls, response=dict)

    def decode_lifecycle(payload: JSONObject, name: str, raw: bytes) -> Any:
        event = decode_fields(payload, name, raw)
        response = event.response
        fault = fault_of_counts(response.get("usage"), _COUNTS)
        if fault:
            raise Malformed("malformed_usage", fault, event)
        missing = [member for member in _REQUIRED if response.get(member) is None]
        if missing:
            raise Malformed("missing_member", f"the response has no {', '.join(missing)}", event)
        return event

    return decode_lifecycle


def _decode_error(payload: JSONObject, name: str, raw: bytes) -> Error:
    """An error event: nested, as OpenAI sends it, or flat, as it is published."""
    event = _error(payload, name, raw)
    if not event.error:
        flat = {key: value for key, value in payload.items() if key not in ("type", "sequence_number")}
        object.__setattr__(event, "error", flat)
    return event


_error = wire_decoder(Error)

_DECODERS: dict[str, Decoder] = {
    **{cls.type: _decoder(cls) for cls in (*PUBLISHED, *UNPUBLISHED)},
    **{
        cls.type: _lifecycle_decoder(cls)
        for cls in (*PUBLISHED, *UNPUBLISHED)
        if issubclass(cls, LifecycleEvent)
    },
    Error.type: _decode_error,
}
EVENT_TYPES = tuple(_DECODERS)
"""The wire names of all events."""
