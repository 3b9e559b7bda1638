"""What can go wrong, as exceptions whose facts are attributes.

::

    ProtocolError                 catch this one; it is never raised itself
    ├── LocalProtocolError        our caller's mistake; nothing has changed, go on
    └── RemoteProtocolError       the peer's mistake; the machine that raised stays dead
        ├── StreamTruncated       the input ended before the answer did
        ├── FrameTooLarge         one block of the event stream grew past its limit
        ├── AnswerTooLarge        all that was accumulated of an answer grew past its limit
        └── NotAnEventStream      JSON, HTML or something binary came instead
            └── UnexpectedResponse  and the head of the HTTP answer says so

This module deliberately knows no protocol, no state and no event class: it only carries what the
layers above put in.
"""

from __future__ import annotations

import enum
from typing import Any, TypedDict

from typing_extensions import Unpack

SAMPLE_LENGTH = 200
"""Most characters of a peer's bytes that any message or sample repeats."""


class Facts(TypedDict, total=False):
    """What every error of this library can say besides its message."""

    code: str
    protocol: str | None
    state: enum.Enum | None
    event: Any
    key: Any
    legal: tuple[str, ...]
    outcome: str | None
    accumulator: Any


class ProtocolError(Exception):
    """Base of all errors that this library raises about a stream.

    Attributes:
        message: One sentence for a person.
        code: A stable name for a program, such as ``"illegal_event"``.
        protocol: The protocol's name (``"messages"``), or None from the event-stream layer.
        state: The state the machine was in, a member of the protocol's own enum, or None.
        event: The event that was refused, or None where there is none (the end of the input).
        key: Which block, choice or item it is about, or None.
        legal: The wire names that would have been legal instead.
        outcome: How the stream has ended by this, or None where there is no stream.
        accumulator: The answer up to here, where the receiver accumulates, else None.

    Every instance can be pickled and copied.
    """

    default_code = "protocol_error"

    def __init__(
        self,
        message: str = "",
        *,
        code: str = "",
        protocol: str | None = None,
        state: enum.Enum | None = None,
        event: Any = None,
        key: Any = None,
        legal: tuple[str, ...] = (),
        outcome: str | None = None,
        accumulator: Any = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.protocol = protocol
        self.state = state
        self.event = event
        self.key = key
        self.legal = legal
        self.outcome = outcome
        self.accumulator = accumulator


class LocalProtocolError(ProtocolError):
    """The caller asked for something that is not allowed.

    Raised by the writing side, and by misuse such as feeding bytes after the end. Nothing has been
    written and no state has moved: the same object can be used for the right call next.
    """

    default_code = "misuse"


class RemoteProtocolError(ProtocolError):
    """The peer broke the protocol.

    Everything that stood before the fault has been delivered. The machine that raised it is dead:
    asking it again raises the same error again.
    """


class StreamTruncated(RemoteProtocolError):
    """The input ended before the protocol's own end.

    Attributes:
        tail_length: How many bytes of an unfinished block were thrown away.
    """

    default_code = "truncated"

    def __init__(self, message: str = "", *, tail_length: int = 0, **facts: Unpack[Facts]) -> None:
        super().__init__(message, **facts)
        self.tail_length = tail_length


class FrameTooLarge(RemoteProtocolError):
    """One block of the event stream needed more memory than allowed.

    Attributes:
        limit: The limit that was crossed, in bytes.
    """

    default_code = "frame_too_large"

    def __init__(self, message: str = "", *, limit: int = 0, **facts: Unpack[Facts]) -> None:
        super().__init__(message, **facts)
        self.limit = limit


class AnswerTooLarge(RemoteProtocolError):
    """What was kept of an answer needed more memory than allowed.

    Attributes:
        limit: The limit that was crossed, in bytes.
    """

    default_code = "answer_too_large"

    def __init__(self, message: str = "", *, limit: int = 0, **facts: Unpack[Facts]) -> None:
        super().__init__(message, **facts)
        self.limit = limit


class NotAnEventStream(RemoteProtocolError):
    """The body is no event stream at all.

    Attributes:
        head: The first bytes of the body, at most 64 KiB.
        sample: The first characters of it, at most 200.
        body: The whole body where it was JSON and short enough to be kept, else None.
        error: The ``error`` member of that JSON body where there is one, else None.
    """

    default_code = "not_an_event_stream"

    def __init__(
        self,
        message: str = "",
        *,
        head: bytes = b"",
        sample: str = "",
        body: Any = None,
        error: Any = None,
        **facts: Unpack[Facts],
    ) -> None:
        super().__init__(message, **facts)
        self.head = head
        self.sample = sample
        self.body = body
        self.error = error


class UnexpectedResponse(NotAnEventStream):
    """An HTTP server has answered with something else than a readable event stream.

    The code is ``"http_status"``, ``"content_type"`` or ``"content_encoding"``.

    Attributes:
        status: The status code.
        headers: Names in lower case, and values, in order.
    """

    default_code = "http_status"

    def __init__(
        self,
        message: str = "",
        *,
        status: int = 0,
        headers: tuple[tuple[str, str], ...] = (),
        head: bytes = b"",
        sample: str = "",
        body: Any = None,
        error: Any = None,
        **facts: Unpack[Facts],
    ) -> None:
        super().__init__(message, head=head, sample=sample, body=body, error=error, **facts)
        self.status = status
        self.headers = headers
