"""What people may import."""

from __future__ import annotations

from typing import Any

import pytest

import sse_machines
from sse_machines import Event, chat, messages, relay, responses, testing
from sse_machines._protocol import Done, Protocol

PROTOCOLS: list[tuple[Any, Protocol[Any]]] = [
    (chat, sse_machines.CHAT),
    (responses, sse_machines.RESPONSES),
    (messages, sse_machines.MESSAGES),
]
IDS = ["chat", "responses", "messages"]
# The classes whose names the wire does not say: what is unknown, and the mark "[DONE]".
OURS = ("Unknown", "Done")


def classes(protocol: Protocol[Any]) -> list[type[Event]]:
    return [cls for cls in protocol.moves if issubclass(cls, Event)]


def test_public_names() -> None:
    assert sse_machines.__all__ == [
        "CHAT",
        "MESSAGES",
        "RESPONSES",
        "Accumulator",
        "AnswerTooLarge",
        "Comment",
        "Drain",
        "EndOfStream",
        "ErrorInfo",
        "ErrorTexts",
        "Event",
        "Frame",
        "FrameReader",
        "FrameTooLarge",
        "Hold",
        "Identity",
        "KeepAlive",
        "Limits",
        "LocalProtocolError",
        "NotAnEventStream",
        "Outcome",
        "Output",
        "ProtocolError",
        "Receiver",
        "Relay",
        "RelayConfig",
        "RelayOutcome",
        "RemoteProtocolError",
        "Result",
        "Sender",
        "Stall",
        "StreamTruncated",
        "ToolCall",
        "UnexpectedResponse",
        "Unknown",
        "Usage",
        "Violation",
        "collect",
        "detect",
        "encode_frame",
    ]


@pytest.mark.parametrize(("module", "protocol"), PROTOCOLS, ids=IDS)
def test_a_protocol_is_the_value_of_its_module(module: Any, protocol: Protocol[Any]) -> None:
    assert module.PROTOCOL is protocol
    assert module.__name__ == protocol.module == f"sse_machines.{protocol.name}"


@pytest.mark.parametrize("module", [sse_machines, chat, responses, messages, relay, testing])
def test_everything_named_is_there(module: Any) -> None:
    assert all(getattr(module, name) is not None for name in module.__all__)
    assert len(set(module.__all__)) == len(module.__all__)


def named_by_the_wire(wire_name: str) -> str:
    words = wire_name.removeprefix("response.").replace(".", "_").split("_")
    return "".join(word.capitalize() for word in words)


@pytest.mark.parametrize("protocol", [protocol for _, protocol in PROTOCOLS], ids=IDS)
def test_class_names_follow_the_wire(protocol: Protocol[Any]) -> None:
    names = {cls.type: cls.__name__ for cls in classes(protocol) if cls.__name__ not in OURS}
    assert {wire_name: named_by_the_wire(wire_name) for wire_name in names} == names


@pytest.mark.parametrize(("module", "protocol"), PROTOCOLS, ids=IDS)
def test_every_event_class_of_a_protocol_is_public(module: Any, protocol: Protocol[Any]) -> None:
    public = {getattr(module, name) for name in module.__all__}
    # Where the end mark is no part of the protocol, it only ever stands in a violation.
    foreign = set() if protocol.name == "chat" else {Done}
    assert set(classes(protocol)) - foreign <= public
    assert set(module.AnyEvent.__args__) <= public
    assert set(classes(protocol)) - foreign <= set(module.AnyEvent.__args__)


def test_every_role_has_classes_and_every_class_a_role() -> None:
    wired = [cls for cls in classes(responses.PROTOCOL) if issubclass(cls, responses.SequencedEvent)]
    assert len(wired) == 59 + 3 + 4
    for role in (responses.TextDelta, responses.InputDelta, responses.StatusEvent):
        assert sum(issubclass(cls, role) for cls in wired) > 2
