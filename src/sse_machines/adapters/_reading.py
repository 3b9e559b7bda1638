"""What becomes of a `Receiver` while some source is read: the part of it that is the same everywhere.

This module deliberately does no I/O: the adapters read, close and wait; here is when to do which.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, Generic, TypeAlias

from .._protocol import A_co, E_co, Protocol
from .._receiver import Receiver

Chunk: TypeAlias = "bytes | bytearray | memoryview | Exception | None"
"""What a source gives: bytes, the error that it failed with, or None for its end."""
Given: TypeAlias = Protocol[E_co, A_co] | Receiver[E_co, A_co]
"""The protocol of an answer, or a receiver of the caller's own making."""
SIZE = 64 * 1024
"""Most bytes that are read at once, where an adapter decides that."""


class Reading(Generic[E_co, A_co]):
    """A receiver, and what is known of its source.

    Args:
        protocol: The protocol of the answer, or a receiver of the caller's own making.

    Attributes:
        receiver: What judges the events.
        cause: What the source failed with; None while it has not.
    """

    def __init__(self, protocol: Given[E_co, A_co]) -> None:
        self.receiver = protocol if isinstance(protocol, Receiver) else Receiver(protocol)
        self._ended = False
        self._clean = True
        self._told = False
        self.cause: Exception | None = None

    @property
    def wants_data(self) -> bool:
        """Whether the source is to be read: not behind the answer's end, nor behind its own."""
        return not self._ended and not self.receiver.finished

    def feed(self, chunk: Chunk) -> None:
        """Take what the source gave."""
        if isinstance(chunk, Exception):
            self._ended, self._clean, self.cause = True, False, chunk
        elif chunk is None:
            self._ended = True
        else:
            self.receiver.receive_data(chunk)

    def end(self) -> bool:
        """Tell the receiver, once, that nothing more comes; False if it was told before."""
        if self._told:
            return False
        self._told = True
        self.receiver.receive_eof(clean=self._clean)
        return True


def pieces(source: Any) -> Iterator[bytes]:
    """What a source gives that does not have to be awaited, each piece as soon as it is there."""
    for name in ("recv", "read1"):
        if hasattr(source, name):
            # Many that have it iterate over lines.
            return iter(functools.partial(getattr(source, name), SIZE), b"")
    return iter(source)


def closer(source: Any) -> Any:
    """What closes a source: its ``aclose`` or ``close``; None where it has neither."""
    return getattr(source, "aclose", None) or getattr(source, "close", None)
