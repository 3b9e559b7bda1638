"""Scripted upstreams in virtual time: what a relay does in an hour is known in a millisecond.

A script says what happens when: bytes, half events, silence, a cut, a client that leaves. The driver
makes the calls that a real one would make, at the times at which it would make them, and records what
comes out. It deliberately sleeps never and reads no clock.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable
from typing import TypeVar

import attrs

from .._protocol import ErrorInfo, Event
from .._relay import Output, Relay
from .._relay_events import FailedBeforeOutput
from .._relay_tables import Phase

V = TypeVar("V", bound=Event)


@attrs.frozen
class Step(abc.ABC):
    """Something that happens.

    Attributes:
        at: When, in seconds from the start of its attempt.
    """

    at: float

    @abc.abstractmethod
    def happen(self, relay: Relay, now: float) -> Output:
        """Tell the relay."""


@attrs.frozen
class Arrive(Step):
    """Bytes come from the upstream."""

    data: bytes

    def happen(self, relay: Relay, now: float) -> Output:
        """Tell the relay."""
        return relay.receive_data(self.data, now)


@attrs.frozen
class End(Step):
    """The upstream ends the body as a body ends."""

    def happen(self, relay: Relay, now: float) -> Output:
        """Tell the relay."""
        return relay.receive_eof(now)


@attrs.frozen
class Break(Step):
    """The connection to the upstream fails."""

    kind: str = "connection reset"

    def happen(self, relay: Relay, now: float) -> Output:
        """Tell the relay."""
        return relay.receive_error(self.kind, now)


@attrs.frozen
class Leave(Step):
    """The client is gone."""

    def happen(self, relay: Relay, now: float) -> Output:
        """Tell the relay."""
        return relay.downstream_closed(now)


@attrs.frozen
class Unsent(Step):
    """So many bytes are not written downstream yet."""

    size: int

    def happen(self, relay: Relay, now: float) -> Output:
        """Tell the relay."""
        return relay.downstream_ready(self.size, now)


@attrs.frozen
class Fail(Step):
    """The owner of the relay ends the answer."""

    error: ErrorInfo | None = None

    def happen(self, relay: Relay, now: float) -> Output:
        """Tell the relay."""
        return relay.fail(self.error, now)


@attrs.frozen
class Write:
    """Bytes that went downstream in one call.

    Attributes:
        at: When.
        data: Which.
    """

    at: float
    data: bytes


@attrs.define
class Recording:
    """What a relay did.

    Attributes:
        relay: The relay, as it stands at the end.
        writes: What it wrote, and when.
        events: What it told, and when.
        left_at: When it was done with each upstream, in order.
        ended_at: When it had finished; None if it had not.
        now: When the recording ends.
    """

    relay: Relay
    writes: list[Write] = attrs.field(factory=list)
    events: list[tuple[float, Event]] = attrs.field(factory=list)
    left_at: list[float] = attrs.field(factory=list)
    ended_at: float | None = None
    now: float = 0.0

    @property
    def data(self) -> bytes:
        """All that went downstream."""
        return b"".join(write.data for write in self.writes)

    def told(self, kind: type[V]) -> list[V]:
        """The events of one class."""
        return [event for _, event in self.events if isinstance(event, kind)]

    def when(self, kind: type[Event]) -> list[float]:
        """When events of one class were told."""
        return [at for at, event in self.events if isinstance(event, kind)]


def drive(
    relay: Relay,
    *attempts: Iterable[Step],
    until: float = 3600.0,
    start: float = 0.0,
    between: Callable[[Relay], Relay] | None = None,
) -> Recording:
    """Run a relay against scripted upstreams.

    Args:
        relay: A relay that was made at ``start``.
        *attempts: What each upstream does. If one fails before output, the next one is tried; if there
            is none, the relay has to fail. What an upstream would do after the relay has left it does
            not happen. One that does nothing more hangs.
        until: When to stop, should the relay not finish.
        start: When it begins.
        between: What to put in the place of the relay before every call, such as a copy of it.

    Returns:
        What it did.

    Raises:
        AssertionError: The relay broke a promise of its own: a deadline in the past, or anything after
            its end.
    """
    driver = _Driver(relay, start, until, between)
    for attempt in attempts or ((),):
        if driver.run(attempt):
            break
    else:
        driver.call(Fail(driver.now).happen)
    driver.recording.now = driver.now
    return driver.recording


class _Driver:
    def __init__(
        self, relay: Relay, start: float, until: float, between: Callable[[Relay], Relay] | None
    ) -> None:
        self.recording = Recording(relay)
        self.now = start
        self._until = until
        self._between = between
        self._deadline: float | None = None
        self.call(lambda relay, now: relay.handle_timeout(now))

    def run(self, steps: Iterable[Step]) -> bool:
        """Run one attempt; True if there can be no other one."""
        if self.recording.relay.phase is Phase.FAILED:
            self.call(lambda relay, now: relay.new_attempt(now))
        begin = self.now
        for step in steps:
            self._wait_until(begin + step.at)
            if self._is_over():
                break
            # What waits to be read is read before a clock counts as run out.
            self.call(step.happen)
        self._wait_until(self._until)
        return self.recording.relay.phase is not Phase.FAILED

    def call(self, call: Callable[[Relay, float], Output]) -> None:
        """Make one call, and record what comes of it."""
        recording = self.recording
        if self._between is not None:
            recording.relay = self._between(recording.relay)
        output = call(recording.relay, self.now)
        finished = recording.ended_at is not None
        if finished and (output.data or output.events or not output.finished):
            raise AssertionError(f"something came after the end: {output}")
        if output.deadline is not None and output.deadline <= self.now:
            raise AssertionError(f"the deadline {output.deadline} is not after {self.now}")
        if output.data:
            recording.writes.append(Write(self.now, output.data))
        recording.events += [(self.now, event) for event in output.events]
        failed = any(isinstance(event, FailedBeforeOutput) for event in output.events)
        if failed or (output.finished and not finished):
            recording.left_at.append(self.now)
        if output.finished and not finished:
            recording.ended_at = self.now
        self._deadline = output.deadline

    def _is_over(self) -> bool:
        return self.recording.relay.phase in (Phase.FAILED, Phase.CLOSED)

    def _wait_until(self, time: float) -> None:
        """Let the deadlines pass that are before a time; a relay without any waits for nothing."""
        time = min(time, self._until)
        while self._deadline is not None and self._deadline < time and not self._is_over():
            self.now = max(self.now, self._deadline)
            self.call(lambda relay, now: relay.handle_timeout(now))
        if not self._is_over() and (self._deadline is not None or time < self._until):
            self.now = max(self.now, time)
