"""Answers cut at every byte, with a clean end and with a failure: what the client gets is whole.

Recordings of many vendors (they stay outside of the repository: without them, those tests skip) and the
streams that come with the package. What goes downstream is read by the official SDKs, too.
"""

from __future__ import annotations

import functools
import json
import pickle
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
import pytest

import sse_machines
from sse_machines import CHAT, MESSAGES, RESPONSES
from sse_machines._protocol import Protocol
from sse_machines._relay import Relay
from sse_machines._relay_config import RelayConfig
from sse_machines._relay_events import (
    Closed,
    RelayEvent,
    RelayOutcome,
    Synthesized,
    TailDropped,
    Terminal,
)
from tests import test_corpus as corpus
from tests.clients.readers import ASK, KEY

SAMPLES = Path(sse_machines.__file__).parent / "samples"
NUMBERS = {"chat": 14, "responses": 13, "messages": 13}
SMALLEST, LARGEST = 280, 4_100
"""How large a recording is that can be cut everywhere in a second or two."""
CONFIG = RelayConfig(keepalive=None, stall=None)
INTERRUPTED = CONFIG.errors.interrupted
DONE_FRAME = b"data: [DONE]\n\n"
STOP_FRAME = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
ENDS = {
    "responses": {
        *("response.completed", "response.incomplete", "response.failed", "response.cancelled"),
        *("response.done", "error"),
    },
    "messages": {"message_stop", "error"},
}
BROKEN = (RelayOutcome.TRUNCATED, RelayOutcome.ABORTED)
GOOD = (RelayOutcome.COMPLETED, RelayOutcome.COMPLETED_REPAIRED, RelayOutcome.INCOMPLETE)
REPAIRS = {"chat": DONE_FRAME, "messages": STOP_FRAME}

pytestmark = [
    # Being traced makes this three times slower, and other tests reach the same lines.
    pytest.mark.untraced,
]


def is_fit(row: dict[str, Any]) -> bool:
    """Whether a recording is small, and has nothing that the SDK takes for JSON although it is none."""
    return SMALLEST <= row["bytes"] <= LARGEST and "JSON" not in row["sdk"].get("error", "")


def chosen() -> list[dict[str, Any]]:
    """Small recordings, of as many vendors as there are, the same ones every time."""
    rows: list[dict[str, Any]] = []
    ranks = Counter[tuple[str, str]]()
    ranked: dict[str, list[Any]] = {protocol: [] for protocol in NUMBERS}
    for row in sorted(filter(is_fit, corpus.ROWS), key=lambda row: (row["bytes"], row["file"])):
        ranks[row["protocol"], row["vendor"]] += 1
        rank = ranks[row["protocol"], row["vendor"]]
        ranked[row["protocol"]].append((rank, row["bytes"], row["file"], row))
    for protocol, number in NUMBERS.items():
        rows += [row for *_, row in sorted(ranked[protocol])[:number]]
    return rows


ROWS = chosen()


def samples() -> list[str]:
    return sorted(str(path.relative_to(SAMPLES)) for path in SAMPLES.rglob("*.sse"))


# --- what is right, told without the library


def boundary(stream: bytes) -> int:
    """How much of a stream is whole: blocks with their blank lines, and comments between them."""
    place = end = 0
    in_block = False
    for line in stream.splitlines(keepends=True):
        if not line.endswith((b"\r", b"\n")):
            break
        place += len(line)
        in_block = bool(line.strip(b"\r\n")) and (in_block or not line.startswith(b":"))
        if not in_block:
            end = place
    return end


def payloads(stream: bytes) -> list[Any]:
    """The data of every event: JSON, or the end mark as text."""
    found, lines = list[Any](), list[bytes]()
    for line in stream.splitlines():
        if line.startswith(b"data:"):
            lines.append(line.removeprefix(b"data:").removeprefix(b" "))
        elif not line and lines:
            data = b"\n".join(lines)
            found.append("[DONE]" if data == b"[DONE]" else json.loads(data))
            lines = []
    return found


def is_end(protocol: Protocol[Any, Any], payload: Any) -> bool:
    if protocol is CHAT:
        return payload == "[DONE]" or bool(payload.get("error"))
    # Some errors come without a type.
    return type(payload) is dict and payload.get("type", next(iter(payload))) in ENDS[protocol.name]


def end_of(protocol: Protocol[Any, Any], stream: bytes) -> int:
    """How much of a stream there is up to the end of its answer; more than all if there is none."""
    for place in boundaries(stream):
        if any(is_end(protocol, payload) for payload in payloads(stream[:place])):
            return place
    return len(stream) + 1


def boundaries(stream: bytes) -> list[int]:
    return sorted({boundary(stream[:place]) for place in range(len(stream) + 1)})


def lacks_only_its_end(protocol: Protocol[Any, Any], stream: bytes, *, clean: bool) -> bool:
    """Whether a stream that has no end lacks nothing else."""
    if protocol is MESSAGES:
        return is_closed(payloads(stream))
    return protocol is CHAT and clean and is_finished(payloads(stream))


def is_finished(chunks: list[Any]) -> bool:
    """Whether every choice of Chat Completions has a finish reason."""
    finished: dict[int, bool] = {}
    for choice in (choice for chunk in chunks for choice in chunk.get("choices") or ()):
        index = choice.get("index", 0)
        finished[index] = finished.get(index, False) or bool(choice.get("finish_reason"))
    return bool(finished) and all(finished.values())


def is_closed(events: list[Any]) -> bool:
    """Whether every block of Messages is closed, and why the model stopped is known.

    What some gateways never begin need not be closed either.
    """
    kinds = [event["type"] for event in events if event["type"] != "ping"]
    deltas = [event["delta"] for event in events if event["type"] == "message_delta"]
    closed = kinds.count("content_block_start") == kinds.count("content_block_stop")
    told = kinds[-1:] == ["message_delta"] and deltas[-1].get("stop_reason") is not None
    return closed and told


# --- cuts


class Cut:
    """What became of a stream that was cut."""

    def __init__(self, relay: Relay, sent: bytes, *, clean: bool) -> None:
        output = relay.receive_eof(0.0) if clean else relay.receive_error("reset", 0.0)
        self.clean = clean
        self.added = output.data
        self.data = sent + output.data
        self.events = output.events
        self.outcome = relay.outcome
        assert output.finished
        assert output.close_upstream
        assert output.deadline is None


def cuts(protocol: Protocol[Any, Any], stream: bytes) -> Iterator[tuple[int, bytes, list[Any], Cut]]:
    """Cut a stream at every byte: how much came, what had gone out, what was told, what became of it."""
    relay, sent, told = Relay(protocol, CONFIG, now=0.0), b"", list[Any]()
    for place in range(len(stream) + 1):
        output = relay.receive_data(stream[place - 1 : place] if place else b"", 0.0)
        sent += output.data
        told += [event for event in output.events if isinstance(event, RelayEvent)]
        # A relay is a plain value, and this is the fastest way to copy it.
        state = pickle.dumps(relay, pickle.HIGHEST_PROTOCOL)
        for clean in (True, False):
            yield place, sent, told, Cut(pickle.loads(state), sent, clean=clean)


def torture(protocol: Protocol[Any, Any], stream: bytes) -> None:
    """Check every cut of a stream."""
    end, outputs = end_of(protocol, stream), dict[bytes, RelayOutcome]()
    added: dict[tuple[int, bool], bytes] = {}
    for place, sent, told, cut in cuts(protocol, stream):
        complete = min(boundary(stream[:place]), end)
        whole = stream[:complete]
        if protocol is not CHAT:
            # The end mark of Chat Completions is none of these protocols.
            whole = whole.replace(DONE_FRAME, b"")
        assert sent == whole, place
        check_told([*told, *cut.events], cut.outcome)
        dropped = [event.size for event in cut.events if isinstance(event, TailDropped)]
        tail = 0 if complete == end else place - complete
        assert dropped == ([tail] if tail else []), place
        if complete == end:
            assert cut.added == b"", place
            assert cut.outcome not in BROKEN, place
        else:
            if (complete, cut.clean) not in added:
                check_added(protocol, whole, cut)
            # Where in an event it was cut changes nothing.
            assert added.setdefault((complete, cut.clean), cut.added) == cut.added, place
            assert cut.outcome in (*BROKEN, RelayOutcome.COMPLETED_REPAIRED), place
        outputs.setdefault(cut.data, cut.outcome)
    for data, outcome in outputs.items():
        seen = [is_end(protocol, payload) for payload in payloads(data)]
        assert seen.index(True) == len(seen) - 1
        check_sdk(protocol, data, outcome)


def check_told(events: list[Any], outcome: RelayOutcome) -> None:
    """One end is told, and then that it is over."""
    ends = [event for event in events if isinstance(event, Terminal | Synthesized)]
    assert len(ends) == 1
    assert events[-1] == Closed(outcome=outcome)
    repaired = isinstance(ends[0], Synthesized) and ends[0].kind == "terminal"
    assert repaired is (outcome is RelayOutcome.COMPLETED_REPAIRED)


def check_added(protocol: Protocol[Any, Any], whole: bytes, cut: Cut) -> None:
    """Look at the one frame that a relay adds."""
    assert cut.added.endswith(b"\n\n")
    assert cut.added.count(b"\n\n") == 1
    (payload,) = payloads(cut.added)
    assert is_end(protocol, payload)
    if lacks_only_its_end(protocol, whole, clean=cut.clean):
        assert cut.added == REPAIRS[protocol.name]
        assert cut.outcome is RelayOutcome.COMPLETED_REPAIRED
        return
    assert cut.outcome is (RelayOutcome.TRUNCATED if cut.clean else RelayOutcome.ABORTED)
    assert INTERRUPTED.encode() in cut.added
    assert payload != "[DONE]"


# --- the official clients


class Server:
    """Answers every request with one body."""

    def __init__(self) -> None:
        self.body = b""
        http = httpx2.Client(transport=httpx2.MockTransport(self._answer))
        options: Any = {"api_key": KEY, "base_url": "http://relay", "max_retries": 0}
        self.openai = openai.OpenAI(**options, http_client=http)
        self.anthropic = anthropic.Anthropic(**options, http_client=http)

    def read(self, protocol: Protocol[Any, Any], body: bytes) -> tuple[list[Any], str]:
        """What a client shows of a body: its events, and the message of the error that it raised."""
        self.body = body
        events: list[Any] = []
        try:
            events.extend(self._open(protocol))
        except (openai.APIError, anthropic.APIError) as error:
            return events, str(error)
        return events, ""

    def _answer(self, _request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=self.body)

    def _open(self, protocol: Protocol[Any, Any]) -> Any:
        if protocol is CHAT:
            return self.openai.chat.completions.create(model="m", messages=ASK, stream=True)
        if protocol is RESPONSES:
            return self.openai.responses.create(model="m", input="Go on.", stream=True)
        return self.anthropic.messages.create(model="m", messages=ASK, max_tokens=9, stream=True)


@functools.cache
def server() -> Server:
    return Server()


def check_sdk(protocol: Protocol[Any, Any], data: bytes, outcome: RelayOutcome) -> None:
    """Let the vendor's client read an answer: it finds its end, and nothing that it cannot read."""
    events, error = server().read(protocol, data)
    if outcome in GOOD:
        assert error == ""
    elif protocol is RESPONSES:
        # Errors are events here, and not raised, unless they are in a member of that name.
        assert error or events[-1].type in ("response.failed", "error")
    else:
        assert INTERRUPTED in error or outcome not in BROKEN
        assert error
    if outcome in GOOD and protocol is RESPONSES:
        assert is_end(protocol, {"type": events[-1].type})


@pytest.mark.skipif(not corpus.ROWS, reason="the recordings are not here")
@pytest.mark.parametrize("row", ROWS, ids=corpus.name)
def test_a_recording_that_is_cut_at_every_byte(row: dict[str, Any]) -> None:
    torture(corpus.PROTOCOLS[row["protocol"]], corpus.bytes_of(row))


@pytest.mark.parametrize("name", samples())
def test_a_sample_that_is_cut_at_every_byte(name: str) -> None:
    protocols = [p for p in (CHAT, RESPONSES, MESSAGES) if p.name in name]
    torture((protocols or [MESSAGES if "before" in name else CHAT])[0], (SAMPLES / name).read_bytes())


@pytest.mark.skipif(not corpus.ROWS, reason="the recordings are not here")
def test_enough_recordings_are_cut() -> None:
    assert len(ROWS) == 40
    assert len({(row["protocol"], row["vendor"]) for row in ROWS}) >= 22
