"""Events of Responses: what is in them, and what is wrong with their form."""

from __future__ import annotations

from typing import Any

import pytest

from sse_machines import RESPONSES, Outcome, Unknown
from sse_machines._protocol import Malformed
from sse_machines.responses import (
    CodeInterpreterCallCodeDelta,
    Completed,
    Error,
    Failed,
    FunctionCallArgumentsDelta,
    Keepalive,
    OutputTextDelta,
    SequencedEvent,
    ShellCallOutputContentDelta,
    TextDelta,
)
from sse_machines.responses.decoding import OLD_NAMES
from sse_machines.responses.events import PUBLISHED, UNPUBLISHED
from tests import wire as common
from tests.responses import wire

CLASSES = (*PUBLISHED, *UNPUBLISHED)
MEMBERS: dict[str, Any] = {
    "response": wire.response(),
    "item": {"type": "message"},
    "part": wire.PART,
    "output": [{"stdout": "a"}],
    "annotation": {"type": "url_citation"},
    "error": {"code": "c", "message": "m"},
    **dict.fromkeys(("delta", "text", "refusal", "arguments", "input", "code", "diff", "command"), "x"),
    **dict.fromkeys(("item_id", "partial_image_b64"), "y"),
    **dict.fromkeys(("output_index", "content_index", "summary_index", "command_index"), 0),
    **dict.fromkeys(("annotation_index", "partial_image_index"), 1),
}


def payload_of(cls: type[SequencedEvent], **members: Any) -> dict[str, Any]:
    """A whole payload for a class, with everything that it has a field for."""
    fields = {name: MEMBERS[name] for name in cls.wire_names}
    if cls is ShellCallOutputContentDelta:
        fields["delta"] = {"stdout": "x"}
    return {"type": cls.type, "sequence_number": 3, **fields, **members}


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.type)
def test_every_class_is_decoded_and_made(cls: Any) -> None:
    payload = payload_of(cls, obfuscation="z")
    event: Any = RESPONSES.decode(payload, cls.type, b"")
    assert type(event) is cls
    assert event.payload is payload
    assert event.sequence_number == 3
    assert event.extra == {"sequence_number": 3, "obfuscation": "z"}
    fields = {name: getattr(event, name) for name in cls.wire_names}
    made = cls(**fields, payload={"sequence_number": 3, "obfuscation": "z"})
    assert made == event
    assert made.payload == payload


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.type)
def test_every_field_is_checked(cls: Any) -> None:
    unchecked = {"item_id", "annotation", "error"}
    if cls is CodeInterpreterCallCodeDelta:
        unchecked.add("delta")
    for name in set(cls.wire_names) - unchecked:
        with pytest.raises(Malformed) as caught:
            RESPONSES.decode(payload_of(cls, **{name: True}), cls.type, b"")
        assert caught.value.code == "malformed_event"
        assert isinstance(caught.value.event, Unknown)
        assert caught.value.event.name == cls.type


@pytest.mark.parametrize("index", [-1, 65_536, 1.0, "0", True])
def test_an_index_is_a_small_number(index: Any) -> None:
    stream = wire.numbered(wire.CREATED) + wire.numbered(wire.text("a", index), start=1)
    _, events = wire.receive(stream)
    assert common.codes(events) == ["malformed_event", "truncated"]
    assert isinstance(events[2], Unknown)
    assert wire.receive(stream, strict=True)[0].outcome is Outcome.PROTOCOL_ERROR


def test_an_index_that_is_missing_counts_as_0() -> None:
    # Seen from gateways that abbreviate.
    frame = wire.event("response.output_text.delta", delta="Hello")
    _, events = wire.receive(wire.CREATED + frame)
    assert common.codes(events)[1] == "missing_index"
    (delta,) = [event for event in events if isinstance(event, OutputTextDelta)]
    assert (delta.output_index, delta.content_index, delta.item_id, delta.delta) == (0, 0, None, "Hello")
    violation = next(event for event in events if getattr(event, "code", "") == "missing_index")
    assert "output_index and content_index" in violation.message


def test_null_is_no_code() -> None:
    payload = payload_of(CodeInterpreterCallCodeDelta, delta=None)
    event = RESPONSES.decode(payload, "", b"")
    assert isinstance(event, CodeInterpreterCallCodeDelta)
    assert event.delta is None


def test_a_number_that_is_none_is_none() -> None:
    for number in (None, "1", True, 1.5):
        event = RESPONSES.decode({"type": "keepalive", "sequence_number": number}, "", b"")
        assert isinstance(event, Keepalive)
        assert event.sequence_number is None


@pytest.mark.parametrize("payload", [[1], "x", 7, None])
def test_a_payload_that_is_no_object(payload: Any) -> None:
    with pytest.raises(Malformed, match="must be an object"):
        RESPONSES.decode(payload, "", b"")


@pytest.mark.parametrize(
    ("payload", "message"), [({"type": 7}, "type must be"), ({"x": 1}, "has no type")]
)
def test_a_type_that_is_none(payload: Any, message: str) -> None:
    with pytest.raises(Malformed, match=message):
        RESPONSES.decode(payload, "", b"")


def test_the_event_name_may_stand_in_for_a_type() -> None:
    stream = wire.CREATED + wire.lifecycle("in_progress").replace(
        b'"type": "response.in_progress", ', b""
    )
    assert "missing_type" in common.codes(wire.receive(stream)[1])


@pytest.mark.parametrize(("old", "new"), OLD_NAMES.items())
def test_names_of_the_first_months(old: str, new: str) -> None:
    cls = next(cls for cls in CLASSES if cls.type == new)
    payload = payload_of(cls)
    stream = wire.CREATED + wire.event(old, **{name: payload[name] for name in cls.wire_names})
    _, events = wire.receive(stream)
    codes = common.codes(events)
    assert "old_event_name" in codes
    assert "event_name_mismatch" not in codes
    assert any(type(event) is cls for event in events)


FLAT = wire.event("error", code="server_error", message="m", param=None)
NESTED = wire.event("error", error={"type": "t", "code": "server_error", "message": "m", "param": None})
FAILED = wire.lifecycle("failed", error={"code": "server_error", "message": "m"})


@pytest.mark.parametrize("frames", [(FLAT,), (NESTED,), (FAILED,), (NESTED, FAILED), (FLAT, FAILED)])
@pytest.mark.parametrize("before", [(), (wire.CREATED,), (wire.CREATED, wire.added(), wire.PART_ADDED)])
def test_every_form_of_an_error(before: Any, frames: Any) -> None:
    receiver, events = wire.receive(wire.numbered(*before, *frames))
    infos = [event.info for event in events if isinstance(event, Error | Failed)]
    assert [(info.code, info.message, info.retryable) for info in infos if info] == [
        ("server_error", "m", True)
    ] * len(frames)
    expected = ["failed_before_created"] if frames == (FAILED,) and not before else []
    assert common.codes(events) == expected
    assert receiver.outcome is Outcome.FAILED


def test_the_type_of_an_error_event_is_no_type_of_an_error() -> None:
    (flat, _), (nested, _) = wire.receive(FLAT)[1], wire.receive(NESTED)[1]
    assert (flat.info.type, nested.info.type) == (None, "t")
    assert flat.error == {"code": "server_error", "message": "m", "param": None}


def test_a_response_without_an_error_has_no_info() -> None:
    _, events = wire.receive(wire.ANSWER)
    assert events[0].info is None


@pytest.mark.parametrize("usage", [{"input_tokens": -1}, {"output_tokens": True}, [1]])
def test_usage_that_is_none(usage: Any) -> None:
    stream = wire.numbered(wire.CREATED, wire.lifecycle("completed", usage=usage))
    receiver, events = wire.receive(stream)
    assert common.codes(events) == ["malformed_usage"]
    assert receiver.outcome is Outcome.COMPLETED


def test_a_response_that_lacks_members() -> None:
    response = {"id": "r", "status": "completed", "usage": {"input_tokens": 1}}
    stream = wire.numbered(
        wire.CREATED.replace(b"resp_1", b"r"), wire.event("response.completed", response=response)
    )
    _, events = wire.receive(stream)
    (violation, completed) = events[1:3]
    assert violation.code == "missing_member"
    assert (
        "object, created_at, model, output, parallel_tool_calls, tool_choice, tools" in violation.message
    )
    assert isinstance(completed, Completed)
    assert completed.response.get("usage") == {"input_tokens": 1}


def test_roles_have_the_fields() -> None:
    _, events = wire.receive(wire.ANSWER)
    texts = [event.delta for event in events if isinstance(event, TextDelta)]
    arguments = [str(event.delta) for event in events if isinstance(event, FunctionCallArgumentsDelta)]
    assert ("".join(texts), "".join(arguments)) == ("hi", '{"a":1}')


@pytest.mark.parametrize("name", ["event", "message", "response.output_text.done"])
def test_an_event_name_that_is_another(name: str) -> None:
    # Seen from agentgateway: "event" for every event.
    stream = wire.ANSWER.replace(b"event: response.output_text.delta", b"event: " + name.encode())
    receiver, events = wire.receive(stream)
    assert common.codes(events) == ["event_name_mismatch"] * 2
    assert receiver.outcome is Outcome.COMPLETED


def test_no_event_names_at_all() -> None:
    # Seen from OpenRouter and Bedrock.
    lines = wire.ANSWER.splitlines(keepends=True)
    stream = b"".join(line for line in lines if not line.startswith(b"event:"))
    receiver, events = wire.receive(stream + wire.DONE)
    assert set(common.codes(events)) == {"missing_event_name", "trailing_done"}
    assert receiver.outcome is Outcome.COMPLETED


def test_a_long_id_is_told_apart_by_its_beginning() -> None:
    long = "x" * 300
    frames = [wire.CREATED, wire.added(id=long), wire.PART_ADDED]
    frames = [frame.replace(b"message_1", long.encode()) for frame in frames]
    same, other = wire.text("a", item_id=long), wire.text("a", item_id="y" + long)
    assert common.codes(wire.receive(wire.numbered(*frames, same, same))[1]) == ["truncated"]
    assert common.codes(wire.receive(wire.numbered(*frames, other))[1])[0] == "item_id_changed"
