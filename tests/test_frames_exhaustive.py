"""Every short input and many cuts of it, against the reference.

Strings of up to `ALL_CUTS_UP_TO` tokens are read under every set of cuts between tokens. Strings of
one token more (46,656 of them) are read whole, token by token, byte by byte, and under every single
cut: all their 1.5 million cuts take a minute longer and are for a long run, with that number raised.
The slow path alone gets strings that are one shorter: what is left of it is part of the other runs.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import pytest

from sse_machines import Frame, FrameReader, _frames

from . import reference

# Being traced makes this three times slower, and the tests of the single rules reach every line.
pytestmark = pytest.mark.untraced

ALL_CUTS_UP_TO = 5
BOM = b"\xef\xbb\xbf"
TOKENS = (b"\r", b"\n", b":", b"data", b" ", BOM)
# Of these, many blocks are made that the fast path takes in one piece.
PIECES = (
    b"event: a\n",
    b"event:\n",
    b"event:  x\n",
    b"data: x\n",
    b"data:y\n",
    b"data: \n",
    b"\n",
    b"\r\n",
    b"data: x\r\n",
    b": c\n",
    b"id: 1\n",
)
NO_FAST_PATH = 5_000
"""A limit too small for the fast path, and too large for any input here."""

Chunks = tuple[bytes, ...]
NO_FIELDS = Frame(b"")[1:]


class Outcome(NamedTuple):
    """What must not depend on the cuts: fields of the frames that have any, and what is held.

    The bytes of each frame may: an LF whose CR ended a block and a chunk is a frame of its own.
    """

    fields: list[tuple[Any, ...]]
    tail: bytes
    last_event_id: str


def read(reader: FrameReader, chunks: Iterable[bytes]) -> list[Frame]:
    frames: list[Frame] = []
    for chunk in chunks:
        reader.feed(chunk)
        frames += iter(reader.next_frame, None)
    return frames


def outcome(reader: FrameReader, frames: list[Frame]) -> Outcome:
    fields = [frame[1:] for frame in frames if frame[1:] != NO_FIELDS]
    return Outcome(fields, reader.tail, reader.last_event_id)


parse_again = functools.cache(Frame.parse)


@functools.cache
def check_whole(stream: bytes) -> Outcome:
    """Compare with the reference; what comes back is what every cut has to come to."""
    reader = FrameReader()
    frames = read(reader, [stream])
    assert b"".join(frame.raw for frame in frames) + reader.tail == stream
    assert [parse_again(frame.raw) for frame in frames] == frames
    reading = reference.reading_of(frames, reader.tail)
    assert reading == reference.parse(stream)
    assert reader.last_event_id == reading.last_event_id
    assert reader.bom == stream.startswith(BOM)
    return outcome(reader, frames)


def check_cut(stream: bytes, chunks: Iterable[bytes], want: Outcome, limit: int | None = None) -> None:
    reader = FrameReader(max_event_size=limit)
    frames = read(reader, chunks)
    assert outcome(reader, frames) == want, chunks
    assert b"".join([frame.raw for frame in frames]) + want.tail == stream, chunks


def check_steps(chunks: Iterable[bytes], wants: dict[bytes, Outcome], limit: int | None = None) -> None:
    """Compare after each chunk: nothing may come later than it can."""
    reader = FrameReader(max_event_size=limit)
    fed = b""
    frames: list[Frame] = []
    for chunk in chunks:
        fed += chunk
        frames += read(reader, [chunk])
        want = wants.get(fed)
        if want is not None:
            assert outcome(reader, frames) == want, chunks
            assert b"".join([frame.raw for frame in frames]) + want.tail == fed


def bytes_of(stream: bytes) -> Chunks:
    return tuple(stream[i : i + 1] for i in range(len(stream)))


def strings(tokens: Chunks, longest: int) -> Iterator[Chunks]:
    """All strings, shorter ones first."""
    for length in range(1, longest + 1):
        yield from itertools.product(tokens, repeat=length)


def all_cuts(string: Chunks) -> Iterator[Chunks]:
    """A string under all sets of cuts but the empty and the full one, which are tested anyway."""
    places = range(1, len(string))
    for count in range(1, len(places)):
        for cuts in itertools.combinations(places, count):
            edges = (0, *cuts, len(string))
            yield tuple(b"".join(string[a:b]) for a, b in itertools.pairwise(edges))


def single_cuts(string: Chunks) -> Iterator[Chunks]:
    for cut in range(1, len(string)):
        yield b"".join(string[:cut]), b"".join(string[cut:])


@pytest.mark.parametrize(
    ("limit", "longest"), [(None, ALL_CUTS_UP_TO + 1), (NO_FAST_PATH, ALL_CUTS_UP_TO)]
)
def test_every_string_under_every_cut(limit: int | None, longest: int) -> None:
    wants: dict[bytes, Outcome] = {}
    for string in strings(TOKENS, longest):
        stream = b"".join(string)
        want = wants[stream] = check_whole(stream)
        check_steps(string, wants, limit)
        check_steps(bytes_of(stream), wants, limit)
        check_cut(stream, [stream], want, limit)
        for chunks in all_cuts(string) if len(string) <= ALL_CUTS_UP_TO else single_cuts(string):
            check_cut(stream, chunks, want, limit)
    assert len(wants) == sum(6**n for n in range(1, longest + 1))


def test_every_cut_inside_tokens_of_short_strings() -> None:
    for string in strings(TOKENS, 3):
        stream = b"".join(string)
        want = check_whole(stream)
        for chunks in all_cuts(bytes_of(stream)):
            check_cut(stream, chunks, want)


@pytest.mark.parametrize(("limit", "longest"), [(None, 4), (NO_FAST_PATH, 3)])
def test_every_string_of_lines(limit: int | None, longest: int) -> None:
    wants: dict[bytes, Outcome] = {}
    for string in strings(PIECES, longest):
        stream = b"".join(string)
        want = wants[stream] = check_whole(stream)
        check_steps(bytes_of(stream), wants, limit)
        check_cut(stream, [stream], want, limit)
        for chunks in single_cuts(bytes_of(stream)):
            check_cut(stream, chunks, want, limit)


@pytest.mark.parametrize(("window", "carry"), [(5, 3), (16, 8), (16, 20)])
def test_every_string_of_lines_in_small_windows(
    window: int, carry: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inside of one chunk, edges of windows are cuts too, and a carry can get too long anywhere."""
    wants = {b"".join(string): check_whole(b"".join(string)) for string in strings(PIECES, 4)}
    monkeypatch.setattr(_frames, "_WINDOW", window)
    monkeypatch.setattr(_frames, "_CARRY", carry)
    for stream, want in wants.items():
        check_cut(stream, [stream], want)
        check_cut(stream, [stream[:9], stream[9:]], want)
        check_cut(stream, [stream[:-3], stream[-3:]], want)
