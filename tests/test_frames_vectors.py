"""The 2,486 conformance vectors: every expectation of each, and the bytes."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from sse_machines import Frame, FrameReader

from . import reference

VECTORS: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parent / "data" / "vectors.jsonl").read_text("utf-8").splitlines()
]

NO_FAST_PATH = 15_000
"""A limit too small for the fast path."""


def chunks_of(vector: dict[str, Any]) -> list[bytes]:
    return [base64.b64decode(chunk) for chunk in vector["chunks"]]


def read_chunks(reader: FrameReader, chunks: list[bytes]) -> tuple[list[Frame], list[int]]:
    """All frames, and after which chunk each event came."""
    frames: list[Frame] = []
    events_after: list[int] = []
    for index, chunk in enumerate(chunks):
        reader.feed(chunk)
        for frame in iter(reader.next_frame, None):
            frames.append(frame)
            if frame.data is not None:
                events_after.append(index)
    reader.feed_eof()
    assert reader.next_frame() is None
    return frames, events_after


def wanted(vector: dict[str, Any]) -> reference.Reading:
    expected = vector["expected"]
    return reference.Reading(
        events=[reference.ReferenceEvent(**event) for event in expected["events"]],
        comments=expected["comments"],
        # "<digits>:N" is a run of digits that int() refuses; this library ignores the field.
        retries=[retry for retry in expected["retry"] if type(retry) is int],
        order=wanted_order(vector),
        last_event_id=expected["last_event_id"],
        unterminated_line=expected["unterminated_line"],
        pending_fields=expected["pending_fields"],
    )


def wanted_order(vector: dict[str, Any]) -> str:
    order: str = vector["derived"]["order"]
    return order.replace("R", "") if "implementation-limit" in vector["tags"] else order


def test_no_vector_is_missing() -> None:
    assert len(VECTORS) == 2486
    assert len({vector["name"] for vector in VECTORS}) == 2486
    assert sum("implementation-limit" in vector["tags"] for vector in VECTORS) == 2


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_vector(vector: dict[str, Any]) -> None:
    chunks = chunks_of(vector)
    want = wanted(vector)
    assert reference.parse(b"".join(chunks)) == want
    check_reader(FrameReader(), vector, want)
    if sum(map(len, chunks)) <= NO_FAST_PATH:
        check_reader(FrameReader(max_event_size=NO_FAST_PATH), vector, want)
    incomplete = want.unterminated_line or want.pending_fields
    assert incomplete == vector["expected"]["incomplete_at_eof"]


def check_reader(reader: FrameReader, vector: dict[str, Any], want: reference.Reading) -> None:
    chunks = chunks_of(vector)
    frames, events_after = read_chunks(reader, chunks)
    assert reference.reading_of(frames, reader.tail) == want
    assert events_after == vector["derived"]["event_after_chunk"]
    assert reader.last_event_id == want.last_event_id
    assert reader.retry == next((f.retry for f in reversed(frames) if f.retry is not None), None)
    assert b"".join(frame.raw for frame in frames) + reader.tail == b"".join(chunks)
    assert [Frame.parse(frame.raw) for frame in frames] == frames
    assert reader.unfinished == (Frame.parse(reader.tail) if reader.tail else None)
