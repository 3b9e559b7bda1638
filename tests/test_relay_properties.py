"""What is true of every relay, whatever comes in, however it is cut, and whenever.

The properties are the invariants of the relay's design: what goes out is what came in, and at most one
end that the relay makes up; keep-alives and cuts change nothing; it ends once; time does no harm; and
it keeps next to nothing. All cases are made up by Hypothesis, in `relay_runs`.
"""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable
from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from sse_machines import (
    CHAT,
    MESSAGES,
    RESPONSES,
    Comment,
    Drain,
    FrameReader,
    Hold,
    KeepAlive,
    ProtocolError,
    Receiver,
    Relay,
    RelayConfig,
    RelayOutcome,
    Violation,
)
from sse_machines._protocol import Done
from sse_machines.messages import Ping
from sse_machines.relay import (
    Closed,
    Diagnostic,
    FailedBeforeOutput,
    KeepAliveQueued,
    Phase,
    RelayEvent,
    Synthesized,
    TailDropped,
    Terminal,
)
from tests import relay_runs as made, wire
from tests.chat import wire as chat
from tests.relay_runs import Call, Case, Played, Turn, Witness, cases, play

PROPERTY = settings(
    max_examples=220,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
PROTOCOLS: tuple[Any, ...] = (CHAT, MESSAGES, RESPONSES)
UNTRACED = pytest.mark.untraced


# I1: what goes out is what came in.


@UNTRACED
@PROPERTY
@given(cases())
def test_what_goes_out_is_what_came_in(case: Case) -> None:
    """As soon as it is complete, in order, once, byte by byte, and nothing of what is behind its end."""
    check_forwarding(case)


def check_forwarding(case: Case) -> None:
    witness, out = Witness(case), b""
    for turn in play(case).turns:
        if turn.call.do == "again":
            witness = Witness(case)
        out += made.marked(turn)
        check_turn(case, witness, turn, out)
    # No LF behind a CR comes behind a keep-alive, and a byte-order mark comes first or never.
    assert not re.search(rb"\r\x01+\n", out)
    assert made.BOM not in out[1:]


def check_turn(case: Case, witness: Witness, turn: Turn, out: bytes) -> None:
    """Hold what has gone out up to a call against what has come in up to it."""
    witness.see(turn)
    assert witness.could_go_on or not witness.went_on
    core = made.joined(out.replace(made.MARK, b"")).removeprefix(made.BOM)
    wanted = made.joined(witness.wanted).removeprefix(made.BOM)
    if turn.phase in (Phase.HOLDING, Phase.FAILED):
        assert not core
    elif turn.phase is Phase.FORWARDING:
        assert core == wanted
        if witness.wanted.startswith(made.BOM):
            assert out.startswith((made.BOM, made.MARK))
    if witness.left:
        assert not turn.output.data
    elif turn.phase is Phase.CLOSED and turn.output.events:
        check_end(case, witness, turn, core, wanted)


def check_end(case: Case, witness: Witness, turn: Turn, core: bytes, wanted: bytes) -> None:
    """Hold the end of an answer against what came in."""
    made_up = [event.kind for event in turn.output.events if isinstance(event, Synthesized)]
    assert len(made_up) <= 1
    if witness.refused or (made_up and witness.replaced):
        # What makes it no event stream has not gone out, nor an error that another one replaces.
        wanted = next(begin for begin in witness.beginnings() if core.startswith(begin))
    assert core.startswith(wanted)
    tail = core[len(wanted) :]
    if made_up:
        check_made_up(case, witness, tail, made_up[0])
    elif tail and witness.end is not None:
        # A client that waits for the mark gets it behind the upstream's own error, too.
        assert case.config.done_after_error
        assert case.protocol is CHAT
        assert tail == chat.DONE
    elif tail:
        whole = made.joined(witness.reader.tail)
        assert case.config.eof_tail == "accept"
        assert turn.call.do == "eof"
        assert tail.startswith(whole)
        assert not tail[len(whole) :].strip(b"\r\n")


def check_made_up(case: Case, witness: Witness, tail: bytes, kind: str) -> None:
    """Hold what a relay makes up against the form that it has to have."""
    frames = made.frames_of(tail)
    assert b"".join(frame.raw for frame in frames) == tail
    last = frames.pop()
    if kind == "error" and case.protocol is CHAT and case.config.done_after_error:
        assert made.is_done(last)
        last = frames.pop()
    assert made.ends(case.protocol, last)
    assert len(frames) <= (case.protocol is RESPONSES and case.identity is not None)
    assert not any(made.ends(case.protocol, frame) for frame in frames)
    assert witness.end is None or witness.replaced or witness.refused


# I2: who reads what goes out reads what came in.


def read(protocol: Any, data: bytes) -> tuple[Receiver[Any], list[Any]]:
    """What a lenient receiver makes of bytes that may go on; an exception is the last of it."""
    receiver: Receiver[Any] = Receiver(protocol)
    receiver.receive_data(data)
    events: list[Any] = []
    try:
        events += receiver
    except ProtocolError as error:
        events.append((type(error), error.code))
    return receiver, events


def without_signs_of_life(events: list[Any]) -> list[Any]:
    """Events without what a relay sends because nothing else is sent."""
    return [
        event
        for event in events
        if not (isinstance(event, Comment | Ping) and made.KEEP_ALIVE.fullmatch(event.raw or b""))
    ]


@UNTRACED
@PROPERTY
@given(cases())
def test_who_reads_what_goes_out_reads_what_came_in(case: Case) -> None:
    """And at most one event more: two where a response had to be begun first."""
    # What is left out on purpose would be missed.
    config = attrs.evolve(case.config, suppress_usage=False, comments="forward")
    case = attrs.evolve(case, config=config)
    played = play(case)
    given_in = read(case.protocol, played.bytes_in)[1]
    if case.protocol is not CHAT:
        given_in = [event for event in given_in if not is_about_done(event)]
    out = without_signs_of_life(read(case.protocol, played.data)[1])
    made_up = sum(isinstance(event, Synthesized) for event in played.events)
    shared = next(
        (n for n, (one, other) in enumerate(zip(out, given_in, strict=False)) if one != other),
        min(len(out), len(given_in)),
    )
    more = [event for event in out[shared:] if not isinstance(event, Violation)]
    if more and case.protocol is CHAT and case.config.done_after_error:
        assert more.pop() == Done()
    allowed = 1 + (case.identity is not None and case.protocol is RESPONSES)
    # The last event may have lacked its blank line.
    assert len(more) <= (allowed if made_up else case.config.eof_tail == "accept")


def is_about_done(event: Any) -> bool:
    """Whether an event, a comment inside of it, or what is said against it, is of an end mark."""
    about = event.event if isinstance(event, Violation) else event
    frame = getattr(about, "frame", None)
    return frame is not None and made.is_done(frame)


@UNTRACED
@PROPERTY
@given(cases())
def test_every_event_is_told_once(case: Case) -> None:
    """The events of the upstream stand in the output in order, up to the one that ends the answer."""
    config = attrs.evolve(case.config, observe="full")
    case = attrs.evolve(case, config=config, attempts=case.attempts[:1])
    played = play(case)
    told = [event for event in played.events if not isinstance(event, RelayEvent)]
    expected = read(case.protocol, played.bytes_in)[1]
    if expected and isinstance(expected[-1], tuple):
        # A relay goes on where a receiver fails.
        expected.pop()
        assert told[: len(expected)] == expected
    elif any(isinstance(event, Terminal) for event in played.events):
        if len(told) > len(expected) and case.config.eof_tail == "accept":
            expected = read(case.protocol, played.bytes_in + b"\n\n")[1]
        assert told == expected[: len(told)]
    elif not any(isinstance(event, FailedBeforeOutput | Synthesized) for event in played.events):
        assert told == expected
    else:
        assert told[: len(expected)] == expected[: len(told)]
    # The last one may have got its blank line from the relay.
    assert all(event.raw.rstrip(b"\r\n") in played.bytes_in for event in told if event.raw is not None)


# I3: cuts change nothing.


Cut = Callable[[bytes], list[bytes]]


def with_chunks(case: Case, cut: Cut) -> Case:
    """The same case with each chunk cut into others that come at the same time.

    Time is told before bytes come, so that no cut decides what is due first.
    """
    attempts = []
    for calls in case.attempts:
        cut_up: list[Call] = []
        for call in calls:
            if call.do != "data":
                cut_up.append(call)
                continue
            cut_up.append(Call("tick", call.wait))
            cut_up += [Call("data", data=data) for data in cut(call.data)]
        attempts.append(tuple(cut_up))
    return attrs.evolve(case, attempts=tuple(attempts))


@UNTRACED
@PROPERTY
@given(cases(fine=False), st.data())
def test_cuts_change_nothing(case: Case, data: st.DataObject) -> None:
    check_cuts(case, lambda chunk: data.draw(made.cuts(chunk)))


def check_cuts(case: Case, cut: Cut) -> None:
    """Hold what comes of other chunks, at the same times, against what comes of those of a case."""
    # How much is read of an upstream whose client is gone is counted in whole chunks.
    case = attrs.evolve(case, config=attrs.evolve(case.config, drain=case.config.drain and Drain()))
    one, other = play(with_chunks(case, lambda chunk: [chunk])), play(with_chunks(case, cut))
    check_same_end(one, other)
    # A line end that was cut behind the last event does not go out any more.
    assert without_last_lf(one.data) == without_last_lf(other.data)
    assert by_time(one) == by_time(other)
    if case.config.observe == "full":
        # Who reads lightly may read, and so tell, a chunk that was cut; nothing else comes of that.
        assert upstream_events(one) == upstream_events(other)


def check_same_end(one: Played, other: Played) -> None:
    assert one.relay.outcome is other.relay.outcome
    assert one.relay.phase is other.relay.phase
    assert one.relay.usage == other.relay.usage
    # What stands in a chunk behind the end is counted, and what comes later is not.
    left_out: dict[str, Any] = {"bytes_in": 0, "bytes_out": 0}
    counters, others = one.relay.counters, other.relay.counters
    assert attrs.evolve(counters, **left_out) == attrs.evolve(others, **left_out)


def without_last_lf(data: bytes) -> bytes:
    """All but the line end that may go out or not, before the mark that may stand behind an error."""
    return data.removesuffix(b"data: [DONE]\n\n").removesuffix(b"\n")


def upstream_events(played: Played) -> list[Any]:
    return [made.comparable(event) for event in played.events if not isinstance(event, Diagnostic)]


def by_time(played: Played) -> dict[float, bytes]:
    """What went out at each time."""
    out: dict[float, bytes] = {}
    for turn in played.turns:
        out[turn.now] = out.get(turn.now, b"") + turn.output.data
    return {now: without_last_lf(data) for now, data in out.items() if data}


# I4: keep-alives change nothing.


@UNTRACED
@PROPERTY
@given(cases())
def test_keep_alives_change_nothing(case: Case) -> None:
    config = attrs.evolve(case.config, keepalive=None)
    # Without them there is another deadline to wait for, so none is waited for here.
    case = attrs.evolve(case, attempts=tuple(map(without_dues, case.attempts)))
    silent, alive = play(attrs.evolve(case, config=config)), play(case)
    check_same_end(silent, alive)
    assert [turn.progress_at for turn in silent.turns] == [turn.progress_at for turn in alive.turns]
    one, events = read(case.protocol, silent.data)
    other, more = read(case.protocol, alive.data)
    assert events == without_signs_of_life(more)
    assert (one.last_event_id, one.retry_ms) == (other.last_event_id, other.retry_ms)
    queued = sum(isinstance(event, KeepAliveQueued) for event in alive.events)
    assert len(made.KEEP_ALIVE.findall(alive.data)) == queued
    assert all(len(made.KEEP_ALIVE.findall(turn.output.data)) <= 1 for turn in alive.turns)


def without_dues(calls: tuple[Call, ...]) -> tuple[Call, ...]:
    return tuple(Call("tick", 9.0) if call.do == "due" else call for call in calls)


@UNTRACED
@PROPERTY
@given(cases())
def test_the_client_never_hears_nothing_for_longer(case: Case) -> None:
    """A keep-alive comes when it is due and not before, and none where the client is to hear nothing."""
    check_silence(case)


def check_silence(case: Case) -> None:
    keepalive = case.config.keepalive
    written, unsent = 0.0, 0
    for turn in play(case).turns:
        if turn.call.do == "unsent":
            # The client hears something until all is written.
            written = turn.now if unsent and not turn.call.size else written
            unsent = turn.call.size
        alive = any(isinstance(event, KeepAliveQueued) for event in turn.output.events)
        if alive:
            assert keepalive is not None
            assert turn.now - written >= keepalive.interval
            assert not unsent
            assert made.KEEP_ALIVE.fullmatch(turn.output.data)
        if turn.output.data:
            written = turn.now
        if keepalive is not None and turn.phase is Phase.FORWARDING and not unsent:
            assert turn.now - written < keepalive.interval
            assert turn.output.deadline is not None
            assert turn.output.deadline <= written + keepalive.interval
        if turn.phase in (Phase.HOLDING, Phase.FAILED) and alive:
            assert keepalive is not None
            assert keepalive.before_output


# I5 and I6: it ends once, and as the upstream ended.


@UNTRACED
@PROPERTY
@given(cases())
def test_it_ends_once(case: Case) -> None:
    played = play(case)
    frames = made.frames_of(played.data)
    terminals = [n for n, frame in enumerate(frames) if made.ends(case.protocol, frame)]
    if case.protocol is CHAT and case.config.done_after_error:
        # The mark is a part of the end where it follows an error.
        errors = [n for n in terminals if not made.is_done(frames[n])]
        terminals = errors or terminals
        if errors:
            assert made.is_done(frames.pop())
    assert len(terminals) <= 1
    # Nothing comes behind it, not even a sign of life.
    assert all(not made.joined(frame.raw).strip(b"\r\n") for n in terminals for frame in frames[n + 1 :])
    finished = played.turns[-1].output.finished
    outcomes = [event.outcome for event in played.events if isinstance(event, Closed)]
    assert len(outcomes) == finished
    assert played.relay.outcome is (outcomes[0] if outcomes else RelayOutcome.OPEN)
    if finished and played.relay.outcome is not RelayOutcome.CANCELLED:
        assert len(terminals) == 1
    assert not terminals or finished


@UNTRACED
@PROPERTY
@given(cases())
def test_it_completes_only_what_was_complete(case: Case) -> None:
    played = play(case)
    outcome = played.relay.outcome
    tail = FrameReader()
    tail.feed(played.bytes_in)
    frames = list(iter(tail.next_frame, None))
    if case.config.eof_tail == "accept" and tail.unfinished is not None:
        frames.append(tail.unfinished)
    end = next((frame for frame in frames if made.ends(case.protocol, frame)), None)
    if outcome is RelayOutcome.COMPLETED:
        assert end is not None
        assert made.COMPLETES[case.protocol.name](end)
    if outcome is RelayOutcome.COMPLETED_REPAIRED:
        assert case.config.repair_tail
        assert end is None or tail.unfinished is end
        assert made.lacks_nothing(case.protocol, frames)
        last = next(turn.call.do for turn in played.turns if turn.output.finished)
        assert last == "eof" or (last == "error" and case.protocol is MESSAGES)


WHOLE = [
    (protocol, plot, ending, tail)
    for protocol in PROTOCOLS
    for plot in made.PLOTS[protocol.name]
    for ending in ("eof", "error", "tick")
    for tail in (True, False)
]


@pytest.mark.parametrize(("protocol", "plot", "ending", "tail"), WHOLE)
def test_every_answer_ends_as_it_is(protocol: Any, plot: str, ending: str, *, tail: bool) -> None:
    """The same without chance: every way in which an answer breaks off."""
    data = made.PLOTS[protocol.name][plot]
    calls = (*(Call("data", data=frame) for frame in data), Call(ending, 1000.0))
    case = Case(protocol, RelayConfig(repair_tail=tail), (calls,))
    outcome = play(case).relay.outcome
    frames = made.frames_of(b"".join(data))
    end = next((frame for frame in frames if made.ends(protocol, frame)), None)
    lacking = end is None and made.lacks_nothing(protocol, frames)
    can_repair = ending == "eof" or (ending == "error" and protocol is MESSAGES)
    assert (outcome is RelayOutcome.COMPLETED_REPAIRED) == (lacking and tail and can_repair)
    assert end is not None or outcome is not RelayOutcome.COMPLETED
    if end is not None and made.COMPLETES[protocol.name](end):
        assert outcome is RelayOutcome.COMPLETED
    broken = {"eof": "truncated", "error": "aborted", "tick": "stalled"}
    assert (outcome == broken[ending]) == (end is None and not (lacking and tail and can_repair))


@pytest.mark.parametrize("accept", [True, False])
@pytest.mark.parametrize("ending", ["eof", "error"])
@pytest.mark.parametrize("lost", [1, 2])
@pytest.mark.parametrize(("protocol", "plot"), [(p, x) for p in PROTOCOLS for x in made.PLOTS[p.name]])
def test_a_last_event_without_its_blank_line(
    protocol: Any, plot: str, lost: int, ending: str, *, accept: bool
) -> None:
    """It counts where it is asked for, ends the answer, and the input has ended by itself."""
    frames = made.PLOTS[protocol.name][plot]
    whole = b"".join(frames)
    counts = accept and ending == "eof" and made.ends(protocol, made.frames_of(frames[-1])[0])
    config = RelayConfig(eof_tail="accept" if accept else "discard")
    one = ended(protocol, config, whole[:-lost], ending)
    other = ended(protocol, config, whole if counts else b"".join(frames[:-1]), ending)
    assert one.data == other.data
    assert one.relay.outcome is other.relay.outcome
    dropped = [event.size for event in one.events if isinstance(event, TailDropped)]
    over = any(isinstance(event, Terminal) for event in one.events)
    assert dropped == ([] if over else [len(frames[-1]) - lost])


def ended(protocol: Any, config: RelayConfig, data: bytes, ending: str) -> Played:
    return play(Case(protocol, config, ((Call("data", data=data), Call(ending)),)))


# I7: time does no harm.


@UNTRACED
@PROPERTY
@given(cases(fine=False), st.sampled_from([0.0, -1.0, 0.5, 0.999]))
def test_an_early_timeout_changes_nothing(case: Case, share: float) -> None:
    before = 0.0

    def between(relay: Relay, now: float) -> Relay:
        """Wake a relay before it asked to be, twice, and go on with it."""
        nonlocal before
        deadline = copy.copy(relay).handle_timeout(before).deadline
        early = before if deadline is None else before + share * (deadline - before)
        for _ in range(2):
            output = relay.handle_timeout(min(early, now))
            assert (output.data, output.events, output.deadline) == (b"", [], deadline)
        before = now
        return relay

    assert_same(play(case), play(case, between))


def assert_same(one: Played, other: Played) -> None:
    """Hold two runs to the same outputs, call by call."""
    assert made.comparable_turns(other) == made.comparable_turns(one)
    assert made.raws(other) == made.raws(one)
    check_same_end(one, other)
    assert one.relay.counters == other.relay.counters


@UNTRACED
@PROPERTY
@given(cases(fine=False))
def test_a_relay_is_a_value(case: Case) -> None:
    """It goes on identically after a pickle, and whatever its copies do."""

    def between(relay: Relay, now: float) -> Relay:
        twin = copy.copy(relay)
        relay = pickle.loads(pickle.dumps(relay))
        # What the one that is left behind does is no business of its copies.
        copy.copy(relay).receive_eof(now + 1000.0)
        twin.receive_data(b"data: [DONE]\n\nevent: error\n", now)
        return relay

    assert_same(play(case), play(case, between))


# I8: it keeps next to nothing.


@UNTRACED
@settings(PROPERTY, max_examples=100)
@given(made.loops())
def test_it_keeps_no_more_of_a_long_answer(case: Case) -> None:
    """What a relay keeps does not grow while the same comes again and again."""
    relay, most = case.relay(), []
    begin, loop = case.attempts
    relay.receive_data(begin[0].data, 0.0)
    for _ in range(3):
        sizes = []
        for _ in range(30):
            for call in loop:
                relay.receive_data(call.data, 0.0)
                sizes.append(len(pickle.dumps(relay)))
        most.append(max(sizes))
    # Numbers take more room as they grow, and once a chunk is known that repeats, that is kept.
    assert most[2] <= most[1] + 32
    assert most[1] <= most[0] + 1000


@UNTRACED
@settings(PROPERTY, max_examples=150)
@given(cases(fine=False))
def test_what_is_held_is_all_that_is_kept(case: Case) -> None:
    """What is not complete, what is held back, and little else."""
    empty, fed = len(pickle.dumps(case.relay())), 0
    played = Played(case, case.relay())
    for call in case.attempts[0]:
        made.make(played, call, None)
        fed += len(call.data)
        held = fed if played.relay.phase in (Phase.HOLDING, Phase.FAILED) else 0
        tail = len(played.relay._upstream.tail)
        assert len(pickle.dumps(played.relay)) <= empty + 2 * held + tail + KEPT


KEPT = 6_000
"""What a relay remembers of an answer, such as the item that is open and the chunk that repeats."""


# Light reading.


@UNTRACED
@PROPERTY
@given(made.sound_cases())
def test_who_reads_lightly_forwards_the_same(case: Case) -> None:
    full = play(attrs.evolve(case, config=attrs.evolve(case.config, observe="full")))
    light = play(attrs.evolve(case, config=attrs.evolve(case.config, observe="light")))
    assert [turn.output.data for turn in light.turns] == [turn.output.data for turn in full.turns]
    assert [turn.output.deadline for turn in light.turns] == [
        turn.output.deadline for turn in full.turns
    ]
    assert [turn.progress_at for turn in light.turns] == [turn.progress_at for turn in full.turns]
    assert light.relay.outcome is full.relay.outcome
    assert light.relay.usage == full.relay.usage
    uncounted: dict[str, Any] = {"text": None, "reasoning": None, "arguments": None}
    assert light.relay.counters == attrs.evolve(full.relay.counters, **uncounted)


# What the properties have found, for good, whatever Hypothesis makes up next time.


def single_bytes(data: bytes) -> list[bytes]:
    return [data[n : n + 1] for n in range(len(data))]


def found(protocol: Any, *calls: Call, **config: Any) -> Case:
    keepalive = KeepAlive(text=made.TEXT, before_output=True)
    return Case(protocol, RelayConfig(**{"keepalive": keepalive, "stall": None, **config}), (calls,))


def arrive(data: bytes, wait: float = 0.0) -> Call:
    return Call("data", wait, data)


CRLF_USAGE = chat.USAGE.replace(b"\n", b"\r\n")
CRLF_DELTA = wire.text(0, "b").replace(b"\n", b"\r\n")
SPOKEN = wire.start() + wire.block_start(0, text="") + wire.text(0, "a")
ERROR_AT_ONCE = wire.start() + wire.ERROR
FOUND = {
    "a comment to drop is cut in its line end": found(
        CHAT, arrive(b": c\r\n\r\n"), Call("eof"), comments="drop"
    ),
    "a blank line behind an event behind a comment to drop": found(
        *(MESSAGES, arrive(SPOKEN), arrive(b": c\n"), arrive(wire.text(0, "b"))),
        *(arrive(b"\n"), Call("eof")),
        comments="drop",
    ),
    "a blank line behind what nobody reads behind a comment to drop": found(
        *(MESSAGES, arrive(SPOKEN), arrive(b": c\n"), arrive(wire.text(0, "b") + b"\n"), Call("eof")),
        observe="light",
        comments="drop",
    ),
    "usage to drop is cut in its line end": found(
        CHAT, arrive(CRLF_USAGE), Call("eof"), suppress_usage=True
    ),
    "a stray mark is cut in its line end": found(MESSAGES, arrive(b"data: [DONE]\r\n\r\n"), Call("eof")),
    "an error comes at once, with a start": found(MESSAGES, arrive(ERROR_AT_ONCE), hold=Hold()),
    "a comment among fields": found(
        MESSAGES, arrive(b"id: 6\n: c\n\nretry: 7\n: c\n\n"), Call("eof"), comments="drop"
    ),
    "half a block behind a line that ends in CR": found(
        CHAT, arrive(b": c\r"), arrive(b"d"), arrive(b"ata: 1\n\n"), Call("eof")
    ),
    "bytes are not written yet when an attempt has failed": found(
        CHAT, arrive(chat.ERROR), Call("unsent", size=500), Call("tick", 20.0), hold=Hold()
    ),
    "a keep-alive in a line end": found(
        CHAT, arrive(b": c\r"), Call("tick", 11.0), arrive(b"\n: d\n"), Call("eof")
    ),
    "a keep-alive in the line end of what nobody reads": found(
        *(MESSAGES, arrive(SPOKEN), arrive(CRLF_DELTA[:-1]), Call("tick", 11.0)),
        *(arrive(CRLF_DELTA[-1:]), Call("eof")),
        observe="light",
    ),
    "a keep-alive before the byte-order mark": found(
        CHAT, Call("tick", 11.0), arrive(made.BOM + chat.text("a")), Call("eof")
    ),
    "a keep-alive before the byte-order mark that is held": found(
        CHAT, arrive(made.BOM), Call("tick", 11.0), arrive(chat.text("a")), Call("eof"), hold=Hold()
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found(name: str) -> None:
    check_forwarding(FOUND[name])
    check_cuts(FOUND[name], single_bytes)
    check_silence(FOUND[name])


def test_a_block_that_the_client_saw_begin_is_open() -> None:
    """Though a delta of it came before: what the client has of it has no end."""
    frames = (wire.start(), wire.text(0, "a"), wire.block_start(0, text=""), wire.message_delta())
    case = found(MESSAGES, arrive(b"".join(frames)), Call("eof"))
    assert play(case).relay.outcome is RelayOutcome.TRUNCATED
