"""OpenAI Responses: events to a response.

What the server tells whole replaces what came in pieces: an item that is done, and the response at its
end. Until then the pieces count, by `GROWS` and `REPLACES`, which say where in an item an event belongs.
Where the response at the end has no output, as gateways send it, the items stand in for it. This module
deliberately judges nothing, and compares nothing: encrypted contents differ between an item and the
response at the end.

Sources: the accumulators of the official SDKs (openai 3.57 for Python; those for Node and for WebSockets
know more events).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

from .._accumulator import (
    DEFAULT_MAX_ANSWER_SIZE,
    PART_SIZE,
    Accumulator as _Accumulator,
    ByIndex,
    Text,
    ToolCall,
    in_order,
    length,
    plain,
    weight,
)
from .._protocol import JSONObject, Outcome
from .events import (
    PUBLISHED,
    UNPUBLISHED,
    ApplyPatchCallOperationDiffDelta,
    ApplyPatchCallOperationDiffDone,
    Cancelled,
    CodeInterpreterCallCodeDelta,
    CodeInterpreterCallCodeDone,
    Completed,
    ContentPartAdded,
    ContentPartDone,
    CustomToolCallInputDelta,
    CustomToolCallInputDone,
    Done,
    Error,
    Failed,
    FunctionCallArgumentsDelta,
    FunctionCallArgumentsDone,
    Incomplete,
    McpCallArgumentsDelta,
    McpCallArgumentsDone,
    OutputItemAdded,
    OutputItemDone,
    OutputTextAnnotationAdded,
    OutputTextDelta,
    OutputTextDone,
    ReasoningPartAdded,
    ReasoningPartDone,
    ReasoningSummaryPartAdded,
    ReasoningSummaryPartDone,
    ReasoningSummaryTextDelta,
    ReasoningSummaryTextDone,
    ReasoningTextDelta,
    ReasoningTextDone,
    RefusalDelta,
    RefusalDone,
    ShellCallCommandAdded,
    ShellCallCommandDelta,
    ShellCallCommandDone,
    ShellCallOutputContentDelta,
    ShellCallOutputContentDone,
)
from .roles import LifecycleEvent, StatusEvent


class Place(NamedTuple):
    """Where in an item an event belongs.

    Attributes:
        path: The members that lead there; ``"*"`` stands for an index.
        key: The member of the event that has the index, or ``""``.
        value: The member of the event that has the piece, or the whole.
        item: The item that it implies, where the item never began.
        part: The part that it implies, where the part never began.
    """

    path: tuple[str, ...]
    key: str
    value: str
    item: JSONObject
    part: JSONObject | None = None


_MESSAGE: JSONObject = {"type": "message", "role": "assistant", "status": "in_progress", "content": []}
_REASONING: JSONObject = {"type": "reasoning", "summary": []}
_OUTPUT_TEXT: JSONObject = {"type": "output_text", "text": "", "annotations": []}
_REFUSAL: JSONObject = {"type": "refusal", "refusal": ""}
_REASONING_TEXT: JSONObject = {"type": "reasoning_text", "text": ""}
_SUMMARY_TEXT: JSONObject = {"type": "summary_text", "text": ""}


def _item(kind: str) -> JSONObject:
    return {"type": kind, "status": "in_progress"}


def _in_content(value: str, item: JSONObject, part: JSONObject, *path: str) -> Place:
    return Place(("content", "*", *path), "content_index", value, item, part)


def _in_summary(value: str, *path: str) -> Place:
    return Place(("summary", "*", *path), "summary_index", value, _REASONING, _SUMMARY_TEXT)


def _in_call(value: str, kind: str, *path: str) -> Place:
    return Place(path, "", value, _item(kind))


def _in_command(value: str, kind: str, *path: str) -> Place:
    return Place(path, "command_index", value, _item(kind))


GROWS: dict[type, Place] = {
    OutputTextDelta: _in_content("delta", _MESSAGE, _OUTPUT_TEXT, "text"),
    RefusalDelta: _in_content("delta", _MESSAGE, _REFUSAL, "refusal"),
    ReasoningTextDelta: _in_content("delta", _REASONING, _REASONING_TEXT, "text"),
    ReasoningSummaryTextDelta: _in_summary("delta", "text"),
    FunctionCallArgumentsDelta: _in_call("delta", "function_call", "arguments"),
    McpCallArgumentsDelta: _in_call("delta", "mcp_call", "arguments"),
    CustomToolCallInputDelta: _in_call("delta", "custom_tool_call", "input"),
    CodeInterpreterCallCodeDelta: _in_call("delta", "code_interpreter_call", "code"),
    ApplyPatchCallOperationDiffDelta: _in_call("delta", "apply_patch_call", "operation", "diff"),
    ShellCallCommandDelta: _in_command("delta", "shell_call", "action", "commands", "*"),
}
"""Events that have a piece of a text, and the text."""

REPLACES: dict[type, Place] = {
    ContentPartAdded: _in_content("part", _MESSAGE, _OUTPUT_TEXT),
    ContentPartDone: _in_content("part", _MESSAGE, _OUTPUT_TEXT),
    ReasoningPartAdded: _in_content("part", _REASONING, _REASONING_TEXT),
    ReasoningPartDone: _in_content("part", _REASONING, _REASONING_TEXT),
    OutputTextDone: _in_content("text", _MESSAGE, _OUTPUT_TEXT, "text"),
    RefusalDone: _in_content("refusal", _MESSAGE, _REFUSAL, "refusal"),
    ReasoningTextDone: _in_content("text", _REASONING, _REASONING_TEXT, "text"),
    ReasoningSummaryPartAdded: _in_summary("part"),
    ReasoningSummaryPartDone: _in_summary("part"),
    ReasoningSummaryTextDone: _in_summary("text", "text"),
    FunctionCallArgumentsDone: _in_call("arguments", "function_call", "arguments"),
    McpCallArgumentsDone: _in_call("arguments", "mcp_call", "arguments"),
    CustomToolCallInputDone: _in_call("input", "custom_tool_call", "input"),
    CodeInterpreterCallCodeDone: _in_call("code", "code_interpreter_call", "code"),
    ApplyPatchCallOperationDiffDone: _in_call("diff", "apply_patch_call", "operation", "diff"),
    ShellCallCommandAdded: _in_command("command", "shell_call", "action", "commands", "*"),
    ShellCallCommandDone: _in_command("command", "shell_call", "action", "commands", "*"),
}
"""Events that have the whole of something, and where it belongs."""

_PRINTED: dict[str, Place] = {
    stream: _in_command("delta", "shell_call_output", "output", "*", stream)
    for stream in ("stdout", "stderr")
}
_ALL_PRINTED = _in_command("output", "shell_call_output", "output", "*")
_ANNOTATIONS = _in_content("annotation", _MESSAGE, _OUTPUT_TEXT, "annotations")

_CLIENT_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
"""Items that the client has to answer, and the member that comes in pieces."""

ARGUMENTS: dict[str, tuple[str, ...]] = {
    place.item["type"]: place.path
    for place in GROWS.values()
    if place.item["type"] not in ("message", "reasoning")
}
"""What an item of a server's tool is called with, as far as it comes in pieces."""

LIFECYCLE = tuple(cls for cls in (*PUBLISHED, *UNPUBLISHED) if issubclass(cls, LifecycleEvent))
_STATUS = tuple(
    cls
    for cls in PUBLISHED
    # A listing of tools has no status to set.
    if issubclass(cls, StatusEvent) and not cls.type.startswith("response.mcp_list_tools.")
)
OUTCOMES: dict[type, Outcome] = {
    Completed: Outcome.COMPLETED,
    Done: Outcome.COMPLETED,
    Incomplete: Outcome.INCOMPLETE,
    Failed: Outcome.FAILED,
    Cancelled: Outcome.CANCELLED,
}
_CUT = ("incomplete", "failed", "cancelled")
"""What a response's status is that is not complete."""


class ItemSoFar:
    """An item of the output, as far as it has come.

    Args:
        index: Which one.
        item: What its first event says of it.

    Attributes:
        call: The call that the item is, None if it is none that the client has to answer.
        done: Whether the server has told the whole item; what comes for it later changes nothing.
    """

    __slots__ = ("_growing", "_index", "_members", "call", "done")

    def __init__(self, index: int, item: Any) -> None:
        self._index = index
        # What has grown before, found at once.
        self._growing: dict[tuple[Any, int], Text] = {}
        self._members: JSONObject = {}
        self.call: ToolCall | None = None
        self.done = False
        self._begin(item)

    @property
    def type(self) -> str | None:
        """The type of the item, None where the server did not say."""
        kind = self._members.get("type")
        return kind if type(kind) is str else None

    @property
    def id(self) -> Any:
        """The id of the item, as it was first told."""
        return self._members.get("id")

    def snapshot(self) -> JSONObject:
        """The item as a response has it."""
        item: JSONObject = plain(self._members)
        return item

    def parts(self, member: str, kind: str) -> Iterator[JSONObject]:
        """The parts of one type in ``content`` or ``summary``."""
        parts = self._members.get(member)
        if type(parts) is ByIndex:
            parts = parts.entries()
        for part in parts if type(parts) is list else ():
            if type(part) is dict and part.get("type") == kind:
                yield part

    def arguments(self) -> Iterator[Text | str]:
        """What the item's tool is called with."""
        if self.call is not None:
            yield self.call.text
            return
        yield from (value for value in called_with(self._members) if type(value) in (str, Text))

    def grow(self, key: tuple[Any, int], place: Place, piece: str) -> int:
        """Let a text of the item grow.

        Args:
            key: What grows, and the index there.
            place: Where that is.
            piece: What is added.

        Returns:
            How much was added, in characters.
        """
        text, size = self._growing.get(key), len(piece)
        if text is None:
            container, member = self._find(place, key[1])
            known = container.get(member)
            if type(known) is not Text:
                known = container[member] = Text(known if type(known) is str else "")
            text = self._growing[key] = known
            size += PART_SIZE
        text.add(piece)
        return size

    def replace(self, place: Place, index: int, value: Any) -> None:
        """Put the whole of something where its pieces are."""
        container, member = self._find(place, index)
        known = container.get(member)
        if type(known) is Text and type(value) is str:
            known.replace(value)
        else:
            container[member] = plain(value)
            self._growing.clear()

    def set_beside(self, place: Place, index: int, member: str, value: Any) -> None:
        """Set another member of the object in which something is."""
        container, _ = self._find(place, index)
        container[member] = plain(value)

    def add_beside(self, place: Place, index: int, member: str, entries: list[Any]) -> None:
        """Let a list beside something grow at its end."""
        container, _ = self._find(place, index)
        known = container.get(member)
        if type(known) is not list:
            known = container[member] = []
        known += plain(entries)

    def annotate(self, index: int, number: int, annotation: Any) -> None:
        """Put an annotation in its place beside the text of a part."""
        container, member = self._find(_ANNOTATIONS, index)
        known = container.get(member)
        if type(known) is not ByIndex:
            known = container[member] = ByIndex(enumerate(known if type(known) is list else ()))
        known[number] = plain(annotation)

    def set_status(self, status: str) -> None:
        """Note how far a tool that runs on the server has come."""
        self._members["status"] = status

    def whole(self, item: Any) -> None:
        """Take the whole item in place of all that came of it."""
        self._begin(item)
        self.done = True
        self.end(complete=None)

    def end(self, *, complete: bool | None) -> None:
        """Note that the model is done with the item.

        Args:
            complete: Whether it was not stopped inside, where the status does not say it; None if that
                is not known.
        """
        status = self._members.get("status")
        if status in ("completed", "incomplete"):
            complete = status == "completed"
        if self.call is None or complete is None:
            return
        if complete:
            self.call.close()
        else:
            self.call.reopen()

    def _begin(self, item: Any) -> None:
        self._members = plain(item)
        self._growing.clear()
        kind = self.type or ""
        grows = _CLIENT_CALLS.get(kind)
        if grows is None:
            self.call = None
            return
        call_id, name, given = item.get("call_id"), item.get("name"), item.get(grows)
        # Who holds a call must not find another one in it: indexes shift where a proxy drops an item.
        another = call_id is not None and self.call is not None and self.call.id not in (None, call_id)
        if self.call is None or self.call.type != kind or another:
            self.call = ToolCall(kind, index=self._index)
        # What a gateway leaves out of an item that is done has come before.
        self.call.id = call_id if type(call_id) is str else self.call.id
        self.call.name = name if type(name) is str else self.call.name
        if given is not None:
            self.call.text.replace(given if type(given) is str else json.dumps(given))
        self._members[grows] = self.call.text

    def _find(self, place: Place, index: int) -> tuple[Any, Any]:
        """Go to where something belongs, and make what leads there."""
        container: Any = self._members
        keys = [index if step == "*" else step for step in place.path]
        for key, following in zip(keys, place.path[1:], strict=False):
            inner = container.get(key)
            if following == "*":
                if type(inner) is not ByIndex:
                    inner = ByIndex(enumerate(inner if type(inner) is list else ()))
            elif type(inner) is not dict:
                inner = plain(place.part or {})
            container[key] = inner
            container = inner
        return container, keys[-1]


def called_with(item: JSONObject) -> list[Any]:
    """What the tool of an item is called with, in the order in which it comes in pieces."""
    kind = item.get("type")
    path = ARGUMENTS.get(kind) if type(kind) is str else None
    values: list[Any] = [item] if path else []
    for step in path or ():
        values = [inner for value in values for inner in _inside(value, step)]
    return values


def _inside(value: Any, step: str) -> Iterable[Any]:
    if step == "*":
        return value.entries() if type(value) is ByIndex else value if type(value) is list else ()
    return (value[step],) if type(value) is dict and step in value else ()


class Accumulator(_Accumulator):
    """Makes a response of events.

    ``tool_calls`` are the calls of functions and custom tools, each under the ``call_id`` that it has to
    be answered under; what the server's own tools do is in the snapshot. ``finish_reason`` is the reason
    for which the response is incomplete, or else its status, once it has ended. ``usage`` is final where
    the response has ended with it.
    """

    __slots__ = ("_ended", "_items", "_response")

    def __init__(self, *, max_size: int | None = DEFAULT_MAX_ANSWER_SIZE) -> None:
        super().__init__(max_size=max_size)
        self._response: JSONObject = {}
        # How the response ended by the name of its last event.
        self._ended: str | None = None
        self._items: dict[int, ItemSoFar] = {}

    @property
    def items(self) -> tuple[ItemSoFar, ...]:
        """The items of the output, as far as they have begun. They go on growing."""
        return tuple(in_order(self._items))

    @property
    def text(self) -> str:
        """The text of all messages so far."""
        return "".join(map(str, self._of_parts("content", "output_text", "text")))

    @property
    def refusal(self) -> str:
        """The refusals of all messages so far."""
        return "".join(map(str, self._of_parts("content", "refusal", "refusal")))

    @property
    def reasoning(self) -> str:
        """The reasoning so far: the text where the server shows it, else the summaries."""
        return "".join(map(str, self._reasonings()))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls that the client has to answer, in the order of their items."""
        return tuple(item.call for item in self.items if item.call is not None)

    @property
    def finish_reason(self) -> str | None:
        """Why the response ended, None while it has not."""
        if self._ended is None:
            return None
        details = self._response.get("incomplete_details")
        reason = details.get("reason") if type(details) is dict else None
        words = (reason, self._response.get("status"))
        return next((word for word in words if word and type(word) is str), self._ended)

    @property
    def output_started(self) -> bool:
        """Whether any text or reasoning has come, or an item of another type has begun."""
        opening = ("message", "reasoning")
        return any(item.type not in opening for item in self.items) or bool(
            self.text_length or self.reasoning_length
        )

    @property
    def arguments_length(self) -> int:
        """Characters that tools are called with, those of the server's own tools included."""
        return sum(length(text) for item in self.items for text in item.arguments())

    def snapshot(self) -> JSONObject:
        """The answer as a ``response``."""
        if not self._response and not self._items:
            return {}
        return {
            **(plain(self._response) or {"object": "response"}),
            "output": [item.snapshot() for item in self.items],
        }

    def _of_parts(self, member: str, kind: str, name: str) -> Iterator[Text | str]:
        for item in self.items:
            for part in item.parts(member, kind):
                if type(part.get(name)) in (str, Text):
                    yield part[name]

    def _texts(self) -> Iterable[Text | str]:
        yield from self._of_parts("content", "output_text", "text")
        yield from self._of_parts("content", "refusal", "refusal")

    def _reasonings(self) -> Iterable[Text | str]:
        texts = [*self._of_parts("content", "reasoning_text", "text")]
        return texts or self._of_parts("summary", "summary_text", "text")

    def _item(self, index: int, implied: JSONObject) -> ItemSoFar:
        item = self._items.get(index)
        if item is None:
            item = self._items[index] = ItemSoFar(index, implied)
            self._room -= PART_SIZE
        return item

    def _take_lifecycle(self, event: LifecycleEvent) -> None:
        response: JSONObject = dict(event.response)
        self._room -= weight(response)
        output = response.pop("output", None)
        self._response = response
        told_usage = self._take_usage(response.get("usage"))
        items = [item for item in output if type(item) is dict] if type(output) is list else []
        for index, item in enumerate(items):
            self._item(index, item)
        outcome = OUTCOMES.get(type(event))
        if outcome is None:
            return
        if items:
            self._items = {index: self._items[index] for index in range(len(items))}
            for index, item in enumerate(items):
                self._items[index].whole(item)
        self.usage_final = told_usage
        self._end_response(event, outcome)

    def _end_response(self, event: LifecycleEvent, outcome: Outcome) -> None:
        self._ended = event.type.rpartition(".")[2]
        self.error = event.info or self.error
        self.outcome = outcome
        # Bridges call a response completed whose status tells that it was cut.
        completed = outcome is Outcome.COMPLETED and self._response.get("status") not in _CUT
        for item in self.items if completed else self.items[-1:]:
            # The model was stopped inside of the last item, or in none, whatever the server left open.
            item.end(complete=completed)

    def _take_added(self, event: OutputItemAdded) -> None:
        self._items[event.output_index] = ItemSoFar(event.output_index, event.item)
        self._room -= PART_SIZE + weight(event.item)

    def _take_done(self, event: OutputItemDone) -> None:
        item: Any = event.item
        index = event.output_index
        if event.payload.get("output_index") is None:
            # Gateways that abbreviate leave it out; 0 would be another item then.
            index = next((i for i, it in self._items.items() if it.id == item.get("id")), index)
        known = self._item(index, item)
        known.whole(item)
        known.end(complete=True)
        self._room -= weight(item)

    def _take_piece(self, event: Any) -> None:
        cls, payload = type(event), event.payload
        place = GROWS[cls]
        # The payload tells the same as the fields, which a repetition leaves to be looked up.
        item = self._items.get(payload.get("output_index") or 0)
        if item is None:
            item = self._item(event.output_index, place.item)
        if item.done:
            return
        index = payload.get(place.key) or 0
        self._room -= item.grow((cls, index), place, event.delta or "")
        logprobs = payload.get("logprobs") if cls is OutputTextDelta else None
        if logprobs and type(logprobs) is list:
            item.add_beside(place, index, "logprobs", logprobs)
            self._room -= weight(logprobs)

    def _take_whole(self, event: Any) -> None:
        place = REPLACES[type(event)]
        value, index = getattr(event, place.value), event.payload.get(place.key) or 0
        item = self._item(event.output_index, _item_around(value) or place.item)
        if item.done:
            return
        item.replace(place, index, value)
        self._room -= weight(value)
        logprobs = event.payload.get("logprobs")
        if logprobs is not None and type(event) is OutputTextDone:
            item.set_beside(place, index, "logprobs", logprobs)
            self._room -= weight(logprobs)
        if item.call is not None and item.type == place.item["type"]:
            item.call.close(sure=False)

    def _take_annotation(self, event: OutputTextAnnotationAdded) -> None:
        item = self._item(event.output_index, _MESSAGE)
        if not item.done:
            item.annotate(event.content_index, event.annotation_index, event.annotation)
            self._room -= weight(event.annotation)

    def _take_printed(self, event: ShellCallOutputContentDelta) -> None:
        item = self._item(event.output_index, _ALL_PRINTED.item)
        if item.done:
            return
        for stream, place in _PRINTED.items():
            piece = event.delta.get(stream)
            if type(piece) is str:
                self._room -= item.grow((stream, event.command_index), place, piece)

    def _take_all_printed(self, event: ShellCallOutputContentDone) -> None:
        item = self._item(event.output_index, _ALL_PRINTED.item)
        if not item.done and event.output:
            item.replace(_ALL_PRINTED, event.command_index, event.output[0])
            self._room -= weight(event.output[0])

    def _take_status(self, event: StatusEvent) -> None:
        item = self._item(event.output_index, _item(event.type.split(".")[1]))
        if not item.done:
            item.set_status(event.status)

    def _take_error(self, event: Error) -> None:
        self.error = event.info
        self.outcome = Outcome.FAILED

    _handlers: ClassVar[Mapping[type, Callable[[Any, Any], None]]] = {
        **dict.fromkeys(LIFECYCLE, _take_lifecycle),
        **dict.fromkeys(_STATUS, _take_status),
        **dict.fromkeys(GROWS, _take_piece),
        **dict.fromkeys(REPLACES, _take_whole),
        OutputItemAdded: _take_added,
        OutputItemDone: _take_done,
        OutputTextAnnotationAdded: _take_annotation,
        ShellCallOutputContentDelta: _take_printed,
        ShellCallOutputContentDone: _take_all_printed,
        Error: _take_error,
    }


def _item_around(part: Any) -> JSONObject | None:
    """The item that a part belongs to, where the part tells it."""
    reasoning = type(part) is dict and part.get("type") == _REASONING_TEXT["type"]
    return _REASONING if reasoning else None
