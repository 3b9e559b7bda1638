"""Event streams for WSGI servers: for Flask, for Django, and for an application of one's own.

What a relay puts out (`sse_machines.adapters.sync.relayed`) is a body as it is; events become one here.
What makes a body of them stands here for `sse_machines.adapters.asgi`, too. This module deliberately
knows no framework: a body is an iterable with a ``close``, and every one of them takes that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .._frames import FrameReader
from .._protocol import Event, Protocol
from .._sender import INTERRUPTED, Sender
from ._reading import closer

__all__ = ["HEADERS", "EventStream"]

HEADERS = [
    ("content-type", "text/event-stream; charset=utf-8"),
    ("cache-control", "no-cache, no-transform"),
    ("x-accel-buffering", "no"),
]
"""The headers of an event stream that nothing between server and client is to hold back or change."""


class Writing:
    """Makes the chunks of a body, and knows whether the answer in it is whole.

    Args:
        protocol: The protocol of the answer; None for a body whose bytes are nobody's business here.
        interrupted: What an answer that breaks off tells the client.
    """

    def __init__(self, protocol: Protocol[Any, Any] | None, interrupted: str) -> None:
        self._sender: Sender[Any] | None = None if protocol is None else Sender(protocol)
        self._reader = FrameReader()
        self._interrupted = interrupted

    def write(self, item: Any) -> bytes:
        """Give the bytes of an item; none while a frame is not complete, so that none is cut."""
        sender, reader = self._sender, self._reader
        if sender is None:
            data: bytes = item
            return data
        if isinstance(item, Event):
            return sender.send(item)
        reader.feed(item)
        return b"".join(map(sender.forward, iter(reader.next_frame, None)))

    def end(self) -> list[bytes]:
        """Give what tells the client that the answer breaks off, if it does."""
        sender = self._sender
        return [] if sender is None or sender.finished else [sender.interrupt(self._interrupted)]


class EventStream:
    """The body of a response that streams an answer, as an iterable of bytes with a ``close``.

    ::

        Response(EventStream(events(), MESSAGES), headers=HEADERS)                     # Flask
        StreamingHttpResponse(EventStream(events(), MESSAGES), headers=dict(HEADERS))  # Django

    An answer that breaks off does not look complete: if the iterable raises an exception, or ends before
    the answer does, an error in the protocol's own form ends the body. The exception is raised behind
    it, so that the server logs it. When the client is gone, the server closes the body.

    Args:
        content: An iterable of bytes, such as a relay's; with a protocol, also of events that a `Sender`
            writes, and of frames in bytes between them, such as comments. What has a ``close`` is
            closed with the body.
        protocol: The protocol of the events. None: the bytes are passed on as they are, and nothing
            is added.
        interrupted: What an answer that breaks off tells the client.
    """

    def __init__(
        self,
        content: Iterable[bytes | Event],
        protocol: Protocol[Any, Any] | None = None,
        *,
        interrupted: str = INTERRUPTED,
    ) -> None:
        self._content = content
        self._writing = Writing(protocol, interrupted)

    def __iter__(self) -> Iterator[bytes]:
        writing = self._writing
        try:
            yield from filter(None, map(writing.write, self._content))
        except Exception:
            yield from writing.end()
            raise
        yield from writing.end()

    def close(self) -> None:
        """Close the iterable, whether or not it has come to its end."""
        close = closer(self._content)
        if close is not None:
            close()
