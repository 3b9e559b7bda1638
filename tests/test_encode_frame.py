"""encode_frame: the bytes it writes, what it refuses, and that readers give back what was asked for."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from sse_machines import Frame, FrameReader, LocalProtocolError, encode_frame

from . import reference

CASES: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parent / "data" / "encoder_cases.jsonl").read_text("utf-8").splitlines()
]
WRITTEN = [case for case in CASES if "wire" in case["want"]]
REFUSED = [case for case in CASES if "error" in case["want"]]
TEXT = st.text(st.sampled_from("\n\ra: \0\u2028é\ud83d\ufeff") | st.characters(), max_size=12)
LINE = TEXT.filter(lambda text: not set("\r\n") & set(text) and not is_lone_surrogate(text))


def is_lone_surrogate(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def fields_of(case: dict[str, Any]) -> dict[str, Any]:
    """The arguments; bytes cannot stand in JSON."""
    return {
        name: base64.b64decode(value["bytes"]) if isinstance(value, dict) else value
        for name, value in case["fields"].items()
    }


def read(stream: bytes) -> list[Frame]:
    reader = FrameReader()
    reader.feed(stream)
    frames = list(iter(reader.next_frame, None))
    assert reader.at_boundary
    return frames


def fields_read(stream: bytes) -> dict[str, Any]:
    """All fields of what one call wrote, merged: a comment that stands first is a frame of its own."""
    found: dict[str, Any] = {}
    for frame in read(stream):
        names = ("event", "data", "id", "retry")
        found |= {name: value for name in names if (value := getattr(frame, name)) is not None}
        for comment in frame.comments:
            found["comment"] = comment
    return found


def test_no_case_is_missing() -> None:
    assert (len(WRITTEN), len(REFUSED), len(CASES)) == (55, 98, 153)
    assert len({case["name"] for case in CASES}) == 153


@pytest.mark.parametrize("case", WRITTEN, ids=lambda case: case["name"])
def test_written(case: dict[str, Any]) -> None:
    fields = fields_of(case)
    wire = encode_frame(**fields)
    assert wire == base64.b64decode(case["want"]["wire"])
    assert fields_read(wire) == fields
    reading = reference.parse(wire)
    event = reference.ReferenceEvent(
        fields.get("event") or "message", fields.get("data", ""), fields.get("id", "")
    )
    assert reading.events == ([event] if "data" in fields else [])
    assert reading.comments == ([fields["comment"]] if "comment" in fields else [])
    assert reading.retries == ([fields["retry"]] if "retry" in fields else [])
    assert not reading.unterminated_line
    assert not reading.pending_fields


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case["name"])
def test_refused(case: dict[str, Any]) -> None:
    with pytest.raises(LocalProtocolError) as caught:
        encode_frame(**fields_of(case))
    assert caught.value.code in ("bad_field", "no_data")


@pytest.mark.parametrize("name", ["data", "event", "id", "comment"])
@pytest.mark.parametrize("value", [b"x", bytearray(b"x"), 5, 1.5, True, ["x"], {"x": 1}])
def test_values_of_other_types(name: str, value: Any) -> None:
    fields = {"data": "x", name: value}
    with pytest.raises(LocalProtocolError) as caught:
        encode_frame(**fields)
    assert caught.value.code == "bad_field"


def test_errors_do_not_repeat_the_value() -> None:
    with pytest.raises(LocalProtocolError) as caught:
        encode_frame(data="x", event="secret\n" * 1000)
    assert "secret" not in str(caught.value)
    assert len(str(caught.value)) < 100


def test_codes() -> None:
    cases: list[dict[str, Any]] = [
        {},
        {"event": "e"},
        {"event": "e", "id": "1", "retry": 1, "comment": "c"},
    ]
    for fields in cases:
        with pytest.raises(LocalProtocolError) as caught:
            encode_frame(**fields)
        assert caught.value.code == "no_data"


def test_all_fields() -> None:
    wire = encode_frame(data="a\nb", event="e", id="1", retry=2, comment=" c")
    assert wire == b": c\nevent: e\nid: 1\nretry: 2\ndata: a\ndata: b\n\n"


@given(
    data=st.none() | TEXT,
    event=st.none() | TEXT,
    id=st.none() | TEXT,
    retry=st.none() | st.integers(-2, 10**20),
    comment=st.none() | TEXT,
)
@settings(max_examples=400, deadline=None)
def test_gives_back_or_refuses(
    data: str | None, event: str | None, id: str | None, retry: int | None, comment: str | None
) -> None:
    fields = {"data": data, "event": event, "id": id, "retry": retry, "comment": comment}
    given_fields = {name: value for name, value in fields.items() if value is not None}
    single = [text for text in (event, id, comment) if text is not None]
    texts = [*single, data or ""]
    sound = (
        all(not set("\r\n") & set(text) for text in single)
        and "\r" not in (data or "")
        and "\0" not in (id or "")
        and not any(is_lone_surrogate(text) for text in texts)
        and (retry is None or retry >= 0)
        and given_fields != {}
        and (event is None or data is not None)
    )
    try:
        wire = encode_frame(data=data, event=event, id=id, retry=retry, comment=comment)
    except LocalProtocolError:
        assert not sound
    else:
        assert sound
        assert fields_read(wire) == given_fields


@given(data=LINE, event=LINE, comment=LINE)
@settings(max_examples=200, deadline=None)
def test_sound_values_are_never_refused(data: str, event: str, comment: str) -> None:
    wire = encode_frame(data=data, event=event, comment=comment)
    assert fields_read(wire) == {"data": data, "event": event, "comment": comment}


LINES = st.sampled_from(
    [
        b"data: ",
        b"data:",
        b"event: ",
        b"event:",
        b"id: ",
        b"id",
        b"retry: 1",
        b"retry: 007",
        b":",
        b": ",
        b"foo",
    ]
)
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r", b"\n\n"])


@given(st.lists(st.tuples(LINES, st.binary(max_size=8), ENDS).map(b"".join), max_size=20))
@settings(max_examples=400, deadline=None)
def test_whatever_a_reader_gave_can_be_encoded(lines: list[bytes]) -> None:
    for frame in read(b"".join(lines) + b"\n\n"):
        event = None if frame.data is None else frame.event
        if (frame.data, frame.id, frame.retry) != (None, None, None):
            wire = encode_frame(data=frame.data, event=event, id=frame.id, retry=frame.retry)
            assert read(wire) == [Frame(wire, event, frame.data, frame.id, frame.retry)]
        for comment in frame.comments:
            wire = encode_frame(comment=comment)
            assert read(wire) == [Frame(wire[:-1], comments=(comment,)), Frame(b"\n")]
