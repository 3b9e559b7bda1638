"""What both modes of a receiver make of one event in one state, for tests of whole tables from bytes.

An expectation is written as words: ``x`` if the event was dropped or ``!`` if reading ends there, then
the codes that are reported, then the state afterwards.
"""

from __future__ import annotations

from typing import Any

import pytest

from sse_machines import Event, ProtocolError, Receiver, Violation
from sse_machines._protocol import Protocol
from tests import wire


def in_state(protocol: Protocol[Any], prefix: bytes, state: str, *, strict: bool) -> Receiver[Event]:
    """A receiver that legal events have brought into a state."""
    receiver: Receiver[Event] = Receiver(protocol, strict=strict)
    receiver.receive_data(prefix)
    assert wire.codes(receiver) == []
    assert receiver.state.name == state
    return receiver


def check_lenient(receiver: Receiver[Event], event: bytes, expected: str) -> None:
    """A lenient receiver reports what is expected, and stands where it is expected."""
    receiver.receive_data(event)
    seen: list[object] = []
    mark = ""
    try:
        seen += receiver
    except ProtocolError as error:
        seen.append(error)
        mark = "!"
    if any(isinstance(item, Violation) and item.dropped for item in seen):
        mark = "x"
    assert [*mark.split(), *wire.codes(seen), receiver.state.name] == expected.split()


def check_strict(receiver: Receiver[Event], event: bytes, expected: str) -> None:
    """A strict receiver raises the first thing that a lenient one reports, and does not move."""
    state = receiver.state.name
    receiver.receive_data(event)
    code = next(word for word in expected.split() if word not in "!x")
    if code.isupper():
        assert wire.codes(receiver) == []
        assert receiver.state.name == code
        return
    with pytest.raises(ProtocolError) as caught:
        list(receiver)
    assert caught.value.code == code
    assert receiver.state.name == state
