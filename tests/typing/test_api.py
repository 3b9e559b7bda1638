"""The public interface as a type checker sees it; mypy and pyright read this file in strict mode."""

from __future__ import annotations

import pytest
from typing_extensions import assert_never, assert_type

from sse_machines import (
    CHAT,
    MESSAGES,
    RESPONSES,
    Accumulator,
    Comment,
    EndOfStream,
    Event,
    LocalProtocolError,
    Outcome,
    Receiver,
    Sender,
    ToolCall,
    Unknown,
    Violation,
    chat,
    collect,
    messages,
    responses,
)
from sse_machines.messages import (
    AnyEvent,
    ContentBlockDelta,
    ContentBlockStart,
    ContentBlockStop,
    Error,
    MessageDelta,
    MessageStart,
    MessageStop,
    Ping,
)
from tests import wire
from tests.chat import wire as chat_wire
from tests.responses import wire as responses_wire


def describe(event: AnyEvent) -> str:  # noqa: PLR0911 - one for each event
    """Every event there is; leaving one out is a type error at the last line."""
    match event:
        case MessageStart(message=message):
            return message.get("id", "")
        case ContentBlockStart(index=index, content_block={"type": "text", "text": text}):
            return f"{index} {text}"
        case ContentBlockDelta(index=index, delta={"type": "text_delta", "text": text}):
            assert_type(index, int)
            return f"{index} {text}"
        case ContentBlockStart(index=index) | ContentBlockDelta(index=index):
            return str(index)
        case ContentBlockStop(index=index):
            return str(index)
        case MessageDelta(delta=delta, usage=usage):
            return f"{delta.get('stop_reason')} {(usage or {}).get('output_tokens')}"
        case MessageStop() | Ping():
            return event.type
        case Error():
            return event.info.message
        case Unknown(name=name):
            return name
        case Comment(text=text):
            return text
        case Violation(code=code):
            return code
        case EndOfStream(outcome=outcome):
            assert_type(outcome, Outcome)
            return outcome.value
        case _:
            assert_never(event)


def test_every_event_is_matched() -> None:
    receiver = Receiver(MESSAGES)
    receiver.receive_data(wire.ANSWER + wire.PING)
    receiver.receive_eof()
    assert_type(receiver.next_event(), AnyEvent | None)
    described = [describe(event) for event in receiver]
    assert described[0] == "0"
    assert described[-4:] == ["tool_use 3", "message_stop", "event_after_stop", "completed"]
    assert describe(Error(error={"message": "m"})) == "m"
    assert describe(Unknown(name="n")) == "n"


def describe_chat(event: chat.AnyEvent) -> str:
    """Every event there is in Chat Completions."""
    match event:
        case chat.ChatCompletionChunk(choices=[{"delta": {"content": str(text)}}]):
            return text
        case chat.ChatCompletionChunk(choices=choices, usage=usage):
            reasons = [choice.get("finish_reason") for choice in choices]
            assert_type(usage, chat.Usage | None)
            return f"{reasons} {(usage or {}).get('total_tokens')}"
        case chat.Done() | Comment() | Unknown() | Violation() | EndOfStream():
            return event.type
        case chat.Error():
            assert_type(event.chunk, chat.ChatCompletionChunk | None)
            return event.info.message
        case _:
            assert_never(event)


def test_every_chat_event_is_matched() -> None:
    receiver = Receiver(CHAT)
    receiver.receive_data(chat_wire.role() + chat_wire.text("hi") + chat_wire.ERROR)
    assert_type(receiver.next_event(), chat.AnyEvent | None)
    assert [describe_chat(event) for event in receiver] == ["hi", "m"]
    receiver = Receiver(CHAT)
    receiver.receive_data(chat_wire.finish(role="assistant") + chat_wire.USAGE + chat_wire.DONE)
    assert [describe_chat(event) for event in receiver] == ["['stop'] None", "[] 66", "[DONE]"]


def test_deltas_need_no_indexing() -> None:
    receiver = Receiver(CHAT)
    receiver.receive_data(chat_wire.delta(1, role="assistant", content="b", reasoning="r"))
    (chunk,) = receiver
    assert isinstance(chunk, chat.ChatCompletionChunk)
    for index, delta in chunk.deltas:
        assert_type(index, int)
        assert_type(delta, chat.Delta)
        assert (index, delta.get("content")) == (1, "b")
    assert (chunk.text(1), chunk.reasoning(1), chunk.text()) == ("b", "r", "")


def describe_response(event: responses.AnyEvent) -> str:  # noqa: PLR0911 - one for each role
    """Every event there is in Responses, by its role."""
    match event:
        case responses.OutputTextDelta(delta=delta):
            return delta
        case responses.TextDelta(output_index=index, content_index=part, delta=delta):
            assert_type((index, part), tuple[int, int])
            return f"{index} {part} {delta}"
        case responses.LifecycleEvent(response=response):
            return f"{response.get('status')} {(response.get('usage') or {}).get('output_tokens')}"
        case responses.OutputItemEvent(item=item):
            return item.get("type", "")
        case responses.InputDelta(delta=delta):
            return delta or ""
        case responses.ItemEvent(output_index=index):
            return f"{event.type} {index}"
        case responses.SequencedEvent():
            return f"{event.type} {event.sequence_number}"
        case Comment() | Unknown() | Violation() | EndOfStream():
            return event.type
        case _:
            assert_never(event)


def test_every_response_event_is_matched() -> None:
    receiver = Receiver(RESPONSES)
    receiver.receive_data(responses_wire.ANSWER)
    assert_type(receiver.next_event(), responses.AnyEvent | None)
    described = [describe_response(event) for event in receiver]
    assert described[:5] == ["in_progress None", "message", "response.content_part.added 0", "h", "i"]
    assert described[-1] == "completed None"


def test_a_detecting_receiver_gives_events() -> None:
    receiver = Receiver.detecting()
    assert_type(receiver, Receiver[Event, Accumulator])
    receiver.receive_data(chat_wire.role())
    assert_type(receiver.next_event(), Event | None)


def test_a_sender_takes_the_events_of_its_protocol() -> None:
    sender = Sender(MESSAGES)
    assert_type(sender.send(Ping()), bytes)
    with pytest.raises(LocalProtocolError):
        sender.send(chat.ChatCompletionChunk())  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    answer = messages.Answer(id="msg_1", model="m", input_tokens=1)
    for event in (*answer.begin(), *answer.text().whole("a"), *answer.end(output_tokens=1)):
        assert_type(event, AnyEvent)
        sender.send(event)
    assert sender.outcome is Outcome.COMPLETED


def test_every_protocol_has_an_accumulator_of_its_own() -> None:
    assert_type(CHAT.accumulator(), chat.Accumulator)
    assert_type(RESPONSES.accumulator(), responses.Accumulator)
    assert_type(MESSAGES.accumulator(), messages.Accumulator)
    receiver = Receiver(CHAT, accumulate=True)
    receiver.receive_data(chat_wire.delta(1, role="assistant", content="b"))
    assert len(list(receiver)) == 1
    assert_type(receiver.accumulator, chat.Accumulator)
    for index, choice in receiver.accumulator.choices.items():
        assert_type(choice, chat.ChoiceSoFar)
        assert (index, choice.text) == (1, "b")


def test_a_result_is_the_same_for_all_protocols() -> None:
    result = collect([wire.ANSWER])
    assert_type(result.outcome, Outcome)
    assert_type(result.text, str)
    assert_type(result.tool_calls, tuple[ToolCall, ...])
    assert_type(result.accumulator, Accumulator)
    match result.error:
        case None:
            assert result.finish_reason == "tool_use"
        case error:
            assert_type(error.code, str | int | None)
