"""What a partial value costs: the arguments of one tool call, in deltas of 20 characters.

One job for all: after each delta, the value so far is at hand. Two contenders do less, and say so: the
floor has a value only at the end, and one of ours has only what changed. Others do less without saying
so: ijson has a string only when it is whole.

Times within one table can be compared, and how they grow from one size to the next. Nothing is computed
from what was not run.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from sse_machines import MESSAGES, Receiver
from sse_machines.partial_json import PartialJSON

from .timing import Job, measure

Work = Callable[[list[str]], int]
"""Takes deltas; returns how many times a partial value was at hand."""

OURS = "sse_machines, value"
OURS_CHANGES = "sse_machines, changes"
FLOOR = "floor (loads at the end)"
SIZES = (64 * 1024, 256 * 1024, 1024 * 1024)
DELTA = 20
"""Characters of a delta, as models send them."""
CHUNK = 1400
"""Bytes that the stream comes in."""
PATIENCE = 20.0
"""Seconds that a contender may be expected to take at a size; beyond, it is not run."""

_QUICK = 1.0
"""Seconds beyond which one run is enough."""


class Deltas(NamedTuple):
    """A text, as what `measure` asks for."""

    blocks: list[str]

    def chunks(self, _size: int) -> list[str]:
        """All deltas; they are what a contender is given."""
        return self.blocks


def arguments(shape: str, size: int) -> str:
    """Make the arguments of a tool call, about ``size`` characters of JSON."""
    return json.dumps(SHAPES[shape](size))


def _words(size: int) -> dict[str, Any]:
    return {"path": "notes/machines.txt", "content": "a machine follows its events " * (size // 29)}


def _code(size: int) -> dict[str, Any]:
    line = '    return "\\t".join(row)  # \u00e9\n'
    return {"path": "src/rows.py", "content": line * (size // 40)}


def _edits(size: int) -> dict[str, Any]:
    numbers = range(size // 56)
    return {"edits": [{"line": n, "text": f"word {n}", "keep": True, "rank": 0.5} for n in numbers]}


def _mixed(size: int) -> dict[str, Any]:
    return {**_words(size // 2), **_edits(size // 2)}


SHAPES: dict[str, Callable[[int], dict[str, Any]]] = {
    "mixed": _mixed,
    "words": _words,
    "code": _code,
    "edits": _edits,
}
"""Half a string and half small objects; one long string; one with many escapes; small objects."""


def cut(text: str) -> list[str]:
    """The deltas of a text."""
    return [text[start : start + DELTA] for start in range(0, len(text), DELTA)]


def contenders() -> dict[str, Work | None]:
    """Contenders that have partial values; None for one that is not installed."""
    return {
        OURS: _values,
        OURS_CHANGES: _changes,
        FLOOR: _floor,
        "jiter": _if_installed(_jiter),
        "partial-json-parser": _if_installed(_partial_json_parser),
        "jsonriver": _if_installed(_jsonriver),
        "ijson, C": _if_installed(_ijson),
    }


def _if_installed(make: Callable[[], Work]) -> Work | None:
    try:
        return make()
    except (ImportError, AttributeError):
        return None


def _count(values: Iterator[Any]) -> int:
    """How many values there were; each is let go before the next one."""
    return sum(1 for _ in values)


def _values(deltas: list[str]) -> int:
    partial = PartialJSON()
    count = 0
    for delta in deltas:
        partial.feed(delta)
        # A look at the value is what is measured.
        count += partial.value is not None
    return count


def _changes(deltas: list[str]) -> int:
    partial = PartialJSON()
    for delta in deltas:
        partial.feed(delta)
    return len(deltas)


def _floor(deltas: list[str]) -> int:
    json.loads("".join(deltas))
    return len(deltas)


def _jiter() -> Work:
    """The whole buffer again after each delta, as the SDKs of both vendors do."""
    from_json = import_module("jiter").from_json

    def values(deltas: list[str]) -> Iterator[Any]:
        buffer = b""
        for delta in deltas:
            buffer += delta.encode()
            yield from_json(buffer, partial_mode="trailing-strings")

    return lambda deltas: _count(values(deltas))


def _partial_json_parser() -> Work:
    loads = import_module("partial_json_parser").loads

    def values(deltas: list[str]) -> Iterator[Any]:
        text = ""
        for delta in deltas:
            text += delta
            yield loads(text)

    return lambda deltas: _count(values(deltas))


def _jsonriver() -> Work:
    parse = import_module("jsonriver").parse

    async def stream(deltas: list[str]) -> AsyncIterator[str]:
        for delta in deltas:
            yield delta

    async def read(deltas: list[str]) -> None:
        async for _ in parse(stream(deltas)):
            pass

    def work(deltas: list[str]) -> int:
        asyncio.run(read(deltas))
        # It gives no value where a delta changed none.
        return len(deltas)

    return work


def _ijson() -> Work:
    backend = import_module("ijson.backends.yajl2_c")
    new_builder = import_module("ijson").ObjectBuilder

    def work(deltas: list[str]) -> int:
        builder = new_builder()
        events: list[tuple[str, Any]] = []
        parser = backend.basic_parse_coro(_Collector(events), use_float=True)
        count = 0
        for delta in deltas:
            parser.send(delta.encode())
            for event in events:
                builder.event(*event)
            events.clear()
            count += builder.value is not None
        return count

    return work


class _Collector:
    """A coroutine to the eyes of ijson, which sends it what it found."""

    def __init__(self, found: list[Any]) -> None:
        self.send = found.append


def receive() -> dict[str, Callable[[list[bytes]], int]]:
    """Receive a stream with a tool call, without and with its partial value after each delta."""
    return {
        "receive": _receive,
        "receive + changes": _receive_changes,
        "receive + value": _receive_values,
    }


def _events(chunks: list[bytes]) -> Iterator[Any]:
    receiver = Receiver(MESSAGES)
    for chunk in chunks:
        receiver.receive_data(chunk)
        event = receiver.next_event()
        while event is not None:
            yield event
            event = receiver.next_event()


def _receive(chunks: list[bytes]) -> int:
    return _count(_events(chunks))


def _receive_changes(chunks: list[bytes]) -> int:
    partial = PartialJSON()
    count = 0
    for event in _events(chunks):
        count += 1
        if event.type == "content_block_delta":
            partial.feed(event.delta["partial_json"])
    return count


def _receive_values(chunks: list[bytes]) -> int:
    partial = PartialJSON()
    count = 0
    for event in _events(chunks):
        count += 1
        if event.type == "content_block_delta":
            partial.feed(event.delta["partial_json"])
            # A look at the value is what is measured.
            count += partial.value is None
    return count


class ToolCall(NamedTuple):
    """A Messages stream with one tool call."""

    blocks: list[bytes]

    def chunks(self, size: int) -> list[bytes]:
        """The bytes in pieces of one size."""
        body = b"".join(self.blocks)
        return [body[start : start + size] for start in range(0, len(body), size)]


def tool_call(text: str) -> ToolCall:
    """Make a Messages stream whose one tool call has these arguments."""
    payloads: list[dict[str, Any]] = [
        {"type": "message_start", "message": _MESSAGE},
        {"type": "content_block_start", "index": 0, "content_block": _TOOL_USE},
        *(
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "input_json_delta", "partial_json": delta},
            }
            for delta in cut(text)
        ),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": _STOP, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]
    return ToolCall(
        [f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in payloads]
    )


_MESSAGE: dict[str, Any] = {
    "id": "msg_0123456789abcdefghijklmn",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-5",
    "content": [],
    "stop_reason": None,
    "stop_sequence": None,
    "usage": {"input_tokens": 25, "output_tokens": 1},
}
_TOOL_USE: dict[str, Any] = {"type": "tool_use", "id": "toolu_01", "name": "edit", "input": {}}
_STOP = {"stop_reason": "tool_use", "stop_sequence": None}


def print_partial(
    sizes: Sequence[int] = SIZES, *, rounds: int = 3, shapes: Sequence[str] = tuple(SHAPES)
) -> None:
    """Measure and print both tables, for each shape of the arguments.

    Args:
        sizes: Characters of the arguments, from small to large.
        rounds: The fastest one counts; those that take over a second run once.
        shapes: Keys of `SHAPES`.
    """
    for shape in shapes:
        texts = [arguments(shape, size) for size in sizes]
        _print_growth(shape, sizes, _rows(texts, rounds))
    print(f"\nreceive a Messages stream with a tool call, {CHUNK:,} B chunks")
    print(f"us per event (ratio to receive); arguments of {sizes[-1]:,} characters")
    print("".join([f"{'':14}", *(f"{name:>24}" for name in receive())]))
    for shape in shapes:
        _print_receive(shape, arguments(shape, sizes[-1]), rounds)


def _rows(texts: list[str], rounds: int) -> list[dict[str, float | None]]:
    """Seconds by contender, for each text; None for what was not run."""
    rows: list[dict[str, float | None]] = []
    jobs = {name: work for name, work in contenders().items() if work is not None}
    for before, text in zip(["", *texts], texts, strict=False):
        if rows:
            jobs = _promising(jobs, rows[-1], len(text) / len(before))
        found = _seconds(jobs, text, rounds)
        rows.append({name: found.get(name) for name in contenders()})
    return rows


def _promising(
    jobs: Mapping[str, Work], before: Mapping[str, float | None], growth: float
) -> dict[str, Work]:
    """Leave out what would be too slow if its cost is quadratic."""
    return {name: work for name, work in jobs.items() if (before[name] or 0) * growth**2 <= PATIENCE}


def _seconds(jobs: Mapping[str, Work], text: str, rounds: int) -> dict[str, float]:
    deltas = Deltas(cut(text))
    first = measure({name: Job(work, deltas) for name, work in jobs.items()}, 0, 1)
    scale = len(deltas.blocks) / 1e6
    quick = [name for name in first if first[name] * scale <= _QUICK]
    again = measure({name: Job(jobs[name], deltas) for name in quick}, 0, rounds - 1)
    return {name: min(first[name], again.get(name, first[name])) * scale for name in first}


def _print_growth(shape: str, sizes: Sequence[int], rows: list[dict[str, float | None]]) -> None:
    print(f"\npartial value after each {DELTA}-character delta: {shape}")
    print("seconds (times the size before)")
    print("".join([f"{'':26}", *(f"{f'{size:,}':>18}" for size in sizes)]))
    installed = contenders()
    for name in rows[0]:
        if installed[name] is None:
            cells = ["not installed"] * len(rows)
        else:
            seconds = [row[name] for row in rows]
            cells = [_cell(before, now) for before, now in zip([None, *seconds], seconds, strict=False)]
        print("".join([f"{name:26}", *(f"{cell:>18}" for cell in cells)]))


def _cell(before: float | None, now: float | None) -> str:
    if now is None:
        return "not run"
    return f"{now:.4f}" if not before else f"{now:.4f} ({now / before:.1f})"


def _print_receive(shape: str, text: str, rounds: int) -> None:
    stream = tool_call(text)
    row = measure({name: Job(work, stream) for name, work in receive().items()}, CHUNK, rounds)
    cells = [f"{taken:.2f} ({taken / row['receive']:.2f})" for taken in row.values()]
    print("".join([f"{shape:14}", *(f"{cell:>24}" for cell in cells)]))
