"""Bytes of Responses events, for tests that need a stream."""

from __future__ import annotations

import json
from typing import Any

from sse_machines import RESPONSES, Receiver
from tests import wire

event = wire.event
"""A frame as the first party writes it, but without a number."""

DONE = wire.DONE


def numbered(*frames: bytes, start: int = 0) -> bytes:
    """Frames with ``sequence_number``, as the first party sends them."""
    out = b""
    for number, frame in enumerate(frames, start):
        head, _, data = frame.decode().partition("data: ")
        payload = {**json.loads(data), "sequence_number": number}
        out += f"{head}data: {json.dumps(payload)}\n\n".encode()
    return out


def response(status: str = "in_progress", **members: Any) -> dict[str, Any]:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 0,
        "model": "m",
        "status": status,
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        **members,
    }


def lifecycle(kind: str, **members: Any) -> bytes:
    """``lifecycle("created")`` and the like."""
    return event(f"response.{kind}", response=response(kind, **members))


def item(kind: str = "message", **members: Any) -> dict[str, Any]:
    return {"id": f"{kind}_1", "type": kind, "status": "in_progress", **members}


def added(index: int = 0, kind: str = "message", **members: Any) -> bytes:
    return event("response.output_item.added", output_index=index, item=item(kind, **members))


def done(index: int = 0, kind: str = "message", **members: Any) -> bytes:
    return event("response.output_item.done", output_index=index, item=item(kind, **members))


def sub(kind: str, index: int = 0, item_id: str = "message_1", **members: Any) -> bytes:
    """``sub("output_text.delta", content_index=0, delta="x")`` and the like."""
    return event(f"response.{kind}", output_index=index, item_id=item_id, **members)


PART = {"type": "output_text", "text": "", "annotations": []}
CREATED = lifecycle("created")
COMPLETED = lifecycle("completed", output=[item()])
PART_ADDED = sub("content_part.added", content_index=0, part=PART)
PART_DONE = sub("content_part.done", content_index=0, part=PART)
TEXT_DONE = sub("output_text.done", content_index=0, text="hi")
KEEPALIVE = event("keepalive")
ERROR = event("error", error={"type": "server_error", "code": "server_error", "message": "m"})


def text(value: str, index: int = 0, part: int = 0, **members: Any) -> bytes:
    return sub("output_text.delta", index, content_index=part, delta=value, **members)


MESSAGE = (added(), PART_ADDED, text("h"), text("i"), TEXT_DONE, PART_DONE, done())
FRAMES = (
    CREATED,
    lifecycle("in_progress"),
    *MESSAGE,
    added(1, "function_call", call_id="call_1", name="f", arguments=""),
    sub("function_call_arguments.delta", 1, "function_call_1", delta='{"a":'),
    sub("function_call_arguments.delta", 1, "function_call_1", delta="1}"),
    sub("function_call_arguments.done", 1, "function_call_1", arguments='{"a":1}'),
    done(1, "function_call", call_id="call_1", name="f", arguments='{"a":1}'),
    COMPLETED,
)
ANSWER = numbered(*FRAMES)


def receive(chunks: Any, **options: Any) -> tuple[Receiver[Any], list[Any]]:
    """Everything a receiver gives out, the exception last if there is one."""
    return wire.receive(chunks, protocol=RESPONSES, **options)
