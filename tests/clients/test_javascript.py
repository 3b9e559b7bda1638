"""The official JavaScript clients read what senders write.

They need Node and the npm packages of ``package.json``:
``npm install --prefix tests/clients --no-audit --no-fund``.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.clients import meant
from tests.clients.serving import uvicorn_server

HERE = Path(__file__).parent
MODES = {
    "openai": [("chat", "raw"), ("chat", "helper"), ("responses", "raw"), ("responses", "helper")],
    "@anthropic-ai/sdk": [("messages", "raw"), ("messages", "helper")],
    "@ai-sdk/openai": [("chat", "streamText"), ("responses", "streamText")],
    "@ai-sdk/openai-compatible": [("chat", "streamText")],
    "@ai-sdk/anthropic": [("messages", "streamText")],
}
RUNS = [
    (client, api, mode, scenario)
    for client, modes in MODES.items()
    for api, mode in modes
    for scenario in meant.SCENARIOS
]
# The provider for OpenAI itself knows no reasoning in Chat Completions: OpenAI sends none.
NO_REASONING = {("@ai-sdk/openai", "chat")}
# `ai` has names of its own.
FINISH = {"stop": "stop", "end_turn": "stop", "tool_calls": "tool-calls", "tool_use": "tool-calls"}


def node_version() -> int:
    node = shutil.which("node")
    if node is None:
        return 0
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    return int(version.removeprefix("v").partition(".")[0])


pytestmark = [
    pytest.mark.untraced,
    pytest.mark.skipif(node_version() < 20, reason="Node 20 or newer is not here"),
    pytest.mark.skipif(
        not (HERE / "node_modules" / "openai").is_dir(),
        reason="the npm packages are not installed: npm install --prefix tests/clients",
    ),
]


@pytest.fixture(scope="module")
def readings() -> dict[tuple[str, str, str, str], dict[str, Any]]:
    with uvicorn_server(meant.ROUTES) as base:
        script = ["node", str(HERE / "clients.mjs"), base]
        result = subprocess.run(script, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr
    # Not splitlines(): JSON.stringify leaves U+0085 and U+2028 as they are.
    lines = [json.loads(line) for line in result.stdout.split("\n") if line]
    return {(line["client"], line["api"], line["mode"], line["scenario"]): line for line in lines}


def test_every_client_has_read_every_stream(readings: dict[Any, dict[str, Any]]) -> None:
    assert readings.keys() == set(RUNS)
    pinned = json.loads((HERE / "package.json").read_text(encoding="utf-8"))["dependencies"]
    for (client, *_), reading in readings.items():
        assert reading["version"] == pinned[client]


@pytest.mark.parametrize("run", RUNS, ids="-".join)
def test_what_was_meant_is_read(run: tuple[str, str, str, str], readings: dict[Any, Any]) -> None:
    client, api, mode, scenario = run
    reading, said = readings[run], meant.ALL[scenario, api]
    assert reading["text"] == said.text
    assert reading["reasoning"] == ("" if (client, api) in NO_REASONING else said.reasoning)
    assert reading["tools"] == said.tools
    if said.error:
        check_error(reading, said)
        return
    assert reading["error"] is None
    assert reading["usage"] == said.usage
    assert reading["finish"] == finish(said, mode)
    if mode == "helper":
        meant.check_contains(reading["final"], said.final)


def finish(said: meant.Meant, mode: str) -> str | None:
    if mode != "streamText":
        return said.finish
    if said.api == "responses":
        return "tool-calls" if said.tools else "stop"
    return FINISH[said.finish or ""]


def check_error(reading: dict[str, Any], said: meant.Meant) -> None:
    """The error has arrived, with its kind; Anthropic's SDK makes its message of the whole JSON."""
    error = reading["error"]
    assert said.error in error["message"]
    assert reading["finish"] in (None, "error", "failed")
    interrupted = said.scenario == "interrupted"
    if said.api == "responses":
        assert error["code"] == "server_error"
    elif said.api == "messages":
        assert error["type"] == ("api_error" if interrupted else "overloaded_error")
    else:
        assert error["type"] == ("server_error" if interrupted else "overloaded_error")
    if reading["final"] is not None:
        assert reading["final"]["status"] == "failed"
