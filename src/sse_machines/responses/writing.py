"""OpenAI Responses: events that are made here, from plain arguments.

This is the protocol whose wire is tedious: an item and its part are announced, told in pieces, and then
told three times more as a whole. Nothing is hidden: everything is an event that could have been made by
hand, without a ``sequence_number``, which the sender gives it. Whether it may come where it comes is the
tables' business.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator
from typing import Any, cast

from .._protocol import JSONObject
from .._writing import Part as _Part
from .events import (
    AnyEvent,
    Completed,
    ContentPartAdded,
    ContentPartDone,
    Created,
    Error,
    Failed,
    FunctionCallArgumentsDelta,
    FunctionCallArgumentsDone,
    Incomplete,
    InProgress,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    OutputTextDone,
    ReasoningSummaryPartAdded,
    ReasoningSummaryPartDone,
    ReasoningSummaryTextDelta,
    ReasoningSummaryTextDone,
)
from .moves import Memory
from .roles import ContentPart, OutputItem, Response


def interruption(memory: Memory, message: str, type: str | None, code: str | None) -> Failed | Error:
    """The end of a response that breaks off: the response as it was told last, failed."""
    error = {"code": code or "server_error", "message": message}
    if memory.response is None:
        return Error(error={"type": type or "server_error", **error, "param": None})
    failed = {**memory.response, "status": "failed", "error": error}
    return Failed(response=cast("Response", failed))


class Answer:
    """Makes the events of a response.

    ::

        answer = Answer(id="resp_1", model="gpt-x", created_at=1_700_000_000)
        events = [
            *answer.begin(),
            *answer.text().whole(["Hello", " world"]),
            *answer.end(input_tokens=5, output_tokens=2),
        ]

    Items get their ``output_index`` in the order in which they are asked for. Several may be open at
    once.

    Args:
        id: The id of the response. The ids of its items are made of it.
        model: The model that answers.
        created_at: When the response began, in Unix seconds.
        response: More members of the response, or other values of those that it has: ``metadata``,
            ``tools``, ``temperature`` and the like.
    """

    def __init__(
        self, *, id: str, model: str, created_at: float, response: JSONObject | None = None
    ) -> None:
        self._response: JSONObject = {
            "id": id,
            "object": "response",
            "created_at": created_at,
            "status": "in_progress",
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "model": model,
            "output": [],
            "parallel_tool_calls": True,
            "temperature": None,
            "tool_choice": "auto",
            "tools": [],
            "top_p": None,
            "usage": None,
            **(response or {}),
        }
        self._items: list[_Item] = []

    def begin(self) -> Iterator[AnyEvent]:
        """The response.created and response.in_progress."""
        yield Created(response=self._as({}))
        yield InProgress(response=self._as({}))

    def text(self) -> _Part[AnyEvent]:
        """A message with one part of text."""
        return self._add(_Message(len(self._items), self._item_id("msg")))

    def reasoning(self) -> _Part[AnyEvent]:
        """A reasoning with one part of summary."""
        return self._add(_Reasoning(len(self._items), self._item_id("rs")))

    def function_call(self, *, call_id: str, name: str) -> _Part[AnyEvent]:
        """A call of a function; the pieces are those of its arguments."""
        return self._add(_FunctionCall(len(self._items), self._item_id("fc"), call_id, name))

    def end(
        self, *, input_tokens: int, output_tokens: int, incomplete: str | None = None
    ) -> Iterator[AnyEvent]:
        """The end of the response, with all items that are complete.

        Args:
            input_tokens: How many tokens the request had.
            output_tokens: How many the answer has.
            incomplete: Why the model was stopped, such as ``"max_output_tokens"``; None if it was not.
        """
        changes: JSONObject = {
            "status": "incomplete" if incomplete else "completed",
            "output": [item.done for item in self._items if item.done],
            "usage": {
                "input_tokens": input_tokens,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": output_tokens,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": input_tokens + output_tokens,
            },
        }
        if incomplete:
            changes["incomplete_details"] = {"reason": incomplete}
            yield Incomplete(response=self._as(changes))
        else:
            yield Completed(response=self._as(changes))

    def _as(self, changes: JSONObject) -> Response:
        return cast("Response", {**self._response, **changes})

    def _item_id(self, prefix: str) -> str:
        answer = str(self._response["id"]).removeprefix("resp_")
        return f"{prefix}_{answer}_{len(self._items)}"

    def _add(self, item: _Item) -> _Item:
        self._items.append(item)
        return item


class _Item(_Part[AnyEvent]):
    """An item of the output.

    Attributes:
        done: The item once it is complete.
    """

    def __init__(self, index: int, item_id: str) -> None:
        self._place: Any = {"output_index": index, "item_id": item_id}
        self._index = index
        self._id = item_id
        self._pieces: list[str] = []
        self.done: OutputItem | None = None

    def begin(self) -> Iterator[AnyEvent]:
        yield OutputItemAdded(output_index=self._index, item=self._item(None))

    def add(self, piece: str) -> Iterator[AnyEvent]:
        self._pieces.append(piece)
        yield self._delta(piece)

    def end(self) -> Iterator[AnyEvent]:
        text = "".join(self._pieces)
        yield from self._ends(text)
        self.done = self._item(text)
        yield OutputItemDone(output_index=self._index, item=self.done)

    @abc.abstractmethod
    def _item(self, text: str | None) -> OutputItem:
        """The item; the text is None while it is only announced."""

    @abc.abstractmethod
    def _delta(self, piece: str) -> AnyEvent:
        """The event of a piece."""

    @abc.abstractmethod
    def _ends(self, text: str) -> Iterator[AnyEvent]:
        """The events between the last piece and the end of the item."""


class _Message(_Item):
    def begin(self) -> Iterator[AnyEvent]:
        yield from super().begin()
        yield ContentPartAdded(**self._place, content_index=0, part=self._part(""))

    def _item(self, text: str | None) -> OutputItem:
        return {
            "id": self._id,
            "type": "message",
            "status": _status(text),
            "role": "assistant",
            "content": [] if text is None else [self._part(text)],
        }

    def _part(self, text: str) -> ContentPart:
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}

    def _delta(self, piece: str) -> AnyEvent:
        return OutputTextDelta(**self._place, content_index=0, delta=piece, payload={"logprobs": []})

    def _ends(self, text: str) -> Iterator[AnyEvent]:
        yield OutputTextDone(**self._place, content_index=0, text=text, payload={"logprobs": []})
        yield ContentPartDone(**self._place, content_index=0, part=self._part(text))


class _Reasoning(_Item):
    def begin(self) -> Iterator[AnyEvent]:
        yield from super().begin()
        yield ReasoningSummaryPartAdded(**self._place, summary_index=0, part=self._part(""))

    def _item(self, text: str | None) -> OutputItem:
        # OpenAI gives reasoning no status.
        return {
            "id": self._id,
            "type": "reasoning",
            "summary": [] if text is None else [self._part(text)],
        }

    def _part(self, text: str) -> ContentPart:
        return {"type": "summary_text", "text": text}

    def _delta(self, piece: str) -> AnyEvent:
        return ReasoningSummaryTextDelta(**self._place, summary_index=0, delta=piece)

    def _ends(self, text: str) -> Iterator[AnyEvent]:
        yield ReasoningSummaryTextDone(**self._place, summary_index=0, text=text)
        yield ReasoningSummaryPartDone(**self._place, summary_index=0, part=self._part(text))


class _FunctionCall(_Item):
    def __init__(self, index: int, item_id: str, call_id: str, name: str) -> None:
        super().__init__(index, item_id)
        self._call_id = call_id
        self._name = name

    def _item(self, text: str | None) -> OutputItem:
        return {
            "id": self._id,
            "type": "function_call",
            "status": _status(text),
            "call_id": self._call_id,
            "name": self._name,
            "arguments": text or "",
        }

    def _delta(self, piece: str) -> AnyEvent:
        return FunctionCallArgumentsDelta(**self._place, delta=piece)

    def _ends(self, text: str) -> Iterator[AnyEvent]:
        yield FunctionCallArgumentsDone(**self._place, arguments=text, payload={"name": self._name})


def _status(text: str | None) -> str:
    return "in_progress" if text is None else "completed"
