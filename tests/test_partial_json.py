"""Partial values: right at every moment, and in the end what `loads` says, however the text is cut."""

from __future__ import annotations

import copy
import functools
import itertools
import json
import pickle
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given, settings, strategies as st

from sse_machines import LocalProtocolError
from sse_machines._payload import MAX_DEPTH, PayloadError, loads
from sse_machines.partial_json import Change, InvalidJSON, PartialJSON

VALID = [
    # Scalars at the top.
    "0",
    "-0",
    "7",
    "-7",
    "10",
    "1234567890",
    "0.0",
    "-0.0",
    "1.0",
    "1.50",
    "0.1e1",
    "1e5",
    "1E5",
    "1e+5",
    "1e-5",
    "1E+05",
    "-1.25E-07",
    "1e400",
    "-1e400",
    "1e-400",
    "0e0",
    "0E+0",
    "123456789012345678901234567890",
    "0.12345678901234567890123456789",
    "1" * 640,
    "1" * 641,
    "1" * 4300,
    "-" + "1" * 4300,
    "1" * 4301 + ".0",
    "1" * 4301 + "e0",
    "true",
    "false",
    "null",
    '""',
    '"a"',
    # Strings.
    '" "',
    '"  two  "',
    '"\u00e9"',
    '"\u4e2d\u6587"',
    '"\U0001f600"',
    '"\x7f\x80\x85\u2028\u2029\ufeff\uffff"',
    '"\ud800"',
    '"\udc00\ud800"',
    r'"\""',
    r'"\\"',
    r'"\\\\"',
    r'"\\\""',
    r'"\/\b\f\n\r\t"',
    r'"a\nb"',
    r'"\\n"',
    r'"\u0041"',
    r'"\u00e9\u00E9"',
    r'"\u0000"',
    r'"\u001f\u0022\u005c"',
    r'"\\u0041"',
    r'"\uFFFF\uffff"',
    r'"\ud83d\ude00"',
    r'"\uD83D\uDE00"',
    r'"a\ud83d\ude00b"',
    r'"\ud83d\ude00\ud83d\ude00"',
    r'"\ud83d"',
    r'"\ud83dx"',
    r'"\ude00"',
    r'"\ude00\ud83d"',
    r'"\ud83d\ud83d\ude00"',
    r'"\ud83d\ud83d\ud83d"',
    r'"\ud83d\u0041"',
    r'"\ud83d\n"',
    r'"\ud83d\\ude00"',
    r'"\\ud83d\ude00"',
    r'"\ud83d\uD7FF"',
    r'"\ud83d\uE000"',
    r'"\ud83d\ud900"',
    r'"\udbff\udfff"',
    r'"\ud800\udc00"',
    '"\\ud83d\ude00"',
    '"\ud83d\\ude00"',
    '"[{]}:,"',
    '"true"',
    '"' + "x" * 300 + '"',
    '"' + r"\n" * 205 + '"',
    # Arrays.
    "[]",
    "[ ]",
    "[1]",
    "[1,2]",
    "[1, 2, 3]",
    "[[]]",
    "[[],[]]",
    "[[[1],2],3]",
    "[true,false,null]",
    '["a","b"]',
    "[-1,0,1.5]",
    "[{}]",
    "[1 ]",
    "[ 1]",
    "[1 ,2]",
    "[1\n,\t2\r]",
    "[1e5]",
    "[1.0,1]",
    # Objects.
    "{}",
    "{ }",
    '{"a":1}',
    '{"a": 1, "b": 2}',
    '{ "a" : 1 , "b" : 2 }',
    '{"a":{"b":{"c":[]}}}',
    '{"":0}',
    '{"a":""}',
    r'{"\u0061":1}',
    r'{"\n\"":1,"\ud83d\ude00":2,"\ud83d":3}',
    '{"a":1,"a":2}',
    '{"a":"long","b":0,"a":"x"}',
    '{"a":[1],"a":{"a":1}}',
    '{"a":1,"\\u0061":[]}',
    '{"a":true,"a":true}',
    '{"a":{"b":1},"a":{}}',
    '{"a":null,"b":false,"c":true}',
    '{"a":"x","b":["y",{"c":"z"}]}',
    # White space.
    " 1",
    "1 ",
    "\n1\n",
    " \t\r\n[ \t\r\n1 \t\r\n] \t\r\n",
    '\t{\n"a"\r:\t1\n}\r',
    " true ",
    ' "a" ',
    " " * 300 + "1",
    # Depth.
    "[" * 128 + "]" * 128,
    '{"a":' * 128 + "1" + "}" * 128,
    "[" * 127 + '{"a":"[[["}' + "]" * 127,
    "[" + "[]," * 200 + "[]]",
    # As models send it.
    '{"path": "/etc/hosts", "edits": [{"old": "a\\n", "new": "b\\n"}, {"old": "", "new": "c"}]}',
    '{"command": "grep -n \\"x\\" *.py", "timeout": 30, "background": false}',
]

INVALID = [
    "",
    " ",
    "\n",
    # Byte-order mark, and white space that is none.
    "\ufeff1",
    "\ufeff",
    "\u00a01",
    "1\u00a0",
    "[1,\u20282]",
    "\x0b1",
    "[\x0c]",
    # Numbers.
    "-",
    "+1",
    "01",
    "00",
    "-01",
    "1.",
    ".1",
    "-.1",
    "1.e5",
    "1e",
    "1e+",
    "1e-",
    "1E",
    "1ee5",
    "1.2.3",
    "1e5.0",
    "1e5e5",
    "--1",
    "-a",
    "1a",
    "0x10",
    "1_000",
    "1,000",
    "\u0661",
    "1\u0661",
    "\uff11",
    "[1.\u0661]",
    "[1.]",
    "[-]",
    "[1e]",
    "[01]",
    "[1}",
    "{1}",
    '{"a":1]',
    '{"a":-}',
    "1 2",
    "[1 2]",
    "[1x]",
    '{"a":1x}',
    "1" * 4301,
    "[" + "1" * 4301 + "]",
    '{"a":-' + "1" * 4301 + "}",
    "1" * 4301 + " ",
    "1" * 4301 + "x",
    "1" * 5000 + ".",
    # Literals.
    "t",
    "tru",
    "trux",
    "truE",
    "True",
    "TRUE",
    "truee",
    "true1",
    "fals",
    "falze",
    "nul",
    "nulL",
    "None",
    "nulll",
    "NaN",
    "Infinity",
    "-Infinity",
    "[NaN]",
    "[-Infinity]",
    "[true false]",
    "[tx]",
    '{"a":nulx}',
    "undefined",
    # Strings.
    '"',
    '"a',
    "'a'",
    '"a\x00"',
    '"a\nb"',
    '"\t"',
    '"\x1f"',
    '"\\\'"',
    r'"\x41"',
    r'"\a"',
    r'"\0"',
    r'"\U0041"',
    r'"\u"',
    r'"\u1"',
    r'"\u12"',
    r'"\u123"',
    r'"\u123g"',
    r'"\u 123"',
    r'"\u-123"',
    r'"\u00',
    r'"\ud83d\ude0"',
    r'"\ud83d\udeg0"',
    r'"\ud83d\ud',
    r'"\ud83d\u"',
    r'"\ud83d\uX"',
    r'"\ud83d\x"',
    '"\\ud83d\n"',
    r'"\ud83d',
    r'"\ud83d\u0g"',
    r'"\ud83d\ud9g"',
    '"\\',
    '"\\"',
    '"\\\n"',
    '"\\\u0661"',
    r'"\u\u0661000"',
    '"a" "b"',
    '"a"b',
    # Arrays.
    "[",
    "]",
    "[,",
    "[,1]",
    "[1,]",
    "[1,,2]",
    "[1",
    "[1,",
    "[1]]",
    "[[1]",
    "[1;2]",
    "[1:2]",
    '["a":1]',
    "[}",
    "[]1",
    "[][]",
    # Objects.
    "{",
    "}",
    "{,}",
    "{]",
    "{a:1}",
    "{'a':1}",
    '{"a"}',
    '{"a":}',
    '{"a",1}',
    '{"a" 1}',
    '{"a"::1}',
    '{"a":1,}',
    '{"a":1,,"b":2}',
    '{"a":1 "b":2}',
    '{"a":1;"b":2}',
    '{"a":1',
    '{"a":1,',
    '{"a":1,"b',
    '{"a":1,"b"',
    '{"a":1,"b":',
    '{"a":1,"b"x',
    '{"a":1,b',
    '{"a":1}}',
    '{"a":"x"',
    '{"a\n":1}',
    r'{"\x":1}',
    r'{"\ud83d\ude0g":1}',
    "{1:1}",
    "{null:1}",
    "{[]:1}",
    "{}{}",
    '{"a":1} x',
    "// comment",
    "/* */1",
    "[1]//",
    "<html>",
    "data",
    # Depth.
    "[" * 129 + "]" * 129,
    '{"a":' * 129 + "1" + "}" * 129,
    "[" * 128 + "{",
    "[" * 1000,
]

CASES = VALID + INVALID
BOTH = pytest.mark.parametrize("early", [False, True], ids=["certain", "early"])


class Outcome(NamedTuple):
    """What a text came to; values as `repr`, which tells 1 from 1.0 and True, and 0.0 from -0.0."""

    value: str
    started: bool
    complete: bool
    error: tuple[str, int] | None
    offset: int


def outcome(partial: PartialJSON) -> Outcome:
    error = None if partial.error is None else (partial.error.message, partial.error.offset)
    return Outcome(repr(partial.value), partial.started, partial.complete, error, partial.offset)


def apply(root: list[Any], changes: Iterable[Change]) -> None:
    """Do what a reader of changes does. The top value is the element of ``root``."""
    for path, piece, new in changes:
        *way, last = 0, *path
        container: Any = root
        for step in way:
            container = container[step]
        if not new:
            container[last] = container[last] + piece if type(piece) is str else piece
        elif type(container) is list and last == len(container):
            container.append(copy.copy(piece))
        else:
            container[last] = copy.copy(piece)


def check_sizes(changes: list[Change]) -> None:
    """A feed tells each value once, and nothing that changed nothing."""
    begun = set()
    for path, piece, new in changes:
        assert new or path not in begun
        assert new or piece != ""
        begun.add(path)


def read(pieces: Iterable[str], *, early: bool = False, eof: bool = True) -> Outcome:
    """Read a text, and check what holds after every piece."""
    partial = PartialJSON(early_scalars=early)
    root: list[Any] = []
    taken = 0
    for piece in pieces:
        changes = partial.feed(piece)
        check_sizes(changes)
        apply(root, changes)
        taken += len(piece)
        if partial.error is None:
            assert partial.offset == taken
        assert partial.started == bool(root)
    if eof:
        apply(root, partial.feed_eof())
    found = outcome(partial)
    assert found.value == repr(root[0] if root else None)
    return found


def cuts(text: str) -> Iterator[list[str]]:
    """All at once, character by character, and every cut in two; some of them, if there are many."""
    yield [text]
    yield list(text)
    yield [text, "", ""]
    for at in range(1, len(text)):
        if len(text) < 200 or min(at, len(text) - at) < 20 or at % 29 == 0:
            yield [text[:at], text[at:]]


def verdict(text: str) -> str | None:
    """The value by `loads`, or None."""
    try:
        return repr(loads(text))
    except PayloadError:
        return None


# What makes JSON of a text that can be continued, up to closing brackets.
STRING_ENDS = [end + '"' for end in ("", "n", "0", "00", "000", "0000")]
ENDS = [
    *("", "0", ".0", ":0", '"":0'),
    *(word[at:] for word in ("true", "false", "null") for at in range(1, len(word))),
    *STRING_ENDS,
    *(end + ":0" for end in STRING_ENDS),
]
STRING = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?$)', re.DOTALL)


def can_go_on(text: str) -> bool:
    """Whether any JSON text begins like this, found by trying with `loads` alone."""
    closing: list[str] = []
    for bracket in re.sub(r"[^\[\]{}]", "", STRING.sub("", text)):
        if bracket in "[{":
            closing.append("]" if bracket == "[" else "}")
        elif closing:
            closing.pop()
    end = "".join(reversed(closing))
    return any(verdict(text + inner + end) is not None for inner in ENDS)


def check(text: str, pieces: Iterable[list[str]], *, early: bool) -> None:
    """Compare with `loads`, and every cut with no cut."""
    whole = read([text], early=early)
    expected = verdict(text)
    if expected is None:
        assert whole.error is not None
        check_error(text, whole, early=early)
    else:
        assert whole == (expected, True, True, None, len(text))
    for cut in pieces:
        assert read(cut, early=early) == whole, cut


def check_error(text: str, found: Outcome, *, early: bool) -> None:
    assert found.error is not None
    message, offset = found.error
    assert found.offset == offset
    assert can_go_on(text[:offset])
    if offset < len(text):
        assert not can_go_on(text[: offset + 1])
    else:
        assert message in ("unfinished", "an integer of too many digits")
    assert found[:3] == read([text[:offset]], early=early, eof=False)[:3]


def test_no_case_is_there_twice() -> None:
    assert len(set(CASES)) == len(CASES) > 250


@BOTH
@pytest.mark.parametrize("text", CASES, ids=lambda text: ascii(text)[:40])
def test_case(text: str, early: bool) -> None:
    assert (text in VALID) == (verdict(text) is not None)
    check(text, cuts(text), early=early)


# What a value shows while it is unfinished, certain and early.
SHOWN: list[tuple[str, Any, Any]] = [
    # TC16: trailing numbers and literals.
    ('{"foo": [1, 2', {"foo": [1]}, {"foo": [1, 2]}),
    ('{"a": 12', {}, {"a": 12}),
    ('{"a": 1.', {}, {"a": 1}),
    ('{"a": tru', {}, {"a": True}),
    ("[1, 2,", [1, 2], [1, 2]),
    # TC17: unfinished strings and keys.
    ('{"outer": {"inner": "wor', {"outer": {"inner": "wor"}}, {"outer": {"inner": "wor"}}),
    ('{"a": 1, "b', {"a": 1}, {"a": 1}),
    ('["alpha", "bet', ["alpha", "bet"], ["alpha", "bet"]),
    ('{"a": "x  ', {"a": "x  "}, {"a": "x  "}),
    ('{"a": "q\\"uo', {"a": 'q"uo'}, {"a": 'q"uo'}),
    # Numbers.
    ("[-", [], []),
    ("[-0", [], [0]),
    ("[-1.", [], [-1]),
    ("[1.5", [], [1.5]),
    ("[1.5e", [], [1.5]),
    ("[1.5e-", [], [1.5]),
    ("[1.5e-1", [], [0.15]),
    ("[1 ", [1], [1]),
    ("[1x", [], [1]),
    ("[1}", [], [1]),
    ("[1.x", [], [1]),
    ("[" + "1" * 639, [], [int("1" * 639)]),
    ("[" + "1" * 641, [], [int("1" * 640)]),
    ("[0." + "1" * 1000, [], [float("0." + "1" * 638)]),
    # Literals.
    ("[t", [], [True]),
    ("[f", [], [False]),
    ("[n", [], [None]),
    ("[nu", [], [None]),
    ("[null", [None], [None]),
    ("[nux", [], [None]),
    # Strings and escapes.
    ('["', [""], [""]),
    ('["a\\', ["a"], ["a"]),
    ('["a\\u', ["a"], ["a"]),
    ('["a\\u004', ["a"], ["a"]),
    ('["a\\u0041', ["aA"], ["aA"]),
    ('["a\\ud83d', ["a"], ["a"]),
    ('["a\\ud83d\\', ["a"], ["a"]),
    ('["a\\ud83d\\ude0', ["a"], ["a"]),
    ('["a\\ud83d\\ude00', ["a\U0001f600"], ["a\U0001f600"]),
    ('["a\\ud83d\\u0', ["a\ud83d"], ["a\ud83d"]),
    ('["a\\ud83d\\n', ["a\ud83d\n"], ["a\ud83d\n"]),
    ('["a\\ud83dx', ["a\ud83dx"], ["a\ud83dx"]),
    ('["a\\ud83d\\ud9', ["a\ud83d"], ["a\ud83d"]),
    ('["a\x00', ["a"], ["a"]),
    # Keys.
    ('{"a"', {}, {}),
    ('{"a":', {}, {}),
    ('{"a": "', {"a": ""}, {"a": ""}),
    ('{"a": {', {"a": {}}, {"a": {}}),
    ('{"a": 1, "a": 2', {"a": 1}, {"a": 2}),
    ('{"a": "long", "a": "', {"a": ""}, {"a": ""}),
]


@pytest.mark.parametrize(("text", "certain", "early"), SHOWN, ids=lambda value: ascii(value)[:40])
def test_shown(text: str, certain: Any, early: Any) -> None:
    for pieces in cuts(text):
        assert read(pieces, eof=False).value == repr(certain)
        assert read(pieces, early=True, eof=False).value == repr(early)


TOP: list[tuple[str, bool, Any, bool]] = [
    ("", False, None, False),
    ("12", False, None, False),
    ("12 ", True, 12, True),
    ("nul", False, None, False),
    ("null", True, None, True),
    ('"', True, "", False),
    ('""', True, "", True),
    ("{", True, {}, False),
    ("{}", True, {}, True),
    ("{} ", True, {}, True),
    ("{}x", True, {}, True),
    ("[1", True, [], False),
]


@pytest.mark.parametrize(("text", "started", "value", "complete"), TOP)
def test_the_top(text: str, started: bool, value: Any, complete: bool) -> None:
    for pieces in cuts(text):
        assert read(pieces, eof=False)[:3] == (repr(value), started, complete)


OFFSETS: list[tuple[str, int, str]] = [
    ("[1,]", 3, "expected a value, found ']'"),
    ("[01]", 2, "expected the rest or the end of a number, found '1'"),
    ("[1}", 2, "expected the rest or the end of a number, found '}'"),
    ("-x", 1, "expected the rest or the end of a number, found 'x'"),
    ("tru3", 3, "expected the rest of a literal, found '3'"),
    ('{"a" 1}', 5, "expected :, found '1'"),
    ('{"a":1,}', 7, "expected a key, found '}'"),
    ("{1", 1, "expected a key or }, found '1'"),
    ("[}", 1, "expected a value or ], found '}'"),
    ("[1 2", 3, "expected , or ], found '2'"),
    ('{"a":1 2', 7, "expected , or }, found '2'"),
    ('"a\nb"', 2, "expected a character of a string, found '\\n'"),
    (r'"\ud83d\ude0g"', 12, "expected a character of a string, found 'g'"),
    (r'{"\x', 3, "expected a character of a key, found 'x'"),
    ("{} {}", 3, "expected nothing, found '{'"),
    ("\ufeff{}", 0, "expected a value, found '\\ufeff'"),
    ("[" * 200, 128, "nested deeper than 128"),
    ("[" + "1" * 4301 + ",2]", 4302, "an integer of too many digits"),
    ("1" * 4301, 4301, "an integer of too many digits"),
    ('{"a": [1', 8, "unfinished"),
    ("", 0, "unfinished"),
    (r'"\u00', 5, "unfinished"),
    ("1.", 2, "unfinished"),
]


@BOTH
@pytest.mark.parametrize(("text", "offset", "message"), OFFSETS, ids=lambda value: ascii(value)[:30])
def test_errors(text: str, offset: int, message: str, early: bool) -> None:
    for pieces in cuts(text):
        assert read(pieces, early=early).error == (message, offset)


def test_an_error_can_be_raised_copied_and_pickled() -> None:
    partial = PartialJSON()
    partial.feed("[1, x]")
    error = partial.error
    assert isinstance(error, InvalidJSON)
    for same in (error, copy.deepcopy(error), pickle.loads(pickle.dumps(error))):
        with pytest.raises(ValueError, match=r"^expected a value, found 'x' \(character 4\)$"):
            raise same
        assert (same.message, same.offset) == ("expected a value, found 'x'", 4)


def test_after_an_error_nothing_happens() -> None:
    for text in ('["a\x00', "[1, x", '["a"x'):
        partial = PartialJSON()
        partial.feed(text)
        before = outcome(partial)
        assert before.error is not None
        assert partial.feed('more"]') == []
        assert partial.feed_eof() == []
        assert outcome(partial) == before


def test_after_the_end() -> None:
    partial = PartialJSON()
    assert partial.feed("1") == []
    assert partial.feed_eof() == [Change((), 1, new=True)]
    before = outcome(partial)
    assert partial.feed_eof() == []
    for text in ("", " ", "2"):
        with pytest.raises(LocalProtocolError) as caught:
            partial.feed(text)
        assert caught.value.code == "feed_after_eof"
    assert outcome(partial) == before == ("1", True, True, None, 1)


def test_the_end_of_what_is_unfinished_keeps_what_is_there() -> None:
    partial = PartialJSON()
    partial.feed('{"a": "b')
    assert partial.feed_eof() == []
    assert partial.value == {"a": "b"}
    assert not partial.complete
    assert str(partial.error) == "unfinished (character 8)"
    with pytest.raises(LocalProtocolError):
        partial.feed('"}')


def changes_of(*pieces: str, early: bool = False) -> list[list[tuple[Any, ...]]]:
    partial = PartialJSON(early_scalars=early)
    return [[tuple(change) for change in partial.feed(piece)] for piece in pieces]


def test_changes() -> None:
    assert changes_of('{"path": "/e', "tc", "/x", '\\n"', ', "n": [1, 2', "3]", "}") == [
        [((), {}, True), (("path",), "/e", True)],
        [(("path",), "tc", False)],
        [(("path",), "/x", False)],
        [(("path",), "\n", False)],
        [(("n",), [], True), (("n", 0), 1, True)],
        [(("n", 1), 23, True)],
        [],
    ]


def test_changes_of_a_string_that_has_nothing_new() -> None:
    assert changes_of('["', "\\", "u00", "41", "", 'x"', ',""') == [
        [((), [], True), ((0,), "", True)],
        [],
        [],
        [((0,), "A", False)],
        [],
        [((0,), "x", False)],
        [((1,), "", True)],
    ]


def test_changes_of_equal_keys() -> None:
    assert changes_of('{"a": "x', 'y", "a": "z', 'z", "a": [', "]}") == [
        [((), {}, True), (("a",), "x", True)],
        [(("a",), "y", False), (("a",), "z", True)],
        [(("a",), "z", False), (("a",), [], True)],
        [],
    ]


def test_changes_of_early_scalars() -> None:
    assert changes_of("[-", "1", ".", "0", "0", "5, t", "ru", "e, n", "ull, 1", "]", early=True) == [
        [((), [], True)],
        [((0,), -1, True)],
        [],
        [((0,), -1.0, False)],
        [],
        [((0,), -1.005, False), ((1,), True, True)],
        [],
        [((2,), None, True)],
        [((3,), 1, True)],
        [],
    ]
    (_, (corrected,)) = changes_of("[1", ".0", early=True)
    assert type(corrected[1]) is float


def test_an_early_number_is_not_read_again_once_it_is_long() -> None:
    pieces = ["[", *"1" * 700, "]"]
    counts = [len(changes) for changes in changes_of(*pieces, early=True)]
    assert counts == [1] + [1] * 640 + [0] * 60 + [1]


def test_a_change_stays_what_it_is() -> None:
    partial = PartialJSON()
    (change,) = partial.feed("[")
    partial.feed("1,2]")
    assert change == Change((), [], new=True)
    assert partial.value == [1, 2]


def test_one_field_can_be_followed() -> None:
    text = json.dumps({"path": "notes.txt", "content": "line\n" * 20, "mode": "w"})
    partial = PartialJSON()
    pieces = [text[start : start + 7] for start in range(0, len(text), 7)]
    changes = [change for piece in pieces for change in partial.feed(piece)]
    assert "".join(change.piece for change in changes if change.path == ("content",)) == "line\n" * 20


def test_the_value_is_live() -> None:
    partial = PartialJSON()
    partial.feed('{"a": ["x')
    value = partial.value
    inner = value["a"]
    partial.feed('y", 1, {"b": nul')
    assert inner == ["xy", 1, {}]
    partial.feed('l}], "c": "z')
    partial.feed("z")
    assert partial.value is value
    assert value == {"a": ["xy", 1, {"b": None}], "c": "zz"}
    assert value["a"] is inner


def test_an_older_state_of_a_string_stays() -> None:
    partial = PartialJSON()
    states = []
    for piece in ('["', "a", "\u00e9", "\u4e2d", "\U0001f600", '"]'):
        partial.feed(piece)
        states.append(partial.value[0])
    full = "a\u00e9\u4e2d\U0001f600"
    assert states == [full[:length] for length in range(5)] + [full]


COPIES: list[Callable[[PartialJSON], PartialJSON]] = [
    copy.copy,
    copy.deepcopy,
    *(functools.partial(lambda level, p: pickle.loads(pickle.dumps(p, level)), n) for n in range(2, 6)),
]
TO_COPY = [
    '{"a": [1.5, "x\\ud83d\\ude00y", {"\\u0062": tr',
    '{"a": [1.5, "x\\ud83d\\ude00y", {"\\u0062": true}], "c": -12.5e-3}',
    "123 ",
    "[1, 2, x]",
]


@BOTH
@pytest.mark.parametrize("duplicate", COPIES)
def test_a_copy_goes_on_by_itself(duplicate: Callable[[PartialJSON], PartialJSON], early: bool) -> None:
    for text in TO_COPY:
        for at in range(len(text) + 1):
            partial = PartialJSON(early_scalars=early)
            partial.feed(text[:at])
            other = duplicate(partial)
            before = outcome(partial)
            changes = other.feed(text[at:]) + other.feed_eof()
            assert outcome(partial) == before
            assert outcome(other) == read([text], early=early)
            assert partial.feed(text[at:]) + partial.feed_eof() == changes
            assert outcome(partial) == outcome(other)


def test_there_is_no_room_for_a_wrong_name() -> None:
    partial: Any = PartialJSON()
    with pytest.raises(AttributeError):
        partial.eror = None


# Texts with every escape, as they stand between quotes.
ESCAPES = st.lists(
    st.sampled_from(
        ["a", " ", "\u00e9", "\U0001f600", r"\n", r"\\", r"\"", r"\/", r"\u0041", r"\ud83d", r"\ude00"]
    )
    | st.text(st.characters(exclude_characters='"\\', exclude_categories=["Cc"]), max_size=3),
    max_size=8,
).map("".join)
NUMBERS = st.from_regex(r"\A-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,25})?([eE][+-]?[0-9]{1,4})?\Z").map(str)
SPACES = st.text(st.sampled_from(" \t\r\n"), max_size=2)


def array(parts: list[tuple[str, str]]) -> str:
    return "[" + ",".join(space + value + space for space, value in parts) + "]"


def member(part: tuple[str, str, str]) -> str:
    space, key, value = part
    return f'{space}"{key}"{space}:{space}{value}{space}'


# Texts rather than values, since one value has many texts.
JSON_TEXTS = st.recursive(
    NUMBERS | st.sampled_from(["true", "false", "null"]) | ESCAPES.map('"{}"'.format),
    lambda inner: (
        st.lists(st.tuples(SPACES, inner), max_size=4).map(array)
        | st.lists(st.tuples(SPACES, ESCAPES, inner), max_size=4).map(
            lambda members: "{" + ",".join(map(member, members)) + "}"
        )
    ),
    max_leaves=12,
)
# Values with keys that come twice are left out, as they do not only grow.
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
SOUP = st.text(st.sampled_from('[]{}"\\:, 1-0.eE+truefalsn\nud83c\x00'), max_size=30)


@st.composite
def cut_texts(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> tuple[str, list[str]]:
    text = draw(texts)
    at = sorted({0, len(text), *draw(st.lists(st.integers(0, len(text)), max_size=8))})
    return text, [text[start:end] for start, end in itertools.pairwise(at)]


@st.composite
def mutated(draw: st.DrawFn) -> str:
    text = draw(JSON_TEXTS)
    start = draw(st.integers(0, len(text)))
    end = draw(st.integers(start, min(start + 2, len(text))))
    return text[:start] + draw(SOUP | st.just("")) + text[end:]


@pytest.mark.untraced
@BOTH
@given(cut=cut_texts(JSON_TEXTS))
@example(cut=('{"a":{"a":1},"a":2}', ['{"a":{"a":1},"', 'a":2', "}"]))
@settings(max_examples=300, deadline=None)
def test_every_text(cut: tuple[str, list[str]], early: bool) -> None:
    text, pieces = cut
    assert verdict(text) is not None
    check(text, [pieces, list(text)], early=early)


@pytest.mark.untraced
@BOTH
@given(cut=cut_texts(mutated() | SOUP | st.text(max_size=10)))
@settings(max_examples=600, deadline=None)
def test_any_text(cut: tuple[str, list[str]], early: bool) -> None:
    text, pieces = cut
    check(text, [pieces, list(text)], early=early)


def contained(before: Any, after: Any) -> bool:
    """Whether one value can have grown to another one."""
    if type(before) is not type(after):
        return False
    if isinstance(before, str):
        return bool(after.startswith(before))
    if isinstance(before, list):
        return len(before) <= len(after) and all(map(contained, before, after))
    if isinstance(before, dict):
        return list(before) == list(after)[: len(before)] and all(
            contained(value, after[key]) for key, value in before.items()
        )
    return repr(before) == repr(after)


@pytest.mark.untraced
@given(
    value=JSON_VALUES,
    ascii_only=st.booleans(),
    indent=st.none() | st.integers(0, 2),
    size=st.integers(1, 7),
)
@settings(max_examples=300, deadline=None)
def test_values_only_grow(value: Any, ascii_only: bool, indent: int | None, size: int) -> None:
    try:
        text = json.dumps(value, ensure_ascii=ascii_only, indent=indent, allow_nan=False)
    except ValueError:
        text = "[]"
    partial = PartialJSON()
    before: Any = None
    was_there = False
    for start in range(0, len(text), size):
        partial.feed(text[start : start + size])
        assert contained(before, partial.value) or not was_there
        before, was_there = copy.deepcopy(partial.value), partial.started
    partial.feed_eof()
    assert contained(before, partial.value) or not was_there
    assert repr(partial.value) == verdict(text)


@pytest.mark.untraced
@given(st.text(max_size=20) | SOUP, st.booleans())
@settings(max_examples=300, deadline=None)
def test_any_text_within_a_string(text: str, early: bool) -> None:
    head = '{"key": "'
    check(head + text, [[head, text], [head, *text]], early=early)


def test_the_depth_is_that_of_loads() -> None:
    for depth in (MAX_DEPTH, MAX_DEPTH + 1):
        text = "[" * depth + "]" * depth
        assert (read(text).error is None) == (verdict(text) is not None) == (depth == MAX_DEPTH)
