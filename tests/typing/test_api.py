"""The public interface as a type checker sees it; mypy and pyright read this file in strict mode."""

from __future__ import annotations

from typing_extensions import assert_never, assert_type

from sse_machines import (
    MESSAGES,
    Comment,
    EndOfStream,
    Outcome,
    Receiver,
    Unknown,
    Violation,
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
