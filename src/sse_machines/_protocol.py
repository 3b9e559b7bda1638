"""What is common to the protocols: the events that none of them owns, outcomes, and `Protocol`.

A `Protocol` is a value that gathers one protocol's tables and functions, so that the receiver and the
sender need to know no protocol by name. This module deliberately knows none either.
"""

from __future__ import annotations

import enum
import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic

import attrs
from typing_extensions import Self, TypeVar

from ._frames import Frame
from ._machine import Machine, Move, Table

JSONObject = dict[str, Any]

DONE_MARK = "[DONE]"
"""The end mark of Chat Completions, and the symbol that it has in every protocol."""
EOF = "eof"
EOF_INSIDE = "eof[inside an event]"
"""Symbols for the end of the input, the second one where it cuts an event in two."""
UNKNOWN = "unknown"
"""What the symbols begin with that stand for everything that is not known by name."""
MAX_INDEX = 65_535
"""Highest index that is believed: an index is a key off the wire, never a size to allocate."""
INDEX_RANGE = f"an index must be between 0 and {MAX_INDEX}"


FAULTS = {
    "malformed_payload": "the data is no JSON; it comes as an `Unknown` event",
    "empty_data": "the data is empty; kept out, since some servers keep connections alive with it",
    "malformed_event": "a member has a type that nobody could read on with; comes as `Unknown`",
    "malformed_usage": "token counts that are no counts",
    "missing_member": "members are missing that every published object has; seen from gateways",
    "missing_index": "an index is missing, and counts as 0; seen from gateways that abbreviate",
    "missing_type": "the payload has no type; the event name, or its error, tells it",
    "missing_event_name": "the frame has no event name; seen from OpenRouter, Bedrock and others",
    "event_name_mismatch": "event name and type differ; the type counts. Seen from agentgateway",
    "unexpected_event_name": "an event name where the protocol has none",
    "old_event_name": "an event has the name that it had before its release",
    "content_not_string": "text comes as a list of parts; seen from Mistral",
    "arguments_not_string": "the arguments of a tool come as JSON instead of its text",
    "missing_usage": "the stop reason comes without the usage",
    "flat_error": "an error lies flat in its event; seen from forks of llama.cpp",
    "error_not_object": "an error is a text instead of an object; seen from gateways",
    "unterminated_final_event": "the input ended cleanly where only the last blank line was missing",
    "wrong_protocol": "the first event belongs to another protocol",
    "frame_too_large": "one event needs more memory than allowed",
    "not_an_event_stream": "the body is JSON, HTML or something binary",
}
"""Codes of what can be wrong with the form of an event, whatever state it comes in."""


class Outcome(str, enum.Enum):
    """How a stream ended, or `OPEN` while it has not."""

    OPEN = "open"
    COMPLETED = "completed"
    COMPLETED_NO_DONE = "completed_no_done"
    """The whole answer came, but not the event or mark that ends the stream."""
    INCOMPLETE = "incomplete"
    """The model was stopped early, and said so."""
    FAILED = "failed"
    """An error event came in the stream."""
    TRUNCATED = "truncated"
    """The input ended first."""
    STALLED = "stalled"
    CANCELLED = "cancelled"
    PROTOCOL_ERROR = "protocol_error"
    LIMIT = "limit"
    NOT_SSE = "not_sse"

    def __str__(self) -> str:
        return self.value


@attrs.frozen(kw_only=True)
class Event:
    """Base of everything that comes out of a receiver.

    Attributes:
        type: The wire's name of the event, or this library's where the wire has none.
        raw: The untouched bytes of the frame it came from; None for an event that was made here. Takes
            no part in comparisons, and `attrs.evolve` drops it.
    """

    type: ClassVar[str]
    raw: bytes | None = attrs.field(default=None, init=False, eq=False, repr=False)

    @property
    def frame(self) -> Frame | None:
        """The frame it came from, read again from ``raw``; None for an event that was made here."""
        return None if self.raw is None else Frame.parse(self.raw)


@attrs.frozen(kw_only=True)
class WireEvent(Event):
    """Base of the events that a protocol itself defines: a JSON object with named fields.

    Attributes:
        payload: The whole JSON object. For an event made here it is built from ``payload`` as given
            (for members that the class has no field for) and the fields, which win.
    """

    tag: ClassVar[str] = "type"
    """The member of the payload that has the wire's name of the event; empty if there is none."""
    wire_names: ClassVar[tuple[str, ...]] = ()
    payload: JSONObject = attrs.field(factory=dict, repr=False)

    @classmethod
    def __attrs_init_subclass__(cls) -> None:
        names = [field.name for field in attrs.fields(cls)]
        cls.wire_names = tuple(name for name in names if name not in ("raw", "payload"))

    def __attrs_post_init__(self) -> None:
        given = {name: getattr(self, name) for name in self.wire_names}
        fields = {name: value for name, value in given.items() if value is not None}
        name = {self.tag: self.type} if self.tag else {}
        object.__setattr__(self, "payload", {**name, **self.payload, **name, **fields})

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Look up a field that a decoder left to those who ask for it, and keep it.

            Python comes here only for a slot that was never filled.
            """
            if name not in self.wire_names:
                raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
            value = self.payload.get(name)
            object.__setattr__(self, name, value)
            return value

    @property
    def extra(self) -> JSONObject:
        """The members of the payload that this class has no field for."""
        known = (self.tag, *self.wire_names)
        return {name: value for name, value in self.payload.items() if name not in known}


@attrs.frozen(kw_only=True)
class Comment(Event):
    """A comment line of the event stream, such as a gateway's keep-alive.

    Attributes:
        text: What stands behind the colon, without one leading space.
    """

    type: ClassVar[str] = "comment"
    text: str


@attrs.frozen(kw_only=True)
class Done(Event):
    """The end mark ``data: [DONE]`` of Chat Completions; gateways put it behind other protocols, too."""

    type: ClassVar[str] = DONE_MARK


@attrs.frozen(kw_only=True)
class Unknown(Event):
    """An event that this version of the library has no class for. Always passed on, in order.

    Attributes:
        name: The wire's name of it: the payload's ``type``, else the event name of its frame.
        payload: The JSON value it carried; None where it carried no JSON.
        data: The text it carried.
    """

    type: ClassVar[str] = "unknown"
    name: str
    payload: Any = None
    data: str = ""


@attrs.frozen(kw_only=True)
class Violation(Event):
    """A deviation that was tolerated. Comes right before the event it is about.

    Attributes:
        code: A stable name for a program, such as ``"delta_without_start"``.
        message: One sentence for a person.
        state: The state in which it happened, before it; None if it is not about the order of events.
        key: Which block, choice or item it is about, or None.
        legal: The wire names that would have been legal instead.
        event: The event; None at the end of the input. An event that was dropped stands only here.
        dropped: Whether the event is kept out of state and accumulation, and will not follow.
    """

    type: ClassVar[str] = "violation"
    code: str
    message: str
    state: enum.Enum | None = None
    key: Any = None
    legal: tuple[str, ...] = ()
    event: Event | None = None
    dropped: bool = False


@attrs.frozen(kw_only=True)
class EndOfStream(Event):
    """The input has ended, at a place where it may. Always the last event."""

    type: ClassVar[str] = "end_of_stream"
    outcome: Outcome


@attrs.frozen(kw_only=True)
class ErrorInfo:
    """One view of the many shapes in which an error is sent inside a stream.

    Attributes:
        type: The vendor's class of error, such as ``"overloaded_error"``, or None.
        code: The vendor's finer code, or None.
        message: The vendor's text; ``""`` if there is none.
        retryable: Whether the same request can be expected to work later; None if nobody knows.
        raw: The JSON value as it was sent.
    """

    type: str | None = None
    code: str | int | None = None
    message: str = ""
    retryable: bool | None = None
    raw: Any = None

    @classmethod
    def of(cls, error: Any, retryable: Mapping[str | int, bool]) -> Self:
        """Look at an error as it was sent.

        Args:
            error: An object with ``type``, ``code`` and ``message``, or whatever was sent instead.
            retryable: What is known of a vendor's types and codes; the code is looked up first.
        """
        members = error if isinstance(error, dict) else {"message": error}
        kind, code, message = members.get("type"), members.get("code"), members.get("message")
        details = members.get("details")
        if isinstance(details, dict):
            code = details.get("error_code", code)
        known = [retryable.get(name) for name in (code, kind) if isinstance(name, str | int)]
        return cls(
            type=kind if isinstance(kind, str) else None,
            code=code if isinstance(code, str | int) else None,
            message=message if isinstance(message, str) else "",
            retryable=next((answer for answer in known if answer is not None), None),
            raw=error,
        )


class Malformed(Exception):
    """A frame that is not what the protocol says it should be.

    Attributes:
        code: The code of the violation or error that it becomes.
        event: What to go on with where deviations are tolerated.
    """

    def __init__(self, code: str, message: str, event: Event) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.event = event


E = TypeVar("E", bound=Event)
W = TypeVar("W", bound=WireEvent)
E_co = TypeVar("E_co", bound=Event, covariant=True, default=Event)
A_co = TypeVar("A_co", covariant=True, default=Any)


def wire_decoder(cls: type[W], **kinds: type | None) -> Callable[[JSONObject, str, bytes], W]:
    """Make the function that turns a payload into an event of a class, without calling the class.

    Args:
        cls: A wire event class.
        kinds: Field → the exact type its value has to have. Other fields, and those whose type is
            None, take any value, and None where the payload lacks them.

    Returns:
        (payload, name and bytes of the frame) → event, or `Malformed`. A frozen class sets its fields
        through ``object.__setattr__``; the slots' own setters do the same for a third of the price.
    """
    new = object.__new__
    set_payload, set_raw = slot_setter(cls, "payload"), slot_setter(cls, "raw")
    fields = [(name, slot_setter(cls, name), kinds.get(name)) for name in cls.wire_names]

    def decode(payload: JSONObject, frame_name: str, raw: bytes) -> W:
        event = new(cls)
        set_payload(event, payload)
        set_raw(event, raw)
        for name, put, kind in fields:
            value = payload.get(name)
            if kind is not None and type(value) is not kind:
                raise malformed(
                    f"{name} of a {cls.type} must be {_JSON_NAMES[kind]}", payload, frame_name, raw
                )
            put(event, value)
        return event

    return decode


def malformed(message: str, payload: Any, name: str, raw: bytes) -> Malformed:
    """A frame whose payload is JSON, but not what its type says."""
    return Malformed("malformed_event", message, unknown(payload, name, raw))


def unknown(payload: Any, name: str, raw: bytes) -> Unknown:
    """The event for a frame that no class stands for."""
    kind = payload.get("type") if type(payload) is dict else None
    name = kind if type(kind) is str else name or "message"
    return received(Unknown(name=name, payload=payload, data=Frame.parse(raw).data or ""), raw)


def received(event: E, raw: bytes) -> E:
    """Say which frame a new event came from."""
    object.__setattr__(event, "raw", raw)
    return event


def fault_of_counts(usage: Any, names: Iterable[str]) -> str:
    """Say what is wrong with token counts, if anything: whoever adds them up must be able to trust them.

    Args:
        usage: An object of counts, or None where there is none.
        names: The members that are counts; each may be missing or null.
    """
    if usage is None:
        return ""
    if type(usage) is not dict:
        return "usage must be an object"
    for name in names:
        count = usage.get(name)
        if count is not None and (type(count) is not int or count < 0):
            return f"{name} must be a count"
    return ""


def slot_setter(cls: type, name: str) -> Callable[[Any, Any], None]:
    """What fills a slot of a frozen class, without a look at its name."""
    setter: Callable[[Any, Any], None] = getattr(cls, name).__set__
    return setter


_JSON_NAMES = {int: "an integer", str: "a string", dict: "an object", list: "an array"}


@attrs.frozen(kw_only=True, eq=False)
class Protocol(Generic[E_co, A_co]):
    """One wire protocol, as a value.

    Attributes:
        name: ``"messages"`` and the like.
        module: Where the value can be found again, for pickles.
        tables: The law; the first table is the stream's own, its key is None.
        decode: (payload, name and bytes of the frame) → event. Raises `Malformed`.
        recognises: (payload, name of the frame) → whether it can only belong to this protocol.
        repeat: (data and bytes of the frame, memory) → the event, if it goes on exactly where the one
            before it stood, with the same moves; None says nothing. Asked where the memory's ``model``
            is due. A shortcut: without it, everything comes out the same.
        repeats: (data, name of the frame, machine, memory) → whether ``repeat`` would find that, for who
            has the event already.
        learn: Event class → (event, machine, memory) → None: what makes ``repeat`` know the next one.
            Asked after every event that was legal in all and moved nothing.
        moves: Event class → (event, machine, memory) → the moves that the event asks for.
        remember: Event class → (event, machine, memory) → None: what its acceptance changes in the
            memory.
        memory: Makes what a stream has to remember beside the tables, with the ``model`` that ``repeat``
            works from.
        outcomes: Final states and how a stream ends in them.
        named: Whether every frame has to carry the event's type as its event name; if not, none may.
        error: The class of an error in the stream. It ends the answer whatever its form is.
        accumulator: Makes what holds the answer so far: takes ``max_size``, and gives an accumulator.
        meter: Makes what counts an answer without keeping it.
        interruption: (memory, message, type, code) → the event that says that the answer breaks off.
            A member that the protocol has no place for is left out; None is the protocol's default.
        numbered: (payload, memory) → the payload, with the number that is due if it has none; None where
            events are not numbered.
        skipped: (event, memory) → None: what changes in the memory by an event that is dropped.
        resume: (machine, memory, number of the last event that came before) → None. Makes a stream
            begin in the middle; None where the protocol knows no such thing.
    """

    name: str
    module: str
    tables: tuple[Table, ...]
    decode: Callable[[Any, str, bytes], E_co]
    recognises: Callable[[Any, str], bool]
    repeat: Callable[[str, bytes, Any], E_co | None]
    repeats: Callable[[str, str, Machine, Any], bool]
    learn: Mapping[type, Callable[[Any, Machine, Any], None]]
    moves: Mapping[type, Callable[[Any, Machine, Any], tuple[Move, ...]]]
    remember: Mapping[type, Callable[[Any, Machine, Any], None]]
    memory: Callable[[], Any]
    outcomes: Mapping[enum.Enum, Outcome]
    named: bool
    error: type[Event]
    accumulator: Callable[..., A_co]
    meter: Any
    interruption: Callable[[Any, str, str | None, str | None], WireEvent]
    numbered: Callable[[JSONObject, Any], JSONObject] | None = None
    skipped: Callable[[Event, Any], None] | None = None
    resume: Callable[[Machine, Any, int], None] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return _protocol_of, (self.module,)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __repr__(self) -> str:
        return f"<Protocol {self.name}>"

    def mermaid(self) -> Iterator[str]:
        """The diagram of each table."""
        for table in self.tables:
            yield table.mermaid()


def _protocol_of(module: str) -> Any:
    return importlib.import_module(module).PROTOCOL
