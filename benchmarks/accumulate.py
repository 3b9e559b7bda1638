"""Who is measured at making the final object of an answer: this package, a floor, and peers.

Each contender is a function from the chunks of one answer to its final object: the message, completion
or response as if it had not been streamed. Two shapes of answers are measured: one of text, and one tool
call whose long arguments come in small deltas, at several sizes, which shows who is not linear.

The floor makes no final object at all: it splits, parses and keeps the values, as the one of ``receive``
does. Peers are given what they need, and nothing more; where that includes more than a decoder, the
function that makes the contender says so. They build typed models, which this package does not.

This module deliberately has no partial values of arguments while they grow: some peers parse them at
every delta and cannot be told not to, which is in their numbers, and others never do.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from sse_machines import Receiver

from .contenders import FLOOR, FLOOR_ORJSON, OURS, PROTOCOLS, Work, receive, receive_with_orjson
from .streams import Stream, stream
from .timing import Job, Row, measure, print_table

Finish = Callable[[list[bytes]], Any]
"""Takes chunks; returns the final object."""


class _Field(NamedTuple):
    """All who run; None for one that is not installed."""

    quick: dict[str, Finish | None]
    slow: dict[str, Finish | None]

    @property
    def all(self) -> dict[str, Finish | None]:
        return self.quick | self.slow


VENDOR = {
    "chat": "openai stream helper",
    "responses": "openai stream helper",
    "messages": "anthropic stream helper",
}
LITELLM = "litellm chunk builder"
PYDANTIC_AI = "pydantic-ai"

DELTA_SIZE = 20
"""Bytes of arguments in one delta, which is what servers send: a few tokens."""
_CHUNK_SIZE = 1400
"""What the arguments of a tool come in: about one packet."""
_SLOW = 5
"""How many times fewer rounds the slow contenders are given. The answer is the same: some of them cost
milliseconds per answer, which a shorter one would charge to its events."""
_PATIENCE = 20.0
"""Seconds that one run at one size may take; what is expected to take longer is not run."""
_QUADRATIC = 2


class Answer(NamedTuple):
    """An answer, and what has to be found in it.

    Attributes:
        blocks: What the time is divided by: the events of a text, or the deltas of a tool call.
        stream: How it is sent.
        meant: The text or the arguments, as text.
    """

    blocks: Sequence[Any]
    stream: Stream
    meant: str

    def chunks(self, size: int) -> list[bytes]:
        """The bytes in pieces of one size."""
        return self.stream.chunks(size)


def text_answer(protocol: str, events: int) -> Answer:
    """Make an answer of nothing but text."""
    source = stream(protocol, events)
    # The last value of chat is no JSON; the floor leaves it out.
    values = _floor(protocol)([source.body])
    found = (_at(value, _TEXT_DELTAS[protocol]) for value in values)
    return Answer(source.blocks, source, "".join(text for text in found if isinstance(text, str)))


def tool_answer(protocol: str, shape: str, size: int) -> Answer:
    """Make an answer of one tool call.

    Args:
        protocol: Its name.
        shape: A key of `SHAPES`.
        size: Bytes of the arguments, which are a JSON object; at least what its frame needs.
    """
    arguments = SHAPES[shape](size)
    deltas = [arguments[start : start + DELTA_SIZE] for start in range(0, len(arguments), DELTA_SIZE)]
    blocks = [_block(name, data) for name, data in _CALLS[protocol](deltas)]
    return Answer(deltas, Stream(blocks), arguments)


def accumulate(protocol: str) -> dict[str, Finish | None]:
    """Contenders that make the final object quickly; none of them is missing."""
    return {OURS: lambda chunks: _finish(protocol, chunks)}


def accumulate_with_orjson(protocol: str) -> dict[str, Finish | None]:
    """Contenders that do it with another JSON parser; None for one that is not installed."""
    return {f"{OURS}, orjson": _if_installed(lambda: _finish_with_orjson(protocol))}


def slow_accumulate(protocol: str) -> dict[str, Finish | None]:
    """Contenders that are better given fewer rounds; None for one that is not installed."""
    peers: dict[str, Finish | None] = {VENDOR[protocol]: _if_installed(_VENDORS[protocol])}
    if protocol == "chat":
        peers[LITELLM] = _if_installed(_litellm)
    peers[PYDANTIC_AI] = _if_installed(lambda: _pydantic_ai(protocol))
    return peers


def said(protocol: str, final: Any) -> Any:
    """What a final object says.

    Args:
        protocol: Its name.
        final: What a contender has made: a dictionary or a model.

    Returns:
        The text or the arguments of the call; the latter as a text or parsed, as the object has them.
    """
    paths = _PARTS if hasattr(final, "parts") else _SAID[protocol]
    values = (_at(final, path) for path in paths)
    return next((value for value in values if value is not None), None)


_SAID: dict[str, list[tuple[str | int, ...]]] = {
    "chat": [
        ("choices", 0, "message", "content"),
        ("choices", 0, "message", "tool_calls", 0, "function", "arguments"),
    ],
    "responses": [("output", 0, "content", 0, "text"), ("output", 0, "arguments")],
    "messages": [("content", 0, "text"), ("content", 0, "input")],
}
"""Where the final objects of the protocols have it, be they of this package or of a peer."""
_PARTS: list[tuple[str | int, ...]] = [("parts", 0, "content"), ("parts", 0, "args")]
"""Where pydantic-ai has it, which makes the same object of all protocols."""
_TEXT_DELTAS: dict[str, tuple[str | int, ...]] = {
    "chat": ("choices", 0, "delta", "content"),
    "responses": ("delta",),
    "messages": ("delta", "text"),
}


def _at(value: Any, path: Iterable[str | int]) -> Any:
    """Look into objects, dictionaries and lists; None where there is nothing."""
    for step in path:
        if isinstance(step, str) and not isinstance(value, dict):
            value = getattr(value, step, None)
            continue
        try:
            value = value[step]
        except (LookupError, TypeError):
            return None
    return value


def print_accumulate(protocols: Iterable[str], events: int, rounds: int, chunks: Iterable[int]) -> None:
    """Measure bytes of text to the final object.

    Args:
        protocols: Their names.
        events: Per stream.
        rounds: How many, and fewer for the slow contenders; the fastest one counts.
        chunks: Sizes in bytes.
    """
    sizes = list(chunks)
    for protocol in protocols:
        answer = text_answer(protocol, events)
        field = _field(protocol)
        columns = {size: _row(protocol, answer, field, size, rounds) for size in sizes}
        title = f"accumulate: {protocol}, text"
        with_orjson = [*accumulate_with_orjson(protocol), FLOOR_ORJSON]
        names = [name for name in field.all if name not in with_orjson]
        print_table(title, names, columns, [FLOOR])
        print_table(f"{title}, in the same rounds", with_orjson, columns, [FLOOR_ORJSON, FLOOR])


def print_tools(protocols: Iterable[str], sizes: Iterable[int], rounds: int) -> None:
    """Measure bytes of one tool call to the final object.

    A contender that would need too long for a size is not run there, nor guessed at; at the smallest
    size all are run.

    Args:
        protocols: Their names.
        sizes: Bytes of arguments.
        rounds: How many, and fewer for the slow contenders; the fastest one counts.
    """
    ordered = sorted(set(sizes))
    for protocol in protocols:
        field = _field(protocol)
        for shape in SHAPES:
            # Peers import and build a lot at first use, and there may be only one round.
            _row(protocol, tool_answer(protocol, shape, DELTA_SIZE), field, _CHUNK_SIZE, 1)
            columns: dict[int, Row] = {}
            for size in ordered:
                slow = {
                    who: work for who, work in field.slow.items() if _is_worth_it(who, size, columns)
                }
                answer = tool_answer(protocol, shape, size)
                columns[size] = _row(protocol, answer, _Field(field.quick, slow), _CHUNK_SIZE, rounds)
            _print_growth(f"accumulate: {protocol}, one tool call, {shape}", field, columns)


def _field(protocol: str) -> _Field:
    floors = {FLOOR: _floor(protocol), FLOOR_ORJSON: receive_with_orjson(protocol)[FLOOR_ORJSON]}
    quick = accumulate(protocol) | floors | accumulate_with_orjson(protocol)
    return _Field(quick, slow_accumulate(protocol))


def _row(protocol: str, answer: Answer, field: _Field, chunk: int, rounds: int) -> Row:
    """Run everyone in the first rounds, and the quick ones alone in the others."""
    shared = max(1, rounds // _SLOW)
    row = measure(_jobs(protocol, field.all, answer), chunk, shared)
    if rounds > shared:
        others = measure(_jobs(protocol, field.quick, answer), chunk, rounds - shared)
        row |= {name: min(taken, row[name]) for name, taken in others.items()}
    return row


def _is_worth_it(name: str, size: int, columns: Mapping[int, Row]) -> bool:
    """Whether a contender will need no longer than anybody waits, if it goes on as it began."""
    taken = [(run, row[name] * run / DELTA_SIZE / 1e6) for run, row in columns.items() if name in row]
    if not taken:
        return not columns
    last_size, last = taken[-1]
    power = float(_QUADRATIC)
    if len(taken) > 1:
        before_size, before = taken[-2]
        power = math.log(last / before) / math.log(last_size / before_size)
    return last * math.pow(size / last_size, power) <= _PATIENCE


def _print_growth(title: str, field: _Field, columns: Mapping[int, Row]) -> None:
    print(f"\n{title}, {_CHUNK_SIZE:,} B chunks")
    print("us per delta (seconds in all); growth from the first to the last, 1.0 is linear")
    print("".join([f"{'':24}", *(f"{f'{size:,} B':>22}" for size in columns), f"{'growth':>10}"]))
    for name, work in field.all.items():
        missing = "not installed" if work is None else "not run"
        cells = [_cell(size, row.get(name), missing) for size, row in columns.items()]
        run = [row[name] for row in columns.values() if name in row]
        growth = f"{run[-1] / run[0]:.1f}" if len(run) > 1 else "-"
        print("".join([f"{name:24}", *(f"{cell:>22}" for cell in cells), f"{growth:>10}"]))


def _cell(size: int, taken: float | None, missing: str) -> str:
    if taken is None:
        return missing
    return f"{taken:.2f} ({taken * math.ceil(size / DELTA_SIZE) / 1e6:.2f} s)"


def _jobs(protocol: str, contenders: Mapping[str, Finish | None], answer: Answer) -> dict[str, Job]:
    return {
        name: Job(None if finish is None else _judged(protocol, name, finish, answer), answer)
        for name, finish in contenders.items()
    }


def _judged(protocol: str, name: str, finish: Finish, answer: Answer) -> Work:
    """A contender that has found nothing if its final object does not say what was meant.

    Looking costs the same for all, and next to nothing: no text is parsed or made.
    """
    if name in {FLOOR, FLOOR_ORJSON}:
        return finish
    parsed = _parsed(answer.meant)

    def work(chunks: list[bytes]) -> int:
        value = said(protocol, finish(chunks))
        is_meant = value == (answer.meant if isinstance(value, str) else parsed)
        return len(answer.blocks) if is_meant else 0

    return work


def _parsed(text: str) -> Any:
    return json.loads(text) if text.startswith("{") else text


def _if_installed(make: Callable[[], Finish]) -> Finish | None:
    try:
        return make()
    except (ImportError, AttributeError):
        return None


def _floor(protocol: str) -> Callable[[list[bytes]], Any]:
    work = receive(protocol)[FLOOR]
    assert work is not None
    return work


def _finish(protocol: str, chunks: list[bytes], loads: Callable[[str], Any] | None = None) -> Any:
    """Receive all events of this package, and keep nothing but the answer."""
    receiver = Receiver(PROTOCOLS[protocol], loads=loads, accumulate=True)
    for chunk in chunks:
        receiver.receive_data(chunk)
        while receiver.next_event() is not None:
            pass
    accumulator = receiver.accumulator
    assert accumulator is not None
    return accumulator.snapshot()


def _finish_with_orjson(protocol: str) -> Finish:
    loads = import_module("orjson").loads
    return lambda chunks: _finish(protocol, chunks, loads)


def _raw_stream(package: str, cast_to: Any) -> Callable[[list[bytes]], Any]:
    """The typed stream of an SDK, over a response that never had a connection."""
    httpx2 = import_module("httpx2")
    new_client = getattr(import_module(package), {"openai": "OpenAI", "anthropic": "Anthropic"}[package])
    new_stream = import_module(f"{package}._streaming").Stream
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200))
    client = new_client(api_key="none", http_client=httpx2.Client(transport=transport))
    request = httpx2.Request("POST", "https://example.invalid/")

    def begin(chunks: list[bytes]) -> Any:
        response = httpx2.Response(200, content=iter(chunks), request=request)
        return new_stream(cast_to=cast_to, response=response, client=client)

    return begin


def _openai_chat() -> Finish:
    new = import_module("openai.lib.streaming.chat").ChatCompletionStream
    omit = import_module("openai").omit
    begin = _raw_stream("openai", import_module("openai.types.chat").ChatCompletionChunk)

    def finish(chunks: list[bytes]) -> Any:
        helper = new(raw_stream=begin(chunks), response_format=omit, input_tools=omit)
        return helper.get_final_completion()

    return finish


def _openai_responses() -> Finish:
    new = import_module("openai.lib.streaming.responses").ResponseStream
    omit = import_module("openai").omit
    begin = _raw_stream("openai", import_module("openai.types.responses").ResponseStreamEvent)

    def finish(chunks: list[bytes]) -> Any:
        raw = begin(chunks)
        helper = new(raw_stream=raw, text_format=omit, input_tools=omit, starting_after=None)
        return helper.get_final_response()

    return finish


def _anthropic_messages() -> Finish:
    new = import_module("anthropic.lib.streaming").MessageStream
    not_given = import_module("anthropic").NOT_GIVEN
    begin = _raw_stream("anthropic", import_module("anthropic.types").RawMessageStreamEvent)
    return lambda chunks: new(begin(chunks), output_format=not_given).get_final_message()


_VENDORS: dict[str, Callable[[], Finish]] = {
    "chat": _openai_chat,
    "responses": _openai_responses,
    "messages": _anthropic_messages,
}


def _litellm() -> Finish:
    """The floor, LiteLLM's own chunks, and its builder.

    That is the least that leads from bytes to its final object. Its users also pay for the SDK of the
    vendor and for the wrapper around the stream, which are left out.
    """
    # Otherwise it asks the network for a table of prices, and reads an .env file.
    os.environ.setdefault("LITELLM_OFFLINE_MODE", "true")
    os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
    litellm: Any = import_module("litellm")
    litellm.suppress_debug_info = True
    new_chunk = import_module("litellm.types.utils").ModelResponseStream
    build = litellm.stream_chunk_builder
    values = _floor("chat")
    return lambda chunks: build([new_chunk(**value) for value in values(chunks)])


_PYDANTIC_AI = {
    "chat": ("openai", "OpenAIChatModel", "OpenAIProvider"),
    "responses": ("openai", "OpenAIResponsesModel", "OpenAIProvider"),
    "messages": ("anthropic", "AnthropicModel", "AnthropicProvider"),
}
"""The vendor, and the names of the model and of its provider."""


def _pydantic_ai(protocol: str) -> Finish:
    """A request without tools, all events of its stream, and the response at the end.

    It has no way in but a request: the SDK of the vendor, an HTTP client with a transport that answers
    by itself, and an event loop are included. Model and client are made before.
    """
    httpx2 = import_module("httpx2")
    vendor, model_name, provider_name = _PYDANTIC_AI[protocol]
    new_model = getattr(import_module(f"pydantic_ai.models.{vendor}"), model_name)
    new_provider = getattr(import_module(f"pydantic_ai.providers.{vendor}"), provider_name)
    request = import_module("pydantic_ai.direct").model_request_stream
    prompt = [import_module("pydantic_ai.messages").ModelRequest.user_text_prompt("Go on.")]
    answers: list[list[bytes]] = []

    def answer(_request: Any) -> Any:
        headers = {"content-type": "text/event-stream"}
        return httpx2.Response(200, headers=headers, content=_asynchronous(answers.pop()))

    client = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    model = new_model("gpt-bench", provider=new_provider(api_key="none", http_client=client))

    async def run() -> Any:
        async with request(model, prompt) as response:
            async for _ in response:
                pass
        return response.get()

    def finish(chunks: list[bytes]) -> Any:
        answers.append(chunks)
        return asyncio.run(run())

    return finish


async def _asynchronous(chunks: list[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


_LINE = "    total = sum(item.price for item in cart)  # of all items\n"
_PATH = "src/shop/cart.py"
_EDIT = {"line": 17, "old": "total = 0\n", "new": "total = sum(prices)\n"}


def _one_string(size: int) -> str:
    """A file to be written, as coding assistants send it, with an escape in each line."""
    line = json.dumps(_LINE)[1:-1]
    return _filled(f'{{"path": "{_PATH}", "content": "', line, "", '"}', size)


def _small_values(size: int) -> str:
    """The edits of a file."""
    edit = json.dumps(_EDIT)
    return _filled(f'{{"path": "{_PATH}", "edits": [{edit}', f", {edit}", '], "note": "', '"}', size)


def _filled(head: str, unit: str, middle: str, tail: str, size: int) -> str:
    """As many units as there is room for, and a string cut to what is left of it."""
    room = max(0, size - len(head) - len(middle) - len(tail))
    count, left = divmod(room, len(unit))
    return f"{head}{unit * count}{middle}{'.' * left}{tail}"


SHAPES: dict[str, Callable[[int], str]] = {
    "one long string": _one_string,
    "many small values": _small_values,
}
"""Of arguments, by name: who parses them at every delta pays much more for values than for a string."""

_CREATED = 1767225600
_MODEL = "gpt-bench"
_TOOL = "write_file"
_CALL_ID = "call_0f1e2d3c4b5a69788796a5b4"
_ITEM_ID = "fc_0f1e2d3c4b5a69788796a5b4c3d2e1f0"


def _chat_call(deltas: Sequence[str]) -> Iterator[tuple[str | None, Any]]:
    function = {"name": _TOOL, "arguments": ""}
    call = {"index": 0, "id": _CALL_ID, "type": "function", "function": function}
    yield None, _chunk({"role": "assistant", "content": None, "tool_calls": [call], "refusal": None})
    for delta in deltas:
        yield None, _chunk({"tool_calls": [{"index": 0, "function": {"arguments": delta}}]})
    yield None, _chunk({}, "tool_calls")
    count = len(deltas)
    usage = {"prompt_tokens": 9, "completion_tokens": count, "total_tokens": count + 9}
    yield None, {**_chunk({}), "choices": [], "usage": usage}
    yield None, "[DONE]"


def _chunk(delta: Any, finish: str | None = None) -> dict[str, Any]:
    return {
        "id": "chatcmpl-0f1e2d3c4b5a69788796a5b4c3d2e1f0",
        "object": "chat.completion.chunk",
        "created": _CREATED,
        "model": _MODEL,
        "service_tier": "default",
        "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}],
        "usage": None,
    }


def _responses_call(deltas: Sequence[str]) -> Iterator[tuple[str | None, Any]]:
    for number, (kind, members) in enumerate(_responses_events(deltas)):
        yield kind, {"type": kind, "sequence_number": number, **members}


def _responses_events(deltas: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    item = {
        "id": _ITEM_ID,
        "type": "function_call",
        "status": "in_progress",
        "arguments": "",
        "call_id": _CALL_ID,
        "name": _TOOL,
    }
    place = {"item_id": _ITEM_ID, "output_index": 0}
    yield "response.created", {"response": _response("in_progress")}
    yield "response.in_progress", {"response": _response("in_progress")}
    yield "response.output_item.added", {"output_index": 0, "item": item}
    for delta in deltas:
        yield "response.function_call_arguments.delta", {**place, "delta": delta}
    arguments = "".join(deltas)
    item = {**item, "status": "completed", "arguments": arguments}
    yield "response.function_call_arguments.done", {**place, "name": _TOOL, "arguments": arguments}
    yield "response.output_item.done", {"output_index": 0, "item": item}
    yield "response.completed", {"response": _response("completed", item)}


def _response(status: str, *items: Any) -> dict[str, Any]:
    return {
        "id": "resp_0f1e2d3c4b5a69788796a5b4c3d2e1f0",
        "object": "response",
        "created_at": _CREATED,
        "status": status,
        "model": _MODEL,
        "output": list(items),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": None,
    }


def _messages_call(deltas: Sequence[str]) -> Iterator[tuple[str | None, Any]]:
    message: dict[str, Any] = {
        "id": "msg_0123456789abcdefghijklmn",
        "type": "message",
        "role": "assistant",
        "model": _MODEL,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 25, "output_tokens": 1},
    }
    block = {"type": "tool_use", "id": "toolu_0f1e2d3c4b5a69788796a5b4", "name": _TOOL, "input": {}}
    yield _named("message_start", message=message)
    yield _named("content_block_start", index=0, content_block=block)
    for delta in deltas:
        part = {"type": "input_json_delta", "partial_json": delta}
        yield _named("content_block_delta", index=0, delta=part)
    yield _named("content_block_stop", index=0)
    stop = {"stop_reason": "tool_use", "stop_sequence": None}
    yield _named("message_delta", delta=stop, usage={"output_tokens": len(deltas)})
    yield _named("message_stop")


def _named(name: str, **members: Any) -> tuple[str, Any]:
    return name, {"type": name, **members}


_CALLS: dict[str, Callable[[Sequence[str]], Iterator[tuple[str | None, Any]]]] = {
    "chat": _chat_call,
    "responses": _responses_call,
    "messages": _messages_call,
}
"""By protocol: a function from the deltas to (event name or None, JSON value or raw text) pairs."""


def _block(event: str | None, data: Any) -> bytes:
    name = "" if event is None else f"event: {event}\n"
    text = data if isinstance(data, str) else json.dumps(data, separators=(",", ":"))
    return f"{name}data: {text}\n\n".encode()
