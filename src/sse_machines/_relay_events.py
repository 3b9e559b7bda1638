"""What a relay tells its owner besides the events that pass through it.

These stand in ``Output.events`` between the events of the upstream, in the order in which things
happened. This module deliberately decides nothing.
"""

from __future__ import annotations

import enum
from typing import ClassVar, Literal, get_args

import attrs

from ._errors import RemoteProtocolError
from ._meter import Usage
from ._protocol import ErrorInfo, Event

StallKind = Literal["first_byte", "first_output", "idle_bytes", "idle_progress", "total"]
STALL_KINDS: tuple[StallKind, ...] = get_args(StallKind)
Cause = Literal["eof", "transport", "stalled", "limit", "not_sse", "caller", "upstream"]


class RelayOutcome(str, enum.Enum):
    """How the answer ended for the client; `OPEN` while it has not."""

    OPEN = "open"
    COMPLETED = "completed"
    COMPLETED_REPAIRED = "completed_repaired"
    """The upstream ended the input where only the last event or mark was missing; the relay added it."""
    INCOMPLETE = "incomplete"
    """The model was stopped early, and said so."""
    FAILED_UPSTREAM = "failed_upstream"
    """The upstream sent an error in the stream."""
    FAILED_GATEWAY = "failed_gateway"
    """The owner of the relay ended it with an error."""
    TRUNCATED = "truncated"
    """The input ended first."""
    ABORTED = "aborted"
    """The connection to the upstream failed."""
    STALLED = "stalled"
    LIMIT = "limit"
    CANCELLED = "cancelled"
    """The client has gone, or the response was cancelled."""
    NOT_SSE = "not_sse"

    def __str__(self) -> str:
        return self.value


@attrs.frozen(kw_only=True)
class RelayEvent(Event):
    """Base of what a relay tells about itself."""


@attrs.frozen(kw_only=True)
class OutputStarted(RelayEvent):
    """The first output has come; from here on no other attempt is possible."""

    type: ClassVar[str] = "output_started"


@attrs.frozen(kw_only=True)
class UsageChanged(RelayEvent):
    """The upstream has told token counts."""

    type: ClassVar[str] = "usage_changed"
    usage: Usage


@attrs.frozen(kw_only=True)
class KeepAliveQueued(RelayEvent):
    """A keep-alive is among the bytes to write."""

    type: ClassVar[str] = "keep_alive_queued"


@attrs.frozen(kw_only=True)
class Stalled(RelayEvent):
    """A clock has run out.

    Attributes:
        kind: Which one.
        since: The time from which it ran.
    """

    type: ClassVar[str] = "stalled"
    kind: StallKind
    since: float


@attrs.frozen(kw_only=True)
class TailDropped(RelayEvent):
    """The input ended inside of an event, of which nothing was sent.

    Attributes:
        size: How many bytes.
        looks_terminal: Whether it lacked nothing but its blank line and would have ended the answer.
    """

    type: ClassVar[str] = "tail_dropped"
    size: int
    looks_terminal: bool


@attrs.frozen(kw_only=True)
class Synthesized(RelayEvent):
    """The relay has written something that the upstream did not.

    Attributes:
        kind: ``"error"``, or ``"terminal"`` for the event or mark that an answer lacked.
        cause: Why.
        exception: What the body was, if it was no event stream, or which limit it crossed.
    """

    type: ClassVar[str] = "synthesized"
    kind: Literal["error", "terminal"]
    cause: Cause
    exception: RemoteProtocolError | None = None


@attrs.frozen(kw_only=True)
class Diagnostic(RelayEvent):
    """Bytes of the upstream were not forwarded, or something else happened that is no event.

    Attributes:
        code: ``"bom_stripped"``, ``"stray_done"``, ``"after_terminal"``, ``"double_terminal"``,
            ``"usage_suppressed"``, ``"comment_dropped"``, ``"hold_exceeded"``, ``"answer_too_large"``.
        size: How many bytes it is about.
    """

    type: ClassVar[str] = "diagnostic"
    code: str
    size: int = 0


@attrs.frozen(kw_only=True)
class FailedBeforeOutput(RelayEvent):
    """The attempt has failed, and the client knows nothing of it: `Relay.new_attempt` or `Relay.fail`.

    Attributes:
        cause: Why.
        error: What went wrong: what the upstream said if it said something, else the configured text.
        retryable: Whether another attempt can be expected to go better.
        exception: What the body was, if it was no event stream, or which limit it crossed.
        detail: What the caller said of a transport error.
    """

    type: ClassVar[str] = "failed_before_output"
    cause: Cause
    error: ErrorInfo
    retryable: bool
    exception: RemoteProtocolError | None = None
    detail: str | None = None


@attrs.frozen(kw_only=True)
class Terminal(RelayEvent):
    """The upstream has ended the answer by itself.

    Attributes:
        kind: The wire name of the event that did.
    """

    type: ClassVar[str] = "terminal"
    kind: str


@attrs.frozen(kw_only=True)
class Closed(RelayEvent):
    """The relay is over; always the last event.

    Attributes:
        outcome: How.
    """

    type: ClassVar[str] = "closed"
    outcome: RelayOutcome


@attrs.frozen(kw_only=True)
class Counters:
    """How much has passed.

    Attributes:
        events: Blocks with data that came from upstream, in the attempt at hand.
        bytes_in: Bytes that came from upstream, in all attempts.
        bytes_out: Bytes to write downstream, keep-alives and errors included.
        text: Characters of text and refusals; None where they are not counted.
        reasoning: Characters of reasoning; None where they are not counted.
        arguments: Characters of what tools were called with; None where they are not counted.
        first_output_at: When the first output came; None while it has not.
        last_progress_at: When the upstream made progress last; None while it has not.
    """

    events: int
    bytes_in: int
    bytes_out: int
    text: int | None
    reasoning: int | None
    arguments: int | None
    first_output_at: float | None
    last_progress_at: float | None
