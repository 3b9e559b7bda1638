"""JSON that was made to hurt: what is accepted, what is refused, and that nothing else ever happens."""

from __future__ import annotations

import base64
import functools
import json
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import orjson
import pytest
from hypothesis import assume, given, settings, strategies as st

from sse_machines import (
    MESSAGES,
    Event,
    Frame,
    FrameReader,
    FrameTooLarge,
    ProtocolError,
    Receiver,
    Violation,
    encode_frame,
)
from sse_machines._payload import (
    MAX_DEPTH,
    Loads,
    PayloadError,
    _writer,
    dumps,
    dumps_with,
    loads,
    loads_with,
)

DATA = Path(__file__).parent / "data" / "hostile_cases.jsonl"
CASES: list[dict[str, Any]] = [json.loads(line) for line in DATA.read_text("utf-8").splitlines()]
JSON_CASES = [case for case in CASES if case["category"] == "json" and case["want"] != "too_big"]
TOO_BIG = [case for case in CASES if case["want"] == "too_big"]
ANTHROPIC = [case for case in CASES if case["category"] == "anthropic"]
PARSERS: dict[str, Loads] = {
    "own": loads,
    "orjson": loads_with(orjson.loads),
    "msgspec": loads_with(msgspec.json.decode),
}


def bytes_of(case: dict[str, Any]) -> bytes:
    """The value of ``data`` as it stands on the wire, LF between its lines."""
    if "bytes" in case:
        return base64.b64decode(case["bytes"])
    if "data" in case:
        return str(case["data"]).encode()
    recipe = case["recipe"]
    unit = recipe["unit"]
    numbered = (unit % number for number in range(recipe["count"]))
    middle = "".join(numbered) if "%06d" in unit else unit * recipe["count"]
    return f"{recipe['pre']}{middle}{recipe['post']}".encode()


def block_of(data: bytes) -> bytes:
    return b"data: " + data.replace(b"\n", b"\ndata: ") + b"\n\n"


def texts_of(case: dict[str, Any]) -> list[str]:
    return bytes_of(case).decode("utf-8", "replace").split("\x1e")


def ids(case: dict[str, Any]) -> str:
    return str(case["name"])


def test_no_case_is_missing() -> None:
    assert (len(CASES), len(JSON_CASES), len(TOO_BIG), len(ANTHROPIC)) == (150, 76, 2, 12)
    wants = {case["want"] for case in CASES}
    assert wants == {"ok", "ignore", "bad_json", "too_deep", "too_big", "bad_shape"}


@pytest.mark.parametrize("parser", PARSERS)
@pytest.mark.parametrize("case", JSON_CASES, ids=ids)
def test_json(case: dict[str, Any], parser: str) -> None:
    for text in texts_of(case):
        # Empty data is no JSON; that it is no fault either is for the receiver to know.
        if case["want"] in ("ok", "ignore") and text:
            assert PARSERS[parser](text) == json.loads(text)
        else:
            check_refused(PARSERS[parser], text, case["want"])


def test_empty_data_is_only_reported() -> None:
    events, error = receive(START + b"data:\n\n", strict=False, loads=None)
    assert error == ""
    assert [event.code for event in events if isinstance(event, Violation)] == ["empty_data"]
    assert [event.type for event in events] == ["message_start", "violation"]


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("parser", [json.loads, json.JSONDecoder().decode])
def test_constants_are_refused_with_a_parser_that_takes_them(parser: Loads, constant: str) -> None:
    with pytest.raises(PayloadError):
        loads_with(parser)(f'{{"n": {constant}}}')


def check_refused(parser: Loads, text: str, want: str) -> None:
    with pytest.raises(PayloadError) as caught:
        parser(text)
    message = str(caught.value)
    assert len(message) <= 400
    assert ("nested deeper" in message) == (want == "too_deep")


@pytest.mark.parametrize("case", JSON_CASES, ids=ids)
def test_data_comes_through_a_reader(case: dict[str, Any]) -> None:
    data = bytes_of(case)
    reader = FrameReader()
    reader.feed(block_of(data))
    (frame,) = iter(reader.next_frame, None)
    assert frame.data == data.decode("utf-8", "replace")


@pytest.mark.parametrize("case", TOO_BIG, ids=ids)
def test_too_big(case: dict[str, Any]) -> None:
    limit = 16 * 1024 * 1024
    reader = FrameReader(max_event_size=limit)
    block = block_of(bytes_of(case))
    for start in range(0, limit - 65_536, 65_536):
        reader.feed(block[start : start + 65_536])
        assert reader.next_frame() is None
    # Refused at the limit, and not after all of it has come.
    assert len(block) > limit + 1024 * 1024
    reader.feed(block[limit - 65_536 : limit + 2])
    with pytest.raises(FrameTooLarge):
        reader.next_frame()


# Threads have small stacks on musl and wherever threading.stack_size was called, and an overflow there
# ends the process, past all exception handlers.
IN_A_SMALL_THREAD = """
import sys, threading
from sse_machines import _payload
from tests import test_payload

answers = []

def run():
    for case in test_payload.CASES:
        for parse in test_payload.PARSERS.values():
            for text in test_payload.texts_of(case):
                try:
                    parse(text)
                except _payload.PayloadError:
                    pass
        answers.append(case["name"])

threading.stack_size(256 * 1024)
thread = threading.Thread(target=run)
thread.start()
thread.join()
print(len(answers))
"""


def test_all_cases_in_a_thread_with_a_small_stack() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IN_A_SMALL_THREAD],
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "150", "")


BRACKETS = st.text(st.sampled_from('[]{}"\\a:,\n'), max_size=10)


def nest(value: Any, shapes: list[bool]) -> Any:
    for is_list in shapes:
        value = [value] if is_list else {'}"[\\': value}
    return value


@given(BRACKETS, st.lists(st.booleans(), min_size=MAX_DEPTH - 3, max_size=MAX_DEPTH + 3))
@settings(max_examples=100, deadline=None)
@pytest.mark.parametrize("parser", PARSERS)
def test_depth_is_counted_outside_of_strings_only(parser: str, text: str, shapes: list[bool]) -> None:
    value = nest(text, shapes)
    written = json.dumps(value)
    if len(shapes) <= MAX_DEPTH:
        assert PARSERS[parser](written) == value
    else:
        with pytest.raises(PayloadError, match="nested deeper than 128"):
            PARSERS[parser](written)


@given(
    st.recursive(
        BRACKETS | st.integers(-9, 9), lambda inner: st.lists(inner) | st.dictionaries(BRACKETS, inner)
    )
)
@settings(max_examples=50, deadline=None)
def test_what_is_wide_is_not_deep(value: Any) -> None:
    wide = [value] * 300
    assert loads(json.dumps(wide, indent=1)) == wide


@given(st.text(st.sampled_from('[]{}"\\:, 1an\n'), max_size=400) | st.text(max_size=50))
@settings(max_examples=300, deadline=None)
@pytest.mark.parametrize("parser", PARSERS)
def test_any_text(parser: str, text: str) -> None:
    # Integers beyond 64 bits are numbers to all parsers, but floats to orjson.
    assume(re.search(r"\d{19}", text) is None)
    try:
        value = PARSERS[parser](text)
    except PayloadError:
        return
    assert value == json.loads(text)


@pytest.mark.parametrize("parser", PARSERS)
def test_white_space_around_a_value(parser: str) -> None:
    assert PARSERS[parser](' \t\r\n{"a": 1} \n') == {"a": 1}
    with pytest.raises(PayloadError):
        PARSERS[parser]("\u00a01")
    with pytest.raises(PayloadError):
        PARSERS[parser]("\ufeff1")
    with pytest.raises(PayloadError):
        PARSERS[parser](" ")
    with pytest.raises(PayloadError):
        PARSERS[parser]("")


@pytest.mark.parametrize("parser", PARSERS)
@pytest.mark.parametrize("junk", ["x", "é", "\0", "[", '"', "\\", '{"a":'])
def test_messages_stay_short(parser: str, junk: str) -> None:
    with pytest.raises(PayloadError) as caught:
        PARSERS[parser](junk * 100_000)
    # At most 200 characters of the payload, of which repr() can make four each.
    assert len(str(caught.value)) <= 900
    assert len(str(caught.value)) <= 300 or not junk.isprintable() or junk == "\\"


def test_where_a_parser_recurses_too_deep_its_text_is_read_again() -> None:
    def recurse(text: str) -> Any:
        raise RecursionError(text)

    assert loads_with(recurse)('{"a": [1]}') == {"a": [1]}
    with pytest.raises(PayloadError):
        loads_with(recurse)("{")


def test_other_errors_of_a_parser_are_its_own() -> None:
    def fail(text: str) -> Any:
        raise KeyError(text)

    with pytest.raises(KeyError):
        loads_with(fail)("1")


START = encode_frame(
    event="message_start",
    data=json.dumps(
        {
            "type": "message_start",
            "message": {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": "m",
                "content": [],
                "stop_reason": None,
                "stop_sequence": None,
                "usage": {"input_tokens": 1, "output_tokens": 1},
            },
        }
    ),
)
BLOCK = (
    b'event: content_block_start\ndata: {"type":"content_block_start","index":0,'
    b'"content_block":{"type":"text","text":""}}\n\n'
)
STOP = b'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n'
# Where in a stream a case can stand.
PLACES = {
    "first": b"",
    "started": START,
    "in a block": START + BLOCK,
    "after a block": START + BLOCK + STOP,
}


def frame_of(case: dict[str, Any]) -> bytes:
    kind = json.loads(case["data"])["type"]
    return encode_frame(event=kind if isinstance(kind, str) else None, data=case["data"])


def receive(stream: bytes, *, strict: bool, loads: Loads | None) -> tuple[list[Event], str]:
    """The events, and the code of the error that came instead of the next one."""
    receiver = Receiver(MESSAGES, strict=strict, loads=loads)
    receiver.receive_data(stream)
    events: list[Event] = []
    try:
        events += receiver
    except ProtocolError as error:
        return events, error.code
    return events, ""


@pytest.mark.parametrize("parser", [None, orjson.loads, msgspec.json.decode])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("case", ANTHROPIC, ids=ids)
def test_anthropic(case: dict[str, Any], place: str, parser: Callable[[str], Any] | None) -> None:
    stream = PLACES[place] + frame_of(case)
    events, error = receive(stream, strict=False, loads=parser)
    kinds = [event.type for event in events]
    codes = [event.code for event in events if isinstance(event, Violation)] + [error]
    strict_events, strict_error = receive(stream, strict=True, loads=parser)
    if case["want"] != "bad_shape":
        assert "malformed_event" not in (*codes, strict_error)
    elif case["name"] == "anthropic/error-without-error":
        # It ends the stream whatever its form is, so its form alone is never raised.
        assert kinds[-2:] == [event.type for event in strict_events[-2:]] == ["violation", "error"]
    else:
        assert any(codes)
        assert strict_error
        assert not any(isinstance(event, Violation) for event in strict_events)


def test_frames_stay_with_what_they_became() -> None:
    stream = START + encode_frame(event="ping", data="[" * 5000)
    events, error = receive(stream, strict=False, loads=None)
    assert error == ""
    assert [event.type for event in events] == ["message_start", "violation", "unknown"]
    assert events[-1].frame == Frame(events[-1].raw or b"", "ping", "[" * 5000)


def test_written_on_one_line_without_spaces() -> None:
    value = {"a": [1, -0.5, None, True, 'é\u2028\u2029\x85\x7f\n"\\🌍'], "b": {}, "c": ()}
    text = dumps(value)
    assert text == '{"a":[1,-0.5,null,true,"é\\u2028\\u2029\\u0085\x7f\\n\\"\\\\🌍"],"b":{},"c":[]}'
    assert loads(text) == {**value, "c": []}
    assert (dumps(0.5), dumps("a"), dumps_with(orjson.dumps)([0.5, True])) == (
        "0.5",
        '"a"',
        "[0.5,true]",
    )


def test_without_the_encoder_in_c() -> None:
    value = {"a": [1, -0.5, None, True, "é\n"], "b": {}, "c": ()}
    assert "".join(_writer(None)(value, 0)) == dumps(value)
    with pytest.raises(ValueError, match="Out of range"):
        list(_writer(None)(float("nan"), 0))


WRITERS: dict[str, Any] = {
    "own": dumps,
    "orjson": dumps_with(orjson.dumps),
    "msgspec": dumps_with(msgspec.json.encode),
    "json": dumps_with(json.dumps),
}
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner)
    ),
)


@pytest.mark.untraced
@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
@given(value=JSON_VALUES)
@settings(max_examples=40, deadline=None)
def test_every_value_comes_back(write: Any, value: Any) -> None:
    text = write(value)
    assert loads(text) == value
    assert not set("\r\n\x85\u2028\u2029") & set(text)


class Pair(tuple[Any, Any]):
    __slots__ = ()


NOT_WRITTEN: dict[str, Any] = {
    "NaN": float("nan"),
    "infinity": [float("inf")],
    "key": {"a": {1: 2}},
    "key in a list": [[{None: 1}]],
    "key in a tuple": Pair(({1: 1}, 2)),
    "set": {1},
    "bytes": b"",
    "object": object(),
    "date": date(2026, 12, 1),
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("value", NOT_WRITTEN.values(), ids=NOT_WRITTEN)
def test_what_is_not_written(write: Any, value: Any) -> None:
    with pytest.raises(PayloadError):
        write(value)


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_depth_is_the_same_in_both_directions(write: Any) -> None:
    value: Any = 1
    for _ in range(MAX_DEPTH):
        value = [value]
    assert loads(write(value)) == value
    with pytest.raises(PayloadError):
        write([value])
    with pytest.raises(PayloadError):
        write({"a": value})


def test_a_writer_that_breaks_lines() -> None:
    with pytest.raises(PayloadError):
        dumps_with(functools.partial(json.dumps, indent=1))({"a": 1})
    with pytest.raises(PayloadError):
        dumps_with(lambda _: "a\rb")({"a": 1})


def test_a_wrapped_writer_pickles() -> None:
    write = pickle.loads(pickle.dumps(dumps_with(json.dumps)))
    assert write({"a": "é"}) == '{"a": "\\u00e9"}'
