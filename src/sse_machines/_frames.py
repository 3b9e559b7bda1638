"""The event stream of the HTML standard: bytes to frames, and fields to bytes.

A *frame* is one block of the stream with the bytes it came in. The reader takes bytes in any cut;
joining the ``raw`` of all frames and the unfinished tail gives the input back, byte for byte.

Source: HTML Living Standard, "Server-sent events", sections "Parsing an event stream" and
"Interpreting an event stream". This module deliberately knows nothing of JSON, of the three protocols
and of reconnecting; it serves any event stream.

How it is fast: nearly all blocks of nearly all servers are ``event:`` (or not), one ``data:`` line and
a blank line. One regular expression takes a whole run of those from a window of the input in a single
call. What is not of that shape, or not yet whole, goes through the exact line machine below it. Both
must agree on everything, which the tests check over every short input and every cut.

How it is linear: the expression sees a byte once per window, and windows overlap by at most ``_CARRY``
bytes of an unfinished block. A longer unfinished block moves into one growing buffer, and only new
bytes are searched for line ends.
"""

from __future__ import annotations

import copy
import re
from typing import NamedTuple

from typing_extensions import Self

from ._errors import FrameTooLarge, LocalProtocolError

BOM = b"\xef\xbb\xbf"
DEFAULT_MAX_EVENT_SIZE = 16 * 1024 * 1024
"""Most bytes of one block that are kept while its blank line is missing."""

_WINDOW = 16 * 1024
_CARRY = 512
# int() may be set to refuse anything longer; 640 is the lowest limit that an interpreter allows.
_MAX_RETRY_DIGITS = 640

# A run of plain blocks, then one match that takes all the rest: the matches of one findall() cover the
# window without gaps. Groups: block, event, data, rest. An event name that is empty or begins with a
# space is left to the line machine, because "one space is removed" would be ambiguous here.
_PLAIN = re.compile(rb"((?:event: ?([^ \n].*)\n)?data: ?(.*)\n\n)|(?s:(.+))")
_PLAIN_CRLF = re.compile(rb"((?:event: ?([^ \r\n][^\r\n]*)\r\n)?data: ?([^\r\n]*)\r\n\r\n)|(?s:(.+))")
# The comments of a block, read from its bytes at its end: until then they cost no more than those.
_COMMENTS = re.compile(rb"(?:\A|[\r\n]):([^\r\n]*)")
_LINE_END = (b"\n", b"\r")
_BLANK_LINES = (b"\n\n", b"\n\r", b"\r\r")
# Integers, since "in" with a bytes object on the left is several times slower.
_CR, _LF = b"\r\n"
# A block that begins with one of these delivers nothing before its blank line.
_FIELDS = (b"event:", b"data:")

_tuple = tuple.__new__


class Frame(NamedTuple):
    """One block of an event stream.

    A block ends with a blank line. Three things are frames of their own, with no field set, so that
    nothing has to wait for more input: a comment that stands before any field of its block, a blank
    line that ends nothing, and a byte-order mark at the very start.

    Attributes:
        raw: The bytes, with their line ends.
        event: The last ``event:`` value; None if there is none, ``""`` if it is empty.
        data: The ``data:`` values joined by LF, or None. The standard dispatches nothing for a block
            without data.
        id: The last valid ``id:`` value, or None.
        retry: The last valid ``retry:`` value in milliseconds, or None.
        comments: The comment lines, in order, each without its first colon and nothing else removed.
    """

    raw: bytes
    event: str | None = None
    data: str | None = None
    id: str | None = None
    retry: int | None = None
    comments: tuple[str, ...] = ()

    @property
    def lines(self) -> list[tuple[str, str]]:
        """All lines but blank ones, in order, as (name, value); the name of a comment is ``""``.

        This is where fields that the standard ignores can be seen. Reads ``raw`` again at each call.
        """
        lines = [line for line in self.raw.splitlines() if line and line != BOM]
        return [(_text(name), _text(line[start:])) for line in lines for name, start in [_field(line)]]

    @classmethod
    def parse(cls, raw: bytes) -> Frame:
        """Read the ``raw`` bytes of a frame again, or of an unfinished block."""
        if raw == BOM:
            return cls(raw)
        reader = FrameReader(max_event_size=None)
        # Behind a first blank line, a byte-order mark is what it is in the middle of a stream: text.
        reader.feed(b"\n" + raw + b"\n\n")
        frames = list(iter(reader.next_frame, None))
        return frames[1]._replace(raw=raw)


PlainBlock = tuple[bytes, bytes, bytes, bytes]
"""A frame that has nothing but ``raw``, ``event`` (empty for None) and ``data``, as `_PLAIN` matched it.

Next to all frames are of this kind, so they are not even decoded before somebody takes them.
"""


class FrameReader:
    """Bytes of an event stream in, frames out.

    Args:
        max_event_size: Most bytes of one unfinished block that are kept, unknown lines and comments
            included; None switches the limit off.

    Invalid UTF-8 becomes U+FFFD and is never an error. The only error about the input is
    `FrameTooLarge`; it comes after all frames before it, and then again at every call.

    A reader can be pickled and copied between any two calls.

    Raises:
        LocalProtocolError: ``max_event_size`` is smaller than 1.
    """

    __slots__ = (
        "_after_cr",
        "_block",
        "_buffer",
        "_carry",
        "_chunks",
        "_ended",
        "_found",
        "_plain",
        "_position",
        "_started",
        "_too_large",
        "bom",
        "last_event_id",
        "max_event_size",
        "retry",
    )

    def __init__(self, *, max_event_size: int | None = DEFAULT_MAX_EVENT_SIZE) -> None:
        if max_event_size is not None and max_event_size < 1:
            raise LocalProtocolError("max_event_size must be at least 1, or None", code="bad_limit")
        self.max_event_size = max_event_size
        self.last_event_id = ""
        """The last event id of the frames taken so far; it persists until another one comes."""
        self.retry: int | None = None
        """The reconnection time, in milliseconds, that the frames taken so far ask for."""
        self.bom = False
        """Whether the stream began with a byte-order mark."""
        # Input that no window has reached yet.
        self._buffer = b""
        self._position = 0
        self._chunks: list[bytes] | None = None
        # What is found but not yet taken, last first.
        self._found: list[PlainBlock | Frame] = []
        # The unfinished block: a short carry that is looked at again, or the line machine's own.
        self._carry = b""
        self._block: _OpenBlock | None = None
        self._after_cr = False
        self._started = False
        self._ended = False
        self._too_large = False
        # A window cannot hold a block over such a limit, so plain blocks need no check of their own.
        self._plain = max_event_size is None or max_event_size >= _WINDOW + _CARRY

    def __copy__(self) -> Self:
        return copy.deepcopy(self)

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        """Store bytes as they came from the transport. An empty chunk is harmless, and no end.

        Raises:
            LocalProtocolError: `feed_eof` was called before.
        """
        if self._ended:
            raise LocalProtocolError("bytes after the end of the input", code="feed_after_eof")
        if self._too_large:
            return
        if self._chunks is not None:
            self._chunks.append(bytes(data))
        elif self._buffer:
            self._chunks = [bytes(data)]
        else:
            self._buffer = bytes(data)

    def feed_eof(self) -> None:
        """Say that the input has ended. An unfinished block is never delivered; see `unfinished`."""
        self._ended = True

    def next_frame(self) -> Frame | None:
        """Take the next frame.

        Returns:
            The frame, or None until more input comes.

        Raises:
            FrameTooLarge: The block after the last frame outgrew ``max_event_size``.
        """
        if not (self._found or self._find()):
            return None
        block = self._found.pop()
        if not isinstance(block, Frame):
            return _plain_frame(block)
        if block.id is not None:
            self.last_event_id = block.id
        if block.retry is not None:
            self.retry = block.retry
        return block

    def take_blocks(self) -> list[PlainBlock | Frame]:
        """Take some frames at once, the last one first; none if more input is needed.

        For receivers, which pay for every call. What `last_event_id` and `retry` say is left to them.

        Raises:
            FrameTooLarge: As from `next_frame`.
        """
        self._find()
        found = self._found
        self._found = []
        return found

    @property
    def has_input(self) -> bool:
        """Whether another look for frames finds more than the last one: frames, or a fault."""
        return bool(self._buffer) or self._chunks is not None or self._too_large

    @property
    def tail(self) -> bytes:
        """The bytes that belong to no frame that was taken; of one that is too large, the first ones."""
        parts = [block[0] for block in reversed(self._found)]
        parts.append(self._carry)
        if self._block is not None:
            parts.append(bytes(self._block.raw))
        parts.append(self._buffer[self._position :])
        return b"".join(parts + (self._chunks or []))

    @property
    def at_boundary(self) -> bool:
        """Whether no byte is held: what is written downstream now cannot end up inside a block."""
        held = self._found or self._carry or self._block or self._buffer or self._chunks
        return not held

    @property
    def unfinished(self) -> Frame | None:
        """What a block would be that ended with the bytes held now, or None at a boundary.

        Meaningful once `next_frame` has returned None. The standard discards such a block at the end
        of the input; this is for those who want to look at it.
        """
        tail = self.tail
        return Frame.parse(tail) if tail else None

    def _find(self) -> bool:
        """Look for frames in the input, one window after the other; False if there are none."""
        while not self._found:
            if self._too_large:
                raise FrameTooLarge(
                    f"a block of the event stream is larger than {self.max_event_size} bytes",
                    limit=self.max_event_size or 0,
                )
            if not self._buffer and self._chunks is None:
                return False
            self._read_window()
        return True

    def _read_window(self) -> None:
        """Look at the next piece of input."""
        window = self._buffer
        if self._chunks is None and len(window) <= _WINDOW:
            self._buffer = b""
        else:
            window = self._next_window()
        if self._carry:
            window = self._carry + window
            self._carry = b""
        if not self._started:
            window = self._strip_bom(window)
        if self._after_cr:
            window = self._join_crlf(window)
        if self._block is not None:
            window = self._finish_block(window)
        if self._plain:
            window = self._take_plain_blocks(window)
        if window:
            for line in window.splitlines(keepends=True):
                self._add_line(line)
            self._after_cr = window.endswith(b"\r")
        self._found.reverse()

    def _next_window(self) -> bytes:
        if not self._buffer:
            self._buffer = b"".join(self._chunks or ())
            self._chunks = None
        start = self._position
        self._position = start + _WINDOW
        if self._position < len(self._buffer):
            return self._buffer[start : self._position]
        window = self._buffer[start:]
        self._buffer = b""
        self._position = 0
        return window

    def _take_plain_blocks(self, window: bytes) -> bytes:
        """Take the plain blocks that a window begins with; return what needs the line machine."""
        blank, expression = (b"\r\n\r\n", _PLAIN_CRLF) if _CR in window else (b"\n\n", _PLAIN)
        # The expression is not shown what cannot be a whole block: it takes longest over failing.
        end = window.rfind(blank)
        if end >= 0:
            end += len(blank)
            blocks: list[PlainBlock] = expression.findall(window[:end])
            unread = blocks[-1][3]
            if unread:
                blocks.pop()
            self._found += blocks
            if unread:
                return unread + window[end:]
            window = window[end:]
        if not _must_wait(window):
            return window
        self._carry += window
        return b""

    def _strip_bom(self, window: bytes) -> bytes:
        """Report and remove a byte-order mark; with only a part of one there, wait for the rest."""
        if len(window) < len(BOM) and BOM.startswith(window):
            self._carry = window
            return b""
        self._started = True
        if not window.startswith(BOM):
            return window
        self.bom = True
        self._found.append(Frame(BOM))
        return window[len(BOM) :]

    def _join_crlf(self, window: bytes) -> bytes:
        """Give an LF that follows a CR at the end of the last window to the line that CR ended."""
        self._after_cr = False
        if not window.startswith(b"\n"):
            return window
        if self._block is None:
            self._found.append(Frame(b"\n"))
        else:
            self._block.raw += b"\n"
        return window[1:]

    def _finish_block(self, window: bytes) -> bytes:
        """Read lines until the unfinished block has ended; return what stands behind it."""
        lines = window.splitlines(keepends=True)
        for used, line in enumerate(lines, 1):
            self._add_line(line)
            if self._block is None:
                return b"".join(lines[used:])
        self._after_cr = window.endswith(b"\r")
        return b""

    def _add_line(self, line: bytes) -> None:
        """Take one line, or a piece of one, into the unfinished block."""
        if self._too_large:
            return
        block = self._block
        if block is None:
            block = self._block = _OpenBlock()
        # A line end is counted with the line after it, so that the verdict is the same whether CR LF
        # comes in one piece or in two.
        limit = self.max_event_size
        kept = len(block.raw)
        if limit is not None and kept + len(line.rstrip(b"\r\n")) > limit:
            self._too_large = True
            block.raw += line[: max(0, limit - kept)]
            self._buffer, self._position, self._chunks = b"", 0, None
        elif block.add(line):
            self._found.append(block.end())
            self._block = None


class _OpenBlock:
    """An unfinished block, interpreted line by line as the standard says."""

    __slots__ = ("_commented", "_data", "_event", "_id", "_line_start", "_retry", "_started", "raw")

    def __init__(self) -> None:
        self.raw = bytearray()
        self._event: str | None = None
        self._data: bytes | bytearray | None = None
        self._id: str | None = None
        self._retry: int | None = None
        self._commented = False
        # Where the unfinished line starts in raw; -1 between two lines.
        self._line_start = -1
        self._started = False

    def add(self, line: bytes) -> bool:
        """Take a line or a piece of one; True if the block is ready to be delivered."""
        raw = self.raw
        before = len(raw)
        raw += line
        if not line.endswith(_LINE_END):
            if self._line_start < 0:
                self._line_start = before
            return False
        if self._line_start >= 0:
            line = bytes(raw[self._line_start :])
            self._line_start = -1
        line = line.rstrip(b"\r\n")
        if not line:
            return True
        self._interpret(line)
        if line.startswith(b":"):
            return not self._started
        self._started = True
        return False

    def end(self) -> Frame:
        """What the block amounts to; its bytes are given away."""
        raw = bytes(self.raw)
        # Of a very large block there should not be more copies at a time than needed.
        self.raw.clear()
        data = None if self._data is None else _text(self._data)
        comments = _COMMENTS.findall(raw) if self._commented else ()
        return Frame(raw, self._event, data, self._id, self._retry, tuple(map(_text, comments)))

    def _interpret(self, line: bytes) -> None:
        name, start = _field(line)
        if name == b"data":
            self._add_data(line[start:])
        elif name == b"event":
            self._event = _text(line[start:])
        elif name == b"id":
            if b"\0" not in line:
                self._id = _text(line[start:])
        elif name == b"retry":
            digits = line[start:]
            # bytes.isdigit() knows ASCII digits only; str.isdigit() would take many more.
            if digits.isdigit() and len(digits) <= _MAX_RETRY_DIGITS:
                self._retry = int(digits)
        elif not name:
            self._commented = True

    def _add_data(self, value: bytes) -> None:
        if self._data is None:
            self._data = value
            return
        if isinstance(self._data, bytes):
            self._data = bytearray(self._data)
        self._data += b"\n"
        self._data += value


def encode_frame(
    *,
    data: str | None = None,
    event: str | None = None,
    id: str | None = None,
    retry: int | None = None,
    comment: str | None = None,
) -> bytes:
    r"""Write one block.

    Args:
        data: Text; LF starts a new ``data:`` line. A reader turns CR into LF, so CR is refused.
        event: The event type, on one line.
        id: The event id, on one line and without NUL.
        retry: The reconnection time in milliseconds.
        comment: Text on one line, written directly behind the colon.

    Returns:
        The block, in UTF-8, with LF as line end, ``event`` before ``data``, and its blank line.

    Raises:
        LocalProtocolError: A reader could not give back what was asked for. Nothing is ever stripped
            or replaced, since line ends that reach the wire let a value forge whole events.

    >>> encode_frame(event="ping", data="{}")
    b'event: ping\ndata: {}\n\n'
    """
    lines: list[str] = []
    if comment is not None:
        lines.append(":" + _one_line("comment", comment))
    if event is not None:
        lines.append("event: " + _one_line("event", event))
    if id is not None:
        lines.append("id: " + _one_line("id", id, forbidden="\r\n\0"))
    if retry is not None:
        lines.append(f"retry: {_milliseconds(retry)}")
    if data is not None:
        value = _one_line("data", data, forbidden="\r")
        lines += ["data: " + piece for piece in value.split("\n")]
    elif event is not None or not lines:
        raise LocalProtocolError("a block without data dispatches nothing", code="no_data")
    try:
        return ("\n".join(lines) + "\n\n").encode()
    except UnicodeEncodeError as error:
        raise LocalProtocolError("a lone surrogate has no UTF-8 form", code="bad_field") from error


def _one_line(name: str, value: str, *, forbidden: str = "\r\n") -> str:
    # The checks are for callers without a type checker: a value whose type nobody looked at is how
    # such injections came about elsewhere.
    if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise LocalProtocolError(f"{name} must be text", code="bad_field")
    if any(character in value for character in forbidden):
        raise LocalProtocolError(f"{name} must not contain {forbidden!r}", code="bad_field")
    return value


def _milliseconds(retry: int) -> int:
    if type(retry) is not int or retry < 0:
        raise LocalProtocolError("retry must be an int of at least 0", code="bad_field")
    return retry


def _must_wait(piece: bytes) -> bool:
    """Whether a short piece at the start of a block holds nothing that could be delivered yet."""
    if len(piece) > _CARRY:
        return False
    if _CR in piece:
        return piece.startswith(_FIELDS) and not any(blank in piece for blank in _BLANK_LINES)
    return _LF not in piece or (piece.startswith(_FIELDS) and piece.find(b"\n\n") < 0)


def _plain_frame(block: PlainBlock) -> Frame:
    raw, event, data, _ = block
    try:
        # Strict decoding costs half of what the other kind does. Six values in a tuple of its own class
        # cost half of calling the class.
        return _tuple(Frame, (raw, event.decode() if event else None, data.decode(), None, None, ()))
    except UnicodeDecodeError:
        return Frame(raw, _text(event) if event else None, _text(data))


def _text(value: bytes | bytearray) -> str:
    return value.decode("utf-8", "replace")


def _field(line: bytes) -> tuple[bytes, int]:
    """The name of a line and where its value starts; a comment has the name ``b""``."""
    colon = line.find(b":")
    if colon < 0:
        return line, len(line)
    start = colon + 1
    if colon and line[start : start + 1] == b" ":
        start += 1
    return line[:colon], start
