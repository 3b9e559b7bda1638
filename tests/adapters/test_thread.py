"""The thread that reads what has no timeouts: what it gives, and that it ends."""

from __future__ import annotations

import contextlib
import io
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from sse_machines.adapters._thread import Threaded

# Nothing here takes so long, unless it takes for ever.
BOUND = 2.0


class Source:
    """An iterable that stops where its gate is shut, and notes what becomes of it."""

    def __init__(self, *steps: bytes | Exception, open_gate: bool = True) -> None:
        self.steps = list(steps)
        self.reads = 0
        self.closed = 0
        self.reading = threading.Event()
        self.gate = threading.Event()
        if open_gate:
            self.gate.set()

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        self.reads += 1
        self.reading.set()
        assert self.gate.wait(BOUND)
        if not self.steps:
            raise StopIteration
        step = self.steps.pop(0)
        if isinstance(step, Exception):
            raise step
        return step

    def close(self) -> None:
        self.closed += 1


def reading(chunks: Any, timeout: float | None = BOUND) -> Threaded:
    threaded = Threaded(chunks)
    threaded.settimeout(timeout)
    return threaded


def thread_of(threaded: Threaded) -> threading.Thread:
    assert threaded._thread is not None
    return threaded._thread


def reads_when_at_rest(source: Source) -> int:
    """How often the thread has read when it reads no more. Nothing else shows that it waits."""
    tick, reads = threading.Event(), -1
    while reads != source.reads:
        reads = source.reads
        tick.wait(0.01)
    return reads


def join(threaded: Threaded) -> None:
    thread = thread_of(threaded)
    thread.join(BOUND)
    assert not thread.is_alive()


def read_all(threaded: Threaded) -> list[bytes]:
    return list(iter(lambda: threaded.recv(1), b""))


def test_chunks_come_as_they_are_and_the_thread_ends_with_them() -> None:
    source = Source(b"one", b"two", b"three")
    threaded = reading(source)
    assert read_all(threaded) == [b"one", b"two", b"three"]
    join(threaded)
    assert source.closed == 1


def test_an_empty_chunk_is_no_end() -> None:
    threaded = reading(Source(b"", b"one", b"", b"two", b""))
    assert read_all(threaded) == [b"one", b"two"]
    join(threaded)


def test_what_has_read1_is_read_as_it_comes_and_not_by_the_line() -> None:
    class File:
        closed = 0

        def __init__(self) -> None:
            self.file = io.BytesIO(b"one\ntwo\nthree")

        def read1(self, size: int) -> bytes:
            return self.file.read1(size)

        def close(self) -> None:
            self.closed += 1

    file = File()
    threaded = reading(file)
    assert read_all(threaded) == [b"one\ntwo\nthree"]
    join(threaded)
    assert file.closed == 1


def test_what_cannot_be_closed_need_not_be() -> None:
    threaded = reading([b"one"])
    assert read_all(threaded) == [b"one"]
    join(threaded)
    reading([b"one"]).close()


def test_an_error_comes_behind_the_chunks_and_the_source_is_closed() -> None:
    source = Source(b"one", ZeroDivisionError("of the source"))
    threaded = reading(source)
    assert threaded.recv(1) == b"one"
    with pytest.raises(ZeroDivisionError, match="of the source"):
        threaded.recv(1)
    join(threaded)
    assert source.closed == 1


def test_a_wait_that_is_over_loses_nothing() -> None:
    source = Source(b"one", open_gate=False)
    threaded = reading(source, 0.005)
    for _ in range(3):
        with pytest.raises(TimeoutError):
            threaded.recv(1)
    source.gate.set()
    threaded.settimeout(BOUND)
    assert threaded.recv(1) == b"one"
    assert threaded.recv(1) == b""
    join(threaded)


def test_a_source_that_times_out_is_no_wait_that_is_over() -> None:
    fault = TimeoutError("of the source")
    threaded = reading(Source(fault))
    with pytest.raises(ConnectionAbortedError, match="of the source") as raised:
        threaded.recv(1)
    assert raised.value.__cause__ is fault
    join(threaded)


def test_nothing_is_read_before_it_is_asked_for_and_only_a_little_ahead() -> None:
    source = Source(*[b"chunk"] * 100)
    threaded = reading(source)
    assert source.reads == 0
    threaded.recv(1)
    # Besides what was taken: one that waits, and at most one for which there is no room.
    assert 2 <= reads_when_at_rest(source) <= 3
    threaded.close()
    join(threaded)


def test_closing_what_was_never_read_closes_the_source() -> None:
    source = Source(b"one")
    threaded = reading(source)
    threaded.close()
    assert (source.reads, source.closed) == (0, 1)
    assert threaded._thread is None


def test_a_thread_inside_of_a_read_stops_when_that_returns() -> None:
    source = Source(b"one", b"two", b"three", open_gate=False)
    threaded = reading(source, 0.001)
    with pytest.raises(TimeoutError):
        threaded.recv(1)
    assert source.reading.wait(BOUND)
    threaded.close()
    source.gate.set()
    join(threaded)
    assert (source.reads, source.closed) == (1, 1)


@pytest.mark.parametrize("chunks", [0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize("last", [[], [OSError("reset")]])
def test_a_thread_that_waits_for_room_stops_and_reads_no_more(chunks: int, last: list[Any]) -> None:
    source = Source(b"one", *[b"more"] * chunks, *last)
    threaded = reading(source)
    assert threaded.recv(1) == b"one"
    reads = reads_when_at_rest(source)
    threaded.close()
    join(threaded)
    # Another read might take for ever.
    assert (source.reads, source.closed) == (reads, 1)


def test_closing_what_is_over_changes_nothing() -> None:
    source = Source(b"one")
    threaded = reading(source)
    assert read_all(threaded) == [b"one"]
    join(threaded)
    threaded.close()
    threaded.close()
    assert source.closed == 1


def test_closing_at_whatever_moment_ends_the_thread() -> None:
    for pause in range(100):
        threaded = reading(Source(b"one", b"two", b"three"))
        threaded.recv(1)
        for _ in range(pause % 10):
            threading.Event().wait(0)
        threaded.close()
        join(threaded)


def test_a_source_that_cannot_be_closed_keeps_nobody_waiting() -> None:
    class Broken(Source):
        def close(self) -> None:
            raise ValueError("not closed")

    threaded = reading(Broken(b"one"), 0.5)
    assert threaded.recv(1) == b"one"
    # What it says is another matter, but the wait is not to end by a timeout.
    with contextlib.suppress(ValueError):
        assert threaded.recv(1) == b""
    join(threaded)
