"""Anthropic Messages: events to a message.

Follows what the official SDK (anthropic 2.14, ``client.messages.stream``) accumulates, with one
difference: the input of a tool that was cut is never presented as whole. This module deliberately judges
nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

from .._accumulator import (
    DEFAULT_MAX_ANSWER_SIZE,
    PART_SIZE,
    Accumulator as _Accumulator,
    Text,
    ToolCall,
    in_order,
    plain,
    weight,
)
from .._payload import PayloadError, dumps
from .._protocol import JSONObject, Outcome
from .events import (
    ContentBlockDelta,
    ContentBlockStart,
    ContentBlockStop,
    Error,
    MessageDelta,
    MessageStart,
    MessageStop,
)

CUT = ("max_tokens", "model_context_window_exceeded", "refusal")
"""Stop reasons that say the model was stopped where it stood, maybe inside of a call."""

TOOL_BLOCKS = ("tool_use", "server_tool_use", "mcp_tool_use")
"""Blocks whose ``input`` comes as pieces of JSON text; the first one is the client's to answer."""

PIECES = {"text_delta": "text", "thinking_delta": "thinking"}
"""The deltas that carry a piece of a text, and the member of the block that grows by it."""

_GROWS = {"text": "text", "thinking": "thinking"}
"""The member of a block that grows, by the block's type."""

_REPLACED = {
    "signature_delta": ("thinking", ("signature",)),
    "compaction_delta": ("compaction", ("content", "encrypted_content")),
}
"""The deltas that replace members, the type of block that they belong to, and the members."""

_IMPLIED = {
    "text_delta": {"type": "text", "text": ""},
    "citations_delta": {"type": "text", "text": ""},
    "thinking_delta": {"type": "thinking", "thinking": "", "signature": ""},
    "signature_delta": {"type": "thinking", "thinking": "", "signature": ""},
    "input_json_delta": {"type": "tool_use", "id": None, "name": None, "input": {}},
    "compaction_delta": {"type": "compaction"},
}
"""The block that a delta belongs to whose block never began."""

_ASSIGNED = ("context_management", "input_transformations")
"""Members of a message that are told beside the delta of a ``message_delta``. Beta."""


_NULLS = ("id", "model", "stop_reason", "stop_sequence")


class BlockSoFar:
    """A content block, as far as it has come.

    Args:
        index: Which one.
        begin: What its ``content_block_start`` says of it.

    Attributes:
        type: The type of the block.
        text: The text or thinking of the block, None if it has no such thing.
        call: The call that the block is, None if it is none.
    """

    __slots__ = ("_citations", "_grows", "_members", "_whole", "call", "text", "type")

    def __init__(self, index: int, begin: Any) -> None:
        self.type: str = begin["type"]
        self._members: JSONObject = dict(begin)
        self._citations: list[Any] = []
        self._grows = _GROWS.get(self.type)
        self.text: Text | None = None
        if self._grows is not None:
            known = begin.get(self._grows)
            self.text = self._members[self._grows] = Text(known if type(known) is str else "")
        self.call: ToolCall | None = None
        # Whether the input came with the beginning of the block, as calls from code do.
        self._whole = self.type in TOOL_BLOCKS and bool(begin.get("input"))
        if self.type in TOOL_BLOCKS:
            self.call = ToolCall(self.type, id=begin.get("id"), name=begin.get("name"), index=index)
            self.call.text.add(text_of(begin["input"]) if self._whole else "")

    def snapshot(self) -> JSONObject:
        """The block as a message has it."""
        block: JSONObject = plain(self._members)
        if self._citations:
            known = block.get("citations")
            block["citations"] = [*(known if type(known) is list else ()), *plain(self._citations)]
        if self.call is not None:
            block["input"] = self.call.input
            if not self.call.complete:
                block["partial_json"] = self.call.arguments
        return block

    def take(self, delta: Any) -> int:
        """Let the block grow by a delta; one that does not fit it changes nothing.

        Returns:
            How much was added, in characters.
        """
        kind = delta["type"]
        member = PIECES.get(kind)
        if member is not None:
            if self.text is None or member != self._grows:
                return 0
            piece: str = delta[member]
            self.text.add(piece)
            return len(piece)
        if kind == "input_json_delta":
            return self._take_json(delta["partial_json"])
        return self._take_member(kind, delta)

    def _take_json(self, piece: str) -> int:
        if self.call is None or not piece:
            return 0
        if self._whole:
            # Pieces are the truth where both come.
            self._whole = False
            self.call.text.replace("")
        self.call.text.add(piece)
        return len(piece)

    def _take_member(self, kind: str, delta: JSONObject) -> int:
        if kind == "citations_delta" and self.type == "text":
            self._citations.append(delta.get("citation"))
            return weight(delta)
        home, names = _REPLACED.get(kind, ("", ()))
        replaced = [name for name in names if self.type == home and delta.get(name) is not None]
        size = sum(weight(delta[name]) - weight(self._members.get(name)) for name in replaced)
        self._members.update((name, delta[name]) for name in replaced)
        return size


class Accumulator(_Accumulator):
    """Makes a message of events.

    ``tool_calls`` are the ``tool_use`` blocks; calls that the server answers itself are in the snapshot.
    The snapshot of a call that is not complete has ``"input": None`` and its text in ``partial_json``.
    ``finish_reason`` is the stop reason. ``usage`` is final once it came with a stop reason.
    """

    __slots__ = ("_blocks", "_given", "_message", "_unsure")

    def __init__(self, *, max_size: int | None = DEFAULT_MAX_ANSWER_SIZE) -> None:
        super().__init__(max_size=max_size)
        self._message: JSONObject = {}
        # What the message had in it from its beginning, and what came.
        self._given: list[BlockSoFar] = []
        self._blocks: dict[int, BlockSoFar] = {}
        # The call that ended last: its input may never have been begun.
        self._unsure: ToolCall | None = None

    @property
    def blocks(self) -> tuple[BlockSoFar, ...]:
        """The content blocks, as far as they have begun. They go on growing."""
        return (*self._given, *in_order(self._blocks))

    @property
    def text(self) -> str:
        """The text of all text blocks so far."""
        return "".join(str(text) for text in self._texts())

    @property
    def reasoning(self) -> str:
        """The thinking of all thinking blocks so far."""
        return "".join(str(text) for text in self._reasonings())

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls that the client has to answer, in the order of their blocks."""
        return tuple(call for call in self._calls() if call.type == TOOL_BLOCKS[0])

    @property
    def finish_reason(self) -> str | None:
        """The stop reason; None while it has not come."""
        return self._message.get("stop_reason")

    @property
    def output_started(self) -> bool:
        """Whether any text or thinking has come, or a block of another type has begun."""
        return any(block.text is None or block.text.length for block in self.blocks)

    def snapshot(self) -> JSONObject:
        """The answer as a ``message``."""
        if not self._message and not self.blocks and self._usage is None:
            return {}
        return {
            **dict.fromkeys(_NULLS),
            "type": "message",
            "role": "assistant",
            **plain(self._message),
            "content": [block.snapshot() for block in self.blocks],
            "usage": self.usage,
        }

    def _texts(self) -> Iterable[Text | str]:
        return (block.text for block in self.blocks if block.type == "text" and block.text)

    def _reasonings(self) -> Iterable[Text | str]:
        return (block.text for block in self.blocks if block.type == "thinking" and block.text)

    def _calls(self) -> Iterable[ToolCall]:
        return (block.call for block in self.blocks if block.call)

    @property
    def _finished(self) -> bool:
        """Whether a stop reason has come that says that the model came to the end of what it wrote."""
        return self.finish_reason is not None and self.finish_reason not in CUT

    def _take_start(self, event: MessageStart) -> None:
        message: JSONObject = dict(event.message)
        known_usage = self._usage
        told_usage = self._take_usage(message.pop("usage", None))
        # A start that comes late is older than what came before it.
        self._take_usage(known_usage)
        content = message.pop("content", None)
        for index, block in enumerate(content if type(content) is list else ()):
            if type(block) is not dict or type(block.get("type")) is not str:
                continue
            given = BlockSoFar(index, block)
            self._given.append(given)
            if given.call is not None:
                given.call.close()
        if told_usage and message.get("stop_reason") is not None:
            self.usage_final = True
        self._message = {**message, **self._message}
        self._room -= PART_SIZE * len(self._given) + weight(event.message)

    def _take_block(self, event: ContentBlockStart) -> None:
        self._begin(event.index, event.content_block)

    def _begin(self, index: int, begin: Any) -> BlockSoFar:
        self._reassure()
        block = self._blocks[index] = BlockSoFar(index, begin)
        self._room -= PART_SIZE + weight(begin)
        if block.type == "fallback":
            # Another model goes on from here.
            to = begin.get("to")
            model = to.get("model") if type(to) is dict else None
            self._message.update({} if model is None else {"model": model})
        return block

    def _reassure(self) -> None:
        """Note that the model went on after the call that ended last."""
        if self._unsure is not None:
            self._unsure.close()
            self._unsure = None

    def _take_delta(self, event: ContentBlockDelta) -> None:
        # The payload tells the same as the field, which a repetition leaves to be looked up.
        block = self._blocks.get(event.payload["index"])
        if block is None:
            implied = _IMPLIED.get(event.delta["type"])
            if implied is None:
                return
            block = self._begin(event.index, implied)
        self._room -= block.take(event.delta)

    def _take_stop(self, event: ContentBlockStop) -> None:
        block = self._blocks.get(event.index)
        if block is not None and block.call is not None:
            self._reassure()
            block.call.close(sure=self._finished)
            self._unsure = block.call

    def _take_message_delta(self, event: MessageDelta) -> None:
        told: JSONObject = {**event.delta, **{name: event.payload.get(name) for name in _ASSIGNED}}
        self._message.update((name, value) for name, value in told.items() if value is not None)
        self._room -= weight(told) + weight(event.usage)
        told_usage = self._take_usage(event.usage)
        self.usage_final = told_usage and self.finish_reason is not None
        if self._finished:
            # The model was not stopped inside of a call, whatever the server left open.
            for call in self._calls():
                call.close()

    def _take_message_stop(self, _event: MessageStop) -> None:
        self.end(Outcome.COMPLETED)

    def _take_error(self, event: Error) -> None:
        self.error = event.info
        self.outcome = Outcome.FAILED

    _handlers: ClassVar[Mapping[type, Callable[[Any, Any], None]]] = {
        MessageStart: _take_start,
        ContentBlockStart: _take_block,
        ContentBlockDelta: _take_delta,
        ContentBlockStop: _take_stop,
        MessageDelta: _take_message_delta,
        MessageStop: _take_message_stop,
        Error: _take_error,
    }


def text_of(value: Any) -> str:
    """An input that came as a value, as the text that pieces of it would make."""
    try:
        return dumps(value)
    except PayloadError:
        # A number beyond a float has no text any more. What stands for it is no JSON, so the call stays
        # incomplete.
        return json.dumps(value, ensure_ascii=False)
