"""Command line: ``python -m benchmarks NAME``; ``--help`` has the names."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from . import accumulate as accumulating, contenders, relay as relaying, writers
from .contenders import FLOOR, FLOOR_ORJSON, HTTPX_SSE
from .gateway import Load, print_load
from .memory import print_memory
from .partial import SIZES, print_partial
from .steps import print_steps
from .streams import STREAMS, Stream, stream
from .timing import Job, Row, measure, print_table

CHUNKS = (64, 1400, 16384, 65536)
_SLOW = 10
"""How many times fewer events the slow contenders are given."""


def frames(args: argparse.Namespace) -> None:
    """Measure bytes to frames."""
    for name, line_end in (("LF", b"\n"), ("CRLF", b"\r\n")):
        source = stream("messages", args.events, line_end=line_end)
        jobs = {who: Job(work, source) for who, work in contenders.frames(line_end).items()}
        title = f"frames: messages, {name}, {_size(source)}"
        print_table(title, list(jobs), _measure(jobs, args), [FLOOR, HTTPX_SSE])


def receive(args: argparse.Namespace) -> None:
    """Measure bytes to judged events."""
    for protocol in args.protocol or STREAMS:
        source = stream(protocol, args.events)
        short = stream(protocol, args.events // _SLOW)
        jobs = {who: Job(work, source) for who, work in contenders.receive(protocol).items()}
        jobs |= {who: Job(work, short) for who, work in contenders.slow_receive(protocol).items()}
        with_orjson = contenders.receive_with_orjson(protocol)
        orjson_jobs = {who: Job(work, source) for who, work in with_orjson.items()}
        title = f"receive: {protocol}, {_size(source)}"
        columns = _measure(jobs | orjson_jobs, args)
        print_table(title, list(jobs), columns, [FLOOR, HTTPX_SSE])
        print_table(f"{title}, in the same rounds", list(orjson_jobs), columns, [FLOOR_ORJSON, FLOOR])


def accumulate(args: argparse.Namespace) -> None:
    """Measure bytes to the final object."""
    protocols = args.protocol or list(STREAMS)
    accumulating.print_accumulate(protocols, args.events, args.rounds, args.chunk or CHUNKS[1:3])
    if args.size:
        accumulating.print_tools(protocols, args.size, args.rounds)


def partial(args: argparse.Namespace) -> None:
    """Measure text to the partial values of a tool's arguments."""
    print_partial(args.size or SIZES, rounds=args.rounds)


def send(args: argparse.Namespace) -> None:
    """Measure events to bytes."""
    for protocol in args.protocol or STREAMS:
        given = writers.events(protocol, args.events)
        jobs = {who: Job(work, given) for who, work in writers.send(protocol, given).items()}
        orjson_jobs = {who: Job(work, given) for who, work in writers.send_with_orjson(protocol).items()}
        row = {args.events: measure(jobs | orjson_jobs, 1, args.rounds)}
        print_table(f"send: {protocol}", list(jobs), row, [writers.FLOOR], unit="events")
        title = f"send: {protocol}, in the same rounds"
        print_table(title, list(orjson_jobs), row, [writers.FLOOR_ORJSON, writers.FLOOR], unit="events")


def relay(args: argparse.Namespace) -> None:
    """Measure bytes to the same bytes, and what a relay keeps."""
    protocols = args.protocol or list(STREAMS)
    sizes = args.chunk or [relaying.CHUNK]
    relaying.print_speed(protocols, args.events, args.rounds, sizes, each=args.each)
    relaying.print_sizes(protocols, args.half, args.count)
    relaying.print_crowd(protocols, args.relays, args.turns)


def _measure(jobs: dict[str, Job], args: argparse.Namespace) -> dict[int, Row]:
    return {size: measure(jobs, size, args.rounds) for size in args.chunk or CHUNKS}


def _size(source: Stream) -> str:
    return f"{len(source.body) / len(source.blocks):.0f} B/event"


def memory(args: argparse.Namespace) -> None:
    """Measure bytes per object."""
    print_memory(args.events, args.count)


def steps(args: argparse.Namespace) -> None:
    """Count steps."""
    print_steps(args.size)


def gateway(args: argparse.Namespace) -> None:
    """Measure what gateways add, as processes on one core."""
    print_load(Load(args.streams, args.events, args.interval), args.rounds)


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError(text)
    return value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="What the package costs.")
    commands = parser.add_subparsers(required=True)
    frames_parser = commands.add_parser("frames", help=frames.__doc__)
    receive_parser = commands.add_parser("receive", help=receive.__doc__)
    accumulate_parser = commands.add_parser("accumulate", help=accumulate.__doc__)
    relay_parser = commands.add_parser("relay", help=relay.__doc__)
    for command, run in (
        (frames_parser, frames),
        (receive_parser, receive),
        (accumulate_parser, accumulate),
        (relay_parser, relay),
    ):
        command.add_argument("--events", type=_positive, default=4000, help="per stream")
        command.add_argument("--rounds", type=_positive, default=20, help="the fastest one counts")
        command.add_argument("--chunk", type=_positive, action="append", help="bytes; can be repeated")
        command.set_defaults(run=run)
    send_parser = commands.add_parser("send", help=send.__doc__)
    send_parser.add_argument("--events", type=_positive, default=4000, help="per answer")
    send_parser.add_argument("--rounds", type=_positive, default=20, help="the fastest one counts")
    send_parser.set_defaults(run=send)
    partial_parser = commands.add_parser("partial", help=partial.__doc__)
    partial_parser.add_argument("--rounds", type=_positive, default=3, help="the fastest one counts")
    partial_parser.set_defaults(run=partial)
    for command, what in (
        (accumulate_parser, "bytes of the arguments of one tool call; none by default"),
        (partial_parser, "characters of the arguments"),
    ):
        command.add_argument("--size", type=_positive, action="append", help=f"{what}; can be repeated")
    for command in (receive_parser, accumulate_parser, send_parser, relay_parser):
        command.add_argument(
            "--protocol", choices=STREAMS, action="append", help="all by default; can be repeated"
        )
    _add_relay_arguments(relay_parser)
    command = commands.add_parser("memory", help=memory.__doc__)
    command.add_argument(
        "--events", type=_positive, default=40, help="of the answer that is half received"
    )
    command.add_argument("--count", type=_positive, default=10_000, help="how many objects")
    command.set_defaults(run=memory)
    command = commands.add_parser("steps", help=steps.__doc__)
    command.add_argument("--size", type=_positive, help="bytes of the smaller input, for all shapes")
    command.set_defaults(run=steps)
    command = commands.add_parser("gateway", help=gateway.__doc__)
    command.add_argument("--streams", type=_positive, default=1000, help="at once")
    command.add_argument("--events", type=_positive, default=50, help="per stream")
    command.add_argument(
        "--interval", type=float, default=0.5, help="seconds between two events of a stream"
    )
    command.add_argument("--rounds", type=_positive, default=2, help="behind one that warms up")
    command.set_defaults(run=gateway)
    return parser


def _add_relay_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--each", action="store_true", help="also one event per chunk")
    for name, default, what in (
        ("--half", 40, "events of the answer that is half received"),
        ("--count", 1000, "how many relays that are measured alone"),
        ("--relays", 10_000, "how many that take turns"),
        ("--turns", 40, "events that each of these is given"),
    ):
        parser.add_argument(name, type=_positive, default=default, help=what)


def main(argv: Sequence[str] | None = None) -> None:
    """Run one benchmark.

    Args:
        argv: The arguments; those of the process by default.
    """
    args = _parser().parse_args(argv)
    args.run(args)


if __name__ == "__main__":
    main()
