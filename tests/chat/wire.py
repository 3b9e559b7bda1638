"""Bytes of Chat Completions events, for tests that need a stream."""

from __future__ import annotations

import json
from typing import Any

from sse_machines import CHAT, Receiver
from tests import wire

HEAD = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": "m"}
DONE = b"data: [DONE]\n\n"


def event(payload: Any, name: str = "") -> bytes:
    """A frame as the first party writes it: without an event name."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(payload)}\n\n".encode()


def chunk(*choices: Any, **members: Any) -> bytes:
    return event({**HEAD, "choices": list(choices), **members})


def choice(delta: Any, finish: str | None = None, index: int = 0) -> dict[str, Any]:
    return {"index": index, "delta": delta, "finish_reason": finish}


def delta(index: int = 0, **members: Any) -> bytes:
    return chunk(choice(members, index=index))


def role(index: int = 0) -> bytes:
    return delta(index, role="assistant", content="")


def text(value: str, index: int = 0) -> bytes:
    return delta(index, content=value)


def finish(reason: str = "stop", index: int = 0, **members: Any) -> bytes:
    return chunk(choice(members, reason, index))


def call(index: int | None, arguments: str = "", id: str | None = None, name: str | None = None) -> Any:
    """A piece of a tool call; what is None is left out."""
    function = {"name": name, "arguments": arguments}
    piece = {"index": index, "id": id, "type": id and "function"}
    return {key: value for key, value in piece.items() if value is not None} | {
        "function": {key: value for key, value in function.items() if value is not None}
    }


def calls(*pieces: Any) -> bytes:
    return delta(tool_calls=list(pieces))


USAGE = chunk(usage={"prompt_tokens": 14, "completion_tokens": 52, "total_tokens": 66})
ANNOTATION = chunk(prompt_filter_results=[])
ERROR = event({"error": {"message": "m", "type": "server_error", "param": None, "code": None}})

ANSWER = (
    role()
    + text("你好, ")
    + b": keep-alive\n\n"
    + text("world \u2028🌍")
    + calls(call(0, "", "call_1", "f"))
    + calls(call(0, '{"a":'))
    + calls(call(0, "1}"))
    + finish("tool_calls")
    + USAGE
    + DONE
)


def receive(chunks: Any, **options: Any) -> tuple[Receiver[Any], list[Any]]:
    """Everything a receiver gives out, the exception last if there is one."""
    return wire.receive(chunks, protocol=CHAT, **options)
