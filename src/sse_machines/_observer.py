"""What a relay reads an upstream with: a receiver that is given frames, and goes on whatever they say.

A gateway forwards what it does not understand, so what a receiver could not read on from is here one
more violation, of an event that is kept out of the state. Only what is no event stream at all, and a
block that is too large, are errors. This module deliberately knows no clock and forwards nothing.
"""

from __future__ import annotations

from typing import Any, NoReturn, cast

from ._errors import AnswerTooLarge, FrameTooLarge, NotAnEventStream, RemoteProtocolError
from ._frames import Frame, PlainBlock
from ._protocol import EOF, Event, Violation
from ._receiver import Receiver

Block = PlainBlock | Frame

_QUOTE, _BACKSLASH = b'"\\'


class Observer(Receiver[Any, Any]):
    """Reads frames one by one."""

    __slots__ = ("_passed", "full", "reader")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.reader = self._reader
        """What makes blocks of the bytes."""
        self.full = False
        """Whether the answer outgrew the limit; what is kept of it grows no more."""
        # The last block that was passed over, while nothing was made of it.
        self._passed: Block | None = None

    @property
    def started(self) -> bool:
        """Whether anything moved the stream from where it begins."""
        return not self._at_its_beginning

    @property
    def complete(self) -> bool:
        """Whether the tables let the input end here: the whole answer has come."""
        findings = self._machine.judge(((self._table, None, EOF),))
        return not any(finding.fatal for finding in findings)

    @property
    def memory(self) -> Any:
        """What the stream remembers beside its tables."""
        return self._memory

    @property
    def tail(self) -> bytes:
        """The bytes of the block that is not complete."""
        return self.reader.tail

    def feed(self, data: bytes | bytearray | memoryview) -> list[Block]:
        """Store bytes, and take some of the frames that are complete now, as `blocks` does."""
        self.reader.feed(data)
        return self.blocks()

    def blocks(self) -> list[Block]:
        """Take some frames, the last one first; none if more input is needed.

        Raises:
            FrameTooLarge: A block is larger than the limit.
            NotAnEventStream: It is that large because it is something else.
        """
        try:
            return self.reader.take_blocks()
        except FrameTooLarge:
            self._refuse_a_body(self.reader.tail)
            raise

    def take(self, block: Block) -> Event | list[Event] | None:
        """Read a frame, and move.

        Returns:
            The event that it is, None if it is none, or all that there is to say of it, in order.

        Raises:
            NotAnEventStream: The body is something else.
        """
        if self._passed is not None:
            self.catch_up()
        event = self._one(block)
        if not self._queue:
            return event
        found: list[Any] = [event]
        while self._queue:
            found.append(self._one(None))
        return found

    def take_run(self, blocks: list[Block], unparsed: list[bytes]) -> list[Event]:
        """Read blocks, the last one first, as long as each only goes on with the one before it.

        Args:
            blocks: The blocks; those that are read are taken off.
            unparsed: Where their bytes go.

        Returns:
            What `take` would make of them, for a fraction of the price.
        """
        run: list[Event] = []
        memory, repeat = self._memory, self._protocol.repeat
        model = memory.model
        due = model.is_due(model.name, self._machine.settled)
        if not due or self._accumulator is not None:
            return run
        expected = model.name.encode()
        block: Any
        try:
            for block in reversed(blocks):
                if type(block) is not tuple:
                    break
                raw, name, data, _ = block
                if name != expected:
                    break
                event = repeat(data.decode(), raw, memory)
                if event is None:
                    break
                run.append(event)
                unparsed.append(raw)
        except UnicodeDecodeError:
            # Bytes that are no UTF-8 take the long way, like everything that is not simple.
            pass
        if run:
            del blocks[-len(run) :]
        return run

    def pass_over_named(self, names: frozenset[bytes], blocks: list[Block], raw: list[bytes]) -> int:
        """Leave blocks unread, the last one first, whose event names tell enough.

        Args:
            names: Those names.
            blocks: The blocks; those that are passed over are taken off.
            raw: Where their bytes go.

        Returns:
            How many those are.
        """
        passed: Any = None
        taken = 0
        for block in reversed(blocks):
            if type(block) is not tuple:
                # One that was cut is passed over as well: what is read must not depend on cuts.
                if not _is_named(block, names):
                    break
            # An event without data is none.
            elif block[1] not in names or not block[2]:
                break
            raw.append(block[0])
            passed = block
            taken += 1
        if taken:
            del blocks[-taken:]
            # Its number counts, should one be needed.
            self._passed = passed
        return taken

    def pass_over_alike(self, blocks: list[Block], raw: list[bytes]) -> int:
        """Leave blocks unread, the last one first, that only go on with the one before them.

        Args:
            blocks: The blocks; those that are passed over are taken off.
            raw: Where their bytes go.

        Returns:
            How many those are.
        """
        around = self._memory.model.around(self._machine.settled)
        begin, end = around or (b"", b"")
        # Nothing is shorter by this than it was where nothing is expected.
        size = len(begin) + len(end) if around else -1
        before = len(raw)
        block: Any
        for block in reversed(blocks):
            if type(block) is not tuple:
                break
            unparsed, _, data, _ = block
            piece = data.removeprefix(begin).removesuffix(end)
            # A piece without a quote, and with no backslash before the quote behind it, is one string.
            alike = (
                len(data) - len(piece) == size
                and piece
                and _QUOTE not in piece
                and piece[-1] != _BACKSLASH
            )
            # An empty piece is no sign that the model goes on, so somebody has to look.
            if not alike and (b'""' in data or not self._repeats(block)):
                break
            raw.append(unparsed)
        taken = len(raw) - before
        if taken:
            del blocks[-taken:]
        return taken

    def end(self, *, clean: bool) -> None:
        """Note the end of the input.

        Raises:
            NotAnEventStream: What came, up to here, is something else.
        """
        self.receive_eof(clean=clean)
        self.catch_up()
        tail = self.reader.unfinished or Frame(b"")
        if self._is_no_event_stream(tail):
            self._fail(self._no_event_stream(self._head or tail.raw))

    def event_at_the_end(self) -> Event | None:
        """The event that the last block would be if its blank line were there; None if it lacks more."""
        return self._event_of_tail(self.reader.unfinished or Frame(b""))

    def catch_up(self) -> None:
        """Count what was passed over, before an event is made that comes behind it."""
        passed, self._passed = self._passed, None
        if passed is None or self._protocol.skipped is None:
            return
        for event in map(about, events_of(type(self)(self._protocol).take(passed))):
            self._skip(cast("Event", event))

    def _repeats(self, block: PlainBlock) -> bool:
        """Whether a block only goes on with the one before it."""
        try:
            name, text = block[1].decode(), block[2].decode()
        except UnicodeDecodeError:
            return False
        return self._protocol.repeats(text, name, self._machine, self._memory)

    def _one(self, block: Block | None) -> Event | None:
        """Take a frame, or what is left of the one before."""
        try:
            if block is None:
                event = self._take_queued(self._queue.pop())
            elif isinstance(block, Frame):
                event = self._take_frame(block)
            else:
                event = self._take_block(block)
            if self._accumulator is not None and event is not None:
                self._accumulate(event)
        except NotAnEventStream:
            raise
        except RemoteProtocolError as error:
            return _dropped(error)
        return event

    def _accumulate(self, event: Event) -> None:
        if self.full:
            return
        try:
            self._accumulator.apply(event)
        except AnswerTooLarge:
            self.full = True

    def _fail(self, error: RemoteProtocolError) -> NoReturn:
        if type(error) is RemoteProtocolError:
            raise error
        super()._fail(error)


def events_of(found: Event | list[Event] | None) -> list[Event]:
    """What `Observer.take` has found, as a list."""
    return found if isinstance(found, list) else [] if found is None else [found]


def about(event: Event) -> Event | None:
    """The event that stands in a violation, if it is one; else the event itself."""
    return event.event if isinstance(event, Violation) else event


def _is_named(block: Any, names: frozenset[bytes]) -> bool:
    """Whether a frame is an event of one of some names, and nothing else."""
    plain = block.id is None and block.retry is None and not block.comments
    return plain and bool(block.data) and (block.event or "").encode() in names


def _dropped(error: RemoteProtocolError) -> Violation:
    """What an error is for who goes on: its event is kept out of the state."""
    return Violation(
        code=error.code,
        message=error.message,
        state=error.state,
        key=error.key,
        legal=error.legal,
        event=error.event,
        dropped=True,
    )
