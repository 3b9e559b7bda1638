"""What a relay costs beside what it cannot do without: framing, or receiving.

A relay that reads everything is compared with a receiver whose events are taken, and one that reads only
what it must with a reader of frames. All four run in the same rounds. Then what a relay keeps, and what
very many of them cost that take turns, as they do in one process of a gateway.

Time is virtual here: the schedules are the same in every run, and nothing sleeps. A sign of life never
falls due, but whether one is due is asked at every call. What writing to a client costs is deliberately
left out.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

import attrs

from sse_machines.relay import Output, Relay, RelayConfig, RelayOutcome

from . import contenders
from .contenders import PROTOCOLS
from .memory import bytes_per_object
from .streams import Stream, stream
from .timing import Job, Row, Source, measure, print_table

Mode = Literal["light", "full"]
MODES: tuple[Mode, ...] = ("light", "full")

FRAMING = "framing"
RECEIVE = "receive"
LIGHT = "relay, light"
FULL = "relay, full"
RATIOS = ((LIGHT, FRAMING, 1.5), (FULL, RECEIVE, 1.1))
"""Who is compared with whom, and what the ratio is to be at most."""

CHUNK = 1400
_TICK = 0.01
"""Virtual seconds between two chunks of an answer: 100 events per second, one in each."""
_OPENING = 10
"""Events before those that are counted: by then every answer is in the middle of its text."""
_ENDING = 10
_SAMPLE = 1000
"""Relays whose bytes are counted, at most: being traced makes them several times slower."""


class Events(NamedTuple):
    """An answer that comes event by event."""

    blocks: list[bytes]

    def chunks(self, _size: int) -> list[bytes]:
        """One event in each."""
        return self.blocks


def config(mode: Mode) -> RelayConfig:
    """A gateway's usual one: keep-alives, a clock for stalls, and output held back until it begins."""
    return attrs.evolve(RelayConfig.hopbase(), observe=mode)


def jobs(protocol: str, source: Source) -> dict[str, Job]:
    """All four, by name, with the same input."""
    return {
        FRAMING: Job(contenders.read_frames, source),
        LIGHT: Job(lambda chunks: relay_unread(protocol, chunks), source),
        RECEIVE: Job(lambda chunks: contenders.receive_events(protocol, chunks), source),
        FULL: Job(lambda chunks: relay_events(protocol, chunks), source),
    }


def relay_unread(protocol: str, chunks: list[bytes]) -> int:
    """Relay an answer of which hardly anything is read, and let its bytes go."""
    relay = Relay(PROTOCOLS[protocol], config("light"), now=0.0)
    now = 0.0
    for chunk in chunks:
        now += _TICK
        relay.receive_data(chunk, now)
    _check_end(relay)
    return relay.counters.events


def relay_events(protocol: str, chunks: list[bytes]) -> list[Any]:
    """Relay an answer, and keep its events as whoever receives it does; let its bytes go."""
    relay = Relay(PROTOCOLS[protocol], config("full"), now=0.0)
    events: list[Any] = []
    now = 0.0
    for chunk in chunks:
        now += _TICK
        events += relay.receive_data(chunk, now).events
    _check_end(relay)
    return events


def _check_end(relay: Relay) -> None:
    if relay.outcome is not RelayOutcome.COMPLETED:
        raise RuntimeError(f"the answer ended as {relay.outcome}")


def check_bytes(protocol: str, chunks: Iterable[bytes]) -> None:
    """Make sure that what goes out is what came in.

    Raises:
        RuntimeError: It is not, so the time that it takes means nothing.
    """
    chunks = list(chunks)
    for mode in MODES:
        relay = Relay(PROTOCOLS[protocol], config(mode), now=0.0)
        written = [output.data for output in _pass(relay, chunks)]
        _check_end(relay)
        if b"".join(written) != b"".join(chunks):
            raise RuntimeError(f"the relay changes {protocol}")


def _pass(relay: Relay, chunks: list[bytes]) -> list[Output]:
    return [relay.receive_data(chunk, number * _TICK) for number, chunk in enumerate(chunks, 1)]


def print_speed(
    protocols: Iterable[str], events: int, rounds: int, sizes: Iterable[int], *, each: bool
) -> None:
    """Measure and print what an event costs.

    Args:
        protocols: Which ones.
        events: How many events an answer has.
        rounds: How often all are run; the fastest counts.
        sizes: Bytes of a chunk.
        each: Whether they are also given one event per chunk.
    """
    for protocol in protocols:
        source = stream(protocol, events)
        columns: dict[int, Row] = {}
        for size in sizes:
            check_bytes(protocol, source.chunks(size))
            columns[size] = measure(jobs(protocol, source), size, rounds)
        _print_columns(f"relay: {protocol}", columns, "B chunks")
        if each:
            check_bytes(protocol, source.blocks)
            row = measure(jobs(protocol, Events(source.blocks)), 1, rounds)
            _print_columns(f"relay: {protocol}, event by event", {1: row}, "event a chunk")


def _print_columns(title: str, columns: dict[int, Row], unit: str) -> None:
    print_table(title, [FRAMING, LIGHT, RECEIVE, FULL], columns, [FRAMING, RECEIVE], unit=unit)
    for ours, base, most in RATIOS:
        ratios = "".join(f"{row[ours] / row[base]:>22.2f}" for row in columns.values())
        print(f"{f'{ours} / {base}':24}{ratios} (at most {most})")


def makers(protocol: str, events: int) -> dict[str, Callable[[], Relay]]:
    """Relays to measure the memory of, by name.

    Args:
        protocol: Which one.
        events: How many events the answer has of which half is received.
    """
    half = stream(protocol, events).first_half
    chunks = [half[start : start + CHUNK] for start in range(0, len(half), CHUNK)]
    configs = {mode: config(mode) for mode in MODES}
    idle: dict[str, Callable[[], Relay]] = {
        "relay, idle": lambda: Relay(PROTOCOLS[protocol], configs["full"], now=0.0)
    }
    return idle | {
        f"relay, {mode}, after half an answer": _maker(protocol, configs[mode], chunks) for mode in MODES
    }


def _maker(protocol: str, shared: RelayConfig, chunks: list[bytes]) -> Callable[[], Relay]:
    def make() -> Relay:
        relay = Relay(PROTOCOLS[protocol], shared, now=0.0)
        for number, chunk in enumerate(chunks, 1):
            relay.receive_data(chunk, number * _TICK)
        return relay

    return make


def print_sizes(protocols: Iterable[str], events: int, count: int) -> None:
    """Measure and print what a relay keeps."""
    print(f"\nbytes per relay, over {count:,} of them; idle at most 4,096")
    for protocol in protocols:
        for name, make in makers(protocol, events).items():
            print(f"{f'{protocol}: {name}':48}{bytes_per_object(make, count):>8,.0f}")


class Crowd(NamedTuple):
    """What many relays cost together.

    Attributes:
        rate: Events per second of CPU time, all relays together.
        size: Bytes that one of them keeps.
    """

    rate: float
    size: float


def crowd(protocol: str, mode: Mode, relays: int, turns: int) -> Crowd:
    """Let many relays take turns.

    Args:
        protocol: Of all of them.
        mode: How they observe.
        relays: How many.
        turns: How many events each one is given in the middle of its answer, while the clock runs.

    Raises:
        RuntimeError: One of them forwarded less than it was given.
    """
    source = Stream(stream(protocol, _OPENING + turns + _ENDING).blocks[: _OPENING + turns])
    shared = config(mode)
    herd = [Relay(PROTOCOLS[protocol], shared, now=0.0) for _ in range(relays)]
    opening, middle = source.blocks[:_OPENING], source.blocks[_OPENING:]
    _take_turns(herd, opening, 0.0)
    gc.collect()
    start = time.process_time()
    _take_turns(herd, middle, len(opening) * _TICK)
    taken = time.process_time() - start
    sizes = {relay.counters.bytes_out for relay in herd}
    if sizes != {len(source.body)}:
        raise RuntimeError(f"not all of the {protocol} stream was forwarded")
    size = bytes_per_object(_maker(protocol, shared, source.blocks), min(relays, _SAMPLE))
    return Crowd(relays * turns / max(taken, 1e-9), size)


def _take_turns(herd: list[Relay], blocks: list[bytes], begin: float) -> None:
    """Give each event to every relay before the next one comes, a tick later."""
    now = begin
    for block in blocks:
        now += _TICK
        for relay in herd:
            relay.receive_data(block, now)


def print_crowd(protocols: Iterable[str], relays: int, turns: int) -> None:
    """Measure and print what many relays cost that take turns."""
    print(f"\n{relays:,} relays take turns, {1 / _TICK:.0f} events/s each: on one core")
    print(f"{'':24}{'events/s':>12}{'relays at that rate':>22}{'bytes each':>12}")
    for protocol in protocols:
        for mode in MODES:
            found = crowd(protocol, mode, relays, turns)
            cells = f"{found.rate:>12,.0f}{found.rate * _TICK:>22,.0f}{found.size:>12,.0f}"
            print(f"{f'{protocol}, {mode}':24}{cells}")
