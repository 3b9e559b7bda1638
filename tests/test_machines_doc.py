"""The printed law is the law, and no code is left out of it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import sse_machines
from sse_machines import CHAT, MESSAGES, RESPONSES
from sse_machines._protocol import FAULTS
from tests import machines_doc

PACKAGE = Path(sse_machines.__file__).parent
TEXT = machines_doc.render()


def test_the_file_is_up_to_date() -> None:
    # Written by: python -m tests.machines_doc
    assert machines_doc.FILE.read_text(encoding="utf-8") == TEXT


def test_every_code_of_the_tables_is_printed() -> None:
    tables = [table for protocol in (CHAT, RESPONSES, MESSAGES) for table in protocol.tables]
    codes = {row[4] for table in tables for row in table.as_rows()} - {""}
    assert codes <= set(re.findall(r"^\| `(\w+)` \|", TEXT, re.MULTILINE))
    assert len(codes) > 60


def test_every_diagram_is_printed() -> None:
    for protocol in (CHAT, RESPONSES, MESSAGES):
        for table, diagram in zip(protocol.tables, protocol.mermaid(), strict=True):
            assert (diagram in TEXT) == any(table.legal.values())


def literals() -> set[str]:
    """All texts in the package, outside of the list of faults itself."""
    words: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "FAULTS":
                continue
            constants = [inner.value for inner in ast.walk(node) if isinstance(inner, ast.Constant)]
            words |= {value for value in constants if isinstance(value, str)}
    return words


def raised() -> set[str]:
    """The codes that are given to `Malformed` as they stand."""
    codes: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Malformed":
                codes |= {str(arg.value) for arg in node.args[:1] if isinstance(arg, ast.Constant)}
    return codes


def test_every_fault_is_used_and_every_code_that_is_raised_is_a_fault() -> None:
    assert set(FAULTS) <= literals()
    assert raised() > {"malformed_event", "missing_type"}
    assert raised() <= set(FAULTS)
