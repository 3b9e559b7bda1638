"""What to do next with a `Relay`: the part of driving one that is the same everywhere.

This module deliberately does no I/O and reads no clock: the adapters wait, read, write and close.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypedDict

from .._protocol import ErrorInfo, Event
from .._relay import Output, Relay
from .._relay_events import FailedBeforeOutput
from ._reading import Chunk

Retry = Callable[[FailedBeforeOutput], "bool | ErrorInfo"]
"""Decides about an attempt that failed before output: True for another one, False for an error, or what
that error is to say."""
Observe = Callable[[Event], object]
"""Is told everything that a relay tells."""


class How(TypedDict, total=False):
    """How a relay is driven.

    Attributes:
        retry: What to do about an attempt that failed before output. None: an error.
        observe: Is told every event of ``Output.events``.
    """

    retry: Retry | None
    observe: Observe | None


class Driving:
    """A relay, and what its last output asks for.

    Attributes:
        data: What is to be written next.
        deadline: Until when to wait for the upstream; None: for ever.
        over: Whether nothing will come any more.
        close_upstream: Whether the upstream is of no use any more.
    """

    def __init__(
        self,
        source: object,
        machine: Relay,
        now: float,
        *,
        retry: Retry | None = None,
        observe: Observe | None = None,
    ) -> None:
        if retry is not None and not callable(source):
            raise TypeError("only a function that opens a source can be asked for another attempt")
        self._machine = machine
        self._retry = retry
        self._observe = observe
        self._failure: FailedBeforeOutput | None = None
        self.data = b""
        self._note(machine.handle_timeout(now))

    def feed(self, chunk: Chunk, now: float) -> None:
        """Take what the source gave."""
        machine = self._machine
        if chunk is None:
            self._note(machine.receive_eof(now))
        elif isinstance(chunk, Exception):
            self._note(machine.receive_error(type(chunk).__name__, now, str(chunk)))
        else:
            self._note(machine.receive_data(chunk, now))

    def timeout(self, now: float) -> None:
        """Note that the deadline has passed, and nothing came."""
        self._note(self._machine.handle_timeout(now))

    def take(self, now: float) -> bytes:
        """Take what is to be written. Until `written`, the upstream cannot be blamed for silence."""
        data, self.data = self.data, b""
        self._note(self._machine.downstream_ready(sys.maxsize, now))
        return data

    def written(self, now: float) -> None:
        """Note that what was taken is written."""
        self._note(self._machine.downstream_ready(0, now))

    def gone(self, now: float) -> None:
        """Note that the client is gone."""
        self.data = b""
        self._note(self._machine.downstream_closed(now))

    def abandon(self, now: float) -> None:
        """Note that nobody drives the relay on: no client, and no upstream either."""
        self.gone(now)
        self._note(self._machine.receive_error("abandoned", now))

    def settle(self, now: float) -> bool:
        """Decide about an attempt that has failed; whether there is to be another one."""
        failure, self._failure = self._failure, None
        answer = self._retry(failure) if self._retry is not None and failure is not None else False
        if answer is True:
            self._note(self._machine.new_attempt(now))
            return True
        self._note(self._machine.fail(answer or None, now))
        return False

    def _note(self, output: Output) -> None:
        data, events, self.deadline, self.close_upstream, self.over = output
        self.data += data
        if self._observe is not None:
            for event in events:
                self._observe(event)
        if self.close_upstream and not self.over:
            self._failure = next((e for e in events if isinstance(e, FailedBeforeOutput)), self._failure)
