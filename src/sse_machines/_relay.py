"""Relay: bytes of one upstream in, bytes for one client out, and what happened on the way.

A gateway's part of a stream, without its sockets and its clock: whole events are forwarded as they came,
keep-alives go between two of them, a model that is stuck is noticed, and what breaks off ends with an
error in the protocol's own form. One call in, one `Output` out; nothing else has to be remembered.

The module deliberately does no I/O and owns no time. Which event is legal is not its business either:
what the tables say against one is reported, and the event forwarded all the same.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

from typing_extensions import Self

from ._accumulator import Accumulator
from ._errors import FrameTooLarge, LocalProtocolError, NotAnEventStream, RemoteProtocolError
from ._frames import BOM, Frame, encode_frame
from ._meter import LIFE, OUTPUT, PROGRESS, TERMINAL, Identity, Meter, Usage, take_life
from ._observer import Block, Observer, about, events_of
from ._payload import Loads, dumps
from ._protocol import (
    DONE_MARK,
    Done,
    ErrorInfo,
    Event,
    Outcome,
    Protocol,
    Violation,
    WireEvent,
)
from ._relay_clocks import Clocks
from ._relay_config import KeepAlive, RelayConfig
from ._relay_events import (
    Cause,
    Closed,
    Counters,
    Diagnostic,
    FailedBeforeOutput,
    KeepAliveQueued,
    OutputStarted,
    RelayOutcome,
    Stalled,
    StallKind,
    Synthesized,
    TailDropped,
    Terminal,
    UsageChanged,
)
from ._relay_tables import (
    ANSWERS,
    BREAKS,
    CLOSED,
    DRAINING,
    FAILED,
    FORWARDING,
    HOLDING,
    OUTCOMES,
    PHASES,
    Phase,
)
from ._sender import Sender, whole

_DEFAULT_CONFIG = RelayConfig()
# Calling the class costs twice as much.
_output = tuple.__new__


_READING = (FORWARDING, HOLDING, DRAINING)
_EARLY = (HOLDING, FAILED)


class Output(NamedTuple):
    """What comes out of a call.

    Attributes:
        data: Bytes to write downstream: whole events and comments, never a part of one.
        events: What happened, in order: the events of the upstream (each with its bytes in ``raw``),
            with violations, and the relay's own events.
        deadline: Call `Relay.handle_timeout` at this time, if nothing else happens before; None: never.
        close_upstream: The connection to the upstream is of no use any more: close it.
        finished: Nothing will ever come again. What was put out is all; close downstream when it is
            written.
    """

    data: bytes
    events: list[Event]
    deadline: float | None
    close_upstream: bool
    finished: bool


class Relay:
    """Forwards one answer.

    ::

        relay = Relay(MESSAGES, RelayConfig.hopbase(), now=clock())
        output = relay.receive_data(chunk, clock())
        write(output.data)

    Every time is in seconds, of one clock that the caller chooses. A time before the last one counts as
    the last one. Calls that come too late (bytes after the end, an early timeout) change nothing.

    Args:
        protocol: The protocol of the answer.
        config: How to behave.
        now: The time at which downstream was opened.
        identity: What to call a response of which the upstream told nothing before it broke off. Only
            Responses need it.
        loads: A JSON parser to use, as for `Receiver`.

    Raises:
        LocalProtocolError: The protocol has no such keep-alive as the configuration asks for, or is that
            of a stream that has not told its own.

    A relay is a plain value: it can be pickled and copied between any two calls, and the copy goes on
    identically.
    """

    __slots__ = (
        *("_bytes_in", "_bytes_out", "_clocks", "_comment_dropped", "_config", "_cr", "_drain_size"),
        *("_drain_until", "_events", "_failure", "_freely", "_full", "_held", "_held_size", "_id_seen"),
        *("_identity", "_inserted", "_keepalive", "_last_words", "_light", "_loads", "_meter"),
        *("_number", "_out", "_outcome", "_phase", "_protocol", "_unsent", "_upstream"),
    )

    def __init__(
        self,
        protocol: Protocol[Any, Any],
        config: RelayConfig = _DEFAULT_CONFIG,
        *,
        now: float,
        identity: Identity | None = None,
        loads: Loads | None = None,
    ) -> None:
        keepalive = config.keepalive
        if keepalive is not None and keepalive.form == "ping" and protocol.meter.ping is None:
            raise LocalProtocolError(f"{protocol.name} has no ping", code="bad_config")
        if not protocol.meter.terminals:
            raise LocalProtocolError(f"nothing ends an answer whose protocol is {protocol.name}")
        self._protocol = protocol
        self._config = config
        self._light = config.observe == "light"
        self._identity = identity
        self._loads = loads
        self._clocks = Clocks(config.stall, now)
        self._enter(FORWARDING if config.hold is None else HOLDING)
        self._outcome = RelayOutcome.OPEN
        self._bytes_in = self._bytes_out = self._unsent = 0
        # What one call puts together.
        self._out: list[bytes] = []
        self._events: list[Event] = []
        self._held: list[bytes] = []
        # When an upstream without a client is left, and after how many bytes.
        self._drain_until = 0.0
        self._drain_size = 0
        self._begin()

    def receive_data(self, data: bytes | bytearray | memoryview, now: float) -> Output:
        """Take bytes from the upstream. An empty chunk is no end.

        Args:
            data: The next bytes of the body, decompressed, in any cut.
            now: The time.
        """
        clocks = self._clocks
        clocks.advance(now)
        if data and self._phase in _READING:
            self._bytes_in += len(data)
            if clocks.hears_bytes:
                clocks.byte()
            self._read(data)
        return self._put_out()

    def receive_eof(self, now: float) -> Output:
        """Note that the upstream has ended the body as a body ends."""
        self._clocks.advance(now)
        self._end_of_input(clean=True, detail=None)
        return self._put_out()

    def receive_error(self, kind: str, now: float, detail: str | None = None) -> Output:
        """Note that the connection to the upstream failed, or could not be made.

        Args:
            kind: What it was, in the caller's words; it comes back in `FailedBeforeOutput`.
            now: The time.
            detail: More of that. Neither is told to the client.
        """
        self._clocks.advance(now)
        self._end_of_input(clean=False, detail=kind if detail is None else f"{kind}: {detail}")
        return self._put_out()

    def handle_timeout(self, now: float) -> Output:
        """Note that time has passed. Harmless if it is too early, or comes twice."""
        self._clocks.advance(now)
        return self._put_out()

    def fail(self, error: ErrorInfo | None, now: float) -> Output:
        """End the answer with an error, now.

        Args:
            error: What to tell the client: its ``message``, ``type`` and ``code`` are used. None after a
                failed attempt: what the upstream said if it said something, else the configured text.
            now: The time.

        Raises:
            LocalProtocolError: The error has no UTF-8 form.
        """
        self._clocks.advance(now)
        told = (error.message, error.type or "", str(error.code)) if error else ()
        try:
            "".join(told).encode()
        except UnicodeEncodeError:
            raise LocalProtocolError("the error has no UTF-8 form", code="bad_field") from None
        if self._phase in (HOLDING, FORWARDING, FAILED):
            self._fail(error)
        return self._put_out()

    def downstream_closed(self, now: float) -> Output:
        """Note that the client is gone. Nothing is put out any more."""
        self._clocks.advance(now)
        drain = self._config.drain
        symbol = "client gone" if drain is None else "client gone, drain"
        after = PHASES[self._phase].get(symbol)
        if after is CLOSED:
            self._close(symbol, RelayOutcome.CANCELLED)
        elif after is DRAINING and drain is not None:
            self._go(symbol)
            self._held, self._unsent = [], 0
            self._clocks.resume()
            self._drain_until = self._clocks.now + drain.max_seconds
            self._drain_size = self._bytes_in + drain.max_bytes
        return self._put_out()

    def downstream_ready(self, n_unsent: int, now: float) -> Output:
        """Tell how much of what was put out is not written yet.

        While anything is, no keep-alive is put behind it; the silence that one ends begins where all is
        written. Over ``max_unsent`` bytes the upstream is not to be read (see `want_read`), and
        its clocks stand still.

        Args:
            n_unsent: Bytes.
            now: The time.

        Raises:
            LocalProtocolError: There are no so many bytes.
        """
        if n_unsent < 0:
            raise LocalProtocolError("n_unsent must be at least 0")
        self._clocks.advance(now)
        if self._unsent and not n_unsent:
            # The client has heard something up to now.
            self._clocks.written_at = self._clocks.now
        self._unsent = 0 if self._phase is DRAINING or self._phase is CLOSED else n_unsent
        if self._unsent > self._config.max_unsent:
            self._clocks.pause()
        else:
            self._clocks.resume()
        return self._put_out()

    def new_attempt(self, now: float) -> Output:
        """Begin again with another upstream. What the one before sent is forgotten; no client saw it.

        Raises:
            LocalProtocolError: Something of the answer has gone out, or the relay is over.
        """
        self._clocks.advance(now)
        if "new attempt" not in PHASES[self._phase]:
            raise LocalProtocolError(
                f"no other attempt is possible while the relay is {self._phase.name}",
                code="no_new_attempt",
                protocol=self._protocol.name,
                legal=tuple(PHASES[self._phase]),
            )
        self._go("new attempt")
        self._clocks.restart()
        self._begin()
        return self._put_out()

    @property
    def phase(self) -> Phase:
        """What it is doing."""
        return self._phase

    @property
    def want_read(self) -> bool:
        """Whether the upstream is to be read: not behind its end, nor while the client is too slow."""
        return self._phase in _READING and self._unsent <= self._config.max_unsent

    @property
    def output_started(self) -> bool:
        """Whether anything of the answer has come: text, reasoning, a call."""
        return self._clocks.output_at is not None

    @property
    def outcome(self) -> RelayOutcome:
        """How the answer ended for the client; `RelayOutcome.OPEN` while it has not."""
        return self._outcome

    @property
    def usage(self) -> Usage:
        """What the answer costs, as far as the upstream has told."""
        return self._meter.reading()

    @property
    def counters(self) -> Counters:
        """How much has passed. With these an answer can be billed that was cut before its usage."""
        meter, counted = self._meter, not self._light
        return Counters(
            events=self._number,
            bytes_in=self._bytes_in,
            bytes_out=self._bytes_out,
            text=meter.text if counted else None,
            reasoning=meter.reasoning if counted else None,
            arguments=meter.arguments if counted else None,
            first_output_at=self._clocks.output_at,
            last_progress_at=self._clocks.progress_at,
        )

    @property
    def accumulator(self) -> Accumulator:
        """The answer so far, in the protocol's own class.

        Raises:
            LocalProtocolError: The configuration does not ask for it.
        """
        accumulator: Accumulator = self._upstream.accumulator
        return accumulator

    def __copy__(self) -> Self:
        return copy.deepcopy(self)

    def _begin(self) -> None:
        """Stand before the first byte of an upstream."""
        self._upstream = self._observer()
        self._meter: Meter = self._protocol.meter()
        self._number = 0
        # Whether the last frame ended in a CR, and whether the LF that may follow has lost its place.
        self._cr = self._inserted = False
        self._id_seen = self._comment_dropped = self._full = False
        self._held = []
        self._held_size = 0
        # Of a failed attempt: why it failed, and the bytes in which the upstream said so.
        self._failure: FailedBeforeOutput | None = None
        self._last_words = b""

    def _observer(self) -> Observer:
        config = self._config
        return Observer(
            self._protocol, limits=config.limits, loads=self._loads, accumulate=config.accumulate
        )

    def _go(self, symbol: str) -> None:
        self._enter(PHASES[self._phase].get(symbol, self._phase))

    def _enter(self, phase: Phase) -> None:
        config = self._config
        self._phase = phase
        # Whether there is nothing to decide about a block that does not end the answer.
        begun = phase is FORWARDING and self._clocks.output_at is not None
        self._freely = begun and not config.suppress_usage
        # What the client is to hear if it hears nothing else; None where it is to hear nothing.
        early = config.keepalive is not None and config.keepalive.before_output
        heard = phase is FORWARDING or (early and phase in _EARLY)
        self._keepalive = config.keepalive if heard else None

    def _close(self, symbol: str, outcome: RelayOutcome) -> None:
        self._go(symbol)
        self._outcome = outcome
        self._held = []
        if self._config.accumulate:
            self._upstream.accumulator.end(ANSWERS.get(outcome, Outcome.TRUNCATED))
        self._events.append(Closed(outcome=outcome))

    # What comes in.

    def _read(self, data: bytes | bytearray | memoryview) -> None:
        """Forward what is complete now that bytes came."""
        upstream = self._upstream
        try:
            blocks = upstream.feed(data)
            while blocks:
                self._take_all(blocks)
                more = upstream.reader.has_input and self._phase in _READING
                blocks = upstream.blocks() if more else []
        except NotAnEventStream as error:
            self._break_off("not_sse", error)
        except FrameTooLarge as error:
            self._break_off("limit", error)
        if upstream.full and not self._full:
            self._full = True
            self._events.append(Diagnostic(code="answer_too_large"))
        if self._phase is DRAINING and self._bytes_in > self._drain_size:
            self._close("end", RelayOutcome.CANCELLED)

    def _take_all(self, blocks: list[Block]) -> None:
        """Take blocks, the last one first, up to the one that ends the answer."""
        if self._cr:
            self._join_crlf(blocks)
        self._inserted = False
        upstream, meter = self._upstream, self._meter
        while blocks:
            if self._freely and self._light:
                self._pass_over(blocks)
            elif self._freely and (run := upstream.take_run(blocks, self._out)):
                self._cr = self._comment_dropped = False
                self._events += run
                self._number += len(run)
                if meter.take_run(run, upstream.memory):
                    self._clocks.progress()
            if blocks:
                self._take(blocks)

    def _take(self, blocks: list[Block]) -> None:
        """Take the last block; all of them if it ends the answer."""
        meter, block = self._meter, blocks.pop()
        usage = meter.usage
        found: Any = self._upstream.take(block)
        handler = meter.handlers.get(type(found))
        # Nearly always it is one event that is legal; everything else is looked at more closely.
        if handler is None or type(block) is not tuple or not self._freely:
            shows = self._look_at(block, events_of(found))
        else:
            shows = handler(meter, found)
            self._events.append(found)
            self._number += 1
            if shows != TERMINAL:
                self._out.append(block[0])
            self._cr = self._comment_dropped = False
        if shows > LIFE:
            self._clocks.progress()
        if meter.usage is not usage:
            self._events.append(UsageChanged(usage=meter.reading()))
        if shows == TERMINAL:
            self._end_by(block, about(events_of(found)[-1]), blocks)
            blocks.clear()

    def _pass_over(self, blocks: list[Block]) -> None:
        """Forward the blocks that need not be read to know what they are."""
        unread = self._meter.unread
        if unread:
            passed = self._upstream.pass_over_named(unread, blocks, self._out)
        else:
            passed = self._upstream.pass_over_alike(blocks, self._out)
        if passed:
            self._cr = self._out[-1].endswith(b"\r")
            self._comment_dropped = False
            self._number += passed
            self._meter.pass_over()
            self._clocks.progress()

    def _look_at(self, block: Block, events: list[Event]) -> int:
        """Decide about a block; forward it unless it ends the answer.

        Returns:
            The most that its events show.
        """
        if self._light:
            # Who has not read everything cannot judge.
            self._events += [event for event in events if type(event) is not Violation]
        else:
            self._events += events
        shows = max(map(self._shows, events), default=LIFE)
        if isinstance(block, Frame):
            self._id_seen = self._id_seen or block.id is not None
            self._number += block.data is not None
        else:
            self._number += 1
        if shows == OUTPUT and self._clocks.output_at is None:
            self._start_output()
        if shows != TERMINAL:
            reason = self._reason_to_drop(block, events)
            if reason:
                self._drop(block, reason)
            else:
                self._forward(block)
        return shows

    def _shows(self, event: Event) -> int:
        """What an event shows, also if it was kept out of the state."""
        if not isinstance(event, Violation):
            return self._meter.take(event)
        dropped = event.event
        if not event.dropped or dropped is None:
            return LIFE
        if type(dropped) in self._meter.terminals:
            return TERMINAL
        self._meter.see_dropped(dropped)
        alive = self._meter.handlers.get(type(dropped)) is not take_life
        return PROGRESS if alive and isinstance(dropped, WireEvent) else LIFE

    def _reason_to_drop(self, block: Block, events: list[Event]) -> str:
        """Why a block is not forwarded; empty if it is."""
        for event in map(about, events):
            if type(event) is Done:
                return "stray_done"
            if self._config.suppress_usage and event and self._meter.is_only_usage(event):
                return "usage_suppressed"
        if not isinstance(block, Frame) or block.data is not None:
            return ""
        # A comment that stands among fields belongs to their block.
        comment = block.raw.startswith(b":")
        blank = self._comment_dropped and not block.raw.strip(b"\r\n")
        if self._config.comments == "drop" and (comment or blank):
            return "comment_dropped"
        sent = self._bytes_out or self._out
        return "bom_stripped" if block.raw == BOM and self._phase is not HOLDING and sent else ""

    def _drop(self, block: Block, code: str) -> None:
        # What is left of its last line end is dropped with it.
        self._cr = self._inserted = block[0].endswith(b"\r")
        comment = code == "comment_dropped"
        # The blank line behind a comment is dropped with it.
        self._comment_dropped = comment and bool(block[0].strip(b"\r\n"))
        if self._comment_dropped or not comment:
            self._events.append(Diagnostic(code=code, size=len(block[0])))

    def _forward(self, block: Block) -> None:
        """Let a block go out, or hold it back."""
        raw = block[0]
        self._comment_dropped = self._inserted = False
        self._cr = raw.endswith(b"\r")
        if self._phase is FORWARDING:
            self._out.append(raw)
        elif self._phase is HOLDING:
            self._hold(raw)

    def _join_crlf(self, blocks: list[Block]) -> None:
        """Look at the LF that may belong to a CR that has gone out before."""
        self._cr = False
        # It belongs there, so it goes out behind it or not at all.
        if blocks[-1][0] == b"\n" and self._inserted:
            blocks.pop()

    def _hold(self, raw: bytes) -> None:
        hold = self._config.hold
        self._held.append(raw)
        self._held_size += len(raw)
        if hold and (self._held_size > hold.max_bytes or self._number > hold.max_events):
            self._events.append(Diagnostic(code="hold_exceeded", size=self._held_size))
            self._release()

    def _start_output(self) -> None:
        self._clocks.start_output()
        self._events.append(OutputStarted())
        self._release()

    def _release(self) -> None:
        """Let go what is held."""
        held, self._held = self._held, []
        if held and held[0] == BOM and self._bytes_out:
            self._events.append(Diagnostic(code="bom_stripped", size=len(BOM)))
            held = held[1:]
        self._out += held
        self._go("output")

    # How an answer ends.

    def _end_by(self, block: Block, event: Any, behind: list[Block]) -> None:
        """End with the event that ends the answer."""
        outcome = OUTCOMES.get(self._upstream.outcome, RelayOutcome.TRUNCATED)
        failed = outcome is RelayOutcome.FAILED_UPSTREAM
        self._events.append(Terminal(kind=event.type))
        if failed and self._phase is HOLDING:
            self._last_words = block[0]
            self._fail_attempt("upstream", error=event.info)
            return
        if self._phase is DRAINING:
            outcome = RelayOutcome.CANCELLED
        else:
            self._release()
            self._out.append(block[0])
        if failed:
            self._add_done()
        self._look_behind(behind)
        self._close("end", outcome)

    def _look_behind(self, behind: list[Block]) -> None:
        """Say what stands behind the end; nothing of it is forwarded."""
        size, codes = len(self._upstream.tail), set[str]()
        for block in reversed(behind):
            size += len(block[0].strip(b"\r\n"))
            for event in map(about, events_of(self._upstream.take(block))):
                if type(event) in self._meter.terminals:
                    codes.add("double_terminal")
                elif type(event) is Done:
                    codes.add("stray_done")
        if size:
            self._events.append(Diagnostic(code="after_terminal", size=size))
        self._events += [Diagnostic(code=code) for code in sorted(codes)]

    def _end_of_input(self, *, clean: bool, detail: str | None) -> None:
        if self._phase not in _READING:
            return
        try:
            self._upstream.end(clean=clean)
        except NotAnEventStream as error:
            self._break_off("not_sse", error, detail)
            return
        cause: Cause = "eof" if clean else "transport"
        if self._takes_tail(clean=clean) or self._repairs(cause):
            return
        self._break_off(cause, detail=detail)

    def _takes_tail(self, *, clean: bool) -> bool:
        """Look at what stands behind the last complete block; whether it ends the answer."""
        tail = self._upstream.tail
        if not tail:
            return False
        terminal = type(self._upstream.event_at_the_end()) in self._meter.terminals
        if terminal and clean and self._config.eof_tail == "accept":
            self._take([Frame.parse(whole(tail))])
            return True
        self._events.append(TailDropped(size=len(tail), looks_terminal=terminal))
        return False

    def _repairs(self, cause: Cause) -> bool:
        """Add the event or mark that an answer lacks, if that is all it lacks."""
        terminal = self._meter.terminal
        survivable = cause == "eof" or self._meter.outlives_failure
        if self._phase is not FORWARDING or not self._config.repair_tail or not survivable:
            return False
        if terminal is None or not self._upstream.complete or not self._meter.closed:
            return False
        try:
            self._out.append(self._sender().send(terminal))
        except LocalProtocolError:
            # A block is open that never began: its deltas came behind the stop reason.
            return False
        self._events.append(Synthesized(kind="terminal", cause=cause))
        self._close("end", RelayOutcome.COMPLETED_REPAIRED)
        return True

    def _break_off(
        self, cause: Cause, exception: RemoteProtocolError | None = None, detail: str | None = None
    ) -> None:
        """End an answer that is not complete."""
        if self._phase is HOLDING:
            self._fail_attempt(cause, exception=exception, detail=detail)
        elif self._phase is DRAINING:
            self._close("failure", RelayOutcome.CANCELLED)
        else:
            broken = BREAKS[cause]
            self._write_error(self._text_of(cause), cause, exception=exception)
            self._close("failure", broken.outcome)

    def _fail_attempt(
        self,
        cause: Cause,
        *,
        error: ErrorInfo | None = None,
        exception: RemoteProtocolError | None = None,
        detail: str | None = None,
    ) -> None:
        """Leave an upstream of which the client knows nothing."""
        body = exception.error if isinstance(exception, NotAnEventStream) else None
        if body is not None:
            error = ErrorInfo.of(body, self._meter.retryable)
        retryable = BREAKS[cause].retryable
        if error is not None and error.retryable is not None:
            retryable = error.retryable
        self._failure = FailedBeforeOutput(
            cause=cause,
            error=error or ErrorInfo(message=self._text_of(cause), retryable=retryable),
            retryable=retryable,
            exception=exception,
            detail=detail,
        )
        self._events.append(self._failure)
        self._go("failure")

    def _fail(self, error: ErrorInfo | None) -> None:
        """End with an error that the owner asks for."""
        cause: Cause = "caller" if self._failure is None else self._failure.cause
        if self._failure is not None:
            # What is no event stream is nobody's business.
            self._held = [] if cause == "not_sse" else self._held
            self._stand_behind(self._held)
        words = b"" if error else self._last_words
        self._release()
        if words:
            self._out.append(words)
            self._add_done()
            self._close("end", RelayOutcome.FAILED_UPSTREAM)
            return
        self._write_error((error and error.message) or self._text_of(cause), cause, error)
        self._close("end", RelayOutcome.FAILED_GATEWAY if error else BREAKS[cause].outcome)

    def _stand_behind(self, held: list[bytes]) -> None:
        """Stand where the client will stand, and not where a failed upstream stood."""
        upstream = self._observer()
        upstream.receive_data(b"".join(held))
        while blocks := upstream.blocks():
            while blocks:
                upstream.take(blocks.pop())
        self._upstream = upstream

    def _write_error(
        self,
        message: str,
        cause: Cause,
        error: ErrorInfo | None = None,
        exception: RemoteProtocolError | None = None,
    ) -> None:
        """Say in the protocol's own form that the answer broke off."""
        meter, upstream = self._meter, self._upstream
        kind, code = (error.type, error.code) if error else (None, None)
        if code is not None and meter.error_codes is not None and code not in meter.error_codes:
            code = None
        upstream.catch_up()
        begun = upstream.started
        meter.recall(upstream.memory)
        sender = self._sender()
        opening = meter.opening(self._identity) if self._identity and not begun else None
        if opening is not None:
            self._out.append(sender.send(opening))
        code = None if code is None else str(code)
        self._out.append(sender.interrupt(message, type=kind, code=code))
        self._add_done()
        self._events.append(Synthesized(kind="error", cause=cause, exception=exception))

    def _sender(self) -> Sender[Any]:
        """What goes on with the answer where the upstream stands in it."""
        sender: Sender[Any] = Sender(self._protocol)
        sender.stand_with(self._upstream)
        return sender

    def _add_done(self) -> None:
        """Put the end mark behind an error, for clients that wait for nothing else."""
        if (
            self._phase is not DRAINING
            and self._config.done_after_error
            and type(self._meter.terminal) is Done
        ):
            self._out.append(encode_frame(data=DONE_MARK))

    def _text_of(self, cause: Cause) -> str:
        text: str = getattr(self._config.errors, BREAKS[cause].text)
        return text

    # Time, and what goes out.

    def _put_out(self) -> Output:
        """Do what is due, and give out all that the call has put together."""
        clocks, now = self._clocks, self._clocks.now
        phase = self._phase
        due: float | None = None
        if phase is FORWARDING or phase is HOLDING:
            due = clocks.deadline()
            while due is not None and due <= now:
                self._stall(*clocks.expired())
                due = clocks.deadline() if self._phase is phase else None
        elif phase is DRAINING:
            due = self._drain_on()
        out, events = self._out, self._events
        if out:
            clocks.written_at = now
        # While something is unsent, the client has something to wait for.
        keepalive = self._keepalive
        if keepalive is not None and not self._unsent:
            silent = clocks.written_at + keepalive.interval
            if silent <= now:
                self._keep_alive(keepalive)
                silent = now + keepalive.interval
            if due is None or silent < due:
                due = silent
        data = out[0] if len(out) == 1 else b"".join(out)
        self._bytes_out += len(data)
        self._out, self._events = [], []
        phase = self._phase
        closed = phase is CLOSED
        return _output(Output, (data, events, due, closed or phase is FAILED, closed))

    def _drain_on(self) -> float | None:
        """Go on without a client for as long as may be."""
        if self._clocks.now < self._drain_until:
            return self._drain_until
        self._close("end", RelayOutcome.CANCELLED)
        return None

    def _keep_alive(self, keepalive: KeepAlive) -> None:
        ping = self._meter.ping
        if keepalive.form == "ping" and ping is not None:
            self._out.append(encode_frame(event=ping.type, data=dumps(ping.payload)))
        else:
            brief = keepalive.form == "comment1" or (keepalive.form == "auto" and self._id_seen)
            self._out.append(keepalive.line if brief else keepalive.frame)
        self._inserted = True
        self._clocks.written_at = self._clocks.now
        self._events.append(KeepAliveQueued())

    def _stall(self, kind: StallKind, since: float) -> None:
        self._events.append(Stalled(kind=kind, since=since))
        stall = self._config.stall
        if stall is not None and stall.on_expiry == "report":
            self._clocks.mute(kind)
        else:
            self._break_off("stalled")
