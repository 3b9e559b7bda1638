"""How a relay behaves, as values: keep-alives, stalls, what is held back, and what errors say.

Every value is checked where it is made. A configuration is shared by all relays that have it. This
module deliberately has no state and no clock.
"""

from __future__ import annotations

from typing import Any, Literal

import attrs
from typing_extensions import Self

from ._errors import LocalProtocolError
from ._receiver import Limits
from ._relay_events import STALL_KINDS, StallKind
from ._sender import INTERRUPTED, comment_frame

_KIB = 1024
_HOPBASE_STALL = (90, 150)


def _seconds(_owner: object, attribute: Any, value: Any) -> None:
    # A NaN compares as false with everything.
    if not 0 < value < float("inf"):
        raise LocalProtocolError(f"{attribute.name} must be a time above 0", code="bad_config")


def _size(_owner: object, attribute: Any, value: Any) -> None:
    if value < 1:
        raise LocalProtocolError(f"{attribute.name} must be at least 1", code="bad_config")


def _one_of(*choices: str) -> Any:
    def check(_owner: object, attribute: Any, value: Any) -> None:
        if value not in choices:
            raise LocalProtocolError(f"{attribute.name} must be one of {choices}", code="bad_config")

    return check


_optional_seconds: Any = attrs.validators.optional(_seconds)


@attrs.frozen(kw_only=True)
class KeepAlive:
    """What is sent while the client would otherwise see nothing.

    Attributes:
        interval: After how many seconds without a byte sent downstream.
        text: What the comment says.
        form: ``"comment"`` is ``: text`` and a blank line; ``"comment1"`` has no blank line; ``"auto"``
            is the first one, and the second one once an ``id:`` field has passed, since a blank line
            makes some clients forget it; ``"ping"`` is the event of Messages, and of no other protocol.
        before_output: Whether they are sent while output is held back, too. The status of the answer is
            committed then, but nothing of its contents: another attempt stays possible.

    Raises:
        LocalProtocolError: The interval is no time, the form is unknown, or the text has no place on a
            line (``"bad_config"`` or ``"bad_field"``).
    """

    interval: float = attrs.field(default=10.0, validator=_seconds)
    text: str = "keep-alive"
    form: Literal["comment", "comment1", "auto", "ping"] = attrs.field(
        default="auto", validator=_one_of("comment", "comment1", "auto", "ping")
    )
    before_output: bool = False
    frame: bytes = attrs.field(init=False, repr=False)
    """The comment and a blank line."""
    line: bytes = attrs.field(init=False, repr=False)
    """The comment without a blank line."""

    def __attrs_post_init__(self) -> None:
        frame = comment_frame(self.text)
        object.__setattr__(self, "frame", frame)
        object.__setattr__(self, "line", frame[:-1])


@attrs.frozen(kw_only=True)
class Stall:
    """When an upstream counts as stuck. Each is a number of seconds, or None for never.

    Comments, pings, chunks with an empty delta and drips of bytes are bytes, but no progress. Models can
    think for 40 s between the name of a tool and its first argument: for tools 90 s is short.

    Attributes:
        first_byte: From the start of an attempt to its first byte.
        first_output: From the start of an attempt to the first output: text, reasoning, a call.
        idle_bytes: Without a byte.
        idle_progress: Without progress.
        total: From the start of the relay to the end, all attempts together.
        on_expiry: ``"fail"`` ends the attempt; ``"report"`` only says so, and the caller decides.
    """

    first_byte: float | None = attrs.field(default=None, validator=_optional_seconds)
    first_output: float | None = attrs.field(default=None, validator=_optional_seconds)
    idle_bytes: float | None = attrs.field(default=None, validator=_optional_seconds)
    idle_progress: float | None = attrs.field(default=120.0, validator=_optional_seconds)
    total: float | None = attrs.field(default=None, validator=_optional_seconds)
    on_expiry: Literal["fail", "report"] = attrs.field(
        default="fail", validator=_one_of("fail", "report")
    )
    limits: tuple[tuple[StallKind, float], ...] = attrs.field(init=False, repr=False, eq=False)
    """The clocks that run, with their seconds."""

    def __attrs_post_init__(self) -> None:
        clocks = ((kind, getattr(self, kind)) for kind in STALL_KINDS)
        limits = tuple((kind, seconds) for kind, seconds in clocks if seconds is not None)
        object.__setattr__(self, "limits", limits)


@attrs.frozen(kw_only=True)
class Hold:
    """What is held back until there is output, so that an attempt that fails before can be repeated.

    Attributes:
        max_bytes: Over this, what is held is let go, as if output had come.
        max_events: The same for the number of blocks with data.
    """

    max_bytes: int = attrs.field(default=256 * _KIB, validator=_size)
    max_events: int = attrs.field(default=64, validator=_size)


@attrs.frozen(kw_only=True)
class Drain:
    """How long an upstream is read on when the client is gone, to learn what the answer costs.

    Attributes:
        max_seconds: Longest time.
        max_bytes: Most bytes.
    """

    max_seconds: float = attrs.field(default=30.0, validator=_seconds)
    max_bytes: int = attrs.field(default=16 * _KIB * _KIB, validator=_size)


@attrs.frozen(kw_only=True)
class ErrorTexts:
    """What the client is told. Texts of exceptions and of an upstream are never copied.

    Attributes:
        interrupted: The upstream ended or failed in the middle of the answer.
        stalled: The upstream stalled.
        too_large: An event was larger than the limit.
        not_an_event_stream: The upstream sent something else.
    """

    interrupted: str = INTERRUPTED
    stalled: str = "The model stopped responding, please retry"
    too_large: str = "An event of the response stream is too large"
    not_an_event_stream: str = "The model did not answer with an event stream"

    def __attrs_post_init__(self) -> None:
        try:
            "".join(attrs.astuple(self)).encode()
        except UnicodeEncodeError:
            raise LocalProtocolError("a text has no UTF-8 form", code="bad_config") from None


@attrs.frozen(kw_only=True)
class RelayConfig:
    """How a relay behaves.

    Attributes:
        keepalive: What is sent during silence; None for nothing.
        stall: When an upstream is stuck; None for never.
        hold: What is held back until there is output; None for nothing: all goes out at once, and a
            failed attempt cannot be repeated.
        drain: How an upstream is read on when the client is gone; None for not at all.
        limits: What a relay is ready to keep.
        errors: What errors say.
        repair_tail: Whether an answer that lacks nothing but its last event or mark gets that.
        done_after_error: Whether ``data: [DONE]`` follows an error in Chat Completions.
        suppress_usage: Whether chunks of Chat Completions that have usage and no choices are kept back,
            for clients that did not ask for usage. Usage in other chunks stays: contents are not edited.
        comments: Whether the upstream's comments are forwarded, or dropped.
        eof_tail: What becomes of a last block without its blank line: ``"discard"`` as the standard
            says, or ``"accept"`` where it is complete and ends the answer.
        observe: ``"full"`` reads and judges every event. ``"light"`` reads only what can end the answer,
            carry usage or be the first output; the rest is known by its event name, or by its likeness
            to the chunk before it. It counts no characters and reports no violations.
        accumulate: Whether the answer so far is kept, too, in `Relay.accumulator`; not with ``"light"``.
        max_unsent: Over how many unsent bytes the upstream is not to be read.
    """

    keepalive: KeepAlive | None = attrs.field(factory=KeepAlive)
    stall: Stall | None = attrs.field(factory=Stall)
    hold: Hold | None = None
    drain: Drain | None = None
    limits: Limits = attrs.field(factory=Limits)
    errors: ErrorTexts = attrs.field(factory=ErrorTexts)
    repair_tail: bool = True
    done_after_error: bool = False
    suppress_usage: bool = False
    comments: Literal["forward", "drop"] = attrs.field(
        default="forward", validator=_one_of("forward", "drop")
    )
    eof_tail: Literal["discard", "accept"] = attrs.field(
        default="discard", validator=_one_of("discard", "accept")
    )
    observe: Literal["full", "light"] = attrs.field(default="full", validator=_one_of("full", "light"))
    accumulate: bool = False
    max_unsent: int = attrs.field(default=64 * _KIB, validator=_size)

    def __attrs_post_init__(self) -> None:
        if self.accumulate and self.observe == "light":
            raise LocalProtocolError("who does not read everything has no answer", code="bad_config")

    @classmethod
    def hopbase(cls, *, stall: float = 120.0) -> Self:
        """The gateway that this library was made for.

        ``: hopbase-keepalive`` after 10 s without a byte, also before output; a failed attempt can be
        repeated until there is output; nothing for ``stall`` seconds is a stall; a stream that breaks
        off ends with "Response stream interrupted, please retry".

        Args:
            stall: Seconds, 90 to 150, depending on the model.

        Raises:
            LocalProtocolError: ``stall`` is outside of that (``"bad_config"``).
        """
        shortest, longest = _HOPBASE_STALL
        if not shortest <= stall <= longest:
            message = f"stall must be between {shortest} and {longest} seconds"
            raise LocalProtocolError(message, code="bad_config")
        return cls(
            keepalive=KeepAlive(interval=10.0, text="hopbase-keepalive", before_output=True),
            stall=Stall(idle_progress=stall),
            hold=Hold(),
            errors=ErrorTexts(
                stalled=INTERRUPTED, too_large=INTERRUPTED, not_an_event_stream=INTERRUPTED
            ),
        )
