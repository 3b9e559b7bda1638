"""OpenAI Chat Completions: events that are made here, from plain arguments.

Nothing is hidden: everything is an event that could have been made by hand. Whether it may come where it
comes is the tables' business.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._protocol import Done
from .._writing import Part as _Part
from .events import AnyEvent, ChatCompletionChunk, Delta, Error, ToolCallDelta, Usage


def interruption(memory: object, message: str, type: str | None, code: str | None) -> Error:
    """The event that says that an answer breaks off."""
    return Error(error={"message": message, "type": type or "server_error", "param": None, "code": code})


class Answer:
    """Makes the chunks of an answer with one choice.

    ::

        answer = Answer(id="chatcmpl-1", model="gpt-x", created=1_700_000_000)
        events = [
            *answer.begin(),
            *answer.text().whole(["Hello", " world"]),
            *answer.end(prompt_tokens=5, completion_tokens=2),
        ]

    Args:
        id: The id of the answer.
        model: The model that answers.
        created: When the answer began, in Unix seconds.
        reasoning_member: The member of a delta that reasoning stands in. There is no published one;
            ``"reasoning"`` is the other one that many clients read.
    """

    def __init__(
        self, *, id: str, model: str, created: int, reasoning_member: str = "reasoning_content"
    ) -> None:
        self._head = {"id": id, "object": ChatCompletionChunk.type, "created": created, "model": model}
        self._reasoning_member = reasoning_member
        self._calls = 0

    def begin(self) -> Iterator[AnyEvent]:
        """The chunk with the role."""
        yield self._delta({"role": "assistant", "content": ""})

    def text(self) -> _Part[AnyEvent]:
        """The answer's text, or more of it. It has no begin and no end of its own."""
        return _Text(self._delta, "content")

    def reasoning(self) -> _Part[AnyEvent]:
        """What the model thinks. It has no begin and no end of its own."""
        return _Text(self._delta, self._reasoning_member)

    def tool_call(self, *, id: str, name: str) -> _Part[AnyEvent]:
        """A call of a function; the pieces are those of its arguments."""
        self._calls += 1
        return _ToolCall(self._delta, self._calls - 1, id, name)

    def end(
        self,
        finish_reason: str = "stop",
        *,
        prompt_tokens: int | None = None,
        completion_tokens: int = 0,
    ) -> Iterator[AnyEvent]:
        """The finish reason, the usage if ``prompt_tokens`` are given, and the end mark."""
        yield self._delta({}, finish_reason)
        if prompt_tokens is not None:
            usage: Usage = {
                "prompt_tokens": prompt_tokens,
                "completion_tokens": completion_tokens,
                "total_tokens": prompt_tokens + completion_tokens,
            }
            yield ChatCompletionChunk(payload=self._head, usage=usage)
        yield Done()

    def _delta(self, delta: Delta, finish_reason: str | None = None) -> ChatCompletionChunk:
        return ChatCompletionChunk(
            payload=self._head,
            choices=[{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}],
        )


class _Text(_Part[AnyEvent]):
    def __init__(self, chunk: Any, member: str) -> None:
        self._chunk = chunk
        self._member = member

    def begin(self) -> Iterator[AnyEvent]:
        return iter(())

    def add(self, piece: str) -> Iterator[AnyEvent]:
        yield self._chunk({self._member: piece})

    def end(self) -> Iterator[AnyEvent]:
        return iter(())


class _ToolCall(_Part[AnyEvent]):
    def __init__(self, chunk: Any, index: int, id: str, name: str) -> None:
        self._chunk = chunk
        self._index = index
        self._id = id
        self._name = name

    def begin(self) -> Iterator[AnyEvent]:
        function: Any = {"name": self._name, "arguments": ""}
        yield self._piece(
            {"index": self._index, "id": self._id, "type": "function", "function": function}
        )

    def add(self, piece: str) -> Iterator[AnyEvent]:
        yield self._piece({"index": self._index, "function": {"arguments": piece}})

    def end(self) -> Iterator[AnyEvent]:
        return iter(())

    def _piece(self, piece: ToolCallDelta) -> AnyEvent:
        event: AnyEvent = self._chunk({"tool_calls": [piece]})
        return event
