"""JSON text to values and back, guarded against text that was made to hurt, and against mistakes.

One documented error for everything that is wrong, whatever the parser or the writer behind it. This
module deliberately knows nothing of events: an object is as good as a number here.

What is refused beyond bad syntax, and why:

* nesting deeper than 128. The check runs *before* the parser, because CPython's own recursion limit
  does not protect small thread stacks: a few kilobytes of ``[`` end the whole process there.
* ``NaN`` and ``Infinity``, which are not JSON (RFC 8259, section 6) although the standard library
  accepts them.
* integers of more digits than ``int()`` takes, which surface as a plain ValueError.

Text always comes in as ``str``: parsers that are given bytes guess UTF-16 and UTF-32.

What is written is refused where a reader would get something else than was meant: the same three, keys
that are no text (the standard library makes ``"1"`` of 1, ``"null"`` of None), and characters that UTF-8
cannot say. U+0085, U+2028 and U+2029 are written as escapes, since many clients still take them for line
ends.
"""

from __future__ import annotations

import functools
import json
import json.encoder
import math
import re
from collections.abc import Callable, Iterable
from typing import Any

from ._errors import SAMPLE_LENGTH

Loads = Callable[[str], Any]
"""A JSON parser as people plug it in: ``orjson.loads``, ``msgspec.json.decode``, ``json.loads``."""

Dumps = Callable[[Any], str | bytes]
"""What writes JSON, as people plug it in: ``orjson.dumps``, ``msgspec.json.encode``, ``json.dumps``."""

MAX_DEPTH = 128
"""Deepest nesting of arrays and objects that is parsed or written."""

_TOO_SHORT = 2 * MAX_DEPTH
"""Most characters that cannot nest too deep: every bracket needs its partner, and the parser's own
complaint about one without comes no deeper than this."""

_NOT_A_BRACKET = re.compile(r"[^\[\]{}]+")
_STEPS = {"[": 1, "{": 1, "]": -1, "}": -1}


class PayloadError(ValueError):
    """The text is not JSON that this library accepts, or the value has no such text.

    Never leaves the library: the machines turn it into an error or a violation of their own.
    """


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_decoder = json.JSONDecoder(parse_constant=_refuse_constant)
# The scanner reads one value from an offset and tells where it stopped. With the end checked here it
# costs half of json.loads, which looks for white space on both sides with a regular expression.
# The attribute is as old as the module, but the type stubs leave it out.
_scan_once: Callable[[str, int], tuple[Any, int]] = getattr(_decoder, "scan_once")  # noqa: B009


def loads(text: str) -> Any:
    """Parse one JSON text.

    Args:
        text: The whole text; JSON white space around the value is fine.

    Returns:
        The value, with ``float`` infinities for numbers too large for one.

    Raises:
        PayloadError: The text is not JSON, or too deep.
    """
    if len(text) > _TOO_SHORT and text.count("[") + text.count("{") > MAX_DEPTH:
        _refuse_depth(text)
    try:
        value, end = _scan_once(text, 0)
    except (StopIteration, ValueError, RecursionError):
        return _loads_slowly(text)
    return value if end == len(text) else _loads_slowly(text)


def loads_with(parser: Loads) -> Loads:
    """Wrap somebody's parser so that it accepts and refuses what `loads` does.

    Args:
        parser: Takes ``str`` and raises any ValueError on bad text.

    Returns:
        A guarded parser, which pickles if ``parser`` does. A text that ``parser`` refuses is judged
        again by `loads`, since fast parsers refuse lone surrogates and numbers beyond a double, which
        JSON allows. One difference is left: what ``parser`` makes of integers beyond 64 bits is its
        own affair (orjson makes them floats).
    """
    return functools.partial(_guarded, parser)


def _guarded(parser: Loads, text: str) -> Any:
    if len(text) > _TOO_SHORT and text.count("[") + text.count("{") > MAX_DEPTH:
        _refuse_depth(text)
    if "NaN" in text or "Infinity" in text:
        # Parsers take them for numbers, or not; in a string they are harmless.
        return loads(text)
    try:
        return parser(text)
    except (ValueError, RecursionError):
        return loads(text)


def _loads_slowly(text: str) -> Any:
    """Parse with white space around the value, and word the error."""
    try:
        return _decoder.decode(text)
    except (ValueError, RecursionError) as error:
        raise PayloadError(f"not JSON ({error}): {text[:SAMPLE_LENGTH]!r}") from error


def _refuse_depth(text: str) -> None:
    """Raise if ``text`` nests too deep; brackets inside strings do not count.

    Escapes go first (pairs of backslashes, then escaped quotes), so that every quote left is a real
    one and every second part between quotes stands outside of strings.
    """
    parts = text.replace("\\\\", "").replace('\\"', "").split('"')
    depth = 0
    for bracket in _NOT_A_BRACKET.sub("", "".join(parts[::2])):
        depth += _STEPS[bracket]
        if depth > MAX_DEPTH:
            raise PayloadError(f"nested deeper than {MAX_DEPTH}: {text[:SAMPLE_LENGTH]!r}")


def dumps(value: Any) -> str:
    """Write one JSON text.

    Args:
        value: Of dict, list, tuple, str, int, float, bool and None.

    Returns:
        The text, on one line, without spaces, and with all that is not ASCII as itself except for what
        clients take for line ends.

    Raises:
        PayloadError: The value has no text that a reader would understand the same.
    """
    try:
        _check(value, 0, _SCALARS)
        text = "".join(_write(value, 0))
    except (TypeError, ValueError) as error:
        raise PayloadError(f"not JSON ({error})") from error
    return text if text.isascii() else _on_one_line(text)


def dumps_with(writer: Dumps) -> Callable[[Any], str]:
    """Wrap somebody's writer so that it refuses what `dumps` does.

    Args:
        writer: Gives text or UTF-8, and raises TypeError or ValueError on what it cannot write.

    Returns:
        A guarded writer, which pickles if ``writer`` does. What ``writer`` refuses beyond that is its
        own affair (orjson has no integers beyond 64 bits).
    """
    return functools.partial(_guarded_dumps, writer)


def _guarded_dumps(writer: Dumps, value: Any) -> str:
    try:
        _check(value, 0, _NEVER_BAD)
        text = writer(value)
        text = text.decode() if isinstance(text, bytes) else text
    except (TypeError, ValueError) as error:
        raise PayloadError(f"not JSON ({error})") from error
    if "\n" in text or "\r" in text:
        raise PayloadError("the plugged writer breaks lines, which an event stream cannot carry")
    return _on_one_line(text)


def _check(value: Any, depth: int, plain: frozenset[type]) -> None:
    """Raise on what has no text, or none that a reader would understand the same.

    Args:
        value: Any value.
        depth: How deep it stands; a circle is too deep, too.
        plain: The types of values that need no look.
    """
    if isinstance(value, dict):
        # Joining is the fastest look at the type of every key.
        _join(value)
        value = value.values()
    elif not isinstance(value, _ARRAYS):
        _check_scalar(value)
        return
    if depth == MAX_DEPTH:
        raise ValueError(f"nested deeper than {MAX_DEPTH}")
    for inner in value:
        if type(inner) not in plain:
            _check(inner, depth + 1, plain)


def _check_scalar(value: Any) -> None:
    # Fast writers make null of what is no number, and have texts for dates and the like.
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is no JSON number")
    if value is not None and not isinstance(value, str | int | float):
        raise TypeError(f"a {type(value).__name__} has no JSON form")


def _on_one_line(text: str) -> str:
    """Escape what is no line end, but is taken for one. It can only stand inside of strings."""
    for character, escape in _LINE_ENDS.items():
        text = text.replace(character, escape)
    return text


_ARRAYS = (list, tuple)
_NEVER_BAD: frozenset[type] = frozenset((str, int, bool, type(None)))
_SCALARS: frozenset[type] = _NEVER_BAD | {float}
"""For the writer of the standard library, which refuses NaN itself."""
_LINE_ENDS = {"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_join = "".join


def _writer(make: Callable[..., Any] | None) -> Callable[[Any, int], Iterable[str]]:
    """What writes the JSON of a value that was checked, in pieces.

    Args:
        make: What makes the encoder that is written in C; None where there is none. One for all calls
            costs two thirds of json.dumps, which makes itself a new one every time.
    """
    if make is None:
        slow = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return lambda value, _level: slow.iterencode(value)
    # No search for circles, since `_check` has found them; no indent; separators; keys neither sorted
    # nor skipped; no NaN.
    encode: Callable[[Any, int], tuple[str, ...]] = make(
        *(None, _check_scalar, json.encoder.encode_basestring, None, ":", ",", False, False, False)
    )
    return encode


# The name is as old as the module, but the type stubs leave it out.
_write = _writer(getattr(json.encoder, "c_make_encoder"))  # noqa: B009
