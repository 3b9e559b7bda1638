"""The one interpreter of all transition tables.

A `Table` is data: which symbol is legal in which state, and what happens to the rest. A `Machine`
keeps, per table and key, the row it is in, judges the moves of an event against the rows, and moves.
This module deliberately knows no protocol, no event class and no role: sender and receiver are judged
by the same tables, and whoever asked decides which exception to make of a finding.

Theory of operation:

* An event is a tuple of *moves*, each the name of a table, a key in it, and a symbol. Most streams
  have one table for the stream itself (its only key is None) and one for the parts of the answer
  (blocks, items, tool calls), whose keys are indexes off the wire.
* All moves are judged before any is applied, so a refused event changes nothing. Each is judged as if
  those before it had been made.
* ``legal`` cells are the published protocol and what its first party is seen to send. ``tolerated``
  cells are everything else that has a decision of its own: `To` accepts and reports, `Drop` reports
  and keeps the event out of the state, `Follow` accepts in silence what another table or an earlier
  report already covers, `Refuse` names an error. What is in neither is an illegal event.
* Counters that need arithmetic are no tables. A protocol's grammar turns them into symbols first
  (``content_block_start[gap]``), and the tables decide what such a symbol means.
* A key that reached the ``closed`` state of its table is forgotten. Where keys are handed out in rising
  order, one number per table remembers that it was there.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable, Iterable, KeysView, Mapping
from typing import Any, ClassVar

import attrs

Move = tuple[str, Any, str]
"""Table name, key, symbol."""

Moves = Callable[[Any, "Machine", Any], tuple[Move, ...]]
"""(event, machine, memory) → the moves that the event asks for."""

Dump = tuple[dict[str, dict[Hashable, enum.Enum]], dict[str, int], dict[str, enum.Enum]]

ILLEGAL = "illegal_event"


def asks(symbol: str) -> Moves:
    """The moves of an event that asks the stream's own table for the same symbol every time."""
    moves = (("stream", None, symbol),)
    return lambda _event, _machine, _memory: moves


@attrs.frozen
class To:
    """Accept a deviation and report it."""

    state: enum.Enum
    code: str
    reason: str


@attrs.frozen
class Follow:
    """Accept in silence: what is wrong here is reported by another cell."""

    state: enum.Enum
    reason: str
    code: ClassVar[str] = ""


@attrs.frozen
class Drop:
    """Report a deviation and keep the event out of the state."""

    code: str
    reason: str


@attrs.frozen
class Refuse:
    """Name the error of an event that cannot be read on from."""

    code: str
    reason: str


Cell = To | Follow | Drop | Refuse


@attrs.frozen
class Finding:
    """What a machine has to say about a move that is not legal.

    Attributes:
        table: The table's name.
        key: The key in it; None in a table of the whole stream.
        state: The state the key is in.
        symbol: What was asked for.
        cell: The decision.
        legal: The symbols that are legal in that state.
    """

    table: str
    key: Any
    state: enum.Enum
    symbol: str
    cell: Cell
    legal: tuple[str, ...]

    @property
    def fatal(self) -> bool:
        """Whether nobody can go on after this."""
        return isinstance(self.cell, Refuse)

    @property
    def dropped(self) -> bool:
        """Whether the event has to be kept out of the state."""
        return isinstance(self.cell, Drop)


class Row(dict[str, "Row"]):
    """One state, compiled: the row that each legal symbol leads to.

    Attributes:
        state: The state.
        tolerated: The decisions about other symbols.
        survived: The rows that those of them lead to which are accepted.
    """

    __slots__ = ("state", "survived", "tolerated")

    def __init__(self, state: enum.Enum, tolerated: Mapping[str, Cell]) -> None:
        super().__init__()
        self.state = state
        self.tolerated = tolerated
        self.survived: dict[str, Row] = {}


class Table:
    """The law of one kind of thing, compiled into linked rows.

    Args:
        name: How moves call the table.
        legal: State → symbol → next state. The first state is where every key begins.
        tolerated: State → symbol → cell.
        closed: The state in which a key is forgotten.
        rising: Whether keys are numbers that begin in rising order, so that a forgotten one is known.
    """

    def __init__(
        self,
        name: str,
        legal: Mapping[enum.Enum, Mapping[str, enum.Enum]],
        tolerated: Mapping[enum.Enum, Mapping[str, Cell]],
        *,
        closed: enum.Enum | None = None,
        rising: bool = False,
    ) -> None:
        self.name = name
        self.rising = rising
        self.legal = legal
        self.tolerated = tolerated
        self.rows = {state: Row(state, tolerated.get(state, {})) for state in legal}
        for state, row in self.rows.items():
            row.update((symbol, self.rows[to]) for symbol, to in legal[state].items())
            row.survived.update(
                (symbol, self.rows[cell.state])
                for symbol, cell in row.tolerated.items()
                if isinstance(cell, To | Follow)
            )
        self.first = self.rows[next(iter(legal))]
        self.closed = None if closed is None else self.rows[closed]

    def after(self, state: enum.Enum, symbol: str) -> enum.Enum:
        """The state that a symbol leads to, or ``state`` itself where it is not accepted."""
        row = self.rows[state]
        return row.get(symbol, row.survived.get(symbol, row)).state

    @property
    def states(self) -> tuple[enum.Enum, ...]:
        """All states, the first one first."""
        return tuple(self.rows)

    @property
    def symbols(self) -> tuple[str, ...]:
        """All symbols that any cell speaks of, in the order they first appear."""
        cells = [*self.legal.values(), *self.tolerated.values()]
        return tuple(dict.fromkeys(symbol for row in cells for symbol in row))

    def as_rows(self) -> list[tuple[str, str, str, str, str, str]]:
        """The whole table as text: state, symbol, kind of cell, next state, code, reason."""
        rows: list[tuple[str, str, str, str, str, str]] = []
        for state, legal in self.legal.items():
            rows += [(state.name, symbol, "legal", to.name, "", "") for symbol, to in legal.items()]
            for symbol, cell in self.tolerated.get(state, {}).items():
                kind = type(cell).__name__.lower()
                to_name = cell.state.name if isinstance(cell, To | Follow) else ""
                rows.append((state.name, symbol, kind, to_name, cell.code, cell.reason))
        return rows

    def mermaid(self) -> str:
        """The legal moves as a Mermaid state diagram."""
        lines = ["stateDiagram-v2", f"    [*] --> {self.first.state.name}"]
        for state, cells in self.legal.items():
            arrows: dict[str, list[str]] = {}
            for symbol, to in cells.items():
                arrows.setdefault(to.name, []).append(symbol)
            lines += [
                f"    {state.name} --> {to_name} : {', '.join(symbols)}"
                for to_name, symbols in arrows.items()
            ]
        return "\n".join(lines) + "\n"


class Machine:
    """Where one stream stands in a set of tables.

    Args:
        tables: The law. Shared by all machines and never changed.
    """

    __slots__ = ("_firsts", "_next", "_rows", "_tables", "settled")

    def __init__(self, tables: Iterable[Table]) -> None:
        self._tables = {table.name: table for table in tables}
        # Filled as they are needed: most streams use few of the tables.
        self._rows: dict[str, dict[Hashable, Row]] = {}
        self._next: dict[str, int] = {}
        self._firsts: dict[str, Row] = {}
        self.settled: tuple[Move, ...] | None = None
        """The moves that were made last, if they were legal and led nowhere.

        Nearly all of a stream is runs of deltas that leave every row where it is. Who asks for the very
        same tuple again need not have it judged again: nothing has moved since.
        """

    def state(self, table: str, key: Any = None) -> enum.Enum:
        """The state that a key is in."""
        return self._row(table, key).state

    def legal(self, table: str, key: Any = None) -> tuple[str, ...]:
        """The symbols that are legal for a key now."""
        return tuple(self._row(table, key))

    def open_keys(self, table: str) -> KeysView[Any]:
        """The keys of a table that have begun and not closed, in the order they began; a live view."""
        return self._rows.get(table, _NO_ROWS).keys()

    def next_key(self, table: str) -> int:
        """One more than the highest key that was ever begun."""
        return self._next.get(table, 0)

    def begin(self, table: str, state: enum.Enum) -> None:
        """Let every key of a table that has not begun stand in another state than the first one."""
        self._firsts[table] = self._tables[table].rows[state]
        self.settled = None

    def step(self, moves: tuple[Move, ...]) -> list[Finding]:
        """Judge an event and, if every move is legal, make its moves.

        Returns:
            Nothing if the state has moved; else what `judge` found, and the state has not moved.
        """
        if moves == self.settled:
            return []
        findings = self.judge(moves)
        if not findings:
            self.apply(moves)
        return findings

    def judge(self, moves: tuple[Move, ...]) -> list[Finding]:
        """Say what is not legal about an event, in the order of its moves; moves nothing.

        Moves behind one that is to be dropped are not looked at: the event gets no further.
        """
        findings: list[Finding] = []
        ahead: dict[tuple[str, Any], Row] = {}
        for table, key, symbol in moves:
            # A row without legal symbols is an empty dict, and false.
            row = ahead.get((table, key))
            row = self._row(table, key) if row is None else row
            to = row.get(symbol)
            if to is None:
                cell = row.tolerated.get(symbol, _UNKNOWN)
                findings.append(Finding(table, key, row.state, symbol, cell, tuple(row)))
                if isinstance(cell, Drop):
                    break
                to = row.survived.get(symbol, row)
            ahead[table, key] = to
        return findings

    def apply(self, moves: tuple[Move, ...]) -> None:
        """Make the moves of an event that was judged acceptable."""
        self.settled = moves
        for table, key, symbol in moves:
            row = self._row(table, key)
            to = row[symbol] if symbol in row else row.survived[symbol]
            if to is not row or symbol not in row:
                self._put(table, key, to)
                self.settled = None

    def dump(self) -> Dump:
        """Where the stream stands, without the law: what a copy needs besides the same tables."""
        states = {
            name: {key: row.state for key, row in rows.items()} for name, rows in self._rows.items()
        }
        firsts = {name: row.state for name, row in self._firsts.items()}
        return states, dict(self._next), firsts

    def load(self, dump: Dump) -> None:
        """Stand where a machine with the same tables stood."""
        states, self._next, firsts = dump
        self.settled = None
        for name, state in firsts.items():
            self.begin(name, state)
        for name, keys in states.items():
            rows = self._tables[name].rows
            self._rows[name] = {key: rows[state] for key, state in keys.items()}

    def _row(self, table: str, key: Any) -> Row:
        row = self._rows.get(table, _NO_ROWS).get(key)
        if row is not None:
            return row
        law = self._tables[table]
        if law.rising and law.closed is not None and key < self.next_key(table):
            return law.closed
        return self._firsts.get(table, law.first)

    def _put(self, table: str, key: Any, row: Row) -> None:
        law = self._tables[table]
        rows = self._rows.setdefault(table, {})
        if law.rising:
            self._next[table] = max(self.next_key(table), key + 1)
        if row is law.closed:
            rows.pop(key, None)
        else:
            rows[key] = row


_NO_ROWS: dict[Hashable, Row] = {}
_UNKNOWN = Refuse(ILLEGAL, "no table has a decision for this")
