"""What a sender writes, what it refuses, and that a refused call changes nothing."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import attrs
import msgspec
import orjson
import pytest

from sse_machines import (
    CHAT,
    MESSAGES,
    RESPONSES,
    Comment,
    EndOfStream,
    Frame,
    LocalProtocolError,
    Outcome,
    Receiver,
    Sender,
    Unknown,
    Violation,
    chat,
    messages,
    responses,
)
from sse_machines._protocol import Done, Protocol
from sse_machines.messages import ContentBlockDelta, ContentBlockStart, MessageStart, Ping
from sse_machines.responses import Keepalive, OutputTextDelta

PROTOCOLS = [CHAT, RESPONSES, MESSAGES]
MESSAGE: Any = {
    "id": "msg_EXAMPLE",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-5",
    "content": [],
    "stop_reason": None,
    "stop_sequence": None,
    "usage": {"input_tokens": 9, "output_tokens": 1},
}


def begun(name: str) -> tuple[Sender[Any], Callable[[str], Any]]:
    """A sender in the middle of a text, and what makes its next event."""
    answers: dict[str, Any] = {
        "chat": chat.Answer(id="chatcmpl-1", model="m", created=1),
        "responses": responses.Answer(id="resp_1", model="m", created_at=1),
        "messages": messages.Answer(id="msg_1", model="m", input_tokens=9),
    }
    answer = answers[name]
    protocol: Protocol[Any] = {p.name: p for p in PROTOCOLS}[name]
    sender = Sender(protocol)
    part = answer.text()
    for event in (*answer.begin(), *part.begin(), *part.add("Hello")):
        sender.send(event)
    return sender, lambda text: next(part.add(text))


def standing(sender: Sender[Any]) -> str:
    """All that a sender remembers from one call to the next."""
    state = sender.__getstate__()
    memory = attrs.asdict(state["_memory"])
    # What a chunk would change is noted before it is judged, and made anew by the next one. The model is
    # a shortcut, with which everything comes out the same as without.
    for scratch in ("next_open_choices", "placed", "model"):
        memory.pop(scratch, None)
    return repr((state["_machine"], memory, state["_begun"]))


def refused(sender: Sender[Any], call: Callable[[], bytes]) -> LocalProtocolError:
    """The error of a call that is refused, and changes nothing."""
    before = standing(sender)
    with pytest.raises(LocalProtocolError) as caught:
        call()
    assert standing(sender) == before
    return caught.value


def refused_event(sender: Sender[Any], event: Any) -> LocalProtocolError:
    return refused(sender, lambda: sender.send(event))


def test_an_event_becomes_one_frame() -> None:
    sender = Sender(MESSAGES)
    start = sender.send(MessageStart(message=MESSAGE))
    payload = {"type": "message_start", "message": MESSAGE}
    assert (
        start == f"event: message_start\ndata: {json.dumps(payload, separators=(',', ':'))}\n\n".encode()
    )
    assert sender.send(Ping()) == b'event: ping\ndata: {"type":"ping"}\n\n'
    assert sender.state is messages.State.BETWEEN
    assert not sender.finished
    assert sender.legal() == ("content_block_start", "message_delta", "ping", "error")


def test_the_class_names_the_event_whatever_its_payload_says() -> None:
    frame = Sender(MESSAGES).send(Ping(payload={"type": "message_stop", "x": 1}))
    assert frame == b'event: ping\ndata: {"type":"ping","x":1}\n\n'


def test_chat_has_no_event_names_and_an_end_mark() -> None:
    sender = Sender(CHAT)
    answer = chat.Answer(id="chatcmpl-EXAMPLE", model="gpt-5.6-sol", created=0)
    wire = b"".join(sender.send(event) for event in answer.begin())
    wire += b"".join(sender.send(event) for event in answer.text().whole("我是"))
    wire += b"".join(sender.send(e) for e in answer.end(prompt_tokens=14, completion_tokens=52))
    assert b"event:" not in wire
    assert '"delta":{"content":"我是"}'.encode() in wire
    usage = b'"choices":[],"usage":{"prompt_tokens":14,"completion_tokens":52,"total_tokens":66}}\n\n'
    assert wire.endswith(usage + b"data: [DONE]\n\n")
    assert sender.outcome is Outcome.COMPLETED


def test_responses_are_numbered() -> None:
    sender = Sender(RESPONSES)
    answer = responses.Answer(id="resp_1", model="m", created_at=1)
    created, in_progress = (sender.send(event) for event in answer.begin())
    assert b'"sequence_number":0}' in created
    assert b'"sequence_number":1}' in in_progress
    assert b'"sequence_number":2}' in sender.send(Keepalive())
    given = Keepalive(payload={"sequence_number": 3})
    assert sender.send(given) == b'event: keepalive\ndata: {"type":"keepalive","sequence_number":3}\n\n'
    late = Keepalive(payload={"sequence_number": 3})
    assert refused(sender, lambda: sender.send(late)).code == "sequence_repeat"
    early = Keepalive(payload={"sequence_number": 9})
    assert refused(sender, lambda: sender.send(early)).code == "sequence_gap"
    assert b'"sequence_number":4}' in sender.send(Keepalive(payload={"sequence_number": None}))
    assert "sequence_number" not in given.payload or given.sequence_number == 3


def test_the_event_itself_is_left_alone() -> None:
    sender, more = begun("responses")
    event = more("x")
    before = copy.deepcopy(event)
    sender.send(event)
    assert event == before
    assert event.sequence_number is None


def test_a_response_goes_on_in_the_middle() -> None:
    sender = Sender(RESPONSES, starting_after=41)
    delta = OutputTextDelta(item_id="i", output_index=0, content_index=0, delta="x")
    assert b'"sequence_number":42' in sender.send(delta)
    with pytest.raises(LocalProtocolError):
        Sender(CHAT, starting_after=1)


def test_blocks_are_counted() -> None:
    sender, _ = begun("messages")
    sender.send(messages.ContentBlockStop(index=0))
    gap = ContentBlockStart(index=2, content_block={"type": "text", "text": ""})
    assert refused(sender, lambda: sender.send(gap)).code == "block_index_gap"
    again = ContentBlockStart(index=0, content_block={"type": "text", "text": ""})
    assert refused(sender, lambda: sender.send(again)).code == "block_index_reused"
    sender.send(ContentBlockStart(index=1, content_block={"type": "text", "text": ""}))


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda p: p.name)
def test_the_seeds_error_forms(protocol: Protocol[Any]) -> None:
    sender, _ = begun(protocol.name)
    frame = sender.interrupt("Boom", type="t", code="c").decode()
    assert frame.startswith(
        {
            "chat": 'data: {"error":{"message":"Boom","type":"t","param":null,"code":"c"}}\n\n',
            "responses": 'event: response.failed\ndata: {"type":"response.failed","response":{"id":"',
            "messages": 'event: error\ndata: {"type":"error","error":{"type":"t","message":"Boom"}}\n\n',
        }[protocol.name]
    )
    assert sender.finished
    assert sender.outcome is Outcome.FAILED
    error = refused(sender, sender.interrupt)
    assert error.code == "finished"


def test_the_interrupted_claude_stream() -> None:
    sender, _ = begun("messages")
    assert sender.interrupt() == (
        b"event: error\n"
        b'data: {"type":"error","error":{"type":"api_error",'
        b'"message":"Response stream interrupted, please retry"}}\n\n'
    )
    assert sender.legal() == ()


def test_an_interrupted_response_keeps_its_id_and_numbers() -> None:
    sender, _ = begun("responses")
    receiver = Receiver(RESPONSES)
    receiver.receive_data(sender.interrupt(code="rate_limit_exceeded"))
    failed = next(event for event in receiver if isinstance(event, responses.Failed))
    assert failed.sequence_number == 5
    assert failed.response["id"] == "resp_1"
    assert failed.response["status"] == "failed"
    assert failed.response["error"] == {
        "code": "rate_limit_exceeded",
        "message": "Response stream interrupted, please retry",
    }


def test_an_interrupted_response_is_as_it_was_told() -> None:
    created = next(responses.Answer(id="resp_1", model="m", created_at=1).begin())
    assert isinstance(created, responses.Created)
    sender = Sender(RESPONSES)
    sender.send(created)
    created.response["id"] = "another"
    assert b'"id":"resp_1"' in sender.interrupt()


def test_a_response_that_fails_before_it_begins() -> None:
    sender = Sender(RESPONSES)
    assert sender.interrupt("Boom") == (
        b'event: error\ndata: {"type":"error","error":{"type":"server_error","code":"server_error",'
        b'"message":"Boom","param":null},"sequence_number":0}\n\n'
    )
    assert sender.outcome is Outcome.FAILED


def test_a_response_without_numbers_is_interrupted_without_one() -> None:
    sender = Sender(RESPONSES)
    receiver = Receiver(RESPONSES)
    receiver.receive_data(
        b'event: response.created\ndata: {"type":"response.created","response":{"id":"r"}}\n\n'
    )
    assert [sender.forward(event) != b"" for event in receiver] == [False, False, True]
    failed = sender.interrupt("Boom")
    assert (
        b'"response":{"id":"r","status":"failed","error":{"code":"server_error","message":"Boom"}}}'
        in failed
    )


def test_a_mark_behind_an_error_is_the_callers_choice() -> None:
    sender, more = begun("chat")
    sender.interrupt()
    assert sender.legal() == ("[DONE]",)
    assert sender.send(Done()) == b"data: [DONE]\n\n"
    assert sender.outcome is Outcome.FAILED
    assert refused(sender, lambda: sender.send(more("x"))).code == "event_after_error"


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda p: p.name)
def test_a_refused_event_can_be_followed_by_the_right_one(protocol: Protocol[Any]) -> None:
    sender, more = begun(protocol.name)
    wrong: Any = {
        "chat": Done(),
        "responses": next(responses.Answer(id="r", model="m", created_at=1).begin()),
        "messages": messages.MessageStop(),
    }[protocol.name]
    error = refused(sender, lambda: sender.send(wrong))
    code, state = {
        "chat": ("done_without_finish_reason", chat.State.STREAMING),
        "responses": ("second_response", responses.State.OPEN),
        "messages": ("missing_message_delta", messages.State.IN_BLOCK),
    }[protocol.name]
    assert error.code == code
    assert error.state is state
    assert error.event is wrong
    assert error.protocol == protocol.name
    assert error.legal == sender.legal()
    assert str(error).startswith(f"{code}: ")
    assert state.name in str(error)
    assert f"legal: {', '.join(error.legal)}" in str(error)
    assert sender.send(more(" world"))
    assert sender.interrupt()


def test_the_first_event_of_another_protocol() -> None:
    sender = Sender(CHAT)
    stray = Unknown(name="message_start", payload={"type": "message_start", "message": {}})
    assert refused(sender, lambda: sender.send(stray)).code == "wrong_protocol"
    foreign: Any = Ping()
    assert refused(sender, lambda: sender.send(foreign)).code == "foreign_event"
    for about in (Violation(code="c", message="m"), EndOfStream(outcome=Outcome.COMPLETED)):
        assert refused_event(sender, about).code == "foreign_event"


def _received(protocol: Protocol[Any]) -> Any:
    sender, more = begun(protocol.name)
    receiver = Receiver(protocol)
    receiver.receive_data(sender.send(more("x")))
    return [event for event in receiver if not isinstance(event, Violation)][-1]


def test_an_event_of_another_protocol_is_not_forwarded() -> None:
    sender = Sender(MESSAGES)
    event = _received(CHAT)
    assert refused(sender, lambda: sender.forward(event)).code == "foreign_event"


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)
BAD_VALUES = {
    "a lone surrogate": "\ud800",
    "NaN": float("nan"),
    "infinity": float("-inf"),
    "a number for a key": {1: 2},
    "None for a key": [{"a": {None: 2}}],
    "a key with a lone surrogate": {"\udfff": 1},
    "too deep": nested(127),
    "a circle": CIRCLE,
    "a set": {1},
    "bytes": b"x",
    "a tuple with NaN": (float("nan"),),
}
WRITERS: dict[str, Any] = {"own": None, "orjson": orjson.dumps, "msgspec": msgspec.json.encode}


@pytest.mark.parametrize("value", BAD_VALUES.values(), ids=BAD_VALUES)
@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda p: p.name)
@pytest.mark.parametrize("dumps", WRITERS.values(), ids=WRITERS)
def test_what_has_no_text_is_refused(protocol: Protocol[Any], value: Any, dumps: Any) -> None:
    sender, more = begun(protocol.name)
    sender = Sender(protocol, dumps=dumps) if dumps else sender
    event = more("x")
    event.payload["extra"] = [value]
    assert refused(sender, lambda: sender.send(event)).code == "bad_payload"


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda p: p.name)
def test_what_has_no_text_is_refused_in_an_unknown_event(protocol: Protocol[Any]) -> None:
    sender, _ = begun(protocol.name)
    for value in BAD_VALUES.values():
        event = Unknown(name="x", payload={"type": "x", "extra": [value]})
        assert refused_event(sender, event).code in ("bad_payload", "bad_field")


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda p: p.name)
@pytest.mark.parametrize("text", ["a\nb", "a\rb", "\n", "a\0", "\ud800", None, 7])
def test_what_fits_on_no_line_is_refused(protocol: Protocol[Any], text: Any) -> None:
    sender, _ = begun(protocol.name)
    assert refused(sender, lambda: sender.comment(text)).code == "bad_field"
    assert refused(sender, lambda: sender.send(Comment(text=text))).code == "bad_field"
    assert refused_event(sender, Unknown(name=text, payload={"y": 1})).code == "bad_field"


@pytest.mark.parametrize("dumps", WRITERS.values(), ids=WRITERS)
def test_what_is_just_not_too_deep_is_written_and_read(dumps: Any) -> None:
    frame = Sender(MESSAGES, dumps=dumps).send(Ping(payload={"extra": nested(127)}))
    receiver = Receiver(MESSAGES, strict=True)
    receiver.receive_data(frame)
    assert [event.extra for event in receiver if isinstance(event, Ping)] == [{"extra": nested(127)}]


def test_an_error_names_the_state_and_the_event() -> None:
    sender, _ = begun("messages")
    error = refused_event(sender, messages.Error(error="boom"))
    assert str(error) == (
        "error_not_object: an error event whose error is no object; error while the stream is IN_BLOCK; "
        "legal: content_block_delta, content_block_stop, message_delta, ping, error"
    )


def test_line_ends_inside_of_values_are_escaped() -> None:
    sender, more = begun("messages")
    hostile = 'x\n\nevent: error\ndata: {"type":"error"}\r\n\r\n\0\x85\u2028\u2029'
    frame = sender.send(more(hostile))
    assert frame.count(b"\n") == 3
    assert not set("\r\0\x85\u2028\u2029") & set(frame.decode())
    assert json.loads(frame.split(b"data: ", 1)[1])["delta"]["text"] == hostile


@pytest.mark.parametrize("dumps", [orjson.dumps, msgspec.json.encode, json.dumps])
@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda p: p.name)
def test_other_writers_write_the_same(protocol: Protocol[Any], dumps: Any) -> None:
    own, more = begun(protocol.name)
    other = Sender(protocol, dumps=dumps)
    other.__setstate__({**copy.deepcopy(own.__getstate__()), "_dumps": other.__getstate__()["_dumps"]})
    event = more('x\u2028\x85é🌍\n\t\x1f"\\')
    mine, theirs = own.send(event), other.send(event)
    assert json.loads(mine.split(b"data: ")[1]) == json.loads(theirs.split(b"data: ")[1])
    assert "\u2028" not in theirs.decode()


def test_a_writer_that_breaks_lines_is_refused() -> None:
    sender = Sender(MESSAGES, dumps=_pretty)
    assert refused(sender, lambda: sender.send(Ping())).code == "bad_payload"


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=1)


@pytest.mark.parametrize(
    ("event", "code"),
    [
        (ContentBlockDelta(index=0, delta={"type": "text_delta", "text": 7}), "malformed_event"),  # type: ignore[typeddict-item]
        (ContentBlockDelta(index=True, delta={"type": "text_delta", "text": ""}), "malformed_event"),
        (ContentBlockDelta(index=-1, delta={"type": "text_delta", "text": ""}), "malformed_event"),
        (messages.MessageDelta(delta={"stop_reason": "end_turn"}), "missing_usage"),
        (messages.Error(error="boom"), "error_not_object"),
        (MessageStart(message={"id": "x"}), "missing_member"),
    ],
)
def test_a_bad_form_is_refused(event: Any, code: str) -> None:
    sender, _ = begun("messages")
    assert refused(sender, lambda: sender.send(event)).code == code


def test_a_bad_form_is_refused_between_repetitions() -> None:
    sender, more = begun("messages")
    sender.send(more("a"))
    sender.send(more("b"))
    bad = more("c")
    bad.payload["index"] = False
    assert refused(sender, lambda: sender.send(bad)).code == "malformed_event"
    assert sender.send(more("d"))


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda p: p.name)
def test_what_was_legal_again_and_again_is_judged_anew_when_the_state_moves(
    protocol: Protocol[Any],
) -> None:
    sender, more = begun(protocol.name)
    for text in "abc":
        sender.send(more(text))
    ends: dict[str, tuple[Any, str]] = {
        "chat": (next(chat.Answer(id="chatcmpl-1", model="m", created=1).end()), "delta_after_finish"),
        "responses": (
            responses.OutputTextDone(
                item_id="msg_1_0", output_index=0, content_index=0, text="Helloabc"
            ),
            "delta_after_text_done",
        ),
        "messages": (messages.ContentBlockStop(index=0), "delta_for_closed_block"),
    }
    end, code = ends[protocol.name]
    sender.send(end)
    assert refused_event(sender, more("d")).code == code


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda p: p.name)
def test_repetitions_are_not_judged_anew(protocol: Protocol[Any]) -> None:
    sender, more = begun(protocol.name)
    asked: list[type] = []

    def counting(cls: type, moves: Any) -> Any:
        def ask(*arguments: Any) -> Any:
            asked.append(cls)
            return moves(*arguments)

        return ask

    counted = {cls: counting(cls, moves) for cls, moves in protocol.moves.items()}
    sender.__setstate__({**sender.__getstate__(), "_protocol": attrs.evolve(protocol, moves=counted)})
    for number in range(50):
        sender.send(more(str(number)))
    assert 1 <= len(asked) <= 2


def test_a_byte_order_mark_is_only_forwarded_first() -> None:
    mark = Frame(b"\xef\xbb\xbf")
    assert Sender(CHAT).forward(mark) == mark.raw
    begins: list[Callable[[Sender[Any]], bytes]] = [
        lambda sender: sender.comment("x"),
        lambda sender: sender.interrupt(),
        lambda sender: sender.send(Unknown(name="message", payload={"y": 1})),
        lambda sender: sender.forward(Frame(b": x\n")),
        lambda sender: sender.forward(_comment()),
        lambda sender: sender.forward(mark),
    ]
    for begin in begins:
        sender = Sender(CHAT)
        assert begin(sender)
        assert sender.forward(mark) == b""


def _comment() -> Any:
    receiver = Receiver(CHAT)
    receiver.receive_data(b": x\n")
    return next(receiver)


UNKNOWN_FRAMES: list[tuple[Any, Unknown, bytes]] = [
    (MESSAGES, Unknown(name="x", payload={"type": "x"}), b'event: x\ndata: {"type":"x"}\n\n'),
    (MESSAGES, Unknown(name="x", data='{ "type":"x"}'), b'event: x\ndata: { "type":"x"}\n\n'),
    (CHAT, Unknown(name="x", payload={"type": "x"}), b'data: {"type":"x"}\n\n'),
    (CHAT, Unknown(name="x", payload={"y": 1}), b'event: x\ndata: {"y":1}\n\n'),
    (CHAT, Unknown(name="message", payload={"y": 1}), b'data: {"y":1}\n\n'),
    (RESPONSES, Unknown(name="x", payload={"type": "x"}), b'event: x\ndata: {"type":"x"}\n\n'),
]


@pytest.mark.parametrize(("protocol", "event", "frame"), UNKNOWN_FRAMES)
def test_unknown_events_are_written_as_they_are(
    protocol: Protocol[Any], event: Unknown, frame: bytes
) -> None:
    assert Sender(protocol).send(event) == frame


@pytest.mark.parametrize(
    ("event", "code"),
    [
        (Unknown(name="x"), "empty_data"),
        (Unknown(name="x", data="no JSON"), "malformed_payload"),
        (Unknown(name="x", data='{"a":1}', payload={"a": 2}), "bad_payload"),
        (Unknown(name="x", payload=[1]), "malformed_event"),
        (Unknown(name="a", payload={"type": "b"}), "event_name_mismatch"),
        (Unknown(name="", payload={"type": ""}), "missing_event_name"),
        # An event that is known under any other name is judged as what it is.
        (Unknown(name="message_stop", payload={"type": "message_stop"}), "missing_message_delta"),
    ],
)
def test_bad_unknown_events_are_refused(event: Unknown, code: str) -> None:
    sender, _ = begun("messages")
    assert refused(sender, lambda: sender.send(event)).code == code


def test_comments_stand_between_events_in_every_state() -> None:
    sender = Sender(MESSAGES)
    assert sender.comment("hopbase-keepalive") == b": hopbase-keepalive\n\n"
    assert sender.send(Comment(text=" two spaces")) == b":  two spaces\n\n"
    assert sender.comment("") == b": \n\n"
    sender.interrupt()
    assert sender.comment("late") == b": late\n\n"


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda p: p.name)
@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_a_copy_goes_on_identically(protocol: Protocol[Any], clone: Any) -> None:
    sender, more = begun(protocol.name)
    event = more("x")
    twin = clone(sender)
    assert twin.send(event) == sender.send(event)
    assert twin.interrupt() == sender.interrupt()
    assert standing(twin) == standing(sender)
    assert (twin.protocol, twin.outcome, twin.finished) == (protocol, Outcome.FAILED, True)


def test_many_deltas_are_numbered_and_judged_one_by_one() -> None:
    sender, more = begun("responses")
    wire = b"".join(sender.send(more(str(n))) for n in range(100))
    numbers = [
        json.loads(frame.split(b"data: ")[1])["sequence_number"] for frame in wire.split(b"\n\n")[:-1]
    ]
    assert numbers == list(range(5, 105))
    wrong = OutputTextDelta(item_id="msg_1_0", output_index=1, content_index=0, delta="x")
    assert refused(sender, lambda: sender.send(wrong)).code == "sub_event_before_item_added"
    (completed,) = responses.Answer(id="resp_1", model="m", created_at=1).end(
        input_tokens=1, output_tokens=1
    )
    assert refused_event(sender, completed).code == "terminal_output_empty"
