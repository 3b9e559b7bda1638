"""Anthropic Messages: the events, the JSON in them, and JSON to events.

Source: Anthropic's API reference, "Streaming Messages" and "Errors", with the beta members that the
official SDK (anthropic 2.14) names. Nothing here knows in which order events may come.

The nested JSON stays JSON: the ``TypedDict`` classes describe it for type checkers, with every member
that is known, and servers may send more. ``total=False`` marks what may be missing.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import attrs
from typing_extensions import NotRequired, TypedDict

from .._protocol import (
    INDEX_RANGE,
    MAX_INDEX,
    Comment,
    EndOfStream,
    ErrorInfo,
    JSONObject,
    Malformed,
    Unknown,
    Violation,
    WireEvent,
    fault_of_counts,
    malformed,
    unknown,
    wire_decoder,
)

StopReason = Literal[
    "end_turn",
    "max_tokens",
    "stop_sequence",
    "tool_use",
    "pause_turn",
    "refusal",
    "model_context_window_exceeded",
    "compaction",
]
"""The published stop reasons; the list is open. ``compaction`` is beta."""


class StopDetails(TypedDict, total=False):
    type: str
    category: str | None
    explanation: str | None
    fallback_credit_token: str | None
    fallback_has_prefill_claim: bool | None
    recommended_model: str | None


class Usage(TypedDict, total=False):
    """Token counts. In ``message_delta`` they are totals so far: they replace, they do not add."""

    input_tokens: int | None
    output_tokens: int
    cache_creation_input_tokens: int | None
    cache_read_input_tokens: int | None
    cache_creation: dict[str, int] | None
    server_tool_use: dict[str, int] | None
    output_tokens_details: dict[str, int] | None
    service_tier: str | None
    speed: str | None
    inference_geo: str | None
    iterations: list[JSONObject] | None
    fallback_credit: Any


class Message(TypedDict, total=False):
    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    model: str
    content: list[JSONObject]
    stop_reason: str | None
    stop_sequence: str | None
    stop_details: StopDetails | None
    container: JSONObject | None
    diagnostics: JSONObject | None
    usage: Usage
    context_management: JSONObject | None
    input_transformations: Any


class TextBlock(TypedDict):
    type: Literal["text"]
    text: str
    citations: NotRequired[list[JSONObject] | None]


class ThinkingBlock(TypedDict):
    type: Literal["thinking"]
    thinking: str
    signature: NotRequired[str]


class RedactedThinkingBlock(TypedDict):
    type: Literal["redacted_thinking"]
    data: str


class ToolUseBlock(TypedDict):
    type: Literal["tool_use"]
    id: str
    name: str
    input: JSONObject
    caller: NotRequired[JSONObject]
    toolset_name: NotRequired[str]


class ServerToolUseBlock(TypedDict):
    type: Literal["server_tool_use"]
    id: str
    name: str
    input: JSONObject
    caller: NotRequired[JSONObject]


class MCPToolUseBlock(TypedDict):
    type: Literal["mcp_tool_use"]
    id: str
    name: str
    server_name: str
    input: JSONObject


class ToolResultBlock(TypedDict):
    """A result of a tool that ran on the server; it comes whole in ``content_block_start``."""

    type: Literal[
        "web_search_tool_result",
        "web_fetch_tool_result",
        "code_execution_tool_result",
        "bash_code_execution_tool_result",
        "text_editor_code_execution_tool_result",
        "tool_search_tool_result",
        "advisor_tool_result",
        "mcp_tool_result",
    ]
    tool_use_id: str
    content: Any
    caller: NotRequired[JSONObject]
    is_error: NotRequired[bool]


class ContainerUploadBlock(TypedDict):
    type: Literal["container_upload"]
    file_id: str


class CompactionBlock(TypedDict):
    type: Literal["compaction"]
    content: NotRequired[str | None]
    encrypted_content: NotRequired[str | None]
    signature: NotRequired[str | None]
    tool_changes: NotRequired[Any]


# The functional form, because "from" is a keyword.
FallbackBlock = TypedDict(
    "FallbackBlock",
    {
        "type": Literal["fallback"],
        "from": JSONObject,
        "to": JSONObject,
        "trigger": NotRequired[Any],
    },
)


class MCPToolListingBlock(TypedDict):
    type: Literal["mcp_tool_listing"]
    mcp_server_name: str
    tools: list[JSONObject]


ContentBlock = (
    TextBlock
    | ThinkingBlock
    | RedactedThinkingBlock
    | ToolUseBlock
    | ServerToolUseBlock
    | MCPToolUseBlock
    | ToolResultBlock
    | ContainerUploadBlock
    | CompactionBlock
    | FallbackBlock
    | MCPToolListingBlock
)


class TextDelta(TypedDict):
    type: Literal["text_delta"]
    text: str


class CitationsDelta(TypedDict):
    type: Literal["citations_delta"]
    citation: JSONObject


class InputJSONDelta(TypedDict):
    type: Literal["input_json_delta"]
    partial_json: str


class ThinkingDelta(TypedDict):
    type: Literal["thinking_delta"]
    thinking: str
    estimated_tokens: NotRequired[int]


class SignatureDelta(TypedDict):
    type: Literal["signature_delta"]
    signature: str


class CompactionDelta(TypedDict):
    type: Literal["compaction_delta"]
    content: NotRequired[str | None]
    encrypted_content: NotRequired[str | None]


Delta = TextDelta | CitationsDelta | InputJSONDelta | ThinkingDelta | SignatureDelta | CompactionDelta


class StopDelta(TypedDict, total=False):
    """What a ``message_delta`` changes in the message."""

    stop_reason: str | None
    stop_sequence: str | None
    stop_details: StopDetails | None
    container: JSONObject | None


@attrs.frozen(kw_only=True)
class MessageStart(WireEvent):
    """The answer begins. ``message`` has everything but its content, normally."""

    type: ClassVar[str] = "message_start"
    message: Message


@attrs.frozen(kw_only=True)
class ContentBlockStart(WireEvent):
    """A content block begins; ``index`` is its place in the final ``content``."""

    type: ClassVar[str] = "content_block_start"
    index: int
    content_block: ContentBlock


@attrs.frozen(kw_only=True)
class ContentBlockDelta(WireEvent):
    """A piece of a content block."""

    type: ClassVar[str] = "content_block_delta"
    index: int
    delta: Delta


@attrs.frozen(kw_only=True)
class ContentBlockStop(WireEvent):
    """A content block is complete."""

    type: ClassVar[str] = "content_block_stop"
    index: int


@attrs.frozen(kw_only=True)
class MessageDelta(WireEvent):
    """The stop reason, and the usage so far: totals, not increments."""

    type: ClassVar[str] = "message_delta"
    delta: StopDelta
    usage: Usage | None = None


@attrs.frozen(kw_only=True)
class MessageStop(WireEvent):
    """The answer is complete."""

    type: ClassVar[str] = "message_stop"


@attrs.frozen(kw_only=True)
class Ping(WireEvent):
    """A sign of life."""

    type: ClassVar[str] = "ping"


@attrs.frozen(kw_only=True)
class Error(WireEvent):
    """The answer has failed; nothing but the end of the input follows.

    ``error`` is an object with ``type`` and ``message`` where the server keeps to the protocol, and
    whatever it sent instead where it does not.
    """

    type: ClassVar[str] = "error"
    error: Any

    @property
    def info(self) -> ErrorInfo:
        """The error in the same terms for all protocols."""
        return ErrorInfo.of(self.error, RETRYABLE)


AnyEvent = (
    MessageStart
    | ContentBlockStart
    | ContentBlockDelta
    | ContentBlockStop
    | MessageDelta
    | MessageStop
    | Ping
    | Error
    | Unknown
    | Comment
    | Violation
    | EndOfStream
)
"""Everything that a receiver of this protocol can give out."""

RETRYABLE: dict[str | int, bool] = {
    "rate_limit_error": True,
    "api_error": True,
    "timeout_error": True,
    "overloaded_error": True,
    "conflict_error": True,
    "invalid_request_error": False,
    "authentication_error": False,
    "billing_error": False,
    "permission_error": False,
    "not_found_error": False,
    "request_too_large": False,
}
"""The published error types (HTTP 429, 500, 504, 529, 409; then 400, 401, 402, 403, 404, 413)."""

DELTA_TEXTS = {
    "text_delta": "text",
    "input_json_delta": "partial_json",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
}
"""The delta types that carry text, and the member it is in."""

_REQUIRED = ("id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage")
"""The members that every published message has."""

_COUNTS = (
    "input_tokens",
    "output_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
)


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
    return decoder(payload, name, raw)


def recognises(payload: Any, name: str) -> bool:
    """Whether a frame can only belong to this protocol.

    An error looks like one of Responses if it is numbered or flat.
    """
    kind = payload.get("type", name) if type(payload) is dict else None
    if kind == Error.type:
        return "sequence_number" not in payload and "error" in payload
    return type(kind) is str and kind in _DECODERS


def _decode_unnamed(payload: Any, name: str, raw: bytes) -> AnyEvent:
    """Decode what has no type that is known: flat errors, lost types, and events of the future."""
    if type(payload) is not dict:
        raise malformed("the payload must be an object", payload, name, raw)
    if name == "error":
        # Seen from forks of llama.cpp: {"code":…, "message":…, "type":"server_error"}.
        raise Malformed("flat_error", "an error without its object", _error(payload, name, raw))
    if "type" in payload:
        if type(payload["type"]) is not str:
            raise malformed("type must be a string", payload, name, raw)
        return unknown(payload, name, raw)
    decoder = _DECODERS.get(Error.type if payload.get("error") else name)
    if decoder is None:
        raise malformed("the payload has no type", payload, name, raw)
    raise Malformed("missing_type", "only the frame names the event", decoder(payload, name, raw))


def _decode_message_start(payload: JSONObject, name: str, raw: bytes) -> AnyEvent:
    event = _message_start(payload, name, raw)
    missing = [member for member in _REQUIRED if member not in event.message]
    if missing:
        raise Malformed("missing_member", f"the message has no {', '.join(missing)}", event)
    return _with_counts(event, event.message.get("usage"))


def _decode_block_start(payload: JSONObject, name: str, raw: bytes) -> AnyEvent:
    event = _block_start(payload, name, raw)
    if type(event.content_block.get("type")) is not str:
        raise malformed("a content block must have a type", payload, name, raw)
    _check_index(event.index, payload, name, raw)
    return event


def _decode_block_delta(payload: JSONObject, name: str, raw: bytes) -> AnyEvent:
    event = _block_delta(payload, name, raw)
    _check_index(event.index, payload, name, raw)
    delta: Any = event.delta
    kind = delta.get("type")
    if type(kind) is not str:
        raise malformed("a delta must have a type", payload, name, raw)
    if kind in DELTA_TEXTS and type(delta.get(DELTA_TEXTS[kind])) is not str:
        raise malformed(f"{DELTA_TEXTS[kind]} of a {kind} must be a string", payload, name, raw)
    return event


def _decode_block_stop(payload: JSONObject, name: str, raw: bytes) -> AnyEvent:
    event = _block_stop(payload, name, raw)
    _check_index(event.index, payload, name, raw)
    return event


def _decode_message_delta(payload: JSONObject, name: str, raw: bytes) -> AnyEvent:
    event = _message_delta(payload, name, raw)
    if event.usage is None:
        raise Malformed("missing_usage", "a message_delta without usage", event)
    return _with_counts(event, event.usage)


def _decode_error(payload: JSONObject, name: str, raw: bytes) -> AnyEvent:
    event = _error(payload, name, raw)
    if type(payload.get("error")) is not dict:
        raise Malformed("error_not_object", "an error event whose error is no object", event)
    return event


def _error(payload: JSONObject, name: str, raw: bytes) -> Error:
    """An error event, whose error may lie flat in the payload."""
    event = _error_event(payload, name, raw)
    if "error" not in payload:
        object.__setattr__(event, "error", payload)
    return event


def _check_index(index: int, payload: JSONObject, name: str, raw: bytes) -> None:
    if not 0 <= index <= MAX_INDEX:
        raise malformed(INDEX_RANGE, payload, name, raw)


def _with_counts(event: MessageStart | MessageDelta, usage: Any) -> AnyEvent:
    fault = fault_of_counts(usage, _COUNTS)
    if fault:
        raise Malformed("malformed_usage", fault, event)
    return event


_message_start = wire_decoder(MessageStart, message=dict)
_block_start = wire_decoder(ContentBlockStart, index=int, content_block=dict)
_block_delta = wire_decoder(ContentBlockDelta, index=int, delta=dict)
_block_stop = wire_decoder(ContentBlockStop, index=int)
_message_delta = wire_decoder(MessageDelta, delta=dict)
_error_event = wire_decoder(Error)

_DECODERS = {
    MessageStart.type: _decode_message_start,
    ContentBlockStart.type: _decode_block_start,
    ContentBlockDelta.type: _decode_block_delta,
    ContentBlockStop.type: _decode_block_stop,
    MessageDelta.type: _decode_message_delta,
    MessageStop.type: wire_decoder(MessageStop),
    Ping.type: wire_decoder(Ping),
    Error.type: _decode_error,
}
EVENT_TYPES = tuple(_DECODERS)
"""The wire names of all published events."""
