"""A slow parser of event streams, written from the text of the standard alone, to compare with.

Source: HTML Living Standard, "Server-sent events", sections "Parsing an event stream" and
"Interpreting an event stream"; Encoding Standard, "UTF-8 decode". It sees the whole stream at once, so
nothing about chunks can go wrong in it. It deliberately shares no code and no idea with the library.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from sse_machines import Frame

MAX_RETRY_DIGITS = 640
"""The library's one limit that the standard does not have."""

_END_OF_LINE = re.compile("\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"


class ReferenceEvent(NamedTuple):
    """What is dispatched."""

    event: str
    data: str
    id: str


@dataclass
class Reading:
    """All that can be told about a stream.

    Attributes:
        order: One letter for each event, comment and accepted retry, as they came: E, C and R.
        last_event_id: As the last blank line left it.
        unterminated_line: Whether the stream ends inside a line.
        pending_fields: Whether it ends with data, event or id fields that no blank line followed.
    """

    events: list[ReferenceEvent] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    retries: list[int] = field(default_factory=list)
    order: str = ""
    last_event_id: str = ""
    unterminated_line: bool = False
    pending_fields: bool = False


class _Interpreter:
    """The buffers of the standard, under the standard's names."""

    def __init__(self) -> None:
        self.reading = Reading()
        self.data_buffer = ""
        self.event_type_buffer = ""
        self.last_event_id_buffer = ""

    def line(self, line: str) -> None:
        if line == "":
            self.dispatch()
        elif line[0] == ":":
            self.reading.comments.append(line[1:])
            self.reading.order += "C"
        elif ":" in line:
            name, value = line.split(":", 1)
            self.field(name, value[1:] if value[:1] == " " else value)
        else:
            self.field(line, "")

    def field(self, name: str, value: str) -> None:
        if name == "event":
            self.event_type_buffer = value
            self.reading.pending_fields = True
        elif name == "data":
            self.data_buffer += value + "\n"
            self.reading.pending_fields = True
        elif name == "id" and "\0" not in value:
            self.last_event_id_buffer = value
            self.reading.pending_fields = True
        elif name == "retry" and _is_retry(value):
            self.reading.retries.append(int(value))
            self.reading.order += "R"

    def dispatch(self) -> None:
        reading = self.reading
        reading.last_event_id = self.last_event_id_buffer
        reading.pending_fields = False
        if self.data_buffer != "":
            data = self.data_buffer[:-1]
            event = self.event_type_buffer or "message"
            reading.events.append(ReferenceEvent(event, data, reading.last_event_id))
            reading.order += "E"
        self.data_buffer = ""
        self.event_type_buffer = ""


def parse(stream: bytes) -> Reading:
    """Read a whole stream."""
    text = stream.removeprefix(_BOM).decode("utf-8", "replace")
    *lines, rest = _END_OF_LINE.split(text)
    interpreter = _Interpreter()
    for line in lines:
        interpreter.line(line)
    interpreter.reading.unterminated_line = rest != ""
    return interpreter.reading


def reading_of(frames: Iterable[Frame], tail: bytes) -> Reading:
    """What the library's frames and unfinished bytes amount to, in the terms of the reference."""
    reading = Reading()
    for frame in frames:
        _add_lines(reading, frame)
        if frame.id is not None:
            reading.last_event_id = frame.id
        if frame.data is not None:
            event = ReferenceEvent(frame.event or "message", frame.data, reading.last_event_id)
            reading.events.append(event)
            reading.order += "E"
    whole_lines = tail[: max(tail.rfind(b"\n"), tail.rfind(b"\r")) + 1]
    if whole_lines:
        frame = Frame.parse(whole_lines)
        _add_lines(reading, frame)
        reading.pending_fields = (frame.data, frame.event, frame.id) != (None, None, None)
    reading.unterminated_line = whole_lines != tail
    return reading


def _add_lines(reading: Reading, frame: Frame) -> None:
    """Add what takes effect without a blank line; ``lines`` has to agree with the other fields."""
    lines = frame.lines
    retries = [int(value) for name, value in lines if name == "retry" and _is_retry(value)]
    comments = [value for name, value in lines if name == ""]
    assert tuple(comments) == frame.comments
    assert frame.retry == (retries[-1] if retries else None)
    reading.comments += comments
    reading.retries += retries
    letters = ["C" if name == "" else "R" for name, value in lines if _is_instant(name, value)]
    reading.order += "".join(letters)


def _is_instant(name: str, value: str) -> bool:
    return name == "" or (name == "retry" and _is_retry(value))


def _is_retry(value: str) -> bool:
    return re.fullmatch("[0-9]+", value) is not None and len(value) <= MAX_RETRY_DIGITS
