"""Recorded streams of more than forty vendors.

The recordings are other people's and stay outside of the repository: without them, these tests skip.
"""

from __future__ import annotations

import functools
import json
import random
from pathlib import Path
from typing import Any

import pytest

from sse_machines import (
    CHAT,
    MESSAGES,
    RESPONSES,
    NotAnEventStream,
    Outcome,
    Receiver,
    detect,
)
from tests import broken, wire
from tests.test_repeat import same

CORPUS = Path(__file__).parents[2] / "shared" / "corpus"
PROTOCOLS = {protocol.name: protocol for protocol in (CHAT, RESPONSES, MESSAGES)}
OUTCOMES = {
    "message_stop": Outcome.COMPLETED,
    "done": Outcome.COMPLETED,
    "completed": Outcome.COMPLETED,
    "finish-no-done": Outcome.COMPLETED_NO_DONE,
    "incomplete": Outcome.INCOMPLETE,
    "failed": Outcome.FAILED,
    "error": Outcome.FAILED,
    "error+done": Outcome.FAILED,
    "cut": Outcome.TRUNCATED,
}
# The index goes by the last event; these two were judged by hand.
EXCEPTIONS = {
    # Two different answers are glued together in the middle of a block, which is fatal in both modes:
    # nobody could tell which of the two was meant.
    "messages/118-anthropic-tools-reasoning-duplicate-message-start-hand.sse": Outcome.PROTOCOL_ERROR,
    # The last event is {"error": ...} without a type: an error all the same.
    "responses/120-openai-empty-sequence-cut-hand.sse": Outcome.FAILED,
}
FIRST_PARTIES = ("openai", "azure", "anthropic")
# Named after a first party, and not what it sends.
NOT_FIRST_PARTY = {
    # A role in every chunk: rewritten by the tool that kept it, which added an episode_id, and sent by
    # another server, which counts its time in milliseconds.
    "chat/236-openai-text.sse",
    "chat/245-openai-text.sse",
    # Cut down by its owner: items and numbers are missing.
    "responses/073-openai-text-sequence.sse",
}
RESUMED = {
    "responses/053-openai-background-sequence.sse": 0,
    "responses/093-openai-text-sequence.sse": 1,
}
"""Recordings that go on after the event of a number."""

# Plain-text fixtures that lost their last blank line; the recorded wire had it.
UNTERMINATED = ("sse:terminal-event-without-final-blank-line", "sse:done-without-final-blank-line")
# No event in them is complete, so nothing can be told from the first one.
NO_EVENT = (
    "responses/104-openai-empty-odd-cut-hand.sse",
    "responses/105-openai-empty-truncated-cut-hand.sse",
)
MUTATIONS = 10_000
BYTE_BY_BYTE = 8_000
"""How many bytes of each recording come one by one. All of them do, too, but that takes minutes."""


def rows() -> list[dict[str, Any]]:
    index = CORPUS / "index.jsonl"
    if not index.exists():
        return []
    with index.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


ROWS = rows()
CORE = [row for row in ROWS if row["core"]]
RECORDED = ("recorded", "recorded-redacted")
FIRST_PARTY = [
    row
    for row in ROWS
    if row["vendor"] in FIRST_PARTIES
    # Nothing but the words was redacted in the recordings of Anthropic.
    and row["origin"] in (RECORDED if row["vendor"] == "anthropic" else RECORDED[:1])
    and row["file"] not in NOT_FIRST_PARTY
]

pytestmark = [
    pytest.mark.skipif(not ROWS, reason="the recordings are not here"),
    # Being traced makes this three times slower, and the recordings must not be what reaches a line.
    pytest.mark.untraced,
]


def name(row: dict[str, Any]) -> str:
    return str(row["file"]).removesuffix(".sse")


@functools.cache
def read(file: str) -> bytes:
    return Path(CORPUS, file).read_bytes()


def bytes_of(row: dict[str, Any]) -> bytes:
    lost = any(deviation in UNTERMINATED for deviation in row["deviations"])
    return read(row["file"]) + (b"\n\n" if lost else b"")


def receive(row: dict[str, Any], chunks: Any, **options: Any) -> tuple[Receiver[Any], list[Any]]:
    return wire.receive(chunks, protocol=PROTOCOLS[row["protocol"]], **options)


def test_the_whole_corpus_is_there() -> None:
    assert len(ROWS) == 505
    assert len(FIRST_PARTY) == 73 + 99 - len(NOT_FIRST_PARTY)


@pytest.mark.parametrize("row", ROWS, ids=name)
def test_ends_as_the_index_says(row: dict[str, Any]) -> None:
    receiver, _ = receive(row, bytes_of(row))
    assert receiver.outcome is EXCEPTIONS.get(row["file"], OUTCOMES[row["terminal"]])
    assert receiver.finished


@pytest.mark.parametrize("row", FIRST_PARTY, ids=name)
def test_first_parties_keep_to_the_law(row: dict[str, Any]) -> None:
    options = {"starting_after": RESUMED[row["file"]]} if row["file"] in RESUMED else {}
    receiver, events = receive(row, bytes_of(row), strict=True, **options)
    assert wire.codes(events) == []
    assert receiver.outcome is OUTCOMES[row["terminal"]]


@pytest.mark.parametrize("row", ROWS, ids=name)
def test_cuts_change_nothing(row: dict[str, Any]) -> None:
    stream = bytes_of(row)
    whole = broken.comparable(receive(row, stream)[1])
    pieces = [stream[place : place + 1] for place in range(min(len(stream), BYTE_BY_BYTE))]
    pieces.append(stream[BYTE_BY_BYTE:])
    assert broken.comparable(receive(row, pieces)[1]) == whole
    dice = random.Random(row["file"])
    for cut in dice.sample(range(len(stream) + 1), k=min(12 if row["core"] else 4, len(stream))):
        assert broken.comparable(receive(row, [stream[:cut], stream[cut:]])[1]) == whole


@pytest.mark.parametrize("row", ROWS, ids=name)
def test_the_shortcut_for_repetitions_changes_nothing(
    row: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    same(PROTOCOLS[row["protocol"]], bytes_of(row), monkeypatch)


@pytest.mark.parametrize("row", CORE, ids=name)
def test_cut_short_is_never_completed(row: dict[str, Any]) -> None:
    stream = bytes_of(row).rstrip()
    # Whatever ends an answer stands in its last two events.
    last = max(stream.rfind(end, 0, stream.rfind(end)) for end in (b"\n\n", b"\r\n\r\n"))
    for cut in range(0, last, max(1, last // 40)):
        assert receive(row, stream[:cut])[0].outcome is not Outcome.COMPLETED, cut


@pytest.mark.parametrize("row", ROWS, ids=name)
def test_the_protocol_tells_itself(row: dict[str, Any]) -> None:
    stream = bytes_of(row)
    if row["file"] in NO_EVENT:
        assert detect(stream) is None
        return
    protocol = PROTOCOLS[row["protocol"]]
    assert detect(stream) is protocol
    receiver = Receiver.detecting()
    events = list(wire.drain(receiver, stream))
    assert receiver.protocol is protocol
    assert broken.comparable(events) == broken.comparable(receive(row, stream)[1])


@pytest.mark.parametrize("row", CORE, ids=name)
@pytest.mark.parametrize("other", PROTOCOLS)
def test_another_protocol_is_told_apart(row: dict[str, Any], other: str) -> None:
    if other == row["protocol"] or row["file"] in NO_EVENT:
        return
    receiver, events = wire.receive(bytes_of(row), protocol=PROTOCOLS[other])
    assert receiver.outcome in (Outcome.PROTOCOL_ERROR, Outcome.FAILED)
    if receiver.outcome is Outcome.PROTOCOL_ERROR:
        assert events[-1].code == "wrong_protocol"
        assert f"looks like {row['protocol']}" in events[-1].message


@pytest.mark.parametrize("seed", range(20))
def test_broken_recordings_are_judged_and_never_crash(seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(MUTATIONS // 20):
        row = dice.choice(CORE)
        broken.check(PROTOCOLS[row["protocol"]], bytes_of(row)[:20_000], dice)


def test_a_body_that_is_no_stream_is_refused_by_every_protocol() -> None:
    for protocol in PROTOCOLS.values():
        _, events = wire.receive(b'{"error": {"message": "no"}}', protocol=protocol)
        assert isinstance(events[-1], NotAnEventStream)
        assert events[-1].error == {"message": "no"}
