"""Public bug reports about event streams, rebuilt as small inputs, and what is right instead."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from sse_machines import FrameReader, FrameTooLarge

CASES: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parent / "data" / "event_stream_cases.jsonl")
    .read_text("utf-8")
    .splitlines()
]
FIELDS = ("", "event", "data", "id", "retry")


def test_no_case_is_missing() -> None:
    assert len({case["id"] for case in CASES}) == len(CASES) == 24


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['id']} {case['title']}")
def test_case(case: dict[str, Any]) -> None:
    expected = case["expected"]
    reader = FrameReader()
    events: list[list[str]] = []
    comments: list[str] = []
    ignored: list[str] = []
    after_chunk = 0
    for number, chunk in enumerate(case["chunks"], 1):
        reader.feed(base64.b64decode(chunk))
        for frame in iter(reader.next_frame, None):
            comments += [comment.removeprefix(" ") for comment in frame.comments]
            ignored += [name for name, _ in frame.lines if name not in FIELDS]
            if frame.data is not None:
                events.append([frame.event or "message", frame.data, reader.last_event_id])
                after_chunk = number
    reader.feed_eof()
    assert reader.next_frame() is None
    if reader.unfinished is not None:
        ignored += [name for name, _ in reader.unfinished.lines if name not in FIELDS]
    assert events == expected["frames"]
    assert comments == expected["comments"]
    assert ignored == expected.get("ignored_fields", ignored)
    assert after_chunk == expected.get("available_after_chunk", after_chunk)
    assert reader.retry == expected.get("retry_ms", reader.retry)
    assert reader.last_event_id == expected.get("last_event_id", reader.last_event_id)
    assert len(reader.tail.rpartition(b"\n")[2]) == expected["tail_line"]


def flood(reader: FrameReader, chunk: bytes, chunks: int) -> int:
    """Feed a chunk many times; how many frames there were."""
    frames = 0
    for _ in range(chunks):
        reader.feed(chunk)
        frames += len(list(iter(reader.next_frame, None)))
    return frames


def test_md02_endless_data_lines_without_a_blank_line() -> None:
    reader = FrameReader(max_event_size=1024 * 1024)
    lines = b"data:\n" * 10_000
    assert flood(reader, lines, 17) == 0
    with pytest.raises(FrameTooLarge):
        flood(reader, lines, 1)
    assert len(reader.tail) == 1024 * 1024


def test_md03_flood_of_comments_and_unknown_fields() -> None:
    reader = FrameReader()
    lines = b": ka\nfoo: bar\n" * 10_000
    # A server is free to send a large event; only the comment before it is delivered.
    assert flood(reader, lines, 100) == 1
    assert len(reader.tail) == 100 * len(lines) - len(b": ka\n")
    with pytest.raises(FrameTooLarge):
        flood(reader, lines, 20)
