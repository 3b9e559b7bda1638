"""OpenAI Responses: the roles that events play, and the JSON in them.

Source: OpenAI's API reference, "Streaming events" of the Responses API, with what the official SDK
(openai 3.57) names. A role has the fields; the classes of `events` under it have the wire's names.

The nested JSON stays JSON: the ``TypedDict`` classes describe it for type checkers, with the members
that are known, and servers may send more. ``total=False`` marks what may be missing.
"""

from __future__ import annotations

from typing import Any, Literal

import attrs
from typing_extensions import TypedDict

from .._protocol import ErrorInfo, JSONObject, WireEvent

RETRYABLE: dict[str | int, bool] = {
    "server_error": True,
    "rate_limit_exceeded": True,
    "server_is_overloaded": True,
    "vector_store_timeout": True,
    "insufficient_quota": False,
    "invalid_prompt": False,
    "bio_policy": False,
    "misalignment_policy_violation": False,
    "data_residency_mismatch": False,
    "image_content_policy_violation": False,
    "invalid_request_error": False,
}
"""Published and recorded error codes of which something is known; the last one is a type."""

Status = Literal["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]
"""The published values of a response's ``status``."""


class Usage(TypedDict, total=False):
    """Token counts of the whole response."""

    input_tokens: int
    input_tokens_details: JSONObject | None
    output_tokens: int
    output_tokens_details: JSONObject | None
    total_tokens: int


class ResponseError(TypedDict, total=False):
    code: str
    message: str


class IncompleteDetails(TypedDict, total=False):
    """Why the model was stopped: max_output_tokens, max_messages, content_filter, or another reason."""

    reason: str


class Response(TypedDict, total=False):
    """The answer as a whole. Gateways send no more of it than ``id``, ``status`` and ``usage``."""

    id: str
    object: Literal["response"]
    created_at: float
    status: str
    model: str
    output: list[OutputItem] | None
    error: ResponseError | None
    incomplete_details: IncompleteDetails | None
    usage: Usage | None
    parallel_tool_calls: bool
    tool_choice: Any
    tools: list[JSONObject]
    metadata: JSONObject | None
    previous_response_id: str | None


class OutputItem(TypedDict, total=False):
    """An item of the output, of any type; which members it has depends on ``type``."""

    id: str
    type: str
    status: str
    role: str
    phase: str
    content: list[ContentPart]
    summary: list[ContentPart]
    encrypted_content: str | None
    call_id: str
    name: str
    namespace: str
    arguments: str
    input: str
    output: Any
    action: Any
    actions: list[JSONObject]
    queries: list[str]
    results: list[JSONObject] | None
    result: Any
    code: str | None
    container_id: str
    outputs: list[JSONObject] | None
    operation: JSONObject
    server_label: str
    tools: list[JSONObject]
    error: Any


class ContentPart(TypedDict, total=False):
    """A part of a message, of a reasoning item or of its summary."""

    type: str
    text: str
    annotations: list[JSONObject]
    logprobs: list[JSONObject] | None
    refusal: str


class OutputDelta(TypedDict, total=False):
    """A piece of what a shell command printed."""

    stdout: str
    stderr: str


@attrs.frozen(kw_only=True)
class SequencedEvent(WireEvent):
    """Base of all events of this protocol."""

    @property
    def sequence_number(self) -> int | None:
        """The number of the event in the response, from 0; None where the server sends none."""
        number = self.payload.get("sequence_number")
        return number if type(number) is int else None


@attrs.frozen(kw_only=True)
class LifecycleEvent(SequencedEvent):
    """Role: what has become of the response, with the response as it is now."""

    response: Response

    @property
    def info(self) -> ErrorInfo | None:
        """The response's error in the same terms for all protocols; None if it has none."""
        error = self.response.get("error")
        return None if error is None else ErrorInfo.of(error, RETRYABLE)


@attrs.frozen(kw_only=True)
class ItemEvent(SequencedEvent):
    """Base of everything about one item; ``output_index`` is its place in the final ``output``.

    Items are told apart by ``output_index`` alone. Some gateways change ``item_id`` at every event.
    """

    output_index: int


@attrs.frozen(kw_only=True)
class OutputItemEvent(ItemEvent):
    """Role: an item begins, or is complete."""

    item: OutputItem


@attrs.frozen(kw_only=True)
class ContentPartEvent(ItemEvent):
    """Role: a part of an item's content begins, or is complete."""

    item_id: str | None = None
    content_index: int
    part: ContentPart


@attrs.frozen(kw_only=True)
class SummaryPartEvent(ItemEvent):
    """Role: a part of the summary of a reasoning begins, or is complete."""

    item_id: str | None = None
    summary_index: int
    part: ContentPart


@attrs.frozen(kw_only=True)
class TextDelta(ItemEvent):
    """Role: a piece of the text in a part of the content."""

    item_id: str | None = None
    content_index: int
    delta: str


@attrs.frozen(kw_only=True)
class TextDone(ItemEvent):
    """Role: the text in a part of the content is complete."""

    item_id: str | None = None
    content_index: int


@attrs.frozen(kw_only=True)
class InputDelta(ItemEvent):
    """Role: a piece of what a tool is called with: arguments, input, code, a diff."""

    item_id: str | None = None
    delta: str | None


@attrs.frozen(kw_only=True)
class InputDone(ItemEvent):
    """Role: what a tool is called with is complete."""

    item_id: str | None = None


@attrs.frozen(kw_only=True)
class CommandEvent(ItemEvent):
    """Role: one of several commands of a shell call. OpenAI sends no ``item_id`` with commands."""

    command_index: int


@attrs.frozen(kw_only=True)
class StatusEvent(ItemEvent):
    """Role: how far a tool that runs on the server has come. The status ends the event's ``type``."""

    item_id: str | None = None

    @property
    def status(self) -> str:
        """``in_progress``, ``searching``, ``completed`` and the like."""
        return self.type.rpartition(".")[2]
