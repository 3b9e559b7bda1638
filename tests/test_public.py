"""What people may import."""

from __future__ import annotations

import sse_machines
from sse_machines import Event, messages
from sse_machines.messages import events, grammar

CLASSES = {cls.type: cls for cls in grammar.MOVES if issubclass(cls, Event)}


def test_public_names() -> None:
    assert sse_machines.__all__ == [
        "MESSAGES",
        "Comment",
        "EndOfStream",
        "Event",
        "Frame",
        "FrameReader",
        "FrameTooLarge",
        "Limits",
        "LocalProtocolError",
        "NotAnEventStream",
        "Outcome",
        "ProtocolError",
        "Receiver",
        "RemoteProtocolError",
        "StreamTruncated",
        "Unknown",
        "Violation",
        "encode_frame",
    ]
    assert sse_machines.MESSAGES is messages.PROTOCOL


def test_everything_named_is_there() -> None:
    for module in (sse_machines, messages):
        assert all(getattr(module, name) is not None for name in module.__all__)
        assert len(set(module.__all__)) == len(module.__all__)


def test_class_names_follow_the_wire() -> None:
    for wire_name, cls in CLASSES.items():
        if wire_name != "unknown":
            assert cls.__name__ == "".join(word.capitalize() for word in wire_name.split("_"))


def test_every_event_class_of_the_protocol_is_public() -> None:
    public = {getattr(messages, name) for name in messages.__all__}
    assert set(CLASSES.values()) <= public
    assert set(CLASSES) == {*events.EVENT_TYPES, "unknown"}
    assert set(messages.AnyEvent.__args__) <= public
