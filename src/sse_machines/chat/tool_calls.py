"""Which tool call a piece of a tool call belongs to.

Chat Completions name calls by ``index``, and half of the servers get that wrong. Five rules, in this
order, put every piece that was ever recorded where it belongs:

1. an id that is known: that call
2. an id that is new: a new call, even where its index is taken
3. an index that is known: the call that had it last
4. an unknown index, or none, and a name: a new call
5. neither index nor id: the call that was spoken of last

Empty ids and names count as absent. What no rule covers opens a call too, so that nothing is lost.
This module deliberately judges nothing: it gives each piece the number of its call, counted in the order
in which calls begin, and a symbol, and the grammar's table says what the symbol means.
"""

from __future__ import annotations

from typing import Any

import attrs

from .._protocol import MAX_INDEX

PIECE = "tool_calls"
PIECE_NO_INDEX = "tool_calls[no index]"
PIECE_BAD_INDEX = "tool_calls[bad index]"
NEW = "tool_calls[new]"
NEW_NO_INDEX = "tool_calls[new, no index]"
NEW_BAD_INDEX = "tool_calls[new, bad index]"
NEW_REUSED = "tool_calls[new, index in use]"
NEW_NAMELESS = "tool_calls[new, neither id nor name]"
NEW_NO_ID = "tool_calls[new, no id]"
NEW_GAP = "tool_calls[new, index gap]"
TOO_MANY = "tool_calls[too many]"

_MAX_ID = 256
"""Most characters of an id that tell it from others: ids are kept for as long as the stream runs."""


@attrs.define
class Calls:
    """The tool calls of one choice.

    Attributes:
        by_id: Id → number of the call.
        by_index: Index on the wire → number of the call that had it last.
        count: How many calls have begun.
        latest: The number of the call that was spoken of last.
        next_index: The index that the next new call should have.
    """

    by_id: dict[str, int] = attrs.field(factory=dict)
    by_index: dict[int, int] = attrs.field(factory=dict)
    count: int = 0
    latest: int | None = None
    next_index: int = 0


class Correlation:
    """Puts the pieces in one chunk to calls, without changing what is known before `commit`.

    Args:
        calls: What is known.
    """

    __slots__ = ("_calls", "_news")

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._news = Calls(count=calls.count, latest=calls.latest, next_index=calls.next_index)

    @property
    def latest(self) -> int | None:
        """The call that was spoken of last."""
        return self._news.latest

    def place(self, piece: dict[str, Any]) -> tuple[int, str]:
        """Find the call that a piece belongs to.

        Returns:
            The call's number, and what kind of piece it is.
        """
        id_ = (piece.get("id") or "")[:_MAX_ID]
        index, symbol = _index_of(piece)
        call = self._known(id_, index, piece)
        if call is None:
            return self._open(id_, index, symbol, piece)
        self._note(call, id_, index)
        return call, symbol

    def commit(self) -> Calls:
        """Make what was found known, and give back all that is."""
        self._calls.by_id.update(self._news.by_id)
        self._calls.by_index.update(self._news.by_index)
        self._calls.count = self._news.count
        self._calls.latest = self._news.latest
        self._calls.next_index = self._news.next_index
        return self._calls

    def _known(self, id_: str, index: int | None, piece: dict[str, Any]) -> int | None:
        """The call that a piece continues, by the rules; None if it opens a new one."""
        if id_:
            return _look_up(id_, self._news.by_id, self._calls.by_id)
        if index is not None:
            return _look_up(index, self._news.by_index, self._calls.by_index)
        return None if _has_name(piece) else self._news.latest

    def _open(self, id_: str, index: int | None, symbol: str, piece: dict[str, Any]) -> tuple[int, str]:
        call = self._news.count
        if call > MAX_INDEX:
            return call, TOO_MANY
        symbol = self._new_symbol(id_, index, symbol, piece)
        self._news.count += 1
        if index is not None:
            self._news.next_index = max(self._news.next_index, index + 1)
        self._note(call, id_, index)
        return call, symbol

    def _new_symbol(self, id_: str, index: int | None, symbol: str, piece: dict[str, Any]) -> str:
        if index is None:
            return NEW_BAD_INDEX if symbol == PIECE_BAD_INDEX else NEW_NO_INDEX
        if _look_up(index, self._news.by_index, self._calls.by_index) is not None:
            return NEW_REUSED
        if not id_:
            return NEW_NO_ID if _has_name(piece) else NEW_NAMELESS
        return NEW if index == self._news.next_index else NEW_GAP

    def _note(self, call: int, id_: str, index: int | None) -> None:
        self._news.latest = call
        if id_:
            self._news.by_id[id_] = call
        if index is not None:
            self._news.by_index[index] = call


def _look_up(key: Any, news: dict[Any, int], known: dict[Any, int]) -> int | None:
    call = news.get(key)
    return known.get(key) if call is None else call


def _index_of(piece: dict[str, Any]) -> tuple[int | None, str]:
    """The index of a piece, None where it has none that can be used."""
    index = piece.get("index")
    if index is None:
        return None, PIECE_NO_INDEX
    if type(index) is int and 0 <= index <= MAX_INDEX:
        return index, PIECE
    return None, PIECE_BAD_INDEX


def _has_name(piece: dict[str, Any]) -> bool:
    return any((piece.get(member) or {}).get("name") for member in ("function", "custom"))
