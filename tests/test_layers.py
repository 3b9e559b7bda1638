"""Who may import whom: no clock, socket, thread or logger in the core, and no circle."""

from __future__ import annotations

import ast
import graphlib
import io
import os
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

import sse_machines

PACKAGE = Path(sse_machines.__file__).parent
FORBIDDEN = {
    "_socket",
    "asyncio",
    "concurrent",
    "datetime",
    "logging",
    "multiprocessing",
    "queue",
    "random",
    "select",
    "selectors",
    "signal",
    "socket",
    "ssl",
    "threading",
    "time",
    "uuid",
}


def modules() -> dict[str, Path]:
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def imports(name: str) -> Iterator[str]:
    """Absolute names of everything a module imports, at its top or inside of a function."""
    path = MODULES[name]
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{origin}.{alias.name}"
                yield inner if inner in MODULES else origin


def test_the_modules_are_found() -> None:
    assert {"sse_machines", "sse_machines._frames", "sse_machines.messages.grammar"} <= set(MODULES)
    assert "sse_machines._machine" in set(imports("sse_machines.messages.grammar"))
    assert "sse_machines.messages.events" in set(imports("sse_machines.messages"))


def test_nobody_below_the_adapters_has_a_clock_or_does_io() -> None:
    for name in MODULES:
        if not name.startswith("sse_machines.adapters"):
            roots = {target.partition(".")[0] for target in imports(name)}
            assert not roots & FORBIDDEN, name


def test_only_two_packages_are_needed() -> None:
    roots = {target.partition(".")[0] for name in MODULES for target in imports(name)}
    wanted = roots - set(sys.stdlib_module_names) - {"sse_machines"}
    assert wanted - set().union(*EXTRAS.values()) == {"attrs", "typing_extensions"}


# Which adapter needs what besides, each with an extra or where it is used from.
EXTRAS = {
    "_http": {"h11"},
    "_trio_pump": {"trio"},
    "trio": {"trio"},
    "asgi": {"starlette"},
    "gateway": {"httpx", "uvicorn"},
}


def test_what_an_adapter_needs_besides_is_its_own_business() -> None:
    for name in MODULES:
        roots = {target.partition(".")[0] for target in imports(name)} - set(sys.stdlib_module_names)
        own = EXTRAS.get(name.rpartition(".")[2], set()) if ".adapters." in name else set()
        assert roots - {"sse_machines", "attrs", "typing_extensions"} == own, name


def test_imports_make_no_circle() -> None:
    graph = {name: {t for t in imports(name) if t in MODULES and t != name} for name in MODULES}
    assert len(list(graphlib.TopologicalSorter(graph).static_order())) == len(MODULES)


ALLOWED = {
    "_errors": set[str](),
    "_machine": set[str](),
    "_frames": {"_errors"},
    "_payload": {"_errors"},
    "_protocol": {"_frames", "_machine"},
    "partial_json": {"_payload", "_errors"},
    "_accumulator": {"_protocol", "_payload", "_errors", "partial_json"},
    "_detect": {
        *("_accumulator", "_protocol", "_machine", "_meter", "_frames", "_payload", "_template"),
        *("chat", "messages", "responses"),
    },
    "_verdicts": {"_protocol", "_machine", "_errors"},
    "_streams": {"_verdicts", "_detect", "_protocol", "_machine", "_errors"},
    "_receiver": {
        *("_verdicts", "_detect", "_streams", "_protocol", "_machine", "_frames", "_payload", "_errors"),
        "_accumulator",
    },
    "_meter": {"_protocol", "_payload", "_errors"},
    "_observer": {"_receiver", "_protocol", "_frames", "_errors"},
    "_relay_events": {"_meter", "_protocol", "_errors"},
    "_relay_config": {"_relay_events", "_receiver", "_sender", "_errors"},
    "_relay_clocks": {"_relay_config", "_relay_events"},
    "_relay": {
        *("_accumulator", "_errors", "_frames", "_meter", "_observer", "_payload", "_protocol"),
        *("_relay_clocks", "_relay_config", "_relay_events", "_relay_tables", "_sender"),
    },
    "_relay_tables": {"_relay_events", "_protocol"},
    "relay": {"_meter", "_relay", "_relay_config", "_relay_events", "_relay_tables"},
    "testing._driver": {"_relay", "_relay_events", "_relay_tables", "_protocol"},
    "adapters._request": set(),
    "adapters._reading": {"_protocol", "_receiver"},
    "adapters._driving": {"_protocol", "_relay", "_relay_events", "_reading"},
    "adapters._http": {"_errors", "_payload", "_request"},
    "adapters._thread": {"_reading"},
    "adapters._sync": {
        *("_errors", "_protocol", "_receiver", "_driving", "_http", "_reading", "_thread"),
    },
    "adapters._async": {"_errors", "_protocol", "_receiver", "_driving", "_http", "_reading"},
    "adapters._asyncio_pump": {"_async", "_reading"},
    "adapters._trio_pump": {"_async", "_reading"},
    "_collect": {"_accumulator", "_receiver", "_protocol", "_payload", "_errors"},
    "_sender": {"_verdicts", "_streams", "_protocol", "_frames", "_payload", "_errors"},
    "_writing": {"_protocol"},
    "_template": set(),
    "chat.accumulator": {"_accumulator", "_payload", "_protocol", "events", "tool_calls"},
    "responses.accumulator": {"_accumulator", "_protocol", "events", "roles"},
    "messages.accumulator": {"_accumulator", "_payload", "_protocol", "events"},
    "chat.meter": {"_meter", "_protocol", "accumulator", "events", "grammar"},
    "responses.meter": {
        *("_frames", "_meter", "_payload", "_protocol", "accumulator", "events", "moves", "roles"),
        "writing",
    },
    "messages.meter": {"_meter", "_protocol", "accumulator", "events", "grammar"},
    "chat": {"_protocol", "accumulator", "events", "grammar", "meter", "repeat", "writing"},
    "chat.events": {"_protocol"},
    "chat.tool_calls": {"_protocol"},
    "chat.grammar": {"_machine", "_protocol", "_template", "events", "tool_calls", "chat"},
    "chat.writing": {"_protocol", "_writing", "events"},
    "chat.repeat": {"_machine", "_protocol", "_template", "events"},
    "responses": {
        *(
            "_protocol",
            "accumulator",
            "decoding",
            "events",
            "grammar",
            "meter",
            "moves",
            "repeat",
            "roles",
            "responses",
            "writing",
        ),
    },
    "responses.writing": {"_protocol", "_writing", "events", "moves", "roles"},
    "responses.roles": {"_protocol"},
    "responses.events": {"_protocol", "roles"},
    "responses.decoding": {"_protocol", "events", "roles"},
    "responses.grammar": {"_machine", "_protocol", "events"},
    "responses.moves": {"_machine", "_protocol", "_template", "events", "grammar", "roles", "responses"},
    "responses.repeat": {"_machine", "_protocol", "_template", "events", "roles"},
    "messages": {"_protocol", "accumulator", "events", "grammar", "meter", "repeat", "writing"},
    "messages.events": {"_protocol"},
    "messages.grammar": {"_machine", "_protocol", "_template", "events"},
    "messages.writing": {"_protocol", "_writing", "events"},
    "messages.repeat": {"_machine", "_protocol", "_template", "events"},
}


def test_data_only_moves_forward() -> None:
    for name, allowed in ALLOWED.items():
        inner = {t.rpartition(".")[2] for t in imports(f"sse_machines.{name}") if t in MODULES}
        assert inner <= allowed, name


def test_importing_the_package_loads_no_io_module() -> None:
    # What the two run-time packages load by themselves differs between Python versions.
    script = (
        "import sys, attrs, typing_extensions; before = set(sys.modules);"
        "import sse_machines; print(*sorted(set(sys.modules) - before))"
    )
    result = subprocess.run(
        [sys.executable, "-S", "-c", script],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(result.stdout.split())
    assert "sse_machines._sender" in loaded
    assert not loaded & {"asyncio", "logging", "socket", "selectors", "ssl", "multiprocessing"}


@pytest.mark.parametrize("name", ["asyncio", "sync", "trio"])
def test_an_adapter_is_thin(name: str) -> None:
    path = PACKAGE / "adapters" / f"{name}.py"
    source = path.read_text(encoding="utf-8")
    told = {
        line
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for line in range(node.lineno, (node.end_lineno or 0) + 1)
    }
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    lines = {token.start[0] for token in tokens if token.type not in SILENT}
    assert 20 < len(lines - told) <= 60


SILENT = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    tokenize.ENDMARKER,
}
