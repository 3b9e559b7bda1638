"""What goes wrong with an answer: the header ``x-chaos`` as bytes and pauses, without a socket.

``delay=S`` (seconds before each block), ``pause=S, at=N`` (once, before block N), ``cut=N`` (after N
blocks and half of the next, no end), ``eof=N`` (an end), ``error=N`` (the protocol's own error, an end),
``stall=N`` or ``hang`` (silence there, or behind the answer), ``status=503`` or ``html`` (no events at
all), ``repeat=N`` (N more blocks of text). ``python examples/chaos_script.py /v1/messages cut=7``
"""

from __future__ import annotations

import functools
import math
import re
import sys
from importlib.resources import files
from itertools import count
from typing import Any

from sse_machines import CHAT, MESSAGES, RESPONSES, Frame, FrameReader, Sender

PATHS: dict[str, Any] = {"/chat/completions": CHAT, "/responses": RESPONSES, "/messages": MESSAGES}
TEXT = rb"(?:event.*\n)?data: .*(?:text_delta|output_text\.delta|\"delta\":{\"content).*\n\n"
OVERLOADED = b'{"error":{"message":"overloaded","type":"server_error","code":"overloaded"}}'
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n"
CLOSE = b"connection: close\r\n\r\n"
FOR_EVER = (math.inf, b"")

Steps = list[tuple[float, bytes]]
"""The bytes of an HTTP answer, each after so many seconds."""


@functools.lru_cache
def steps_of(path: str, chaos: str, *, stream: bool) -> Steps:
    parts = (part.strip().partition("=") for part in chaos.split(","))
    script = {name: value for name, _, value in parts}
    protocol = next((PATHS[end] for end in PATHS if path.endswith(end)), None)
    if "status" in script:
        return page(script["status"], "application/json\r\nretry-after: 1", OVERLOADED)
    if "html" in script:
        return page("200", "text/html", b"<html><h1>Sign in</h1></html>")
    if protocol is None or not stream:
        return page("404" if protocol is None else "200", "application/json", b'{"object":"sample"}')
    delay = float(script.get("delay", 0))
    pauses = {int(script.get("at", 0)): float(script.get("pause", 0))}
    chunks = [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces_of(protocol, script)]
    timed = [(delay + pauses.get(number, 0), chunk) for number, chunk in enumerate(chunks)]
    silent = "hang" in script or "stall" in script
    end = [FOR_EVER] if silent else [] if "cut" in script else [(0, b"0\r\n\r\n")]
    return [(0, STREAM + CLOSE), *timed, *end]


def page(status: str, fields: str, body: bytes) -> Steps:
    head = f"HTTP/1.1 {status} \r\ncontent-length: {len(body)}\r\ncontent-type: {fields}\r\n"
    return [(0, head.encode() + CLOSE + body)]


def pieces_of(protocol: Any, script: dict[str, str]) -> list[bytes]:
    sample, numbers = files("sse_machines") / "samples" / f"{protocol.name}.sse", count()
    text = re.findall(TEXT, whole := sample.read_bytes())[2]
    whole = whole.replace(text, text * (int(script.get("repeat", 0)) + 1))
    reader = FrameReader()
    reader.feed(re.sub(rb'(?<="sequence_number":)\d+', lambda _: b"%d" % next(numbers), whole))
    blocks = [frame.raw for frame in iter(reader.next_frame, None)]
    ends = [int(script[name]) for name in ("cut", "eof", "error", "stall") if name in script]
    pieces = blocks[: min(ends, default=len(blocks))]
    if "cut" in script:
        pieces += [block[: (len(block) + 1) // 2] for block in blocks[len(pieces) :][:1]]
    if "error" in script:
        sender = Sender(protocol)
        for block in pieces:
            sender.forward(Frame.parse(block))
        pieces.append(sender.interrupt("overloaded"))
    return pieces


if __name__ == "__main__":
    for seconds, data in steps_of(sys.argv[1], ",".join(sys.argv[2:]), stream=True):
        print(f"{seconds:6.2f} s {data!r}")
