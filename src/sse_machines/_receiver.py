"""Receiver: bytes of one answer in, judged events out.

This is where the peer is blamed: the tables say what is legal, the receiver makes an event, a
`Violation` or a `RemoteProtocolError` of what they say. It deliberately knows no clock and no protocol
by name; what a stream looks like is asked of `_detect`.

The state moves when an event is taken, one event a call. So `Receiver.state` always belongs to the
event in hand, and an error surfaces exactly where it stands in the stream.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Generic, NoReturn, cast

import attrs

from ._accumulator import DEFAULT_MAX_ANSWER_SIZE, Accumulator
from ._detect import PROTOCOL as UNDECIDED, Recognised
from ._errors import (
    AnswerTooLarge,
    FrameTooLarge,
    LocalProtocolError,
    NotAnEventStream,
    RemoteProtocolError,
    StreamTruncated,
)
from ._frames import BOM, DEFAULT_MAX_EVENT_SIZE, Frame, FrameReader, PlainBlock
from ._machine import Move
from ._payload import Loads, PayloadError, loads as guarded_loads, loads_with
from ._protocol import (
    EOF,
    EOF_INSIDE,
    A_co,
    Comment,
    Done,
    E_co,
    EndOfStream,
    Event,
    Malformed,
    Outcome,
    Protocol,
    Unknown,
    Violation,
    received,
)
from ._streams import Stream, is_done
from ._verdicts import error_of, faults_of_name, not_an_event_stream, violation

_MAX_BODY = 64 * 1024
"""Most bytes of a body that is no event stream that are kept to read its error from."""


@attrs.frozen
class Limits:
    """What a receiver is ready to keep.

    Attributes:
        max_event_size: Most bytes of one unfinished block of the event stream; None for no limit. The
            parsed JSON of an event can take 30 times its text.
        max_answer_size: Most that an accumulating receiver keeps of the whole answer, in characters of
            text and bytes of everything else; None for no limit.
    """

    max_event_size: int | None = DEFAULT_MAX_EVENT_SIZE
    max_answer_size: int | None = DEFAULT_MAX_ANSWER_SIZE


_DEFAULT_LIMITS = Limits()


@attrs.frozen
class _Judged:
    """An event whose violations are out and whose moves are not made yet."""

    event: Event
    moves: tuple[Move, ...]


class Receiver(Stream[E_co], Generic[E_co, A_co]):
    """Reads one answer: give it bytes, take events.

    ::

        receiver = Receiver(MESSAGES)
        for chunk in body:
            receiver.receive_data(chunk)
            for event in receiver:
                ...
        receiver.receive_eof()
        for event in receiver:
            ...

    Args:
        protocol: Which protocol the answer is in.
        strict: Raise what a lenient receiver reports as a `Violation` and survives.
        limits: What it is ready to keep.
        loads: A JSON parser to use instead of the standard library's, such as ``orjson.loads``. What
            is accepted stays the same.
        accumulate: Keep the answer so far in ``accumulator``. Errors carry it, too.
        starting_after: The number of the last event that came before, where the stream goes on in the
            middle of an answer. Only Responses can: ``GET /responses/{id}?starting_after=…``.

    Raises:
        LocalProtocolError: The protocol's streams do not go on in the middle.

    A receiver is a plain value: it can be pickled and copied between any two calls, and the copy goes
    on identically.
    """

    __slots__ = (
        "_accumulator",
        "_blocks",
        "_cut",
        "_eof",
        "_failure",
        "_head",
        "_last_event_id",
        "_limits",
        "_loads",
        "_outcome",
        "_over",
        "_queue",
        "_reader",
        "_retry",
        "_strict",
    )

    def __init__(
        self,
        protocol: Protocol[E_co, A_co],
        *,
        strict: bool = False,
        limits: Limits = _DEFAULT_LIMITS,
        loads: Loads | None = None,
        accumulate: bool = False,
        starting_after: int | None = None,
    ) -> None:
        self._limits = limits
        self._accumulator: Any = None
        super().__init__(protocol, starting_after)
        if accumulate:
            self._accumulator = protocol.accumulator(max_size=limits.max_answer_size)
        self._strict = strict
        self._loads = guarded_loads if loads is None else loads_with(loads)
        self._reader = FrameReader(max_event_size=limits.max_event_size)
        # Frames that are read and not taken, last first.
        self._blocks: list[PlainBlock | Frame] = []
        self._last_event_id = ""
        self._retry: int | None = None
        # What is found and not taken, last first: comments, violations, and what they stand before.
        self._queue: list[Event | _Judged | Frame] = []
        self._failure: RemoteProtocolError | None = None
        self._outcome = Outcome.OPEN
        # None until the input has ended; then whether it ended cleanly.
        self._eof: bool | None = None
        # None until the end is judged; then whether it cut an event in two.
        self._cut: bool | None = None
        self._over = False
        # The first frame that is not blank, while nothing shows that this is an event stream at all.
        self._head: bytes | None = b""

    @classmethod
    def detecting(
        cls,
        *,
        strict: bool = False,
        limits: Limits = _DEFAULT_LIMITS,
        loads: Loads | None = None,
        accumulate: bool = False,
    ) -> Receiver[Event, Accumulator]:
        """Make a receiver that finds out by itself which protocol the answer is in.

        Until a frame tells, its ``protocol`` is named ``"undecided"``; comments and unknown events are
        given out as ever. The arguments are those of the class.
        """
        return Receiver(UNDECIDED, strict=strict, limits=limits, loads=loads, accumulate=accumulate)

    def receive_data(self, data: bytes | bytearray | memoryview) -> None:
        """Store bytes as they came from the transport. Moves nothing; an empty chunk is no end.

        Args:
            data: The next bytes of the body, decompressed, in any cut. Text is never taken: whoever
                decodes a stream piece by piece breaks characters.

        Raises:
            LocalProtocolError: `receive_eof` was called before.
        """
        if self._failure is not None:
            return
        self._reader.feed(data)

    def receive_eof(self, *, clean: bool = True) -> None:
        """Say that the input has ended. Moves nothing; the events tell what the end means.

        Args:
            clean: False if the transport failed instead of ending. Where the last event lacks nothing
                but its blank line, a clean end makes a lenient receiver accept it; this one does not.
        """
        self._reader.feed_eof()
        if self._eof is None:
            self._eof = clean

    def next_event(self) -> E_co | None:
        """Take the next event. The state moves now, and to where this event leads.

        Returns:
            The event, or None: more input is needed, or nothing can come any more. After
            `receive_eof` the last event is `EndOfStream`.

        Raises:
            RemoteProtocolError: The stream cannot be read on from here, or `strict` is set and it
                deviates here. Everything before it has been given out. Raised again at every call.
            StreamTruncated: The input ended before the answer did.
            FrameTooLarge: A block is larger than ``limits`` allow.
            AnswerTooLarge: What is accumulated is larger than ``limits`` allow.
            NotAnEventStream: The body is something else.
        """
        while True:
            if self._queue:
                event = self._take_queued(self._queue.pop())
            elif self._blocks:
                block = self._blocks.pop()
                event = self._take_frame(block) if isinstance(block, Frame) else self._take_block(block)
            elif self._read_blocks():
                continue
            else:
                return None if self._eof is None else self._end()
            if event is not None:
                if self._accumulator is not None:
                    self._accumulate(event)
                return event

    def __iter__(self) -> Iterator[E_co]:
        return self

    def __next__(self) -> E_co:
        event = self.next_event()
        if event is None:
            raise StopIteration
        return event

    @property
    def outcome(self) -> Outcome:
        """How the answer ended; `Outcome.OPEN` until its own end, an error or the end of the input."""
        return super().outcome if self._outcome is Outcome.OPEN else self._outcome

    @property
    def accumulator(self) -> A_co:
        """The answer up to the event in hand, in the protocol's own class.

        Raises:
            LocalProtocolError: The receiver was not asked to ``accumulate``.
        """
        if self._accumulator is None:
            raise LocalProtocolError("this receiver was not asked to accumulate")
        accumulator: A_co = self._accumulator
        return accumulator

    @property
    def last_event_id(self) -> str:
        """The last event id of the event stream; ``""`` if there was none."""
        return self._last_event_id

    @property
    def retry_ms(self) -> int | None:
        """The reconnection time that the server asked for, in milliseconds, or None."""
        return self._retry

    def _accumulate(self, event: Event) -> None:
        try:
            self._accumulator.apply(event)
        except AnswerTooLarge as error:
            error.protocol, error.state, error.event = self._protocol.name, self.state, event
            self._fail(error)

    def _become(self, protocol: Protocol[E_co]) -> None:
        super()._become(protocol)
        if self._accumulator is not None:
            self._accumulator = protocol.accumulator(max_size=self._limits.max_answer_size)

    def _read_blocks(self) -> bool:
        """Fetch what is ready; False if more input is needed."""
        if self._failure is not None:
            raise self._failure.with_traceback(None)
        try:
            self._blocks = self._reader.take_blocks()
        except FrameTooLarge as error:
            self._refuse_a_body(self._reader.tail)
            self._fail(
                FrameTooLarge(
                    error.message, limit=error.limit, protocol=self._protocol.name, state=self.state
                )
            )
        return bool(self._blocks)

    def _take_queued(self, item: Event | _Judged | Frame) -> E_co | None:
        if isinstance(item, Frame):
            return self._take_block(_block_of(item))
        event = item
        if isinstance(item, _Judged):
            self._machine.apply(item.moves)
            self._remember(item.event)
            event = item.event
        # Besides what the protocol decodes come the events that none owns; every AnyEvent has them.
        return cast("E_co", event)

    def _take_frame(self, frame: Frame) -> E_co | None:
        """Take a frame that has more than a name and data, or less."""
        if frame.id is not None:
            self._last_event_id = frame.id
        if frame.retry is not None:
            self._retry = frame.retry
        if _is_of_an_event_stream(frame):
            self._head = None
        elif self._head == b"" and frame.lines:
            self._refuse_a_body(frame.raw)
            self._head = frame.raw[:_MAX_BODY]
        if frame.data is not None:
            self._queue.append(frame)
        self._queue += [
            received(Comment(text=text.removeprefix(" ")), frame.raw)
            for text in reversed(frame.comments)
        ]
        return self._take_queued(self._queue.pop()) if self._queue else None

    def _take_block(self, block: PlainBlock) -> E_co | None:
        """Take a frame with data: make an event of it, judge it, and move."""
        self._head = None
        raw, event_name, data, _ = block
        try:
            name, text = event_name.decode(), data.decode()
        except UnicodeDecodeError:
            return self._take_block(_block_of(Frame.parse(raw)))
        model = self._memory.model
        # Model.is_due() without a call, since every event asks. Who has no template repeats nothing.
        if model.asked is self._machine.settled and name == model.name:
            event = self._protocol.repeat(text, raw, self._memory)
            if event is not None:
                return event
        return self._take_data(raw, name, text)

    def _take_data(self, raw: bytes, name: str, data: str) -> E_co | None:
        """Take a frame that is no repetition of the one before it."""
        protocol = self._protocol
        try:
            event = protocol.decode(self._loads(data), name, raw)
        except PayloadError as error:
            return self._take_text(raw, name, data, error)
        except Malformed as fault:
            return self._take_slowly(fault.event, [(fault.code, fault.message)])
        except Recognised as found:
            self._become(cast("Protocol[E_co]", found.protocol))
            return self._take_data(raw, name, data)
        named_well = name == event.type if protocol.named else not name
        if named_well and self._moved(event):
            return event
        return self._take_slowly(event, [])

    def _moved(self, event: Event) -> bool:
        """Make the moves of an event if that is all there is to say about it."""
        if type(event) is Unknown:
            return False
        moves = self._protocol.moves[type(event)](event, self._machine, self._memory)
        if self._machine.step(moves):
            return False
        self._remember(event)
        self._learn(event)
        return True

    def _refuse_another_protocol(self, event: Event) -> None:
        """Fail if a stream begins with an event that only another protocol has."""
        found = self._foreign(event)
        if found is not None:
            self._fail(error_of(found, self._protocol.name, RemoteProtocolError))

    def _take_text(self, raw: bytes, name: str, data: str, error: PayloadError) -> E_co | None:
        """Take a frame whose data is no JSON."""
        if is_done(data):
            return self._take_slowly(received(Done(), raw), [])
        event = received(Unknown(name=name or "message", data=data), raw)
        if not data:
            # Some servers keep a connection alive with these.
            return self._take_slowly(event, [("empty_data", "an event with empty data")], drop=True)
        return self._take_slowly(event, [("malformed_payload", str(error))])

    def _take_slowly(
        self, event: Event, faults: list[tuple[str, str]], *, drop: bool = False
    ) -> E_co | None:
        """Take an event that is not simply legal: report what is wrong with it, or raise that."""
        self._refuse_another_protocol(event)
        faults = faults + faults_of_name(event, named=self._protocol.named)
        moves = self._protocol.moves[type(event)](event, self._machine, self._memory)
        findings = [finding for finding in self._machine.judge(moves) if finding.cell.code]
        drop = drop or any(finding.dropped for finding in findings)
        violations = [
            Violation(code=code, message=message, event=event, dropped=drop) for code, message in faults
        ]
        reports = [violation(finding, event, dropped=drop) for finding in findings]
        fatal = [report for report, finding in zip(reports, findings, strict=True) if finding.fatal]
        # An error that came in a bad form is still the error: its form alone is never raised.
        form = [] if isinstance(event, self._protocol.error) else violations
        if self._strict:
            fatal += form + reports
        if fatal:
            self._fail(error_of(fatal[0], self._protocol.name, RemoteProtocolError))
        if drop:
            self._skip(event)
        else:
            self._queue.append(_Judged(event, moves))
        self._queue += reversed(violations + reports)
        return self._take_queued(self._queue.pop())

    def _end(self) -> E_co | None:
        """Judge the end of the input."""
        if self._over:
            return None
        if self._cut is None:
            tail = self._reader.unfinished or Frame(b"")
            if self._is_no_event_stream(tail):
                self._fail(self._no_event_stream(self._head or tail.raw))
            event = self._accepted_tail(tail)
            self._cut = event is None and any(name for name, _ in tail.lines)
            if event is not None:
                return self._take_slowly(
                    event, [("unterminated_final_event", "the last event lacks its blank line")]
                )
        return self._close(EOF_INSIDE if self._cut else EOF)

    def _accepted_tail(self, tail: Frame) -> Event | None:
        """The event of an unfinished block that lacks nothing but its blank line, if it may count."""
        accepted = not self._strict and self._eof and not self.finished
        return self._event_of_tail(tail) if accepted else None

    def _event_of_tail(self, tail: Frame) -> Event | None:
        """The event of an unfinished block that lacks nothing but its blank line."""
        if tail.data is None:
            return None
        if is_done(tail.data):
            return received(Done(), tail.raw)
        try:
            return self._protocol.decode(self._loads(tail.data), tail.event or "", tail.raw)
        except (PayloadError, Malformed, Recognised):
            return None

    def _close(self, symbol: str) -> E_co | None:
        """Make the move that the end of the input is."""
        moves = ((self._table, None, symbol),)
        violations = [
            (finding.fatal, violation(finding, None, dropped=False))
            for finding in self._machine.judge(moves)
        ]
        for fatal, found in violations:
            if fatal or self._strict:
                error = error_of(found, self._protocol.name, StreamTruncated)
                error.tail_length = len(self._reader.tail)
                self._fail(error)
        self._over = True
        self._machine.apply(moves)
        self._queue = [EndOfStream(outcome=self.outcome), *(found for _, found in violations)]
        return self._take_queued(self._queue.pop())

    def _refuse_a_body(self, begin: bytes) -> None:
        """Fail if a stream that begins like this is JSON or HTML."""
        if self._head == b"" and begin.lstrip().startswith((b"{", b"[", b"<")):
            self._fail(self._no_event_stream(begin))

    def _is_no_event_stream(self, tail: Frame) -> bool:
        """Whether nothing that came, up to an unfinished block, belongs to an event stream."""
        body = (self._head or tail.raw).strip()
        begun = self._head is None or _is_of_an_event_stream(tail)
        return bool(body) and not begun and not any(begin.startswith(body) for begin in _BEGINNINGS)

    def _no_event_stream(self, body: bytes) -> NotAnEventStream:
        body = body.strip()
        value = None
        if len(body) < _MAX_BODY:
            with contextlib.suppress(PayloadError):
                value = self._loads(body.decode(errors="replace"))
        return not_an_event_stream(body[:_MAX_BODY], value, self._protocol.name, self.state)

    def _fail(self, error: RemoteProtocolError) -> NoReturn:
        if not self.finished:
            self._outcome = _FAILURES[type(error)]
        error.outcome = self.outcome
        if self._accumulator is not None:
            self._accumulator.end(self.outcome)
            error.accumulator = self._accumulator
        self._failure = error
        self._blocks = []
        self._queue = []
        raise error


def _block_of(frame: Frame) -> PlainBlock:
    """A frame without what is not about its event, and in sound UTF-8."""
    return frame.raw, (frame.event or "").encode(), (frame.data or "").encode(), b""


def _is_of_an_event_stream(frame: Frame) -> bool:
    # Comments behind junk prove nothing: a colon begins a line in many formats.
    return frame.raw.startswith(b":") or frame[1:5] != (None, None, None, None)


# A body that is only the beginning of one of these is an event stream that was cut very early.
_BEGINNINGS = (b"data", b"event", b"id", b"retry", BOM)
_FAILURES: dict[type[RemoteProtocolError], Outcome] = {
    StreamTruncated: Outcome.TRUNCATED,
    FrameTooLarge: Outcome.LIMIT,
    AnswerTooLarge: Outcome.LIMIT,
    NotAnEventStream: Outcome.NOT_SSE,
    RemoteProtocolError: Outcome.PROTOCOL_ERROR,
}
