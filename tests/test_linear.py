"""The cost of reading grows with the input and no faster, on a count of steps instead of a clock.

The proof that the count would notice stands below: readers with one quadratic habit each. Time is
deliberately never measured here.
"""

from __future__ import annotations

import pytest

from benchmarks.steps import (
    MAX_RATIO,
    SHAPES,
    Counter,
    Shape,
    frames_source,
    ratio,
    rewritten,
    run,
    size,
)
from sse_machines import FrameReader

LONG_LINE = Shape("one long line", b"data: ", b"x", b"\n\n", 64)

READER = """
class FrameReader:
    def __init__(self):
        self.kept = {empty}

    def feed(self, data):
        {habit}

    def next_frame(self):
        return None
"""

QUADRATIC = {
    "concatenate": ("b''", "self.kept = self.kept + data"),
    "concatenate in place": ("b''", "self.kept += data"),
    "split": ("bytearray()", "self.kept += data; self.kept.split(b'\\n\\n')"),
    "find": ("bytearray()", "self.kept += data; self.kept.find(b'\\n\\n')"),
    "in": ("bytearray()", "self.kept += data; b'\\n\\n' in self.kept"),
    "not in": ("bytearray()", "self.kept += data; b'\\n\\n' not in self.kept"),
    "slice": ("bytearray()", "self.kept += data; self.kept[1:]"),
    "copy": ("bytearray()", "self.kept += data; bytes(self.kept)"),
    "copy by keyword": ("bytearray()", "self.kept += data; dict(kept=self.kept)"),
    "join": ("[]", "self.kept.append(data); b''.join(self.kept)"),
    "reverse": ("[]", "self.kept.append(data); self.kept.reverse()"),
}

LINEAR = {
    "grow": ("bytearray()", "self.kept += data"),
    "look at the length": (
        "bytearray()",
        "self.kept += data; len(self.kept); isinstance(self.kept, bytes)",
    ),
    "collect": ("[]", "self.kept.append(data)"),
    "collect in place": ("[]", "self.kept += [data]"),
    "push and pop": ("[]", "self.kept.extend([data, data]); self.kept.pop()"),
    "search what is new": (
        "bytearray()",
        "data.find(b'\\n'); b'\\n' in data; data[1:]; self.kept += data",
    ),
}


def source(habit: tuple[str, str]) -> str:
    empty, body = habit
    return READER.format(empty=empty, habit=body)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_double_input_costs_double(shape: Shape) -> None:
    assert ratio(frames_source(), shape) <= MAX_RATIO


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_the_rewritten_reader_reads_the_same(shape: Shape) -> None:
    reader = FrameReader()
    frames = 0
    for piece in shape.pieces(1000):
        reader.feed(piece)
        frames += 0 if shape.late else len(list(iter(reader.next_frame, None)))
    frames += len(list(iter(reader.next_frame, None)))

    assert frames > 0
    assert run(frames_source(), shape, 1000).frames == frames


@pytest.mark.parametrize("habit", QUADRATIC.values(), ids=QUADRATIC.keys())
def test_a_quadratic_reader_is_noticed(habit: tuple[str, str]) -> None:
    assert ratio(source(habit), LONG_LINE) > MAX_RATIO


@pytest.mark.parametrize("habit", LINEAR.values(), ids=LINEAR.keys())
def test_a_linear_reader_is_not_blamed(habit: tuple[str, str]) -> None:
    assert ratio(source(habit), LONG_LINE) == pytest.approx(2, abs=0.1)


def test_a_real_quadratic_reader_is_noticed_in_the_same_shapes() -> None:
    naive = """
class FrameReader:
    def __init__(self):
        self.buffer = b""
        self.found = []

    def feed(self, data):
        self.buffer = self.buffer + data
        *blocks, self.buffer = self.buffer.split(b"\\n\\n")
        self.found += blocks

    def next_frame(self):
        return self.found.pop() if self.found else None
"""
    noticed = [shape.name for shape in SHAPES if ratio(naive, shape) > MAX_RATIO]

    # Only what has a blank line in every few bytes is cheap for it.
    assert noticed == [shape.name for shape in SHAPES if shape.name != "many events, all fed first"]


@pytest.mark.parametrize(
    "shape",
    [shape for shape in SHAPES if shape.name.startswith(("one long line, 1 B", "CR only, one"))],
    ids=lambda shape: shape.name,
)
def test_one_copy_a_piece_in_the_real_reader_is_noticed(shape: Shape) -> None:
    wasteful = """
class Wasteful(FrameReader):
    def next_frame(self):
        self.tail
        return Reader.next_frame(self)

Reader, FrameReader = FrameReader, Wasteful
"""
    assert ratio(frames_source() + wasteful, shape) > MAX_RATIO


@pytest.mark.parametrize("habit", ["del self.kept[:1]", "self.kept[:1] = b''"])
def test_what_cannot_be_counted_is_refused(habit: str) -> None:
    with pytest.raises(NotImplementedError, match="line 7"):
        rewritten(source(("bytearray()", habit)), Counter())


def test_what_is_not_counted_is_left_as_it_is() -> None:
    module = rewritten("x = 7\nx -= 1\ny = [x * 2, 1 < x < 9, x == 6][0]", Counter())

    assert vars(module)["y"] == 12


def test_size_of_nested_texts() -> None:
    assert size([b"ab", ("c", None), bytearray(3)]) == 3 + 2 + (2 + 1) + 3
