"""Public bug reports about Responses streams, each as a small input with the right behaviour.

The ids are those of the project's collection of cases.
"""

from __future__ import annotations

from typing import Any

import pytest

from sse_machines import EndOfStream, Outcome, RemoteProtocolError, StreamTruncated, Violation
from sse_machines.responses import Incomplete, LifecycleEvent, OutputTextDelta
from tests import wire as common
from tests.responses import wire

USAGE = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
BEGIN = (wire.CREATED, wire.added(), wire.PART_ADDED)
END = wire.lifecycle("completed", output=[wire.item()], usage=USAGE)


def text_of(events: list[Any]) -> str:
    return "".join(event.delta for event in events if isinstance(event, OutputTextDelta))


def check(stream: bytes, codes: list[str], outcome: Outcome, text: str | None = None) -> list[Any]:
    """Lenient: these deviations, this outcome, this text. Strict: the first of them is raised."""
    receiver, events = wire.receive(stream)
    assert common.codes(events) == codes
    assert receiver.outcome is outcome
    if text is not None:
        assert text_of(events) == text
    _, seen = wire.receive(stream, strict=True)
    assert common.codes(seen) == codes[:1]
    assert isinstance(seen[-1], RemoteProtocolError if codes else EndOfStream)
    return events


def test_fr23_json_over_several_data_lines() -> None:
    lines = wire.ANSWER.replace(b', "', b',\ndata: "')
    check(lines, [], Outcome.COMPLETED, "hi")


def test_po28_text_before_its_item() -> None:
    stream = wire.numbered(wire.text("hi"), END) + wire.DONE
    codes = [
        *("missing_created", "sub_event_before_item_added", "delta_before_part_added"),
        *("item_left_open", "trailing_done"),
    ]
    check(stream, codes, Outcome.COMPLETED, "hi")


def test_po29_the_end_comes_first() -> None:
    events = check(END, ["missing_created", "missing_sequence_number"], Outcome.COMPLETED)
    (completed,) = [event for event in events if isinstance(event, LifecycleEvent)]
    assert completed.response.get("usage") == USAGE


def test_po31_numbers_that_are_lost_and_repeated() -> None:
    stream = (
        wire.numbered(*BEGIN, wire.text("a"))
        + wire.numbered(wire.text("b"), start=3)
        + wire.numbered(wire.text("c"), wire.TEXT_DONE, wire.PART_DONE, wire.done(), END, start=9)
    )
    events = check(stream, ["sequence_repeat", "sequence_gap"], Outcome.COMPLETED, "abc")
    about = [event.event for event in events if isinstance(event, Violation)]
    assert [
        event.payload["sequence_number"] for event in about if isinstance(event, OutputTextDelta)
    ] == [3, 9]


def test_po34_two_items_under_one_index() -> None:
    stream = wire.numbered(
        wire.CREATED,
        wire.added(),
        wire.added(0, "function_call", call_id="call_1", name="f", arguments=""),
        wire.sub("function_call_arguments.delta", item_id="function_call_1", delta="{}"),
        wire.text("hi"),
        END,
    )
    codes = [
        *("duplicate_item_added", "event_item_type_mismatch", "item_id_changed"),
        *("delta_before_part_added", "item_left_open"),
    ]
    events = check(stream, codes, Outcome.COMPLETED, "hi")
    assert next(event.key for event in events if isinstance(event, Violation)) == 0


def test_po35_the_end_has_no_output() -> None:
    frames = (*BEGIN, wire.text("hi"), wire.TEXT_DONE, wire.PART_DONE, wire.done())
    stream = wire.numbered(*frames, wire.lifecycle("completed", usage=USAGE))
    check(stream, ["terminal_output_empty"], Outcome.COMPLETED, "hi")


def test_po37_incomplete_is_an_end_of_its_own() -> None:
    details = {"reason": "max_output_tokens"}
    end = wire.lifecycle("incomplete", incomplete_details=details, usage=USAGE)
    events = check(wire.numbered(*BEGIN, wire.text("hal"), end), [], Outcome.INCOMPLETE, "hal")
    (incomplete,) = [event for event in events if isinstance(event, Incomplete)]
    assert incomplete.response.get("incomplete_details") == details
    assert incomplete.response.get("usage") == USAGE


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("rest", [b"", b"event: response.output_text.delta\ndata: {", wire.DONE])
def test_po38_cut_before_the_end(rest: bytes, clean: bool) -> None:
    stream = wire.numbered(*BEGIN, wire.text("par")) + rest
    receiver, events = wire.receive(stream, clean=clean)
    error = events[-1]
    assert isinstance(error, StreamTruncated)
    assert (text_of(events), receiver.outcome) == ("par", Outcome.TRUNCATED)
    assert error.state is not None
    assert error.state.name == "OPEN"
    assert "response.completed" in error.legal
    assert error.tail_length == (0 if rest == wire.DONE else len(rest))


@pytest.mark.parametrize(
    "error",
    [
        wire.event("error", code="server_error", message="boom", param=None),
        wire.event("error", error={"code": "server_error", "message": "boom"}),
    ],
)
def test_me15_errors_flat_and_nested(error: bytes) -> None:
    events = check(wire.numbered(wire.CREATED, error), [], Outcome.FAILED)
    info = events[1].info
    assert (info.code, info.message, info.retryable) == ("server_error", "boom", True)


def test_recorded_an_error_and_then_the_failed_response() -> None:
    # Seen from OpenAI: out of quota.
    error = {"type": "insufficient_quota", "code": "insufficient_quota", "message": "m", "param": None}
    failed = wire.lifecycle("failed", error={"code": "insufficient_quota", "message": "m"})
    stream = wire.numbered(
        wire.CREATED, wire.lifecycle("in_progress"), wire.event("error", error=error), failed
    )
    events = check(stream, [], Outcome.FAILED)
    infos = [event.info for event in events[2:4]]
    assert [(info.code, info.retryable) for info in infos] == [("insufficient_quota", False)] * 2
