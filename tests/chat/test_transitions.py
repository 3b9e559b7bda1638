"""Every kind of chunk in every state of a chat stream, from bytes to where it leads.

The expectations are written by hand: the codes that are reported, and the state afterwards. ``x`` in
front of a code means that the event was dropped.
"""

from __future__ import annotations

import pytest

from sse_machines import CHAT, Event, Receiver, Violation
from sse_machines.chat import tool_calls
from tests import transitions, wire as common
from tests.chat import wire

CALL = wire.calls(wire.call(0, "{", "call_1", "f"))
PREFIX = {
    "IDLE": b"",
    "STREAMING": wire.role() + wire.text("a") + CALL,
    "FINISHED": wire.role() + wire.text("a") + CALL + wire.finish("tool_calls"),
    "DONE": wire.role() + wire.finish() + wire.DONE,
    "ERRORED": wire.role() + wire.ERROR,
}
EVENTS = {
    "role": wire.role(),
    "role and text": wire.delta(role="assistant", content="a"),
    "role and sound": wire.delta(role="assistant", content=None, audio={"data": "AA"}),
    "text": wire.text("a"),
    "nothing": wire.delta(),
    "empty text": wire.delta(content="", refusal=None, tool_calls=[]),
    "end of sound": wire.delta(audio={"expires_at": 9}),
    "no delta": wire.chunk({"index": 0, "finish_reason": None, "content_filter_results": {}}),
    "finish": wire.finish(),
    "finish and text": wire.finish(content="a"),
    "finish and role": wire.finish(role="assistant", content=""),
    "finish, role and text": wire.finish(role="assistant", content="a"),
    "finish, no delta": wire.chunk(wire.choice(None, "stop")),
    "role 1": wire.role(1),
    "text 1": wire.text("a", 1),
    "both": wire.chunk(wire.choice({"content": "a"}), wire.choice({"role": "assistant"}, index=1)),
    "usage": wire.USAGE,
    "annotation": wire.ANNOTATION,
    "new call": wire.calls(wire.call(1, "", "call_2", "g")),
    "more of the call": wire.calls(wire.call(0, "}")),
    "call, no index": wire.calls(wire.call(None, "}")),
    "call, index gap": wire.calls(wire.call(7, "", "call_7", "g")),
    "call, index in use": wire.calls(wire.call(0, "", "call_9", "g")),
    "other id": wire.chunk(wire.choice({}), id="other"),
    "other object": wire.chunk(wire.choice({}), object="chat.completion"),
    "no model": wire.chunk(wire.choice({}), model=None),
    "error": wire.ERROR,
    "extension": wire.event({"tool": "x"}, "tool.progress"),
    "[DONE]": wire.DONE,
}

NO_ROLE = "role_missing STREAMING"
AGAIN = "role_repeated STREAMING"
LATE = "delta_after_finish FINISHED"
TWICE = "second_finish_reason FINISHED"
EXPECTED = {
    "IDLE": {
        "role": "STREAMING",
        "role and text": "STREAMING",
        "role and sound": "STREAMING",
        "text": NO_ROLE,
        "nothing": NO_ROLE,
        "empty text": NO_ROLE,
        "end of sound": "role_missing FINISHED",
        "no delta": "IDLE",
        "finish": "role_missing FINISHED",
        "finish and text": "role_missing FINISHED",
        "finish and role": "FINISHED",
        "finish, role and text": "FINISHED",
        "finish, no delta": "role_missing FINISHED",
        "role 1": "STREAMING",
        "text 1": NO_ROLE,
        "both": NO_ROLE,
        "usage": "usage_before_content STREAMING",
        "annotation": "IDLE",
        "new call": "role_missing tool_index_gap STREAMING",
        "more of the call": "role_missing tool_call_without_start STREAMING",
        "call, no index": "role_missing tool_index_missing STREAMING",
        "call, index gap": "role_missing tool_index_gap STREAMING",
        "call, index in use": "role_missing STREAMING",
        "other id": NO_ROLE,
        "other object": "role_missing unexpected_object STREAMING",
        "no model": "role_missing missing_member STREAMING",
        "error": "ERRORED",
        "extension": "IDLE",
        "[DONE]": "empty_stream DONE",
    },
    "STREAMING": {
        "role": AGAIN,
        "role and text": AGAIN,
        "role and sound": "STREAMING",
        "text": "STREAMING",
        "nothing": "STREAMING",
        "empty text": "STREAMING",
        "end of sound": "FINISHED",
        "no delta": "STREAMING",
        "finish": "FINISHED",
        "finish and text": "FINISHED",
        "finish and role": "role_repeated FINISHED",
        "finish, role and text": "role_repeated FINISHED",
        "finish, no delta": "delta_missing FINISHED",
        "role 1": "STREAMING",
        "text 1": NO_ROLE,
        "both": "STREAMING",
        "usage": "STREAMING",
        "annotation": "STREAMING",
        "new call": "STREAMING",
        "more of the call": "STREAMING",
        "call, no index": "tool_index_missing STREAMING",
        "call, index gap": "tool_index_gap STREAMING",
        "call, index in use": "tool_index_reused STREAMING",
        "other id": "id_changed STREAMING",
        "other object": "unexpected_object STREAMING",
        "no model": "missing_member STREAMING",
        "error": "ERRORED",
        "extension": "STREAMING",
        "[DONE]": "done_without_finish_reason DONE",
    },
    "FINISHED": {
        "role": "role_repeated FINISHED",
        "role and text": LATE,
        "role and sound": LATE,
        "text": LATE,
        "nothing": "FINISHED",
        "empty text": "FINISHED",
        "end of sound": "FINISHED",
        "no delta": "FINISHED",
        "finish": TWICE,
        "finish and text": LATE,
        "finish and role": TWICE,
        "finish, role and text": LATE,
        "finish, no delta": TWICE,
        "role 1": "STREAMING",
        "text 1": NO_ROLE,
        "both": "delta_after_finish STREAMING",
        "usage": "FINISHED",
        "annotation": "FINISHED",
        "new call": LATE,
        "more of the call": LATE,
        "call, no index": "delta_after_finish tool_index_missing FINISHED",
        "call, index gap": "delta_after_finish tool_index_gap FINISHED",
        "call, index in use": "delta_after_finish tool_index_reused FINISHED",
        "other id": "id_changed FINISHED",
        "other object": "unexpected_object FINISHED",
        "no model": "missing_member FINISHED",
        "error": "ERRORED",
        "extension": "FINISHED",
        "[DONE]": "DONE",
    },
    "DONE": dict.fromkeys(EVENTS, "x event_after_done DONE") | {"[DONE]": "x duplicate_done DONE"},
    "ERRORED": dict.fromkeys(EVENTS, "x event_after_error ERRORED") | {"[DONE]": "ERRORED"},
}
CELLS = [(state, event) for state, row in EXPECTED.items() for event in row]


def test_every_event_is_expected_in_every_state() -> None:
    assert len(CELLS) == len(PREFIX) * len(EVENTS)


def in_state(state: str, *, strict: bool) -> Receiver[Event]:
    return transitions.in_state(CHAT, PREFIX[state], state, strict=strict)


@pytest.mark.parametrize(("state", "event"), CELLS)
def test_lenient(state: str, event: str) -> None:
    transitions.check_lenient(in_state(state, strict=False), EVENTS[event], EXPECTED[state][event])


@pytest.mark.parametrize(("state", "event"), CELLS)
def test_strict_raises_the_first_thing_that_lenient_reports(state: str, event: str) -> None:
    transitions.check_strict(in_state(state, strict=True), EVENTS[event], EXPECTED[state][event])


ENDS = {
    "IDLE": ("eof_before_first_chunk", "truncated"),
    "STREAMING": ("truncated", "truncated"),
    "FINISHED": ("missing_done", "completed_no_done"),
    "DONE": ("", "completed"),
    "ERRORED": ("", "failed"),
}


@pytest.mark.parametrize("state", ENDS)
def test_the_end_of_the_input(state: str) -> None:
    code, outcome = ENDS[state]
    receiver, events = wire.receive(PREFIX[state])
    assert common.codes(events) == ([code] if code else [])
    assert receiver.outcome == outcome
    receiver, events = wire.receive(PREFIX[state], strict=True)
    assert common.codes(events) == ([code] if code else [])
    assert receiver.outcome == ("truncated" if code else outcome)


@pytest.mark.parametrize("state", ENDS)
def test_the_end_of_the_input_inside_an_event(state: str) -> None:
    _, outcome = ENDS[state]
    receiver, _ = wire.receive(PREFIX[state] + b'data: {"id":')
    assert receiver.outcome == (outcome if state in ("DONE", "ERRORED") else "truncated")


def reported(stream: bytes) -> list[str]:
    return common.codes(wire.receive(stream)[1])


def test_some_deviations_are_reported_once() -> None:
    every = wire.chunk(wire.choice({"role": "assistant", "content": "a"}), id=None, object="x")
    assert reported(every * 4 + wire.finish() + wire.DONE) == [
        *("missing_member", "unexpected_object", "role_repeated"),
    ]
    assert reported(
        wire.role() + wire.chunk(wire.choice({}), id="b") * 3 + wire.finish() + wire.DONE
    ) == ["id_changed"]
    assert reported(
        wire.role() + wire.calls(wire.call(None, "{", "1", "f")) + wire.calls(wire.call(None, "}")) * 3
    ) == ["tool_index_missing", "truncated"]


def test_one_member_is_reported_once_in_one_chunk() -> None:
    null = wire.chunk(wire.choice({"role": "assistant"}), object=None)
    assert reported(null + wire.finish() + wire.DONE) == ["missing_member"]


def test_an_id_that_is_empty_is_no_other_id() -> None:
    # Seen from Azure.
    stream = wire.chunk(id="", model="", object="", prompt_filter_results=[]) + wire.ANSWER
    late = wire.chunk({"index": 0, "content_filter_offsets": {}}, id="", object="", created=0, model="")
    stream = stream.replace(wire.DONE, late + wire.DONE)
    assert common.codes(wire.receive(stream, strict=True)[1]) == []


def test_a_choice_that_is_announced_without_a_delta_needs_no_role() -> None:
    # Seen from Azure, with asynchronous filters.
    stream = wire.chunk({"index": 0, "finish_reason": None}) + wire.text("a") + wire.finish() + wire.DONE
    assert common.codes(wire.receive(stream, strict=True)[1]) == []
    empty = wire.chunk({"index": 0}) + wire.delta() + wire.role() + wire.finish() + wire.DONE
    assert common.codes(wire.receive(empty, strict=True)[1]) == []
    nothing = wire.chunk({"index": 0}) + wire.chunk(wire.choice(None, "stop")) + wire.DONE
    assert reported(nothing) == ["delta_missing"]


def test_sound_of_openai_has_no_finish_reason() -> None:
    stream = (
        wire.role()
        + wire.delta(audio={"id": "audio_1", "transcript": "Hello"})
        + wire.delta(role="assistant", audio={"id": "audio_1", "data": "AA"})
        + wire.USAGE
        + wire.delta(audio={"expires_at": 9})
        + wire.DONE
    )
    assert common.codes(wire.receive(stream, strict=True)[1]) == []


def test_what_would_have_been_legal() -> None:
    receiver = in_state("FINISHED", strict=False)
    assert receiver.legal() == ("chat.completion.chunk", "[DONE]", "error")
    receiver.receive_data(wire.text("late"))
    violation = next(receiver)
    assert isinstance(violation, Violation)
    assert violation.key == 0
    assert violation.legal == ("delta",)


def test_choices_are_counted_by_themselves() -> None:
    stream = wire.role() + wire.role(1) + wire.finish(index=1)
    receiver, events = wire.receive(stream + wire.text("a") + wire.finish() + wire.DONE, strict=True)
    assert common.codes(events) == []
    assert receiver.outcome == "completed"
    # One of two is not enough.
    assert reported(stream) == ["truncated"]
    together = wire.chunk(
        wire.choice({"role": "assistant"}, "stop"), wire.choice({"role": "x"}, "stop", 1)
    )
    assert reported(together) == ["missing_done"]
    # The same choice twice in one chunk.
    twice = wire.chunk(wire.choice({"role": "assistant"}), wire.choice({}, "stop"))
    assert reported(twice + wire.DONE) == []


def test_there_is_an_end_to_tool_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_calls, "MAX_INDEX", 20)
    pieces = [wire.call(number, "", f"call_{number}", "f") for number in range(21)]
    assert reported(wire.role() + wire.calls(*pieces) + wire.calls(pieces[0])) == ["truncated"]
    receiver, events = wire.receive(wire.role() + wire.calls(*pieces, wire.call(0, "", "one more", "f")))
    assert common.codes(events) == ["too_many_tool_calls"]
    assert receiver.outcome == "protocol_error"
