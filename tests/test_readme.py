"""Everything that the README shows is run, and what it claims to print is what is printed."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest

from sse_machines import MESSAGES, cli

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "src" / "sse_machines" / "samples" / "messages.sse"
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
# A block of code, and the block behind it, which is what it prints.
EXAMPLES = [
    (code, BLOCKS[number + 1]) for number, (language, code) in enumerate(BLOCKS) if language == "python"
]
COMMANDS = [line for language, code in BLOCKS if language == "sh" for line in code.splitlines()]


def test_the_blocks_are_found() -> None:
    assert [language for language, _ in BLOCKS] == [
        *["sh", "sh"],
        *["python", "text"] * 7,
        "mermaid",
        *["python", "text"],
    ]


@pytest.mark.parametrize(("code", "printed"), EXAMPLES)
def test_examples(code: str, printed: tuple[str, str]) -> None:
    sample = SAMPLE.read_bytes()
    body = [sample[start : start + 100] for start in range(0, len(sample), 100)]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "README.md", "exec"), {"body": body})
    assert (out.getvalue(), printed[0]) == (printed[1], "text")


def test_the_first_example_is_short() -> None:
    assert len(EXAMPLES[0][0].splitlines()) <= 15


def test_the_diagram_is_the_law() -> None:
    assert ("mermaid", next(MESSAGES.mermaid())) in BLOCKS


def test_ci_runs_both_commands_to_the_letter() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert len(COMMANDS) == 2
    assert set(COMMANDS) <= set(script)


def test_the_main_job(capsys: pytest.CaptureFixture[str]) -> None:
    last = COMMANDS[0].rpartition("&&")[2]
    program, *arguments = shlex.split(last)
    assert program.endswith("/sse-machines")
    assert cli.main(arguments) == 0
    assert capsys.readouterr().out.endswith("outcome: completed\n")
