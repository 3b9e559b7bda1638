"""Streams that are broken on purpose, and what has to be true of reading them."""

from __future__ import annotations

import random
from typing import Any

from sse_machines import ProtocolError, Receiver, RemoteProtocolError
from sse_machines._protocol import Protocol
from tests import wire

DOCUMENTED = (RemoteProtocolError, *RemoteProtocolError.__subclasses__())
TOKENS = [
    *[b"\n\n", b"\r", b"\xef\xbb\xbf", b"data: [DONE]\n\n", b": c\n", b"null", b"[]", b"{}", b"true"],
    *[b"-1", b"1e999", b"99999999999999999999", b'"', b"\\ud800", b"[" * 300, b'"index":', b"\x00\xff"],
]
"""What is put into a stream where it does not belong."""


def check(protocol: Protocol[Any], stream: bytes, dice: random.Random) -> None:
    """Break a stream and read it: only documented errors, the same under another cut, then silence."""
    stream = mutated(stream, dice)
    strict = dice.random() < 0.5
    receiver, events = wire.receive(stream, protocol=protocol, strict=strict)
    cut = dice.randrange(len(stream) + 1)
    again = wire.receive([stream[:cut], stream[cut:]], protocol=protocol, strict=strict)[1]
    assert comparable(again) == comparable(events)
    assert receiver.finished
    failures = [event for event in events if isinstance(event, ProtocolError)]
    assert failures == events[len(events) - len(failures) :]
    assert len(failures) <= 1
    assert all(type(failure) in DOCUMENTED for failure in failures)
    assert last_word(receiver) is (failures[0] if failures else None)


def last_word(receiver: Receiver[Any]) -> Any:
    """What a receiver says when it is asked once more after its end."""
    try:
        return receiver.next_event()
    except ProtocolError as error:
        return error


def comparable(events: list[Any]) -> list[Any]:
    """Events and errors, so that equal ones compare equal."""
    return [vars(event) if isinstance(event, ProtocolError) else event for event in events]


def mutated(stream: bytes, dice: random.Random) -> bytes:
    """Break a stream in some of the ways in which streams break."""
    for _ in range(dice.randint(1, 3)):
        start = dice.randrange(len(stream) + 1)
        end = min(len(stream), start + dice.randint(1, 40))
        part = stream[start:end]
        stream = dice.choice(
            [
                stream[:start],
                stream[:start] + stream[end:],
                stream[:end] + part + stream[end:],
                stream[:start] + bytes([dice.randrange(256)]) + stream[start + 1 :],
                stream[:start] + dice.choice(TOKENS) + stream[start:],
                stream[:start] + part[::-1] + stream[end:],
                swapped(stream, dice),
            ]
        )
    return stream


def swapped(stream: bytes, dice: random.Random) -> bytes:
    """Exchange two events."""
    events = stream.split(b"\n\n")
    one, other = dice.randrange(len(events)), dice.randrange(len(events))
    events[one], events[other] = events[other], events[one]
    return b"\n\n".join(events)
