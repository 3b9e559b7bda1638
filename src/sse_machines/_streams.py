"""What both ends of a stream share: a protocol, and where an answer in it stands.

`Receiver` and `Sender` ask the same tables the same questions and differ only in whom they blame. This
module deliberately blames nobody; it knows no clock and no protocol by name.
"""

from __future__ import annotations

import copy
import enum
from collections.abc import Iterator
from typing import Any, Generic

from typing_extensions import Self

from ._detect import recognise
from ._errors import LocalProtocolError
from ._machine import Machine
from ._protocol import DONE_MARK, E_co, Event, Outcome, Protocol, Unknown, Violation
from ._verdicts import wire_names


class Stream(Generic[E_co]):
    """One answer in one protocol, seen from either end.

    A stream is a plain value: it can be pickled and copied between any two calls, and the copy goes on
    identically.
    """

    __slots__ = ("_machine", "_memory", "_protocol")

    _memory: Any

    def __init__(self, protocol: Protocol[E_co], starting_after: int | None) -> None:
        self._become(protocol)
        if starting_after is None:
            return
        if protocol.resume is None:
            raise LocalProtocolError(f"a stream of {protocol.name} cannot go on in the middle")
        protocol.resume(self._machine, self._memory, starting_after)

    @property
    def protocol(self) -> Protocol[E_co]:
        """The protocol of the stream, as far as it is known."""
        return self._protocol

    @property
    def state(self) -> enum.Enum:
        """Where the stream stands after the events so far."""
        return self._machine.state(self._table)

    @property
    def outcome(self) -> Outcome:
        """How the answer ended; `Outcome.OPEN` until its own end or an error."""
        return self._protocol.outcomes.get(self.state, Outcome.OPEN)

    @property
    def finished(self) -> bool:
        """Whether the outcome is settled."""
        return self.outcome is not Outcome.OPEN

    def legal(self) -> tuple[str, ...]:
        """The wire names of the events that would be legal next."""
        return wire_names(self._machine.legal(self._table))

    def __copy__(self) -> Self:
        return copy.deepcopy(self)

    def __getstate__(self) -> dict[str, Any]:
        state = {name: getattr(self, name) for name in self._slots() if name != "_machine"}
        return {**state, "_machine": self._machine.dump()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        dump = state.pop("_machine")
        for name, value in state.items():
            setattr(self, name, value)
        self._machine = Machine(self._protocol.tables)
        self._machine.load(dump)

    @classmethod
    def _slots(cls) -> Iterator[str]:
        for base in cls.__mro__:
            yield from getattr(base, "__slots__", ())

    @property
    def _at_its_beginning(self) -> bool:
        return self.state is self._protocol.tables[0].first.state

    @property
    def _table(self) -> str:
        return self._protocol.tables[0].name

    def stand_with(self, other: Stream[E_co]) -> None:
        """Stand where another end of the same answer stands. The two move together from here on."""
        self._machine, self._memory = other._machine, other._memory

    def _become(self, protocol: Protocol[E_co]) -> None:
        """Stand at the beginning of an answer in a protocol."""
        self._protocol = protocol
        self._machine = Machine(protocol.tables)
        self._memory = protocol.memory()

    def _remember(self, event: Event) -> None:
        remember = self._protocol.remember.get(type(event))
        if remember is not None:
            remember(event, self._machine, self._memory)

    def _skip(self, event: Event) -> None:
        """Keep an event out of the state."""
        if self._protocol.skipped is not None:
            self._protocol.skipped(event, self._memory)

    def _learn(self, event: Event) -> None:
        """Expect an event to come again that was legal and moved nothing."""
        learn = self._protocol.learn.get(type(event))
        if learn is not None and self._machine.settled is not None:
            learn(event, self._machine, self._memory)

    def _foreign(self, event: Event) -> Violation | None:
        """What is wrong with an event that begins a stream, and that only another protocol has."""
        if type(event) is not Unknown or not self._at_its_beginning:
            return None
        other = recognise(event.payload, event.name)
        if other is None or other is self._protocol:
            return None
        return Violation(
            code="wrong_protocol",
            message=f"this looks like {other.name}, not {self._protocol.name}",
            state=self.state,
            legal=self.legal(),
            event=event,
        )


def is_done(data: str) -> bool:
    """Whether data is the end mark: all of it, not only its beginning."""
    return data.strip(" \t\r\n") == DONE_MARK
