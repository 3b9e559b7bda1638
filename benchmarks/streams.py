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


STREAMS: dict[str, Callable[[int], Iterator[tuple[str | None, Any]]]] = {"messages": messages}
"""By name: a function from a number of events to (event name or None, JSON value) pairs."""

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
    lines.append(b"data: " + json.dumps(data, separators=(",", ":")).encode())
    return line_end.join([*lines, b"", b""])
