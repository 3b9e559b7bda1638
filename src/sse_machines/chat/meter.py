"""OpenAI Chat Completions: how much there is of an answer, and what it cost.

Nothing of the answer is kept. What the members of a delta mean is known from `events`; nothing is judged
here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from .._meter import (
    LIFE,
    OUTPUT,
    PROGRESS,
    TERMINAL,
    Meter as _Meter,
    take_life,
    take_terminal,
    take_unknown,
)
from .._protocol import Comment, Done, Event, JSONObject, Unknown
from .accumulator import DETAILS
from .events import REASONING_MEMBERS, RETRYABLE, ChatCompletionChunk, Error, texts_of
from .grammar import Memory

_COUNTED = {
    "content": "text",
    **dict.fromkeys(REASONING_MEMBERS, "reasoning"),
}
"""Members of which one piece makes a chunk, and what they are."""


class Meter(_Meter):
    """Counts what chunks add, of all choices.

    Usage is final where all choices are finished, and nothing of the answer came behind it. Some servers
    tell in every chunk what was used so far.
    """

    __slots__ = ("_open", "_seen", "_told")

    places: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "input": ("prompt_tokens",),
        "cached_input": ("prompt_tokens_details", "cached_tokens"),
        "cache_write": ("prompt_tokens_details", "cache_write_tokens"),
        "output": ("completion_tokens",),
        "reasoning": ("completion_tokens_details", "reasoning_tokens"),
        "total": ("total_tokens",),
    }
    retryable: ClassVar[Mapping[str | int, bool]] = RETRYABLE
    terminals: ClassVar[frozenset[type]] = frozenset((Done, Error))
    terminal = Done()

    def __init__(self) -> None:
        super().__init__()
        self._seen: set[int] = set()
        self._open: set[int] = set()
        # Whether usage was told behind all that came.
        self._told = False

    def take_run(self, run: Sequence[ChatCompletionChunk], memory: Memory) -> bool:
        """Count the pieces of chunks that are alike; nearly always they are text."""
        model = memory.model
        member: Any = model.member
        kind = _COUNTED.get(member)
        if kind is None or model.payload.get("usage"):
            return super().take_run(run, memory)
        chunks: Any = run
        length = 0
        for chunk in chunks:
            length += len(chunk.choices[0]["delta"][member])
        if kind == "text":
            self.text += length
        else:
            self.reasoning += length
        if length:
            self._told = self.usage_final = False
        return length > 0

    def pass_over(self) -> None:
        """Note that output came that was not looked into: what usage came before does not count it."""
        self._told = self.usage_final = False

    def is_only_usage(self, event: Event) -> bool:
        """Whether an event is the chunk that ``include_usage`` asks for."""
        if not isinstance(event, ChatCompletionChunk) or event.choices:
            return False
        return bool(event.payload.get("usage"))

    def _take_chunk(self, event: ChatCompletionChunk) -> int:
        shows = max(map(self._take_choice, event.choices), default=LIFE)
        if shows == OUTPUT:
            self._told = False
        # The payload tells the same as the field, which a repetition leaves to be looked up.
        if self._take_usage(event.payload.get("usage")):
            self._told = True
            shows = max(shows, PROGRESS)
        self.usage_final = self._told and not self._open and bool(self._seen)
        return shows

    def _take_choice(self, choice: Any) -> int:
        """Count what a choice adds, and note whether it is finished."""
        index, delta = choice.get("index", 0), choice.get("delta")
        if index not in self._seen:
            self._seen.add(index)
            self._open.add(index)
        shows = self._take_delta(delta) if delta else LIFE
        # OpenAI ends sound without a finish reason.
        expired = bool(delta) and _expires(delta)
        if expired or choice.get("finish_reason"):
            self._open.discard(index)
            shows = max(shows, PROGRESS)
        return shows

    def _take_delta(self, delta: JSONObject) -> int:
        """Count what a delta adds; nearly always it is one piece of text."""
        content = delta.get("content")
        if type(content) is str and content and len(delta) == 1:
            self.text += len(content)
            return OUTPUT
        before = self.text + self.reasoning + self.arguments
        self.text += _length(texts_of(_contents(delta), "text")) + _length((delta.get("refusal"),))
        self.reasoning += _reasoning_length(delta)
        calls = delta.get("tool_calls") or ()
        self.arguments += sum(map(_arguments_length, calls))
        added = self.text + self.reasoning + self.arguments > before
        audio = delta.get("audio")
        sound = audio and (type(audio) is not dict or [*audio] != ["expires_at"])
        return OUTPUT if added or calls or sound or delta.get("function_call") else LIFE

    def _take_error(self, event: Error) -> int:
        if event.chunk is not None:
            self._take_chunk(event.chunk)
        return TERMINAL

    handlers: ClassVar[Mapping[type, Callable[[Any, Any], int]]] = {
        ChatCompletionChunk: _take_chunk,
        Error: _take_error,
        Done: take_terminal,
        Unknown: take_unknown,
        Comment: take_life,
    }


def _expires(delta: JSONObject) -> bool:
    """Whether a delta tells how long a sound can be fetched, which comes behind all of it."""
    audio = delta.get("audio")
    return type(audio) is dict and "expires_at" in audio


def _contents(delta: JSONObject) -> Iterator[Any]:
    content = delta.get("content")
    return iter((content,) if content else ())


def _length(texts: Any) -> int:
    return sum(len(text) for text in texts if type(text) is str)


def _reasoning_length(delta: JSONObject) -> int:
    """How much reasoning a delta has: servers that send it under several names send the same."""
    named = [delta[name] for name in REASONING_MEMBERS if delta.get(name)][:1]
    found = _length(named) or _length(texts_of(_contents(delta), "thinking"))
    details = delta.get("reasoning_details")
    if found or type(details) is not list:
        return found
    entries = [entry for entry in details if type(entry) is dict]
    return sum(_length(entry.get(name) for name in DETAILS) for entry in entries)


def _arguments_length(piece: Any) -> int:
    """How much a piece adds to what a tool is called with."""
    return _length(
        tool.get(name)
        for tool, name in ((piece.get("function"), "arguments"), (piece.get("custom"), "input"))
        if type(tool) is dict
    )
