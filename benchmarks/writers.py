"""Who is measured at writing: this package, a floor that nobody can do without, and peers.

Each contender is a function from the events of one answer to the bytes of each. The floor is what
people write by hand: the payload as JSON and two strings around it, with nothing checked. One peer is
the vendor's own SDK, whose models servers in Python dump; they are made before the clock runs. The other
one is a library that writes Server-Sent Events and knows no protocol.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from sse_machines import Receiver, Sender

from .contenders import OURS, PROTOCOLS
from .streams import stream

Write = Callable[[list[Any]], list[bytes]]
"""Takes events; returns their bytes."""

FLOOR = "floor (json.dumps)"
FLOOR_ORJSON = "floor (orjson.dumps)"


class Events(NamedTuple):
    """The events of one answer, as a server has them before it writes."""

    blocks: list[Any]

    def chunks(self, _size: int) -> list[Any]:
        """All of them: what is written comes in no chunks."""
        return self.blocks


def events(protocol: str, count: int) -> Events:
    """Make the events of an answer, without numbers, which a sender gives itself."""
    receiver = Receiver(PROTOCOLS[protocol])
    receiver.receive_data(stream(protocol, count).body)
    made = list(receiver)
    for event in made:
        getattr(event, "payload", {}).pop("sequence_number", None)
    return Events(made)


def send(protocol: str, given: Events) -> dict[str, Write | None]:
    """Contenders that write a protocol; None for one that is not installed."""
    return {
        OURS: lambda events: _send(protocol, events),
        FLOOR: lambda events: _dump(events, json.dumps),
        "vendor's SDK models": _if_installed(lambda: _models(protocol, given)),
        "sse-starlette": _if_installed(_sse_starlette),
    }


def send_with_orjson(protocol: str) -> dict[str, Write | None]:
    """Contenders that do it with another JSON writer."""
    return {
        f"{OURS}, orjson": _if_installed(lambda: _send_with_orjson(protocol)),
        FLOOR_ORJSON: _if_installed(_floor_with_orjson),
    }


def _if_installed(make: Callable[[], Write]) -> Write | None:
    try:
        return make()
    except ImportError:
        return None


def _send(protocol: str, events: list[Any], dumps: Callable[[Any], bytes] | None = None) -> list[bytes]:
    sender = Sender(PROTOCOLS[protocol], dumps=dumps)
    return [sender.send(event) for event in events]


def _send_with_orjson(protocol: str) -> Write:
    dumps = import_module("orjson").dumps
    return lambda events: _send(protocol, events, dumps)


def _payload(event: Any) -> Any:
    return getattr(event, "payload", "[DONE]")


def _dump(events: list[Any], dumps: Callable[[Any], str]) -> list[bytes]:
    return [
        ("event: " + event.type + "\ndata: " + dumps(_payload(event)) + "\n\n").encode()
        for event in events
    ]


def _floor_with_orjson() -> Write:
    dumps = import_module("orjson").dumps
    return lambda events: [
        b"event: " + event.type.encode() + b"\ndata: " + dumps(_payload(event)) + b"\n\n"
        for event in events
    ]


_MODELS = {
    "chat": ("openai.types.chat", "ChatCompletionChunk"),
    "responses": ("openai.types.responses", "ResponseStreamEvent"),
    "messages": ("anthropic.types", "RawMessageStreamEvent"),
}


def _models(protocol: str, given: Events) -> Write:
    """Dump the models of an SDK, which were made before."""
    package, name = _MODELS[protocol]
    construct = import_module(f"{package.partition('.')[0]}._models").construct_type
    kind = getattr(import_module(package), name)
    values = [_payload(event) for event in given.blocks]
    models = [construct(type_=kind, value=value) for value in values if value != "[DONE]"]

    def block(model: Any) -> bytes:
        name = f"event: {model.type}\n" if hasattr(model, "type") else ""
        return f"{name}data: {model.model_dump_json(exclude_unset=True)}\n\n".encode()

    return lambda _events: [block(model) for model in models]


def _sse_starlette() -> Write:
    new = import_module("sse_starlette").ServerSentEvent
    return lambda events: [
        new(data=json.dumps(_payload(event)), event=event.type).encode() for event in events
    ]
