"""Sender: judged events in, bytes of one answer out.

This is where the caller is blamed: an event that the tables do not call legal is refused, and a refused
call has written nothing and moved nothing. What is judged is what is about to be written: the payload is
decoded as a receiver would decode it, so both ends hold the same law over the same thing. The module
deliberately knows no clock and no protocol by name.
"""

from __future__ import annotations

from typing import Any

from ._errors import LocalProtocolError
from ._frames import BOM, Frame, encode_frame
from ._payload import Dumps, PayloadError, dumps as guarded_dumps, dumps_with, loads
from ._protocol import (
    DONE_MARK,
    Comment,
    Done,
    E,
    EndOfStream,
    Event,
    Malformed,
    Protocol,
    Unknown,
    Violation,
    WireEvent,
    received,
)
from ._streams import Stream, is_done
from ._verdicts import error_of, faults_of_name, violation

INTERRUPTED = "Response stream interrupted, please retry"


class Sender(Stream[E]):
    """Writes one answer: give it events, take bytes.

    ::

        sender = Sender(MESSAGES)
        write(sender.send(MessageStart(message=...)))
        write(sender.comment("keep-alive"))
        write(sender.send(ContentBlockStart(index=0, content_block={"type": "text", "text": ""})))

    Every call gives the bytes of whole events, so that anything may be written between two of them.

    Args:
        protocol: Which protocol the answer is in.
        dumps: What writes JSON, to use instead of the standard library's, such as ``orjson.dumps``.
            What is refused stays the same.
        starting_after: The number of the last event that the reader has, to go on in the middle of an
            answer. Only Responses can: ``GET /responses/{id}?starting_after=…``.

    Raises:
        LocalProtocolError: The protocol's streams do not go on in the middle.

    A sender is a plain value: it can be pickled and copied between any two calls, and the copy goes on
    identically.
    """

    __slots__ = ("_begun", "_dumps")

    def __init__(
        self,
        protocol: Protocol[E],
        *,
        dumps: Dumps | None = None,
        starting_after: int | None = None,
    ) -> None:
        super().__init__(protocol, starting_after)
        self._dumps = guarded_dumps if dumps is None else dumps_with(dumps)
        self._begun = False

    def send(self, event: E) -> bytes:
        """Write an event. The state moves now, and to where this event leads.

        Args:
            event: What a receiver of this protocol would give out, except for what is only said about
                a stream (`Violation`, `EndOfStream`). An event of Responses that has no
                ``sequence_number`` gets the one that is due. An `Unknown` is written as it is: from its
                ``data`` if it has some, else from its ``payload``.

        Returns:
            One frame in UTF-8: the event name where the protocol has one, the data, a blank line.

        Raises:
            LocalProtocolError: The event is not legal in this state (``code`` as a receiver would
                report it); it belongs to another protocol (``"foreign_event"``); its payload has no
                JSON text that everybody reads the same (``"bad_payload"``); its name or comment does
                not fit on a line (``"bad_field"``). Nothing has changed: the right event can be sent.
        """
        if isinstance(event, WireEvent):
            return self._write(event, strict=True)
        if isinstance(event, Comment):
            return self.comment(event.text)
        if isinstance(event, Done):
            self._move(event, event, strict=True)
            return _DONE
        if isinstance(event, Unknown):
            return self._write_unknown(event)
        raise self._foreign_event(event)

    def forward(self, item: E | Frame) -> bytes:
        """Write the very bytes that an event came in.

        What a receiver tolerates may be forwarded: it is the peer's, and no business of a gateway. What
        no receiver reads on from is refused, as `send` refuses it.

        Args:
            item: An event from a receiver, or a frame. Frames give a stream back byte for byte; events
                leave out what is none (blank lines, a byte-order mark, ``retry:`` alone).

        Returns:
            The bytes of its frame, completed if only its blank line is missing. Nothing for
            `EndOfStream`; for a `Violation`, unless the event that it is about was dropped and stands
            only there; for a comment inside of an event, which has it among its bytes; and for a
            byte-order mark that would not be the first thing written.

        Raises:
            LocalProtocolError: As in `send`; or the event was made here and has no bytes
                (``"not_received"``).
        """
        if isinstance(item, Frame):
            return self._forward_frame(item)
        if isinstance(item, EndOfStream | Violation):
            dropped = isinstance(item, Violation) and item.dropped and item.event
            return self._forward_event(dropped) if dropped else b""
        return self._forward_event(item)

    def comment(self, text: str) -> bytes:
        """Write a comment, such as a keep-alive. Moves nothing; legal in every state.

        Args:
            text: One line, without CR, LF and NUL.

        Returns:
            ``: text`` and a blank line, so that clients that only know blank lines get it right, too.

        Raises:
            LocalProtocolError: The text does not fit on a line, or has no UTF-8 form.
        """
        frame = comment_frame(text)
        self._begun = True
        return frame

    def interrupt(
        self, message: str = INTERRUPTED, *, type: str | None = None, code: str | None = None
    ) -> bytes:
        """Say in the protocol's own form that the answer breaks off. The answer has failed then.

        * Chat Completions: ``data: {"error": …}``; the type is ``"server_error"`` by default. Some
          servers send the end mark behind it, so `Done` is still legal.
        * Responses: ``response.failed``, with what was said last about the response, its id and the
          number that is due; the code is ``"server_error"`` by default. Where nothing was said yet, an
          ``error`` event.
        * Messages: ``error``; the type is ``"api_error"`` by default. Open blocks stay open.

        Args:
            message: A text for the user. Exceptions and what an upstream said can hold what is nobody's
                business.
            type: Chat Completions and Messages have one.
            code: Chat Completions and Responses have one.

        Raises:
            LocalProtocolError: The answer has ended, or the message has no UTF-8 form.
        """
        if self.finished:
            raise LocalProtocolError(
                f"the answer is over ({self.outcome}) and cannot be interrupted",
                code="finished",
                protocol=self._protocol.name,
                state=self.state,
                legal=self.legal(),
            )
        event = self._protocol.interruption(self._memory, message, type, code)
        return self._write(event, strict=False)

    def _write(self, event: WireEvent, *, strict: bool) -> bytes:
        """Write an event that the protocol defines."""
        protocol = self._protocol
        if type(event) not in protocol.moves:
            raise self._foreign_event(event)
        payload = event.payload
        if protocol.numbered is not None:
            payload = protocol.numbered(payload, self._memory)
        name = event.type if protocol.named else ""
        try:
            text = self._dumps(payload)
            data = (f"event: {name}\ndata: {text}\n\n" if name else f"data: {text}\n\n").encode()
        except PayloadError as error:
            raise self._refused("bad_payload", str(error), event) from None
        except UnicodeEncodeError:
            raise self._refused("bad_payload", "a lone surrogate has no UTF-8 form", event) from None
        if not protocol.repeats(text, name, self._machine, self._memory):
            judged = received(self._decoded(payload, name, event, strict=strict), data)
            if type(judged) is not type(event):
                message = f"a receiver would take it for {type(judged).__name__}"
                raise self._refused("malformed_event", message, event)
            self._move(judged, event, strict=strict)
        return data

    def _write_unknown(self, event: Unknown) -> bytes:
        """Write an event that no class stands for, from its text if it has one."""
        text, payload = event.data, event.payload
        _line("event", event.name)
        if not text and payload is None:
            raise self._refused("empty_data", "there is nothing to write", event)
        try:
            text = text or self._dumps(payload)
        except PayloadError as error:
            raise self._refused("bad_payload", str(error), event) from None
        try:
            value = loads(text)
        except PayloadError as error:
            raise self._refused("malformed_payload", str(error), event) from None
        if payload is not None and value != payload:
            raise self._refused("bad_payload", "data and payload say different things", event)
        name = self._name_of(event, value)
        data = encode_frame(data=text, event=name or None)
        judged = self._decoded(value, name, event, strict=True)
        faults = faults_of_name(received(judged, data), named=self._protocol.named)
        if faults:
            raise self._refused(*faults[0], event)
        self._move(judged, event, strict=True)
        return data

    def _decoded(self, payload: Any, name: str, event: Event, *, strict: bool) -> Event:
        """What a receiver will make of what is about to be written."""
        try:
            return self._protocol.decode(payload, name, b"")
        except Malformed as fault:
            if strict:
                raise self._refused(fault.code, fault.message, event) from None
            return fault.event

    def _name_of(self, event: Unknown, value: Any) -> str:
        """The event name of an unknown event; a protocol without event names has it in the payload."""
        typed = isinstance(value, dict) and value.get("type") == event.name
        unnamed = not self._protocol.named and (typed or event.name == "message")
        return "" if unnamed else event.name

    def _move(self, judged: Event, event: Event, *, strict: bool) -> None:
        """Make the moves of an event, or raise what is against it."""
        foreign = self._foreign(judged)
        if foreign is not None:
            raise error_of(foreign, self._protocol.name, LocalProtocolError)
        moves = self._protocol.moves[type(judged)](judged, self._machine, self._memory)
        findings = self._machine.step(moves)
        against = [finding for finding in findings if finding.fatal]
        if strict:
            against += [finding for finding in findings if finding.cell.code]
        if against:
            found = violation(against[0], event, dropped=False)
            raise error_of(found, self._protocol.name, LocalProtocolError)
        self._begun = True
        if any(finding.dropped for finding in findings):
            self._skip(judged)
            return
        if findings:
            self._machine.apply(moves)
        self._remember(judged)
        self._learn(judged)

    def _forward_event(self, event: Event) -> bytes:
        raw = event.raw
        if raw is None:
            raise self._refused("not_received", "it was made here; send() writes it", event)
        if isinstance(event, Comment):
            return self._forward_comment(event, raw)
        if type(event) not in self._protocol.moves:
            raise self._foreign_event(event)
        self._move(event, event, strict=False)
        return whole(raw)

    def _forward_comment(self, event: Comment, raw: bytes) -> bytes:
        if Frame.parse(raw).data is not None:
            return b""
        if not raw.startswith(b":"):
            # It stands among fields that are no event's.
            return self.comment(event.text)
        self._begun = True
        return whole(raw)

    def _forward_frame(self, frame: Frame) -> bytes:
        if frame.raw == BOM and self._begun:
            return b""
        if frame.data is not None:
            event = self._event_of(frame, frame.data)
            self._move(event, event, strict=False)
        self._begun = True
        return frame.raw

    def _event_of(self, frame: Frame, data: str) -> Event:
        """What a frame says, however badly."""
        try:
            return self._protocol.decode(loads(data), frame.event or "", frame.raw)
        except Malformed as fault:
            return fault.event
        except PayloadError:
            event = Done() if is_done(data) else Unknown(name=frame.event or "message", data=data)
            return received(event, frame.raw)

    def _foreign_event(self, event: Event) -> LocalProtocolError:
        kind = type(event).__name__
        return self._refused("foreign_event", f"{kind} is no event of {self._protocol.name}", event)

    def _refused(self, code: str, message: str, event: Event) -> LocalProtocolError:
        """The error for an event that cannot be written in any state, or not like this."""
        place = f"{event.type} while the {self._table} is {self.state.name}"
        found = Violation(
            code=code,
            message=f"{message}; {place}",
            state=self.state,
            legal=self.legal(),
            event=event,
        )
        return error_of(found, self._protocol.name, LocalProtocolError)


def comment_frame(text: str) -> bytes:
    """A comment and a blank line.

    Raises:
        LocalProtocolError: The text does not fit on a line, or has no UTF-8 form.
    """
    return encode_frame(comment=" " + _line("comment", text))


def _line(name: str, text: Any) -> str:
    """A text for one line of an event stream; line ends are looked for where it is written."""
    # The standard allows NUL; readers that are written in C end the text there.
    if not isinstance(text, str) or "\0" in text:
        raise LocalProtocolError(f"{name} must be text without NUL", code="bad_field")
    return text


def whole(raw: bytes) -> bytes:
    """The bytes of a frame, with the blank line that ends it."""
    end = raw[len(raw.rstrip(b"\r\n")) :]
    return raw + _MISSING.get(end, b"")


_DONE = f"data: {DONE_MARK}\n\n".encode()
_MISSING = {b"": b"\n\n", b"\n": b"\n", b"\r": b"\r", b"\r\n": b"\r\n"}
