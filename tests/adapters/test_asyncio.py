"""Reading and relaying on asyncio, in virtual time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import pytest

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
    Stall,
    StreamTruncated,
)
from sse_machines.adapters.asyncio import iter_events, relay, relayed
from sse_machines.relay import FailedBeforeOutput
from tests.adapters.streams import PROTOCOLS, SAMPLES, events_of, pieces
from tests.adapters.virtual import run

SAMPLE = SAMPLES["messages"]
EVENTS = events_of(SAMPLE, MESSAGES)
QUIET = RelayConfig(keepalive=None, stall=None)
INTERRUPTED = b"Response stream interrupted, please retry"


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
            await (
                asyncio.get_running_loop().create_future() if step is FOREVER else asyncio.sleep(step)
            )
        raise StopAsyncIteration

    async def aclose(self) -> None:
        await asyncio.sleep(0)
        self.closed += 1


FOREVER = object()


async def generator(*steps: Any) -> AsyncIterator[bytes]:
    """A source that cannot bear to be cancelled: what was to come is lost then."""
    async for data in Script(*steps):
        yield data


def feed(*data: bytes) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    for piece in data:
        reader.feed_data(piece)
    reader.feed_eof()
    return reader


def opening(source: Any, left: list[str] | None = None) -> Callable[[], Any]:
    @contextlib.asynccontextmanager
    async def open_source() -> AsyncIterator[Any]:
        try:
            yield source
        finally:
            if left is not None:
                left.append("left")

    return open_source


async def take_all(events: AsyncIterator[Event], into: list[Event]) -> None:
    async for event in events:
        into.append(event)  # noqa: PERF401 - what comes before an error counts


SOURCES: dict[str, Callable[[Iterable[bytes]], Any]] = {
    "iterable": lambda data: Script(*data),
    "generator": lambda data: generator(*data),
    "StreamReader": lambda data: feed(*data),
    "function": lambda data: opening(Script(*data)),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", PROTOCOLS)
@pytest.mark.parametrize("size", [1, 100, 100_000])
def test_every_source_gives_the_events_that_a_receiver_gives(source: str, name: str, size: int) -> None:
    async def main() -> list[Event]:
        data = pieces(SAMPLES[name], size)
        return [event async for event in iter_events(SOURCES[source](data), PROTOCOLS[name])]

    assert run(main()) == events_of(SAMPLES[name], PROTOCOLS[name])


def test_a_receiver_of_the_callers_own_is_used() -> None:
    async def main() -> None:
        receiver = Receiver.detecting(accumulate=True)
        events = iter_events(Script(SAMPLE), receiver)
        assert events.receiver is receiver
        assert [event async for event in events] == EVENTS
        assert receiver.accumulator.text.startswith("Let me look")
        assert events.response is None

    run(main())


def test_nothing_is_read_behind_the_end_and_the_source_is_closed_before_that_is_told() -> None:
    async def main() -> None:
        source = Script(SAMPLE, FOREVER)
        async for event in iter_events(source, MESSAGES):
            assert source.closed == isinstance(event, EndOfStream)
        assert source.closed == 1

    run(main())


def test_an_iterator_that_is_over_stays_over() -> None:
    async def main() -> None:
        events = iter_events(Script(SAMPLE), MESSAGES)
        assert len([event async for event in events]) == len(EVENTS)
        assert [event async for event in events] == []

    run(main())


@pytest.mark.parametrize("error", [OSError("reset"), RuntimeError("of some library")])
def test_a_source_that_fails_truncates_the_answer_behind_all_that_came(error: Exception) -> None:
    async def main() -> None:
        source = Script(SAMPLE[:900], error)
        events = iter_events(source, MESSAGES)
        seen: list[Event] = []
        with pytest.raises(StreamTruncated) as raised:
            await take_all(events, seen)
        assert seen == EVENTS[: len(seen)]
        assert len(seen) > 3
        assert raised.value.__cause__ is error
        assert source.closed == 1
        with pytest.raises(StreamTruncated) as again:
            await anext(events)
        assert again.value is raised.value

    run(main())


def test_a_source_that_ends_early_truncates_the_answer() -> None:
    async def main() -> None:
        with pytest.raises(StreamTruncated) as raised:
            [event async for event in iter_events(Script(SAMPLE[:900]), MESSAGES)]
        assert raised.value.__cause__ is None

    run(main())


def test_a_source_that_fails_behind_the_end_is_nobodys_business() -> None:
    async def main() -> None:
        source = Script(SAMPLE, OSError("reset"))
        assert [event async for event in iter_events(source, MESSAGES)] == EVENTS
        source = Script(SAMPLES["chat"].removesuffix(b"data: [DONE]\n\n"), OSError("reset"))
        events = [event async for event in iter_events(source, CHAT)]
        assert events[-1] == EndOfStream(outcome=Outcome.COMPLETED_NO_DONE)

    run(main())


def test_a_body_that_is_no_event_stream_is_an_error_and_the_source_closed() -> None:
    async def main() -> None:
        source = Script(b'{"error": {"message": "no"}}\n\n', FOREVER)
        with pytest.raises(NotAnEventStream):
            [event async for event in iter_events(source, MESSAGES)]
        assert source.closed == 1

    run(main())


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

    run(main())


def test_an_error_of_the_body_comes_out_as_it_is() -> None:
    async def main() -> None:
        source = Script(SAMPLE[:900], FOREVER)
        with pytest.raises(ZeroDivisionError):
            await divide(source)
        assert source.closed == 1

    async def divide(source: Script) -> None:
        async with iter_events(source, MESSAGES) as events:
            await anext(events)
            raise ZeroDivisionError

    run(main())


def test_what_had_come_can_be_taken_after_closing() -> None:
    async def main() -> None:
        events = iter_events(Script(SAMPLE[:900], FOREVER), MESSAGES)
        first = await anext(events)
        await events.aclose()
        rest: list[Event] = []
        with pytest.raises(StreamTruncated) as raised:
            await take_all(events, rest)
        assert [first, *rest] == EVENTS[: 1 + len(rest)]
        assert len(rest) > 3
        assert isinstance(raised.value.__cause__, ConnectionAbortedError)

    run(main())


def test_whoever_waits_while_another_closes_is_told() -> None:
    async def main() -> None:
        events = iter_events(Script(FOREVER), MESSAGES)
        waiting = asyncio.ensure_future(anext(events))
        await asyncio.sleep(1)
        await events.aclose()
        with pytest.raises(StreamTruncated):
            await waiting

    run(main())


def test_a_source_without_a_way_to_close_it() -> None:
    class Bare:
        def __aiter__(self) -> AsyncIterator[bytes]:
            return generator(SAMPLE)

    class Sync(Script):
        def close(self) -> None:
            self.closed += 10

        aclose = None  # type: ignore[assignment]

    async def main() -> None:
        assert [event async for event in iter_events(Bare(), MESSAGES)] == EVENTS
        source = Sync(SAMPLE)
        assert [event async for event in iter_events(source, MESSAGES)] == EVENTS
        assert source.closed == 10

    run(main())


def test_a_source_that_cannot_be_closed_says_so() -> None:
    class Broken(Script):
        async def aclose(self) -> None:
            raise ValueError("not closed")

    async def main() -> None:
        with pytest.raises(ValueError, match="not closed"):
            [event async for event in iter_events(Broken(SAMPLE), MESSAGES)]

    run(main())


def test_a_context_that_cannot_be_left_says_so() -> None:
    @contextlib.asynccontextmanager
    async def broken() -> AsyncIterator[Any]:
        yield Script(SAMPLE, FOREVER)

    @contextlib.asynccontextmanager
    async def worse() -> AsyncIterator[Any]:
        try:
            yield Script(SAMPLE, FOREVER)
        finally:
            raise ValueError("not left")

    async def main(source: Any) -> None:
        [event async for event in iter_events(source, MESSAGES)]

    run(main(broken))
    with pytest.raises(ValueError, match="not left"):
        run(main(worse))


async def step_by_step(coroutine: Any, steps: int) -> Any:
    """Await something, but cancel it after so many turns of the loop, if it is not done by then."""
    task = asyncio.ensure_future(coroutine)
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        return await task
    return None


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("steps", range(12))
def test_cancelling_at_any_await_loses_no_event(source: str, steps: int) -> None:
    async def main() -> None:
        slow: list[Any] = [step for piece in pieces(SAMPLE, 500) for step in (0, piece, 0)]
        data: list[Any] = [*pieces(SAMPLE, 500)] if source == "StreamReader" else slow
        events = iter_events(SOURCES[source](data), MESSAGES)
        seen: list[Event] = []
        for _ in range(len(EVENTS) * 20):
            event = await step_by_step(anext(events, EndOfStream(outcome=Outcome.OPEN)), steps)
            if event is None:
                # Cancelled: it is the time after it that brings the next one.
                await asyncio.sleep(0)
                continue
            if event == EndOfStream(outcome=Outcome.OPEN):
                break
            seen.append(event)
        if steps > 0:
            assert seen == EVENTS
        else:
            # Who never waits gets nothing.
            assert seen == []
        await events.aclose()

    run(main())


@pytest.mark.parametrize("steps", range(40))
def test_cancelling_anywhere_leaves_no_task_and_closes_the_source(steps: int) -> None:
    async def reading(source: Any, left: list[Any]) -> None:
        async with iter_events(source, MESSAGES) as events:
            async for _ in events:
                await asyncio.sleep(0)
        left.append(None)

    async def main() -> None:
        left: list[str] = []
        source = Script(*[step for piece in pieces(SAMPLE, 300) for step in (0, piece)], FOREVER)
        await step_by_step(reading(opening(source, left), []), steps)
        assert len(left) == (steps > 2) or steps <= 2
        plain = Script(SAMPLE[:500], FOREVER)
        ended: list[None] = []
        task = step_by_step(reading(plain, ended), steps)
        await task
        # A task that never ran never had a source.
        assert plain.closed == (steps > 0)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(main())


def test_closing_goes_on_when_it_is_cancelled() -> None:
    class Slow(Script):
        async def aclose(self) -> None:
            await asyncio.sleep(5)
            self.closed += 1

    async def main() -> None:
        source = Slow(FOREVER)
        events = iter_events(source, MESSAGES)
        task = asyncio.ensure_future(events.aclose())
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert source.closed == 1

    run(main())


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
        await asyncio.sleep(self._wait)
        self.writes.append((asyncio.get_running_loop().time(), data))

    @property
    def data(self) -> bytes:
        return b"".join(data for _, data in self.writes)


def machine(config: RelayConfig = QUIET) -> Relay:
    return Relay(MESSAGES, config, now=asyncio.get_running_loop().time())


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("size", [1, 100, 100_000])
def test_a_whole_answer_passes_unchanged(source: str, size: int) -> None:
    async def main() -> None:
        sink, it = Sink(), machine()
        outcome = await relay(SOURCES[source](pieces(SAMPLE, size)), sink, it)
        assert outcome is it.outcome is RelayOutcome.COMPLETED
        assert sink.data == SAMPLE

    run(main())


def test_keep_alives_come_at_their_times() -> None:
    async def main() -> None:
        sink = Sink()
        config = RelayConfig(keepalive=KeepAlive(interval=10.0, text="here"), stall=None)
        end = SAMPLE.index(b"\n\n") + 2
        begin = SAMPLE[:end]
        await relay(Script(SAMPLE[: end + 9], 35, SAMPLE[end + 9 :]), sink, machine(config))
        assert sink.writes[:4] == [
            *((0.0, begin), (10.0, b": here\n\n"), (20.0, b": here\n\n"), (30.0, b": here\n\n"))
        ]
        assert sink.writes[4][0] == 35.0
        assert sink.data.replace(b": here\n\n", b"") == SAMPLE

    run(main())


def test_a_stalled_upstream_is_closed_and_the_client_told_at_that_time() -> None:
    async def main() -> None:
        sink, source = Sink(), Script(SAMPLE[:900], FOREVER)
        config = RelayConfig(keepalive=None, stall=Stall(idle_progress=90.0))
        outcome = await relay(source, sink, machine(config))
        assert outcome is RelayOutcome.STALLED
        assert sink.writes[-1][0] == 90.0
        assert b"The model stopped responding" in sink.writes[-1][1]
        assert source.closed == 1

    run(main())


def test_an_upstream_that_hangs_behind_the_end_holds_nobody_up() -> None:
    async def main() -> None:
        sink, source = Sink(), Script(SAMPLE, FOREVER)
        assert await relay(source, sink, machine()) is RelayOutcome.COMPLETED
        assert source.closed == 1
        assert asyncio.get_running_loop().time() == 0.0

    run(main())


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

    run(main())


def test_nobody_is_blamed_while_the_client_is_slow() -> None:
    async def main() -> None:
        sink = Sink(wait=200)
        source = Script(*pieces(SAMPLE, 400))
        config = RelayConfig(keepalive=None, stall=Stall(idle_progress=90.0))
        assert await relay(source, sink, machine(config)) is RelayOutcome.COMPLETED
        assert sink.data == SAMPLE

    run(main())


def test_the_silence_of_the_upstream_counts_from_where_the_client_is_ready() -> None:
    async def main() -> None:
        sink, source = Sink(wait=200), Script(SAMPLE[:900], FOREVER)
        config = RelayConfig(keepalive=None, stall=Stall(idle_progress=90.0))
        assert await relay(source, sink, machine(config)) is RelayOutcome.STALLED
        assert [time for time, _ in sink.writes] == [200.0, 490.0]

    run(main())


def test_data_that_has_come_goes_before_timers() -> None:
    async def main() -> None:
        loop: Any = asyncio.get_running_loop()
        sink, reader = Sink(), asyncio.StreamReader()
        config = RelayConfig(keepalive=None, stall=Stall(idle_progress=90.0))
        task = asyncio.ensure_future(relay(reader, sink, machine(config)))
        reader.feed_data(SAMPLE[:900])
        await asyncio.sleep(1)
        # The whole process is stopped for longer than the patience of the relay; then all comes at once.
        loop.now += 500
        loop.call_soon(reader.feed_data, SAMPLE[900:])
        assert await task is RelayOutcome.COMPLETED
        assert sink.data == SAMPLE

    run(main())


def test_a_slow_client_holds_the_upstream_up() -> None:
    async def main() -> None:
        source = Script(*pieces(SAMPLE, 50))
        ahead = []

        async def sink(_data: bytes) -> None:
            before = source.given
            await asyncio.sleep(100)
            ahead.append(source.given - before)

        await relay(source, sink, machine())
        # One chunk is read while the sink writes, and no other.
        assert max(ahead) == 1

    run(main())


@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_client_that_is_gone_closes_the_upstream(after: int) -> None:
    async def main() -> None:
        source, it = Script(*pieces(SAMPLE, 400)), machine()
        sink = Sink(error=ConnectionResetError(), after=after)
        assert await relay(source, sink, it) is RelayOutcome.CANCELLED
        assert source.closed == 1
        assert len(sink.writes) == after
        assert source.given <= after + 2

    run(main())


def test_a_client_that_is_gone_lets_the_upstream_be_drained() -> None:
    async def main() -> None:
        source = Script(*[step for piece in pieces(SAMPLE, 400) for step in (1, piece)])
        it = machine(RelayConfig(keepalive=None, stall=None, drain=Drain(max_seconds=60)))
        outcome = await relay(source, Sink(error=BrokenPipeError(), after=1), it)
        assert outcome is RelayOutcome.CANCELLED
        assert it.usage.status == "final"
        assert it.usage.output == 64
        source = Script(SAMPLE[:900], FOREVER)
        it = machine(RelayConfig(keepalive=None, stall=None, drain=Drain(max_seconds=60)))
        before = asyncio.get_running_loop().time()
        await relay(source, Sink(error=BrokenPipeError()), it)
        assert asyncio.get_running_loop().time() - before == 60
        assert source.closed == 1

    run(main())


def test_a_sink_that_fails_otherwise_fails_the_call() -> None:
    async def main() -> None:
        source, it = Script(SAMPLE[:900], FOREVER), machine(RelayConfig(drain=Drain()))
        with pytest.raises(ZeroDivisionError):
            await relay(source, Sink(error=ZeroDivisionError()), it)
        assert it.outcome is RelayOutcome.CANCELLED
        assert source.closed == 1

    run(main())


@pytest.mark.parametrize("steps", range(40))
@pytest.mark.parametrize("drain", [None, Drain()])
def test_cancelling_a_relay_anywhere_closes_the_upstream(steps: int, drain: Drain | None) -> None:
    async def main() -> None:
        left: list[str] = []
        source = Script(*[step for piece in pieces(SAMPLE, 300) for step in (0, piece)], FOREVER)
        sink, it = Sink(), machine(RelayConfig(drain=drain))
        await step_by_step(relay(opening(source, left), sink, it), steps)
        assert SAMPLE.startswith(sink.data)
        if steps:
            assert it.outcome in (RelayOutcome.CANCELLED, RelayOutcome.COMPLETED)
        assert len(left) <= 1
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(main())


@pytest.mark.parametrize("steps", range(1, 12))
def test_cancelling_the_wait_for_bytes_loses_none(steps: int) -> None:
    async def main() -> None:
        source = generator(*[step for piece in pieces(SAMPLE, 300) for step in (0, piece, 0)])
        body = relayed(source, machine())
        got = b""
        for _ in range(1000):
            data = await step_by_step(anext(body, b""), steps)
            got += data or b""
            if data == b"":
                break
            await asyncio.sleep(0)
        assert got == SAMPLE
        await body.aclose()

    run(main())


def test_bytes_that_nobody_takes_end_with_the_context() -> None:
    async def main() -> None:
        source, it = Script(*pieces(SAMPLE, 400), FOREVER), machine()
        async with relayed(source, it) as body:
            async for _ in body:
                break
        assert it.outcome is RelayOutcome.CANCELLED
        assert source.closed == 1

    run(main())


# Attempts.

HELD = RelayConfig(
    hold=Hold(), keepalive=KeepAlive(interval=10.0, before_output=True), stall=Stall(first_byte=60.0)
)


class Attempts:
    """Sources of one answer after the other; an exception is raised instead of opening one."""

    def __init__(self, *sources: Any, wait: float = 0) -> None:
        self.sources = list(sources)
        self.log: list[str] = []
        self._wait = wait

    @contextlib.asynccontextmanager
    async def __call__(self) -> AsyncIterator[Any]:
        self.log.append("open")
        await asyncio.sleep(self._wait)
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
            Script(SAMPLE[:230], OSError("reset")), Script(*pieces(SAMPLE, 300), FOREVER)
        )
        sink, it, failures = Sink(), machine(HELD), list[FailedBeforeOutput]()
        outcome = await relay(attempts, sink, it, retry=again(failures))
        assert outcome is RelayOutcome.COMPLETED
        assert sink.data == SAMPLE
        assert attempts.log == ["open", "left", "open", "left"]
        assert [(failure.cause, failure.detail) for failure in failures] == [
            ("transport", "OSError: reset")
        ]

    run(main())


def test_keep_alives_flow_while_the_upstream_is_connected() -> None:
    async def main() -> None:
        sink, failures = Sink(), list[FailedBeforeOutput]()
        attempts = Attempts(ConnectionRefusedError("no"), Script(SAMPLE), wait=25)
        await relay(attempts, sink, machine(HELD), retry=again(failures))
        assert [time for time, data in sink.writes if data == b": keep-alive\n\n"] == [
            *(10.0, 20.0, 30.0, 40.0)
        ]
        assert sink.writes[-1][0] == 50.0
        assert [failure.detail for failure in failures] == ["ConnectionRefusedError: no"]

    run(main())


@pytest.mark.parametrize(
    ("answer", "text"),
    [(False, INTERRUPTED), (None, INTERRUPTED), (ErrorInfo(message="try later"), b"try later")],
)
def test_a_failed_attempt_that_is_not_made_again_is_an_error(answer: Any, text: bytes) -> None:
    async def main() -> None:
        sink = Sink()
        retry = None if answer is None else again([], answer)
        await relay(Attempts(Script()), sink, machine(HELD), retry=retry)
        assert text in sink.data
        assert sink.data.startswith(b"event: error")

    run(main())


def test_a_connection_that_hangs_is_a_stall() -> None:
    async def main() -> None:
        attempts = Attempts(Script(), Script(), wait=10_000)
        failures = list[FailedBeforeOutput]()
        sink = Sink()

        def retry(failure: FailedBeforeOutput) -> bool:
            failures.append(failure)
            return len(failures) < 2

        await relay(attempts, sink, machine(HELD), retry=retry)
        assert [failure.cause for failure in failures] == ["stalled", "stalled"]
        # Both attempts have their time.
        assert sink.writes[-1][0] == 120.0

    run(main())


def test_only_what_opens_a_source_can_be_asked_again() -> None:
    async def main() -> None:
        with pytest.raises(TypeError, match="function that opens"):
            await relay(Script(SAMPLE), Sink(), machine(), retry=again([]))

    run(main())


def test_a_relay_that_had_failed_before_is_ended() -> None:
    async def main() -> None:
        it, sink = machine(HELD), Sink()
        it.receive_eof(0.0)
        await relay(Attempts(), sink, it, retry=again([]))
        assert INTERRUPTED in sink.data

    run(main())


def test_everything_a_relay_tells_is_observed() -> None:
    async def main() -> None:
        seen: list[Event] = []
        await relay(Script(*pieces(SAMPLE, 300)), Sink(), machine(), observe=seen.append)
        it = Relay(MESSAGES, QUIET, now=0.0)
        told = [event for piece in pieces(SAMPLE, 300) for event in it.receive_data(piece, 0.0).events]
        assert seen == told

    run(main())


def test_a_writer_is_drained_after_every_write() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        transport = Transport()
        protocol = asyncio.streams.FlowControlMixin(loop)
        writer = asyncio.StreamWriter(transport, protocol, None, loop)
        source = Script(*pieces(SAMPLE, 300))
        task = asyncio.ensure_future(relay(source, writer, machine()))
        protocol.pause_writing()
        await asyncio.sleep(100)
        # Neither read nor written while the transport is full.
        assert source.given <= 2
        protocol.resume_writing()
        assert await task is RelayOutcome.COMPLETED
        assert b"".join(transport.written) == SAMPLE
        writer.close()

    run(main())


class Transport(asyncio.WriteTransport):
    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self._closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))

    def is_closing(self) -> bool:
        return self._closed

    def close(self) -> None:
        self._closed = True
