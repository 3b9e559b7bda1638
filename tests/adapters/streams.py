"""What the tests of the adapters read: samples, and sources that do as they are told."""

from __future__ import annotations

import importlib.resources
from typing import Any

from sse_machines import CHAT, MESSAGES, RESPONSES, Event, Receiver
from sse_machines._protocol import Protocol

FOLDER = importlib.resources.files("sse_machines") / "samples"
PROTOCOLS: dict[str, Protocol[Any]] = {"chat": CHAT, "responses": RESPONSES, "messages": MESSAGES}
SAMPLES = {name: (FOLDER / f"{name}.sse").read_bytes() for name in PROTOCOLS}


def events_of(data: bytes, protocol: Protocol[Any]) -> list[Event]:
    """What a receiver makes of a whole answer."""
    receiver = Receiver(protocol)
    receiver.receive_data(data)
    events = list(receiver)
    receiver.receive_eof()
    return events + list(receiver)


def pieces(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]
