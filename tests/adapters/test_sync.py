"""Reading and relaying where waiting is blocking: sockets, files, and iterables read by a thread."""

from __future__ import annotations

import contextlib
import errno
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest
from typing_extensions import Self

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
from sse_machines.adapters._sync import Pump
from sse_machines.adapters.sync import iter_events, relay, relayed
from sse_machines.relay import Closed, FailedBeforeOutput
from sse_machines.testing import Arrive, Break, End, Step, drive
from tests.adapters.streams import FOLDER, SAMPLES, events_of, pieces

T = TypeVar("T")

SAMPLE = SAMPLES["messages"]
EVENTS = events_of(SAMPLE, MESSAGES)
BEGIN = SAMPLE[: SAMPLE.index(b"\n\n") + 2]
REST = SAMPLE[len(BEGIN) :]
QUIET = RelayConfig(keepalive=None, stall=None)
INTERRUPTED = b"Response stream interrupted, please retry"
FOREVER = object()
ANSWERS = {
    path.name: path.read_bytes()
    for folder in (FOLDER, FOLDER / "gateway")
    for path in folder.iterdir()
    if path.name.endswith(".sse")
}
# Nothing here takes so long, unless it takes for ever.
BOUND = 5.0


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(BOUND)
        assert not thread.is_alive()


def read_whole(data: bytes) -> list[Event]:
    """What a receiver without any adapter gives."""
    receiver = Receiver.detecting()
    receiver.receive_data(data)
    events = list(receiver)
    receiver.receive_eof()
    return events + list(receiver)


class Script:
    """An iterable: bytes, events to wait for, errors to raise. It notes what becomes of it.

    As a context it lets go what hangs in it.
    """

    def __init__(self, *steps: Any) -> None:
        self.steps = list(steps)
        self.given = 0
        self.closed = 0
        self.released = threading.Event()
        self.is_closed = threading.Event()

    def __iter__(self) -> Script:
        return self

    def __next__(self) -> bytes:
        while self.steps:
            step = self.steps.pop(0)
            if isinstance(step, bytes):
                self.given += 1
                return step
            if isinstance(step, Exception):
                raise step
            assert (self.released if step is FOREVER else step).wait(BOUND)
        raise StopIteration

    def close(self) -> None:
        self.closed += 1
        self.is_closed.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()


class Timed(Script):
    """The same, to be read as a socket is: where that would wait, the time is over at once."""

    def __init__(self, *steps: Any) -> None:
        super().__init__(*steps)
        self.timeouts: list[float | None] = []

    def settimeout(self, timeout: float | None) -> None:
        self.timeouts.append(timeout)

    def recv(self, size: int) -> bytes:
        assert size > 0
        if self.steps and self.steps[0] is FOREVER:
            timeout = self.timeouts[-1]
            assert timeout is not None
            time.sleep(timeout)
            raise TimeoutError("timed out")
        return next(self, b"")


class File(Script):
    """A file: no iterable, but it gives what is there."""

    __iter__ = None  # type: ignore[assignment]

    def read1(self, size: int) -> bytes:
        assert size > 0
        return next(self, b"")


def generator(*steps: Any) -> Iterator[bytes]:
    yield from Script(*steps)


@contextlib.contextmanager
def socket_to(*steps: Any) -> Iterator[socket.socket]:
    """A socket, and a peer that writes into it."""
    ours, theirs = socket.socketpair()
    script = Script(*steps)

    def write() -> None:
        # Whoever closes first is not to blame the other.
        with theirs, contextlib.suppress(OSError):
            for data in script:
                theirs.sendall(data)

    thread = threading.Thread(target=write)
    thread.start()
    with ours, script:
        yield ours
    thread.join(BOUND)


@contextlib.contextmanager
def file_of(*steps: Any) -> Iterator[Any]:
    with socket_to(*steps) as connection, connection.makefile("rb") as file:
        yield file


@contextlib.contextmanager
def opened(source: Any) -> Iterator[Any]:
    with source if isinstance(source, Script) else contextlib.nullcontext():
        yield source


def opening(source: Any, left: list[str] | None = None) -> Callable[[], Any]:
    """A function whose context gives a source."""

    @contextlib.contextmanager
    def open_source() -> Iterator[Any]:
        try:
            yield source
        finally:
            if left is not None:
                left.append("left")

    return open_source


@contextlib.contextmanager
def function_of(*steps: Any) -> Iterator[Any]:
    with Script(*steps) as script:
        yield opening(script)


@contextlib.contextmanager
def function_to(*steps: Any) -> Iterator[Any]:
    with socket_to(*steps) as connection:
        yield opening(connection)


SOURCES: dict[str, Callable[..., Any]] = {
    "socket": socket_to,
    "file": file_of,
    "something with read1": lambda *steps: opened(File(*steps)),
    "iterable": lambda *steps: opened(Script(*steps)),
    "generator": lambda *steps: opened(generator(*steps)),
    "function": function_of,
    "function of a socket": function_to,
}


def take_all(events: Iterator[T], into: list[T]) -> None:
    for event in events:
        into.append(event)  # noqa: PERF402 - what comes before an error counts


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("name", ANSWERS)
def test_every_source_gives_the_events_that_a_receiver_gives(kind: str, name: str) -> None:
    for size in (7, 100_000):
        with SOURCES[kind](*pieces(ANSWERS[name], size)) as source:
            assert list(iter_events(source, Receiver.detecting())) == read_whole(ANSWERS[name])


def test_empty_chunks_of_an_iterable_are_no_end() -> None:
    assert list(iter_events([b"", SAMPLE[:900], b"", SAMPLE[900:]], MESSAGES)) == EVENTS


def test_a_receiver_of_the_callers_own_is_used() -> None:
    receiver = Receiver.detecting(accumulate=True)
    events = iter_events([SAMPLE], receiver)
    assert events.receiver is receiver
    assert list(events) == EVENTS
    assert receiver.accumulator.text.startswith("Let me look")
    assert events.response is None


def test_the_head_of_a_source_that_has_one_is_at_hand() -> None:
    class Body(Script):
        response = "the head"

    assert iter_events(Body(SAMPLE), MESSAGES).response == "the head"


def test_a_strict_receiver_stays_strict_and_its_error_closes_the_source() -> None:
    source = Script(BEGIN, BEGIN, FOREVER)
    seen: list[Any] = []
    events = iter_events(source, Receiver(MESSAGES, strict=True))
    with pytest.raises(RemoteProtocolError) as raised:
        take_all(events, seen)
    assert source.closed == 1
    with pytest.raises(RemoteProtocolError) as again:
        next(events)
    assert again.value is raised.value
    assert again.value.__cause__ is None
    assert seen == EVENTS[:1]


def test_nothing_is_read_behind_the_end_and_the_source_is_closed_before_that_is_told() -> None:
    source = Script(SAMPLE, FOREVER)
    for event in iter_events(source, MESSAGES):
        assert source.closed == isinstance(event, EndOfStream)
    assert source.closed == 1


def test_a_peer_that_keeps_its_connection_open_holds_nobody_up() -> None:
    with socket_to(SAMPLE, FOREVER) as connection:
        assert list(iter_events(connection, MESSAGES)) == EVENTS
        assert connection.fileno() == -1


def test_an_iterator_that_is_over_stays_over() -> None:
    source = Script(SAMPLE)
    with iter_events(source, MESSAGES) as events:
        assert len(list(events)) == len(EVENTS)
        assert list(events) == []
    assert source.closed == 1


@pytest.mark.parametrize(
    "error", [OSError("reset"), RuntimeError("of some library"), TimeoutError("of the source")]
)
@pytest.mark.parametrize("kind", ["iterable", "generator", "function", "something with read1"])
def test_a_source_that_fails_truncates_the_answer_behind_all_that_came(
    error: Exception, kind: str
) -> None:
    seen: list[Any] = []
    with SOURCES[kind](SAMPLE[:900], SAMPLE[900:1500], error) as source:
        events = iter_events(source, MESSAGES)
        with pytest.raises(StreamTruncated) as raised:
            take_all(events, seen)
    assert raised.value.__cause__ is error
    with pytest.raises(StreamTruncated) as again:
        next(events)
    assert again.value is raised.value
    assert again.value.__cause__ is error
    receiver = Receiver(MESSAGES)
    receiver.receive_data(SAMPLE[:1500])
    assert seen == list(receiver)


def test_a_timeout_of_the_socket_stays_and_truncates_the_answer() -> None:
    with socket_to(SAMPLE[:900], FOREVER) as connection:
        connection.settimeout(0.01)
        with pytest.raises(StreamTruncated) as raised:
            take_all(iter_events(connection, MESSAGES), [])
        assert isinstance(raised.value.__cause__, TimeoutError)
        assert connection.fileno() == -1


def test_the_source_is_closed_before_an_error_is_raised() -> None:
    for source, error in (
        (Script(SAMPLE[:900], OSError()), StreamTruncated),
        (Script(SAMPLE[:900]), StreamTruncated),
        (Script(b'{"error": {"message": "no"}}\n\n', FOREVER), NotAnEventStream),
    ):
        with pytest.raises(error):
            take_all(iter_events(source, MESSAGES), [])
        assert source.closed == 1


@pytest.mark.parametrize("kind", SOURCES)
def test_a_source_that_ends_early_truncates_the_answer(kind: str) -> None:
    with SOURCES[kind](SAMPLE[:900]) as source:
        with pytest.raises(StreamTruncated) as raised:
            take_all(iter_events(source, MESSAGES), [])
        assert raised.value.__cause__ is None


def test_a_source_that_fails_behind_the_end_is_nobodys_business() -> None:
    assert list(iter_events(Script(SAMPLE, OSError("reset")), MESSAGES)) == EVENTS
    unmarked = SAMPLES["chat"].removesuffix(b"data: [DONE]\n\n")
    events = list(iter_events(Script(unmarked, OSError("reset")), CHAT))
    assert events[-1] == EndOfStream(outcome=Outcome.COMPLETED_NO_DONE)


def test_a_last_event_without_its_blank_line_counts_unless_the_source_has_failed() -> None:
    unfinished = SAMPLE.removesuffix(b"\n\n")
    events = list(iter_events([unfinished], MESSAGES))
    assert events[-1] == EndOfStream(outcome=Outcome.COMPLETED)
    with pytest.raises(StreamTruncated):
        list(iter_events(Script(unfinished, OSError("reset")), MESSAGES))


@pytest.mark.parametrize("taken", [0, 1, 5])
def test_the_source_is_closed_where_the_context_is_left(taken: int) -> None:
    left: list[str] = []
    source = Script(SAMPLE[:1500], FOREVER)
    for it in (source, opening(Script(SAMPLE[:1500], FOREVER), left)):
        with iter_events(it, MESSAGES) as events:
            for _ in range(taken):
                next(events)
    assert source.closed == 1
    # What was never opened need not be closed.
    assert left == ["left"] * bool(taken)


@pytest.mark.parametrize("error", [ZeroDivisionError(), StopIteration(), OSError(), KeyboardInterrupt()])
def test_an_error_of_the_body_comes_out_as_it_is(error: BaseException) -> None:
    def use(things: Any) -> None:
        with things:
            next(things)
            raise error

    read, forwarded = Timed(SAMPLE[:900], FOREVER), Timed(SAMPLE[:900], FOREVER)
    for things in (iter_events(read, MESSAGES), relayed(forwarded, machine())):
        with pytest.raises(type(error)) as raised:
            use(things)
        assert raised.value is error
    assert (read.closed, forwarded.closed) == (1, 1)


def test_what_had_come_can_be_taken_after_closing() -> None:
    with socket_to(SAMPLE[:900], FOREVER) as connection:
        events = iter_events(connection, MESSAGES)
        seen = [next(events)]
        events.close()
        with pytest.raises(StreamTruncated) as raised:
            take_all(events, seen)
    assert seen == EVENTS[: len(seen)]
    assert len(seen) > 3
    assert isinstance(raised.value.__cause__, OSError)


def test_a_source_without_a_way_to_close_it() -> None:
    assert list(iter_events([SAMPLE], MESSAGES)) == EVENTS
    sink = Sink()
    assert relay([SAMPLE], sink, machine()) is RelayOutcome.COMPLETED
    assert sink.data == SAMPLE


def test_a_source_that_cannot_be_closed_says_so() -> None:
    class Broken(Script):
        def close(self) -> None:
            raise ValueError("not closed")

    with pytest.raises(ValueError, match="not closed"):
        list(iter_events(Broken(SAMPLE), MESSAGES))


def test_a_context_that_cannot_be_left_says_so() -> None:
    @contextlib.contextmanager
    def broken() -> Iterator[Any]:
        try:
            yield [SAMPLE]
        finally:
            raise ValueError("not left")

    with pytest.raises(ValueError, match="not left"):
        list(iter_events(broken, MESSAGES))


def test_a_function_that_cannot_open_its_source_truncates_the_answer() -> None:
    @contextlib.contextmanager
    def refused() -> Iterator[Any]:
        raise ConnectionRefusedError("no")
        yield

    with pytest.raises(StreamTruncated) as raised:
        list(iter_events(refused, MESSAGES))
    assert isinstance(raised.value.__cause__, ConnectionRefusedError)


# Relays.


class Sink:
    """Notes what it is given and when; waits, and fails, as it is told."""

    def __init__(self, *, wait: float = 0, error: BaseException | None = None, after: int = 0) -> None:
        self.writes: list[tuple[float, bytes]] = []
        self._wait = wait
        self._error = error
        self._after = after

    def __call__(self, data: bytes) -> None:
        if self._error is not None and len(self.writes) >= self._after:
            raise self._error
        time.sleep(self._wait)
        self.writes.append((time.monotonic(), data))

    @property
    def data(self) -> bytes:
        return b"".join(data for _, data in self.writes)


def machine(config: RelayConfig = QUIET) -> Relay:
    return Relay(MESSAGES, config, now=time.monotonic())


def stalling(seconds: float) -> RelayConfig:
    return RelayConfig(keepalive=None, stall=Stall(idle_progress=seconds))


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("size", [20, 100_000])
def test_a_whole_answer_passes_unchanged(kind: str, size: int) -> None:
    sink, it = Sink(), machine()
    with SOURCES[kind](*pieces(SAMPLE, size)) as source:
        outcome = relay(source, sink, it)
    assert outcome is it.outcome is RelayOutcome.COMPLETED
    assert sink.data == SAMPLE


def test_a_socket_is_a_sink() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert relay([SAMPLE], ours.sendall, machine()) is RelayOutcome.COMPLETED
        assert theirs.recv(10_000) == SAMPLE


UPSTREAMS: dict[str, tuple[list[Any], list[Step]]] = {
    "whole": ([SAMPLE], [Arrive(0, SAMPLE)]),
    "a cut": ([SAMPLE[:900]], [Arrive(0, SAMPLE[:900]), End(0)]),
    "an error": ([SAMPLE[:900], OSError()], [Arrive(0, SAMPLE[:900]), Break(0, "OSError")]),
    "a timeout": ([SAMPLE[:900], TimeoutError()], [Arrive(0, SAMPLE[:900]), Break(0, "TimeoutError")]),
    "a hang behind the end": ([SAMPLE, FOREVER], [Arrive(0, SAMPLE)]),
    "something else": ([b"<html>\n\n", FOREVER], [Arrive(0, b"<html>\n\n")]),
    "nothing": ([], [End(0)]),
}


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("config", [QUIET, RelayConfig.hopbase()])
def test_a_relay_does_what_its_machine_does(upstream: str, config: RelayConfig) -> None:
    steps, script = UPSTREAMS[upstream]
    expected = drive(Relay(MESSAGES, config, now=0.0), script)
    sink, left, seen = Sink(), list[str](), list[Event]()
    with Script(*steps) as source:
        outcome = relay(opening(source, left), sink, machine(config), observe=seen.append)
    assert outcome is expected.relay.outcome
    assert sink.data == expected.data
    assert [type(event) for event in seen] == [type(event) for _, event in expected.events]
    assert left == ["left"]
    assert source.is_closed.wait(BOUND)


@pytest.mark.parametrize("kind", ["socket", "iterable"])
def test_keep_alives_come_at_their_times(kind: str) -> None:
    go_on, interval = threading.Event(), 0.02
    sink = Sink()

    def write(data: bytes) -> None:
        sink(data)
        if sink.data.count(b": here\n\n") == 3:
            go_on.set()

    end = len(BEGIN)
    config = RelayConfig(keepalive=KeepAlive(interval=interval, text="here"), stall=None)
    with SOURCES[kind](SAMPLE[: end + 9], go_on, SAMPLE[end + 9 :]) as source:
        relay(source, write, machine(config))
    assert [data for _, data in sink.writes[:4]] == [BEGIN, *[b": here\n\n"] * 3]
    assert sink.data.replace(b": here\n\n", b"") == SAMPLE
    times = [at for at, _ in sink.writes[:4]]
    # The sink notes the first time a little later than the machine does.
    assert times[3] - times[0] > 2.5 * interval


@pytest.mark.parametrize("kind", ["socket", "function of a socket", "iterable", "function"])
def test_a_stalled_upstream_is_left_and_the_client_told(kind: str) -> None:
    begin, sink = time.monotonic(), Sink()
    with SOURCES[kind](SAMPLE[:900], FOREVER) as source:
        outcome = relay(source, sink, machine(stalling(0.03)))
        assert outcome is RelayOutcome.STALLED
        assert kind != "socket" or source.fileno() == -1
    assert sink.writes[-1][0] - begin >= 0.03
    assert b"The model stopped responding" in sink.writes[-1][1]


def test_an_upstream_that_hangs_behind_the_end_holds_nobody_up() -> None:
    with socket_to(SAMPLE, FOREVER) as connection:
        sink = Sink()
        assert relay(connection, sink, machine()) is RelayOutcome.COMPLETED
        assert connection.fileno() == -1


@pytest.mark.parametrize("kind", ["socket", "iterable"])
def test_nobody_is_blamed_while_the_client_is_slow(kind: str) -> None:
    sink = Sink(wait=0.05)
    with SOURCES[kind](*pieces(SAMPLE, 900)) as source:
        assert relay(source, sink, machine(stalling(0.04))) is RelayOutcome.COMPLETED
    assert sink.data == SAMPLE


def test_a_client_that_is_slower_than_the_keep_alives_is_sent_what_has_come() -> None:
    writes: list[bytes] = []

    def sink(data: bytes) -> None:
        time.sleep(0.02)
        writes.append(data)
        # It gives up where nothing but keep-alives comes.
        assert len(writes) < 10

    config = RelayConfig(keepalive=KeepAlive(interval=0.01, text="here"), stall=None)
    assert relay(Timed(*pieces(SAMPLE, 900)), sink, machine(config)) is RelayOutcome.COMPLETED
    assert b"".join(writes).replace(b": here\n\n", b"") == SAMPLE


def test_the_silence_of_the_upstream_counts_from_where_the_client_is_ready() -> None:
    sink = Sink(wait=0.05)
    source = Timed(SAMPLE[:900], FOREVER)
    assert relay(source, sink, machine(stalling(0.03))) is RelayOutcome.STALLED
    waited = [timeout for timeout in source.timeouts if timeout is not None]
    # What was not left of the time is what passed without a slow client.
    assert 0.02 < waited[1] <= 0.03
    assert sink.writes[1][0] - sink.writes[0][0] >= 0.03


def test_data_that_has_come_goes_before_timers() -> None:
    class Paused(Timed):
        def recv(self, size: int) -> bytes:
            # The process is stopped inside of the read, for longer than the patience of the relay.
            time.sleep(0.02)
            return super().recv(size)

    sink = Sink()
    assert relay(Paused(*pieces(SAMPLE, 900)), sink, machine(stalling(0.01))) is RelayOutcome.COMPLETED
    assert sink.data == SAMPLE


def test_a_deadline_in_the_past_still_lets_be_read_what_waits() -> None:
    with socket_to(BEGIN, FOREVER) as connection:
        pump = Pump(connection, timed=True)
        assert pump.ready(None)
        assert pump.take() == BEGIN
        assert not pump.ready(time.monotonic() - 1)
    with socket_to(BEGIN) as connection:
        connection.recv(1, socket.MSG_PEEK)
        pump = Pump(connection, timed=True)
        assert pump.ready(time.monotonic() - 1)
        assert pump.take() == BEGIN


def test_a_socket_that_is_read_without_deadlines_waits_without_timeout() -> None:
    source = Timed(SAMPLE)
    relay(source, Sink(), machine())
    assert source.timeouts == [None]


@pytest.mark.parametrize(("kind", "ahead"), [(Timed, 0), (Script, 2), (File, 2)])
def test_a_slow_client_holds_the_upstream_up(kind: type[Script], ahead: int) -> None:
    source = kind(*[BEGIN] * 100)
    writes: list[int] = []

    def sink(_data: bytes) -> None:
        time.sleep(0.01)
        writes.append(source.given)
        if len(writes) == 5:
            raise BrokenPipeError

    relay(source, sink, machine())
    # One that waits, and one in the hands of the thread, if there is any.
    assert all(given <= number + ahead for number, given in enumerate(writes, 1))


@pytest.mark.parametrize("after", [0, 1, 3])
@pytest.mark.parametrize("kind", [Timed, Script])
def test_a_client_that_is_gone_closes_the_upstream(after: int, kind: type[Script]) -> None:
    it, sink = machine(), Sink(error=ConnectionResetError(), after=after)
    with kind(*pieces(SAMPLE, 400), FOREVER) as source:
        assert relay(source, sink, it) is RelayOutcome.CANCELLED
    assert source.is_closed.wait(BOUND)
    assert len(sink.writes) == after


@pytest.mark.parametrize("kind", [Timed, Script])
def test_a_client_that_is_gone_lets_the_upstream_be_drained(kind: type[Script]) -> None:
    config = RelayConfig(stall=None, drain=Drain(max_seconds=0.05))
    it, sink = machine(config), Sink(error=BrokenPipeError(), after=1)
    source = kind(*pieces(SAMPLE, 400))
    assert relay(source, sink, it) is RelayOutcome.CANCELLED
    assert (it.usage.status, it.usage.output) == ("final", 64)
    assert len(sink.writes) == 1
    begin = time.monotonic()
    with kind(SAMPLE[:900], FOREVER) as source:
        assert relay(source, Sink(error=OSError()), machine(config)) is RelayOutcome.CANCELLED
        assert time.monotonic() - begin >= 0.05
    assert source.is_closed.wait(BOUND)


@pytest.mark.parametrize("error", [ZeroDivisionError(), KeyboardInterrupt()])
@pytest.mark.parametrize("kind", [Timed, Script])
def test_a_sink_that_fails_otherwise_fails_the_call(error: BaseException, kind: type[Script]) -> None:
    it = machine(RelayConfig(drain=Drain()))
    with kind(SAMPLE[:900], FOREVER) as source, pytest.raises(type(error)):
        relay(source, Sink(error=error), it)
    assert it.outcome is RelayOutcome.CANCELLED
    assert source.is_closed.wait(BOUND)


@pytest.mark.parametrize("fault", [TimeoutError("of the source"), OSError("reset")])
@pytest.mark.parametrize("kind", ["iterable", "generator", "something with read1", "function"])
def test_an_error_of_the_source_is_no_deadline(fault: Exception, kind: str) -> None:
    sink = Sink()
    with SOURCES[kind](SAMPLE[:900], fault) as source:
        # With a deadline that is far away.
        assert relay(source, sink, machine(stalling(60.0))) is RelayOutcome.ABORTED
    assert INTERRUPTED in sink.data


def test_a_connection_that_the_system_gives_up_is_no_deadline() -> None:
    # The system's own error is a TimeoutError, too; what it reports once reads as an end afterwards.
    source = Timed(SAMPLE[:900], TimeoutError(errno.ETIMEDOUT, "Connection timed out"))
    assert relay(source, Sink(), machine(stalling(60.0))) is RelayOutcome.ABORTED


def test_bytes_that_nobody_takes_end_with_the_context() -> None:
    for kind in (Timed, Script):
        it = machine()
        with kind(*pieces(SAMPLE, 400), FOREVER) as source:
            with relayed(source, it) as body:
                for _ in body:
                    break
            assert it.outcome is RelayOutcome.CANCELLED
            assert list(body) == []
        assert source.is_closed.wait(BOUND)


def test_a_relay_that_nobody_reads_closes_its_upstream() -> None:
    for kind in (Timed, Script):
        source, it = kind(FOREVER), machine()
        relayed(source, it).close()
        assert it.outcome is RelayOutcome.CANCELLED
        assert source.closed == 1


# Attempts.

HELD = RelayConfig(
    hold=Hold(), keepalive=KeepAlive(interval=10.0, before_output=True), stall=Stall(first_byte=60.0)
)


class Attempts:
    """Sources of one answer after the other; an exception is raised instead of opening one."""

    def __init__(self, *sources: Any) -> None:
        self.sources = list(sources)
        self.log: list[str] = []

    @contextlib.contextmanager
    def __call__(self) -> Iterator[Any]:
        self.log.append("open")
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


@pytest.mark.parametrize("kind", [Timed, Script])
def test_an_attempt_that_fails_before_output_is_made_again(kind: type[Script]) -> None:
    first = kind(BEGIN.replace(b"msg_", b"one_"), OSError("reset"))
    with kind(*pieces(SAMPLE, 300), FOREVER) as second:
        attempts = Attempts(first, second)
        sink, failures = Sink(), list[FailedBeforeOutput]()
        outcome = relay(attempts, sink, machine(HELD), retry=again(failures))
    assert outcome is RelayOutcome.COMPLETED
    assert sink.data == SAMPLE
    assert attempts.log == ["open", "left", "open", "left"]
    assert [(failure.cause, failure.detail) for failure in failures] == [("transport", "OSError: reset")]


@pytest.mark.parametrize("error", [ConnectionRefusedError("no"), TimeoutError("too slow")])
def test_a_connection_that_fails_is_a_failed_attempt(error: Exception) -> None:
    sink, failures = Sink(), list[FailedBeforeOutput]()
    attempts = Attempts(error, Timed(SAMPLE))
    outcome = relay(attempts, sink, machine(HELD), retry=again(failures))
    assert outcome is RelayOutcome.COMPLETED
    assert sink.data == SAMPLE
    assert [(failure.cause, failure.detail) for failure in failures] == [
        ("transport", f"{type(error).__name__}: {error}")
    ]
    assert attempts.log == ["open", "open", "left"]


@pytest.mark.parametrize(
    ("answer", "text"),
    [(False, INTERRUPTED), (None, INTERRUPTED), (ErrorInfo(message="try later"), b"try later")],
)
def test_a_failed_attempt_that_is_not_made_again_is_an_error(answer: Any, text: bytes) -> None:
    sink, attempts = Sink(), Attempts(Timed(BEGIN))
    retry = None if answer is None else again([], answer)
    outcome = relay(attempts, sink, machine(HELD), retry=retry)
    assert text in sink.data
    assert sink.data.count(b"event: error") == 1
    assert attempts.log == ["open", "left"]
    failed = isinstance(answer, ErrorInfo)
    assert outcome is (RelayOutcome.FAILED_GATEWAY if failed else RelayOutcome.TRUNCATED)


def test_an_upstream_that_is_silent_from_the_start_is_a_stall_each_time() -> None:
    config = RelayConfig(
        hold=Hold(),
        keepalive=KeepAlive(interval=0.02, before_output=True),
        stall=Stall(first_byte=0.05),
    )
    sink, failures, begin = Sink(), list[FailedBeforeOutput](), time.monotonic()

    def retry(failure: FailedBeforeOutput) -> bool:
        failures.append(failure)
        return len(failures) < 2

    with Script(FOREVER) as first, Script(FOREVER) as second:
        outcome = relay(Attempts(first, second), sink, machine(config), retry=retry)
    assert outcome is RelayOutcome.STALLED
    assert [failure.cause for failure in failures] == ["stalled", "stalled"]
    assert sink.data.startswith(b": keep-alive\n\n")
    assert b"event: error" in sink.data
    assert time.monotonic() - begin >= 0.1


def test_only_what_opens_a_source_can_be_asked_again() -> None:
    with pytest.raises(TypeError, match="function that opens"):
        relay(Script(SAMPLE), Sink(), machine(), retry=again([]))


def test_a_relay_that_had_failed_before_is_ended() -> None:
    it, sink, attempts = machine(HELD), Sink(), Attempts()
    it.receive_eof(0.0)
    assert relay(attempts, sink, it, retry=again([])) is RelayOutcome.TRUNCATED
    assert INTERRUPTED in sink.data
    assert attempts.log == []


def test_who_decides_about_attempts_can_fail() -> None:
    def retry(failure: FailedBeforeOutput) -> bool:
        raise ZeroDivisionError(failure)

    it, attempts = machine(HELD), Attempts(Timed(BEGIN))
    with pytest.raises(ZeroDivisionError):
        relay(attempts, Sink(), it, retry=retry)
    assert attempts.log == ["open", "left"]
    assert it.outcome is RelayOutcome.CANCELLED


def test_everything_a_relay_tells_is_observed() -> None:
    seen: list[Event] = []
    relay(Script(*pieces(SAMPLE, 300)), Sink(), machine(), observe=seen.append)
    it = Relay(MESSAGES, QUIET, now=0.0)
    told = [event for piece in pieces(SAMPLE, 300) for event in it.receive_data(piece, 0.0).events]
    assert seen == told
    assert seen[-1] == Closed(outcome=RelayOutcome.COMPLETED)


@pytest.mark.parametrize("failing", [EVENTS[3:4], [Closed(outcome=RelayOutcome.CANCELLED)], None])
@pytest.mark.parametrize("kind", [Timed, Script])
def test_an_observer_that_fails_fails_the_call_and_the_upstream_is_closed(
    failing: Any, kind: type[Script]
) -> None:
    def observe(event: Event) -> None:
        # None: whatever it is told.
        if failing is None or event in failing:
            raise ZeroDivisionError

    it = machine()
    with kind(*pieces(SAMPLE, 300)[:-1], FOREVER) as source, pytest.raises(ZeroDivisionError):
        relay(source, Sink(error=OSError(), after=3), it, observe=observe)
    assert it.outcome is RelayOutcome.CANCELLED
    assert source.is_closed.wait(BOUND)
