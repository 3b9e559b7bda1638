"""The answer so far: what the accumulators of all protocols share.

An accumulator is given events and holds the answer that they make. It keeps text as pieces and joins
them when somebody asks, so an answer costs what it is long, however small its pieces are. This module
deliberately judges nothing (the receiver has done that) and knows no protocol by name.
"""

from __future__ import annotations

import copy
import enum
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, NoReturn

from typing_extensions import Self

from ._errors import AnswerTooLarge
from ._payload import PayloadError, loads
from ._protocol import EndOfStream, ErrorInfo, Event, JSONObject, Outcome
from .partial_json import Change, PartialJSON

DEFAULT_MAX_ANSWER_SIZE = 64 * 1024 * 1024
"""How much is kept of one answer by default, in bytes."""

PART_SIZE = 1024
"""What a choice, a block, an item, a part or a call counts besides what is in it, so that the one limit
also bounds how many there are."""

MEMBER_SIZE = 64
"""What every value counts besides the characters in it."""

_MAX_PIECES = 1024
"""Most pieces that are kept apart: a piece of one character takes 80 bytes."""


_SURROGATE = re.compile("[\ud800-\udfff]")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def _whole(pair: re.Match[str]) -> str:
    """The character that two surrogates stand for."""
    return pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le")


class Text:
    """A text that grows piece by piece.

    Some servers cut a character beyond U+FFFF into its two surrogates, and send each in an event of its
    own; the text has the character again.

    Args:
        begin: What it begins with.

    Attributes:
        length: How many characters came, a surrogate counting as one.
        replaced: How often it was replaced by another text.
    """

    __slots__ = ("_begin", "_halves", "_joined", "_pieces", "_runs", "length", "replaced")

    def __init__(self, begin: str = "") -> None:
        # The text is what is joined, then the runs, then the pieces, which begin at a position.
        self._joined = begin
        self._runs: list[str] = []
        self._pieces: list[str] = []
        self._begin = len(begin)
        # Whether there are surrogates in what is joined.
        self._halves = False
        self.length = len(begin)
        self.replaced = 0

    def add(self, piece: str) -> None:
        """Let it grow."""
        pieces = self._pieces
        pieces.append(piece)
        self.length += len(piece)
        if len(pieces) > _MAX_PIECES:
            self._runs.append("".join(pieces))
            self._pieces = []
            self._begin = self.length

    def replace(self, text: str) -> None:
        """Put another text in its place: servers repeat the whole at the end, and may correct it."""
        if text == str(self):
            return
        self._joined = text
        self._halves = False
        self.length = self._begin = len(text)
        self.replaced += 1

    def since(self, position: int) -> str:
        """What stands behind a position, without a look at all that stands before it."""
        if position < self._begin:
            self._join()
            return self._joined[position:]
        new: list[str] = []
        end = self.length
        for piece in reversed(self._pieces):
            if end <= position:
                break
            new.append(piece)
            end -= len(piece)
        return "".join(reversed(new))[position - end :]

    def _join(self) -> None:
        new = "".join(self._runs + self._pieces)
        self._runs, self._pieces, self._begin = [], [], self.length
        if not new.isascii() and _SURROGATE.search(new):
            self._halves = True
        # CPython lets a string grow in place while only one name knows it.
        joined, self._joined = self._joined, ""
        joined += new
        self._joined = joined

    def __str__(self) -> str:
        if self._begin < self.length or self._runs:
            self._join()
        return _PAIR.sub(_whole, self._joined) if self._halves else self._joined

    def __repr__(self) -> str:
        return f"<Text of {self.length} characters>"


class _No(enum.Enum):
    """Why there is no value, in a form that copies and pickles as itself."""

    ARGUMENTS = enum.auto()
    JSON = enum.auto()


class ToolCall:
    """A call of a tool, as far as it has come. It goes on growing with its accumulator.

    Attributes:
        type: The wire's word for what it is: ``"function"``, ``"custom"``, ``"tool_use"`` and others.
        id: The id to answer under; None where the server sent none.
        name: The tool's name; None where it is not known yet.
        index: The index on the wire: of the call in Chat Completions, of the block in Messages, of the
            item in Responses; None where the server sent none.
        text: The arguments as a `Text`.
    """

    __slots__ = (
        "_closed",
        "_fed",
        "_parsed",
        "_partial",
        "_sure",
        "id",
        "index",
        "name",
        "text",
        "type",
    )

    def __init__(
        self,
        type: str,
        *,
        id: str | None = None,
        name: str | None = None,
        index: int | None = None,
    ) -> None:
        self.type = type
        self.id = id
        self.name = name
        self.index = index
        self.text = Text()
        self._closed = False
        self._sure = False
        self._parsed: tuple[int, int, Any] | None = None
        self._partial: PartialJSON | None = None
        self._fed = (0, 0)

    @property
    def arguments(self) -> str:
        """The text of the arguments so far: JSON, or a piece of it; free text for a custom tool."""
        return str(self.text)

    @property
    def complete(self) -> bool:
        """Whether the server has said that the call is whole, and its arguments are.

        A call that was cut, by the end of the input or by ``max_tokens``, is never complete, even where
        the protocol closed it as if it were.
        """
        return self._closed and self._value() is not _No.JSON

    @property
    def input(self) -> Any:
        """The arguments as a value, None while the call is not complete. Never repaired.

        No arguments at all are ``{}``. The input of a custom tool is its text.
        """
        value = self._value() if self._closed else _No.JSON
        return None if value is _No.JSON else copy.deepcopy(value)

    @property
    def partial_input(self) -> PartialJSON:
        """A reader of the arguments so far, for those who show them while they arrive.

        It is made when it is first asked for, and given what is new at every further time. If a server
        corrects what it sent before, it begins again with a new reader.
        """
        return self._read_on()[0]

    def partial_changes(self) -> list[Change]:
        """Feed ``partial_input`` what is new, and say what that changed.

        Returns:
            The changes since it, or ``partial_input``, was asked for last; for those who show one field
            of the arguments piece by piece.
        """
        return self._read_on()[1]

    def close(self, *, sure: bool = True) -> None:
        """Note that the server said the call is whole.

        Args:
            sure: False while it can still turn out that the model was stopped before it began to write
                the arguments.
        """
        self._closed = True
        self._sure = sure

    def reopen(self) -> None:
        """Note that the call is not whole: more comes, or the model was stopped in it."""
        self._closed = self._sure = False

    def _read_on(self) -> tuple[PartialJSON, list[Change]]:
        partial, (length, replaced) = self._partial, self._fed
        if partial is None or replaced != self.text.replaced:
            partial, length = PartialJSON(), 0
        self._partial = partial
        self._fed = (self.text.length, self.text.replaced)
        return partial, partial.feed(self.text.since(length))

    def _value(self) -> Any:
        text = self.text
        if self._parsed is None or self._parsed[:2] != (text.length, text.replaced):
            self._parsed = (text.length, text.replaced, self._parse(str(text)))
        value = self._parsed[2]
        if value is _No.ARGUMENTS:
            return {} if self._sure else _No.JSON
        return value

    def _parse(self, text: str) -> Any:
        if self.type in FREE_TEXT:
            return text
        if not text.strip():
            return _No.ARGUMENTS
        try:
            return loads(text)
        except PayloadError:
            return _No.JSON

    def __repr__(self) -> str:
        state = "complete" if self.complete else "incomplete"
        return f"<ToolCall {self.name} {self.id}: {self.text.length} characters, {state}>"


FREE_TEXT = ("custom", "custom_tool_call")
"""The types of calls whose input is text."""


class Accumulator:
    """Holds the answer that events make, at any moment.

    ::

        accumulator = MESSAGES.accumulator()
        for event in receiver:
            accumulator.apply(event)
        accumulator.snapshot(), accumulator.text, accumulator.usage

    Everything can be asked for at any moment, in any state, also after an error. ``Receiver(protocol,
    accumulate=True)`` keeps one of its own, and gives it to the errors it raises.

    Args:
        max_size: Most that is kept, in characters of text and bytes of everything else; every choice,
            block, item, part and call counts 1,024 more. None for no limit.

    Attributes:
        outcome: How the answer ended, `Outcome.OPEN` while it has not. An end that no event tells is
            told by `end`.
        error: What an error event in the stream said, or None.
        usage_final: Whether ``usage`` counts the whole answer. False while it is only the last that was
            heard, as at a cut.

    An accumulator is a plain value: it can be pickled and copied between any two calls. Each protocol
    has a class of its own; this one is what a stream has that has not told its protocol.
    """

    __slots__ = ("_max_size", "_room", "_usage", "error", "outcome", "usage_final")

    _handlers: ClassVar[Mapping[type, Callable[[Any, Any], None]]] = {}

    def __init__(self, *, max_size: int | None = DEFAULT_MAX_ANSWER_SIZE) -> None:
        self._max_size = max_size
        self._room: float = float("inf") if max_size is None else max_size
        self._usage: JSONObject | None = None
        self.usage_final = False
        self.error: ErrorInfo | None = None
        self.outcome = Outcome.OPEN

    def apply(self, event: Event) -> None:
        """Let the answer grow by an event.

        Args:
            event: Any event of a receiver, in order. What adds nothing to an answer changes nothing:
                comments, signs of life, unknown events, and violations, whose events follow.

        Raises:
            AnswerTooLarge: What was kept before has reached ``max_size``. Nothing changes any more.
        """
        if self._room < 0:
            self._refuse()
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(self, event)
        elif type(event) is EndOfStream:
            self._take_end(event)

    def end(self, outcome: Outcome) -> None:
        """Say how the answer ended, where no event does: it was cut, cancelled, or found illegal.

        An outcome that is known already stays.
        """
        if self.outcome is Outcome.OPEN:
            self.outcome = outcome

    def snapshot(self) -> JSONObject:
        """The answer as one JSON object, as the vendor's API sends it when nothing is streamed.

        On a clean stream it is what the vendor's own SDK accumulates. A copy: it does not grow. Empty
        while nothing of the answer has come.
        """
        return {}

    @property
    def text(self) -> str:
        """The text so far; of the first choice where there are several."""
        return ""

    @property
    def reasoning(self) -> str:
        """The reasoning so far, as far as the server shows it; of the first choice."""
        return ""

    @property
    def refusal(self) -> str:
        """The refusal so far, where the protocol keeps it apart from text; of the first choice."""
        return ""

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls that the client has to answer, in order; of the first choice."""
        return ()

    @property
    def finish_reason(self) -> str | None:
        """Why the model stopped, in the wire's word; of the first choice. None if it has not said."""
        return None

    @property
    def output_started(self) -> bool:
        """Whether anything of the answer has come: text, reasoning, a call, a server's tool."""
        return False

    @property
    def usage(self) -> JSONObject | None:
        """The token counts as last told, member by member, in the wire's own words.

        None if none were told: that is not 0. ``usage_final`` says whether they count the whole answer.
        """
        usage: JSONObject | None = plain(self._usage)
        return usage

    @property
    def text_length(self) -> int:
        """Characters of text and refusals, of all choices."""
        return sum(map(length, self._texts()))

    @property
    def reasoning_length(self) -> int:
        """Characters of reasoning, of all choices."""
        return sum(map(length, self._reasonings()))

    @property
    def arguments_length(self) -> int:
        """Characters of arguments of all calls of all choices, those of server tools included."""
        return sum(call.text.length for call in self._calls())

    def _texts(self) -> Iterable[Text | str]:
        """All text and refusals."""
        return ()

    def _reasonings(self) -> Iterable[Text | str]:
        """All reasoning."""
        return ()

    def _calls(self) -> Iterable[ToolCall]:
        """All calls, those of server tools included."""
        return ()

    def __copy__(self) -> Self:
        return copy.deepcopy(self)

    def _refuse(self) -> NoReturn:
        raise AnswerTooLarge(
            f"the answer is larger than {self._max_size} bytes", limit=self._max_size or 0
        )

    def _take_usage(self, usage: Any) -> bool:
        """Replace the counts that are told, and say whether any are."""
        if type(usage) is not dict:
            return False
        known = self._usage or {}
        told = {name: count for name, count in usage.items() if count is not None or name not in known}
        self._usage = {**known, **told}
        return True

    def _take_end(self, event: EndOfStream) -> None:
        self.outcome = event.outcome


def length(text: Text | str) -> int:
    """How many characters a text has, without joining it."""
    return len(text) if isinstance(text, str) else text.length


class ByIndex(dict[Any, Any]):
    """A list that comes in pieces: an index is a key, and gaps are nothing.

    The keys are indexes, or tuples that begin with one.
    """

    __slots__ = ()

    def entries(self) -> list[Any]:
        """The entries by ascending index; those of one index in the order in which they came."""
        return [self[key] for key in sorted(self, key=_index)]


def _index(key: Any) -> int:
    index: int = key if type(key) is int else key[0]
    return index


def plain(value: Any) -> Any:
    """A copy of JSON that has growing texts and lists in it, as JSON."""
    kind = type(value)
    if kind is dict:
        return {name: plain(member) for name, member in value.items()}
    if kind is list:
        return [plain(entry) for entry in value]
    if kind is ByIndex:
        return [plain(entry) for entry in value.entries()]
    return str(value) if kind is Text else value


def in_order(values: Mapping[int, Any]) -> list[Any]:
    """The values by ascending index."""
    return [values[index] for index in sorted(values)]


def weight(value: Any) -> int:
    """How much JSON counts against the limit."""
    kind = type(value)
    if kind is str:
        return MEMBER_SIZE + len(value)
    if kind is dict:
        return MEMBER_SIZE + sum(map(weight, value.values()))
    return MEMBER_SIZE + (sum(map(weight, value)) if kind is list else 0)
