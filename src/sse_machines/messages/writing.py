"""Anthropic Messages: events that are made here, from plain arguments.

Nothing is hidden: everything is an event that could have been made by hand. Whether it may come where it
comes is the tables' business.
"""

from __future__ import annotations

from collections.abc import Iterator

from .._writing import Part as _Part
from .events import (
    AnyEvent,
    ContentBlock,
    ContentBlockDelta,
    ContentBlockStart,
    ContentBlockStop,
    Delta,
    Error,
    MessageDelta,
    MessageStart,
    MessageStop,
)


def interruption(memory: object, message: str, type: str | None, code: str | None) -> Error:
    """The event that says that an answer breaks off. The protocol has no place for a code."""
    return Error(error={"type": type or "api_error", "message": message})


class Answer:
    """Makes the events of an answer.

    ::

        answer = Answer(id="msg_1", model="claude-x", input_tokens=5)
        events = [
            *answer.begin(),
            *answer.text().whole(["Hello", " world"]),
            *answer.end(output_tokens=2),
        ]

    Blocks get their index in the order in which they are asked for, and the protocol wants one to end
    before the next begins.

    Args:
        id: The id of the message.
        model: The model that answers.
        input_tokens: How many tokens the request had.
    """

    def __init__(self, *, id: str, model: str, input_tokens: int) -> None:
        self._id = id
        self._model = model
        self._input_tokens = input_tokens
        self._blocks = 0

    def begin(self) -> Iterator[AnyEvent]:
        """The message_start."""
        yield MessageStart(
            message={
                "id": self._id,
                "type": "message",
                "role": "assistant",
                "model": self._model,
                "content": [],
                "stop_reason": None,
                "stop_sequence": None,
                "usage": {"input_tokens": self._input_tokens, "output_tokens": 0},
            }
        )

    def text(self) -> _Part[AnyEvent]:
        """A block of text."""
        return _Text(self._next_index())

    def thinking(self, *, signature: str) -> _Part[AnyEvent]:
        """A block of thinking; the signature comes at its end."""
        return _Thinking(self._next_index(), signature)

    def tool_use(self, *, id: str, name: str) -> _Part[AnyEvent]:
        """A block with a call of a tool; the pieces are those of the JSON text of its input."""
        return _ToolUse(self._next_index(), id, name)

    def end(
        self, stop_reason: str = "end_turn", *, output_tokens: int, stop_sequence: str | None = None
    ) -> Iterator[AnyEvent]:
        """The stop reason with the usage, and the message_stop."""
        yield MessageDelta(
            delta={"stop_reason": stop_reason, "stop_sequence": stop_sequence},
            usage={"output_tokens": output_tokens},
        )
        yield MessageStop()

    def _next_index(self) -> int:
        self._blocks += 1
        return self._blocks - 1


class _Block(_Part[AnyEvent]):
    """A block from its start to its stop."""

    def __init__(self, index: int) -> None:
        self._index = index

    def end(self) -> Iterator[AnyEvent]:
        yield ContentBlockStop(index=self._index)

    def _start(self, block: ContentBlock) -> Iterator[AnyEvent]:
        yield ContentBlockStart(index=self._index, content_block=block)

    def _delta(self, delta: Delta) -> Iterator[AnyEvent]:
        yield ContentBlockDelta(index=self._index, delta=delta)


class _Text(_Block):
    def begin(self) -> Iterator[AnyEvent]:
        return self._start({"type": "text", "text": ""})

    def add(self, piece: str) -> Iterator[AnyEvent]:
        return self._delta({"type": "text_delta", "text": piece})


class _Thinking(_Block):
    def __init__(self, index: int, signature: str) -> None:
        super().__init__(index)
        self._signature = signature

    def begin(self) -> Iterator[AnyEvent]:
        return self._start({"type": "thinking", "thinking": "", "signature": ""})

    def add(self, piece: str) -> Iterator[AnyEvent]:
        return self._delta({"type": "thinking_delta", "thinking": piece})

    def end(self) -> Iterator[AnyEvent]:
        yield from self._delta({"type": "signature_delta", "signature": self._signature})
        yield from super().end()


class _ToolUse(_Block):
    def __init__(self, index: int, id: str, name: str) -> None:
        super().__init__(index)
        self._id = id
        self._name = name

    def begin(self) -> Iterator[AnyEvent]:
        return self._start({"type": "tool_use", "id": self._id, "name": self._name, "input": {}})

    def add(self, piece: str) -> Iterator[AnyEvent]:
        return self._delta({"type": "input_json_delta", "partial_json": piece})
