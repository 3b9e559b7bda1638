"""What can become of a relayed answer, as data: phases, and the ways in which an answer ends.

This module deliberately decides nothing; `Relay` looks things up here.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import NamedTuple

from ._protocol import Outcome
from ._relay_events import Cause, RelayOutcome


class Phase(enum.Enum):
    """What a relay is doing."""

    HOLDING = enum.auto()
    """It holds back what comes until there is output; another attempt is possible."""
    FORWARDING = enum.auto()
    """What comes goes out."""
    FAILED = enum.auto()
    """The attempt failed while it held everything back: `Relay.new_attempt` or `Relay.fail`."""
    DRAINING = enum.auto()
    """The client is gone; the upstream is read to learn what the answer costs."""
    CLOSED = enum.auto()
    """It is over."""


HOLDING, FORWARDING, FAILED, DRAINING, CLOSED = Phase

PHASES: Mapping[Phase, Mapping[str, Phase]] = {
    HOLDING: {
        "output": FORWARDING,
        "failure": FAILED,
        "new attempt": HOLDING,
        "client gone": CLOSED,
        "client gone, drain": DRAINING,
        "end": CLOSED,
    },
    FORWARDING: {
        "output": FORWARDING,
        "failure": CLOSED,
        "client gone": CLOSED,
        "client gone, drain": DRAINING,
        "end": CLOSED,
    },
    FAILED: {
        "new attempt": HOLDING,
        "client gone": CLOSED,
        "client gone, drain": CLOSED,
        "end": CLOSED,
    },
    DRAINING: {"output": DRAINING, "failure": CLOSED, "end": CLOSED},
    CLOSED: {},
}
"""What can happen in each phase, and where it leads. What is not there changes nothing."""


class Break(NamedTuple):
    """What becomes of an answer that breaks off.

    Attributes:
        outcome: How it ended.
        text: Which text of `ErrorTexts` the client is told.
        retryable: Whether another attempt can be expected to go better, where the upstream did not say.
    """

    outcome: RelayOutcome
    text: str
    retryable: bool


BREAKS: Mapping[Cause, Break] = {
    "eof": Break(RelayOutcome.TRUNCATED, "interrupted", retryable=True),
    "transport": Break(RelayOutcome.ABORTED, "interrupted", retryable=True),
    "stalled": Break(RelayOutcome.STALLED, "stalled", retryable=True),
    # The same request will get the same answer.
    "limit": Break(RelayOutcome.LIMIT, "too_large", retryable=False),
    "not_sse": Break(RelayOutcome.NOT_SSE, "not_an_event_stream", retryable=True),
    "upstream": Break(RelayOutcome.FAILED_UPSTREAM, "interrupted", retryable=True),
    "caller": Break(RelayOutcome.FAILED_GATEWAY, "interrupted", retryable=True),
}
"""Why an answer can break off, and what becomes of it then."""

OUTCOMES: Mapping[Outcome, RelayOutcome] = {
    Outcome.COMPLETED: RelayOutcome.COMPLETED,
    Outcome.INCOMPLETE: RelayOutcome.INCOMPLETE,
    Outcome.FAILED: RelayOutcome.FAILED_UPSTREAM,
    Outcome.CANCELLED: RelayOutcome.CANCELLED,
}
"""How an answer ended that came to its own end."""

ANSWERS: Mapping[RelayOutcome, Outcome] = {
    RelayOutcome.COMPLETED_REPAIRED: Outcome.COMPLETED_NO_DONE,
    RelayOutcome.FAILED_GATEWAY: Outcome.FAILED,
    RelayOutcome.STALLED: Outcome.STALLED,
    RelayOutcome.LIMIT: Outcome.LIMIT,
    RelayOutcome.CANCELLED: Outcome.CANCELLED,
    RelayOutcome.NOT_SSE: Outcome.NOT_SSE,
}
"""What an accumulator is told of an end that no event told it; all others are cuts."""
