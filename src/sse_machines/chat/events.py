"""OpenAI Chat Completions: the events, the JSON in them, and JSON to events.

Source: OpenAI's API reference, "The chat completion chunk object", with what the official SDK (openai
3.57) names, and members that other vendors are recorded to send. One wire type carries everything, so
the deltas of each choice can be asked for by the index of the choice. Nothing here knows in which order
chunks may come.

The nested JSON stays JSON: the ``TypedDict`` classes describe it for type checkers, with every member
that is known, and servers may send more. ``total=False`` marks what may be missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import attrs
from typing_extensions import TypedDict

from .._protocol import (
    INDEX_RANGE,
    MAX_INDEX,
    Comment,
    Done,
    EndOfStream,
    ErrorInfo,
    JSONObject,
    Malformed,
    Unknown,
    Violation,
    WireEvent,
    fault_of_counts,
    malformed,
    received,
    unknown,
    wire_decoder,
)

FinishReason = Literal["stop", "length", "tool_calls", "content_filter", "function_call"]
"""The published finish reasons; the list is open, and vendors send others. The last one is legacy."""


class FunctionCall(TypedDict, total=False):
    """A function's name, and a piece of its arguments; also the legacy ``function_call`` of a delta."""

    name: str | None
    arguments: str | None


class CustomToolCall(TypedDict, total=False):
    name: str | None
    input: str | None


class ToolCallDelta(TypedDict, total=False):
    """A piece of a tool call. ``index`` says of which; the first piece has ``id`` and the name."""

    index: int
    id: str | None
    type: str | None
    function: FunctionCall | None
    custom: CustomToolCall | None
    extra_content: JSONObject


class AudioDelta(TypedDict, total=False):
    """A piece of spoken answer; the last one has ``expires_at`` (Unix seconds) alone."""

    id: str
    data: str
    transcript: str
    expires_at: int


class Delta(TypedDict, total=False):
    """What a chunk adds to a choice. Reasoning has no published member; each vendor has its own."""

    role: str | None
    content: str | list[JSONObject] | None
    refusal: str | None
    tool_calls: list[ToolCallDelta] | None
    function_call: FunctionCall | None
    audio: AudioDelta | None
    annotations: list[JSONObject] | None
    reasoning_content: str | None
    reasoning: str | None
    reasoning_details: list[JSONObject] | None


class TokenLogprob(TypedDict, total=False):
    token: str
    logprob: float
    bytes: list[int] | None
    top_logprobs: list[JSONObject]


class Logprobs(TypedDict, total=False):
    content: list[TokenLogprob] | None
    refusal: list[TokenLogprob] | None


class Choice(TypedDict, total=False):
    """One of the answers; the members behind ``logprobs`` are Azure's, OpenRouter's and vLLM's."""

    index: int
    delta: Delta | None
    finish_reason: str | None
    logprobs: Logprobs | None
    content_filter_results: JSONObject
    content_filter_offsets: JSONObject
    native_finish_reason: str | None
    stop_reason: Any
    matched_stop: Any
    token_ids: list[int] | None


class Usage(TypedDict, total=False):
    """Token counts: totals so far. They replace, they do not add."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: JSONObject | None
    completion_tokens_details: JSONObject | None


@attrs.frozen(kw_only=True)
class ChatCompletionChunk(WireEvent):
    """A piece of the answer, or of several answers at once, or something about them.

    ``choices`` is empty where the server sent null or nothing: in the chunk that has the usage, and in
    chunks about filters and moderation. To make a chunk, give ``id``, ``created`` and ``model`` as
    members of ``payload``.
    """

    type: ClassVar[str] = "chat.completion.chunk"
    tag: ClassVar[str] = "object"
    choices: list[Choice] = attrs.field(factory=list)
    usage: Usage | None = None

    @property
    def id(self) -> str | None:
        """The id of the answer, the same in every chunk; ``""`` in chunks that are about filters."""
        return self._text("id")

    @property
    def model(self) -> str | None:
        """The model that answers."""
        return self._text("model")

    @property
    def created(self) -> int | None:
        """When the answer began, in Unix seconds. Some servers count on from chunk to chunk."""
        created = self.payload.get("created")
        return created if type(created) is int else None

    @property
    def service_tier(self) -> str | None:
        """How the request was served, where the server says so."""
        return self._text("service_tier")

    @property
    def system_fingerprint(self) -> str | None:
        """The configuration of the server, where it says so."""
        return self._text("system_fingerprint")

    @property
    def obfuscation(self) -> str | None:
        """Random text that hides the size of the chunk; it belongs to no answer."""
        return self._text("obfuscation")

    @property
    def moderation(self) -> JSONObject | None:
        """What moderation says of ``input`` and ``output``, where that was asked for."""
        moderation = self.payload.get("moderation")
        return moderation if type(moderation) is dict else None

    @property
    def deltas(self) -> Iterator[tuple[int, Delta]]:
        """The index of each choice that the chunk adds to, and what it adds."""
        for choice in self.choices:
            delta = choice.get("delta")
            if delta:
                yield choice.get("index", 0), delta

    def text(self, index: int = 0) -> str:
        """The piece of text for one choice, ``""`` if there is none."""
        return "".join(texts_of(self._members(index, ("content",)), "text"))

    def reasoning(self, index: int = 0) -> str:
        """The piece of reasoning for one choice in any vendor's spelling, ``""`` if there is none."""
        values = self._members(index, REASONING_MEMBERS)
        return next(values, "") or "".join(texts_of(self._members(index, ("content",)), "thinking"))

    def finish_reason(self, index: int = 0) -> str | None:
        """Why one choice has ended, None if it has not ended here."""
        reasons = [choice.get("finish_reason") for choice in self._entries(index)]
        return next((reason for reason in reversed(reasons) if reason), None)

    def tool_calls(self, index: int = 0) -> list[ToolCallDelta]:
        """The pieces of tool calls for one choice."""
        return [call for calls in self._members(index, ("tool_calls",)) for call in calls]

    def _text(self, name: str) -> str | None:
        value = self.payload.get(name)
        return value if type(value) is str else None

    def _entries(self, index: int) -> Iterator[Choice]:
        return (choice for choice in self.choices if choice.get("index", 0) == index)

    def _members(self, index: int, names: tuple[str, ...]) -> Iterator[Any]:
        for choice in self._entries(index):
            delta: Any = choice.get("delta") or {}
            yield from (delta[name] for name in names if delta.get(name))


@attrs.frozen(kw_only=True)
class Error(WireEvent):
    """The answer has failed; nothing but the end mark and the end of the input follows.

    ``error`` is the object with ``message``, ``type``, ``param`` and ``code`` where the server sends
    one, and whatever it sent instead where it does not.
    """

    type: ClassVar[str] = "error"
    tag: ClassVar[str] = ""
    error: Any

    @property
    def info(self) -> ErrorInfo:
        """The error in the same terms for all protocols."""
        return ErrorInfo.of(self.error, RETRYABLE)

    @property
    def chunk(self) -> ChatCompletionChunk | None:
        """What a chunk that carries an error says besides, such as the last usage; None if nothing."""
        if type(self.payload.get("choices")) is not list:
            return None
        try:
            return _chunk(self.payload, "", self.raw or b"")
        except Malformed as fault:
            return fault.event if isinstance(fault.event, ChatCompletionChunk) else None


AnyEvent = ChatCompletionChunk | Done | Error | Unknown | Comment | Violation | EndOfStream
"""Everything that a receiver of this protocol can give out."""

REASONING_MEMBERS = ("reasoning_content", "reasoning")
"""Where vendors put reasoning: DeepSeek, Qwen, xAI and vLLM; Groq, Cerebras and OpenRouter."""

RETRYABLE: dict[str | int, bool] = {
    "rate_limit_exceeded": True,
    "rate_limit_error": True,
    "server_error": True,
    "server_is_overloaded": True,
    "overloaded_error": True,
    "api_error": True,
    "timeout": True,
    "InternalServerError": True,
    "invalid_request_error": False,
    "authentication_error": False,
    "permission_error": False,
    "not_found_error": False,
    "insufficient_quota": False,
    "BadRequestError": False,
    **dict.fromkeys((408, 409, 429, 500, 502, 503, 504, 529), True),
    **dict.fromkeys((400, 401, 402, 403, 404, 413, 422), False),
}
"""Error types and codes that are published or recorded, and HTTP statuses sent as codes."""

EVENT_TYPES = (ChatCompletionChunk.type, Error.type, Done.type)
"""The wire names of all events."""

_COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")
_OBJECT = "chat.completion"


def decode(payload: Any, name: str, raw: bytes) -> AnyEvent:
    """Turn the JSON of a frame into an event.

    Raises:
        Malformed: The payload is not what a chunk is; it carries the event to go on with.
    """
    if type(payload) is not dict:
        raise malformed("the payload must be an object", payload, name, raw)
    error = _error_of(payload, name)
    if error is not None:
        return received(Error(error=error, payload=payload), raw)
    if payload.get("choices") is None and (name not in ("", "message") or not _is_chunk(payload)):
        return unknown(payload, name, raw)
    return _chunk(payload, name, raw)


def recognises(payload: Any, name: str) -> bool:
    """Whether a frame can only belong to this protocol."""
    if type(payload) is not dict:
        return False
    if "choices" in payload or str(payload.get("object")).startswith(_OBJECT):
        return True
    if "type" in payload or name not in ("", "message", Error.type):
        return payload.get("object") == Error.type
    return _error_of(payload, "") is not None or _is_chunk(payload)


def _error_of(payload: JSONObject, name: str) -> Any:
    """The error in a payload, None if there is none, in the order that misses and invents none."""
    error = payload.get("error")
    if name == Error.type:
        return error or payload
    if error:
        return error
    if payload.get("object") == Error.type:
        return payload
    choices = payload.get("choices")
    for choice in choices if type(choices) is list else ():
        if type(choice) is dict and choice.get("finish_reason") == Error.type:
            return choice.get("error") or payload
    return None


def _is_chunk(payload: JSONObject) -> bool:
    """Whether an object without choices is a chunk all the same."""
    return str(payload.get("object")).startswith(_OBJECT) or type(payload.get("usage")) is dict


def _chunk(payload: JSONObject, name: str, raw: bytes) -> ChatCompletionChunk:
    """Make a chunk of a payload, and check every member that moves something."""
    choices = payload.get("choices")
    if choices is None:
        choices = []
    fault = "choices must be an array"
    if type(choices) is list:
        fault = next(filter(None, map(_fault_of_choice, choices)), "")
    if fault:
        raise malformed(fault, payload, name, raw)
    event = _fields(payload, name, raw)
    object.__setattr__(event, "choices", choices)
    deviation = _deviation(event)
    if deviation is not None:
        raise Malformed(*deviation, event)
    return event


def _fault_of_choice(choice: Any) -> str:
    if type(choice) is not dict:
        return "a choice must be an object"
    index = choice.get("index", 0)
    if type(index) is not int:
        return "index of a choice must be an integer"
    if not 0 <= index <= MAX_INDEX:
        return INDEX_RANGE
    if not _is_text(choice.get("finish_reason")):
        return "finish_reason must be a string"
    delta = choice.get("delta")
    if delta is None:
        return ""
    return _fault_of_delta(delta) if type(delta) is dict else "a delta must be an object"


def _fault_of_delta(delta: JSONObject) -> str:
    content, calls = delta.get("content"), delta.get("tool_calls")
    if not _is_text(content) and type(content) is not list:
        return "content of a delta must be a string"
    if not _is_text(delta.get("role")):
        return "role of a delta must be a string"
    if calls is None:
        return ""
    if type(calls) is not list:
        return "tool_calls must be an array"
    return next(filter(None, map(_fault_of_call, calls)), "")


def _fault_of_call(call: Any) -> str:
    if type(call) is not dict:
        return "a tool call must be an object"
    if not _is_text(call.get("id")):
        return "id of a tool call must be a string"
    for member in ("function", "custom"):
        tool = call.get(member)
        if tool is not None and type(tool) is not dict:
            return f"{member} of a tool call must be an object"
        if tool is not None and not _is_text(tool.get("name")):
            return f"name of a {member} must be a string"
    return ""


def _deviation(event: ChatCompletionChunk) -> tuple[str, str] | None:
    """The first thing in a chunk that can be read, but is not as it is published: code and message."""
    for choice in event.choices:
        if "index" not in choice:
            return "missing_index", "a choice without its index counts as the first one"
        delta: Any = choice.get("delta") or {}
        if type(delta.get("content")) is list:
            return "content_not_string", "content is a list of parts, as Mistral sends reasoning"
        for call in delta.get("tool_calls") or ():
            if not _is_text((call.get("function") or {}).get("arguments")):
                return "arguments_not_string", "arguments came as JSON instead of its text"
    fault = fault_of_counts(event.usage, _COUNTS)
    return ("malformed_usage", fault) if fault else None


def _is_text(value: Any) -> bool:
    return value is None or type(value) is str


def texts_of(contents: Iterator[Any], kind: str) -> Iterator[str]:
    """The texts in a content, be it a string (which is text) or a list of typed parts."""
    for content in contents:
        if type(content) is str:
            yield content if kind == "text" else ""
            continue
        for part in content:
            inner = part.get(kind) if type(part) is dict else None
            if type(inner) is str:
                yield inner
            elif type(inner) is list:
                yield from texts_of(iter([inner]), "text")


_fields = wire_decoder(ChatCompletionChunk)
