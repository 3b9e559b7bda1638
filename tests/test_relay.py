"""The rules of the relay one by one: forwarding, keep-alives, stalls, ends, errors, retries, usage."""

from __future__ import annotations

import copy
import json
import math
import pickle
from typing import Any

import pytest

from sse_machines import (
    CHAT,
    MESSAGES,
    RESPONSES,
    Drain,
    ErrorInfo,
    ErrorTexts,
    FrameTooLarge,
    Hold,
    Identity,
    KeepAlive,
    Limits,
    LocalProtocolError,
    NotAnEventStream,
    Relay,
    RelayConfig,
    RelayOutcome,
    Stall,
    Violation,
    collect,
)
from sse_machines._detect import PROTOCOL as UNDECIDED
from sse_machines._frames import BOM
from sse_machines._protocol import Protocol
from sse_machines.messages import ContentBlockDelta
from sse_machines.relay import (
    PHASES,
    Closed,
    Diagnostic,
    FailedBeforeOutput,
    KeepAliveQueued,
    OutputStarted,
    Phase,
    Stalled,
    Synthesized,
    TailDropped,
    Terminal,
    UsageChanged,
)
from sse_machines.testing import Arrive, Break, End, Fail, Leave, Recording, Unsent, drive
from tests import wire
from tests.chat import wire as chat
from tests.responses import wire as responses

KEEPALIVE = b": keep-alive\n\n"
PREAMBLE = wire.start() + wire.block_start(0, text="")
OUTPUT = PREAMBLE + wire.text(0, "Hel")
TAIL = wire.block_stop(0) + wire.message_delta()
CREATED = responses.numbered(responses.lifecycle("created"), responses.lifecycle("in_progress"))


def relay(protocol: Protocol[Any, Any] = MESSAGES, *, now: float = 0.0, **config: Any) -> Relay:
    return Relay(protocol, RelayConfig(**config), now=now)


def codes(recording: Recording) -> list[tuple[str, int]]:
    return [(event.code, event.size) for event in recording.told(Diagnostic)]


def tail_of(recording: Recording, begin: bytes) -> bytes:
    """What was written behind something, which has to be there untouched."""
    assert recording.data.startswith(begin)
    return recording.data[len(begin) :]


def error(message: str, kind: str = "api_error") -> bytes:
    payload = {"type": "error", "error": {"type": kind, "message": message}}
    return f"event: error\ndata: {json.dumps(payload, separators=(',', ':'))}\n\n".encode()


INTERRUPTED = error("Response stream interrupted, please retry")


class TestForwarding:
    def test_nothing_of_a_block_goes_out_before_it_is_complete(self) -> None:
        machine = relay()
        for byte in wire.start()[:-1]:
            assert machine.receive_data(bytes([byte]), 0.0).data == b""
        assert machine.receive_data(b"\n", 0.0).data == wire.start()

    def test_a_comment_goes_out_with_its_line(self) -> None:
        machine = relay()
        assert machine.receive_data(b": up", 0.0).data == b""
        assert machine.receive_data(b"stream\n", 0.0).data == b": upstream\n"
        assert machine.receive_data(b"\n", 0.0).data == b"\n"

    def test_a_comment_inside_a_block_waits_for_it(self) -> None:
        machine = relay()
        assert machine.receive_data(b"event: ping\n: inside\n", 0.0).data == b""
        rest = b'data: {"type": "ping"}\n\n'
        assert machine.receive_data(rest, 0.0).data == b"event: ping\n: inside\n" + rest

    @pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
    def test_line_ends_fields_and_spacing_stay(self, end: bytes) -> None:
        stream = wire.ANSWER.replace(b"data: ", b"x: y\nid: 7\nretry: 5\ndata:  ").replace(b"\n", end)
        assert drive(relay(), [Arrive(0, BOM + stream)]).data == BOM + stream

    def test_the_lf_of_a_cr_lf_that_was_cut_goes_behind_its_cr(self) -> None:
        machine = relay(keepalive=None)
        first = PREAMBLE.replace(b"\n", b"\r\n")
        assert machine.receive_data(first[:-1], 0.0).data == first[:-1]
        assert machine.receive_data(b"\n", 0.0).data == b"\n"

    def test_or_not_at_all_if_something_stands_between(self) -> None:
        first = PREAMBLE.replace(b"\n", b"\r\n")
        recording = drive(
            relay(), [Arrive(0, first[:-1]), Arrive(15, b"\n" + TAIL), Arrive(15, wire.STOP)]
        )
        assert recording.data == first[:-1] + KEEPALIVE + TAIL + wire.STOP

    def test_a_lone_blank_line_is_no_part_of_a_cr_lf(self) -> None:
        # The CR was followed by another block, so the LF behind the keep-alive is its own.
        steps = [Arrive(0, b": a\r" + wire.PING), Arrive(15, b"\n")]
        assert drive(relay(), steps, until=16).data == b": a\r" + wire.PING + KEEPALIVE + b"\n"

    def test_a_byte_order_mark_is_forwarded_only_as_the_first_thing(self) -> None:
        recording = drive(relay(), [Arrive(15, BOM + OUTPUT)], until=16)
        assert recording.data == KEEPALIVE + OUTPUT
        assert codes(recording) == [("bom_stripped", 3)]

    def test_a_byte_order_mark_that_is_held_back(self) -> None:
        config = RelayConfig(hold=Hold(), keepalive=KeepAlive(before_output=True))
        recording = drive(
            Relay(MESSAGES, config, now=0.0), [Arrive(0, BOM), Arrive(15, OUTPUT)], until=16
        )
        assert recording.data == KEEPALIVE + OUTPUT
        assert codes(recording) == [("bom_stripped", 3)]
        assert drive(relay(hold=Hold()), [Arrive(0, BOM + OUTPUT)], until=1).data == BOM + OUTPUT

    def test_what_nobody_understands_is_forwarded_and_reported(self) -> None:
        odd = (
            b"event: content_block_delta\ndata: {nonsense\n\n" + wire.FUTURE + b"data: 1\n\n" + b"x\n\n"
        )
        recording = drive(relay(), [Arrive(0, OUTPUT + odd + TAIL + wire.STOP)])
        assert recording.data == OUTPUT + odd + TAIL + wire.STOP
        found = [event.code for event in recording.told(Violation)]
        assert "malformed_payload" in found
        assert recording.relay.outcome is RelayOutcome.COMPLETED

    def test_what_no_receiver_reads_on_from_is_forwarded_too(self) -> None:
        spliced = wire.start(id="msg_2") + wire.text(0, "lo")
        recording = drive(relay(), [Arrive(0, OUTPUT + spliced + TAIL + wire.STOP)])
        assert recording.data == OUTPUT + spliced + TAIL + wire.STOP
        found = recording.told(Violation)[0]
        assert (found.code, found.dropped) == ("spliced_message", True)
        assert found.state is not None
        assert "content_block_delta" in found.legal
        assert recording.relay.outcome is RelayOutcome.COMPLETED

    def test_a_block_over_the_limit_ends_the_answer(self) -> None:
        limits = Limits(max_event_size=20_000)
        recording = drive(relay(limits=limits), [Arrive(0, OUTPUT + b"data: " + b"x" * 30_000)])
        assert tail_of(recording, OUTPUT) == error("An event of the response stream is too large")
        assert recording.relay.outcome is RelayOutcome.LIMIT
        (found,) = recording.told(Synthesized)
        assert isinstance(found.exception, FrameTooLarge)

    def test_usage_is_kept_back_on_demand(self) -> None:
        inside = chat.finish(usage=None)
        stream = chat.role() + chat.text("a") + inside + chat.USAGE + chat.DONE
        for observe in ("full", "light"):
            recording = drive(relay(CHAT, suppress_usage=True, observe=observe), [Arrive(0, stream)])
            assert recording.data == stream.replace(chat.USAGE, b"")
            assert codes(recording) == [("usage_suppressed", len(chat.USAGE))]
            assert recording.relay.usage.total == 66

    def test_messages_has_no_event_that_is_only_usage(self) -> None:
        assert drive(relay(suppress_usage=True), [Arrive(0, wire.ANSWER)]).data == wire.ANSWER

    def test_usage_beside_choices_is_contents(self) -> None:
        beside = chat.chunk(chat.choice({"content": "a"}), usage={"prompt_tokens": 1})
        stream = beside + chat.finish() + chat.DONE
        assert drive(relay(CHAT, suppress_usage=True), [Arrive(0, stream)]).data == stream

    def test_comments_of_the_upstream_can_be_dropped(self) -> None:
        stream = b": a\n\n" + chat.text("x") + b": b\n" + chat.finish() + b"\n" + chat.DONE
        recording = drive(relay(CHAT, comments="drop"), [Arrive(0, stream)])
        assert recording.data == chat.text("x") + chat.finish() + b"\n" + chat.DONE
        assert codes(recording) == [("comment_dropped", 4), ("comment_dropped", 4)]

    @pytest.mark.parametrize(
        "body", [b'{"error": {"message": "no", "type": "invalid_request_error"}}', b"<html>"]
    )
    def test_a_body_that_is_no_event_stream(self, body: bytes) -> None:
        recording = drive(relay(), [Arrive(0, body + b"\n\n")])
        assert recording.data == error("The model did not answer with an event stream")
        assert recording.relay.outcome is RelayOutcome.NOT_SSE
        (found,) = recording.told(Synthesized)
        assert isinstance(found.exception, NotAnEventStream)
        assert found.exception.head == body


class TestKeepAlives:
    def test_they_measure_what_the_client_hears(self) -> None:
        steps = [Arrive(7, b": upstream\n"), Arrive(12, wire.start()[:9])]
        recording = drive(relay(), steps, until=40)
        assert recording.when(KeepAliveQueued) == [17, 27, 37]

    def test_one_at_a_time_and_no_backlog(self) -> None:
        machine = relay()
        assert machine.handle_timeout(9.9).data == b""
        output = machine.handle_timeout(55.0)
        assert (output.data, output.deadline) == (KEEPALIVE, 65.0)
        assert machine.handle_timeout(55.0).data == b""

    def test_a_caller_that_never_asks_gets_them_with_the_next_bytes(self) -> None:
        machine = relay()
        output = machine.receive_data(b"event: p", 30.0)
        assert (output.data, output.deadline) == (KEEPALIVE, 40.0)

    def test_not_behind_bytes_that_wait(self) -> None:
        steps = [Unsent(5, 100), Arrive(25, wire.start()), Unsent(26, 0)]
        recording = drive(relay(), steps, until=40)
        # The client hears something until all is written.
        assert recording.when(KeepAliveQueued) == [36]

    def test_not_behind_the_end(self) -> None:
        machine = relay()
        output = machine.receive_data(wire.ANSWER, 0.0)
        assert (output.deadline, output.finished, output.close_upstream) == (None, True, True)
        late = machine.handle_timeout(1000.0)
        assert late == (b"", [], None, True, True)

    def test_not_while_output_is_held_back_unless_asked(self) -> None:
        stall = Stall(idle_progress=None)
        recording = drive(relay(hold=Hold(), stall=stall), [Arrive(1, PREAMBLE)], until=100)
        assert recording.data == b""
        keepalive = KeepAlive(before_output=True)
        recording = drive(
            relay(hold=Hold(), stall=stall, keepalive=keepalive), [Arrive(1, PREAMBLE)], until=25
        )
        assert recording.data == KEEPALIVE * 2

    @pytest.mark.parametrize(
        ("form", "expected"),
        [
            ("comment", b": keep-alive\n\n"),
            ("comment1", b": keep-alive\n"),
            ("auto", b": keep-alive\n\n"),
            ("ping", b'event: ping\ndata: {"type":"ping"}\n\n'),
        ],
    )
    def test_forms(self, form: Any, expected: bytes) -> None:
        machine = relay(keepalive=KeepAlive(form=form))
        assert machine.handle_timeout(10.0).data == expected

    def test_auto_has_no_blank_line_behind_an_id(self) -> None:
        machine = relay()
        machine.receive_data(b"id: 1\n" + PREAMBLE, 0.0)
        assert machine.handle_timeout(10.0).data == b": keep-alive\n"

    def test_only_messages_has_a_ping(self) -> None:
        for protocol in (CHAT, RESPONSES):
            with pytest.raises(LocalProtocolError, match="has no ping"):
                relay(protocol, keepalive=KeepAlive(form="ping"))

    def test_off(self) -> None:
        recording = drive(relay(keepalive=None, stall=None), [Arrive(1, OUTPUT)])
        assert recording.data == OUTPUT
        assert recording.relay.handle_timeout(1e9).deadline is None

    def test_they_are_no_output_and_feed_no_clock_of_the_upstream(self) -> None:
        recording = drive(relay(stall=Stall(idle_bytes=35, idle_progress=None)))
        assert recording.told(Stalled) == [Stalled(kind="idle_bytes", since=0)]
        assert recording.relay.counters.first_output_at is None

    @pytest.mark.parametrize(
        "options",
        [
            {"interval": 0},
            {"interval": math.nan},
            {"interval": math.inf},
            {"text": "a\nb"},
            {"text": "a\rb"},
            {"text": "a\0b"},
            {"text": "\ud800"},
            {"form": "event"},
        ],
    )
    def test_what_cannot_be_sent_is_refused(self, options: dict[str, Any]) -> None:
        with pytest.raises(LocalProtocolError):
            KeepAlive(**options)


class TestStalls:
    @pytest.mark.parametrize(
        ("kind", "steps", "since", "when"),
        [
            ("first_byte", [], 0, 30),
            ("first_output", [Arrive(20, PREAMBLE)], 0, 30),
            ("idle_bytes", [Arrive(20, b": c\n\n")], 20, 50),
            ("idle_progress", [Arrive(20, PREAMBLE), Arrive(25, b": c\n\n" + wire.PING)], 20, 50),
            ("total", [Arrive(20, OUTPUT), Arrive(29, wire.text(0, "x"))], 0, 30),
        ],
    )
    def test_clocks(self, kind: str, steps: list[Arrive], since: float, when: float) -> None:
        limits: dict[str, Any] = {"idle_progress": None, kind: 30.0}
        stall = Stall(**limits)
        recording = drive(relay(stall=stall, keepalive=None), steps)
        assert [(event.kind, event.since) for event in recording.told(Stalled)] == [(kind, since)]
        assert (recording.ended_at, recording.left_at) == (when, [when])
        assert recording.relay.outcome is RelayOutcome.STALLED
        assert recording.data.endswith(error("The model stopped responding, please retry"))

    def test_clocks_that_are_fed_do_not_run_out(self) -> None:
        stall = Stall(first_byte=30, first_output=30, idle_bytes=30, idle_progress=30)
        steps = [Arrive(25 * number, wire.text(0, "x")) for number in range(1, 9)]
        steps.insert(0, Arrive(1, PREAMBLE))
        recording = drive(relay(stall=stall, keepalive=None), steps)
        assert recording.when(Stalled) == [230]

    def test_report_leaves_it_to_the_caller_and_says_it_once(self) -> None:
        stall = Stall(first_byte=10, idle_progress=30, idle_bytes=20, on_expiry="report")
        steps = [Arrive(50, OUTPUT), Arrive(60, b": c\n\n"), Arrive(81, OUTPUT[:1])]
        recording = drive(relay(stall=stall, keepalive=None), steps, until=300)
        assert [(at, event.kind) for at, event in recording.events if isinstance(event, Stalled)] == [
            (10, "first_byte"),
            (20, "idle_bytes"),
            (30, "idle_progress"),
            (80, "idle_bytes"),
            (80, "idle_progress"),
            (101, "idle_bytes"),
        ]
        assert recording.ended_at is None

    @pytest.mark.parametrize("observe", ["full", "light"])
    def test_pieces_of_nothing_are_no_progress(self, observe: Any) -> None:
        begin = chat.role() + chat.text("a")
        steps = [Arrive(0, begin), *(Arrive(at, chat.text("") * 3) for at in range(10, 100, 10))]
        recording = drive(relay(CHAT, stall=Stall(idle_progress=30), observe=observe), steps)
        assert recording.when(Stalled) == [30]
        steps = [Arrive(0, OUTPUT), *(Arrive(at, wire.text(0, "") * 3) for at in range(10, 100, 10))]
        assert drive(relay(stall=Stall(idle_progress=30)), steps).when(Stalled) == [30]

    def test_bytes_that_wait_come_first(self) -> None:
        machine = relay(stall=Stall(idle_progress=30))
        assert machine.receive_data(OUTPUT, 31.0).finished is False
        assert machine.receive_data(b": c\n\n", 62.0).finished is True

    def test_the_clocks_stand_still_while_the_client_is_too_slow(self) -> None:
        steps = [
            *(Arrive(0, OUTPUT), Unsent(10, 1_000_000), Unsent(400, 900_000)),
            *(Unsent(500, 10), Unsent(500, 0)),
        ]
        recording = drive(relay(stall=Stall(idle_progress=30, idle_bytes=25)), steps)
        assert recording.when(Stalled) == [515]

    def test_the_whole_answer_has_no_longer_because_the_client_is_too_slow(self) -> None:
        steps = [Arrive(0, OUTPUT), Unsent(10, 1_000_000)]
        recording = drive(relay(stall=Stall(idle_progress=30, total=200)), steps)
        assert [(event.kind, event.since) for event in recording.told(Stalled)] == [("total", 0)]
        assert recording.when(Stalled) == [200]

    def test_want_read(self) -> None:
        machine = relay()
        assert machine.want_read
        machine.downstream_ready(65 * 1024, 0.0)
        assert not machine.want_read
        machine.downstream_ready(64 * 1024, 0.0)
        assert machine.want_read
        machine.receive_data(wire.ANSWER, 0.0)
        assert not machine.want_read
        with pytest.raises(LocalProtocolError, match="at least 0"):
            machine.downstream_ready(-1, 0.0)

    def test_time_does_not_run_backwards(self) -> None:
        machine = relay(now=100.0)
        assert machine.handle_timeout(5.0).deadline == 110.0
        assert machine.handle_timeout(math.nan).deadline == 110.0

    @pytest.mark.parametrize(
        "name", ["first_byte", "first_output", "idle_bytes", "idle_progress", "total"]
    )
    def test_what_is_no_time_is_refused(self, name: str) -> None:
        for value in (0, -1, math.nan, math.inf):
            with pytest.raises(LocalProtocolError, match=name):
                Stall(**{name: value})  # type: ignore[arg-type]


class TestEnds:
    @pytest.mark.parametrize("end", [End(1), Break(1)])
    def test_messages_that_lacks_only_its_last_event(self, end: Any) -> None:
        recording = drive(relay(), [Arrive(0, OUTPUT + TAIL + wire.STOP[:9]), end])
        assert (
            tail_of(recording, OUTPUT + TAIL)
            == b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
        )
        assert recording.relay.outcome is RelayOutcome.COMPLETED_REPAIRED
        assert recording.told(TailDropped) == [TailDropped(size=9, looks_terminal=False)]
        assert [event.kind for event in recording.told(Synthesized)] == ["terminal"]

    def test_messages_without_its_stop_reason_lacks_more(self) -> None:
        for stream in (OUTPUT, OUTPUT + wire.block_stop(0), OUTPUT + wire.message_delta(None)):
            recording = drive(relay(), [Arrive(0, stream), End(1)])
            assert tail_of(recording, stream) == INTERRUPTED
            assert recording.relay.outcome is RelayOutcome.TRUNCATED

    def test_messages_with_a_block_that_is_open_lacks_more(self) -> None:
        stream = OUTPUT + TAIL + wire.block_start(1, text="")
        recording = drive(relay(), [Arrive(0, stream), End(1)])
        assert tail_of(recording, stream) == INTERRUPTED

    def test_messages_whose_block_only_the_stop_reason_has_closed_lacks_more(self) -> None:
        recording = drive(relay(), [Arrive(0, OUTPUT + wire.message_delta()), End(1)])
        assert recording.relay.outcome is RelayOutcome.TRUNCATED

    def test_messages_that_never_had_a_block_lacks_nothing(self) -> None:
        recording = drive(
            relay(), [Arrive(0, wire.start() + wire.text(0, "a") + wire.message_delta()), End(1)]
        )
        assert recording.relay.outcome is RelayOutcome.COMPLETED_REPAIRED

    def test_chat_that_lacks_only_its_mark(self) -> None:
        stream = chat.role() + chat.text("a") + chat.finish()
        recording = drive(relay(CHAT), [Arrive(0, stream), End(1)])
        assert tail_of(recording, stream) == chat.DONE
        assert recording.relay.outcome is RelayOutcome.COMPLETED_REPAIRED
        # If the connection failed, usage may be missing too.
        recording = drive(relay(CHAT), [Arrive(0, stream), Break(1)])
        assert b'"error"' in tail_of(recording, stream)
        assert recording.relay.outcome is RelayOutcome.ABORTED

    def test_chat_with_a_choice_that_is_open_lacks_more(self) -> None:
        stream = chat.text("a") + chat.text("b", 1) + chat.finish()
        recording = drive(relay(CHAT), [Arrive(0, stream), End(1)])
        assert b'"error"' in tail_of(recording, stream)
        assert chat.DONE not in recording.data

    def test_repairs_can_be_switched_off(self) -> None:
        recording = drive(relay(repair_tail=False), [Arrive(0, OUTPUT + TAIL), End(1)])
        assert tail_of(recording, OUTPUT + TAIL) == INTERRUPTED

    @pytest.mark.parametrize("lacking", [1, 2])
    def test_a_last_event_without_its_blank_line(self, lacking: int) -> None:
        stream = OUTPUT + TAIL + wire.STOP[:-lacking]
        recording = drive(relay(repair_tail=False), [Arrive(0, stream), End(1)])
        size = len(wire.STOP) - lacking
        assert recording.told(TailDropped) == [TailDropped(size=size, looks_terminal=True)]
        assert recording.relay.outcome is RelayOutcome.TRUNCATED
        recording = drive(relay(eof_tail="accept"), [Arrive(0, stream), End(1)])
        assert recording.data == OUTPUT + TAIL + wire.STOP
        assert recording.relay.outcome is RelayOutcome.COMPLETED
        recording = drive(relay(eof_tail="accept", repair_tail=False), [Arrive(0, stream), Break(1)])
        assert recording.data == OUTPUT + TAIL + INTERRUPTED
        recording = drive(
            relay(CHAT, eof_tail="accept"), [Arrive(0, chat.text("a") + b"data: [DONE]"), End(1)]
        )
        assert recording.data == chat.text("a") + chat.DONE

    def test_a_tail_that_would_end_nothing_is_never_accepted(self) -> None:
        recording = drive(
            relay(eof_tail="accept"), [Arrive(0, OUTPUT + wire.text(0, "lo")[:-1]), End(1)]
        )
        assert recording.data == OUTPUT + INTERRUPTED

    def test_nothing_behind_the_end_is_forwarded(self) -> None:
        for cut in (False, True):
            behind = b"\n" + wire.PING + wire.ERROR + b": c\n\n" + wire.DONE
            steps = (
                [Arrive(0, wire.ANSWER), Arrive(0, behind)] if cut else [Arrive(0, wire.ANSWER + behind)]
            )
            recording = drive(relay(), steps)
            assert recording.data == wire.ANSWER
            assert recording.relay.outcome is RelayOutcome.COMPLETED
            assert recording.told(Closed) == [Closed(outcome=RelayOutcome.COMPLETED)]
        assert [code for code, _ in codes(drive(relay(), [Arrive(0, wire.ANSWER + behind)]))] == [
            "after_terminal",
            "double_terminal",
            "stray_done",
        ]

    def test_the_end_does_not_wait_for_the_connection(self) -> None:
        output = relay().receive_data(wire.ANSWER, 0.0)
        assert output.finished
        assert output.close_upstream
        assert isinstance(output.events[-2], Terminal)

    @pytest.mark.parametrize("protocol", [MESSAGES, RESPONSES])
    def test_a_stray_end_mark_is_dropped(self, protocol: Protocol[Any, Any]) -> None:
        begin = OUTPUT if protocol is MESSAGES else CREATED
        recording = drive(relay(protocol), [Arrive(0, begin + wire.DONE)], until=1)
        assert recording.data == begin
        assert codes(recording) == [("stray_done", len(wire.DONE))]

    def test_a_finish_reason_is_no_end(self) -> None:
        stream = chat.text("a") + chat.finish()
        assert drive(relay(CHAT), [Arrive(0, stream)], until=1).ended_at is None

    @pytest.mark.parametrize("done", [False, True])
    def test_the_end_mark_behind_an_error(self, *, done: bool) -> None:
        expected = chat.DONE if done else b""
        recording = drive(relay(CHAT, done_after_error=done), [Arrive(0, chat.text("a")), Break(1)])
        assert recording.data.endswith(b"}\n\n" + expected)
        recording = drive(relay(CHAT, done_after_error=done), [Arrive(0, chat.text("a") + chat.ERROR)])
        assert recording.data == chat.text("a") + chat.ERROR + expected
        recording = drive(relay(done_after_error=done), [Arrive(0, OUTPUT), Break(1)])
        assert recording.data == OUTPUT + INTERRUPTED

    def test_an_error_of_the_upstream_is_its_own(self) -> None:
        recording = drive(relay(), [Arrive(0, OUTPUT + wire.ERROR)])
        assert recording.data == OUTPUT + wire.ERROR
        assert recording.relay.outcome is RelayOutcome.FAILED_UPSTREAM

    def test_an_end_that_stands_nowhere_is_still_the_end(self) -> None:
        # A second message_stop would follow, or none; the client has this one.
        recording = drive(relay(), [Arrive(0, wire.STOP), Arrive(0, wire.ANSWER)])
        assert recording.data == wire.STOP
        assert recording.relay.outcome is RelayOutcome.TRUNCATED

    def test_the_reason_of_an_incomplete_response(self) -> None:
        stream = CREATED + responses.numbered(responses.lifecycle("incomplete"), start=2)
        assert drive(relay(RESPONSES), [Arrive(0, stream)]).relay.outcome is RelayOutcome.INCOMPLETE
        stream = CREATED + responses.numbered(responses.lifecycle("cancelled"), start=2)
        assert drive(relay(RESPONSES), [Arrive(0, stream)]).relay.outcome is RelayOutcome.CANCELLED


def last_payload(data: bytes) -> Any:
    return json.loads(data.rstrip(b"\n").rpartition(b"data: ")[2])


class TestErrors:
    def test_chat(self) -> None:
        recording = drive(relay(CHAT), [Arrive(0, chat.text("a")), Break(1)])
        assert tail_of(recording, chat.text("a")) == (
            b'data: {"error":{"message":"Response stream interrupted, please retry",'
            b'"type":"server_error","param":null,"code":null}}\n\n'
        )

    @pytest.mark.parametrize("observe", ["full", "light"])
    def test_responses_goes_on_with_id_number_items_and_usage(self, observe: Any) -> None:
        item = responses.item("message", role="assistant", content=[])
        done = {**item, "status": "completed"}
        place = {"item_id": "message_1", "output_index": 0, "content_index": 0}
        part = {"type": "output_text", "text": "", "annotations": []}
        deltas = [responses.event("response.output_text.delta", **place, delta="ab", logprobs=[])] * 5
        stream = responses.numbered(
            responses.lifecycle("created"),
            responses.lifecycle("in_progress"),
            responses.event("response.output_item.added", output_index=0, item=item),
            responses.event("response.content_part.added", **place, part=part),
            *deltas,
            responses.event("response.output_text.done", **place, text="ab" * 5, logprobs=[]),
            responses.event("response.content_part.done", **place, part={**part, "text": "ab" * 5}),
            responses.event("response.output_item.done", output_index=0, item=done),
            responses.event("response.output_item.added", output_index=1, item={**item, "id": "m2"}),
            responses.event("response.content_part.added", **place | {"output_index": 1}, part=part),
            *(
                responses.event("response.output_text.delta", **place | {"output_index": 1}, delta="ab")
                for _ in range(3)
            ),
        )
        recording = drive(relay(RESPONSES, observe=observe), [Arrive(0, stream), End(1)])
        payload = last_payload(tail_of(recording, stream))
        assert payload["type"] == "response.failed"
        assert payload["sequence_number"] == 17
        found = payload["response"]
        assert (found["id"], found["status"]) == ("resp_1", "failed")
        assert found["output"] == [done]
        assert found["error"] == {
            "code": "server_error",
            "message": "Response stream interrupted, please retry",
        }

    def test_what_cannot_be_written_again_is_left_out(self) -> None:
        odd = responses.event("response.created", response=responses.response(metadata={"a": "\ud800"}))
        stream = responses.numbered(odd)
        recording = drive(relay(RESPONSES), [Arrive(0, stream), End(1)])
        found = last_payload(tail_of(recording, stream))["response"]
        assert (found["id"], found["model"]) == ("resp_1", "m")
        assert "metadata" not in found

    def test_deltas_behind_the_stop_reason_leave_something_open(self) -> None:
        stream = wire.start() + wire.message_delta() + wire.text(0, "late")
        recording = drive(relay(), [Arrive(0, stream), End(1)])
        assert tail_of(recording, stream) == INTERRUPTED

    def test_items_that_are_too_large_together_are_left_out(self) -> None:
        item = responses.item("message", role="assistant", content=[], note="x" * (9 << 20))
        done = [
            responses.event(f"response.output_item.{kind}", output_index=index, item=item)
            for index in range(2)
            for kind in ("added", "done")
        ]
        stream = responses.numbered(responses.lifecycle("created"), *done)
        recording = drive(relay(RESPONSES), [Arrive(0, stream), End(1)])
        assert last_payload(recording.data)["response"]["output"] == []

    def test_responses_of_which_nothing_was_told(self) -> None:
        recording = drive(relay(RESPONSES), [Arrive(0, b": c\n\n"), Break(1)])
        payload = last_payload(recording.data)
        assert (payload["type"], payload["sequence_number"]) == ("error", 0)
        identity = Identity(id="resp_9", model="m", created=5)
        machine = Relay(RESPONSES, RelayConfig(), now=0.0, identity=identity)
        recording = drive(machine, [Arrive(0, b": c\n\n"), Break(1)])
        result = collect(recording.data, RESPONSES, strict=True)
        assert result.message is not None
        assert (result.message["id"], result.message["status"]) == ("resp_9", "failed")
        assert last_payload(recording.data)["sequence_number"] == 1
        # Who has begun needs no name, and other protocols invent no beginning.
        machine = Relay(RESPONSES, RelayConfig(), now=0.0, identity=identity)
        assert b"resp_9" not in drive(machine, [Arrive(0, CREATED), Break(1)]).data
        machine = Relay(MESSAGES, RelayConfig(), now=0.0, identity=identity)
        assert drive(machine, [Break(1)]).data == INTERRUPTED

    @pytest.mark.parametrize(
        ("code", "told"), [("rate_limit_exceeded", "rate_limit_exceeded"), ("teapot", "server_error")]
    )
    def test_responses_has_only_the_codes_it_has(self, code: str, told: str) -> None:
        steps = [Arrive(0, CREATED), Fail(1, ErrorInfo(message="slow down", code=code))]
        recording = drive(relay(RESPONSES), steps)
        error = last_payload(recording.data)["response"]["error"]
        assert error == {"code": told, "message": "slow down"}
        assert recording.relay.outcome is RelayOutcome.FAILED_GATEWAY

    def test_the_owner_says_what_is_said(self) -> None:
        info = ErrorInfo(type="overloaded_error", code=529, message="Overloaded")
        recording = drive(relay(), [Arrive(0, OUTPUT), Fail(1, info)])
        assert tail_of(recording, OUTPUT) == error("Overloaded", "overloaded_error")
        assert recording.told(Synthesized) == [Synthesized(kind="error", cause="caller")]
        recording = drive(relay(CHAT), [Fail(1, info)])
        assert last_payload(recording.data)["error"]["code"] == "529"
        assert drive(relay(), [Arrive(0, OUTPUT), Fail(1)]).data == OUTPUT + INTERRUPTED

    def test_a_message_that_cannot_be_written_changes_nothing(self) -> None:
        machine = relay()
        with pytest.raises(LocalProtocolError, match="UTF-8"):
            machine.fail(ErrorInfo(message="\ud800"), 0.0)
        assert machine.receive_data(wire.ANSWER, 0.0).data == wire.ANSWER
        with pytest.raises(LocalProtocolError, match="UTF-8"):
            ErrorTexts(stalled="\ud800")
        for created in ("\ud800", math.nan):
            with pytest.raises(LocalProtocolError, match="no identity"):
                Identity(id="a", model="m", created=created)  # type: ignore[arg-type]

    def test_texts(self) -> None:
        errors = ErrorTexts(interrupted="cut", stalled="stuck")
        assert drive(relay(errors=errors), [End(1)]).data == error("cut")
        assert drive(relay(errors=errors, keepalive=None)).data == error("stuck")

    def test_an_error_behind_the_end_is_none(self) -> None:
        machine = relay()
        machine.receive_data(wire.ANSWER, 0.0)
        for output in (
            machine.fail(ErrorInfo(message="x"), 1.0),
            machine.receive_eof(1.0),
            machine.receive_error("reset", 1.0),
            machine.receive_data(b"x", 1.0),
            machine.downstream_closed(1.0),
            machine.downstream_ready(5, 1.0),
        ):
            assert output == (b"", [], None, True, True)


class TestAttempts:
    def test_what_is_held_back_goes_out_with_the_first_output(self) -> None:
        machine = relay(hold=Hold())
        assert machine.phase.name == "HOLDING"
        assert machine.receive_data(BOM + b": c\n" + PREAMBLE, 0.0).data == b""
        output = machine.receive_data(wire.text(0, "H"), 2.0)
        assert output.data == BOM + b": c\n" + PREAMBLE + wire.text(0, "H")
        assert OutputStarted() in output.events
        assert machine.phase.name == "FORWARDING"
        assert (machine.output_started, machine.counters.first_output_at) == (True, 2.0)

    def test_an_answer_without_output_goes_out_with_its_end(self) -> None:
        stream = chat.role() + chat.finish() + chat.DONE
        recording = drive(relay(CHAT, hold=Hold()), [Arrive(0, stream)])
        assert recording.data == stream
        assert recording.relay.outcome is RelayOutcome.COMPLETED

    @pytest.mark.parametrize("limit", [{"max_events": 1}, {"max_bytes": 300}])
    def test_more_than_may_be_held_goes_out(self, limit: dict[str, int]) -> None:
        recording = drive(relay(hold=Hold(**limit)), [Arrive(0, PREAMBLE)], until=1)
        assert recording.data == PREAMBLE
        assert codes(recording) == [("hold_exceeded", len(PREAMBLE))]
        assert not recording.told(OutputStarted)

    @pytest.mark.parametrize(
        ("steps", "cause", "retryable"),
        [
            ([Arrive(0, PREAMBLE + wire.ERROR)], "upstream", True),
            (
                [
                    Arrive(
                        0, wire.event("error", error={"type": "invalid_request_error", "message": "no"})
                    )
                ],
                "upstream",
                False,
            ),
            ([Arrive(0, wire.event("error", error={"type": "new", "message": "?"}))], "upstream", True),
            ([Arrive(0, PREAMBLE), End(1)], "eof", True),
            ([Arrive(0, wire.start() + TAIL), End(1)], "eof", True),
            ([Break(1)], "transport", True),
            ([Arrive(0, PREAMBLE)], "stalled", True),
            ([Arrive(0, b"<html>\n\n")], "not_sse", True),
            ([Arrive(0, b'{"error": {"type": "authentication_error"}}'), End(1)], "not_sse", False),
            ([Arrive(0, b"data: " + b"x" * 30_000)], "limit", False),
        ],
    )
    def test_what_fails_before_output_is_not_seen(
        self, steps: Any, cause: str, *, retryable: bool
    ) -> None:
        config = RelayConfig(hold=Hold(), limits=Limits(max_event_size=20_000))
        recording = drive(Relay(MESSAGES, config, now=0.0), steps, [Arrive(1, wire.ANSWER)])
        assert recording.data == wire.ANSWER
        (failure,) = recording.told(FailedBeforeOutput)
        assert (failure.cause, failure.retryable) == (cause, retryable)
        assert recording.relay.outcome is RelayOutcome.COMPLETED
        assert recording.relay.counters.events == wire.ANSWER.count(b"data:")

    def test_why_the_connection_failed_is_told_to_the_owner_only(self) -> None:
        machine = relay(hold=Hold())
        (failure,) = machine.receive_error("refused", 0.0, "10.0.0.1").events
        assert isinstance(failure, FailedBeforeOutput)
        assert failure.detail == "refused: 10.0.0.1"
        assert b"10.0.0.1" not in machine.fail(None, 0.0).data

    def test_a_second_attempt_begins_anew(self) -> None:
        machine = relay(hold=Hold(), stall=Stall(first_output=30, total=100), keepalive=None)
        machine.receive_data(PREAMBLE, 0.0)
        failed = machine.handle_timeout(30.0)
        assert (failed.deadline, failed.close_upstream, failed.finished) == (None, True, False)
        assert machine.phase is Phase.FAILED
        assert machine.receive_data(b"late", 31.0).data == b""
        assert machine.new_attempt(31.0).deadline == 61.0
        # The time for all attempts together goes on.
        assert machine.handle_timeout(61.0).events
        assert machine.new_attempt(90.0).deadline == 100.0

    def test_keep_alives_go_on_between_two_attempts(self) -> None:
        config = RelayConfig(hold=Hold(), keepalive=KeepAlive(before_output=True))
        machine = Relay(MESSAGES, config, now=0.0)
        assert machine.receive_eof(1.0).deadline == 10.0
        assert machine.handle_timeout(10.0).data == KEEPALIVE
        assert machine.new_attempt(11.0).deadline == 20.0
        assert machine.receive_data(BOM + wire.ANSWER, 12.0).data == wire.ANSWER

    def test_no_attempt_without_holding_back(self) -> None:
        with pytest.raises(LocalProtocolError, match="FORWARDING"):
            relay().new_attempt(0.0)

    def test_what_the_upstream_said_can_be_passed_on(self) -> None:
        for message in (chat.role() + chat.ERROR, chat.ERROR):
            recording = drive(relay(CHAT, hold=Hold(), done_after_error=True), [Arrive(0, message)])
            assert recording.data == message + chat.DONE
            assert recording.relay.outcome is RelayOutcome.FAILED_UPSTREAM

    def test_or_something_else_can_be_said_in_its_place(self) -> None:
        failed = responses.numbered(responses.lifecycle("failed", error={"code": "x"}), start=2)
        machine = relay(RESPONSES, hold=Hold())
        machine.receive_data(CREATED + failed, 0.0)
        output = machine.fail(ErrorInfo(message="sorry"), 0.0)
        assert output.data.startswith(CREATED)
        payload = last_payload(output.data)
        assert (payload["sequence_number"], payload["response"]["error"]["message"]) == (2, "sorry")
        assert collect(output.data, RESPONSES).outcome == "failed"

    @pytest.mark.parametrize(
        ("steps", "outcome", "data"),
        [
            ([Arrive(0, PREAMBLE), End(1)], RelayOutcome.TRUNCATED, PREAMBLE + INTERRUPTED),
            ([Arrive(0, PREAMBLE), Break(1)], RelayOutcome.ABORTED, PREAMBLE + INTERRUPTED),
            (
                [Arrive(0, b"<p>\n\n")],
                RelayOutcome.NOT_SSE,
                error("The model did not answer with an event stream"),
            ),
            ([Arrive(0, PREAMBLE), Fail(1)], RelayOutcome.FAILED_GATEWAY, PREAMBLE + INTERRUPTED),
        ],
    )
    def test_giving_up(self, steps: Any, outcome: RelayOutcome, data: bytes) -> None:
        recording = drive(relay(hold=Hold()), steps)
        assert recording.data == data
        assert recording.relay.outcome is outcome


class TestTheClientLeaves:
    def test_the_upstream_is_closed(self) -> None:
        recording = drive(relay(), [Arrive(0, OUTPUT), Leave(1)])
        assert recording.data == OUTPUT
        assert (recording.ended_at, recording.relay.outcome) == (1, RelayOutcome.CANCELLED)
        assert recording.relay.usage.input == 5

    def test_before_the_first_byte_and_after_a_failure(self) -> None:
        assert drive(relay(), [Leave(0)]).relay.outcome is RelayOutcome.CANCELLED
        for drain in (None, Drain()):
            machine = relay(hold=Hold(), drain=drain)
            machine.receive_eof(0.0)
            assert machine.downstream_closed(1.0).finished

    def test_or_read_on_to_learn_what_it_costs(self) -> None:
        steps = [Arrive(0, OUTPUT), Leave(1), Arrive(20, TAIL), Arrive(25, wire.STOP)]
        for hold in (None, Hold()):
            recording = drive(relay(drain=Drain(), hold=hold), steps)
            assert recording.data == OUTPUT
            assert recording.ended_at == 25
            assert recording.relay.outcome is RelayOutcome.CANCELLED
            assert (recording.relay.usage.status, recording.relay.usage.output) == ("final", 3)
            assert recording.told(Terminal)

    def test_what_is_held_then_never_goes_out(self) -> None:
        steps = [Arrive(0, PREAMBLE), Leave(1), Arrive(2, wire.text(0, "x") + TAIL + wire.STOP)]
        recording = drive(relay(drain=Drain(), hold=Hold()), steps)
        assert recording.data == b""
        assert recording.relay.usage.status == "final"

    @pytest.mark.parametrize(
        ("drain", "steps", "end"),
        [
            (Drain(max_seconds=5), [], 6),
            (Drain(max_bytes=10), [Arrive(2, wire.text(0, "long enough"))], 2),
            (Drain(), [End(3)], 3),
            (Drain(), [Break(3)], 3),
            (Drain(), [Arrive(3, wire.ERROR)], 3),
        ],
    )
    def test_with_an_end(self, drain: Drain, steps: Any, end: float) -> None:
        recording = drive(relay(drain=drain), [Arrive(0, OUTPUT), Leave(1), *steps])
        assert recording.data == OUTPUT
        assert (recording.ended_at, recording.relay.outcome) == (end, RelayOutcome.CANCELLED)

    def test_an_error_in_chat_is_not_answered(self) -> None:
        machine = relay(CHAT, drain=Drain(), done_after_error=True)
        recording = drive(machine, [Arrive(0, chat.text("a")), Leave(1), Arrive(2, chat.ERROR)])
        assert recording.data == chat.text("a")

    @pytest.mark.parametrize("options", [{"max_seconds": 0}, {"max_bytes": 0}])
    def test_a_drain_has_a_size(self, options: Any) -> None:
        with pytest.raises(LocalProtocolError):
            Drain(**options)


class TestUsage:
    def test_it_is_replaced_member_by_member(self) -> None:
        usage = {"output_tokens": 9, "input_tokens": None, "cache_read_input_tokens": 4}
        stream = OUTPUT + wire.block_stop(0) + wire.message_delta(usage=usage) + wire.STOP
        recording = drive(relay(), [Arrive(0, stream)])
        changes = [event.usage for event in recording.told(UsageChanged)]
        assert [(usage.status, usage.output) for usage in changes] == [("partial", 1), ("final", 9)]
        last = changes[-1]
        assert (last.input, last.cached_input, last.cache_write, last.total) == (9, 4, None, 18)
        assert last.raw == {"input_tokens": 5, "output_tokens": 9, "cache_read_input_tokens": 4}

    def test_none_is_not_zero(self) -> None:
        usage = drive(relay(CHAT), [Arrive(0, chat.text("a")), End(1)]).relay.usage
        assert (usage.status, usage.input, usage.raw) == ("none", None, None)

    def test_the_answer_so_far_is_kept_on_demand(self) -> None:
        recording = drive(relay(accumulate=True), [Arrive(0, OUTPUT), Leave(1)])
        accumulator = recording.relay.accumulator
        assert (accumulator.text, accumulator.outcome) == ("Hel", "cancelled")
        with pytest.raises(LocalProtocolError, match="accumulate"):
            _ = relay().accumulator
        with pytest.raises(LocalProtocolError, match="read everything"):
            RelayConfig(accumulate=True, observe="light")

    def test_an_answer_that_is_too_large_to_keep_is_forwarded(self) -> None:
        stream = OUTPUT + wire.text(0, "x" * 5000) * 2 + TAIL + wire.STOP
        limits = Limits(max_answer_size=4000)
        recording = drive(relay(accumulate=True, limits=limits), [Arrive(0, stream), Arrive(0, b"")])
        assert recording.data == stream
        assert codes(recording) == [("answer_too_large", 0)]

    def test_counters(self) -> None:
        recording = drive(relay(), [Arrive(3, wire.ANSWER)])
        counters = recording.relay.counters
        assert counters.bytes_in == counters.bytes_out == len(wire.ANSWER)
        assert counters.events == wire.ANSWER.count(b"data:")
        assert (counters.text, counters.reasoning, counters.arguments) == (12, 2, 7)
        assert (counters.first_output_at, counters.last_progress_at) == (3, 3)


class TestTheValue:
    def test_a_copy_goes_on_by_itself(self) -> None:
        first = relay()
        first.receive_data(OUTPUT, 0.0)
        for other in (copy.copy(first), pickle.loads(pickle.dumps(first))):
            assert other.receive_data(TAIL + wire.STOP, 1.0).data == TAIL + wire.STOP
            assert first.outcome is RelayOutcome.OPEN
        assert first.receive_eof(1.0).data == INTERRUPTED

    def test_every_phase_is_reached_and_has_an_end(self) -> None:
        targets = {phase for moves in PHASES.values() for phase in moves.values()}
        assert targets | {Phase.HOLDING} == set(Phase) == set(PHASES)
        for phase, moves in PHASES.items():
            assert phase is Phase.CLOSED or Phase.CLOSED in moves.values()

    def test_a_stream_that_does_not_tell_its_protocol_has_no_relay(self) -> None:
        with pytest.raises(LocalProtocolError, match="undecided"):
            relay(UNDECIDED)

    @pytest.mark.parametrize(
        "options",
        [
            {"observe": "dark"},
            {"comments": "edit"},
            {"eof_tail": "keep"},
            {"max_unsent": 0},
        ],
    )
    def test_configurations_are_checked(self, options: Any) -> None:
        with pytest.raises(LocalProtocolError):
            RelayConfig(**options)
        with pytest.raises(LocalProtocolError):
            Stall(on_expiry="ignore")  # type: ignore[arg-type]
        for limits in ({"max_bytes": 0}, {"max_events": 0}):
            with pytest.raises(LocalProtocolError):
                Hold(**limits)


class TestRuns:
    """Pieces of one text, which are read at a fraction of the price."""

    def test_bytes_that_are_no_text_stand_in_the_middle_of_pieces(self) -> None:
        odd = wire.text(0, "?").replace(b"?", b"\xff")
        stream = OUTPUT + wire.text(0, "a") * 3 + odd + wire.text(0, "b") * 3 + TAIL + wire.STOP
        recording = drive(relay(), [Arrive(0, stream)])
        assert recording.data == stream
        deltas: list[Any] = [event.delta for event in recording.told(ContentBlockDelta)]
        texts = [delta["text"] for delta in deltas]
        assert texts == ["Hel", *"aaa", "\N{REPLACEMENT CHARACTER}", *"bbb"]
        assert recording.relay.counters.text == 10

    def test_an_event_of_another_name_stands_in_the_middle_of_pieces(self) -> None:
        odd = wire.text(0, "b").replace(b"event: content_block_delta", b"event: odd")
        stream = OUTPUT + wire.text(0, "a") * 3 + odd + wire.text(0, "c") * 3 + TAIL + wire.STOP
        recording = drive(relay(), [Arrive(0, stream)])
        assert recording.data == stream
        assert [event.code for event in recording.told(Violation)] == ["event_name_mismatch"]
        assert recording.relay.counters.text == 10


class TestLight:
    """What is not read: it goes out all the same, and nothing else comes out wrong."""

    def masked(self, text: bytes, mask: str) -> bytes:
        chunk = chat.chunk(chat.choice({"content": "?"}), obfuscation=mask)
        return chunk.replace(b"?", text)

    def test_chunks_with_a_mask(self) -> None:
        odd = self.masked(b"\xff", "odd") + self.masked(b"b", "c") * 2
        stream = chat.role() + self.masked(b"a", "b") * 3 + odd + chat.finish() + chat.DONE
        recording = drive(relay(CHAT, observe="light"), [Arrive(0, stream)])
        assert recording.data == stream
        assert recording.relay.outcome is RelayOutcome.COMPLETED
        assert recording.relay.counters.events == stream.count(b"data:")

    @pytest.mark.parametrize(
        "piece",
        [
            b'a"},"finish_reason":"stop"},{"index":0,"delta":{"content":"b',
            b"a\\",
            b"",
            b'a\\"b',
            b"\\ud83d\\ude00",
            b'a"}}],"usage":{"prompt_tokens":7},"choices":[{"index":0,"delta":{"content":"b',
        ],
    )
    def test_chunks_that_look_alike_are_read(self, piece: bytes) -> None:
        compact = chat.text("a").replace(b": ", b":").replace(b", ", b",").replace(b"data:", b"data: ")
        odd = compact.replace(b'"content":"a"', b'"content":"' + piece + b'"')
        stream = compact * 3 + odd + compact + chat.finish() + chat.DONE
        light = drive(relay(CHAT, observe="light"), [Arrive(0, stream)]).relay
        full = drive(relay(CHAT), [Arrive(0, stream)]).relay
        assert (light.outcome, light.usage) == (full.outcome, full.usage)
        assert light.counters.bytes_out == full.counters.bytes_out == len(stream)

    @pytest.mark.parametrize("name", ["chat", "responses", "messages"])
    def test_next_to_nothing_is_parsed(self, name: str) -> None:
        numbers = range(50)
        protocol, stream = {
            "chat": (CHAT, chat.role() + b"".join(chat.text(f"a{n}") for n in numbers)),
            "responses": (RESPONSES, CREATED + b"".join(responses.text("a", n=n) for n in numbers)),
            "messages": (MESSAGES, OUTPUT + b"".join(self.numbered_text(n) for n in numbers)),
        }[name]
        parsed: list[str] = []

        def loads(text: str) -> Any:
            parsed.append(text)
            return json.loads(text)

        light = Relay(protocol, RelayConfig(observe="light"), now=0.0, loads=loads)
        assert light.receive_data(stream, 0.0).data == stream
        assert len(parsed) < 8

    def numbered_text(self, number: int) -> bytes:
        return wire.event(
            "content_block_delta", index=0, delta={"type": "text_delta", "text": "a"}, n=number
        )

    def test_an_error_has_the_number_behind_what_was_not_read(self) -> None:
        place = {"item_id": "m", "output_index": 0, "content_index": 0}
        deltas = [responses.event("response.output_text.delta", **place, delta="a") for _ in range(9)]
        stream = responses.numbered(responses.lifecycle("created"), *deltas)
        recording = drive(relay(RESPONSES, observe="light"), [Arrive(0, stream), Fail(1)])
        assert last_payload(recording.data)["sequence_number"] == 10
        assert not recording.told(Violation)

    def test_what_is_read_does_not_depend_on_cuts(self) -> None:
        place = {"item_id": "m", "output_index": 0, "content_index": 0}
        delta = responses.event("response.output_text.delta", **place, delta="a")
        begin = responses.numbered(responses.lifecycle("created"), *[delta] * 3)
        # The last one has no number, and one is no event that can be passed over.
        stream = begin + delta + b": c\n" + delta.replace(b"\ndata", b"\n: c\ndata") + delta
        told = set[bytes]()
        for cut in range(0, len(stream), 3):
            machine = relay(RESPONSES, observe="light")
            machine.receive_data(stream[:cut], 0.0)
            machine.receive_data(stream[cut:], 0.0)
            told.add(machine.fail(None, 0.0).data)
        assert len(told) == 1

    def test_a_string_that_does_not_end_is_no_piece(self) -> None:
        machine = relay(CHAT, observe="light")
        machine.receive_data(chat.role() + chat.text("a") * 3, 0.0)
        machine.receive_data(chat.text("b"), 1.0)
        assert machine.counters.last_progress_at == 1.0
        odd = chat.text("?").replace(b'"?"', b'"b\\"')
        assert machine.receive_data(odd, 2.0).data == odd
        assert machine.counters.last_progress_at == 1.0
