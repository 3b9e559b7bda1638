"""What the clients are sent, and what they have to make of it.

Everything is written by a `Sender`. What was meant stands here a second time as plain values, so that
nobody who reads it has to trust the code that wrote it. Nothing here knows a client.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import attrs

from sse_machines import CHAT, MESSAGES, RESPONSES, Sender, chat, messages, responses
from sse_machines._protocol import Protocol

TEXT = ["我是", " a line\n\nand", ' "another"\\ \u2028\x85🌍', "data: x\n\n"]
REASONING = ["Let me", " think…\n"]
TOOLS: list[dict[str, Any]] = [
    {"id": "call_1", "name": "get_weather", "arguments": {"city": "深圳", "days": [1, 2.5, None]}},
    {"id": "call_2", "name": "get_time", "arguments": {}},
]
USAGE = {"input": 14, "output": 52}
KEEPALIVE = "hopbase-keepalive"
INTERRUPTED = "Response stream interrupted, please retry"
OVERLOADED = "Overloaded, says the upstream"
SCENARIOS = ("text", "reasoning", "tools", "keepalive", "error", "interrupted")
PATHS = {"chat": "chat/completions", "responses": "responses", "messages": "messages"}
PROTOCOLS: dict[str, Protocol[Any]] = {"chat": CHAT, "responses": RESPONSES, "messages": MESSAGES}


@attrs.frozen(kw_only=True)
class Meant:
    """One stream, and what it says.

    Attributes:
        scenario: One of `SCENARIOS`.
        api: The name of the protocol.
        write: Makes the body, chunk by chunk, with a sender of its own.
        text, reasoning, tools, usage, finish: What every client should find.
        error: The message of the error in the stream; ``""`` if there is none.
        final: Members that the final object of the official SDK has to have; None after an error.
    """

    scenario: str
    api: str
    write: Callable[[], Iterator[bytes]]
    text: str
    reasoning: str = ""
    tools: list[dict[str, Any]] = attrs.field(factory=list)
    usage: dict[str, int] | None = None
    finish: str | None = None
    error: str = ""
    final: dict[str, Any] | None = None

    @property
    def path(self) -> str:
        """Where the stream is served."""
        return f"/{self.scenario}/v1/{PATHS[self.api]}"


def answer(api: str) -> Any:
    """The maker of events of a protocol."""
    if api == "chat":
        return chat.Answer(id="chatcmpl-EXAMPLE", model="gpt-5.6-sol", created=1_767_225_600)
    if api == "responses":
        return responses.Answer(id="resp_EXAMPLE", model="gpt-5.6-sol", created_at=1_767_225_600)
    return messages.Answer(id="msg_EXAMPLE", model="claude-sonnet-5", input_tokens=USAGE["input"])


def reasoning_part(api: str, maker: Any) -> Any:
    return maker.thinking(signature="c2lnbmF0dXJl") if api == "messages" else maker.reasoning()


def tool_part(api: str, maker: Any, tool: dict[str, Any]) -> Any:
    if api == "chat":
        return maker.tool_call(id=tool["id"], name=tool["name"])
    if api == "responses":
        return maker.function_call(call_id=tool["id"], name=tool["name"])
    return maker.tool_use(id=tool["id"], name=tool["name"])


def end(api: str, maker: Any, *, tools: bool) -> Iterator[Any]:
    tokens = USAGE["input"], USAGE["output"]
    if api == "chat":
        reason = "tool_calls" if tools else "stop"
        yield from maker.end(reason, prompt_tokens=tokens[0], completion_tokens=tokens[1])
    elif api == "responses":
        yield from maker.end(input_tokens=tokens[0], output_tokens=tokens[1])
    else:
        yield from maker.end("tool_use" if tools else "end_turn", output_tokens=tokens[1])


FINISH = {
    ("chat", False): "stop",
    ("chat", True): "tool_calls",
    ("responses", False): "completed",
    ("responses", True): "completed",
    ("messages", False): "end_turn",
    ("messages", True): "tool_use",
}


def whole(api: str, *, reasoning: bool = False, tools: bool = False) -> Iterator[Any]:
    """The events of a whole answer; the parallel calls take turns where the protocol lets them."""
    maker = answer(api)
    yield from maker.begin()
    if reasoning:
        yield from reasoning_part(api, maker).whole(REASONING)
    yield from maker.text().whole(TEXT)
    parts = [tool_part(api, maker, tool) for tool in TOOLS] if tools else []
    pieces = [halves(json.dumps(tool["arguments"], ensure_ascii=False)) for tool in TOOLS]
    if api == "messages":
        for part, own in zip(parts, pieces, strict=False):
            yield from part.whole(own)
    else:
        yield from taking_turns(parts, pieces)
    yield from end(api, maker, tools=tools)


def taking_turns(parts: list[Any], pieces: list[list[str]]) -> Iterator[Any]:
    for part in parts:
        yield from part.begin()
    for turn in (0, 1):
        for part, own in zip(parts, pieces, strict=False):
            yield from part.add(own[turn])
    for part in parts:
        yield from part.end()


def halves(text: str) -> list[str]:
    return [text[: len(text) // 2], text[len(text) // 2 :]]


def begun(api: str) -> Iterator[Any]:
    """The events of an answer that breaks off in its text."""
    maker = answer(api)
    part = maker.text()
    yield from maker.begin()
    yield from part.begin()
    for piece in TEXT[:2]:
        yield from part.add(piece)


def written(sender: Sender[Any], events: Iterable[Any], *, comment: str = "") -> Iterator[bytes]:
    for event in events:
        yield sender.send(event)
        if comment:
            yield sender.comment(comment)


def final(api: str, *, reasoning: bool, tools: bool) -> dict[str, Any]:
    """What the official SDK has in the end, as far as we said it."""
    text, thought = "".join(TEXT), "".join(REASONING)
    if api == "chat":
        calls = [
            {"id": tool["id"], "type": "function", "function": {"name": tool["name"]}} for tool in TOOLS
        ]
        message = {"role": "assistant", "content": text, **({"tool_calls": calls} if tools else {})}
        return {
            "id": "chatcmpl-EXAMPLE",
            "model": "gpt-5.6-sol",
            "created": 1_767_225_600,
            "choices": [{"index": 0, "message": message, "finish_reason": FINISH[api, tools]}],
            "usage": {"prompt_tokens": 14, "completion_tokens": 52, "total_tokens": 66},
        }
    if api == "responses":
        thoughts = [{"type": "reasoning", "summary": [{"type": "summary_text", "text": thought}]}]
        said = [{"type": "message", "status": "completed", "content": [{"text": text}]}]
        items = [
            {"type": "function_call", "call_id": tool["id"], "name": tool["name"]} for tool in TOOLS
        ]
        return {
            "id": "resp_EXAMPLE",
            "status": "completed",
            "output": [*(thoughts if reasoning else []), *said, *(items if tools else [])],
            "usage": {"input_tokens": 14, "output_tokens": 52, "total_tokens": 66},
        }
    thinking = [{"type": "thinking", "thinking": thought, "signature": "c2lnbmF0dXJl"}]
    uses = [
        {"type": "tool_use", "id": tool["id"], "name": tool["name"], "input": tool["arguments"]}
        for tool in TOOLS
    ]
    content = [
        *(thinking if reasoning else []),
        {"type": "text", "text": text},
        *(uses if tools else []),
    ]
    return {
        "id": "msg_EXAMPLE",
        "model": "claude-sonnet-5",
        "role": "assistant",
        "content": content,
        "stop_reason": FINISH[api, tools],
        "usage": {"input_tokens": 14, "output_tokens": 52},
    }


def finished(scenario: str, api: str) -> Meant:
    reasoning, tools = scenario == "reasoning", scenario == "tools"
    comment = KEEPALIVE if scenario == "keepalive" else ""

    def write() -> Iterator[bytes]:
        events = whole(api, reasoning=reasoning, tools=tools)
        return written(Sender(PROTOCOLS[api]), events, comment=comment)

    return Meant(
        scenario=scenario,
        api=api,
        write=write,
        text="".join(TEXT),
        reasoning="".join(REASONING) if reasoning else "",
        tools=TOOLS if tools else [],
        usage=USAGE,
        finish=FINISH[api, tools],
        final=final(api, reasoning=reasoning, tools=tools),
    )


def failed(scenario: str, api: str) -> Meant:
    def write() -> Iterator[bytes]:
        sender = Sender(PROTOCOLS[api])
        yield from written(sender, begun(api))
        if scenario == "interrupted":
            yield sender.interrupt()
        else:
            yield sender.interrupt(OVERLOADED, type="overloaded_error", code="server_error")

    return Meant(
        scenario=scenario,
        api=api,
        write=write,
        text="".join(TEXT[:2]),
        error=INTERRUPTED if scenario == "interrupted" else OVERLOADED,
    )


ALL = {
    (scenario, api): (failed if scenario in ("error", "interrupted") else finished)(scenario, api)
    for scenario in SCENARIOS
    for api in PATHS
}
ROUTES = {meant.path: meant.write for meant in ALL.values()}


def check_contains(actual: Any, wanted: Any) -> None:
    """An object has all that was meant; lists have it in order and nothing else."""
    if isinstance(wanted, dict):
        for name, value in wanted.items():
            check_contains(actual[name], value)
    elif isinstance(wanted, list):
        assert len(actual) == len(wanted)
        for inner, value in zip(actual, wanted, strict=True):
            check_contains(inner, value)
    else:
        assert actual == wanted
