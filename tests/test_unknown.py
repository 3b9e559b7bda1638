"""What is not known passes, in order, with its JSON, and in strict mode too."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sse_machines import CHAT, MESSAGES, RESPONSES, EndOfStream, FrameReader, Outcome, Unknown
from sse_machines._protocol import Protocol, WireEvent
from tests import wire
from tests.chat import wire as chat
from tests.responses import wire as responses

ANSWERS: list[tuple[Protocol[Any], bytes]] = [
    (CHAT, chat.ANSWER),
    (RESPONSES, responses.ANSWER),
    (MESSAGES, wire.ANSWER),
]
IDS = ["chat", "responses", "messages"]
NEW = {"deep": [1, {"x": None}]}


def grown(value: Any) -> Any:
    """A JSON value whose every object has a member more."""
    if isinstance(value, list):
        return [grown(member) for member in value]
    if isinstance(value, dict):
        return {**{name: grown(member) for name, member in value.items()}, "x_new": NEW}
    return value


def frames(stream: bytes) -> list[tuple[str, str]]:
    reader = FrameReader()
    reader.feed(stream)
    return [(frame.event or "", frame.data) for frame in iter(reader.next_frame, None) if frame.data]


def written(name: str, data: str) -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {data}\n\n".encode()


@pytest.mark.parametrize(("protocol", "answer"), ANSWERS, ids=IDS)
def test_unknown_members_at_every_depth(protocol: Protocol[Any], answer: bytes) -> None:
    stream = b"".join(
        written(name, data if data == "[DONE]" else json.dumps(grown(json.loads(data))))
        for name, data in frames(answer)
    )
    receiver, events = wire.receive(stream, protocol=protocol, strict=True)
    assert wire.codes(events) == []
    assert receiver.outcome is Outcome.COMPLETED
    known = [event for event in events if isinstance(event, WireEvent)]
    assert all(event.extra["x_new"] == NEW for event in known)
    plain = wire.receive(answer, protocol=protocol)[1]
    assert [type(event) for event in known] == [
        type(event) for event in plain if isinstance(event, WireEvent)
    ]


@pytest.mark.parametrize(("protocol", "answer"), ANSWERS, ids=IDS)
def test_unknown_events_between_all_others(protocol: Protocol[Any], answer: bytes) -> None:
    future = written("new.event", '{"type": "new.event", "a": [1]}')
    whole = frames(answer)
    # In front of the first event, between all others, but not behind the last one.
    stream = b"".join(future + written(name, data) for name, data in whole)
    receiver, events = wire.receive(stream, protocol=protocol, strict=True)
    assert wire.codes(events) == []
    assert receiver.outcome is Outcome.COMPLETED
    unknown = [event for event in events if isinstance(event, Unknown)]
    assert [(event.name, event.payload) for event in unknown] == [
        ("new.event", {"type": "new.event", "a": [1]})
    ] * len(whole)
    rest = [event for event in events if not isinstance(event, Unknown)]
    plain = [event for event in wire.receive(answer, protocol=protocol)[1] if event.type != "comment"]
    assert rest == plain
    assert isinstance(rest[-1], EndOfStream)
