"""The official Python clients read what senders write, from both servers."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients import meant
from tests.clients.readers import READERS, Sight, read, read_async
from tests.clients.serving import h11_server, uvicorn_server

# Being traced makes this three times slower, and the tests of the single rules reach every line.
pytestmark = pytest.mark.untraced

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", params=[uvicorn_server, h11_server], ids=["uvicorn", "h11"])
def base(request: pytest.FixtureRequest) -> Iterator[str]:
    with request.param(meant.ROUTES) as url:
        yield url


@pytest.mark.parametrize("scenario", meant.SCENARIOS)
@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_the_official_sdks(base: str, name: str, scenario: str, kind: str) -> None:
    url = f"{base}/{scenario}/v1"
    sight = read(name, url) if kind == "sync" else asyncio.run(read_async(name, url))
    said = meant.ALL[scenario, READERS[name].api]
    assert sight.text == said.text
    assert sight.reasoning == said.reasoning
    assert sight.calls == said.tools
    if said.error:
        check_error(sight, said)
        return
    assert sight.error is None
    assert sight.usage == said.usage
    assert sight.finish == said.finish
    assert (sight.final is not None) == bool(READERS[name].final)
    if sight.final is not None:
        meant.check_contains(sight.final, said.final)


def check_error(sight: Sight, said: meant.Meant) -> None:
    """The error has arrived, in the vendor's words; Anthropic's SDK puts them in the whole JSON."""
    error = sight.error
    assert error is not None
    assert said.error in (error["message"] or "")
    assert sight.final is None
    interrupted = said.scenario == "interrupted"
    if said.api == "responses":
        assert (error["code"], sight.finish) == ("server_error", "failed")
    elif said.api == "messages":
        assert error["type"] == ("api_error" if interrupted else "overloaded_error")
    else:
        assert error["type"] == ("server_error" if interrupted else "overloaded_error")


LITELLM = [
    "litellm chat sync",
    "litellm chat async",
    "litellm messages sync",
    "litellm messages async",
    "litellm responses sync",
    "litellm responses async",
]
# It speaks of everything in the words of Chat Completions, but for Responses.
FINISH = {"end_turn": "stop", "tool_use": "tool_calls"}


def test_litellm() -> None:
    with uvicorn_server(meant.ROUTES) as url:
        command = [sys.executable, "-m", "tests.clients.readers", url]
        result = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=True
        )
    lines = [json.loads(line) for line in result.stdout.split("\n") if line]
    assert [(line["scenario"], line["name"]) for line in lines] == [
        (scenario, name) for scenario in meant.SCENARIOS for name in LITELLM
    ]
    for line in lines:
        check_litellm(line, meant.ALL[line["scenario"], line["name"].split()[1]])


def check_litellm(line: dict[str, Any], said: meant.Meant) -> None:
    who = (line["name"], line["scenario"])
    assert line["text"] == said.text, who
    assert line["reasoning"] == said.reasoning, who
    assert line["calls"] == said.tools, who
    if said.error:
        assert said.error in line["error"]["message"], who
        return
    assert line["error"] is None, who
    assert line["usage"] == said.usage, who
    assert line["finish"] == FINISH.get(said.finish or "", said.finish), who
    if said.api != "responses":
        (choice,) = line["final"]["choices"]
        assert choice["message"]["content"] == said.text, who
        assert choice["finish_reason"] == line["finish"], who
        assert (choice["message"].get("reasoning_content") or "") == said.reasoning, who
        calls = choice["message"]["tool_calls"] or []
        assert [call["id"] for call in calls] == [tool["id"] for tool in said.tools], who
