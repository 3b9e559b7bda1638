"""Streams that are broken on purpose, and what has to be true of reading them."""

from __future__ import annotations

import json
import random
from typing import Any

from sse_machines import (
    Hold,
    ProtocolError,
    Receiver,
    Relay,
    RelayConfig,
    RelayOutcome,
    RemoteProtocolError,
)
from sse_machines._protocol import Protocol
from sse_machines.testing import Arrive, End, drive
from tests import wire

DOCUMENTED = (RemoteProtocolError, *RemoteProtocolError.__subclasses__())
TOKENS = [
    *[b"\n\n", b"\r", b"\xef\xbb\xbf", b"data: [DONE]\n\n", b": c\n", b"null", b"[]", b"{}", b"true"],
    *[b"-1", b"1e999", b"99999999999999999999", b'"', b"\\ud800", b"[" * 300, b'"index":', b"\x00\xff"],
]
"""What is put into a stream where it does not belong."""


def check(protocol: Protocol[Any], stream: bytes, dice: random.Random) -> None:
    """Break a stream and read it: only documented errors, the same under another cut, then silence.

    The answer that came of it is JSON, the same under another cut, and has no call that is half.
    """
    stream = mutated(stream, dice)
    strict = dice.random() < 0.5
    options: dict[str, Any] = {"protocol": protocol, "strict": strict, "accumulate": True}
    receiver, events = wire.receive(stream, **options)
    cut = dice.randrange(len(stream) + 1)
    other, again = wire.receive([stream[:cut], stream[cut:]], **options)
    assert comparable(again) == comparable(events)
    assert comparable_answer(other) == comparable_answer(receiver)
    assert receiver.finished
    failures = [event for event in events if isinstance(event, ProtocolError)]
    assert failures == events[len(events) - len(failures) :]
    assert len(failures) <= 1
    assert all(type(failure) in DOCUMENTED for failure in failures)
    assert last_word(receiver) is (failures[0] if failures else None)
    check_relay(protocol, stream, cut, dice)


def check_relay(protocol: Protocol[Any], stream: bytes, cut: int, dice: random.Random) -> None:
    """Relay a stream: no error at all, the same under another cut, and an end."""
    options: Any = {
        "hold": dice.choice([None, Hold()]),
        "observe": dice.choice(["full", "light"]),
        "eof_tail": dice.choice(["discard", "accept"]),
    }
    config = RelayConfig(**options)
    one = drive(Relay(protocol, config, now=0.0), [Arrive(0, stream), End(0)])
    pieces = [Arrive(0, stream[:cut]), Arrive(0, stream[cut:]), End(0)]
    other = drive(Relay(protocol, config, now=0.0), pieces)
    # A line end that was cut behind the last event may not go out.
    assert one.data.rstrip(b"\n") == other.data.rstrip(b"\n")
    assert one.relay.outcome is other.relay.outcome is not RelayOutcome.OPEN
    assert one.relay.usage == other.relay.usage


def last_word(receiver: Receiver[Any]) -> Any:
    """What a receiver says when it is asked once more after its end."""
    try:
        return receiver.next_event()
    except ProtocolError as error:
        return error


def comparable(events: list[Any]) -> list[Any]:
    """Events and errors, so that equal ones compare equal."""
    return [
        {**vars(event), "accumulator": None} if isinstance(event, ProtocolError) else event
        for event in events
    ]


def comparable_answer(receiver: Receiver[Any]) -> Any:
    """What came of a stream, as text, so that equal ones compare equal."""
    answer = receiver.accumulator
    assert answer.outcome is receiver.outcome
    calls = [(call.name, call.arguments, call.complete, call.input) for call in answer.tool_calls]
    assert all(given is None for _, _, complete, given in calls if not complete)
    return json.dumps([answer.snapshot(), answer.text, answer.reasoning, answer.usage_final, calls])


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
