"""FrameReader and Frame: what the vectors and the exhaustive tests do not reach."""

from __future__ import annotations

import copy
import itertools
import pickle
import re
import tracemalloc
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given, settings, strategies as st

from sse_machines import Frame, FrameReader, FrameTooLarge, LocalProtocolError

from . import reference

BOM = b"\xef\xbb\xbf"
# Something of everything, short enough to be cut everywhere.
TRICKY = (
    BOM
    + b"data: a\r\n\r\n: c\r\rid: 7\rretry: 5\n:in\nevent:e\ndata\n\n\r\nevent: x\ndata: {}\n\n"
    + "data: é\ndata:\ud7ff\n\nfoo: 1\nid\n\ndata: cut".encode()
)


def read(reader: FrameReader, chunks: Iterable[bytes]) -> list[Frame]:
    frames: list[Frame] = []
    for chunk in chunks:
        reader.feed(chunk)
        frames += iter(reader.next_frame, None)
    return frames


def pieces(stream: bytes, size: int) -> list[bytes]:
    return [stream[i : i + size] for i in range(0, len(stream), size)]


def cut_at(stream: bytes, cuts: Iterable[int]) -> list[bytes]:
    edges = [0, *sorted(cuts), len(stream)]
    return [stream[a:b] for a, b in itertools.pairwise(edges)]


def whole_lines(frames: Iterable[Frame]) -> list[Frame]:
    """Frames as no cut can change them.

    An LF whose CR ended both a block and a chunk is a frame of its own; otherwise it belongs to CR.
    """
    stripped = [frame._replace(raw=frame.raw.rstrip(b"\r\n")) for frame in frames]
    return [frame for frame in stripped if frame.raw]


def check(stream: bytes, chunks: Iterable[bytes], want: list[Frame] | None = None) -> list[Frame]:
    """Read chunks that make up a stream and compare with the reference and, if given, with frames."""
    reader = FrameReader(max_event_size=None)
    frames = read(reader, chunks)
    assert b"".join(frame.raw for frame in frames) + reader.tail == stream
    assert all(type(frame) is Frame and len(frame) == 6 for frame in frames)
    assert reference.reading_of(frames, reader.tail) == reference.parse(stream)
    if want is not None:
        assert whole_lines(frames) == whole_lines(want)
    return frames


class TestByteOrderMark:
    def test_is_a_frame_of_its_own(self) -> None:
        reader = FrameReader()
        assert read(reader, [BOM]) == [Frame(BOM)]
        assert reader.bom
        assert reader.at_boundary
        assert read(reader, [b"data: a\n\n"]) == [Frame(b"data: a\n\n", data="a")]

    def test_stands_at_the_start_only(self) -> None:
        reader = FrameReader()
        assert not reader.bom
        assert read(reader, [b"\n" + BOM + b"data: a\n\n"])[1].data is None
        assert not reader.bom

    def test_second_one_is_text(self) -> None:
        reader = FrameReader()
        frames = read(reader, [BOM + BOM + b"data: a\n\n"])
        assert [frame.raw for frame in frames] == [BOM, BOM + b"data: a\n\n"]
        assert frames[1].lines == [("\ufeffdata", "a")]

    @pytest.mark.parametrize("part", [BOM[:1], BOM[:2]])
    def test_part_of_one_at_the_end_is_an_unfinished_line(self, part: bytes) -> None:
        reader = FrameReader()
        assert read(reader, [part[:1], part[1:]]) == []
        reader.feed_eof()
        assert reader.next_frame() is None
        assert not reader.bom
        assert not reader.at_boundary
        assert reader.tail == part
        assert reader.unfinished == Frame(part)

    @pytest.mark.parametrize("part", [BOM[:1], BOM[:2]])
    def test_part_of_one_is_text(self, part: bytes) -> None:
        reader = FrameReader()
        assert read(reader, [part, b"\ndata: a\n\n"]) == [Frame(part + b"\ndata: a\n\n", data="a")]
        assert not reader.bom


class TestFeeding:
    def test_empty_chunks_are_no_end(self) -> None:
        chunks = [b"", b"data: a\r", b"", b"", b"\n\r", b"", b"\n", b""]
        assert read(FrameReader(), chunks) == [Frame(b"data: a\r\n\r", data="a"), Frame(b"\n")]

    def test_cr_ends_a_line_at_once(self) -> None:
        assert read(FrameReader(), [b"data: a\r\r"]) == [Frame(b"data: a\r\r", data="a")]
        assert read(FrameReader(), [b"data: a\n\r"]) == [Frame(b"data: a\n\r", data="a")]
        assert read(FrameReader(), [b": c\r"]) == [Frame(b": c\r", comments=(" c",))]

    def test_lf_after_a_cr_at_a_chunk_end(self) -> None:
        reader = FrameReader()
        assert read(reader, [b"data: a\r", b"\n"]) == []
        assert reader.tail == b"data: a\r\n"
        assert read(reader, [b"data: b\r", b"\n\r", b"\ndata: c\n\n"]) == [
            Frame(b"data: a\r\ndata: b\r\n\r", data="a\nb"),
            Frame(b"\n"),
            Frame(b"data: c\n\n", data="c"),
        ]

    def test_only_one_lf_belongs_to_the_cr(self) -> None:
        frames = read(FrameReader(), [b"data: a\r", b"\n\n", b"\n"])
        assert frames == [Frame(b"data: a\r\n\n", data="a"), Frame(b"\n")]

    def test_after_the_end(self) -> None:
        reader = FrameReader()
        reader.feed(b"data: a\n\ndata: b")
        reader.feed_eof()
        reader.feed_eof()
        with pytest.raises(LocalProtocolError) as caught:
            reader.feed(b"\n\n")
        assert caught.value.code == "feed_after_eof"
        assert reader.next_frame() == Frame(b"data: a\n\n", data="a")
        assert reader.next_frame() is None
        assert reader.tail == b"data: b"

    @pytest.mark.parametrize("kind", [bytearray, memoryview])
    def test_other_kinds_of_bytes(self, kind: Callable[[bytes], bytearray | memoryview]) -> None:
        reader = FrameReader()
        frames: list[Frame] = []
        for i in range(len(TRICKY)):
            reader.feed(kind(TRICKY[i : i + 1]))
            frames += iter(reader.next_frame, None)
        assert frames == read(FrameReader(), pieces(TRICKY, 1))
        assert all(type(frame.raw) is bytes for frame in frames)

    def test_callers_may_use_their_buffer_again(self) -> None:
        reader = FrameReader()
        buffer = bytearray(b"data: a\n")
        for _ in range(3):
            reader.feed(memoryview(buffer))
        buffer[:] = b"forged!!"
        reader.feed(b"\n")
        assert reader.next_frame() == Frame(b"data: a\n" * 3 + b"\n", data="a\na\na")

    def test_chunks_can_wait(self) -> None:
        waiting = FrameReader()
        for chunk in pieces(TRICKY, 1):
            waiting.feed(chunk)
        assert waiting.tail == TRICKY
        assert read(waiting, []) == []
        assert whole_lines(iter(waiting.next_frame, None)) == whole_lines(read(FrameReader(), [TRICKY]))


class TestWhatIsHeld:
    # input, tail, what would have been
    CASES = (
        (b"", b"", None),
        (b"data: a\n\n", b"", None),
        (b"data: a", b"data: a", Frame(b"data: a", data="a")),
        (b"data: a\n", b"data: a\n", Frame(b"data: a\n", data="a")),
        (b"data: a\r", b"data: a\r", Frame(b"data: a\r", data="a")),
        (b"data: a\r\n", b"data: a\r\n", Frame(b"data: a\r\n", data="a")),
        (b"data: a\r\n\r", b"", None),
        (b": c\n", b"", None),
        (b": c", b": c", Frame(b": c", comments=(" c",))),
        (b"\n\r\n\r", b"", None),
        (b"x\n: c\n", b"x\n: c\n", Frame(b"x\n: c\n", comments=(" c",))),
        (b"data: a\n\nid: 1\nret", b"id: 1\nret", Frame(b"id: 1\nret", id="1")),
        (BOM, b"", None),
        (BOM + b"data", b"data", Frame(b"data", data="")),
        (b"data: " + b"x" * 600, b"data: " + b"x" * 600, Frame(b"data: " + b"x" * 600, data="x" * 600)),
        (
            b"event: e\ndata: \xf0\x9f",
            b"event: e\ndata: \xf0\x9f",
            Frame(b"event: e\ndata: \xf0\x9f", "e", "\ufffd"),
        ),
    )

    @pytest.mark.parametrize(("stream", "tail", "unfinished"), CASES)
    @pytest.mark.parametrize("size", [1, 4, 10_000])
    def test_between_chunks(
        self, stream: bytes, tail: bytes, unfinished: Frame | None, size: int
    ) -> None:
        reader = FrameReader()
        read(reader, pieces(stream, size))
        assert reader.tail == tail
        assert reader.at_boundary == (tail == b"")
        assert reader.unfinished == unfinished

    def test_frames_not_taken_are_held(self) -> None:
        reader = FrameReader()
        stream = b"data: a\n\n: c\ndata: b\n\nid: 1\n\ndata: c"
        reader.feed(stream)
        assert reader.tail == stream
        taken = b""
        for frame in iter(reader.next_frame, None):
            taken += frame.raw
            assert taken + reader.tail == stream
            assert not reader.at_boundary

    def test_looking_changes_nothing(self) -> None:
        reader = FrameReader()
        frames: list[Frame] = []
        for byte in pieces(TRICKY, 1):
            reader.feed(byte)
            held = reader.tail
            assert (reader.unfinished is None) == reader.at_boundary
            assert reader.tail == held
            frames += iter(reader.next_frame, None)
        assert frames == read(FrameReader(), pieces(TRICKY, 1))

    def test_id_and_retry_follow_the_frames_taken(self) -> None:
        reader = FrameReader()
        reader.feed(b"id: 1\ndata: a\n\nretry: 5\n\ndata: b\n\nid\nretry: x\n\nid: 3\nretry: 6\n")
        seen = [(reader.last_event_id, reader.retry)]
        while reader.next_frame() is not None:
            seen.append((reader.last_event_id, reader.retry))
        assert seen == [("", None), ("1", None), ("1", 5), ("1", 5), ("", 5)]
        assert reader.unfinished == Frame(b"id: 3\nretry: 6\n", id="3", retry=6)


class TestFrame:
    def test_lines(self) -> None:
        raw = b": one\r\nid: 1\nX-foo:bar\rretry: no\nDATA\ndata:  x\n:\nid: a\0b\n\xff: \xfe\n\n"
        frame = Frame.parse(raw)
        assert frame.lines == [
            ("", " one"),
            ("id", "1"),
            ("X-foo", "bar"),
            ("retry", "no"),
            ("DATA", ""),
            ("data", " x"),
            ("", ""),
            ("id", "a\0b"),
            ("\ufffd", "\ufffd"),
        ]
        # A comment before all fields would have been a frame of its own.
        assert Frame.parse(raw.partition(b"\n")[2]) == Frame(
            raw.partition(b"\n")[2], data=" x", id="1", comments=("",)
        )

    @pytest.mark.parametrize("raw", [b"\n", b"\r", b"\r\n", BOM])
    def test_no_lines(self, raw: bytes) -> None:
        assert Frame.parse(raw) == Frame(raw)
        assert Frame(raw).lines == []

    def test_parse_keeps_an_event_apart_from_an_empty_one(self) -> None:
        assert Frame.parse(b"event:\ndata\n\n") == Frame(b"event:\ndata\n\n", "", "")
        assert Frame.parse(b"event: \ndata: \n\n") == Frame(b"event: \ndata: \n\n", "", "")
        assert Frame.parse(b"foo\n\n") == Frame(b"foo\n\n")

    def test_last_field_counts(self) -> None:
        raw = b"event: a\nid: 1\nretry: 1\nevent: b\nid: 2\nretry: 2\nid: \0\nretry: -1\n\n"
        assert Frame.parse(raw) == Frame(raw, "b", None, "2", 2)

    @pytest.mark.parametrize(
        "digits", ["", "+1", "1.0", " 1", "1 ", "\u0661", "\u00b2", "1_0", "1" * 641]
    )
    def test_no_reconnection_time(self, digits: str) -> None:
        assert Frame.parse(f"retry: {digits}\n\n".encode()).retry is None

    @pytest.mark.parametrize("digits", ["0", "007", "1" * 640])
    def test_reconnection_time(self, digits: str) -> None:
        assert Frame.parse(f"retry: {digits}\n\n".encode()).retry == int(digits)


class TestTakeBlocks:
    STREAM = b"data: a\n\nevent: e\ndata: b\n\nid: 1\nretry: 2\ndata: c\n\n: c\n\ndata: d\n\ndata: e"

    BLOCKS = (
        (b"data: a\n\n", b"", b"a", b""),
        (b"event: e\ndata: b\n\n", b"e", b"b", b""),
        Frame(b"id: 1\nretry: 2\ndata: c\n\n", data="c", id="1", retry=2),
        Frame(b": c\n", comments=(" c",)),
        Frame(b"\n"),
        Frame(b"data: d\n\n", data="d"),
    )

    def test_last_one_comes_first(self) -> None:
        reader = FrameReader()
        assert reader.take_blocks() == []
        reader.feed(self.STREAM)
        blocks = reader.take_blocks()
        assert blocks[::-1] == list(self.BLOCKS)
        assert [type(block) for block in blocks[::-1]] == [tuple, tuple, Frame, Frame, Frame, Frame]
        assert reader.take_blocks() == []
        assert reader.tail == b"data: e"

    def test_ids_are_left_to_the_caller(self) -> None:
        reader = FrameReader()
        reader.feed(self.STREAM)
        assert reader.take_blocks()
        assert (reader.last_event_id, reader.retry) == ("", None)

    def test_goes_on_after_next_frame(self) -> None:
        reader = FrameReader()
        reader.feed(self.STREAM)
        assert reader.next_frame() == Frame(b"data: a\n\n", data="a")
        assert reader.take_blocks()[::-1] == list(self.BLOCKS[1:])

    @pytest.mark.parametrize("size", [1, 7, 1000, 10_000_000])
    def test_same_as_one_at_a_time(self, size: int) -> None:
        stream = large_stream()[:100_000]
        reader = FrameReader()
        frames: list[Frame] = []
        for chunk in pieces(stream, size):
            reader.feed(chunk)
            while found := reader.take_blocks():
                frames += [
                    block if isinstance(block, Frame) else Frame.parse(block[0])
                    for block in reversed(found)
                ]
        assert frames == read(FrameReader(), pieces(stream, size))


def start_of_large_block(stream: bytes, limit: int) -> int | None:
    """Where the first block starts that needs more than ``limit`` bytes, line by line.

    The end of a line counts when another line follows.
    """
    start = len(BOM) if stream.startswith(BOM) else 0
    # A part of a byte-order mark is no line before the stream has ended.
    position = len(stream) if BOM.startswith(stream) else start
    bare = True
    for line, end in re.findall(rb"([^\r\n]*)(\r\n|\r|\n|\Z)", stream[position:]):
        position += len(line)
        if (line or end) and position - start > limit:
            return start
        position += len(end)
        bare = bare and line.startswith(b":")
        if not line or bare:
            start = position
            bare = True
    return None


def read_until_too_large(reader: FrameReader, chunks: Iterable[bytes]) -> tuple[list[Frame], bool]:
    frames: list[Frame] = []
    for chunk in chunks:
        reader.feed(chunk)
        try:
            frames += iter(reader.next_frame, None)
        except FrameTooLarge:
            return frames, True
    return frames, False


def check_limit(stream: bytes, limit: int, cuts: Iterable[list[bytes]]) -> bool:
    """Compare the verdict, and all frames before it, with what the lines of the stream alone say."""
    start = start_of_large_block(stream, limit)
    before = read(FrameReader(max_event_size=None), [stream[:start]])
    size = sum(len(frame.raw) for frame in before)
    assert start in (None, size)
    tails: set[bytes] = set()
    for chunks in cuts:
        reader = FrameReader(max_event_size=limit)
        frames, failed = read_until_too_large(reader, chunks)
        tails.add(reader.tail)
        assert failed == (start is not None), chunks
        assert sum(len(frame.raw) for frame in frames) == size, chunks
        assert whole_lines(frames) == whole_lines(before), chunks
    (tail,) = tails
    assert stream[size:].startswith(tail)
    assert len(tail) <= limit + 2 or start is None
    return start is not None


SMALL = (
    b"data: a\n\nevent: e\ndata: 12\n\n",
    b"data: a\r\n\r\nevent: e\r\ndata: 12\r\n\r\n",
    b"data: a\r\revent: e\rdata: 12\r\r",
    b": 12345678\ndata: a\n\n: 1\n: 2\n: 3\n: 4\n",
    b"data: a\n: 12345\n: 1\n\ndata: b\n\n",
    b"unknown: 1\nunknown: 2\n\ndata: a\n\n",
    b"data\ndata\ndata\ndata\n\ndata: a\n\n",
    b"id: 1\n\n\n\n\nretry: 12345\r\n\r\nid: 2\n\n",
    b"data: ends without a line end",
    b"data: a\n\ndata: b\n: ends with one\r\n",
    BOM + b"data: a\n\n" + BOM + b"data: a\n\n",
)


def block_of(size: int, kind: str) -> bytes:
    """A block that needs an exact number of bytes when the blank line comes."""
    start, unit, end = {
        "line": (b"", b"x", b"\n"),
        "crlf": (b"", b"x", b"\r\n"),
        "lines": (b"", b"x\ndata:", b"\n"),
        "comments": (b"data\n" + b":\n: c\n" * 3, b"x", b"\n"),
        "unknown": (b"", b"x\nfoo: ", b"\n"),
    }[kind]
    filling = start + b"data: " + unit * size
    return filling[: size - len(end) - 1] + b"x" + end


class TestLimit:
    @pytest.mark.parametrize("limit", range(1, 36))
    def test_small_ones_under_every_cut(self, limit: int) -> None:
        for stream in SMALL:
            one = [cut_at(stream, [cut]) for cut in range(len(stream) + 1)]
            two = [cut_at(stream, [cut, cut + 1]) for cut in range(len(stream))]
            check_limit(stream, limit, [pieces(stream, 1), *one, *two])

    @pytest.mark.parametrize("kind", ["line", "crlf", "lines", "comments", "unknown"])
    @pytest.mark.parametrize("limit", [600, 16_895, 16_896, 17_000, 33_000])
    @pytest.mark.parametrize("over", [-1, 0, 1, 2])
    def test_large_ones(self, limit: int, over: int, kind: str) -> None:
        plain = b"event: a\ndata: b\n\n" * 3
        block = block_of(limit + over, kind)
        stream = plain + block + b"\r\n" + plain
        end = len(plain) + len(block)
        sizes = (100, 512, 513, 16_384, len(plain), end, len(stream))
        places = (1, *range(len(plain) - 1, len(plain) + 2), *range(end - 3, end + 4))
        cuts = [
            *(pieces(stream, size) for size in sizes),
            *(cut_at(stream, [place]) for place in places),
        ]
        assert check_limit(stream, limit, cuts) == (over > 0)

    @pytest.mark.parametrize("limit", [600, 17_000])
    @pytest.mark.parametrize("line_end", [b"\n", b"\r", b"\r\n"])
    def test_exact_size(self, limit: int, line_end: bytes) -> None:
        line = b"data: " + b"x" * (limit - 6 - len(line_end))
        fits = line + line_end + line_end
        large = line + b"x" + line_end + line_end
        for size in (1, limit - 1, limit, limit + 1, len(large)):
            frame = read(FrameReader(max_event_size=limit), pieces(fits, size))[0]
            assert frame.data == "x" * (limit - 6 - len(line_end))
            reader = FrameReader(max_event_size=limit)
            assert read_until_too_large(reader, pieces(large, size)) == ([], True)

    @pytest.mark.parametrize("limit", [10, 17_000])
    def test_earlier_frames_are_out_first(self, limit: int) -> None:
        reader = FrameReader(max_event_size=limit)
        reader.feed(b"data: a\n\n: c\n" + b"data: " + b"x" * limit + b"\n\ndata: b\n\n")
        assert reader.next_frame() == Frame(b"data: a\n\n", data="a")
        assert reader.next_frame() == Frame(b": c\n", comments=(" c",))
        self.check_dead(reader, limit)
        reader.feed(b"\n\ndata: c\n\n")
        reader.feed_eof()
        self.check_dead(reader, limit)
        with pytest.raises(LocalProtocolError):
            reader.feed(b"")

    @pytest.mark.parametrize("limit", [10, 17_000])
    def test_take_blocks_gives_earlier_ones_first(self, limit: int) -> None:
        reader = FrameReader(max_event_size=limit)
        reader.feed(b"data: a\n\n: c\n" + b"data: " + b"x" * limit)
        assert [block[0] for block in reader.take_blocks()] == [b": c\n", b"data: a\n\n"]
        self.check_dead(reader, limit)

    def check_dead(self, reader: FrameReader, limit: int) -> None:
        for again in (reader, copy.copy(reader), pickle.loads(pickle.dumps(reader))):
            for take in (again.next_frame, again.take_blocks, again.next_frame):
                with pytest.raises(FrameTooLarge, match=str(limit)) as caught:
                    take()
                assert caught.value.limit == limit
                assert caught.value.code == "frame_too_large"

    @pytest.mark.parametrize("unit", [b"data:\n", b"x", b"x\r\n", b"foo\n", b"\xff"])
    @pytest.mark.parametrize("size", [20_001, 65_536])
    def test_memory_is_bounded(self, unit: bytes, size: int) -> None:
        limit = 1024 * 1024
        reader = FrameReader(max_event_size=limit)
        chunk = (b"data:\n" + unit * size)[:size]
        failed = False
        for fed in range(size, 4 * limit, size):
            frames, failed_now = read_until_too_large(reader, [chunk])
            assert frames == []
            assert failed_now or not failed
            failed = failed_now
            assert failed or fed <= limit + 2
            assert len(reader.tail) <= limit + size
        assert failed

    def test_comments_cost_no_more_than_their_bytes(self) -> None:
        """A string object for each of them would be many times as much."""
        reader = FrameReader()
        chunk = b": no\n" * 10_000
        reader.feed(b"data\n")
        tracemalloc.start()
        try:
            for _ in range(20):
                reader.feed(chunk)
                assert reader.next_frame() is None
            assert tracemalloc.get_traced_memory()[0] < 40 * len(chunk)
        finally:
            tracemalloc.stop()
        reader.feed(b"\n")
        frame = reader.next_frame()
        assert frame is not None
        assert frame.comments == (" no",) * 200_000

    def test_the_tail_of_a_large_one_is_its_beginning(self) -> None:
        reader = FrameReader(max_event_size=10)
        reader.feed(b"data: " + b"x" * 20_000)
        reader.feed(b"\n\ndata: b\n\n")
        with pytest.raises(FrameTooLarge):
            reader.next_frame()
        assert reader.tail == b"data: xxxx"

    def test_comments_between_all_line_ends(self) -> None:
        raw = b"data: a\r: b\r\n:c\n: d\n\n"
        assert Frame.parse(raw) == Frame(raw, data="a", comments=(" b", "c", " d"))

    def test_lines_that_deliver_something_never_add_up(self) -> None:
        reader = FrameReader(max_event_size=30)
        assert len(read(reader, [b": keep-alive\n" * 1000, b"\n" * 1000, b"data: x\n\n" * 1000])) == 3000

    def test_none_switches_it_off(self) -> None:
        size = 17 * 1024 * 1024
        stream = b"data: " + b"x" * size + b"\n\n"
        (frame,) = read(FrameReader(max_event_size=None), pieces(stream, 1024 * 1024))
        assert frame.data is not None
        assert len(frame.data) == size
        assert FrameReader().max_event_size == 16 * 1024 * 1024
        assert read_until_too_large(FrameReader(), pieces(stream, 1024 * 1024)) == ([], True)

    @pytest.mark.parametrize("limit", [0, -1])
    def test_bad_limit(self, limit: int) -> None:
        with pytest.raises(LocalProtocolError) as caught:
            FrameReader(max_event_size=limit)
        assert caught.value.code == "bad_limit"

    @given(st.data())
    @settings(max_examples=150, deadline=None)
    def test_same_verdict_under_random_cuts(self, data: st.DataObject) -> None:
        stream = data.draw(streams())
        limit = data.draw(st.integers(1, len(stream) + 2) | st.sampled_from([600, 16_896, 17_000]))
        check_limit(stream, limit, [data.draw(cuts_of(stream)), [stream]])


def by_pickle(reader: FrameReader) -> FrameReader:
    again: FrameReader = pickle.loads(pickle.dumps(reader))
    return again


class TestCopies:
    @pytest.mark.parametrize("make", [copy.copy, copy.deepcopy, by_pickle])
    @pytest.mark.parametrize("limit", [None, 1000])
    def test_go_on_identically(
        self, make: Callable[[FrameReader], FrameReader], limit: int | None
    ) -> None:
        want = read(FrameReader(max_event_size=limit), pieces(TRICKY, 1))
        for cut in range(len(TRICKY) + 1):
            reader = FrameReader(max_event_size=limit)
            frames = read(reader, pieces(TRICKY[:cut], 1))
            again = make(reader)
            for one in (reader, again):
                assert frames + read(one, pieces(TRICKY[cut:], 1)) == want
                assert one.tail == b"data: cut"
                assert (one.last_event_id, one.retry, one.bom) == ("", 5, True)
                assert one.max_event_size == limit

    @pytest.mark.parametrize("make", [copy.copy, copy.deepcopy, by_pickle])
    def test_share_nothing(self, make: Callable[[FrameReader], FrameReader]) -> None:
        for cut in range(len(TRICKY) + 1):
            reader = FrameReader()
            reader.feed(TRICKY[:cut])
            reader.next_frame()
            reader.feed(b"")
            again = make(reader)
            held = reader.tail
            read(again, [b"data: other\n\n\n\n", b"data: open"])
            assert reader.tail == held

    def test_of_one_that_ended(self) -> None:
        reader = FrameReader()
        reader.feed_eof()
        with pytest.raises(LocalProtocolError):
            by_pickle(reader).feed(b"x")


def large_stream() -> bytes:
    """Blocks of all kinds around the sizes at which the reader changes its ways."""
    plain = b"".join(b'event: e\ndata: {"n": %d}\n\n' % n for n in range(1500))
    sizes = (1, 100, 480, *range(495, 520), 900, 3000, 16_380, 16_384, 16_390, 17_000, 100_000)
    grown = b"".join(b"event: e\ndata: %b\n\n" % (b"x" * size) for size in sizes)
    mixed = b"".join(b"id: %d\ndata: %b\n: c\ndata\n\n: c\n" % (n, b"y" * n) for n in range(0, 1200, 37))
    broken = b"data: a\n\ndata: \xff\n\nevent: \xc3\ndata: b\n\n" * 20
    return (
        plain
        + grown
        + plain.replace(b"\n", b"\r\n")
        + mixed
        + broken
        + grown.replace(b"\n", b"\r")
        + plain
    )


class TestLargeInput:
    @pytest.mark.parametrize("size", [1, 3, 511, 512, 513, 1000, 16_383, 16_384, 16_385, 100_000])
    def test_chunks_do_not_matter(self, size: int) -> None:
        stream = large_stream()
        want = check(stream, [stream])
        assert len(want) > 4000
        check(stream, pieces(stream, size), want)

    def test_small_chunk_first(self) -> None:
        """Moves the edges of all windows, one byte a time."""
        stream = large_stream()[:50_000]
        want = check(stream, [stream])
        for cut in range(1, 40):
            check(stream, cut_at(stream, [cut]), want)

    def test_much_waits_while_frames_are_taken(self) -> None:
        stream = large_stream()
        reader = FrameReader()
        taken: list[Frame] = []
        for chunk in pieces(stream, 20_000):
            reader.feed(chunk)
            frame = reader.next_frame()
            taken += [] if frame is None else [frame]
        taken += iter(reader.next_frame, None)
        assert b"".join(frame.raw for frame in taken) + reader.tail == stream
        assert whole_lines(taken) == whole_lines(read(FrameReader(), [stream]))

    @pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
    @pytest.mark.parametrize("size", [*range(500, 516), 16_370, 16_384, 16_400])
    def test_a_block_grows_past_the_carry(self, size: int, line_end: bytes) -> None:
        block = b"event: e" + line_end + b"data: " + b"x" * size + line_end * 2
        stream = block * 2 + b"data: b" + line_end * 2
        want = check(stream, [stream])
        for cut in (1, size, size + 10, *range(len(block) - 4, len(block) + 4)):
            check(stream, cut_at(stream, [cut]), want)
            check(stream, pieces(stream, cut), want)


class TestInvalidUTF8:
    BAD = (
        b"\xff",
        b"\xc3",
        b"\xe2\x82",
        b"\xed\xa0\x80",
        b"\xf0\x9f\x98",
        b"\xf5\x80",
        b"\xc0\xaf",
        b"\xef\xbb",
    )

    @pytest.mark.parametrize("bad", BAD)
    @pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
    def test_in_plain_blocks_under_every_cut(self, bad: bytes, line_end: bytes) -> None:
        lines = [b"data: a", b"", b"event: " + bad, b"data: x" + bad + b"y", b"", b"data: b", b"", b""]
        stream = line_end.join(lines)
        want = check(stream, [stream])
        text = bad.decode("utf-8", "replace")
        assert [(frame.event, frame.data) for frame in want] == [
            (None, "a"),
            (text, f"x{text}y"),
            (None, "b"),
        ]
        check(stream, pieces(stream, 1), want)
        for cut in range(1, len(stream)):
            check(stream, cut_at(stream, [cut]), want)

    def test_characters_are_never_cut(self) -> None:
        stream = "event: é\ndata: 你😀\n\n".encode()
        for cut in range(1, len(stream)):
            assert check(stream, cut_at(stream, [cut])) == [Frame(stream, "é", "你😀")]


@st.composite
def cuts_of(draw: st.DrawFn, stream: bytes) -> list[bytes]:
    places = st.integers(0, len(stream))
    return cut_at(stream, draw(st.lists(places, max_size=12)))


def lines_of(
    names: st.SearchStrategy[bytes], values: st.SearchStrategy[bytes]
) -> st.SearchStrategy[bytes]:
    glue = st.sampled_from([b": ", b":", b":  ", b""])
    ends = st.sampled_from([b"\n", b"\n", b"\r\n", b"\r", b"\n\n", b"\r\n\r\n", b"\r\r", b""])
    return st.tuples(names, glue, values, ends).map(b"".join)


NAMES = st.sampled_from([b"data", b"data", b"event", b"id", b"retry", b"", b"foo", BOM])
# Long values by repetition: what matters about them is where they cross the carry and the windows.
LONG = st.tuples(st.sampled_from([b"x", b"\xc3\xa9", b"\xff"]), st.integers(450, 600)).map(
    lambda x: x[0] * x[1]
)
VALUES = st.binary(max_size=6) | st.sampled_from([b"", b"1", b"a", b"\0", b" "]) | LONG
PLAIN = st.tuples(
    st.sampled_from([b"", b"event: e\n", b"event:e\n"]),
    st.just(b"data: "),
    LONG | st.just(b"{}"),
    st.just(b"\n\n"),
).map(b"".join)


def streams() -> st.SearchStrategy[bytes]:
    block = PLAIN | PLAIN.map(lambda raw: raw.replace(b"\n", b"\r\n")) | lines_of(NAMES, VALUES)
    return st.lists(block, max_size=14).map(b"".join)


@pytest.mark.untraced
class TestAnyInput:
    @given(st.binary(max_size=200).flatmap(lambda s: st.tuples(st.just(s), cuts_of(s))))
    @settings(max_examples=300, deadline=None)
    def test_random_bytes(self, case: tuple[bytes, list[bytes]]) -> None:
        stream, chunks = case
        check(stream, chunks, check(stream, [stream]))

    @given(streams().flatmap(lambda s: st.tuples(st.just(s), cuts_of(s))))
    @settings(max_examples=300, deadline=None)
    def test_random_blocks(self, case: tuple[bytes, list[bytes]]) -> None:
        stream, chunks = case
        check(stream, chunks, check(stream, [stream]))

    @given(
        st.lists(st.sampled_from([b"\r", b"\n", b":", b" ", b"data", b"id", b"event", b"\xef", b"x"]))
    )
    @settings(max_examples=200, deadline=None)
    def test_random_tokens(self, tokens: list[bytes]) -> None:
        stream = b"".join(tokens)
        check(stream, tokens, check(stream, [stream]))
