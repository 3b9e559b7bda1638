"""What the makers of events have in common: a part of an answer that is written piece by piece.

Nothing here writes or judges; the events go through a `Sender` like all others.
"""

from __future__ import annotations

import abc
from collections.abc import Iterable, Iterator
from typing import Generic

from ._protocol import E


class Part(abc.ABC, Generic[E]):
    """A text, a reasoning or a tool call: where it begins, its pieces, and where it ends.

    ::

        for event in part.begin(): ...
        async for piece in model:
            for event in part.add(piece): ...
        for event in part.end(): ...

    or, where all pieces are at hand, ``for event in part.whole(pieces): ...``.
    """

    @abc.abstractmethod
    def begin(self) -> Iterator[E]:
        """The events that come before the first piece."""

    @abc.abstractmethod
    def add(self, piece: str) -> Iterator[E]:
        """The event of one piece: of text, or of the JSON text of a tool's arguments."""

    @abc.abstractmethod
    def end(self) -> Iterator[E]:
        """The events that come after the last piece, with the whole text where the protocol wants it."""

    def whole(self, pieces: str | Iterable[str]) -> Iterator[E]:
        """All events of the part. Pieces are taken one by one, as the events are asked for."""
        yield from self.begin()
        for piece in (pieces,) if isinstance(pieces, str) else pieces:
            yield from self.add(piece)
        yield from self.end()
