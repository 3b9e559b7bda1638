"""Recorded Messages streams of many vendors.

The recordings are other people's and stay outside of the repository: without them, these tests skip.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from sse_machines import Outcome, ProtocolError
from tests import wire

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
OUTCOMES = {
    "message_stop": Outcome.COMPLETED,
    "error": Outcome.FAILED,
    "cut": Outcome.TRUNCATED,
}
# The index goes by the last event. Here, two different answers are glued together in the middle of a
# block, which is fatal in both modes: nobody could tell which of the two was meant.
SPLICED = "messages/118-anthropic-tools-reasoning-duplicate-message-start-hand.sse"
# A plain-text fixture that lost its last blank line; the recorded wire had it.
UNTERMINATED = "sse:terminal-event-without-final-blank-line"


def rows() -> list[dict[str, Any]]:
    index = CORPUS / "index.jsonl"
    if not index.exists():
        return []
    with index.open(encoding="utf-8") as lines:
        return [row for row in map(json.loads, lines) if row["protocol"] == "messages"]


ROWS = rows()
FIRST_PARTY = [
    row for row in ROWS if row["vendor"] == "anthropic" and row["origin"].startswith("recorded")
]
pytestmark = pytest.mark.skipif(not ROWS, reason="the recordings are not here")


def name(row: dict[str, Any]) -> str:
    return Path(row["file"]).stem


def bytes_of(row: dict[str, Any]) -> bytes:
    return Path(CORPUS, row["file"]).read_bytes()


def test_the_whole_corpus_is_there() -> None:
    assert len(ROWS) == 102
    assert len(FIRST_PARTY) == 73


@pytest.mark.parametrize("row", ROWS, ids=name)
def test_ends_as_the_index_says(row: dict[str, Any]) -> None:
    receiver, events = wire.receive(bytes_of(row))
    if row["file"] == SPLICED:
        assert wire.codes(events) == ["spliced_message"]
        assert receiver.outcome is Outcome.PROTOCOL_ERROR
    else:
        assert receiver.outcome is OUTCOMES[row["terminal"]]


@pytest.mark.parametrize("row", FIRST_PARTY, ids=name)
def test_the_first_party_is_legal(row: dict[str, Any]) -> None:
    stream = bytes_of(row)
    if UNTERMINATED in row["deviations"]:
        stream += b"\n\n"
    receiver, events = wire.receive(stream, strict=True)
    assert wire.codes(events) == []
    assert receiver.outcome is Outcome.COMPLETED


@pytest.mark.parametrize("row", ROWS, ids=name)
def test_cuts_change_nothing(row: dict[str, Any]) -> None:
    stream = bytes_of(row)
    whole = comparable(wire.receive(stream)[1])
    assert comparable(wire.receive([stream[i : i + 1] for i in range(len(stream))])[1]) == whole
    dice = random.Random(row["file"])
    for cut in sorted(dice.sample(range(len(stream) + 1), k=min(40, len(stream)))):
        assert comparable(wire.receive([stream[:cut], stream[cut:]])[1]) == whole


@pytest.mark.parametrize("row", [row for row in ROWS if row["core"]], ids=name)
def test_cut_short_is_never_completed(row: dict[str, Any]) -> None:
    stream = bytes_of(row)
    last = stream.rfind(b"event: message_stop")
    for cut in range(0, last, max(1, last // 100)):
        assert wire.receive(stream[:cut])[0].outcome is not Outcome.COMPLETED, cut


def comparable(events: list[Any]) -> list[Any]:
    return [vars(event) if isinstance(event, ProtocolError) else event for event in events]
