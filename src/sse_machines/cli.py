"""The ``sse-machines`` command: look at streams, at the law they are judged by, and stand between.

All but one of its parts read files and standard input and write lines. They deliberately open no
connection: ``curl -N`` and a pipe do that. ``relay`` is the gateway of `sse_machines.adapters.gateway`,
which is not imported for anything else.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import enum
import importlib.resources
import io
import json
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from ._accumulator import Accumulator
from ._detect import PROTOCOLS as ALL
from ._errors import ProtocolError
from ._protocol import Comment, EndOfStream, Event, Outcome, Protocol, Violation, WireEvent
from ._receiver import Receiver
from ._relay_config import Hold, KeepAlive, RelayConfig, Stall
from .chat import ChatCompletionChunk
from .responses import LifecycleEvent

PROTOCOLS: dict[str, Protocol[Any]] = {protocol.name: protocol for protocol in ALL}

_GOOD = (Outcome.COMPLETED, Outcome.COMPLETED_NO_DONE, Outcome.INCOMPLETE)
_INTERRUPTED = 130
_BROKEN_PIPE = 141
_READ_SIZE = 64 * 1024

_EXITS = (
    "exit status: 0 the answer is complete; 1 it failed, was cut, is no event stream, or deviates (with "
    "--strict); 2 wrong usage; 130 interrupted; 141 nobody reads the output any more"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: The words after the command's name; None takes them from the process.

    Returns:
        The exit status.
    """
    options = _parser().parse_args(arguments)
    try:
        status: int = options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes standard output once more at exit, and would complain then.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    except KeyboardInterrupt:
        return _INTERRUPTED
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sse-machines", description="State machines for streamed LLM answers."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    decode = commands.add_parser(
        "decode",
        help="print the events of a stream, one a line, as they arrive",
        description="Print the events of a stream, one a line, as they arrive, and how it ended.",
        epilog=_EXITS,
    )
    decode.add_argument("file", nargs="?", default="-", help="a recorded stream; - is standard input")
    decode.add_argument(
        "--sample",
        nargs="?",
        const="messages",
        choices=_samples(),
        metavar="NAME",
        help=f"read a sample that comes with the package: {', '.join(_samples())}",
    )
    decode.add_argument("--protocol", choices=PROTOCOLS, help="the stream tells by itself otherwise")
    form = decode.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON object a line")
    form.add_argument("--final", action="store_true", help="print the answer alone, as one JSON object")
    decode.add_argument("--strict", action="store_true", help="end at the first deviation")
    decode.set_defaults(run=_decode)

    check = commands.add_parser(
        "check",
        help="say of recorded streams whether they are right, a line a file",
        description="Say of recorded streams how they end and where they deviate, a line a file.",
        epilog="exit status: 0 all are right; 1 one is not; 2 wrong usage",
    )
    check.add_argument("file", nargs="+", help="a recorded stream; - is standard input")
    check.add_argument("--strict", action="store_true", help="a stream that deviates is not right")
    check.add_argument("--json", action="store_true", help="one JSON object a line")
    check.set_defaults(run=_check)

    draw = commands.add_parser("draw", help="print a protocol's state diagram in Mermaid's language")
    draw.add_argument("protocol", choices=PROTOCOLS)
    draw.add_argument("--table", help="one of the protocol's tables; the stream's own by default")
    draw.set_defaults(run=_draw)

    relay = commands.add_parser(
        "relay",
        help="serve a gateway between clients and one upstream",
        description="Serve a gateway before one upstream, and print a line for each stream.",
        epilog="needs the extra: pip install 'sse-machines[gateway]'",
    )
    relay.add_argument(
        "--listen",
        type=_address,
        default="127.0.0.1:8080",
        metavar="ADDRESS:PORT",
        help="where to listen; by default where only this machine can connect (127.0.0.1:8080)",
    )
    relay.add_argument("--upstream", required=True, metavar="URL", help="the URL before the path")
    relay.add_argument(
        "--keepalive",
        type=_seconds,
        default=10.0,
        metavar="S",
        help="a comment after S s of silence (10)",
    )
    relay.add_argument(
        "--stall",
        type=_seconds,
        default=120.0,
        metavar="S",
        help="a model without progress is stuck (120)",
    )
    relay.add_argument(
        "--retries", type=int, default=1, metavar="N", help="more attempts, while there is no output (1)"
    )
    relay.set_defaults(run=_relay)
    return parser


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host.strip("[]") or "127.0.0.1", int(port)


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < float("inf"):
        raise ValueError(text)
    return seconds


def _relay(options: argparse.Namespace) -> int:
    try:
        from .adapters import gateway  # noqa: PLC0415 - it needs an extra
    except ImportError as error:
        return _usage(f"{error}; pip install 'sse-machines[gateway]'")
    config = RelayConfig(
        keepalive=KeepAlive(interval=options.keepalive, before_output=True),
        stall=Stall(idle_progress=options.stall),
        hold=Hold(),
    )
    served = gateway.Gateway(
        options.upstream, config=config, retries=options.retries, served=gateway.tell
    )
    gateway.serve(served, *options.listen)
    return 0


def _draw(options: argparse.Namespace) -> int:
    tables = {table.name: table for table in PROTOCOLS[options.protocol].tables}
    name = options.table or next(iter(tables))
    if name not in tables:
        return _usage(f"{options.protocol} has no table {name!r}, but {', '.join(tables)}")
    print(tables[name].mermaid(), end="")
    return 0


def _decode(options: argparse.Namespace) -> int:
    receiver = _receiver(options.protocol, strict=options.strict)
    show = _SHOW["final" if options.final else "json" if options.json else "text"]
    # What the terminal cannot show must not end the run.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with _source(options.file, options.sample) as source:
            for event in _events(receiver, source):
                show.event(event)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        return _usage(str(error))
    except ProtocolError as error:
        show.error(error)
    show.end(receiver.outcome, receiver.accumulator)
    return 0 if receiver.outcome in _GOOD else 1


class _Text:
    """Shows a stream to a person: an event a line, then what the answer is, the outcome last."""

    @staticmethod
    def event(event: Event) -> None:
        # The outcome has the last line in every case.
        if not isinstance(event, EndOfStream):
            print(_as_text(event), flush=True)

    @staticmethod
    def error(error: ProtocolError) -> None:
        print(f"error  {_visible(error.message)}")

    @staticmethod
    def end(outcome: Outcome, answer: Accumulator) -> None:
        print()
        print(f"text: {answer.text_length} characters, reasoning: {answer.reasoning_length}")
        for call in answer.tool_calls:
            state = "" if call.complete else ", incomplete"
            print(_visible(f"tool call: {call.name} {call.arguments}{state}"))
        if answer.usage is not None:
            print(_visible(f"usage{'' if answer.usage_final else ' so far'}: {_words(answer.usage)}"))
        if answer.finish_reason is not None:
            print(_visible(f"finish reason: {answer.finish_reason}"))
        print(f"outcome: {outcome}")


class _JSON:
    """Shows a stream to a program: a JSON object a line, one about the answer last."""

    @staticmethod
    def event(event: Event) -> None:
        print(_as_json(event), flush=True)

    @staticmethod
    def error(error: ProtocolError) -> None:
        print(_error_as_json(error))

    @staticmethod
    def end(outcome: Outcome, answer: Accumulator) -> None:
        calls = [
            {name: getattr(call, name) for name in ("id", "name", "arguments", "complete", "input")}
            for call in answer.tool_calls
        ]
        summary = {
            "type": "summary",
            "outcome": outcome,
            "finish_reason": answer.finish_reason,
            "text_length": answer.text_length,
            "reasoning_length": answer.reasoning_length,
            "tool_calls": calls,
            "usage": answer.usage,
            "usage_final": answer.usage_final,
        }
        print(json.dumps(summary))


class _Final:
    """Shows nothing but the answer; what went wrong goes where it does not mix with that."""

    @staticmethod
    def event(event: Event) -> None:
        pass

    @staticmethod
    def error(error: ProtocolError) -> None:
        print(f"sse-machines: {_visible(error.message)}", file=sys.stderr)

    @staticmethod
    def end(_outcome: Outcome, answer: Accumulator) -> None:
        print(json.dumps(answer.snapshot(), indent=2))


_SHOW: dict[str, type[_Text | _JSON | _Final]] = {"text": _Text, "json": _JSON, "final": _Final}


def _receiver(protocol: str | None, *, strict: bool) -> Receiver[Any]:
    if protocol is None:
        return Receiver.detecting(strict=strict, accumulate=True)
    return Receiver(PROTOCOLS[protocol], strict=strict, accumulate=True)


def _check(options: argparse.Namespace) -> int:
    reports = []
    for file in options.file:
        try:
            with _source(file) as source:
                report = _report(file, source, strict=options.strict)
        except OSError as error:
            return _usage(str(error))
        print(json.dumps(report) if options.json else _report_as_text(report))
        reports.append(report)
    wrong = sum(not report["right"] for report in reports)
    summary = {"files": len(reports), "right": len(reports) - wrong, "wrong": wrong}
    print(
        json.dumps(summary) if options.json else ", ".join(f"{n} {what}" for what, n in summary.items())
    )
    return 1 if wrong else 0


def _report(file: str, source: io.BufferedReader, *, strict: bool) -> dict[str, Any]:
    """Read one stream to its end. Leniently, in either case, so that every deviation is counted."""
    receiver: Receiver[Any] = Receiver.detecting()
    events, error = 0, None
    codes: collections.Counter[str] = collections.Counter()
    try:
        for event in _events(receiver, source):
            if isinstance(event, Violation):
                codes[event.code] += 1
                events += event.dropped
            else:
                events += not isinstance(event, Comment | EndOfStream)
    except ProtocolError as failure:
        error = {"code": failure.code, "message": failure.message}
    return {
        "file": file,
        "protocol": receiver.protocol.name,
        "outcome": receiver.outcome,
        "events": events,
        "violations": dict(codes),
        "error": error,
        "right": receiver.outcome in _GOOD and not (strict and codes),
    }


def _report_as_text(report: dict[str, Any]) -> str:
    violations: dict[str, int] = report["violations"]
    parts = [f"{report['protocol']}, {report['outcome']}, {report['events']} events"]
    parts += [f"{code} x {count}" for code, count in violations.items()]
    if report["error"]:
        parts.append(report["error"]["message"])
    mark = "ok   " if report["right"] else "WRONG"
    return _visible(f"{mark} {report['file']}: {', '.join(parts)}")


def _events(receiver: Receiver[Any], source: io.BufferedReader) -> Iterator[Event]:
    while chunk := source.read1(_READ_SIZE):
        receiver.receive_data(chunk)
        yield from receiver
    receiver.receive_eof()
    yield from receiver


def _samples() -> list[str]:
    """The names of the streams that come with the package."""
    folder = importlib.resources.files("sse_machines") / "samples"
    folders = {"": folder, "gateway/": folder / "gateway"}
    return sorted(
        prefix + file.name.removesuffix(".sse")
        for prefix, place in folders.items()
        for file in place.iterdir()
        if file.name.endswith(".sse")
    )


def _source(file: str, sample: str | None = None) -> contextlib.AbstractContextManager[Any]:
    if sample is not None:
        folder = importlib.resources.files("sse_machines") / "samples"
        return (folder / f"{sample}.sse").open("rb")
    if file == "-":
        return contextlib.nullcontext(sys.stdin.buffer)
    return open(file, "rb")  # noqa: PTH123 - the caller closes it


def _usage(message: str) -> int:
    print(f"sse-machines: {message}", file=sys.stderr)
    return 2


def _as_text(event: Event) -> str:
    if isinstance(event, Violation):
        dropped = " (dropped)" if event.dropped else ""
        return _visible(f"! {event.code}: {event.message}{dropped}")
    if isinstance(event, ChatCompletionChunk):
        words = [*map(_choice_as_text, event.choices), *([_words(event.usage)] if event.usage else [])]
    elif isinstance(event, LifecycleEvent):
        shown = {name: event.response.get(name) for name in _SHOWN if event.response.get(name)}
        words = [_words(shown)]
    elif isinstance(event, WireEvent):
        members = [getattr(event, name) for name in event.wire_names]
        words = [_words(member) for member in members if member is not None]
    else:
        words = [str(value) for name, value in _fields(event).items() if name != "payload"]
    return _visible(f"{event.type:20} {' '.join(words)}").rstrip()


_SHOWN = ("id", "status", "error", "incomplete_details", "usage")
"""What of a response is worth a line each time it is sent."""


def _choice_as_text(choice: Any) -> str:
    delta, reason = choice.get("delta") or {}, choice.get("finish_reason")
    shown = delta["content"] if [*delta] == ["content"] else delta
    end = f" {reason}" if reason else ""
    return f"{choice.get('index', 0)} {json.dumps(shown, ensure_ascii=False)}{end}"


def _words(value: Any) -> str:
    """A member of a payload, for a person: the type first, then what else is in it."""
    if not isinstance(value, dict) or "type" not in value:
        return json.dumps(value, ensure_ascii=False)
    rest = {name: member for name, member in value.items() if name != "type"}
    shown = next(iter(rest.values())) if len(rest) == 1 else rest
    return f"{value['type']} {json.dumps(shown, ensure_ascii=False)}"


def _as_json(event: Event) -> str:
    return json.dumps(_plain(event))


def _error_as_json(error: ProtocolError) -> str:
    facts = {"type": "protocol_error", **vars(error)}
    # The answer so far is told at the end.
    del facts["accumulator"]
    return json.dumps({name: _plain(value) for name, value in facts.items()})


def _plain(value: Any) -> Any:
    """What JSON can hold of an event, and of what is in it."""
    if isinstance(value, WireEvent):
        return value.payload
    if isinstance(value, Event):
        return {"type": value.type} | {name: _plain(it) for name, it in _fields(value).items()}
    if isinstance(value, enum.Enum) and not isinstance(value, str):
        return value.name
    return value


def _fields(event: Event) -> dict[str, Any]:
    names = [field.name for field in attrs.fields(type(event)) if field.name != "raw"]
    return {name: getattr(event, name) for name in names}


def _visible(text: str) -> str:
    """Text without anything that could move the cursor or set colours: it comes from a stranger."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )
