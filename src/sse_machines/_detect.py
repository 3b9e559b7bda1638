"""Which protocol a stream is in, told from the first frame that decides.

This is the one place that lists the protocols of the package. It deliberately reads no more of a frame
than each protocol's own `Protocol.recognises` asks for.
"""

from __future__ import annotations

import enum
from typing import Any

import attrs

from ._accumulator import Accumulator
from ._frames import FrameReader
from ._machine import Drop, Refuse, Table, asks
from ._meter import Meter
from ._payload import PayloadError, loads
from ._protocol import (
    DONE_MARK,
    EOF,
    EOF_INSIDE,
    UNKNOWN,
    Done,
    Event,
    Protocol,
    Unknown,
    unknown,
)
from ._template import Model
from .chat import PROTOCOL as CHAT, Error
from .messages import PROTOCOL as MESSAGES
from .responses import PROTOCOL as RESPONSES

PROTOCOLS: tuple[Protocol[Any], ...] = (CHAT, RESPONSES, MESSAGES)
"""The protocols that can be told apart."""


class State(enum.Enum):
    """Where a stream stands whose protocol is not known."""

    UNDECIDED = enum.auto()


class Recognised(Exception):
    """A frame tells the protocol.

    Attributes:
        protocol: Which it is.
    """

    def __init__(self, protocol: Protocol[Any]) -> None:
        super().__init__(protocol.name)
        self.protocol = protocol


def detect(data: bytes) -> Protocol[Any] | None:
    """Name the protocol of a stream.

    Args:
        data: The first bytes of the body. Frames that are cut do not count.

    Returns:
        The protocol that the first frame that decides belongs to; None if no frame does, which is so
        while there are only comments, pings of unknown servers, and bodies that are no event stream.

    Raises:
        FrameTooLarge: The first frame is larger than 16 MiB.
    """
    reader = FrameReader()
    reader.feed(data)
    while (frame := reader.next_frame()) is not None:
        try:
            protocol = recognise(loads(frame.data or ""), frame.event or "")
        except PayloadError:
            continue
        if protocol is not None:
            return protocol
    return None


def recognise(payload: Any, name: str) -> Protocol[Any] | None:
    """The protocol that a frame belongs to, by its payload and its event name."""
    return next((protocol for protocol in PROTOCOLS if protocol.recognises(payload, name)), None)


def _decode(payload: Any, name: str, raw: bytes) -> Unknown:
    protocol = recognise(payload, name)
    if protocol is not None:
        raise Recognised(protocol)
    return unknown(payload, name, raw)


@attrs.define
class _Memory:
    """What a stream remembers of which nothing is known: nothing is expected of it."""

    model: Model = attrs.field(factory=Model)


_NOTHING = Refuse("eof_before_first_event", "the input ended before anything told the protocol")
_STREAM = Table(
    "stream",
    {State.UNDECIDED: {UNKNOWN: State.UNDECIDED}},
    {
        State.UNDECIDED: {
            DONE_MARK: Drop("stray_done", "the end mark of Chat Completions, before any answer"),
            EOF: _NOTHING,
            EOF_INSIDE: _NOTHING,
        }
    },
)

PROTOCOL: Protocol[Event, Accumulator] = Protocol(
    name="undecided",
    module=__name__,
    tables=(_STREAM,),
    decode=_decode,
    recognises=lambda _payload, _name: False,
    repeat=lambda _data, _raw, _memory: None,
    repeats=lambda _data, _name, _machine, _memory: False,
    learn={},
    moves={Unknown: asks(UNKNOWN), Done: asks(DONE_MARK)},
    remember={},
    memory=_Memory,
    outcomes={},
    named=False,
    error=Error,
    accumulator=Accumulator,
    meter=Meter,
    interruption=CHAT.interruption,
)
"""The protocol of a stream that has not told its own."""
