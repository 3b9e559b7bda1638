r"""The value of a JSON text while the text still arrives, and what each piece of it changed.

A model's tool arguments come as fragments of one JSON text. `PartialJSON` takes them in any cut and has
the value so far at hand at any moment, so that a program can show a path, a command or the lines of a
file long before the closing bracket. In the end the value is the one that the whole text has, and what
the rest of this library refuses as JSON is refused here too, at the character where it went wrong.

Source: RFC 8259. Where the RFC leaves a choice, `json.loads` is followed: the last one of equal keys
wins, lone surrogates are kept, numbers too large for a float are infinite. This module deliberately
knows nothing of events, tools and protocols, and mends nothing: text that is not JSON is an error.

How it works: `_TOKENS` is the grammar. It has one regular expression for each state, whose named groups
are the tokens that may come next, and `PartialJSON._actions` says what each one does. No expression
looks back, and none sees a character more than a few times.

How it is linear: an unfinished string is a list of pieces until somebody asks for the value, and joining
them then costs what is new, not what is there. An unfinished number is a list of pieces until its end.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

from typing_extensions import Self

from ._errors import LocalProtocolError
from ._payload import MAX_DEPTH, PayloadError, loads

__all__ = ["Change", "InvalidJSON", "PartialJSON", "Path"]

Path = tuple[str | int, ...]
"""Where a value stands: the keys and indexes that lead to it. The path of the top value is empty."""

_EARLY_LENGTH = 640
"""Most characters of an unfinished number that are read ahead of its end.

It bounds what that costs, and is the lowest limit on digits that an interpreter can be set to.
"""

_LITERALS = {"true": True, "false": False, "null": None}
_BY_LETTER = {word[0]: value for word, value in _LITERALS.items()}

_WHITE = r" \t\r\n"
_SPACE = f"[{_WHITE}]*"
_PLAIN = r'[^"\\\x00-\x1f]'
_HEX = "[0-9a-fA-F]"
_SHORT = r'\\["\\/bfnrt]'
_HIGH = rf"\\u[dD][89abAB]{_HEX}{{2}}"
_LOW = rf"\\u[dD][c-fC-F]{_HEX}{{2}}"
_OTHER = rf"\\u(?:[0-9abcefABCEF]{_HEX}|[dD][0-7c-fC-F]){_HEX}{{2}}"
# What can follow a high surrogate and is no low one. An error is neither: it changes nothing before it.
_NO_LOW = rf"[^\\\x00-\x1f]|{_SHORT}|\\u(?:[0-9abcefABCEF]|[dD][0-9abAB])"
# Limited, because an expression keeps notes on each repetition until it is done.
_CHARACTERS = rf"(?:{_PLAIN}+|{_SHORT}|{_OTHER}|{_HIGH}(?:{_LOW}|(?={_NO_LOW}))){{1,100}}"
_HALF_LOW = rf"(?:\\(?:u(?:[dD](?:[c-fC-F]{_HEX}?)?)?)?)?"
_UNFINISHED = rf"\\(?:u(?:[dD][89abAB]{_HEX}{{2}}{_HALF_LOW}|{_HEX}{{0,3}}))?"
_NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
# With few enough digits for int() in any interpreter.
_SHORT_NUMBER = r"-?(?:0|[1-9][0-9]{0,99})(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"


def _scalar(prefix: str, after_number: str) -> str:
    """Strings without escapes, and other scalars, that are whole. All of this is only for speed.

    Args:
        prefix: What the names of the groups begin with.
        after_number: The characters that can follow a number here.
    """
    return (
        rf'"(?P<{prefix}text>{_PLAIN}*)"|(?P<{prefix}number>{_SHORT_NUMBER})(?=[{after_number}])'
        rf"|(?P<{prefix}word>{'|'.join(_LITERALS)})"
    )


def _value(after_number: str) -> str:
    """What begins a value."""
    words = "|".join(f"(?P<{start}>{start})" for word in _LITERALS for start in _starts(word))
    return (
        rf'{_scalar("", after_number)}|"(?P<string>{_PLAIN}*)|(?P<array>\[)|(?P<object>\{{)'
        f"|(?P<minus>-)|(?P<zero>0)|(?P<integer>[1-9][0-9]*)|{words}"
    )


def _starts(word: str) -> list[str]:
    """What a text can have of a word without all of it, the longest first."""
    return [word[:length] for length in range(len(word) - 1, 0, -1)]


def _words() -> dict[str, str]:
    """States within a literal, by the letters that are there."""
    return {
        start: "".join(
            f"(?P<{more}>{more[len(start) :]})|"
            for more in (word, *_starts(word))
            if len(more) > len(start)
        )
        for word in _LITERALS
        for start in _starts(word)
    }


def _string(kind: str, rest: str) -> str:
    """What is in a string; its rest comes first, since most have no more escapes."""
    return (
        rf'(?P<rest_of_{kind}>{_PLAIN}*){rest}|(?P<characters>{_CHARACTERS})|(?P<end_of_{kind}>")'
        rf"|(?P<held>{_UNFINISHED}\Z)|(?:{_UNFINISHED})?"
    )


_FIRST_DIGIT = "(?P<zero>0)|(?P<integer>[1-9][0-9]*)|"
_POINT = r"(?P<point>\.)|"
_EXPONENT = "(?P<exponent>[eE])|"
_DIGITS = "(?P<digits>[0-9]+)|"
_FRACTION = "(?P<fraction>[0-9]+)|"
_END = "(?P<end_of_number>)|"
_NUMBERS = {
    "minus": _FIRST_DIGIT,
    "zero": f"{_POINT}{_EXPONENT}{_END}",
    "integer": f"(?P<integer>[0-9]+)|{_POINT}{_EXPONENT}{_END}",
    "point": _FRACTION,
    "fraction": f"{_FRACTION}{_EXPONENT}{_END}",
    "exponent": f"(?P<sign>[+-])|{_DIGITS}",
    "sign": _DIGITS,
    "digits": f"{_DIGITS}{_END}",
}
_NUMBER_CAN_END = frozenset(state for state, tokens in _NUMBERS.items() if tokens.endswith(_END))
_UNCERTAIN = frozenset(_NUMBERS) | frozenset(_words())
_AFTER_NUMBER = {"done": " \t\r\n", "after_element": " \t\r\n,]", "after_member": " \t\r\n,}"}

_AFTER_ELEMENT = rf"{_WHITE},\]"
_AFTER_MEMBER = rf"{_WHITE},\}}"
_KEY = (
    rf'"(?P<name>{_PLAIN}*)"{_SPACE}:(?:{_SPACE}(?:{_scalar("named_", _AFTER_MEMBER)})|(?P<named>))'
    rf'|"(?P<key>{_PLAIN}*)'
)
_NEXT_ELEMENT = (
    rf"{_SPACE}(?:{_scalar('next_', _AFTER_ELEMENT)}|\{{(?P<next_object>))|(?P<next_element>)"
)
_BETWEEN = {
    "value": _value(_WHITE),
    "first_element": rf"{_value(_AFTER_ELEMENT)}|(?P<close>\])",
    "element": _value(_AFTER_ELEMENT),
    "after_element": rf",(?:{_NEXT_ELEMENT})|(?P<close>\])",
    "first_key": rf"{_KEY}|(?P<close>\}})",
    "next_key": _KEY,
    "colon": "(?P<colon>:)",
    "member": _value(_AFTER_MEMBER),
    "after_member": rf",{_SPACE}(?:{_KEY}|(?P<next_key>))|(?P<close>\}})",
    "done": "(?!)",
}
_WITHIN = {
    "string": _string("string", '"'),
    "key": _string("key", f'"{_SPACE}:'),
    **_NUMBERS,
    **_words(),
}

_TOKENS: dict[str, Callable[[str, int], Any]] = {
    **{
        state: re.compile(rf"{_SPACE}(?:{tokens}|(?P<space>\Z)|(?P<bad>.))", re.DOTALL).match
        for state, tokens in _BETWEEN.items()
    },
    **{state: re.compile(f"{tokens}(?P<bad>.)", re.DOTALL).match for state, tokens in _WITHIN.items()},
}
"""By state: what reads the next token. There is always one, since anything else is a bad character."""

_WANTED = {
    "value": "a value",
    "first_element": "a value or ]",
    "element": "a value",
    "after_element": ", or ]",
    "first_key": "a key or }",
    "next_key": "a key",
    "colon": ":",
    "member": "a value",
    "after_member": ", or }",
    "done": "nothing",
    "string": "a character of a string",
    "key": "a character of a key",
    **dict.fromkeys(_words(), "the rest of a literal"),
}

_is_plain = re.compile(f"{_PLAIN}+").fullmatch
_number_in: Callable[[str, int, int], Any] = re.compile(_NUMBER).match
_new_tuple = tuple.__new__


def _number(text: str) -> Any:
    # For most integers this costs a fifth.
    return int(text) if text.isdigit() else loads(text)


_READERS: dict[str, Callable[[str], Any]] = {
    prefix + kind: read
    for prefix in ("", "named_", "next_")
    for kind, read in (("text", str), ("number", _number), ("word", _LITERALS.__getitem__))
}
"""By token: how the value of a scalar is read."""


class InvalidJSON(ValueError):
    """The text is not JSON that this library accepts.

    Found in `PartialJSON.error`, and never raised by this module; it can be raised by whoever wants to.

    Attributes:
        message: One sentence for a person.
        offset: The first character that no JSON text could have here, counted from the beginning of the
            text, or the length of a text that ended too early. It does not depend on the cuts.
    """

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message, offset)
        self.message = message
        self.offset = offset

    def __str__(self) -> str:
        return f"{self.message} (character {self.offset})"


class Change(NamedTuple):
    """What one feed did to one value.

    To build the value of changes: where ``new`` is true, put ``piece`` at the path (at the end of a
    list, or in place of what a dict has there); otherwise add it to the string that is there, or put it
    in place of the number.

    Attributes:
        path: Where the value stands.
        piece: The text that was *added* to a string; an empty ``{}`` or ``[]`` for a container that
            begins; otherwise the number, bool or None itself.
        new: Whether the value begins here, and takes the place of one that was there (an earlier member
            with the same key). False for what is added to a string, and for an early number that was
            corrected.
    """

    path: Path
    piece: Any
    new: bool


class PartialJSON:
    r"""The value of a JSON text that arrives in pieces.

    What is in `value`:

    * a string from its opening quote on, as far as it came. Of an escape, nothing until it is whole; of
      a high surrogate, nothing until it is known whether a low one follows;
    * a member of an object once its key is finished and its value has begun;
    * ``true``, ``false`` and ``null`` once they are whole;
    * a number once it cannot go on. At the top, white space or `feed_eof` says so.

    So the value only grows, except that the last one of equal keys wins, as in `json.loads`.

    Args:
        early_scalars: Show an unfinished number as far as it is one (``-1`` of ``-1.`` and ``-1.5`` of
            ``-1.5e``; of more than 640 characters, as far as the first 640 are one), and a literal from
            its first letter on. An early number can change, even from int to float.

    A text is refused at the first wrong character; `value` stays what it was up to there. What is
    refused is the same as everywhere in this library: bad syntax, raw control characters in strings,
    ``NaN`` and ``Infinity``, nesting deeper than 128, and integers of more digits than ``int()`` takes.

    A `PartialJSON` can be pickled and copied between any two calls.
    """

    __slots__ = (
        "_after",
        "_base",
        "_changes",
        "_container",
        "_early",
        "_ended",
        "_fresh",
        "_held",
        "_key",
        "_parts",
        "_path",
        "_root",
        "_shown",
        "_stack",
        "_state",
        "_unjoined",
        "error",
        "offset",
    )

    def __init__(self, *, early_scalars: bool = False) -> None:
        self.error: InvalidJSON | None = None
        """Why the text is refused, or None. What comes after an error is ignored."""
        self.offset = 0
        """How many characters were taken. After an error, how many were right."""
        self._early = early_scalars
        self._ended = False
        self._state = "value"
        self._changes: list[Change] = []
        # The top value is the one element of a list, so that it is no special case.
        self._root: list[Any] = []
        # The innermost open container, its path, and the state after one of its values.
        self._container: Any = self._root
        self._base: Path = ()
        self._after = "done"
        # The same three of the containers around it.
        self._stack: list[tuple[Any, Path, str]] = []
        # The value that comes next or is open.
        self._key: Any = 0
        self._path: Path = ()
        # The new pieces of a string, or all pieces of a key, number or literal.
        self._parts: list[str] = []
        # What no change has told yet: that a string is there at all.
        self._fresh = False
        # Pieces of a string that changes have told, but that the value does not have yet.
        self._unjoined: list[str] = []
        # The escape that the last piece of text broke off in.
        self._held = ""
        # Whether the value has an unfinished number or literal.
        self._shown = False

    def __copy__(self) -> Self:
        return copy.deepcopy(self)

    @property
    def value(self) -> Any:
        """The value so far; None before anything is there, which `started` tells from ``null``.

        It is live: the same lists and dicts go on growing with each feed (an open string, with each
        look at this attribute). Copy it to keep a state, and leave it unchanged. Reading it after each
        feed is cheap as long as nobody keeps an older state of an open string.
        """
        if self._unjoined:
            self._join()
        return self._root[0] if self._root else None

    @property
    def started(self) -> bool:
        """Whether `value` is there."""
        return bool(self._root)

    @property
    def complete(self) -> bool:
        """Whether the top value is finished. Only white space can follow; other text is an `error`."""
        return self._state == "done"

    def feed(self, text: str) -> list[Change]:
        """Take the next characters of the text.

        Args:
            text: Any piece of it; an empty one is harmless.

        Returns:
            What this piece changed in `value`, in order: at most one change for each value. Applying
            the changes of all feeds builds the value. After an error, none.

        Bad text is never raised: look at `error`.

        Raises:
            LocalProtocolError: `feed_eof` was called before.
        """
        # Next to all feeds go on with a long string.
        if self._state == "string" and not self._held and self.error is None and _is_plain(text):
            self.offset += len(text)
            self._unjoined.append(text)
            # Costs half of calling the class.
            return [_new_tuple(Change, (self._path, text, False))]
        if self._ended:
            raise LocalProtocolError("text after the end of the input", code="feed_after_eof")
        return self._feed_tokens(text) if self.error is None else []

    def feed_eof(self) -> list[Change]:
        """Say that the text has ended. Calling it again changes nothing.

        A number at the top is certain now. A value that is not finished, or not there, is an `error`;
        what is in `value` stays.

        Returns:
            What became certain.
        """
        self._ended = True
        if self.error is None:
            self._finish()
        return self._take_changes()

    def _finish(self) -> None:
        if self._after == "done" and self._state in _NUMBER_CAN_END:
            self._settle_number("".join(self._parts), self.offset)
        elif self._state != "done":
            self._fail("unfinished", self.offset)

    def _feed_tokens(self, text: str) -> list[Change]:
        if self._held:
            text = self._held + text
            self.offset -= len(self._held)
            self._held = ""
        position = 0
        end = len(text)
        while position < end and self.error is None:
            match = _TOKENS[self._state](text, position)
            self._actions[match.lastgroup](self, match)
            position = match.end()
        self.offset = self.offset + end if self.error is None else self.error.offset
        if self._state == "string":
            self._tell_string()
        elif self._early and self._state in _UNCERTAIN:
            self._show_early()
        return self._take_changes()

    def _take_changes(self) -> list[Change]:
        changes = self._changes
        self._changes = []
        return changes

    # What follows are the actions, and what they share.

    def _skip(self, _match: re.Match[str]) -> None:
        """White space up to the end of the text."""

    def _refuse(self, match: re.Match[str]) -> None:
        """A character that nothing in this state begins with."""
        self._refuse_at(match.string, match.start("bad"))

    def _refuse_at(self, text: str, position: int) -> None:
        wanted = _WANTED.get(self._state, "the rest or the end of a number")
        self._fail(f"expected {wanted}, found {text[position]!r}", self.offset + position)

    def _fail(self, message: str, offset: int) -> None:
        self.error = InvalidJSON(message, offset)

    def _place(self, value: Any) -> None:
        """Let a value begin."""
        container = self._container
        if type(container) is list:
            container.append(value)
        else:
            container[self._key] = value

    def _put(self, value: Any) -> None:
        """A value that is whole."""
        # What `_place` does; a call less for each scalar can be measured.
        container = self._container
        if type(container) is list:
            container.append(value)
        else:
            container[self._key] = value
        self._changes.append(_new_tuple(Change, (self._path, value, True)))
        self._state = self._after

    def _put_scalar(self, match: re.Match[str]) -> None:
        """A scalar in one piece."""
        kind = str(match.lastgroup)
        self._put(_READERS[kind](match[kind]))

    def _put_named(self, match: re.Match[str]) -> None:
        """A member in one piece."""
        self._set_key(match["name"])
        self._put_scalar(match)

    def _put_next(self, match: re.Match[str]) -> None:
        """A comma and a scalar."""
        self._next_element(match)
        self._put_scalar(match)

    def _begin_string(self, match: re.Match[str]) -> None:
        self._place("")
        self._parts.append(match["string"])
        self._fresh = True
        self._state = "string"

    def _hold(self, match: re.Match[str]) -> None:
        self._held = match["held"]

    def _add_characters(self, match: re.Match[str]) -> None:
        run = match["characters"]
        self._parts.append(loads(f'"{run}"') if "\\" in run else run)

    def _end_plain_string(self, match: re.Match[str]) -> None:
        self._parts.append(match["rest_of_string"])
        self._end_string(match)

    def _end_string(self, _match: re.Match[str]) -> None:
        self._tell_string()
        self._join()
        self._state = self._after

    def _tell_string(self) -> None:
        piece = self._take_parts()
        if piece or self._fresh:
            self._unjoined.append(piece)
            self._changes.append(_new_tuple(Change, (self._path, piece, self._fresh)))
            self._fresh = False

    def _take_parts(self) -> str:
        text = "".join(self._parts)
        self._parts = []
        return text

    def _join(self) -> None:
        """Bring the open string up to date in the value."""
        container = self._container
        text = container[self._key]
        # CPython grows a string in place if this variable is all that holds it.
        container[self._key] = None
        text += "".join(self._unjoined)
        container[self._key] = text
        self._unjoined = []

    def _begin_number(self, match: re.Match[str]) -> None:
        """A number or literal begins, or goes on; the group is the next state."""
        state = str(match.lastgroup)
        self._parts.append(match[state])
        self._state = state

    def _end_number(self, match: re.Match[str]) -> None:
        """What comes next is no part of the number. It has to be able to follow one here."""
        position = match.end()
        if match.string[position] in _AFTER_NUMBER[self._after]:
            self._settle_number("".join(self._parts), self.offset + position)
        else:
            self._refuse_at(match.string, position)

    def _settle_number(self, text: str, end: int) -> None:
        try:
            value = loads(text)
        except PayloadError:
            # Only its end tells that it is an integer, which could not have become a float.
            self._fail("an integer of too many digits", end)
        else:
            self._settle(value)

    def _settle_literal(self, match: re.Match[str]) -> None:
        self._settle(_LITERALS[str(match.lastgroup)])

    def _settle(self, value: Any) -> None:
        """A number or literal is certain."""
        if self._shown:
            self._correct(value)
            self._shown = False
            self._state = self._after
        else:
            self._put(value)
        self._parts = []

    def _show_early(self) -> None:
        """Show a number or literal that is not certain."""
        if self._shown and len(self._parts[0]) >= _EARLY_LENGTH:
            return
        text = "".join(self._parts)
        self._parts = [text]
        if text == "-":
            return
        value = (
            _BY_LETTER[text[0]]
            if text[0] in _BY_LETTER
            else loads(_number_in(text, 0, _EARLY_LENGTH)[0])
        )
        if self._shown:
            self._correct(value)
        else:
            state = self._state
            self._put(value)
            self._state = state
            self._shown = True

    def _correct(self, value: Any) -> None:
        shown = self._container[self._key]
        if type(shown) is not type(value) or shown != value:
            self._container[self._key] = value
            self._changes.append(Change(self._path, value, new=False))

    def _begin_array(self, match: re.Match[str]) -> None:
        if self._open([], match):
            self._key = 0
            self._path = (*self._base, 0)
            self._after = "after_element"
            self._state = "first_element"

    def _begin_object(self, match: re.Match[str]) -> None:
        if self._open({}, match):
            self._after = "after_member"
            self._state = "first_key"

    def _open(self, container: Any, match: re.Match[str]) -> bool:
        if len(self._stack) == MAX_DEPTH:
            self._fail(f"nested deeper than {MAX_DEPTH}", self.offset + match.end() - 1)
            return False
        self._place(container)
        # Another one, since a change has to stay what it is.
        self._changes.append(Change(self._path, type(container)(), new=True))
        self._stack.append((self._container, self._base, self._after))
        self._container = container
        self._base = self._path
        return True

    def _close(self, _match: re.Match[str]) -> None:
        self._container, self._base, self._after = self._stack.pop()
        self._state = self._after

    def _next_object(self, match: re.Match[str]) -> None:
        """A comma and an object."""
        self._next_element(match)
        self._begin_object(match)

    def _next_element(self, _match: re.Match[str]) -> None:
        self._key = len(self._container)
        self._path = (*self._base, self._key)
        self._state = "element"

    def _next_key(self, _match: re.Match[str]) -> None:
        self._state = "next_key"

    def _begin_key(self, match: re.Match[str]) -> None:
        self._parts.append(match["key"])
        self._state = "key"

    def _end_key(self, _match: re.Match[str]) -> None:
        self._set_key(self._take_parts())
        self._state = "colon"

    def _end_plain_key(self, match: re.Match[str]) -> None:
        """The rest of a key, and the colon."""
        self._set_key(self._take_parts() + match["rest_of_key"])
        self._state = "member"

    def _set_name(self, match: re.Match[str]) -> None:
        """A key in one piece, and the colon."""
        self._set_key(match["name"])
        self._state = "member"

    def _set_key(self, key: str) -> None:
        self._key = key
        self._path = (*self._base, key)

    def _begin_member(self, _match: re.Match[str]) -> None:
        self._state = "member"

    _actions: ClassVar[dict[str | None, Callable[[Any, re.Match[str]], None]]] = {
        **dict.fromkeys(_UNCERTAIN, _begin_number),
        **dict.fromkeys(_LITERALS, _settle_literal),
        "array": _begin_array,
        "bad": _refuse,
        "characters": _add_characters,
        "close": _close,
        "colon": _begin_member,
        "end_of_key": _end_key,
        "end_of_number": _end_number,
        "end_of_string": _end_string,
        "held": _hold,
        "key": _begin_key,
        "named": _set_name,
        **dict.fromkeys(("named_text", "named_number", "named_word"), _put_named),
        "next_element": _next_element,
        "next_key": _next_key,
        "next_object": _next_object,
        **dict.fromkeys(("next_text", "next_number", "next_word"), _put_next),
        "object": _begin_object,
        "space": _skip,
        "string": _begin_string,
        "rest_of_key": _end_plain_key,
        "rest_of_string": _end_plain_string,
        **dict.fromkeys(("text", "number", "word"), _put_scalar),
    }
    """By token."""
