"""OpenAI Chat Completions: chunks to a chat completion.

Follows what the official SDK (openai 3.57, ``client.chat.completions.stream``) accumulates of clean
streams. Where that breaks (a role in every chunk, calls without index, a chunk behind the usage), the
rule is: names are said once, texts come in pieces, counts replace counts, and an index is a key. Members
that no vendor documents are treated by their JSON type. This module deliberately judges nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar

from .._accumulator import (
    DEFAULT_MAX_ANSWER_SIZE,
    MEMBER_SIZE,
    PART_SIZE,
    Accumulator as _Accumulator,
    ByIndex,
    Text,
    ToolCall,
    in_order,
    plain,
    weight,
)
from .._payload import dumps
from .._protocol import Done, EndOfStream, JSONObject, Outcome
from .events import REASONING_MEMBERS, ChatCompletionChunk, Error
from .tool_calls import Calls, Correlation

CUT = ("length", "content_filter", "error")
"""Finish reasons that say the model was stopped where it stood, maybe inside of a call."""

ONCE = ("id", "name", "type", "index", "role", "channel", "format")
"""Members that are said once: the first value counts, and whatever repeats it does not."""
PIECES = (
    *("content", "refusal", *REASONING_MEMBERS, "arguments", "input", "data", "transcript"),
    *("text", "summary", "thinking"),
)
"""Members whose strings are pieces, however deep. On the top of a delta, all others are, too."""
DETAILS = ("text", "summary")
"""Members of an entry of ``reasoning_details`` that a person can read."""
EXTENDED = ("token_ids",)
"""Members of a choice whose lists are pieces."""
REPLACED = ("moderation",)
"""Members of a chunk of which the last value counts, and not the first."""

_NULLS = ("content", "refusal", "role", "annotations", "audio", "function_call", "tool_calls")
"""The members that every message of a chat completion has."""
_OF_A_CHUNK = frozenset(("choices", "usage", "object", "obfuscation"))
_OF_A_CHOICE = frozenset(
    ("index", "delta", "message", "text", "finish_reason", "logprobs", "obfuscation")
)
"""Members that are handled by themselves, say the delta again, or belong to the chunk alone."""


class ChoiceSoFar:
    """One of the answers, as far as it has come.

    Attributes:
        index: Which one.
        finish_reason: Why the model stopped; None while it has not said.
        tool_calls: The calls, in the order in which they began. They go on growing.
    """

    __slots__ = (
        *("_calls", "_logprobs", "_members", "_message", "_rests", "_unsure"),
        *("finish_reason", "index", "tool_calls"),
    )

    def __init__(self, index: int) -> None:
        self.index = index
        self.finish_reason: str | None = None
        self.tool_calls: list[ToolCall] = []
        self._calls = Calls()
        # What came with each call besides its id, name and arguments.
        self._rests: list[JSONObject] = []
        # The calls that were left for others before the model stopped, and may be gone on with.
        self._unsure: set[int] = set()
        self._message: JSONObject = {}
        self._members: JSONObject = {}
        self._logprobs: JSONObject = {}

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(map(str, self.texts("content")))

    @property
    def refusal(self) -> str:
        """The refusal so far."""
        return "".join(map(str, self.texts("refusal")))

    @property
    def reasoning(self) -> str:
        """The reasoning so far; where it comes in several forms, in the first of them."""
        return "".join(map(str, self.reasonings()))

    @property
    def begun(self) -> bool:
        """Whether anything of the answer has come."""
        texts = [*self.texts("content", "refusal"), *self.reasonings()]
        called = self.tool_calls or self._message.get("audio") or self._message.get("function_call")
        return bool(called) or any(text.length for text in texts)

    @property
    def finished(self) -> bool:
        """Whether the model has stopped. OpenAI ends sound without a finish reason."""
        audio = self._message.get("audio")
        return self.finish_reason is not None or (type(audio) is dict and "expires_at" in audio)

    def texts(self, *names: str) -> Iterator[Text]:
        """What has come as text under some names."""
        found = (self._message.get(name) for name in names)
        return (text for text in found if type(text) is Text)

    def reasonings(self) -> list[Text]:
        """The reasoning: under the first name that it has come under, or else in its details."""
        named = [text for text in self.texts(*REASONING_MEMBERS) if text.length][:1]
        details = self._message.get("reasoning_details")
        if named or type(details) is not ByIndex:
            return named
        entries = [entry for entry in details.entries() if type(entry) is dict]
        found = [entry.get(name) for entry in entries for name in DETAILS]
        return [text for text in found if type(text) is Text]

    def snapshot(self) -> JSONObject:
        """The choice as a chat completion has it."""
        message = {**dict.fromkeys(_NULLS), **plain(self._message)}
        if self.tool_calls:
            message["tool_calls"] = [*map(_call_of, self.tool_calls, self._rests)]
        return {
            "index": self.index,
            "message": message,
            "finish_reason": self.finish_reason,
            "logprobs": plain(self._logprobs) or None,
            **plain(self._members),
        }

    def take(self, choice: Any) -> int:
        """Take what a chunk says of the choice.

        Returns:
            How much that is, in characters.
        """
        delta, size = choice.get("delta"), 0
        if delta:
            size = self._take_delta(delta)
        reason = choice.get("finish_reason")
        if reason:
            size += self._finish(reason)
        if choice.keys() <= _OF_A_CHOICE and not choice.get("logprobs"):
            return size
        return size + self._take_rest(choice)

    def _take_delta(self, delta: JSONObject) -> int:
        size = 0
        for name, value in delta.items():
            if name == "tool_calls":
                size += sum(map(self._take_call, value or ()))
            elif name == "content" and type(value) is list:
                size += self._take_parts(value)
            else:
                size += merge(self._message, name, value, top=True)
        return size

    def _take_parts(self, parts: list[JSONObject]) -> int:
        """Take content that comes as a list of typed parts, as Mistral sends it."""
        chunk = ChatCompletionChunk(choices=[{"delta": {"content": parts}}])
        reasoning = merge(self._message, REASONING_MEMBERS[0], chunk.reasoning() or None, top=True)
        return reasoning + merge(self._message, "content", chunk.text() or None, top=True)

    def _take_call(self, piece: Any) -> int:
        """Take a piece of a call: find the call, and let it grow."""
        calls, before = self._calls, self._calls.latest
        index, number = piece.get("index"), None
        if type(index) is int and not piece.get("id"):
            number = calls.by_index.get(index)
        if number is None:
            correlation = Correlation(calls)
            number, _ = correlation.place(piece)
            correlation.commit()
        calls.latest = number
        size = 0
        if number == len(self.tool_calls):
            self.tool_calls.append(_new_call(piece))
            self._rests.append({})
            size = PART_SIZE + len(self.tool_calls[number].type)
        if before != number:
            if before is not None:
                self._leave(before)
            self.tool_calls[number].reopen()
        return size + _grow(self.tool_calls[number], self._rests[number], piece)

    def _leave(self, number: int) -> None:
        """Close a call for another one. Calls may take turns, and its arguments not have begun."""
        stopped = self.finish_reason is not None and self.finish_reason not in CUT
        self.tool_calls[number].close(sure=stopped)
        if not stopped:
            self._unsure.add(number)

    def _finish(self, reason: str) -> int:
        size = len(reason) - len(self.finish_reason or "")
        self.finish_reason = reason
        latest = self._calls.latest
        if latest is None:
            return size
        if reason in CUT:
            self.tool_calls[latest].reopen()
            return size
        for number in (*self._unsure, latest):
            self.tool_calls[number].close()
        self._unsure.clear()
        return size

    def _take_rest(self, choice: Any) -> int:
        size = 0
        logprobs = choice.get("logprobs")
        if type(logprobs) is dict:
            size += sum(_extend(self._logprobs, *member) for member in logprobs.items())
        for name, value in choice.items():
            if name in EXTENDED:
                size += _extend(self._members, name, value)
            elif name not in _OF_A_CHOICE and (value or name not in self._members):
                size += _replace(self._members, name, value)
        return size


class Accumulator(_Accumulator):
    """Makes a chat completion of chunks.

    ``text``, ``reasoning``, ``tool_calls`` and ``finish_reason`` are those of the first choice; the
    others are in ``choices``. ``usage`` is final once it came with the last finish reason or behind it;
    or, where the stream ended well, behind all that was produced.
    """

    __slots__ = ("_choices", "_counted", "_members", "_seen")

    def __init__(self, *, max_size: int | None = DEFAULT_MAX_ANSWER_SIZE) -> None:
        super().__init__(max_size=max_size)
        self._choices: dict[int, ChoiceSoFar] = {}
        self._members: JSONObject = {}
        # What had been produced when the usage was told last.
        self._counted: int | None = None
        # The members of chunks of which nothing more is wanted.
        self._seen: set[str] = {*_OF_A_CHUNK}

    @property
    def choices(self) -> Mapping[int, ChoiceSoFar]:
        """The answers by their index, as far as they have begun. They go on growing."""
        return dict(sorted(self._choices.items()))

    @property
    def text(self) -> str:
        """The text of the first choice so far."""
        first = self._first()
        return first.text if first else ""

    @property
    def reasoning(self) -> str:
        """The reasoning of the first choice so far, in any vendor's spelling."""
        first = self._first()
        return first.reasoning if first else ""

    @property
    def refusal(self) -> str:
        """The refusal of the first choice so far."""
        first = self._first()
        return first.refusal if first else ""

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls of the first choice, in the order in which they began."""
        first = self._first()
        return tuple(first.tool_calls) if first else ()

    @property
    def finish_reason(self) -> str | None:
        """The finish reason of the first choice; None while it has none."""
        first = self._first()
        return first.finish_reason if first else None

    @property
    def output_started(self) -> bool:
        """Whether any text, reasoning, refusal, call or sound has come."""
        return any(choice.begun for choice in self._choices.values())

    def snapshot(self) -> JSONObject:
        """The answer as a ``chat.completion``.

        ``index`` stays in every call, as the SDK leaves it. What the SDK's helpers parse for their
        callers (``parsed``, ``parsed_arguments``) is not there.
        """
        if not self._choices and not self._members:
            return {}
        return {
            **dict.fromkeys(("id", "created", "model", "system_fingerprint")),
            **plain(self._members),
            "object": "chat.completion",
            "choices": [choice.snapshot() for choice in in_order(self._choices)],
            "usage": self.usage,
        }

    def _first(self) -> ChoiceSoFar | None:
        return self._choices[min(self._choices)] if self._choices else None

    def _texts(self) -> Iterable[Text | str]:
        for choice in self._choices.values():
            yield from choice.texts("content", "refusal")

    def _reasonings(self) -> Iterable[Text | str]:
        for choice in self._choices.values():
            yield from choice.reasonings()

    def _calls(self) -> Iterable[ToolCall]:
        for choice in self._choices.values():
            yield from choice.tool_calls

    def _all_finished(self) -> bool:
        choices = self._choices.values()
        return bool(choices) and all(choice.finished for choice in choices)

    def _produced(self) -> int:
        return self.text_length + self.reasoning_length + self.arguments_length

    def _is_counted(self) -> bool:
        """Whether the usage came behind all that was produced; before the end of sound, for one."""
        return self._counted == self._produced() and self._all_finished()

    def _take_chunk(self, event: ChatCompletionChunk) -> None:
        for choice in event.choices:
            index = choice.get("index", 0)
            so_far = self._choices.get(index)
            if so_far is None:
                so_far = self._choices[index] = ChoiceSoFar(index)
                self._room -= PART_SIZE
                # What was final without it is not final with it.
                self.usage_final = False
            self._room -= so_far.take(choice)
        payload = event.payload
        if not payload.keys() <= self._seen:
            self._take_members(payload)
        # The payload tells the same as the field, which a repetition leaves to be looked up.
        if self._take_usage(payload.get("usage")):
            self._counted = self._produced()
            self.usage_final = self._all_finished()

    def _take_members(self, payload: JSONObject) -> None:
        """Take the first value of every member, or the first one that is not empty."""
        for name, value in payload.items():
            if name in self._seen or (not value and (value is None or name in self._members)):
                continue
            if value and name not in REPLACED:
                self._seen.add(name)
            self._room -= _replace(self._members, name, value)

    def _take_error(self, event: Error) -> None:
        if event.chunk is not None:
            self._take_chunk(event.chunk)
        self.error = event.info
        self.outcome = Outcome.FAILED

    def _take_done(self, _event: Done) -> None:
        self.usage_final = self._is_counted()
        self.end(Outcome.COMPLETED)

    def _take_end(self, event: EndOfStream) -> None:
        if event.outcome is Outcome.COMPLETED_NO_DONE:
            self.usage_final = self._is_counted()
        super()._take_end(event)

    _handlers: ClassVar[Mapping[type, Callable[[Any, Any], None]]] = {
        ChatCompletionChunk: _take_chunk,
        Error: _take_error,
        Done: _take_done,
    }


def merge(into: dict[Any, Any], name: Any, value: Any, *, top: bool = False) -> int:
    """Let a member of an object grow by what a delta says of it.

    Args:
        into: The object.
        name: The member; an index where ``into`` is a list by index.
        value: What the delta has there; null adds nothing.
        top: Whether the member is one of the delta itself, where every string is a piece.

    Returns:
        How much was added, in characters.
    """
    known = into.get(name)
    grown = 0 if name in into else _weight_of_name(name)
    if value is None:
        into.setdefault(name, None)
    elif type(value) is str:
        grown += _merge_string(into, name, value, top=top)
    elif type(value) is dict:
        inner = known if type(known) is dict else {}
        into[name] = inner
        grown += sum(merge(inner, key, member) for key, member in value.items())
    elif type(value) is list:
        entries = known if type(known) is ByIndex else ByIndex()
        into[name] = entries
        grown += sum(_merge_entry(entries, entry) for entry in value)
    else:
        into[name] = value
    return grown


def _extend(into: JSONObject, name: str, entries: Any) -> int:
    """Let a list grow at its end."""
    if type(entries) is not list:
        return 0 if name in into else _replace(into, name, entries)
    grown = 0 if name in into else _weight_of_name(name)
    known = into.get(name)
    if type(known) is not list:
        known = into[name] = []
    known += entries
    return grown + weight(entries)


def _replace(into: JSONObject, name: str, value: Any) -> int:
    """Put a value in the place of the one that is there, if there is one."""
    grown = -weight(into[name]) if name in into else _weight_of_name(name)
    into[name] = value
    return grown + weight(value)


def _weight_of_name(name: Any) -> int:
    """How much a new member counts besides its value: names come off the wire, too."""
    return MEMBER_SIZE + (len(name) if type(name) is str else 0)


def _merge_string(into: dict[Any, Any], name: Any, piece: str, *, top: bool) -> int:
    known = into.get(name)
    if type(known) is Text:
        known.add(piece)
    elif name in ONCE:
        into[name] = known or piece
        return 0 if known else len(piece)
    elif top or name in PIECES:
        into[name] = Text(piece)
    else:
        into[name] = piece
        return len(piece) - len(known if type(known) is str else "")
    return len(piece)


def _merge_entry(entries: ByIndex, entry: Any) -> int:
    """Let a list grow by an entry.

    An entry belongs to the one with its index and its type, since gateways number text and encrypted
    reasoning alike. One without an index is a new one, at the end.
    """
    index = entry.get("index") if type(entry) is dict else None
    # No entry with an index has a key like the one of an entry without.
    key = (len(entries), None) if type(index) is not int else (index, str(entry.get("type") or ""))
    return merge(entries, key, entry)


def _new_call(piece: Any) -> ToolCall:
    index, kind = piece.get("index"), piece.get("type")
    if not kind or type(kind) is not str:
        kind = "custom" if piece.get("custom") else "function"
    return ToolCall(kind, index=index if type(index) is int else None)


def _grow(call: ToolCall, rest: JSONObject, piece: Any) -> int:
    """Let a call grow by a piece: its id and name are said once, its arguments come in pieces."""
    size = 0
    for name, value in piece.items():
        if name in _TOOLS:
            size += _grow_tool(call, rest, name, value or {})
        elif name == "id":
            size += 0 if call.id else len(value or "")
            call.id = call.id or value or None
        elif name not in ("index", "type"):
            size += merge(rest, name, value)
    return size


def _grow_tool(call: ToolCall, rest: JSONObject, member: str, tool: JSONObject) -> int:
    size = 0
    for name, value in tool.items():
        if name == "name":
            size += 0 if call.name else len(value or "")
            call.name = call.name or value or None
        elif name != _TOOLS[member]:
            size += merge(rest.setdefault(member, {}), name, value)
        elif value is not None:
            piece = value if type(value) is str else dumps(value)
            call.text.add(piece)
            size += len(piece)
    return size


def _call_of(call: ToolCall, rest: JSONObject) -> JSONObject:
    """A call as a chat completion has it."""
    rest = plain(rest)
    member = "custom" if call.type == "custom" else "function"
    tool = {"name": call.name, _TOOLS[member]: call.arguments, **rest.pop(member, {})}
    return {"index": call.index, "id": call.id, "type": call.type, member: tool, **rest}


_TOOLS = {"function": "arguments", "custom": "input"}
"""The members of a call that say what is called, and the member there that comes in pieces."""
