"""Transition tables written down a second time by hand, and what every table has to be.

Both roles will share the interpreter and the tables, and would agree on their mistakes; so the law also
stands in the tests, in another shape: a line a symbol, a column a state.

A cell of a grid is written like this::

    X        legal, to state X        ~X code  accepted and reported        .X  accepted in silence
    -code    dropped                  !code    refused by that name         !   an illegal event
"""

from __future__ import annotations

import enum

from sse_machines._machine import Drop, Follow, Refuse, Table, To


def parse(grid: str) -> dict[tuple[str, str], str]:
    head, *lines = ([cell.strip() for cell in line.split("|")] for line in grid.strip().splitlines())
    return {
        (state, cells[0]): cell
        for cells in lines
        for state, cell in zip(head[1:], cells[1:], strict=True)
    }


def written(table: Table, state: enum.Enum, symbol: str) -> str:
    """A cell of the real table in the grid's notation."""
    if symbol in table.legal[state]:
        return table.legal[state][symbol].name
    match table.tolerated.get(state, {}).get(symbol):
        case To(state=to, code=code):
            return f"~{to.name} {code}"
        case Follow(state=to):
            return f".{to.name}"
        case Drop(code=code):
            return f"-{code}"
        case Refuse(code=code):
            return f"!{code}"
        case _:
            return "!"


def check_every_cell(table: Table, grid: str) -> None:
    """A table says what its grid says, and knows no other symbols and no other states."""
    actual = {
        (state.name, symbol): written(table, state, symbol)
        for state in table.states
        for symbol in table.symbols
    }
    assert actual == parse(grid)


def check_the_shape(table: Table) -> None:
    """A cell is legal or tolerated, deviations have reasons, and every state can be reached."""
    for state, cells in table.tolerated.items():
        assert not cells.keys() & table.legal[state].keys(), state
    cells_of_all = [cell for row in table.tolerated.values() for cell in row.values()]
    assert cells_of_all
    assert all(cell.reason for cell in cells_of_all)


def reachable(table: Table, start: enum.Enum) -> set[enum.Enum]:
    seen = {start}
    while True:
        steps = {to for state in seen for to in table.legal[state].values()}
        steps |= {
            cell.state
            for state in seen
            for cell in table.tolerated.get(state, {}).values()
            if isinstance(cell, To | Follow)
        }
        if steps <= seen:
            return seen
        seen |= steps
