"""Synthetic event streams to measure with.

They are deterministic, legal from the first event to the last, and as plain as what servers send most:
text deltas. This module deliberately has no tool calls and no errors; those are for the tests.

To add a protocol, write a function that yields its blocks and add it to `STREAMS`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

_WORDS = (" the", " state", " of", " a", " machine", " follows", " from", " its", " events", ",", " and")
_FRAMING = 6
"""Events of a Messages stream that are no deltas."""
_CHAT_FRAMING = 4
_RESPONSE_FRAMING = 8
_ITEM_ID = "msg_0f1e2d3c4b5a69788796a5b4c3d2e1f0"
_CHUNK = {
    "id": "chatcmpl-0f1e2d3c4b5a69788796a5b4c3d2e1f0",
    "object": "chat.completion.chunk",
    "created": 1767225600,
    "model": "gpt-bench",
    "service_tier": "default",
}
_RESPONSE = {
    "id": "resp_0f1e2d3c4b5a69788796a5b4c3d2e1f0",
    "object": "response",
    "created_at": 1767225600,
    "status": "in_progress",
    "model": "gpt-bench",
    "output": [],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "usage": None,
}


class Stream(NamedTuple):
    """One answer, as the blocks that it is sent in."""

    blocks: list[bytes]

    @property
    def body(self) -> bytes:
        """All the bytes."""
        return b"".join(self.blocks)

    @property
    def first_half(self) -> bytes:
        """The bytes up to a boundary in the middle."""
        return b"".join(self.blocks[: len(self.blocks) // 2])

    def chunks(self, size: int) -> list[bytes]:
        """The bytes in pieces of one size, which need not fit the blocks."""
        body = self.body
        return [body[start : start + size] for start in range(0, len(body), size)]


def stream(name: str, events: int, *, line_end: bytes = b"\n") -> Stream:
    """Make a stream of a protocol.

    Args:
        name: A key of `STREAMS`.
        events: How many events, at least; the framing of the protocol is never left out.
        line_end: What each line ends with.
    """
    return Stream([_block(event, data, line_end) for event, data in STREAMS[name](events)])


def messages(events: int) -> Iterator[tuple[str | None, Any]]:
    """Anthropic Messages: one block of text, about 120 bytes an event."""
    yield _named("message_start", message=_MESSAGE)
    yield _named("content_block_start", index=0, content_block={"type": "text", "text": ""})
    yield _named("ping")
    for number in range(max(1, events - _FRAMING)):
        delta = {"type": "text_delta", "text": _WORDS[number % len(_WORDS)]}
        yield _named("content_block_delta", index=0, delta=delta)
    yield _named("content_block_stop", index=0)
    yield _named(
        "message_delta",
        delta={"stop_reason": "end_turn", "stop_sequence": None},
        usage={"output_tokens": events},
    )
    yield _named("message_stop")


def chat(events: int) -> Iterator[tuple[str | None, Any]]:
    """Chat Completions: one choice of text, about 230 bytes an event."""
    yield _chunk({"role": "assistant", "content": "", "refusal": None})
    for number in range(max(1, events - _CHAT_FRAMING)):
        yield _chunk({"content": _WORDS[number % len(_WORDS)]})
    yield _chunk({}, "stop")
    usage = {"prompt_tokens": 9, "completion_tokens": events, "total_tokens": events + 9}
    yield None, {**_CHUNK, "choices": [], "usage": usage}
    yield None, "[DONE]"


def _chunk(delta: Any, finish: str | None = None) -> tuple[None, Any]:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return None, {**_CHUNK, "choices": [choice], "usage": None}


def responses(events: int) -> Iterator[tuple[str | None, Any]]:
    """OpenAI Responses: one message with one part, about 200 bytes an event."""
    for number, (kind, members) in enumerate(_response_events(events)):
        yield kind, {"type": kind, "sequence_number": number, **members}


def _response_events(events: int) -> Iterator[tuple[str, dict[str, Any]]]:
    texts = [_WORDS[number % len(_WORDS)] for number in range(max(1, events - _RESPONSE_FRAMING))]
    item: dict[str, Any] = {"id": _ITEM_ID, "type": "message", "role": "assistant", "content": []}
    part = {"type": "output_text", "annotations": [], "text": ""}
    place = {"item_id": _ITEM_ID, "output_index": 0, "content_index": 0}
    yield "response.created", {"response": _RESPONSE}
    yield "response.in_progress", {"response": _RESPONSE}
    yield "response.output_item.added", {"output_index": 0, "item": item}
    yield "response.content_part.added", {**place, "part": part}
    for text in texts:
        yield "response.output_text.delta", {**place, "delta": text, "logprobs": []}
    part = {**part, "text": "".join(texts)}
    item = {**item, "content": [part]}
    yield "response.output_text.done", {**place, "text": part["text"], "logprobs": []}
    yield "response.content_part.done", {**place, "part": part}
    yield "response.output_item.done", {"output_index": 0, "item": item}
    yield "response.completed", {"response": {**_RESPONSE, "status": "completed", "output": [item]}}


STREAMS: dict[str, Callable[[int], Iterator[tuple[str | None, Any]]]] = {
    "chat": chat,
    "responses": responses,
    "messages": messages,
}
"""By name: a function from a number of events to (event name or None, JSON value or raw text) pairs."""

_MESSAGE: dict[str, Any] = {
    "id": "msg_0123456789abcdefghijklmn",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-5",
    "content": [],
    "stop_reason": None,
    "stop_sequence": None,
    "usage": {"input_tokens": 25, "output_tokens": 1},
}


def _named(name: str, **fields: Any) -> tuple[str, Any]:
    return name, {"type": name, **fields}


def _block(event: str | None, data: Any, line_end: bytes) -> bytes:
    lines = [] if event is None else [b"event: " + event.encode()]
    text = data if isinstance(data, str) else json.dumps(data, separators=(",", ":"))
    lines.append(b"data: " + text.encode())
    return line_end.join([*lines, b"", b""])
