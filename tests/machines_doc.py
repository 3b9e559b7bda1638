"""The printed law: ``docs/machines.md``, made from the tables.

``python -m tests.machines_doc`` writes it; a test holds it equal.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sse_machines import CHAT, MESSAGES, RESPONSES
from sse_machines._machine import Cell, Drop, Follow, Refuse, Table, To
from sse_machines._protocol import FAULTS, Protocol

FILE = Path(__file__).parents[1] / "docs" / "machines.md"
TITLES = {"chat": "Chat Completions", "responses": "Responses", "messages": "Anthropic Messages"}
_FEW = 4
"""Most symbols that are all listed."""

HEAD = """# The machines

This file is made from the tables that judge every stream (`python -m tests.machines_doc`).

A diagram shows the published protocol and what its first party is seen to send. A table behind it shows
what a lenient receiver survives, with the code of the `Violation` that it reports right before the
event, and what it refuses by a name of its own. Whatever is in neither is refused as `illegal_event`. A
strict receiver raises the first code instead. Unknown events, members, blocks, deltas and items pass.

* **accept**: the event counts, and the state moves on (to the state named)
* **keep out**: the event stands only in its `Violation`, and the state stays
* **end**: `RemoteProtocolError` or `StreamTruncated`, in both modes

A bracket behind a name is the guard that holds.

"""


def render() -> str:
    """The whole file."""
    parts = [HEAD, *map(_protocol, (CHAT, RESPONSES, MESSAGES)), "\n".join(_faults()) + "\n"]
    return "".join(parts)


def _protocol(protocol: Protocol[Any]) -> str:
    lines = [f"## {TITLES[protocol.name]}", ""]
    for table in protocol.tables:
        lines += [f"### {protocol.name}: {table.name}", "", *_diagram(table), *_deviations(table)]
    return "\n".join(lines) + "\n"


def _diagram(table: Table) -> Iterator[str]:
    if any(table.legal.values()):
        yield from ("```mermaid", table.mermaid().rstrip(), "```", "")


def _deviations(table: Table) -> Iterator[str]:
    yield "| code | when | why | lenient |"
    yield "|---|---|---|---|"
    groups: dict[tuple[str, str, str], list[tuple[enum.Enum, str, Cell]]] = {}
    for state, row in table.tolerated.items():
        for symbol, cell in row.items():
            if not isinstance(cell, Follow):
                group = (cell.code, cell.reason, type(cell).__name__)
                groups.setdefault(group, []).append((state, symbol, cell))
    for (code, reason, _), cells in groups.items():
        yield f"| `{code}` | {_when(cells)} | {reason} | {_what(cells)} |"
    yield ""


def _when(cells: list[tuple[enum.Enum, str, Cell]]) -> str:
    symbols = list(dict.fromkeys(symbol for _, symbol, _ in cells))
    states = list(dict.fromkeys(state.name for state, _, _ in cells))
    return f"{_some([f'`{symbol}`' for symbol in symbols])} in {_some(states)}"


def _some(words: list[str]) -> str:
    if len(words) <= _FEW:
        return ", ".join(words)
    return f"{', '.join(words[: _FEW - 1])} and {len(words) - _FEW + 1} others"


def _what(cells: list[tuple[enum.Enum, str, Cell]]) -> str:
    match cells[0][2]:
        case Drop():
            return "keep out"
        case Refuse():
            return "end"
        case _:
            states = dict.fromkeys(cell.state.name for _, _, cell in cells if isinstance(cell, To))
            return f"accept ({_some(list(states))})"


def _faults() -> Iterator[str]:
    yield from ("## Deviations of form", "", "| code | what is wrong |", "|---|---|")
    for code, meaning in FAULTS.items():
        yield f"| `{code}` | {meaning} |"


if __name__ == "__main__":
    FILE.write_text(render(), encoding="utf-8")
