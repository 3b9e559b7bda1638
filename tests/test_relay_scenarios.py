"""Whole answers and public bug reports of gateways, run through a relay in virtual time.

The scenarios and the cases were written for this project; `data/relay_cases.jsonl` are those of its
collection that are about gateways. What each of them expects is asserted line by line.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sse_machines import CHAT, MESSAGES, RESPONSES, Comment, Outcome, Result, collect
from sse_machines._protocol import Protocol
from sse_machines._relay import Output, Relay
from sse_machines._relay_config import KeepAlive, RelayConfig, Stall
from sse_machines._relay_events import (
    Closed,
    KeepAliveQueued,
    OutputStarted,
    RelayEvent,
    RelayOutcome,
    Stalled,
    Synthesized,
    TailDropped,
)
from sse_machines._relay_tables import Phase
from sse_machines.testing import Arrive, Break, End, Leave, Recording, Step, Write, drive

DATA = Path(__file__).parent / "data"
PROTOCOLS = {protocol.name: protocol for protocol in (CHAT, RESPONSES, MESSAGES)}
GAP = 11.0
"""Longer than the interval of keep-alives, shorter than twice that."""
INTERRUPTED = "Response stream interrupted, please retry"
ERRORS = {
    "chat": {"error": {"message": INTERRUPTED, "type": "server_error", "param": None, "code": None}},
    "messages": {"type": "error", "error": {"type": "api_error", "message": INTERRUPTED}},
}
REPAIRED = {"c.no_done": b"data: [DONE]\n\n"}
"""Scenarios that lack nothing but their end mark."""
# An answer that a limit or a filter ended early has a name of its own in this protocol only.
INCOMPLETE = ("r.incomplete_cf",)
# Its response at the end is without the reasoning that came, and has the last word.
REASONING_TAKEN_BACK = ("r.thinking",)
OUTCOMES = {
    RelayOutcome.COMPLETED: Outcome.COMPLETED,
    RelayOutcome.COMPLETED_REPAIRED: Outcome.COMPLETED,
    RelayOutcome.INCOMPLETE: Outcome.INCOMPLETE,
    RelayOutcome.FAILED_UPSTREAM: Outcome.FAILED,
    RelayOutcome.TRUNCATED: Outcome.FAILED,
    RelayOutcome.ABORTED: Outcome.FAILED,
}
"""What the client is told of each outcome."""


def lines_of(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text("utf-8").splitlines()]


def chunks_of(case: dict[str, Any]) -> list[bytes]:
    return [base64.b64decode(chunk) for chunk in case["chunks_b64"]]


def payload_of(frame: bytes) -> Any:
    """The JSON in the only frame there is."""
    assert frame.endswith(b"\n\n")
    assert frame.count(b"\n\n") == 1
    (data,) = [line for line in frame.splitlines() if line.startswith(b"data: ")]
    return json.loads(data.removeprefix(b"data: "))


# --- scenarios

SCENARIOS = lines_of("scenarios.jsonl")


def at_once(chunks: list[bytes]) -> tuple[list[Arrive], list[float]]:
    return [Arrive(0, chunk) for chunk in chunks], [0.0] * len(chunks)


def byte_by_byte(chunks: list[bytes]) -> tuple[list[Arrive], list[float]]:
    stream = b"".join(chunks)
    steps = [Arrive(0, stream[place : place + 1]) for place in range(len(stream))]
    return steps, [0.0] * len(chunks)


def with_gaps(chunks: list[bytes]) -> tuple[list[Arrive], list[float]]:
    times = [number * GAP for number in range(len(chunks))]
    return [Arrive(at, chunk) for at, chunk in zip(times, chunks, strict=True)], times


def with_gaps_inside(chunks: list[bytes]) -> tuple[list[Arrive], list[float]]:
    """Every event comes in two halves, with a keep-alive due between them."""
    steps, times = [], []
    for number, chunk in enumerate(chunks):
        half, begin = len(chunk) // 2, number * 2 * GAP
        steps += [Arrive(begin, chunk[:half]), Arrive(begin + GAP, chunk[half:])]
        times.append(begin + GAP)
    return steps, times


CUTS: dict[str, Callable[[list[bytes]], tuple[list[Arrive], list[float]]]] = {
    "at once": at_once,
    "byte by byte": byte_by_byte,
    "with gaps": with_gaps,
    "with gaps inside": with_gaps_inside,
}
FORMS: dict[str, tuple[KeepAlive | None, bytes]] = {
    "none": (None, b""),
    "comment": (KeepAlive(text="x", form="comment"), b": x\n\n"),
    "comment1": (KeepAlive(text="x", form="comment1"), b": x\n"),
    "auto": (KeepAlive(text="x"), b": x\n\n"),
    "ping": (KeepAlive(form="ping"), b'event: ping\ndata: {"type":"ping"}\n\n'),
}
every_scenario = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda case: case["id"])
every_cut = pytest.mark.parametrize("cut", CUTS)


def expected_outcome(scenario: dict[str, Any]) -> RelayOutcome:
    if scenario["id"] in INCOMPLETE:
        return RelayOutcome.INCOMPLETE
    if scenario["id"] in REPAIRED:
        return RelayOutcome.COMPLETED_REPAIRED
    cut = RelayOutcome.ABORTED if scenario["eof"] == "abort" else RelayOutcome.TRUNCATED
    outcomes = {
        "completed": RelayOutcome.COMPLETED,
        "not_completed": cut,
        "error": RelayOutcome.FAILED_UPSTREAM,
    }
    return outcomes[scenario["expect"]["outcome"]]


def is_cut(scenario: dict[str, Any]) -> bool:
    return scenario["expect"]["outcome"] == "not_completed" or scenario["id"] in REPAIRED


def run(scenario: dict[str, Any], cut: str, keepalive: KeepAlive | None) -> Recording:
    steps: list[Step] = [*CUTS[cut](chunks_of(scenario))[0]]
    # The last gap is before the end.
    end = steps[-1].at + (GAP if "gaps" in cut else 0)
    steps.append(Break(end) if scenario["eof"] == "abort" else End(end))
    relay = Relay(PROTOCOLS[scenario["source"]], RelayConfig(keepalive=keepalive), now=0.0)
    return drive(relay, steps)


def forms_of(scenario: dict[str, Any]) -> list[tuple[KeepAlive | None, bytes]]:
    """The keep-alives that a protocol has."""
    return [FORMS[name] for name in FORMS if name != "ping" or scenario["source"] == "messages"]


def expected_writes(scenario: dict[str, Any], cut: str, keepalive: bytes) -> list[Write]:
    """What comes from upstream, when it is complete, and a keep-alive in every gap of 10 s."""
    chunks = chunks_of(scenario)
    times = CUTS[cut](chunks)[1]
    writes, last = [], 0.0
    end = times[-1] + (GAP if "gaps" in cut and is_cut(scenario) else 0)
    for at, chunk in [*zip(times, chunks, strict=True), (end, b"")]:
        while keepalive and at - last > 10:
            last += 10
            writes.append(Write(last, keepalive))
        writes.append(Write(at, chunk))
        last = at
    return writes[:-1]


def comparable(result: Result) -> Any:
    calls = [(call.name, call.id, call.arguments) for call in result.tool_calls]
    return result.text, result.reasoning, calls


@every_scenario
@every_cut
def test_downstream_is_upstream_with_keep_alives(scenario: dict[str, Any], cut: str) -> None:
    for keepalive, comment in forms_of(scenario):
        recording = run(scenario, cut, keepalive)
        writes = list(recording.writes)
        added: list[str] = []
        if is_cut(scenario):
            check_added(scenario, writes.pop().data)
            added = ["terminal" if scenario["id"] in REPAIRED else "error"]
        assert [event.kind for event in recording.told(Synthesized)] == added
        assert writes == expected_writes(scenario, cut, comment)
        assert len(recording.told(KeepAliveQueued)) == sum(write.data == comment for write in writes)


def check_added(scenario: dict[str, Any], frame: bytes) -> None:
    """Look at what the relay wrote itself."""
    source = scenario["source"]
    if scenario["id"] in REPAIRED:
        assert frame == REPAIRED[scenario["id"]]
    elif source == "responses":
        payload = payload_of(frame)
        assert frame.startswith(b"event: response.failed\n")
        assert (payload["type"], payload["sequence_number"]) == ("response.failed", 5)
        response = payload["response"]
        assert (response["id"], response["status"]) == ("resp_EX", "failed")
        assert response["error"] == {"code": "server_error", "message": INTERRUPTED}
    else:
        assert payload_of(frame) == ERRORS[source]
        assert frame.startswith(b"event: error\n") == (source == "messages")


@every_scenario
@every_cut
def test_the_outcome_and_what_the_answer_cost(scenario: dict[str, Any], cut: str) -> None:
    recording, expect = run(scenario, cut, KeepAlive()), scenario["expect"]
    relay = recording.relay
    assert relay.outcome is expected_outcome(scenario)
    assert recording.told(Closed) == [Closed(outcome=relay.outcome)]
    assert recording.events[-1][1] == Closed(outcome=relay.outcome)
    if "usage" in expect:
        told, output, cached = expect["usage"]
        # In the words of a client of another protocol: only Anthropic counts what is cached apart.
        whole = told + cached if scenario["source"] == "chat" else told
        usage = relay.usage
        assert (usage.input, usage.output, usage.cached_input) == (whole, output, cached)
        assert usage.status == "final"
    elif scenario["source"] != "messages":
        assert relay.usage.status == "none"


@every_scenario
@every_cut
def test_the_lengths(scenario: dict[str, Any], cut: str) -> None:
    expect, counters = scenario["expect"], run(scenario, cut, KeepAlive()).relay.counters
    stream = b"".join(chunks_of(scenario))
    assert counters.bytes_in == len(stream)
    assert counters.events == len(chunks_of(scenario))
    if "text" in expect:
        assert counters.text == len(expect["text"])
    if "thinking" in expect:
        assert counters.reasoning == len(expect["thinking"])
    read = collect(stream, PROTOCOLS[scenario["source"]])
    assert counters.arguments == read.accumulator.arguments_length
    if expect.get("tools"):
        assert counters.arguments == sum(len(call.arguments) for call in read.tool_calls)


@every_scenario
@every_cut
def test_a_client_reads_what_upstream_said(scenario: dict[str, Any], cut: str) -> None:
    protocol, expect = PROTOCOLS[scenario["source"]], scenario["expect"]
    reasoning = "" if scenario["id"] in REASONING_TAKEN_BACK else expect.get("thinking")
    upstream = collect(b"".join(chunks_of(scenario)), protocol)
    for keepalive, _ in forms_of(scenario):
        recording = run(scenario, cut, keepalive)
        read = collect(recording.data, protocol)
        assert comparable(read) == comparable(upstream)
        assert read.outcome is OUTCOMES[recording.relay.outcome]
        if "text" in expect:
            assert (read.text or read.accumulator.refusal) == expect["text"]
        if "thinking" in expect:
            assert read.reasoning == reasoning
        if "tools" in expect:
            # A call without a piece of arguments is one with none.
            assert {call.id: call.input or {} for call in read.tool_calls} == expect["tools"]


def test_a_relay_can_be_exchanged_for_a_copy_before_every_call() -> None:
    for scenario in SCENARIOS:
        steps = [*with_gaps_inside(chunks_of(scenario))[0], End(1000)]
        relays = [Relay(PROTOCOLS[scenario["source"]], now=0.0) for _ in range(2)]
        plain, copied = drive(relays[0], steps), drive(relays[1], steps, between=Relay.__copy__)
        assert (copied.writes, copied.events) == (plain.writes, plain.events)


# --- cases

CASES = {case["id"]: case for case in lines_of("relay_cases.jsonl")}
OF_A_READER = {"reasoning", "frames", "comments", "tail_bytes_unterminated"}
"""What is explained, or is about reading frames and tested with the vectors."""
NO_CLOCKS = RelayConfig(keepalive=None, stall=None)


def case_of(name: str, *asserted: str) -> tuple[dict[str, Any], Any]:
    """A case, of which these lines of what it expects are asserted: all there are."""
    case = CASES[name]
    assert set(case["expected"]) - OF_A_READER == set(asserted)
    return case, case["expected"]


def steps_of(case: dict[str, Any]) -> list[Step]:
    """What happens in a case."""
    makers: dict[str, Callable[[dict[str, Any], float], list[Step]]] = {
        "upstream": lambda step, at: [Arrive(at, base64.b64decode(step["b64"]))],
        "upstream_eof": lambda step, at: [End(at) if step["clean"] else Break(at)],
        "downstream_disconnect": lambda _step, at: [Leave(at)],
    }
    steps: list[Step] = []
    for step in case["steps"]:
        maker = makers.get(step["op"])
        steps += maker(step, float(step.get("t", 0))) if maker else []
    return steps


def upstream_of(case: dict[str, Any]) -> bytes:
    return b"".join(step.data for step in steps_of(case) if isinstance(step, Arrive))


def frames_of(stream: bytes) -> list[bytes]:
    assert stream.endswith(b"\n\n")
    return [frame + b"\n\n" for frame in stream.split(b"\n\n")[:-1]]


def test_every_case_has_a_test() -> None:
    tested = {name.split("_")[1].upper() for name in globals() if name.startswith("test_")}
    assert set(CASES) <= tested
    assert len(CASES) == 15


def test_po32_a_synthesized_end_goes_on_with_the_numbers_and_the_id() -> None:
    case, expected = case_of("PO32", "emit_event", "sequence_number", "response_id", "response_status")
    recording = drive(Relay(RESPONSES, NO_CLOCKS, now=0.0), steps_of(case))
    upstream = upstream_of(case)
    assert recording.data.startswith(upstream)
    last = payload_of(recording.data[len(upstream) :])
    assert last["type"] == expected["emit_event"]
    assert last["sequence_number"] == expected["sequence_number"]
    assert last["response"]["id"] == expected["response_id"]
    assert last["response"]["status"] == expected["response_status"]


def test_me12_an_error_does_not_merge_with_half_an_event() -> None:
    case, expected = case_of(
        "ME12", "downstream_is_prefix_of_events", "downstream_frames", "dropped_bytes", "diagnostics"
    )
    recording = drive(Relay(MESSAGES, NO_CLOCKS, now=0.0), steps_of(case))
    upstream = upstream_of(case)
    whole = upstream[: upstream.rindex(b"\n\n") + 2]
    frames = frames_of(recording.data)
    assert expected["downstream_is_prefix_of_events"]
    assert frames[0] == whole
    assert [payload_of(frame)["type"] for frame in frames] == expected["downstream_frames"]
    assert frames[-1] == base64.b64decode(case["steps"][-1]["b64"])
    assert (expected["dropped_bytes"], expected["diagnostics"]) == ("n > 0", ["incomplete_tail_dropped"])
    (dropped,) = recording.told(TailDropped)
    assert dropped.size == len(upstream) - len(whole) > 0
    assert not dropped.looks_terminal


def test_me17_a_clean_end_is_not_made_a_success() -> None:
    case, expected = case_of("ME17", "downstream_tail", "never")
    recording = drive(Relay(CHAT, NO_CLOCKS, now=0.0), steps_of(case))
    upstream = upstream_of(case)
    assert recording.data.startswith(upstream)
    tail = recording.data[len(upstream) :]
    assert expected["downstream_tail"] == "one in-band error event"
    assert payload_of(tail) == ERRORS["chat"]
    assert not any(word.split(" ")[0].encode() in tail for word in expected["never"])
    assert recording.relay.outcome is RelayOutcome.TRUNCATED


def test_tk01_no_keep_alive_inside_of_an_event() -> None:
    # The case defers the keep-alive. Here nothing of an event goes out before all of it has come, so
    # downstream is always between two events, and the client need not be without a sign of life.
    case, expected = case_of("TK01", "downstream_frames", "comment_positions", "keepalive_deferred")
    recording = drive(Relay(CHAT, RelayConfig(), now=0.0), steps_of(case), until=31.5)
    events = frames_of(upstream_of(case))
    comment = b": keep-alive\n\n"
    assert len(events) == expected["downstream_frames"]
    assert expected["comment_positions"] == "only at event boundaries"
    assert recording.writes == [
        *(Write(0, events[0]), Write(10, comment), Write(20, comment)),
        *(Write(21, events[1]), Write(31, comment)),
    ]


def test_tk03_signs_of_life_are_no_output() -> None:
    case, expected = case_of("TK03", "state_at_end", "first_output_seen")
    stall = Stall(idle_progress=None, first_output=case["steps"][0]["first_output_timeout"])
    relay = Relay(RESPONSES, RelayConfig(stall=stall), now=0.0)
    recording = drive(relay, steps_of(case), until=91)
    assert relay.outcome.value == expected["state_at_end"] == "stalled"
    assert recording.told(Stalled) == [Stalled(kind="first_output", since=0.0)]
    assert recording.ended_at == 90
    assert relay.output_started is expected["first_output_seen"]
    assert recording.told(OutputStarted) == []
    # A stall of progress sees through them, too; that of bytes does not.
    for clock, seen in (("idle_progress", 90.0), ("idle_bytes", None)):
        clocks: dict[str, Any] = {"idle_progress": None, clock: 90.0}
        relay = Relay(RESPONSES, RelayConfig(stall=Stall(**clocks)), now=0.0)
        assert drive(relay, steps_of(case), until=91).ended_at == seen


def test_tk04_arguments_of_tools_are_progress() -> None:
    case, expected = case_of("TK04", "state_at_end")
    stall = Stall(idle_progress=case["steps"][0]["stall_timeout"])
    relay = Relay(MESSAGES, RelayConfig(stall=stall), now=0.0)
    recording = drive(relay, steps_of(case), until=601)
    assert expected["state_at_end"] == "ok"
    assert relay.outcome is RelayOutcome.OPEN
    assert relay.phase is Phase.FORWARDING
    assert recording.told(Stalled) == []
    assert (relay.counters.arguments, relay.counters.last_progress_at) == (10, 600)


def test_tk06_nothing_comes_after_the_end() -> None:
    case, expected = case_of("TK06", "after_terminal")
    assert expected["after_terminal"] == "next_deadline() is None; tick() returns b''"
    relay = Relay(CHAT, RelayConfig(), now=0.0)
    output = relay.receive_data(upstream_of(case), 0.0)
    assert output.data == upstream_of(case)
    nothing = Output(b"", [], None, close_upstream=True, finished=True)
    assert output[2:] == nothing[2:]
    calls: list[Callable[[], Output]] = [
        lambda: relay.handle_timeout(10.0),
        lambda: relay.receive_eof(10.0),
        lambda: relay.handle_timeout(20.0),
    ]
    assert [call() for call in calls] == [nothing] * 3


@pytest.mark.parametrize("config", [RelayConfig(), RelayConfig.hopbase()], ids=["default", "hopbase"])
def test_tk07_keep_alives_begin_before_the_first_byte(config: RelayConfig) -> None:
    case, expected = case_of("TK07", "comments_at")
    recording = drive(Relay(CHAT, config, now=0.0), steps_of(case), until=45.5)
    assert recording.when(KeepAliveQueued) == expected["comments_at"]
    assert [write.at for write in recording.writes if write.at < 45] == expected["comments_at"]
    assert all(write.data.startswith(b": ") for write in recording.writes if write.at < 45)


@pytest.mark.parametrize("policy", ["forward", "drop"])
def test_tk10_a_comment_is_forwarded_as_one_or_dropped(policy: Any) -> None:
    case, expected = case_of("TK10", "downstream")
    assert "never as data" in expected["downstream"]
    (wanted,) = [step["b64"] for step in case["steps"] if step.get("policy") == policy]
    config = RelayConfig(keepalive=None, stall=None, comments=policy)
    assert drive(Relay(CHAT, config, now=0.0), steps_of(case)).data == base64.b64decode(wanted)


def test_px01_what_is_not_known_passes_byte_for_byte() -> None:
    case, expected = case_of("PX01", "downstream_equals_upstream")
    stream = upstream_of(case)
    for pieces in ([stream], [stream[place : place + 1] for place in range(len(stream))]):
        recording = drive(Relay(MESSAGES, NO_CLOCKS, now=0.0), [Arrive(0, piece) for piece in pieces])
        assert (recording.data == stream) is expected["downstream_equals_upstream"] is True


def test_px02_an_event_goes_out_in_one_piece() -> None:
    case, expected = case_of("PX02", "send_calls_per_event")
    relay, outputs, wanted = Relay(MESSAGES, NO_CLOCKS, now=0.0), list[bytes](), list[bytes]()
    for step in case["steps"]:
        data = base64.b64decode(step["b64"])
        if step["op"] == "upstream":
            outputs.append(relay.receive_data(data, 0.0).data)
        else:
            wanted.append(data)
    assert outputs == wanted
    assert len([output for output in outputs if output]) == expected["send_calls_per_event"]


def test_px07_contents_pass_as_they_are() -> None:
    # Rewriting is no part of a relay; what the case wants of one that does not rewrite is asserted.
    case, expected = case_of("PX07", "concatenation_preserved")
    assert expected["concatenation_preserved"]
    stream = upstream_of(case)
    ping = stream.index(b"event: ping")
    for body in (stream, stream[:ping] + b": comment\n\n" + stream[ping:]):
        recording = drive(Relay(MESSAGES, NO_CLOCKS, now=0.0), [Arrive(0, body)])
        assert recording.data == body
        assert collect(recording.data, MESSAGES).text == "key {{SECRET}} end"
        comments = [event.text for event in recording.told(Comment)]
        assert comments == (["comment"] if body is not stream else [])


def test_cb01_the_client_is_gone() -> None:
    case, expected = case_of("CB01", "adapter", "machine")
    assert expected["machine"] == "close() -> state CLOSED, snapshot usable, outcome cancelled"
    relay = Relay(CHAT, RelayConfig(accumulate=True), now=0.0)
    recording = drive(relay, steps_of(case))
    assert recording.left_at == [0.0]
    assert relay.phase is Phase.CLOSED
    assert (relay.accumulator.text, relay.accumulator.outcome) == ("a", Outcome.CANCELLED)
    assert relay.accumulator.snapshot()["choices"][0]["message"]["content"] == "a"
    assert relay.outcome is RelayOutcome.CANCELLED
    assert recording.data == upstream_of(case)
    # What an adapter needs for its part: it is told to close the upstream, also before the first byte.
    assert expected["adapter"] == "upstream closed within one loop turn, also before the first byte"
    output = Relay(CHAT, now=0.0).downstream_closed(0.0)
    assert output == Output(b"", [Closed(outcome=RelayOutcome.CANCELLED)], None, True, True)


def test_cb03_nothing_is_written_to_a_client_that_is_gone() -> None:
    case, expected = case_of("CB03", "adapter", "frames_count")
    assert expected["adapter"].startswith("nothing is yielded after close/cancel")
    stream = b"".join(chunks_of(case))
    relay = Relay(CHAT, now=0.0)
    events = relay.receive_data(stream, 0.0).events
    frames = [event for event in events if not isinstance(event, RelayEvent)]
    assert len(frames) == relay.counters.events == expected["frames_count"]
    left = relay.downstream_closed(1.0)
    assert (left.data, left.finished) == (b"", True)
    later = [relay.receive_eof(2.0), relay.receive_data(stream, 3.0), relay.handle_timeout(999.0)]
    assert later == [Output(b"", [], None, True, True)] * 3
    # What ends an answer is made when the input ends, and not when somebody tidies up.
    other = drive(Relay(CHAT, now=0.0), [Arrive(0, stream), End(0)])
    assert payload_of(other.data[len(stream) :]) == ERRORS["chat"]


def test_cb04_the_end_mark_ends_it_without_the_end_of_the_input() -> None:
    case, expected = case_of("CB04", "machine", "adapter", "frames_count")
    assert expected["machine"] == "is_terminal right after [DONE]"
    *chunks, last = chunks_of(case)
    relay = Relay(CHAT, now=0.0)
    for chunk in chunks:
        assert not relay.receive_data(chunk, 0.0).finished
    assert relay.receive_data(last, 0.0)[2:] == (None, True, True)
    assert relay.outcome is RelayOutcome.COMPLETED
    assert relay.counters.events == expected["frames_count"]
    # Whoever reads on for the sake of the connection may tell the relay, or not.
    assert expected["adapter"].startswith("optional drain")
    assert relay.receive_data(b"0\r\n\r\n", 0.1) == Output(b"", [], None, True, True)


def test_the_protocols_are_all_there() -> None:
    protocols: set[Protocol[Any, Any]] = {PROTOCOLS[scenario["source"]] for scenario in SCENARIOS}
    assert protocols == {CHAT, RESPONSES, MESSAGES}
    assert len(SCENARIOS) == 36
