"""What is common to the protocols: the events that none of them owns, outcomes, and `Protocol`.

A `Protocol` is a value that gathers one protocol's tables and functions, so that the receiver and the
sender need to know no protocol by name. This module deliberately knows none either.
"""

from __future__ import annotations

import enum
import importlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Generic

import attrs
from typing_extensions import Self, TypeVar

from ._frames import Frame
from ._machine import Machine, Move, Table

JSONObject = dict[str, Any]

DONE_MARK = "[DONE]"
"""The end mark of Chat Completions, and the symbol and name that it has in every protocol."""
EOF = "eof"
EOF_INSIDE = "eof[inside an event]"
"""Symbols for the end of the input, the second one where it cuts an event in two."""
UNKNOWN = "unknown"
"""What the symbols begin with that stand for everything that is not known by name."""


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

    wire_names: ClassVar[tuple[str, ...]] = ()
    payload: JSONObject = attrs.field(factory=dict, repr=False)

    @classmethod
    def __attrs_init_subclass__(cls) -> None:
        names = [field.name for field in attrs.fields(cls)]
        cls.wire_names = tuple(name for name in names if name not in ("raw", "payload"))

    def __attrs_post_init__(self) -> None:
        given = {name: getattr(self, name) for name in self.wire_names}
        fields = {name: value for name, value in given.items() if value is not None}
        object.__setattr__(self, "payload", {**self.payload, "type": self.type, **fields})

    @property
    def extra(self) -> JSONObject:
        """The members of the payload that this class has no field for."""
        known = ("type", *self.wire_names)
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

    type: str | None
    code: str | int | None
    message: str
    retryable: bool | None
    raw: Any


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


def wire_decoder(cls: type[W], **kinds: type) -> Callable[[JSONObject, str, bytes], W]:
    """Make the function that turns a payload into an event of a class, without calling the class.

    Args:
        cls: A wire event class.
        kinds: Field → the exact type its value has to have. Other fields take any value, and None
            where the payload lacks them.

    Returns:
        (payload, name and bytes of the frame) → event, or `Malformed`. A frozen class sets its fields
        through ``object.__setattr__``; the slots' own setters do the same for a third of the price.
    """
    new = object.__new__
    set_payload = getattr(cls, "payload").__set__  # noqa: B009 - the descriptor, not the value
    set_raw = getattr(cls, "raw").__set__  # noqa: B009
    fields = [(name, getattr(cls, name).__set__, kinds.get(name)) for name in cls.wire_names]

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


_JSON_NAMES = {int: "an integer", str: "a string", dict: "an object", list: "an array"}


@attrs.frozen(kw_only=True, eq=False)
class Protocol(Generic[E_co]):
    """One wire protocol, as a value.

    Attributes:
        name: ``"messages"`` and the like.
        module: Where the value can be found again, for pickles.
        tables: The law; the first table is the stream's own, its key is None.
        decode: (payload, name and bytes of the frame) → event. Raises `Malformed`.
        moves: Event class → (event, machine, memory) → the moves that the event asks for.
        remember: Event class → what its acceptance changes in the memory.
        memory: Makes what a stream has to remember beside the tables.
        outcomes: Final states and how a stream ends in them.
        named: Whether every frame has to carry the event's type as its event name.
        error: The class of an error in the stream. It ends the answer whatever its form is.
    """

    name: str
    module: str
    tables: tuple[Table, ...]
    decode: Callable[[Any, str, bytes], E_co]
    moves: Mapping[type, Callable[[Any, Machine, Any], tuple[Move, ...]]]
    remember: Mapping[type, Callable[[Any, Any], None]]
    memory: Callable[[], Any]
    outcomes: Mapping[enum.Enum, Outcome]
    named: bool
    error: type[Event]

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
