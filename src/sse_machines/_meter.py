"""What a gateway wants to know of an answer without keeping it: how much there is, and what it cost.

A meter is given the events of a receiver. It tells of each whether the model got on with its work,
counts characters, and remembers the token counts that were told. This module deliberately knows no
protocol by name, no clock, and keeps nothing of the answer itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal

import attrs

from ._errors import LocalProtocolError
from ._payload import PayloadError, dumps
from ._protocol import Event, JSONObject, Unknown, WireEvent

LIFE, PROGRESS, OUTPUT, TERMINAL = range(4)
"""What an event shows, each more than the one before: that the server is alive; that the model goes on;
that something of the answer has come; that the answer is over."""


@attrs.frozen(kw_only=True)
class Identity:
    """What an answer is called that has to be begun by a gateway, since its upstream never did.

    Attributes:
        id: The id of the answer.
        model: The model that should have answered.
        created: When the answer began, in Unix seconds.

    Raises:
        LocalProtocolError: It cannot be written (``"bad_config"``).
    """

    id: str
    model: str
    created: float

    def __attrs_post_init__(self) -> None:
        try:
            dumps(attrs.asdict(self)).encode()
        except (PayloadError, UnicodeEncodeError) as error:
            raise LocalProtocolError(f"no identity: {error}", code="bad_config") from error


@attrs.frozen(kw_only=True)
class Usage:
    """Token counts in the same terms for all protocols. None is what was not told, and never 0.

    Attributes:
        status: ``"final"`` if they count the whole answer; ``"partial"`` if they are what was told last
            before it was cut; ``"none"`` if nothing was told.
        input: Tokens of the request, those in a cache included.
        cached_input: How many of them were read from a cache.
        cache_write: How many of them were written to a cache.
        output: Tokens of the answer, reasoning included.
        reasoning: How many of them were reasoning.
        total: Both together.
        raw: The counts in the wire's own words.
    """

    status: Literal["final", "partial", "none"]
    input: int | None = None
    cached_input: int | None = None
    cache_write: int | None = None
    output: int | None = None
    reasoning: int | None = None
    total: int | None = None
    raw: JSONObject | None = None


class Meter:
    """Reads off an answer what it is long and what it cost.

    Attributes:
        text: Characters of text and refusals so far.
        reasoning: Characters of reasoning so far.
        arguments: Characters of what tools were called with so far.
        usage: The token counts as last told, member by member; None if none were.
        usage_final: Whether they count the whole answer, as far as can be known here.
    """

    __slots__ = ("arguments", "reasoning", "text", "usage", "usage_final")

    handlers: ClassVar[Mapping[type, Callable[[Any, Any], int]]] = {}
    """Event class → (meter, event) → what the event shows. Other classes show progress."""
    terminals: ClassVar[frozenset[type]] = frozenset()
    """The classes of events after which nothing of an answer comes, in whatever state they come."""
    terminal: ClassVar[Event | None] = None
    """The event that a gateway may add where the answer lacks nothing else; None if there is none."""
    outlives_failure: ClassVar[bool] = False
    """Whether it may do so even if the connection failed, since nothing else can be missing."""
    unread: ClassVar[frozenset[bytes]] = frozenset()
    """Event names that tell enough of an event for those who do not look into it."""
    ping: ClassVar[WireEvent | None] = None
    """The protocol's own sign of life, for a gateway to send; None if it has none."""
    error_codes: ClassVar[frozenset[str] | None] = None
    """The codes that an error may have; None if any."""

    places: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Member of `Usage` → where it stands in the wire's own counts."""
    retryable: ClassVar[Mapping[str | int, bool]] = {}
    """What is known of the vendor's types and codes of errors."""

    def __init__(self) -> None:
        self.text = 0
        self.reasoning = 0
        self.arguments = 0
        self.usage: JSONObject | None = None
        self.usage_final = False

    def take(self, event: Event) -> int:
        """Take the next event, and say what it shows."""
        handler = self.handlers.get(type(event))
        return PROGRESS if handler is None else handler(self, event)

    def take_run(self, run: Sequence[Any], memory: Any) -> bool:  # noqa: ARG002
        """Take events that only go on with the one before them, each with another piece of text.

        Args:
            run: The events, at least one.
            memory: The memory of the stream, whose model they are like.

        Returns:
            Whether any of them shows progress.
        """
        return max([self.take(event) for event in run]) > LIFE

    def see_dropped(self, event: Event) -> None:
        """Take an event that was kept out of the state, but not from the client."""

    def pass_over(self) -> None:
        """Note that something of the answer came that was not looked into."""

    @property
    def closed(self) -> bool:
        """Whether the server has closed all that it opened, so that an end may be added."""
        return True

    def is_only_usage(self, event: Event) -> bool:  # noqa: ARG002
        """Whether an event tells token counts and nothing else, and may be kept from a client."""
        return False

    def reading(self) -> Usage:
        """The token counts in common terms."""
        if self.usage is None:
            return Usage(status="none")
        status: Literal["final", "partial"] = "final" if self.usage_final else "partial"
        return Usage(status=status, raw=dict(self.usage), **self.counts(self.usage))

    @classmethod
    def counts(cls, usage: JSONObject) -> dict[str, int | None]:
        """The members of `Usage` in the wire's own counts."""
        return {name: count_of(usage, *path) for name, path in cls.places.items()}

    def recall(self, memory: Any) -> None:
        """Put into the memory of a stream what an event needs that says the answer broke off."""

    @staticmethod
    def opening(identity: Identity) -> Event | None:  # noqa: ARG004
        """The event that has to come before the one that says so; None where none has."""
        return None

    def _take_usage(self, usage: Any) -> bool:
        """Replace the counts that are told, and say whether any are."""
        if type(usage) is not dict or not usage:
            return False
        told = {name: count for name, count in usage.items() if count is not None}
        self.usage = {**(self.usage or {}), **told}
        return True


def take_unknown(_meter: Any, event: Unknown) -> int:
    """What an event shows that nobody knows. What is no JSON says nothing of the model."""
    return LIFE if event.payload is None else PROGRESS


def take_life(_meter: Any, _event: Event) -> int:
    """What an event shows that is sent because nothing else is."""
    return LIFE


def take_terminal(_meter: Any, _event: Event) -> int:
    """What an event shows that ends the answer and counts nothing."""
    return TERMINAL


def count_of(usage: JSONObject, *path: str) -> int | None:
    """A count in nested objects, None if it is not there or is no count."""
    value: Any = usage
    for name in path:
        value = value.get(name) if type(value) is dict else None
    return value if type(value) is int and value >= 0 else None


def sum_of(*counts: int | None) -> int | None:
    """The sum of counts; None if the first one is missing, the others may be."""
    return None if counts[0] is None else sum(count or 0 for count in counts)
