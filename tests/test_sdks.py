"""The names of the official SDKs, compared with ours: what is new in an SDK fails here, by its name."""

from __future__ import annotations

import typing
from typing import Any

import anthropic.types
import anthropic.types.beta
import openai.types.chat.chat_completion_chunk as sdk_chat
import openai.types.completion_usage
import openai.types.responses
import pytest

from sse_machines import chat, messages, responses
from sse_machines.messages import events as message_events, grammar as message_grammar
from sse_machines.responses import events as response_events, grammar as response_grammar, roles


def members(union: Any) -> list[Any]:
    """The classes of a union, which may be annotated."""
    arguments = typing.get_args(union)
    return members(arguments[0]) if hasattr(union, "__metadata__") else list(arguments)


def wire_name(cls: Any) -> str:
    (name,) = typing.get_args(cls.model_fields["type"].annotation)
    return str(name)


def wire_names(union: Any) -> set[str]:
    return {wire_name(cls) for cls in members(union)}


SDK_EVENTS = {wire_name(cls): cls for cls in members(openai.types.responses.ResponseStreamEvent)}
OUR_EVENTS = {cls.type: cls for cls in response_events.PUBLISHED}
# Where the SDK leaves the wire's own words.
SDK_NAMES = {
    "OutputTextDelta": "TextDelta",
    "OutputTextDone": "TextDone",
    **{
        f"ImageGenerationCall{step}": f"ImageGenCall{step}"
        for step in ("Completed", "Generating", "InProgress", "PartialImage")
    },
}
# Members that nobody matches on; the payload has them.
IN_THE_PAYLOAD = {
    "error": {"code", "message", "param"},
    "response.shell_call_command.delta": {"obfuscation"},
    "response.reasoning_summary_part.done": {"status"},
    "response.output_text.delta": {"logprobs"},
    "response.output_text.done": {"logprobs"},
    "response.image_generation_call.partial_image": {"background", "output_format", "quality", "size"},
}


def test_every_response_event_has_a_class() -> None:
    assert OUR_EVENTS.keys() == SDK_EVENTS.keys()


@pytest.mark.parametrize("name", sorted(SDK_EVENTS))
def test_response_events_are_called_as_in_the_sdk(name: str) -> None:
    ours = OUR_EVENTS[name].__name__
    assert SDK_EVENTS[name].__name__ == f"Response{SDK_NAMES.get(ours, ours)}Event"


@pytest.mark.parametrize("name", sorted(SDK_EVENTS))
def test_response_events_have_the_members_of_the_sdk(name: str) -> None:
    theirs = set(SDK_EVENTS[name].model_fields) - {"type", "sequence_number"}
    ours = set(OUR_EVENTS[name].wire_names)
    assert theirs - ours == IN_THE_PAYLOAD.get(name, set())
    # The nested error is what the first party sends, and not what it publishes.
    assert ours - theirs == ({"error"} if name == "error" else set())


def test_every_item_type_is_known() -> None:
    known = response_grammar.ITEM_STATES.keys() - {"unknown_item"}
    assert wire_names(openai.types.responses.ResponseOutputItem) == known


def test_the_members_of_a_response_are_typed() -> None:
    fields = openai.types.responses.Response.model_fields
    assert set(responses.Response.__annotations__) <= set(fields)
    assert set(responses.Usage.__annotations__) == set(openai.types.responses.ResponseUsage.model_fields)
    assert set(roles.RETRYABLE) > {"server_error", "rate_limit_exceeded"}


CHAT_TYPES = [
    (sdk_chat.Choice, chat.Choice),
    (sdk_chat.ChoiceDelta, chat.Delta),
    (sdk_chat.ChoiceDeltaToolCall, chat.ToolCallDelta),
    (sdk_chat.ChoiceDeltaToolCallFunction, chat.FunctionCall),
    (sdk_chat.ChoiceDeltaFunctionCall, chat.FunctionCall),
    (sdk_chat.ChoiceLogprobs, chat.Logprobs),
    (openai.types.completion_usage.CompletionUsage, chat.Usage),
]


@pytest.mark.parametrize(("theirs", "ours"), CHAT_TYPES)
def test_chat_objects_have_the_members_of_the_sdk(theirs: Any, ours: Any) -> None:
    assert set(theirs.model_fields) <= set(ours.__annotations__)


def test_a_chunk_has_the_members_of_the_sdk() -> None:
    fields = set(sdk_chat.ChatCompletionChunk.model_fields)
    assert {name for name in fields if not hasattr(chat.ChatCompletionChunk, name)} == {"object"}


def test_every_finish_reason_is_typed() -> None:
    annotation = sdk_chat.Choice.model_fields["finish_reason"].annotation
    (theirs, _) = typing.get_args(annotation)
    assert set(typing.get_args(theirs)) == set(typing.get_args(chat.FinishReason))


MESSAGE_SURFACES = [anthropic.types, anthropic.types.beta]
IDS = ["published", "beta"]


@pytest.mark.parametrize("surface", MESSAGE_SURFACES, ids=IDS)
def test_every_message_event_has_a_class(surface: Any) -> None:
    prefix = "Beta" if surface is anthropic.types.beta else ""
    theirs = wire_names(getattr(surface, f"{prefix}RawMessageStreamEvent"))
    # The SDK drops the one and raises the other, and has no type for either.
    assert theirs | {"ping", "error"} == set(message_events.EVENT_TYPES)


@pytest.mark.parametrize("surface", MESSAGE_SURFACES, ids=IDS)
def test_every_block_and_delta_type_is_known(surface: Any) -> None:
    prefix = "Beta" if surface is anthropic.types.beta else ""
    blocks = wire_names(getattr(surface, f"{prefix}ContentBlock"))
    deltas = wire_names(getattr(surface, f"{prefix}RawContentBlockDelta"))
    assert blocks <= message_grammar.BLOCK_STATES.keys()
    assert deltas <= message_grammar.DELTA_STATES.keys()


def test_the_beta_surface_has_every_block_and_delta_type() -> None:
    known = message_grammar.BLOCK_STATES.keys() - {message_grammar.UNKNOWN_BLOCK}
    assert wire_names(anthropic.types.beta.BetaContentBlock) == known
    known = message_grammar.DELTA_STATES.keys() - {message_grammar.UNKNOWN_DELTA}
    assert wire_names(anthropic.types.beta.BetaRawContentBlockDelta) == known


def test_every_stop_reason_is_typed() -> None:
    reasons = typing.get_args(anthropic.types.beta.BetaStopReason)
    assert set(reasons) == set(typing.get_args(messages.StopReason))
