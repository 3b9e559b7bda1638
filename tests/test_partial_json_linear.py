"""The cost of a partial value grows with the text and no faster, on a count of steps.

The counter is that of the frame reader's benchmark: it sees calls, ``+``, ``+=``, slices and ``in``, and
counts the characters that they may touch. It cannot see that CPython grows a string in place, and counts
the whole of it at each ``+=``. So the one shape with a long string whose value is looked at after each
piece is left out here: of that one, the memory is watched. Time is deliberately never measured.
"""

from __future__ import annotations

import inspect
import subprocess
import sys
from typing import Any, NamedTuple, cast

import pytest

from benchmarks.steps import Counter, rewritten
from sse_machines import partial_json
from sse_machines._payload import loads

# Traced code does not grow strings in place; and no line of the package is reached here alone.
pytestmark = pytest.mark.untraced

TIMES = 4
MAX_RATIO = 4.4
"""Most that the fourfold text may cost: 16 is quadratic, and the 0.4 is for what is paid once."""

# A rewritten super() does not find its class.
SOURCE = inspect.getsource(partial_json).replace("super().__init__(", "ValueError.__init__(self, ")


class ByReference(Counter):
    """Knows that it costs the same to put anything on a stack, even a list that has grown."""

    def method(self, owner: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        if isinstance(owner, list) and (name == "append" or (name == "pop" and not args)):
            self.total += 1
            return getattr(owner, name)(*args)
        return super().method(owner, name, *args, **kwargs)


class Shape(NamedTuple):
    """A text of any length, and how it is cut."""

    name: str
    head: str
    unit: str
    end: str
    piece: int = 20

    def pieces(self, length: int) -> list[str]:
        text = self.head + self.unit * (length // len(self.unit)) + self.end
        return [text[start : start + self.piece] for start in range(0, len(text), self.piece)]


class Mixed(Shape):
    """Half of it is one long string."""

    def pieces(self, length: int) -> list[str]:
        string = Shape("", '{"a": "', "some words ", '", "b": [', self.piece).pieces(length // 2)
        return string + super().pieces(length // 2)


OBJECT = '{"id": 17, "ok": true, "to": "x y", "at": [-1.5e3, null]}, '
STRINGS = (
    Shape("long string", '{"a": "', "some words ", '"}'),
    Shape("long string, 1-character pieces", '{"a": "', "some words ", '"}', 1),
    Shape("escapes", '{"a": "', 'def f():\\n\\treturn \\"\\u00e9\\"', '"}'),
    Shape("escapes, 1-character pieces", '{"a": "', "\\n\\ud83d\\ude00\\ud83d", '"}', 1),
    Mixed("half a long string, half small objects", "", OBJECT, "0]}"),
)
SMALL = (
    Shape("small objects", "[", OBJECT, "0]"),
    Shape("small objects, 1-character pieces", "[", OBJECT, "0]", 1),
    Shape("members", "{", '"same": 1, ', '"z": 0}'),
    Shape("numbers", "[", "123,", "0]"),
    Shape("strings", "[", '"abc", "d\\n", ', "0]"),
    Shape("deep nesting, again and again", "[", "[" * 100 + "]" * 100 + ",", "0]"),
    Shape("digits", "[0.", "123", "]"),
    Shape("digits, 1-character pieces", "[0.", "123", "]", 1),
    Shape("digits of an exponent", "[1e-", "0", "1]"),
    Shape("white space", "[", " \n\t", "0]"),
    Shape("white space, 1-character pieces", '{"a"', " ", ":0}", 1),
    Shape("a long key", '{"', "some words ", '": 0}'),
    Shape("a long key, 1-character pieces", '{"', "some \\n words ", '": 0}', 1),
)
REFUSED = Shape("an integer of too many digits", "", "1", "", 1)
LOOKS = pytest.mark.parametrize("look", [False, True], ids=["feed", "feed and value"])
EARLY = pytest.mark.parametrize("early", [False, True], ids=["certain", "early"])


def named(shape: Shape) -> str:
    return shape.name


def length_of(shape: Shape) -> int:
    return 1500 if shape.piece == 1 else 5000


def run(source: str, pieces: list[str], *, look: bool, early: bool = False) -> tuple[int, Any]:
    """Count the steps of feeding all pieces.

    Args:
        source: A module with a ``PartialJSON``.
        pieces: What it is fed.
        look: Whether its value is asked for after each piece.
        early: Whether it shows scalars early.
    """
    counter = ByReference()
    partial = cast("Any", rewritten(source, counter)).PartialJSON(early_scalars=early)
    counter.total = 0
    for piece in pieces:
        partial.feed(piece)
        if look:
            assert partial.value is not partial
    partial.feed_eof()
    return counter.total, partial.value


def ratio(source: str, shape: Shape, *, look: bool, early: bool = False) -> float:
    """How much more the fourfold text costs."""
    length = length_of(shape)
    once, _ = run(source, shape.pieces(length), look=look, early=early)
    often, _ = run(source, shape.pieces(TIMES * length), look=look, early=early)
    return often / once


@EARLY
@pytest.mark.parametrize("shape", [*STRINGS, *SMALL, REFUSED], ids=named)
def test_feeding_is_linear(shape: Shape, early: bool) -> None:
    assert ratio(SOURCE, shape, look=False, early=early) <= MAX_RATIO


@EARLY
@pytest.mark.parametrize("shape", [*SMALL, REFUSED], ids=named)
def test_looking_at_the_value_is_linear(shape: Shape, early: bool) -> None:
    assert ratio(SOURCE, shape, look=True, early=early) <= MAX_RATIO


@pytest.mark.parametrize("shape", [*STRINGS, *SMALL], ids=named)
def test_the_rewritten_reader_reads_the_same(shape: Shape) -> None:
    pieces = shape.pieces(1000)
    steps, value = run(SOURCE, pieces, look=True)
    assert value == loads("".join(pieces))
    assert steps > 1000


NAIVE = """
from ._payload import loads

class PartialJSON:
    def __init__(self, early_scalars):
        self.text = ""
        self.value = None

    def feed(self, text):
        self.text = self.text + text
        {parse}

    def feed_eof(self):
        self.value = loads(self.text)
"""
PARSES = {
    "parse again": "[loads('\"' + 'x' * len(self.text) + '\"')]",
    "keep the text": "pass",
}


@pytest.mark.parametrize("parse", PARSES.values(), ids=PARSES.keys())
@pytest.mark.parametrize("shape", [*STRINGS, *SMALL], ids=named)
def test_a_quadratic_reader_is_noticed(shape: Shape, parse: str) -> None:
    assert ratio(NAIVE.format(parse=parse), shape, look=False) > MAX_RATIO


WASTEFUL = """

class Wasteful(PartialJSON):
    def feed(self, text):
        changes = Reader.feed(self, text)
        {habit}
        return changes

    def _kept(self):
        self.__dict__.setdefault("kept", []).append("")
        return self.kept

Reader, PartialJSON = PartialJSON, Wasteful
"""


@pytest.mark.parametrize(
    ("habit", "shape"),
    [
        ("self.value", "long string"),
        ("self.value", "long string, 1-character pieces"),
        ("self.value", "escapes"),
        ("self.value", "half a long string, half small objects"),
        ("''.join(self._parts)", "digits"),
        ("''.join(self._parts)", "digits, 1-character pieces"),
        ("''.join(self._parts)", "a long key"),
        ("list(self.value)", "small objects"),
        ("list(self.value)", "numbers"),
        ("self._root[0][:]", "strings"),
        ("list(self._kept())", "white space"),
        ("list(self._kept())", "deep nesting, again and again"),
    ],
)
def test_one_such_habit_in_the_real_reader_is_noticed(habit: str, shape: str) -> None:
    (found,) = (each for each in (*STRINGS, *SMALL) if each.name == shape)
    assert ratio(SOURCE + WASTEFUL.format(habit=habit), found, look=False) > MAX_RATIO


LOOKED_AT = """
import tracemalloc
from sse_machines.partial_json import PartialJSON

def grow(rounds):
    for _ in range(rounds):
        partial.feed("twenty characters, ok")
        partial.value

partial = PartialJSON()
partial.feed('["' + "x" * 1_000_000)
# Interpreters find out only after some rounds what a "+=" adds.
grow(100)
tracemalloc.start()
grow(1000)
print(len(partial.value[0]), tracemalloc.get_traced_memory()[1])
"""


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="others copy, or have ropes")
def test_a_long_string_is_not_copied_when_its_value_is_looked_at() -> None:
    # In a process of its own: an interpreter that has been traced for coverage copies.
    run = subprocess.run([sys.executable, "-c", LOOKED_AT], capture_output=True, text=True, check=True)
    length, peak = map(int, run.stdout.split())
    assert length == 1_023_100
    # Once is the string itself, twice is a copy of it.
    assert peak < 1_500_000
