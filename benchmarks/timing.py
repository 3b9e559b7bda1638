"""CPU time of contenders, compared fairly on a machine whose speed drifts.

Every contender runs once per round, so that a slow minute hits all of them, and the minimum over the
rounds is what counts. Only ratios within one table mean anything; this module deliberately computes no
averages, no deviations and no totals over tables.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol


class Source(Protocol):
    """What a contender is given: a stream that is read, or events that are written."""

    @property
    def blocks(self) -> Sequence[Any]:
        """What has to be found or written, one by one."""

    def chunks(self, size: int) -> list[Any]:
        """What the contender gets, in pieces of one size."""


class Job(NamedTuple):
    """A contender and what it is given; None for one that is not installed."""

    work: Callable[[list[Any]], int | list[Any]] | None
    stream: Source


Row = dict[str, float]
"""Microseconds per event, by contender; those that are not installed are missing."""


def measure(jobs: Mapping[str, Job], chunk: int, rounds: int) -> Row:
    """Run the jobs in interleaved rounds, with input in chunks of one size.

    Raises:
        RuntimeError: A contender missed events of its stream, so its time means nothing.
    """
    ready = [
        (name, job.work, job.stream.chunks(chunk), len(job.stream.blocks))
        for name, job in jobs.items()
        if job.work is not None
    ]
    best = dict.fromkeys([name for name, *_ in ready], math.inf)
    with _only_own_garbage():
        for _ in range(rounds):
            for name, work, chunks, events in ready:
                best[name] = min(best[name], _seconds(name, work, chunks, events) * 1e6 / events)
    return best


def _seconds(
    name: str, work: Callable[[list[Any]], int | list[Any]], chunks: list[Any], events: int
) -> float:
    gc.collect()
    start = time.process_time()
    result = work(chunks)
    taken = time.process_time() - start
    count = result if isinstance(result, int) else len(result)
    # An SDK may swallow the ping; this package has a frame for the LF of a CR LF that was cut in two.
    if count < events - 1:
        raise RuntimeError(f"{name} found {count} of {events} events")
    return taken


@contextmanager
def _only_own_garbage() -> Iterator[None]:
    """Keep what the peers import out of the collections that happen while the clock runs."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def print_table(
    title: str,
    names: list[str],
    columns: Mapping[int, Row],
    bases: list[str],
    *,
    unit: str = "B chunks",
) -> None:
    """Print microseconds per event and the ratios to the bases, by contender and chunk size."""
    print(f"\n{title}")
    print(f"us per event (ratios to {', to '.join(bases)})")
    print("".join([f"{'':24}", *(f"{f'{size:,} {unit}':>22}" for size in columns)]))
    for name in names:
        cells = [_cell(name, row, bases) for row in columns.values()]
        print("".join([f"{name:24}", *(f"{cell:>22}" for cell in cells)]))


def _cell(name: str, row: Row, bases: list[str]) -> str:
    if name not in row:
        return "not installed"
    ratios = " ".join(f"{row[name] / row[base]:.2f}" if base in row else "-" for base in bases)
    return f"{row[name]:.2f} ({ratios})"
