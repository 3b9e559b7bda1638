"""Anthropic Messages: how much there is of an answer, and what it cost.

Nothing of the answer is kept, and nothing is judged here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from .._meter import (
    LIFE,
    OUTPUT,
    PROGRESS,
    Meter as _Meter,
    count_of,
    sum_of,
    take_life,
    take_terminal,
    take_unknown,
)
from .._protocol import Comment, Done, Event, JSONObject, Unknown
from .accumulator import TOOL_BLOCKS, text_of
from .events import (
    RETRYABLE,
    ContentBlockDelta,
    ContentBlockStart,
    ContentBlockStop,
    Error,
    MessageDelta,
    MessageStart,
    MessageStop,
    Ping,
)
from .grammar import Memory

_COUNTED = {"text": "text", "thinking": "reasoning", "partial_json": "arguments"}
"""Members of a delta, and what they are."""
_EMPTY = ("text", "thinking")
"""Blocks that are nothing until there is text in them; it stands in a member of the same name."""


class Meter(_Meter):
    """Counts what deltas add. Usage is final once it came with a stop reason."""

    __slots__ = ("_open",)

    retryable: ClassVar[Mapping[str | int, bool]] = RETRYABLE
    terminals: ClassVar[frozenset[type]] = frozenset((MessageStop, Error))
    terminal = MessageStop()
    outlives_failure = True
    unread: ClassVar[frozenset[bytes]] = frozenset((ContentBlockDelta.type.encode(),))
    ping = Ping()

    def __init__(self) -> None:
        super().__init__()
        self._open: set[int] = set()

    @property
    def closed(self) -> bool:
        """Whether all content blocks that began have ended, and not only by the stop reason."""
        return not self._open

    def take_run(self, run: Sequence[ContentBlockDelta], memory: Memory) -> bool:
        """Count the pieces of deltas that are alike."""
        member = memory.model.member
        kind = _COUNTED.get(member)
        if kind is None:
            return True
        deltas: Any = run
        length = 0
        for event in deltas:
            length += len(event.delta[member])
        setattr(self, kind, getattr(self, kind) + length)
        return length > 0

    def see_dropped(self, event: Event) -> None:
        """Note what the client sees begin and end."""
        if isinstance(event, ContentBlockStart):
            self._open.add(event.index)
        elif isinstance(event, ContentBlockStop):
            self._open.discard(event.index)

    @classmethod
    def counts(cls, usage: JSONObject) -> dict[str, int | None]:
        """The counts of ``usage`` in common terms."""
        read, written = (count_of(usage, f"cache_{way}_input_tokens") for way in ("read", "creation"))
        output = count_of(usage, "output_tokens")
        # Anthropic counts what is in a cache apart.
        whole = sum_of(count_of(usage, "input_tokens"), read, written)
        return {
            "input": whole,
            "cached_input": read,
            "cache_write": written,
            "output": output,
            "reasoning": count_of(usage, "output_tokens_details", "thinking_tokens"),
            "total": None if output is None else sum_of(whole, output),
        }

    def _take_start(self, event: MessageStart) -> int:
        message: Any = event.message
        known = self.usage
        told = self._take_usage(message.get("usage"))
        # A start that comes late is older than what came before it.
        self._take_usage(known)
        self.usage_final = self.usage_final or (told and message.get("stop_reason") is not None)
        content = message.get("content")
        blocks = content if type(content) is list else ()
        return max([PROGRESS, *(self._begin(block) for block in blocks if type(block) is dict)])

    def _take_block(self, event: ContentBlockStart) -> int:
        self._open.add(event.index)
        return self._begin(event.content_block)

    def _begin(self, block: Any) -> int:
        """Count what a block has from its beginning: most have nothing."""
        kind = block.get("type")
        text, thinking, given = block.get("text"), block.get("thinking"), block.get("input")
        if kind == "text" and type(text) is str:
            self.text += len(text)
        elif kind == "thinking" and type(thinking) is str:
            self.reasoning += len(thinking)
        elif kind in TOOL_BLOCKS and given:
            self.arguments += len(text_of(given))
        return PROGRESS if kind in _EMPTY and not block.get(kind) else OUTPUT

    def _take_delta(self, event: ContentBlockDelta) -> int:
        delta: Any = event.delta
        text = delta.get("text")
        if type(text) is str:
            self.text += len(text)
            return OUTPUT if text else LIFE
        return self._take_other(delta)

    def _take_other(self, delta: JSONObject) -> int:
        thinking, piece = delta.get("thinking"), delta.get("partial_json")
        if type(thinking) is str:
            self.reasoning += len(thinking)
            return OUTPUT if thinking else LIFE
        if type(piece) is str:
            self.arguments += len(piece)
            return OUTPUT if piece else LIFE
        return PROGRESS

    def _take_stop(self, event: ContentBlockStop) -> int:
        self._open.discard(event.index)
        return PROGRESS

    def _take_message_delta(self, event: MessageDelta) -> int:
        told = self._take_usage(event.usage)
        self.usage_final = told and event.delta.get("stop_reason") is not None
        return PROGRESS

    handlers: ClassVar[Mapping[type, Callable[[Any, Any], int]]] = {
        MessageStart: _take_start,
        ContentBlockStart: _take_block,
        ContentBlockDelta: _take_delta,
        ContentBlockStop: _take_stop,
        MessageDelta: _take_message_delta,
        MessageStop: take_terminal,
        Error: take_terminal,
        Ping: take_life,
        Done: take_life,
        Unknown: take_unknown,
        Comment: take_life,
    }
