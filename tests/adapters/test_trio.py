"""Reading and relaying on trio, in virtual time, and cancelled wherever trio can cancel."""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, TypeVar

import outcome
import pytest
import trio
from trio.testing import MemoryReceiveStream, MockClock, memory_stream_one_way_pair

from sse_machines import (
    CHAT,
    MESSAGES,
    Drain,
    EndOfStream,
    ErrorInfo,
    Event,
    Hold,
    KeepAlive,
    NotAnEventStream,
    Outcome,
    Receiver,
    Relay,
    RelayConfig,
    RelayOutcome,
    RemoteProtocolError,
    Stall,
    StreamTruncated,
)
from sse_machines.adapters.trio import iter_events, relay, relayed
from sse_machines.relay import Closed, FailedBeforeOutput
from sse_machines.testing import Arrive, Break, End, Step, drive
from tests.adapters.streams import FOLDER, SAMPLES, events_of, pieces

T = TypeVar("T")

SAMPLE = SAMPLES["messages"]
EVENTS = events_of(SAMPLE, MESSAGES)
BEGIN = SAMPLE[: SAMPLE.index(b"\n\n") + 2]
REST = SAMPLE[len(BEGIN) :]
QUIET = RelayConfig(keepalive=None, stall=None)
IMPATIENT = RelayConfig(keepalive=None, stall=Stall(idle_progress=90.0))
INTERRUPTED = b"Response stream interrupted, please retry"
FOREVER = object()
# In virtual seconds: nothing here takes so long, unless it takes for ever.
PATIENCE = 1_000_000
ANSWERS = {
    path.name: path.read_bytes()
    for folder in (FOLDER, FOLDER / "gateway")
    for path in folder.iterdir()
    if path.name.endswith(".sse")
}
# What runs first in a turn of trio's loop is left to chance: enough runs see every order.
ORDERS = range(20)


def run(main: Callable[..., Awaitable[T]], *args: Any) -> T:
    """Run to the end, in no time, and see that no task is left. Who waits for ever fails."""

    async def rescue(stuck: trio.lowlevel.Task) -> None:
        # What is shielded does not notice that its time is over.
        await trio.sleep(2 * PATIENCE)
        trio.lowlevel.reschedule(stuck, outcome.Error(AssertionError("waits for ever")))

    async def checked() -> T:
        trio.lowlevel.spawn_system_task(rescue, trio.lowlevel.current_task())
        before = trio.lowlevel.current_statistics().tasks_living
        with trio.fail_after(PATIENCE):
            result = await main(*args)
        assert trio.lowlevel.current_statistics().tasks_living == before
        return result

    return trio.run(checked, clock=MockClock(autojump_threshold=0))


def read_whole(data: bytes) -> list[Event]:
    """What a receiver without any adapter gives."""
    receiver = Receiver.detecting()
    receiver.receive_data(data)
    events = list(receiver)
    receiver.receive_eof()
    return events + list(receiver)


class Script:
    """An asynchronous iterable: bytes, times to wait, errors to raise. It notes what becomes of it."""

    def __init__(self, *steps: Any) -> None:
        self.steps = list(steps)
        self.given = 0
        self.closed = 0

    def __aiter__(self) -> Script:
        return self

    async def __anext__(self) -> bytes:
        while self.steps:
            step = self.steps.pop(0)
            if isinstance(step, bytes):
                self.given += 1
                return step
            if isinstance(step, Exception):
                raise step
            await trio.sleep(math.inf if step is FOREVER else step)
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self.closed += 1
        await trio.lowlevel.checkpoint()


class Fragile(Script):
    """Cannot bear to be cancelled: what it holds in its hands is lost then."""

    async def __anext__(self) -> bytes:
        data = await super().__anext__()
        await trio.lowlevel.checkpoint()
        return data


async def generator(*steps: Any) -> AsyncIterator[bytes]:
    """Cannot bear to be cancelled either: it is over then."""
    async for data in Script(*steps):
        yield data


@contextlib.asynccontextmanager
async def stream_of(*steps: Any) -> AsyncIterator[MemoryReceiveStream]:
    """A stream, and a peer that writes into it."""
    send, receive = memory_stream_one_way_pair()

    async def write() -> None:
        async for data in Script(*steps):
            await send.send_all(data)
        await send.aclose()

    async with trio.open_nursery() as tasks:
        tasks.start_soon(write)
        yield receive
        tasks.cancel_scope.cancel()


@contextlib.asynccontextmanager
async def as_context(source: Any) -> AsyncIterator[Any]:
    yield source


def opening(source: Any, left: list[str] | None = None) -> Callable[[], Any]:
    """A function whose context gives a source."""

    @contextlib.asynccontextmanager
    async def open_source() -> AsyncIterator[Any]:
        await trio.lowlevel.checkpoint()
        try:
            yield source
        finally:
            if left is not None:
                left.append("left")

    return open_source


SOURCES: dict[str, Callable[..., Any]] = {
    "iterable": lambda *steps: as_context(Script(*steps)),
    "fragile iterable": lambda *steps: as_context(Fragile(*steps)),
    "generator": lambda *steps: as_context(generator(*steps)),
    "stream": stream_of,
    "function": lambda *steps: as_context(opening(Fragile(*steps))),
}


async def take_all(events: AsyncIterator[T], into: list[T]) -> None:
    async for event in events:
        into.append(event)  # noqa: PERF401 - what comes before an error counts


async def read(source: Any, protocol: Any = MESSAGES) -> list[Any]:
    async with iter_events(source, protocol) as events:
        return [event async for event in events]


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("name", ANSWERS)
def test_every_source_gives_the_events_that_a_receiver_gives(kind: str, name: str) -> None:
    async def main(size: int) -> None:
        async with SOURCES[kind](*pieces(ANSWERS[name], size)) as source:
            assert await read(source, Receiver.detecting()) == read_whole(ANSWERS[name])

    for size in (7, 100, 100_000):
        run(main, size)


@pytest.mark.parametrize("kind", SOURCES)
def test_every_byte_can_come_alone(kind: str) -> None:
    async def main() -> None:
        async with SOURCES[kind](*pieces(SAMPLE, 1)) as source:
            assert await read(source) == EVENTS

    run(main)


def test_empty_chunks_are_no_end() -> None:
    assert run(read, Script(b"", SAMPLE[:900], b"", b"", SAMPLE[900:])) == EVENTS


def test_a_receiver_of_the_callers_own_is_used() -> None:
    async def main() -> None:
        receiver = Receiver.detecting(accumulate=True)
        async with iter_events(Script(SAMPLE), receiver) as events:
            assert events.receiver is receiver
            assert [event async for event in events] == EVENTS
            assert events.response is None
        assert receiver.accumulator.text.startswith("Let me look")

    run(main)


def test_the_head_of_a_source_that_has_one_is_at_hand() -> None:
    class Body(Script):
        response = "the head"

    async def main() -> None:
        async with iter_events(Body(SAMPLE), MESSAGES) as events:
            assert events.response == "the head"

    run(main)


def test_a_strict_receiver_stays_strict_and_its_error_closes_the_source() -> None:
    async def main() -> None:
        source = Script(BEGIN, BEGIN, FOREVER)
        seen: list[Any] = []
        async with iter_events(source, Receiver(MESSAGES, strict=True)) as events:
            with pytest.raises(RemoteProtocolError) as raised:
                await take_all(events, seen)
            assert source.closed == 1
            with pytest.raises(RemoteProtocolError) as again:
                await anext(events)
            assert again.value is raised.value
            assert again.value.__cause__ is None
        assert seen == EVENTS[:1]

    run(main)


def test_nothing_is_read_behind_the_end_and_the_source_is_closed_before_that_is_told() -> None:
    async def main() -> None:
        source = Script(SAMPLE, FOREVER)
        async with iter_events(source, MESSAGES) as events:
            async for event in events:
                assert bool(source.closed) == isinstance(event, EndOfStream)
        assert trio.current_time() == 0.0

    run(main)


def test_a_peer_that_keeps_its_connection_open_holds_nobody_up() -> None:
    async def main() -> None:
        send, receive = memory_stream_one_way_pair()
        await send.send_all(SAMPLE)
        async with iter_events(receive, MESSAGES) as events:
            assert [event async for event in events] == EVENTS
            with pytest.raises(trio.BrokenResourceError):
                await send.send_all(b"more")

    run(main)


def test_an_iterator_that_is_over_stays_over() -> None:
    async def main() -> None:
        async with iter_events(Script(SAMPLE), MESSAGES) as events:
            assert len([event async for event in events]) == len(EVENTS)
            assert [event async for event in events] == []

    run(main)


@pytest.mark.parametrize(
    "error", [OSError("reset"), RuntimeError("of some library"), trio.BrokenResourceError("broken")]
)
@pytest.mark.parametrize("kind", ["iterable", "generator", "function"])
def test_a_source_that_fails_truncates_the_answer_behind_all_that_came(
    error: Exception, kind: str
) -> None:
    async def main() -> None:
        seen: list[Any] = []
        async with (
            SOURCES[kind](SAMPLE[:900], 1, SAMPLE[900:1500], error) as source,
            iter_events(source, MESSAGES) as events,
        ):
            with pytest.raises(StreamTruncated) as raised:
                await take_all(events, seen)
            assert raised.value.__cause__ is error
            with pytest.raises(StreamTruncated) as again:
                await anext(events)
            assert again.value is raised.value
            assert again.value.__cause__ is error
        receiver = Receiver(MESSAGES)
        receiver.receive_data(SAMPLE[:1500])
        assert seen == list(receiver)

    run(main)


def test_the_source_is_closed_before_an_error_is_raised() -> None:
    async def main(source: Script, error: type[Exception]) -> None:
        async with iter_events(source, MESSAGES) as events:
            with pytest.raises(error):
                await take_all(events, [])
            assert source.closed == 1

    run(main, Script(SAMPLE[:900], OSError()), StreamTruncated)
    run(main, Script(SAMPLE[:900]), StreamTruncated)
    run(main, Script(b'{"error": {"message": "no"}}\n\n', FOREVER), NotAnEventStream)


def test_a_source_that_ends_early_truncates_the_answer() -> None:
    with pytest.raises(StreamTruncated) as raised:
        run(read, Script(SAMPLE[:900]))
    assert raised.value.__cause__ is None


def test_a_source_that_fails_behind_the_end_is_nobodys_business() -> None:
    assert run(read, Script(SAMPLE, OSError("reset"))) == EVENTS
    unmarked = SAMPLES["chat"].removesuffix(b"data: [DONE]\n\n")
    events = run(read, Script(unmarked, OSError("reset")), CHAT)
    assert events[-1] == EndOfStream(outcome=Outcome.COMPLETED_NO_DONE)


def test_a_last_event_without_its_blank_line_counts_unless_the_source_has_failed() -> None:
    unfinished = SAMPLE.removesuffix(b"\n\n")
    assert run(read, Script(unfinished))[-1] == EndOfStream(outcome=Outcome.COMPLETED)
    with pytest.raises(StreamTruncated):
        run(read, Script(unfinished, OSError("reset")))


@pytest.mark.parametrize("taken", [0, 1, 5])
def test_the_source_is_closed_where_the_context_is_left(taken: int) -> None:
    async def main() -> None:
        left: list[str] = []
        source = Script(SAMPLE[:1500], FOREVER)
        for it in (source, opening(Script(SAMPLE[:1500], FOREVER), left)):
            async with iter_events(it, MESSAGES) as events:
                for _ in range(taken):
                    await anext(events)
        assert source.closed == 1
        # What was never opened need not be closed.
        assert left == ["left"] * bool(taken)

    run(main)


def test_a_source_is_closed_once() -> None:
    async def main() -> None:
        source = Script(SAMPLE)
        async with iter_events(source, MESSAGES) as events:
            assert [event async for event in events] == EVENTS
            assert [event async for event in events] == []
        assert source.closed == 1

    run(main)


@pytest.mark.parametrize(
    "error", [ZeroDivisionError(), StopAsyncIteration(), OSError(), KeyboardInterrupt(), GeneratorExit()]
)
@pytest.mark.parametrize("of", [iter_events, relayed])
def test_an_error_of_the_body_comes_out_as_it_is(error: BaseException, of: Any) -> None:
    async def main() -> None:
        source = Script(SAMPLE[:900], FOREVER)
        what = MESSAGES if of is iter_events else machine()
        with pytest.raises(type(error)) as raised:
            await use(of(source, what))
        assert raised.value is error
        assert source.closed == 1

    async def use(context: Any) -> None:
        async with context as things:
            await anext(things)
            raise error

    run(main)


def test_a_timeout_of_the_callers_own_is_the_callers() -> None:
    async def main() -> None:
        source = Script(SAMPLE[:900], FOREVER)
        seen: list[Any] = []
        with trio.move_on_after(7) as scope:
            async with iter_events(source, MESSAGES) as events:
                await take_all(events, seen)
        assert scope.cancelled_caught
        assert trio.current_time() == 7.0
        assert len(seen) > 3
        assert source.closed == 1

    run(main)


def test_what_had_come_can_be_taken_after_closing() -> None:
    async def main() -> None:
        async with iter_events(Script(SAMPLE[:900], FOREVER), MESSAGES) as events:
            seen = [await anext(events)]
            await events.aclose()
            with pytest.raises(StreamTruncated) as raised:
                await take_all(events, seen)
            assert seen == EVENTS[: len(seen)]
            assert len(seen) > 3
            assert isinstance(raised.value.__cause__, ConnectionAbortedError)

    run(main)


def test_what_was_read_ahead_can_be_taken_after_closing() -> None:
    async def main() -> None:
        async with iter_events(Script(BEGIN, REST[:900], FOREVER), MESSAGES) as events:
            seen = [await anext(events)]
            await trio.testing.wait_all_tasks_blocked()
            await events.aclose()
            with pytest.raises(StreamTruncated):
                await take_all(events, seen)
            assert len(seen) > 3

    run(main)


@pytest.mark.parametrize("kind", ["iterable", "function"])
def test_what_was_closed_before_it_was_read_is_not_read_and_truncated(kind: str) -> None:
    async def main() -> None:
        script, left = Script(SAMPLE), list[str]()
        source = script if kind == "iterable" else opening(script, left)
        async with iter_events(source, MESSAGES) as events:
            await events.aclose()
            with pytest.raises(StreamTruncated) as raised:
                await anext(events)
            assert isinstance(raised.value.__cause__, ConnectionAbortedError)
        assert script.given == 0
        assert script.closed == (kind == "iterable")
        assert left == []

    run(main)


def test_whoever_waits_while_another_closes_is_told() -> None:
    async def main() -> None:
        async with iter_events(Script(FOREVER), MESSAGES) as events, trio.open_nursery() as tasks:

            async def wait() -> None:
                with pytest.raises(StreamTruncated):
                    await anext(events)

            tasks.start_soon(wait)
            await trio.sleep(1)
            await events.aclose()

    run(main)


def test_a_source_without_a_way_to_close_it() -> None:
    class Bare:
        def __aiter__(self) -> AsyncIterator[bytes]:
            return Script(SAMPLE, FOREVER)

    assert run(read, Bare()) == EVENTS


def test_a_source_that_is_closed_without_waiting() -> None:
    class Sync(Script):
        aclose = None  # type: ignore[assignment]

        def close(self) -> None:
            self.closed += 1

    source = Sync(SAMPLE)
    assert run(read, source) == EVENTS
    assert source.closed == 1


def test_a_source_that_cannot_be_closed_says_so() -> None:
    class Broken(Script):
        async def aclose(self) -> None:
            raise ValueError("not closed")

    with pytest.raises(ValueError, match="not closed"):
        run(read, Broken(SAMPLE))


def test_a_context_that_cannot_be_left_says_so() -> None:
    @contextlib.asynccontextmanager
    async def broken() -> AsyncIterator[Any]:
        try:
            yield Script(SAMPLE, FOREVER)
        finally:
            raise ValueError("not left")

    with pytest.raises(ValueError, match="not left"):
        run(read, broken)


class Body:
    """An iterable whose iterator is a generator: nobody else can close that one."""

    def __init__(self, *steps: Any) -> None:
        self.steps = steps
        self.begun = 0
        self.ended = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        self.begun += 1
        try:
            async for data in Script(*self.steps):
                yield data
        finally:
            self.ended += 1


@pytest.mark.parametrize("taken", [1, 100])
@pytest.mark.parametrize("steps", [[SAMPLE, b": more", b": and more"], [SAMPLE, FOREVER], [SAMPLE]])
@pytest.mark.parametrize("of", ["iterable", "context of an iterable", "context of a generator"])
def test_a_generator_that_an_iterable_reads_with_is_closed_with_it(
    taken: int, steps: list[Any], of: str
) -> None:
    async def main() -> None:
        body = Body(*steps)
        source: Any = body
        if of.startswith("context"):
            source = opening(aiter(body) if of.endswith("generator") else body)
        async with iter_events(source, MESSAGES) as events:
            for _ in range(taken):
                await anext(events, None)
            # A chunk is read ahead now.
            await trio.testing.wait_all_tasks_blocked()
        assert (body.begun, body.ended) == (1, 1)

    run(main)
    # One that was not closed is found by the garbage collector, and warned of.
    gc.collect()


# Cancelling.


class Cancelling(trio.abc.Instrument):
    """Cancels a scope after so many steps of whatever task; before all of them for 0."""

    def __init__(self, scope: trio.CancelScope, steps: int) -> None:
        self._scope = scope
        self._steps = steps
        if steps == 0:
            scope.cancel()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        del task
        self._steps -= 1
        if self._steps == 0:
            self._scope.cancel()


@contextlib.contextmanager
def cancelling(steps: int) -> Iterator[trio.CancelScope]:
    """Run what is inside, but cancel it after so many steps of the program, if it takes so many."""
    with trio.CancelScope() as scope:
        instrument = Cancelling(scope, steps)
        trio.lowlevel.add_instrument(instrument)
        try:
            yield scope
        finally:
            trio.lowlevel.remove_instrument(instrument)


def at_every_step(main: Callable[[int], Awaitable[bool]]) -> int:
    """Run something that is cancelled after 0, 1, 2, ... steps, until it ends before it is cancelled.

    Returns:
        How many steps it has.
    """
    for steps in itertools.count():
        cancelled = {run(main, steps) for _ in range(3)}
        if True not in cancelled:
            return steps
    raise AssertionError


def slowly(*data: bytes) -> list[Any]:
    """Pieces that come after a turn of the loop each, and two at a time now and then."""
    return [step for number, piece in enumerate(data) for step in (0, piece)[number % 3 == 2 :]]


@pytest.mark.parametrize("kind", SOURCES)
def test_whoever_is_cancelled_at_any_step_goes_on_where_it_was(kind: str) -> None:
    async def main(steps: int) -> bool:
        seen: list[Any] = []
        async with (
            SOURCES[kind](*slowly(*pieces(SAMPLE, 500)), FOREVER) as source,
            iter_events(source, MESSAGES) as events,
        ):
            with cancelling(steps) as scope:
                await take_all(events, seen)
            cancelled = scope.cancelled_caught
            await take_all(events, seen)
            assert seen == EVENTS
        return cancelled

    assert at_every_step(main) > 10


@pytest.mark.parametrize("kind", SOURCES)
def test_whoever_is_cancelled_again_and_again_loses_nothing(kind: str) -> None:
    async def main(steps: int) -> bool:
        seen: list[Any] = []
        cancelled = False
        async with (
            SOURCES[kind](*slowly(*pieces(SAMPLE, 500)), FOREVER) as source,
            iter_events(source, MESSAGES) as events,
        ):
            for _ in range(1000):
                with cancelling(steps) as scope:
                    seen.append(await anext(events, FOREVER))
                cancelled = cancelled or scope.cancelled_caught
                if seen and seen[-1] is FOREVER:
                    break
                if scope.cancelled_caught:
                    # It is the time after it that brings the next one.
                    await trio.lowlevel.checkpoint()
        assert seen == [*EVENTS, FOREVER]
        return cancelled

    assert at_every_step(main) > 2


@pytest.mark.parametrize("kind", SOURCES)
def test_an_error_survives_a_cancelled_call(kind: str) -> None:
    async def main(steps: int) -> bool:
        seen: list[Any] = []
        async with (
            SOURCES[kind](*slowly(*pieces(SAMPLE[:1500], 500))) as source,
            iter_events(source, MESSAGES) as events,
        ):
            with cancelling(steps) as scope, contextlib.suppress(StreamTruncated):
                await take_all(events, seen)
            with pytest.raises(StreamTruncated):
                await take_all(events, seen)
        receiver = Receiver(MESSAGES)
        receiver.receive_data(SAMPLE[:1500])
        assert seen == list(receiver)
        return scope.cancelled_caught

    assert at_every_step(main) > 5


def test_whoever_is_cancelled_inside_of_the_context_closes_the_source() -> None:
    async def main(steps: int) -> bool:
        left: list[str] = []
        plain = Script(*slowly(*pieces(SAMPLE, 500)), FOREVER)
        opened = opening(Script(*slowly(*pieces(SAMPLE, 500)), FOREVER), left)
        cancelled = False
        for source in (plain, opened):
            begun = False
            with cancelling(steps) as scope:
                async with iter_events(source, MESSAGES) as events:
                    begun = True
                    await take_all(events, [])
            assert begun
            cancelled = cancelled or scope.cancelled_caught
        assert plain.closed == 1
        # It is entered at its second step only.
        assert left == ["left"] or (not left and steps < 5)
        return cancelled

    assert at_every_step(main) > 10


# Relays.


class Sink:
    """Notes what it is given and when; waits, and fails, as it is told."""

    def __init__(self, *, wait: float = 0, error: Exception | None = None, after: int = 0) -> None:
        self.writes: list[tuple[float, bytes]] = []
        self._wait = wait
        self._error = error
        self._after = after

    async def __call__(self, data: bytes) -> None:
        if self._error is not None and len(self.writes) >= self._after:
            raise self._error
        await trio.sleep(self._wait)
        self.writes.append((trio.current_time(), data))

    @property
    def data(self) -> bytes:
        return b"".join(data for _, data in self.writes)


def machine(config: RelayConfig = QUIET) -> Relay:
    return Relay(MESSAGES, config, now=trio.current_time())


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("size", [1, 100, 100_000])
def test_a_whole_answer_passes_unchanged(kind: str, size: int) -> None:
    async def main() -> None:
        sink, it = Sink(), machine()
        async with SOURCES[kind](*pieces(SAMPLE, size)) as source:
            result = await relay(source, sink, it)
        assert result is it.outcome is RelayOutcome.COMPLETED
        assert sink.data == SAMPLE

    run(main)


def test_a_stream_is_a_sink() -> None:
    async def main() -> None:
        send, receive = memory_stream_one_way_pair()
        assert await relay(Script(SAMPLE), send.send_all, machine()) is RelayOutcome.COMPLETED
        assert await receive.receive_some() == SAMPLE

    run(main)


UPSTREAMS: dict[str, list[Any]] = {
    "whole": [SAMPLE],
    "in pieces": [step for piece in pieces(SAMPLE, 300) for step in (3, piece)],
    "a silence": [BEGIN, 35, REST],
    "a silence inside of an event": [SAMPLE[: len(BEGIN) + 9], 35, SAMPLE[len(BEGIN) + 9 :]],
    "a stall": [SAMPLE[:900], FOREVER],
    "never anything": [FOREVER],
    "a cut": [4, SAMPLE[:900], 5],
    "an error": [SAMPLE[:900], 15, OSError("reset")],
    "all but the end": [SAMPLE.removesuffix(SAMPLE[SAMPLE.index(b"event: message_stop") :]), 12],
    "a hang behind the end": [SAMPLE, FOREVER],
    "something else": [b"<html><body>no</body></html>\n\n", FOREVER],
    "nothing": [],
}
CONFIGS = {
    "forwarding": RelayConfig(
        keepalive=KeepAlive(interval=10.0, text="here"), stall=Stall(idle_progress=95.0)
    ),
    "holding": RelayConfig.hopbase(stall=95.0),
}


def script_of(upstream: list[Any]) -> list[Step]:
    """The same for the driver that does no I/O."""
    at, steps = 0.0, list[Step]()
    for step in upstream:
        if step is FOREVER:
            return steps
        if isinstance(step, bytes):
            steps.append(Arrive(at, step))
        elif isinstance(step, Exception):
            return [*steps, Break(at, type(step).__name__)]
        else:
            at += step
    return [*steps, End(at)]


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("config", CONFIGS)
def test_a_relay_does_what_its_machine_does_and_at_the_same_times(upstream: str, config: str) -> None:
    async def main() -> None:
        sink, it, left = Sink(), machine(CONFIGS[config]), list[str]()
        seen: list[tuple[float, Event]] = []

        def observe(event: Event) -> None:
            seen.append((trio.current_time(), event))

        source = Script(*UPSTREAMS[upstream])
        result = await relay(opening(source, left), sink, it, observe=observe)
        expected = drive(Relay(MESSAGES, CONFIGS[config], now=0.0), script_of(UPSTREAMS[upstream]))
        assert by_time(sink.writes) == by_time([(write.at, write.data) for write in expected.writes])
        assert [at for at, _ in seen] == [at for at, _ in expected.events]
        assert [kind_of(event) for _, event in seen] == [kind_of(event) for _, event in expected.events]
        assert result is expected.relay.outcome
        assert trio.current_time() == expected.ended_at
        assert left == ["left"]

    run(main)


def by_time(writes: list[tuple[float, bytes]]) -> dict[float, bytes]:
    return {
        at: b"".join(data for _, data in together)
        for at, together in itertools.groupby(writes, key=lambda write: write[0])
    }


def kind_of(event: Event) -> Any:
    # Errors are equal to themselves only.
    return event if getattr(event, "exception", None) is None else type(event)


def test_keep_alives_come_at_their_times() -> None:
    async def main() -> None:
        sink = Sink()
        config = RelayConfig(keepalive=KeepAlive(interval=10.0, text="here"), stall=None)
        end = len(BEGIN)
        await relay(Script(SAMPLE[: end + 9], 35, SAMPLE[end + 9 :]), sink, machine(config))
        assert sink.writes == [
            (0.0, BEGIN),
            (10.0, b": here\n\n"),
            (20.0, b": here\n\n"),
            (30.0, b": here\n\n"),
            (35.0, REST),
        ]

    run(main)


def test_a_stalled_upstream_is_closed_and_the_client_told_at_that_time() -> None:
    async def main() -> None:
        closed_at: list[float] = []

        class Closing(Script):
            async def aclose(self) -> None:
                closed_at.append(trio.current_time())

        sink = Sink(wait=5)
        result = await relay(Closing(SAMPLE[:900], FOREVER), sink, machine(IMPATIENT))
        assert result is RelayOutcome.STALLED
        # 5 s for the client, and then 90 s for the model.
        assert [at for at, _ in sink.writes] == [5.0, 100.0]
        assert b"The model stopped responding" in sink.writes[-1][1]
        assert closed_at[0] == 100.0

    run(main)


def test_an_upstream_that_hangs_behind_the_end_holds_nobody_up() -> None:
    async def main() -> None:
        sink, source = Sink(), Script(SAMPLE, FOREVER)
        assert await relay(source, sink, machine()) is RelayOutcome.COMPLETED
        assert source.closed == 1
        assert trio.current_time() == 0.0

    run(main)


@pytest.mark.parametrize(
    ("ending", "outcome"),
    [
        ([], RelayOutcome.TRUNCATED),
        ([OSError("reset")], RelayOutcome.ABORTED),
        ([KeyError("of a library")], RelayOutcome.ABORTED),
    ],
)
def test_a_cut_upstream_ends_in_an_error(ending: list[Exception], outcome: RelayOutcome) -> None:
    async def main() -> None:
        sink, source = Sink(), Script(SAMPLE[:900], *ending)
        assert await relay(source, sink, machine()) is outcome
        assert INTERRUPTED in sink.data
        assert source.closed == 1

    run(main)


def test_nobody_is_blamed_while_the_client_is_slow() -> None:
    async def main() -> None:
        sink = Sink(wait=200)
        source = Script(*pieces(SAMPLE, 400))
        assert await relay(source, sink, machine(IMPATIENT)) is RelayOutcome.COMPLETED
        assert sink.data == SAMPLE

    run(main)


def test_a_client_that_is_slower_than_the_keep_alives_is_sent_what_has_come() -> None:
    async def main() -> None:
        sink, source = Sink(wait=20), Script(*pieces(SAMPLE, 900))
        config = RelayConfig(keepalive=KeepAlive(interval=10.0), stall=None)
        with trio.fail_after(1000):
            assert await relay(source, sink, machine(config)) is RelayOutcome.COMPLETED
        # It has never waited without that there was something to write.
        assert sink.data == SAMPLE

    run(main)


def test_the_silence_of_the_upstream_counts_from_where_the_client_is_ready() -> None:
    async def main() -> None:
        sink, source = Sink(wait=200), Script(SAMPLE[:900], FOREVER)
        assert await relay(source, sink, machine(IMPATIENT)) is RelayOutcome.STALLED
        assert [at for at, _ in sink.writes] == [200.0, 490.0]

    run(main)


@pytest.mark.parametrize("_order", ORDERS)
@pytest.mark.parametrize("kind", ["iterable", "generator"])
def test_data_that_comes_at_the_deadline_goes_before_it(kind: str, _order: int) -> None:
    async def main() -> None:
        sink = Sink()
        steps = (SAMPLE[:900], 90, SAMPLE[900:1500], 90, SAMPLE[1500:])
        async with SOURCES[kind](*steps) as source:
            assert await relay(source, sink, machine(IMPATIENT)) is RelayOutcome.COMPLETED
        assert [at for at, _ in sink.writes] == [0.0, 90.0, 180.0]
        assert sink.data == SAMPLE

    run(main)


@pytest.mark.parametrize("_order", ORDERS)
def test_data_that_waits_after_a_pause_of_the_process_goes_before_timers(_order: int) -> None:
    clock = MockClock(autojump_threshold=0)

    async def main() -> None:
        arrived = trio.Event()

        class Upstream(Script):
            async def __anext__(self) -> bytes:
                if self.given == 1:
                    await arrived.wait()
                return await super().__anext__()

        async def pause() -> None:
            await trio.sleep(1)
            # All stands still for longer than the patience of the relay; meanwhile bytes come.
            clock.jump(500.0)
            arrived.set()

        async with trio.open_nursery() as tasks:
            tasks.start_soon(pause)
            source = Upstream(SAMPLE[:900], SAMPLE[900:])
            assert await relay(source, Sink(), machine(IMPATIENT)) is RelayOutcome.COMPLETED
        assert trio.current_time() == 501.0

    trio.run(main, clock=clock)


def test_a_slow_client_holds_the_upstream_up() -> None:
    async def main() -> None:
        source = Script(*pieces(SAMPLE, 50))
        ahead = []

        async def sink(_data: bytes) -> None:
            before = source.given
            await trio.sleep(100)
            ahead.append(source.given - before)

        await relay(source, sink, machine())
        # One chunk is read while the sink writes, and no other.
        assert max(ahead) == 1

    run(main)


def test_a_client_that_is_slow_for_ever_lets_one_chunk_be_read_ahead() -> None:
    async def main() -> None:
        source = Script(*[BEGIN] * 1000)
        with trio.move_on_after(100):
            await relay(source, functools.partial(sleep, math.inf), machine())
        assert source.given == 2

    async def sleep(seconds: float, _data: bytes) -> None:
        await trio.sleep(seconds)

    run(main)


GONE = [ConnectionResetError(), OSError(), trio.BrokenResourceError(), trio.ClosedResourceError()]


@pytest.mark.parametrize("after", [0, 1, 3])
@pytest.mark.parametrize("error", GONE)
def test_a_client_that_is_gone_closes_the_upstream(after: int, error: Exception) -> None:
    async def main() -> None:
        source, it = Script(*pieces(SAMPLE, 400), FOREVER), machine()
        sink = Sink(error=error, after=after)
        assert await relay(source, sink, it) is RelayOutcome.CANCELLED
        assert source.closed == 1
        assert len(sink.writes) == after
        # One in hand, one that waits, and one that was being read when the upstream was closed.
        assert source.given <= after + 3

    run(main)


@pytest.mark.parametrize("error", GONE)
def test_a_client_that_is_gone_lets_the_upstream_be_drained(error: Exception) -> None:
    async def main() -> None:
        config = RelayConfig(stall=None, drain=Drain(max_seconds=60))
        source = Script(*[step for piece in pieces(SAMPLE, 400) for step in (1, piece)], FOREVER)
        it, sink = machine(config), Sink(error=error, after=1)
        assert await relay(source, sink, it) is RelayOutcome.CANCELLED
        assert it.usage.status == "final"
        assert it.usage.output == 64
        assert len(sink.writes) == 1
        assert trio.current_time() == len(pieces(SAMPLE, 400))
        source = Script(SAMPLE[:900], FOREVER)
        await relay(source, Sink(error=error), machine(config))
        assert trio.current_time() == len(pieces(SAMPLE, 400)) + 60
        assert source.closed == 1

    run(main)


def test_a_sink_that_fails_otherwise_fails_the_call() -> None:
    async def main() -> None:
        source, it = Script(SAMPLE[:900], FOREVER), machine(RelayConfig(drain=Drain()))
        with pytest.raises(ZeroDivisionError):
            await relay(source, Sink(error=ZeroDivisionError()), it)
        assert it.outcome is RelayOutcome.CANCELLED
        assert source.closed == 1

    run(main)


@pytest.mark.parametrize("drain", [None, Drain()])
def test_a_relay_that_is_cancelled_at_any_step_closes_the_upstream(drain: Drain | None) -> None:
    async def main(steps: int) -> bool:
        left: list[str] = []
        source = Fragile(*slowly(*pieces(SAMPLE, 500)), FOREVER)
        sink, it = Sink(), machine(RelayConfig(drain=drain))
        with cancelling(steps) as scope:
            await relay(opening(source, left), sink, it)
        assert SAMPLE.startswith(sink.data)
        if sink.data == SAMPLE:
            assert it.outcome is RelayOutcome.COMPLETED
        else:
            assert it.outcome in (RelayOutcome.CANCELLED, RelayOutcome.COMPLETED)
        assert left == ["left"] or (not left and steps < 5)
        return scope.cancelled_caught

    assert at_every_step(main) > 10


@pytest.mark.parametrize("kind", SOURCES)
def test_cancelling_the_wait_for_bytes_at_any_step_loses_none(kind: str) -> None:
    async def main(steps: int) -> bool:
        got: list[bytes] = []
        cancelled = False
        async with (
            SOURCES[kind](*slowly(*pieces(SAMPLE, 300)), FOREVER) as source,
            relayed(source, machine()) as body,
        ):
            for _ in range(1000):
                with cancelling(steps) as scope:
                    got.append(await anext(body, b""))
                cancelled = cancelled or scope.cancelled_caught
                if got and not got[-1]:
                    break
                if scope.cancelled_caught:
                    await trio.lowlevel.checkpoint()
        assert b"".join(got) == SAMPLE
        return cancelled

    assert at_every_step(main) > 2


def test_bytes_that_nobody_takes_end_with_the_context() -> None:
    async def main() -> None:
        source, it = Script(*pieces(SAMPLE, 400), FOREVER), machine()
        async with relayed(source, it) as body:
            async for _ in body:
                break
        assert it.outcome is RelayOutcome.CANCELLED
        assert source.closed == 1

    run(main)


def test_a_relay_that_nobody_reads_closes_its_upstream() -> None:
    async def main() -> None:
        source, it = Script(FOREVER), machine()
        async with relayed(source, it):
            pass
        assert it.outcome is RelayOutcome.CANCELLED
        assert source.closed == 1

    run(main)


# Attempts.

HELD = RelayConfig(
    hold=Hold(), keepalive=KeepAlive(interval=10.0, before_output=True), stall=Stall(first_byte=60.0)
)
# A part of the answer that shows no output yet.
PREAMBLE = SAMPLE[:230]


class Attempts:
    """Sources of one answer after the other; an exception is raised instead of opening one."""

    def __init__(self, *sources: Any, wait: float = 0) -> None:
        self.sources = list(sources)
        self.log: list[str] = []
        self._wait = wait

    @contextlib.asynccontextmanager
    async def __call__(self) -> AsyncIterator[Any]:
        self.log.append("open")
        await trio.sleep(self._wait)
        source = self.sources.pop(0)
        if isinstance(source, Exception):
            raise source
        try:
            yield source
        finally:
            self.log.append("left")


def again(failures: list[FailedBeforeOutput], answer: Any = True) -> Callable[[FailedBeforeOutput], Any]:
    def retry(failure: FailedBeforeOutput) -> Any:
        failures.append(failure)
        return answer

    return retry


def test_an_attempt_that_fails_before_output_is_made_again() -> None:
    async def main() -> None:
        attempts = Attempts(
            Script(PREAMBLE.replace(b"msg_", b"one_"), OSError("reset")),
            Script(*pieces(SAMPLE, 300), FOREVER),
        )
        sink, it, failures = Sink(), machine(HELD), list[FailedBeforeOutput]()
        result = await relay(attempts, sink, it, retry=again(failures))
        assert result is RelayOutcome.COMPLETED
        assert sink.data == SAMPLE
        assert attempts.log == ["open", "left", "open", "left"]
        assert [(failure.cause, failure.detail) for failure in failures] == [
            ("transport", "OSError: reset")
        ]

    run(main)


def test_an_upstream_that_hangs_behind_its_failure_is_left_before_the_next_attempt() -> None:
    async def main() -> None:
        refusal = ANSWERS["messages_error.sse"]
        refusal = refusal[refusal.index(b"event: error") :]
        attempts = Attempts(Script(BEGIN, refusal, FOREVER), Script(SAMPLE, FOREVER))
        sink, failures = Sink(), list[FailedBeforeOutput]()
        await relay(attempts, sink, machine(HELD), retry=again(failures))
        assert attempts.log == ["open", "left", "open", "left"]
        assert sink.data == SAMPLE
        assert [failure.cause for failure in failures] == ["upstream"]
        assert trio.current_time() == 0.0

    run(main)


def test_keep_alives_flow_while_the_upstream_is_connected() -> None:
    async def main() -> None:
        sink, failures = Sink(), list[FailedBeforeOutput]()
        attempts = Attempts(ConnectionRefusedError("no"), Script(SAMPLE), wait=25)
        await relay(attempts, sink, machine(HELD), retry=again(failures))
        assert sink.writes == [
            *((at, b": keep-alive\n\n") for at in (10.0, 20.0, 30.0, 40.0)),
            (50.0, SAMPLE),
        ]
        assert [(failure.cause, failure.detail) for failure in failures] == [
            ("transport", "ConnectionRefusedError: no")
        ]

    run(main)


@pytest.mark.parametrize(
    ("answer", "text"),
    [(False, INTERRUPTED), (None, INTERRUPTED), (ErrorInfo(message="try later"), b"try later")],
)
def test_a_failed_attempt_that_is_not_made_again_is_an_error(answer: Any, text: bytes) -> None:
    async def main() -> None:
        sink, attempts = Sink(), Attempts(Script(PREAMBLE))
        retry = None if answer is None else again([], answer)
        result = await relay(attempts, sink, machine(HELD), retry=retry)
        assert text in sink.data
        assert sink.data.count(b"event: error") == 1
        assert attempts.log == ["open", "left"]
        failed = isinstance(answer, ErrorInfo)
        assert result is (RelayOutcome.FAILED_GATEWAY if failed else RelayOutcome.TRUNCATED)

    run(main)


def test_a_connection_that_hangs_is_a_stall() -> None:
    async def main() -> None:
        attempts = Attempts(Script(), Script(), wait=10_000)
        failures, sink = list[FailedBeforeOutput](), Sink()

        def retry(failure: FailedBeforeOutput) -> bool:
            failures.append(failure)
            return len(failures) < 2

        result = await relay(attempts, sink, machine(HELD), retry=retry)
        assert result is RelayOutcome.STALLED
        assert [failure.cause for failure in failures] == ["stalled", "stalled"]
        assert attempts.log == ["open", "open"]
        # Both attempts have their time.
        assert sink.writes[-1][0] == 120.0

    run(main)


def test_only_what_opens_a_source_can_be_asked_again() -> None:
    async def main() -> None:
        with pytest.raises(TypeError, match="function that opens"):
            await relay(Script(SAMPLE), Sink(), machine(), retry=again([]))

    run(main)


def test_a_relay_that_had_failed_before_is_ended() -> None:
    async def main() -> None:
        it, sink, attempts = machine(HELD), Sink(), Attempts()
        it.receive_eof(0.0)
        assert await relay(attempts, sink, it, retry=again([])) is RelayOutcome.TRUNCATED
        assert INTERRUPTED in sink.data
        assert attempts.log == []

    run(main)


def test_who_decides_about_attempts_can_fail() -> None:
    async def main() -> None:
        def retry(failure: FailedBeforeOutput) -> bool:
            raise ZeroDivisionError(failure)

        it, attempts = machine(HELD), Attempts(Script(PREAMBLE))
        with pytest.raises(ZeroDivisionError):
            await relay(attempts, Sink(), it, retry=retry)
        assert attempts.log == ["open", "left"]
        assert it.outcome is RelayOutcome.CANCELLED

    run(main)


def test_everything_a_relay_tells_is_observed() -> None:
    async def main() -> None:
        seen: list[Event] = []
        await relay(Script(*pieces(SAMPLE, 300)), Sink(), machine(), observe=seen.append)
        it = Relay(MESSAGES, QUIET, now=0.0)
        told = [event for piece in pieces(SAMPLE, 300) for event in it.receive_data(piece, 0.0).events]
        assert seen == told
        assert seen[-1] == Closed(outcome=RelayOutcome.COMPLETED)

    run(main)


@pytest.mark.parametrize("failing", [EVENTS[3:4], [Closed(outcome=RelayOutcome.CANCELLED)], None])
@pytest.mark.parametrize("of", ["relay", "relayed"])
def test_an_observer_that_fails_fails_the_call_and_the_upstream_is_closed(failing: Any, of: str) -> None:
    async def main() -> None:
        def observe(event: Event) -> None:
            # None: whatever it is told.
            if failing is None or event in failing:
                raise ZeroDivisionError

        source, it = Script(*pieces(SAMPLE, 300)[:-1], FOREVER), machine()
        with pytest.raises(ZeroDivisionError):
            await using[of](source, it, observe)
        assert it.outcome is RelayOutcome.CANCELLED
        assert source.closed == 1
        assert trio.current_time() == 0.0

    async def write(source: Script, it: Relay, observe: Any) -> None:
        await relay(source, Sink(error=OSError(), after=3), it, observe=observe)

    async def take(source: Script, it: Relay, observe: Any) -> None:
        async with relayed(source, it, observe=observe) as body:
            for _ in range(3):
                await anext(body)

    using = {"relay": write, "relayed": take}
    run(main)
