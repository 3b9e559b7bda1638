"""The shortcut for repetitions changes nothing: with it and without it, all comes out the same."""

from __future__ import annotations

import contextlib
import json
import pickle
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, strategies as st

from sse_machines import CHAT, MESSAGES, RESPONSES, ProtocolError, Receiver
from sse_machines._protocol import Protocol
from sse_machines._template import Model, Template
from tests import broken, wire
from tests.chat import wire as chat
from tests.responses import wire as responses
from tests.test_samples import EXPECTED, read

PIECES = [
    "a",
    " b",
    "\n",
    '"',
    "\\",
    "你",
    "🌍",
    "\ud83d",
    "\u2028",
    "",
    "x" * 30,
    '"content":"',
    "}",
    "0",
]


@contextlib.contextmanager
def without_it(protocol: Protocol[Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setattr(Protocol, "__setattr__", object.__setattr__)
        patch.setattr(protocol, "repeat", lambda *_: None)
        yield


def events_of(protocol: Protocol[Any], stream: bytes, **options: Any) -> list[Any]:
    events = broken.comparable(wire.receive(stream, protocol=protocol, **options)[1])
    for event in events:
        if not isinstance(event, dict):
            # What is left to be looked up has to be there, too.
            repr(event)
    return events


def same(protocol: Protocol[Any], stream: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    for strict in (False, True):
        shortened = events_of(protocol, stream, strict=strict)
        with without_it(protocol, monkeypatch):
            assert shortened == events_of(protocol, stream, strict=strict)


def chats(pieces: list[str]) -> bytes:
    texts = b"".join(chat.text(piece) for piece in pieces)
    masked = b"".join(
        chat.chunk(chat.choice({"content": piece}), obfuscation=piece[::-1]) for piece in pieces
    )
    thoughts = b"".join(chat.delta(reasoning_content=piece) for piece in pieces)
    calls = b"".join(chat.calls(chat.call(0, piece)) for piece in pieces)
    call = chat.calls(chat.call(0, "", "call_1", "f"))
    return chat.role() + texts + masked + thoughts + call + calls + chat.finish("tool_calls") + chat.DONE


def many_responses(pieces: list[str]) -> bytes:
    texts = [responses.text(piece, logprobs=[]) for piece in pieces]
    masked = [responses.text(piece, obfuscation=piece[::-1]) for piece in pieces]
    calls = [
        responses.sub("function_call_arguments.delta", 1, "function_call_1", delta=piece)
        for piece in pieces
    ]
    frames = [responses.CREATED, responses.added(), responses.PART_ADDED, *texts, *masked]
    frames += [responses.added(1, "function_call"), *calls, responses.COMPLETED]
    return responses.numbered(*frames)


def unnumbered_responses(pieces: list[str]) -> bytes:
    return b"".join([wire.event("keepalive"), responses.CREATED, *(responses.text(p) for p in pieces)])


def many_messages(pieces: list[str]) -> bytes:
    texts = b"".join(wire.text(0, piece) for piece in pieces)
    padded = texts.replace(b"}}\n", b"}   }\n").replace(b"{", b"{ ", 3)
    tool = b"".join(wire.delta(1, "input_json_delta", partial_json=piece) for piece in pieces)
    return (
        wire.start()
        + wire.block_start(0, text="")
        + texts
        + padded
        + wire.block_stop(0)
        + wire.block_start(1, "tool_use", id="t", name="f", input={})
        + tool
        + wire.block_stop(1)
        + wire.message_delta()
        + wire.STOP
    )


STREAMS = [
    (CHAT, chats),
    (RESPONSES, many_responses),
    (RESPONSES, unnumbered_responses),
    (MESSAGES, many_messages),
]
IDS = ["chat", "responses", "unnumbered", "messages"]


@pytest.mark.parametrize(("protocol", "make"), STREAMS, ids=IDS)
def test_pieces_of_all_kinds(protocol: Any, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(7)
    for _ in range(30):
        same(protocol, make(dice.choices(PIECES, k=dice.randint(0, 12))), monkeypatch)


@pytest.mark.parametrize(("protocol", "make"), STREAMS, ids=IDS)
def test_streams_that_are_broken(protocol: Any, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(8)
    stream = make(["ab", " c", "d", " e"])
    for _ in range(400):
        same(protocol, broken.mutated(stream, dice), monkeypatch)


@pytest.mark.parametrize("name", EXPECTED)
def test_samples(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    same(EXPECTED[name][0], read(name), monkeypatch)


@pytest.mark.parametrize(("protocol", "make"), STREAMS, ids=IDS)
def test_most_events_of_a_long_text_are_repetitions(
    protocol: Any, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces = ["a"] * 100
    stream = make(pieces)
    repetitions = 0
    repeat = protocol.repeat

    def counting(*arguments: Any) -> Any:
        nonlocal repetitions
        event = repeat(*arguments)
        repetitions += event is not None
        return event

    with monkeypatch.context() as patch:
        patch.setattr(Protocol, "__setattr__", object.__setattr__)
        patch.setattr(protocol, "repeat", counting)
        _, events = wire.receive(stream, protocol=protocol)
    # A kind of delta is known from the third one on.
    assert repetitions > len(events) * 0.9 - 10


def test_nothing_is_expected_any_more_of_a_stream_that_never_repeats_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    changing = (chat.text("a") + chat.delta(reasoning_content="b")) * 10
    behind = chat.finish() + chat.text("c") + chat.delta(reasoning_content="d") + chat.DONE
    same(CHAT, chat.role() + changing + behind, monkeypatch)


def test_an_event_is_due_while_its_moves_were_the_last_ones() -> None:
    receiver = Receiver(CHAT)
    receiver.receive_data(chat.role() + chat.text("a"))
    event: Any = list(receiver)[-1]
    model, asked = Model(), ("moves",)
    model.learn(event, asked, {"index": 0}, ("content",))
    text = event.frame.data
    assert model.is_due("", asked)
    assert model.fits(text, "", asked, None)
    around = model.around(asked)
    assert around
    assert b"a".join(around).decode() == text
    for name, settled in (("other", asked), ("", ("others",)), ("", None)):
        assert not model.is_due(name, settled)
        assert not model.fits(text, name, settled, None)
    assert not Model().is_due("", None)
    assert model.around(("others",)) is None
    assert model.around(None) is None


@pytest.mark.parametrize(("protocol", "make"), STREAMS, ids=IDS)
def test_a_receiver_that_expects_a_repetition_is_a_value(protocol: Any, make: Any) -> None:
    stream = make(["a", "b", "c", "d", "e"])
    whole = broken.comparable(wire.receive(stream, protocol=protocol)[1])
    half = len(stream) // 2
    receiver = Receiver(protocol)
    receiver.receive_data(stream[:half])
    seen = list(receiver)
    for copy in (pickle.loads(pickle.dumps(receiver)), receiver):
        assert broken.comparable(seen + list(wire.drain(copy, stream[half:]))) == whole


def containers(value: Any) -> Iterator[Any]:
    """Everything in a JSON value that can be changed."""
    if isinstance(value, dict | list):
        yield value
        for inner in value.values() if isinstance(value, dict) else value:
            yield from containers(inner)


@pytest.mark.parametrize("filters", [{}, {"hate": {"filtered": False}}])
def test_nothing_of_a_vendor_is_shared(filters: Any) -> None:
    odd = [chat.chunk({**chat.choice({"content": "a"}), "content_filter_results": filters})] * 5
    odd += [chat.chunk(chat.choice({"content": "a"}), x=[1])] * 5
    call = {**chat.call(0, "{"), "extra_content": {"google": 1}}
    odd += [chat.calls(chat.call(0, "", "call_1", "f")), *[chat.calls(call)] * 5]
    texts = [wire.delta(0, "text_delta", text="a", x={"y": 1})] * 5
    for protocol, stream in (
        (CHAT, chat.role() + b"".join(odd)),
        (MESSAGES, wire.start() + wire.block_start(0, text="") + b"".join(texts)),
    ):
        events = wire.receive(stream, protocol=protocol)[1]
        parts = [part for event in events for part in containers(getattr(event, "payload", None))]
        assert len({id(part) for part in parts}) == len(parts)


@pytest.mark.parametrize(("protocol", "make"), STREAMS, ids=IDS)
def test_who_changes_an_event_changes_no_later_one(protocol: Any, make: Any) -> None:
    stream = make(["a"] * 6)
    expected = [
        json.dumps(getattr(e, "payload", None)) for e in wire.receive(stream, protocol=protocol)[1]
    ]
    receiver: Receiver[Any] = Receiver(protocol)
    receiver.receive_data(stream)
    receiver.receive_eof()
    seen = []
    with contextlib.suppress(ProtocolError):
        for event in receiver:
            seen.append(json.dumps(getattr(event, "payload", None)))
            for part in [*containers(getattr(event, "payload", None))]:
                part.clear()
    assert seen == expected[: len(seen)]
    assert len(seen) > 5


def in_a_chunk(choice: Any, **members: Any) -> str:
    return json.dumps({**chat.HEAD, "choices": [choice], **members})


ODD = [
    # Blanks where nobody writes any, and names with escapes.
    [
        in_a_chunk(chat.choice({"content": "a"}), obfuscation=x).replace('t": ', 't" \t : ')
        for x in "wxyz"
    ],
    [
        in_a_chunk(chat.choice({"content": x}), obfuscation=x).replace('"cont', '"\\u0063ont')
        for x in "wxyz"
    ],
    [
        in_a_chunk(chat.choice({"content": x}), content="b").replace('a": {"c', 'a": {"\\u0063')
        for x in "wxyz"
    ],
    # Masks in the choice, as Bedrock sends them, and members of the same name elsewhere.
    [in_a_chunk({**chat.choice({"content": x}), "obfuscation": x * 2}) for x in "wxyz"],
    [in_a_chunk({**chat.choice({"content": x}), "content": "b"}) for x in "wxyz"],
    [in_a_chunk(chat.choice({"tool_calls": [{**chat.call(0), "arguments": x}]})) for x in "wxyz"],
    [
        in_a_chunk(chat.choice({"tool_calls": [{"index": 0, "arguments": x, "function": {"x": 1}}]}))
        for x in "wxyz"
    ],
]


@pytest.mark.parametrize("texts", ODD)
def test_what_is_written_oddly_comes_out_the_same(
    texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    start = chat.role() + chat.calls(chat.call(0, "", "call_1", "f"))
    same(CHAT, start + b"".join(f"data: {text}\n\n".encode() for text in texts), monkeypatch)


@pytest.mark.parametrize("odd", ['"delta" \t : "', '"d\\u0065lta": "'])
def test_a_delta_that_is_written_oddly_comes_out_the_same(
    odd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = [responses.CREATED, responses.added(), responses.PART_ADDED]
    texts = [responses.text("a", obfuscation=mask) for mask in "wxyz"]
    stream = responses.numbered(*begin, *texts).replace(b'"delta": "', odd.encode())
    same(RESPONSES, stream, monkeypatch)


@pytest.mark.parametrize(("protocol", "make"), STREAMS, ids=IDS)
def test_events_share_nothing_that_can_be_changed(protocol: Any, make: Any) -> None:
    events = [
        event
        for event in wire.receive(make(["a"] * 6), protocol=protocol)[1]
        if hasattr(event, "payload")
    ]
    texts = [json.dumps(event.payload) for event in events]
    for event in events:
        for value in [event.payload, *event.payload.values()]:
            if isinstance(value, dict):
                value["mine"] = 1
            if isinstance(value, list):
                value.append(1)
    parts = [part for event in events for part in containers(event.payload)]
    assert len({id(part) for part in parts}) == len(parts)
    again = [
        event
        for event in wire.receive(make(["a"] * 6), protocol=protocol)[1]
        if hasattr(event, "payload")
    ]
    assert [json.dumps(event.payload) for event in again] == texts


@pytest.mark.parametrize("odd", [b"true", b"1.0", b'"1"', b"-0", b"00", b"null"])
def test_numbers_that_only_look_alike_are_no_repetitions(
    odd: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    chunk = chat.text("a").replace(b'"index": 0', b'"index": ' + odd)
    same(CHAT, chat.role() + chat.text("a") * 3 + chunk + chat.text("a"), monkeypatch)
    delta = wire.text(0, "a").replace(b'"index": 0', b'"index": ' + odd)
    same(MESSAGES, wire.start() + wire.block_start(0) + wire.text(0, "a") * 3 + delta, monkeypatch)
    frames = [responses.CREATED, responses.added(), responses.PART_ADDED, *[responses.text("a")] * 4]
    stream = responses.numbered(*frames)
    for number in (b'"sequence_number": 6', b'"output_index": 0'):
        name = number.partition(b":")[0]
        before, _, after = stream.rpartition(number)
        same(RESPONSES, before + name + b": " + odd + after, monkeypatch)


def test_form_is_judged_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    named = chat.event({**chat.HEAD, "choices": [chat.choice({"content": "a"})]}, "delta")
    stream = chat.role() + chat.text("a") * 4 + named * 2 + chat.text("a")
    assert wire.codes(chat.receive(stream)[1]).count("unexpected_event_name") == 2
    same(CHAT, stream, monkeypatch)
    nameless = wire.text(0, "a").partition(b"\n")[2]
    stream = wire.start() + wire.block_start(0) + wire.text(0, "a") * 3 + nameless * 3
    assert wire.codes(wire.receive(stream)[1]).count("missing_event_name") == 3
    same(MESSAGES, stream, monkeypatch)


TEXT = '{"a":1,"n":7,"t":"x","m":"y"}'


def test_a_template_reads_what_differs_in_its_holes() -> None:
    template = Template.of(TEXT, ("t", "m", "absent"), "n")
    assert template is not None
    assert template.read(TEXT, 7) == {"t": "x", "m": "y"}
    assert template.read('{"a":1,"n":8,"t":"\\u00e4\\n","m":""}', 8) == {"t": "ä\n", "m": ""}
    assert template.read(TEXT + "  ", 7) == {"t": "x", "m": "y"}


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (TEXT, 8),
        (TEXT, 77),
        (TEXT.replace("7", "77"), 7),
        (TEXT.replace('"a":1', '"a":2'), 7),
        (TEXT.replace('"x"', "null"), 7),
        (TEXT.replace('"x"', '"x\ty"'), 7),
        (TEXT.replace('"x"', '"x\\q"'), 7),
        (TEXT.replace('"y"}', '"y'), 7),
        (TEXT.replace('"y"}', '"y"]'), 7),
        (TEXT + "{", 7),
        ("", 7),
    ],
)
def test_a_template_does_not_read_another_text(text: str, number: int) -> None:
    template = Template.of(TEXT, ("t", "m"), "n")
    assert template is not None
    assert template.read(text, number) is None


def test_a_number_may_stand_behind_the_strings() -> None:
    template = Template.of('{"t":"x","n":7}', ("t",), "n")
    assert template is not None
    assert template.read('{"t":"y","n":8}', 8) == {"t": "y"}
    assert template.read('{"t":"y","n":8}', 7) is None
    assert template.read('{"t":"y","n": 8}', 8) is None


def test_a_name_inside_of_a_string_is_none() -> None:
    text = json.dumps({'"t': "x", "u": '"t":"x"'})
    assert Template.of(text, ("t",)) is None
    assert Template.of(text, ("u",)) is not None


def test_blanks_count_where_a_string_is_behind_the_last_hole() -> None:
    template = Template.of('{"t":"x","z":"a b"}', ("t",))
    assert template is not None
    assert template.read('{"t":"x","z":"ab"}', None) is None
    assert template.read('{"t":"","z":"a b"}', None) == {"t": ""}


@pytest.mark.parametrize(
    ("text", "members", "number"),
    [
        ('{"t":"x","u":{"t":"y"}}', ("t",), ""),
        ('{"t":1}', ("t",), ""),
        ('{"t":"x"}', ("t",), "n"),
        ('{"n":1,"o":{"n":2},"t":"x"}', ("t",), "n"),
        ('{"t":"x","\\u0074":"y"}', ("t",), ""),
        ('{"t" : "x","u":{"t"\t:\n"y"}}', ("t",), ""),
        ('{"t":"' + "x" * 3000 + '"}', ("t",), ""),
    ],
)
def test_texts_that_no_template_is_made_of(text: str, members: tuple[str, ...], number: str) -> None:
    assert json.loads(text)
    assert Template.of(text, members, number) is None


@given(st.dictionaries(st.text("tn\\\"':", max_size=3), st.text() | st.integers()), st.text())
def test_what_a_template_reads_is_what_a_parser_reads(value: dict[str, Any], text: str) -> None:
    value = {**value, "t": "x"}
    template = Template.of(json.dumps(value), ("t",))
    assert template is not None
    for other in (json.dumps({**value, "t": text}), text):
        found = template.read(other, None)
        if found is not None:
            assert {**value, **found} == json.loads(other)
    assert template.read(json.dumps({**value, "t": text}), None) == {"t": text}


def test_what_never_comes_again_is_not_learned_for_ever() -> None:
    stream = chat.role() + b"".join(chat.chunk(chat.choice({"content": "a"}), x=n) for n in range(40))
    receiver, _ = chat.receive(stream)
    model = receiver._memory.model
    assert isinstance(model, Model)
    assert model.patience < 0
    assert model.asked is None


def test_patience_comes_back_with_a_repetition() -> None:
    odd = [chat.chunk(chat.choice({"content": "a"}), x=n) for n in range(6)]
    receiver, events = chat.receive(chat.role() + b"".join(odd) + chat.text("a") * 4 + b"".join(odd[:1]))
    assert not any(isinstance(event, ProtocolError) for event in events[:-1])
    assert receiver._memory.model.patience > 5
