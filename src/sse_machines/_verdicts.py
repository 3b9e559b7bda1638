"""What was found about a stream, in words: violations and errors for people and for programs.

Nothing here decides anything. The tables and the receiver have decided; this names state, event and what
would have been legal instead.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any, TypeVar

from ._errors import SAMPLE_LENGTH, NotAnEventStream, ProtocolError
from ._machine import Finding
from ._protocol import EOF, UNKNOWN, Event, Unknown, Violation, WireEvent

_COMPRESSED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}

P = TypeVar("P", bound=ProtocolError)


def faults_of_name(event: Event, *, named: bool) -> list[tuple[str, str]]:
    """Compare the event name of a frame with the type in its payload, which wins.

    Args:
        event: What the frame was decoded to.
        named: Whether the protocol wants the type as the event name, or no event name.

    Returns:
        Code and message of what is wrong, at most one.
    """
    frame = event.frame
    if frame is None or not isinstance(event, Unknown | WireEvent) or event.payload is None:
        return []
    if not named:
        return _faults_of_an_unnamed(event, frame.event)
    wire_name = event.name if isinstance(event, Unknown) else event.type
    if not frame.event:
        return [("missing_event_name", f"a {wire_name} whose frame has no event name")]
    if frame.event in (wire_name, isinstance(event, WireEvent) and event.payload.get("type")):
        return []
    name = frame.event[:SAMPLE_LENGTH]
    return [("event_name_mismatch", f"a {wire_name} in a frame named {name!r}")]


def _faults_of_an_unnamed(event: Event, name: str | None) -> list[tuple[str, str]]:
    """Judge an event name where the protocol has none: only errors and extensions carry one."""
    if isinstance(event, Unknown) or name in (None, "", "message", event.type):
        return []
    return [("unexpected_event_name", f"a {event.type} in a frame named {name[:SAMPLE_LENGTH]!r}")]


def violation(finding: Finding, event: Event | None, *, dropped: bool) -> Violation:
    """What a finding says about an event."""
    place = finding.table if finding.key is None else f"{finding.table} {finding.key}"
    # Symbols that begin with a dot end the wire name of the event's own family.
    family = "" if event is None else event.type.rpartition(".")[0]
    symbol, *legal = (
        f"{family}{symbol}" if symbol.startswith(".") else symbol
        for symbol in (finding.symbol, *finding.legal)
    )
    return Violation(
        code=finding.cell.code,
        message=f"{symbol} while the {place} is {finding.state.name} ({finding.cell.reason})",
        state=finding.state,
        key=finding.key,
        legal=wire_names(legal),
        event=event,
        dropped=dropped,
    )


def error_of(found: Violation, protocol: str, kind: type[P]) -> P:
    """The error that a violation is where it is not tolerated: the peer's or the caller's."""
    legal = f"; legal: {', '.join(found.legal)}" if found.legal else ""
    return kind(
        f"{found.code}: {found.message}{legal}",
        code=found.code,
        protocol=protocol,
        state=found.state,
        event=found.event,
        key=found.key,
        legal=found.legal,
    )


def wire_names(symbols: Iterable[str]) -> tuple[str, ...]:
    """Symbols without their guards, each once; only those that name something on the wire."""
    names = dict.fromkeys(symbol.partition("[")[0] or symbol for symbol in symbols)
    return tuple(name for name in names if name != EOF and not name.startswith(UNKNOWN))


def not_an_event_stream(body: bytes, value: Any, protocol: str, state: enum.Enum) -> NotAnEventStream:
    """The error for a body that is something else.

    Args:
        body: The body, or its beginning.
        value: What it is as JSON, if it is JSON.
        protocol: The name of the protocol that was expected.
        state: The state of the stream.
    """
    sample = body[:SAMPLE_LENGTH].decode(errors="replace")
    packed = [name for magic, name in _COMPRESSED.items() if body.startswith(magic)]
    hint = f" but {packed[0]}, to be decompressed first" if packed else ""
    return NotAnEventStream(
        f"not an event stream{hint}; the body begins with {sample!r}",
        head=body,
        sample=sample,
        body=value,
        error=value.get("error") if isinstance(value, dict) else None,
        protocol=protocol,
        state=state,
    )
