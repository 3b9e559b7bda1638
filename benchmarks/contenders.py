"""Who is measured: this package, a floor that nobody can do without, and peers.

Each contender is a function from the chunks of one answer to what it made of them. The floors are
what people write by hand. They are deliberately not correct and not even linear; they only show what
splitting and parsing cost when nothing is checked.

Peers are measured where they are installed, by their decoders alone, so that no HTTP client is in the
numbers. Those decoders are private to their packages: one that has moved counts as not installed.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable
from importlib import import_module
from typing import Any

from sse_machines import CHAT, MESSAGES, RESPONSES, FrameReader, Receiver

Work = Callable[[list[bytes]], "int | list[Any]"]
"""Takes chunks; returns the events, or only their number."""

OURS = "sse_machines"
FLOOR = "floor (split)"
FLOOR_ORJSON = "floor (split), orjson"
HTTPX_SSE = "httpx-sse decoders"


def frames(line_end: bytes) -> dict[str, Work | None]:
    """Contenders that make frames of bytes; None for one that is not installed.

    Args:
        line_end: What the floor splits at, twice; the others find out by themselves.
    """
    return {
        OURS: read_frames,
        FLOOR: lambda chunks: _split(chunks, line_end * 2),
        HTTPX_SSE: _if_installed(_httpx_sse_frames),
        "anthropic SSEDecoder": _if_installed(lambda: _sdk_frames("anthropic")),
        "openai SSEDecoder": _if_installed(lambda: _sdk_frames("openai")),
    }


PROTOCOLS = {protocol.name: protocol for protocol in (CHAT, RESPONSES, MESSAGES)}


def receive(protocol: str) -> dict[str, Work | None]:
    """Contenders that make values or events of a stream; None for one not installed."""
    return {
        OURS: lambda chunks: receive_events(protocol, chunks),
        FLOOR: lambda chunks: _split_and_load(chunks, json.loads),
        HTTPX_SSE: _if_installed(_httpx_sse_values),
    }


def receive_with_orjson(protocol: str) -> dict[str, Work | None]:
    """Contenders that do the same with another JSON parser."""
    return {
        f"{OURS}, orjson": _if_installed(lambda: _receive_with_orjson(protocol)),
        FLOOR_ORJSON: _if_installed(_floor_with_orjson),
    }


def slow_receive(protocol: str) -> dict[str, Work | None]:
    """Contenders that are better given fewer events."""
    package, event_type = _SDK_TYPES[protocol]
    return {f"{package} Stream": _if_installed(lambda: _sdk_events(package, event_type))}


_SDK_TYPES = {
    "chat": ("openai", "chat.ChatCompletionChunk"),
    "responses": ("openai", "responses.ResponseStreamEvent"),
    "messages": ("anthropic", "RawMessageStreamEvent"),
}
"""The package of the vendor, and what its raw stream gives, inside of its ``types``."""


def _if_installed(make: Callable[[], Work]) -> Work | None:
    try:
        return make()
    except (ImportError, AttributeError):
        return None


def read_frames(chunks: list[bytes]) -> int:
    """Read all frames of this package, and let them go."""
    reader = FrameReader()
    count = 0
    for chunk in chunks:
        reader.feed(chunk)
        while reader.next_frame() is not None:
            count += 1
    return count


def receive_events(
    protocol: str, chunks: list[bytes], loads: Callable[[str], Any] | None = None
) -> list[Any]:
    """Receive all events of this package, and keep them."""
    receiver = Receiver(PROTOCOLS[protocol], loads=loads)
    events: list[Any] = []
    for chunk in chunks:
        receiver.receive_data(chunk)
        event = receiver.next_event()
        while event is not None:
            events.append(event)
            event = receiver.next_event()
    return events


def _receive_with_orjson(protocol: str) -> Work:
    loads = import_module("orjson").loads
    return lambda chunks: receive_events(protocol, chunks, loads)


def _split(chunks: list[bytes], blank: bytes) -> int:
    count = 0
    rest = b""
    for chunk in chunks:
        *blocks, rest = (rest + chunk).split(blank)
        count += len(blocks)
    return count


def _split_and_load(chunks: list[bytes], loads: Callable[[bytes], Any]) -> list[Any]:
    values = []
    rest = b""
    for chunk in chunks:
        *blocks, rest = (rest + chunk).split(b"\n\n")
        for block in blocks:
            data = block[block.index(b"data: ") + 6 :]
            if data != b"[DONE]":
                values.append(loads(data))
    return values


def _floor_with_orjson() -> Work:
    loads = import_module("orjson").loads
    return lambda chunks: _split_and_load(chunks, loads)


def _httpx_sse_frames() -> Work:
    decoders = import_module("httpx_sse._decoders")
    new_lines, new_events = decoders.SSELineDecoder, decoders.SSEDecoder

    def work(chunks: list[bytes]) -> int:
        text = codecs.getincrementaldecoder("utf-8")("replace")
        lines, events = new_lines(), new_events()
        count = 0
        for chunk in chunks:
            for line in lines.decode(text.decode(chunk)):
                if events.decode(line) is not None:
                    count += 1
        return count

    return work


def _httpx_sse_values() -> Work:
    decoders = import_module("httpx_sse._decoders")
    new_lines, new_events = decoders.SSELineDecoder, decoders.SSEDecoder

    def work(chunks: list[bytes]) -> list[Any]:
        text = codecs.getincrementaldecoder("utf-8")("replace")
        lines, events = new_lines(), new_events()
        values = []
        for chunk in chunks:
            for line in lines.decode(text.decode(chunk)):
                event = events.decode(line)
                if event is not None and event.data != "[DONE]":
                    values.append(json.loads(event.data))
        return values

    return work


def _sdk_frames(package: str) -> Work:
    new_decoder = import_module(f"{package}._streaming").SSEDecoder
    return lambda chunks: sum(1 for _ in new_decoder().iter_bytes(iter(chunks)))


def _sdk_events(package: str, event_type: str) -> Work:
    """The typed stream of an SDK, over a response that never had a connection."""
    httpx2 = import_module("httpx2")
    sdk = import_module(package)
    new_stream = import_module(f"{package}._streaming").Stream
    cast_to: Any = import_module(f"{package}.types")
    for name in event_type.split("."):
        cast_to = getattr(cast_to, name)
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200))
    new_client = {"openai": "OpenAI", "anthropic": "Anthropic"}[package]
    http_client = httpx2.Client(transport=transport)
    client = getattr(sdk, new_client)(api_key="none", http_client=http_client)
    request = httpx2.Request("POST", "https://example.invalid/")

    def work(chunks: list[bytes]) -> list[Any]:
        response = httpx2.Response(200, content=iter(chunks), request=request)
        return list(new_stream(cast_to=cast_to, response=response, client=client))

    return work
