"""What the accumulators of all protocols share: growing texts, calls, limits, a receiver's own one."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

import sse_machines
from benchmarks.steps import Counter, rewritten
from sse_machines import (
    CHAT,
    MESSAGES,
    RESPONSES,
    Accumulator,
    AnswerTooLarge,
    EndOfStream,
    FrameTooLarge,
    Limits,
    LocalProtocolError,
    NotAnEventStream,
    Outcome,
    Receiver,
    RemoteProtocolError,
    StreamTruncated,
    ToolCall,
    _accumulator,
)
from sse_machines._accumulator import ByIndex, Text, length, plain, weight
from sse_machines._protocol import Protocol
from sse_machines.chat import ChatCompletionChunk
from tests import wire
from tests.chat import wire as chat_wire

CHAT_ANSWER = chat_wire.role() + chat_wire.text("Hel") + chat_wire.text("lo") + chat_wire.finish()
ANSWERS: list[tuple[Protocol[Any, Any], bytes]] = [
    (CHAT, CHAT_ANSWER + chat_wire.DONE),
    (RESPONSES, (Path(sse_machines.__file__).parent / "samples" / "responses.sse").read_bytes()),
    (MESSAGES, wire.ANSWER),
]
NAMES = [protocol.name for protocol, _ in ANSWERS]
every_answer = pytest.mark.parametrize(("protocol", "stream"), ANSWERS, ids=NAMES)


def call(*pieces: str, type: str = "function") -> ToolCall:
    made = ToolCall(type)
    for piece in pieces:
        made.text.add(piece)
    return made


# --- texts


@given(st.lists(st.tuples(st.text(max_size=5), st.booleans()), max_size=30))
def test_a_text_is_its_pieces_whenever_it_is_read(pieces: list[tuple[str, bool]]) -> None:
    text, known, seen = Text(), "", 0
    for piece, read in pieces:
        text.add(piece)
        known += piece
        assert text.length == len(known)
        if read:
            assert text.since(seen) == known[seen:]
            seen = len(known)
            assert str(text) == known
    assert text.since(0) == known
    assert text.since(seen) == known[seen:]


@given(st.lists(st.text(max_size=4), min_size=1, max_size=20), st.data())
def test_what_is_new_in_a_text_is_what_stands_behind_a_position(
    pieces: list[str], data: st.DataObject
) -> None:
    text = Text("be")
    for piece in pieces:
        text.add(piece)
    known = "be" + "".join(pieces)
    position = data.draw(st.integers(0, len(known)))
    assert text.since(position) == known[position:]
    assert str(text) == known


def test_a_text_of_very_many_pieces_keeps_few_of_them_apart() -> None:
    text = Text()
    for _ in range(5000):
        text.add("ab")
    assert len(text._pieces) <= 1024
    assert str(text) == "ab" * 5000
    assert text.length == 10_000


def test_a_text_costs_what_it_is_long() -> None:
    source = inspect.getsource(_accumulator)

    def steps(pieces: int, source: str) -> int:
        counter = Counter()
        text: Any = vars(rewritten(source, counter))["Text"]()
        counter.total, seen = 0, 0
        for _ in range(pieces):
            text.add("twenty characters, ok")
            # Somebody who is interested in what is new, and in the whole at the end.
            seen += len(text.since(seen))
        assert len(str(text)) == seen == text.length
        return counter.total

    wasteful = source.replace("new: list[str] = []", "new: list[str] = []; str(self)")
    assert wasteful != source
    assert steps(12_000, source) <= 4.4 * steps(3_000, source)
    assert steps(1_200, wasteful) > 8 * steps(300, wasteful)


def test_a_character_cut_into_its_surrogates_is_whole_again() -> None:
    text = Text()
    for piece in ("a\ud83d", "\ude00!", "\udc00", "\ud800"):
        text.add(piece)
    assert str(text) == "a😀!\udc00\ud800"
    assert str(text) == "a😀!\udc00\ud800"
    assert text.since(2) == "\ude00!\udc00\ud800"


def test_replacing_a_text_by_itself_changes_nothing() -> None:
    text = Text()
    text.add("\ud83d")
    text.replace("\ud83d")
    assert text.replaced == 0
    text.replace("other")
    assert (str(text), text.length, text.replaced) == ("other", 5, 1)
    text.add("s")
    assert str(text) == "others"


def test_the_form_of_a_text_in_a_log_is_short() -> None:
    assert repr(Text("x" * 5000)) == "<Text of 5000 characters>"


# --- calls


def test_a_call_is_incomplete_until_the_server_says_that_it_is_whole() -> None:
    made = call('{"a":', "1}")
    assert (made.arguments, made.complete, made.input) == ('{"a":1}', False, None)
    made.close()
    assert (made.complete, made.input) == (True, {"a": 1})
    made.reopen()
    assert (made.complete, made.input) == (False, None)


@pytest.mark.parametrize("arguments", ['{"a": "b', '{"a": }', "{} {}", "nothing", '{"a": NaN}'])
def test_arguments_that_are_no_json_are_never_repaired(arguments: str) -> None:
    made = call(arguments)
    made.close()
    assert (made.arguments, made.complete, made.input) == (arguments, False, None)


@pytest.mark.parametrize("arguments", ["", "  \n"])
def test_no_arguments_are_an_empty_object_once_that_is_sure(arguments: str) -> None:
    made = call(arguments)
    assert made.input is None
    made.close(sure=False)
    assert not made.complete
    assert made.input is None
    made.close()
    assert made.complete
    assert made.input == {}


@pytest.mark.parametrize("kind", ["custom", "custom_tool_call"])
def test_the_input_of_a_custom_tool_is_its_text(kind: str) -> None:
    made = call("print(", "1)", type=kind)
    assert made.input is None
    made.close()
    assert made.input == "print(1)"
    assert call(type=kind).arguments == ""


def test_an_input_is_a_copy() -> None:
    made = call('{"a": [1]}')
    made.close()
    made.input["a"].append(2)
    assert made.input == {"a": [1]}


def test_an_input_follows_its_text() -> None:
    made = call('{"a": 1}')
    made.close()
    assert made.input == {"a": 1}
    made.text.add(" ")
    assert made.input == {"a": 1}
    made.text.replace('{"a": 2}')
    assert made.input == {"a": 2}
    made.text.replace('{"b": 2}')
    assert made.input == {"b": 2}


def test_a_partial_input_grows_with_the_text_and_is_only_fed_what_is_new() -> None:
    made = call('{"path": "/et')
    reader = made.partial_input
    assert reader.value == {"path": "/et"}
    made.text.add("c/")
    assert reader.value == {"path": "/et"}
    assert made.partial_input is reader
    assert reader.value == {"path": "/etc/"}
    assert made.arguments == '{"path": "/etc/'
    made.text.add('x"}')
    assert made.partial_input.value == {"path": "/etc/x"}
    assert reader.complete
    assert reader.offset == len(made.arguments)


def test_nobody_who_does_not_ask_pays_for_a_partial_input() -> None:
    made = call('{"path": "/et')
    made.close()
    assert made.input is None
    assert made._partial is None


def test_a_partial_input_begins_again_where_the_server_corrects_itself() -> None:
    made = call('{"a": 1')
    first = made.partial_input
    made.text.replace('{"b": 2}')
    assert made.partial_input is not first
    assert made.partial_input.value == {"b": 2}
    made.text.replace("")
    assert not made.partial_input.started


def test_the_form_of_a_call_in_a_log_hides_its_arguments() -> None:
    made = call('{"secret": 1}')
    made.name, made.id = "f", "call_1"
    assert repr(made) == "<ToolCall f call_1: 13 characters, incomplete>"
    made.close()
    assert repr(made) == "<ToolCall f call_1: 13 characters, complete>"


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_a_copy_of_a_call_goes_on_alone(copied: Any) -> None:
    made = call('{"a": "', "b")
    empty = call()
    assert made.partial_input.value == {"a": "b"}
    empty.close()
    assert not made.complete
    twin, other = copied((made, empty))
    made.text.add("x")
    twin.text.add('c"}')
    twin.close()
    assert twin.partial_input.value == twin.input == {"a": "bc"}
    assert made.partial_input.value == {"a": "bx"}
    assert other.input == {}


# --- JSON that grows


def test_plain_json_of_what_has_grown() -> None:
    grown = {"a": [Text("x"), {"b": ByIndex({2: "c", 0: Text("d"), (1, "z"): "e", (1, "a"): "f"})}]}
    given = [1]
    assert plain({**grown, "n": given}) == {"a": ["x", {"b": ["d", "e", "f", "c"]}], "n": [1]}
    assert plain({"n": given})["n"] is not given


def test_the_length_of_a_text_of_either_kind() -> None:
    assert length("abc") == length(Text("abc")) == 3


def test_what_json_weighs() -> None:
    assert weight(None) == weight(1) == 64
    assert weight("abc") == 67
    assert weight({"a": "b", "c": [1, "d"]}) == 64 + 65 + 64 + 64 + 65


# --- accumulators


def test_nothing_is_known_of_a_stream_that_has_not_told_its_protocol() -> None:
    receiver = Receiver.detecting(accumulate=True)
    receiver.receive_data(b": hello\n\n")
    assert len(list(receiver)) == 1
    nothing = receiver.accumulator
    assert type(nothing) is Accumulator
    assert nothing.snapshot() == {}
    assert nothing.text == nothing.reasoning == nothing.refusal == ""
    assert nothing.tool_calls == ()
    assert (nothing.finish_reason, nothing.usage, nothing.error) == (None, None, None)
    assert (nothing.text_length, nothing.reasoning_length, nothing.arguments_length) == (0, 0, 0)
    assert not nothing.output_started
    assert not nothing.usage_final
    assert nothing.outcome is Outcome.OPEN


@every_answer
def test_an_accumulator_of_its_own_and_that_of_a_receiver_hold_the_same(
    protocol: Protocol[Any, Any], stream: bytes
) -> None:
    own = protocol.accumulator()
    receiver: Receiver[Any] = Receiver(protocol, accumulate=True)
    for event in wire.drain(receiver, stream):
        own.apply(event)
        kept = receiver.accumulator
        assert kept.snapshot() == own.snapshot()
        assert kept.text == own.text
    assert own.outcome is receiver.outcome is Outcome.COMPLETED
    assert own.text
    assert own.usage_final is (protocol is not CHAT)


@every_answer
def test_a_receiver_that_detects_has_the_accumulator_of_the_protocol(
    protocol: Protocol[Any, Any], stream: bytes
) -> None:
    receiver = Receiver.detecting(accumulate=True)
    list(wire.drain(receiver, stream))
    assert type(receiver.accumulator) is type(protocol.accumulator())
    assert receiver.accumulator.text


@every_answer
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_a_copy_at_any_moment_goes_on_alone(
    protocol: Protocol[Any, Any], stream: bytes, copied: Any
) -> None:
    whole = Receiver(protocol, accumulate=True)
    list(wire.drain(whole, stream))
    for cut in range(0, len(stream), 97):
        first = Receiver(protocol, accumulate=True)
        first.receive_data(stream[:cut])
        list(first)
        second = copied(first)
        before = first.accumulator.snapshot()
        list(wire.drain(second, stream[cut:]))
        assert second.accumulator.snapshot() == whole.accumulator.snapshot()
        assert second.accumulator.outcome is Outcome.COMPLETED
        assert (first.accumulator.snapshot()) == before


def test_a_receiver_that_was_not_asked_keeps_nothing() -> None:
    receiver, events = wire.receive(wire.ANSWER[:300])
    with pytest.raises(LocalProtocolError, match="not asked to accumulate"):
        _ = receiver.accumulator
    assert isinstance(events[-1], StreamTruncated)
    assert events[-1].accumulator is None


@pytest.mark.parametrize(
    ("stream", "limits", "error", "outcome"),
    [
        (wire.start() + wire.text(0, "par"), Limits(), StreamTruncated, Outcome.TRUNCATED),
        (
            wire.start() + wire.text(0, "par") + wire.text(0, "x" * 999),
            Limits(max_event_size=500),
            FrameTooLarge,
            Outcome.LIMIT,
        ),
        (
            wire.start() + wire.text(0, "par") + wire.start(id="msg_2"),
            Limits(),
            RemoteProtocolError,
            Outcome.PROTOCOL_ERROR,
        ),
        (b"<html>", Limits(), NotAnEventStream, Outcome.NOT_SSE),
    ],
    ids=["cut", "too large", "spliced", "no event stream"],
)
def test_every_fatal_error_carries_the_answer_so_far(
    stream: bytes, limits: Limits, error: type[RemoteProtocolError], outcome: Outcome
) -> None:
    receiver, events = wire.receive(stream, limits=limits, accumulate=True)
    raised = events[-1]
    assert type(raised) is error
    answer: Any = receiver.accumulator
    assert raised.accumulator is answer
    assert answer.outcome is outcome is receiver.outcome
    assert answer.text == ("" if error is NotAnEventStream else "par")
    twin = pickle.loads(pickle.dumps(raised))
    assert twin.accumulator.snapshot() == answer.snapshot()


def test_a_strict_receiver_carries_it_too() -> None:
    stream = wire.start() + wire.block_start(0, text="") + wire.text(0, "par") + wire.text(3, "x")
    _, events = wire.receive(stream, accumulate=True, strict=True)
    raised = events[-1]
    assert isinstance(raised, RemoteProtocolError)
    assert raised.accumulator.text == "par"


def test_what_was_dropped_is_no_part_of_the_answer() -> None:
    receiver, events = wire.receive(wire.ANSWER + wire.text(1, "late"), accumulate=True)
    assert "event_after_stop" in wire.codes(events)
    assert "late" not in receiver.accumulator.text


def test_an_end_that_no_event_tells() -> None:
    accumulator = MESSAGES.accumulator()
    outcomes = []
    for outcome in (Outcome.CANCELLED, Outcome.STALLED):
        accumulator.end(outcome)
        outcomes.append(accumulator.outcome)
    accumulator.apply(EndOfStream(outcome=Outcome.COMPLETED))
    assert [*outcomes, accumulator.outcome] == [
        Outcome.CANCELLED,
        Outcome.CANCELLED,
        Outcome.COMPLETED,
    ]


def test_usage_is_a_copy() -> None:
    receiver, _ = wire.receive(wire.ANSWER, accumulate=True)
    usage = receiver.accumulator.usage
    assert usage == {"input_tokens": 5, "output_tokens": 3}
    usage.clear()
    assert receiver.accumulator.usage == {"input_tokens": 5, "output_tokens": 3}


# --- limits


@every_answer
def test_an_answer_over_its_limit_is_refused_where_it_goes_on(
    protocol: Protocol[Any, Any], stream: bytes
) -> None:
    receiver, events = wire.receive(
        stream, protocol=protocol, accumulate=True, limits=Limits(max_answer_size=10)
    )
    raised = events[-1]
    assert type(raised) is AnswerTooLarge
    assert (raised.code, raised.limit, raised.protocol) == ("answer_too_large", 10, protocol.name)
    assert raised.state is not None
    assert raised.event is not None
    assert "larger than 10 bytes" in raised.message
    assert receiver.outcome is raised.accumulator.outcome is Outcome.LIMIT
    assert raised.accumulator is receiver.accumulator
    with pytest.raises(AnswerTooLarge) as again:
        receiver.next_event()
    assert again.value is raised


@every_answer
def test_a_limit_that_is_just_enough(protocol: Protocol[Any, Any], stream: bytes) -> None:
    def outcome(size: int | None) -> Outcome:
        limits = Limits(max_answer_size=size)
        return wire.receive(stream, protocol=protocol, accumulate=True, limits=limits)[0].outcome

    enough = next(size for size in range(0, 100_000, 8) if outcome(size) is Outcome.COMPLETED)
    assert 1000 < enough < 30_000
    assert outcome(enough // 2) is Outcome.LIMIT
    assert outcome(None) is Outcome.COMPLETED


def test_an_accumulator_alone_refuses_and_stays() -> None:
    accumulator = CHAT.accumulator(max_size=2000)
    events = wire.receive(CHAT_ANSWER + chat_wire.text("x" * 3000) * 3, protocol=CHAT)[1]
    *taken, refused = [event for event in events if isinstance(event, ChatCompletionChunk)][:6]
    for event in taken:
        accumulator.apply(event)
    with pytest.raises(AnswerTooLarge):
        accumulator.apply(refused)
    held = json.dumps(accumulator.snapshot())
    with pytest.raises(AnswerTooLarge):
        accumulator.apply(events[1])
    assert json.dumps(accumulator.snapshot()) == held
