"""Bytes of Anthropic Messages events, and reading of any protocol, for tests that need a stream."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from sse_machines import MESSAGES, ProtocolError, Receiver, Violation
from sse_machines._protocol import Protocol


def event(kind: str, **members: Any) -> bytes:
    """A frame as the first party writes it."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **members})}\n\n".encode()


def message(**members: Any) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 5, "output_tokens": 1},
        **members,
    }


def start(**members: Any) -> bytes:
    return event("message_start", message=message(**members))


def block_start(index: int, kind: str = "text", **members: Any) -> bytes:
    return event("content_block_start", index=index, content_block={"type": kind, **members})


def delta(index: int, kind: str, **members: Any) -> bytes:
    return event("content_block_delta", index=index, delta={"type": kind, **members})


def text(index: int, value: str) -> bytes:
    return delta(index, "text_delta", text=value)


def block_stop(index: int) -> bytes:
    return event("content_block_stop", index=index)


def message_delta(reason: str | None = "end_turn", **members: Any) -> bytes:
    usage = members.pop("usage", {"output_tokens": 3})
    return event("message_delta", delta={"stop_reason": reason, **members}, usage=usage)


STOP = event("message_stop")
PING = event("ping")
ERROR = event("error", error={"type": "overloaded_error", "message": "Overloaded"})
FUTURE = event("session.status", s=1)
DONE = b"data: [DONE]\n\n"

ANSWER = (
    start()
    + block_start(0, "thinking", thinking="", signature="")
    + PING
    + b": keep-alive\n\n"
    + delta(0, "thinking_delta", thinking="hm")
    + delta(0, "signature_delta", signature="c2ln")
    + block_stop(0)
    + block_start(1, "text", text="")
    + text(1, "你好, ")
    + text(1, "world \u2028🌍")
    + block_stop(1)
    + block_start(2, "tool_use", id="toolu_1", name="f", input={})
    + delta(2, "input_json_delta", partial_json='{"a":')
    + delta(2, "input_json_delta", partial_json="1}")
    + block_stop(2)
    + message_delta("tool_use")
    + STOP
)


def receive(
    chunks: bytes | Iterable[bytes],
    *,
    protocol: Protocol[Any] = MESSAGES,
    clean: bool = True,
    **options: Any,
) -> tuple[Receiver[Any], list[Any]]:
    """Everything a receiver gives out, the exception last if there is one."""
    receiver = Receiver(protocol, **options)
    return receiver, list(drain(receiver, chunks, clean=clean))


def drain(
    receiver: Receiver[Any], chunks: bytes | Iterable[bytes], *, clean: bool = True
) -> Iterator[Any]:
    """Feed a receiver to its end; the exception comes last if there is one."""
    try:
        for chunk in [chunks] if isinstance(chunks, bytes) else chunks:
            receiver.receive_data(chunk)
            yield from receiver
        receiver.receive_eof(clean=clean)
        yield from receiver
    except ProtocolError as error:
        yield error


def codes(events: Iterable[Any]) -> list[str]:
    """The codes of the violations, and of the error if there is one."""
    return [event.code for event in events if isinstance(event, Violation | ProtocolError)]
