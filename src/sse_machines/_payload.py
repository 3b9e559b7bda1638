"""JSON text to values, guarded against text that was made to hurt.

One documented error for everything that is wrong with a text, whatever the parser behind it. This
module deliberately knows nothing of events: an object is as good as a number here.

What is refused beyond bad syntax, and why:

* nesting deeper than 128. The check runs *before* the parser, because CPython's own recursion limit
  does not protect small thread stacks: a few kilobytes of ``[`` end the whole process there.
* ``NaN`` and ``Infinity``, which are not JSON (RFC 8259, section 6) although the standard library
  accepts them.
* integers of more digits than ``int()`` takes, which surface as a plain ValueError.

Text always comes in as ``str``: parsers that are given bytes guess UTF-16 and UTF-32.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from typing import Any

from ._errors import SAMPLE_LENGTH

Loads = Callable[[str], Any]
"""A JSON parser as people plug it in: ``orjson.loads``, ``msgspec.json.decode``, ``json.loads``."""

MAX_DEPTH = 128
"""Deepest nesting of arrays and objects that is parsed."""

_TOO_SHORT = 2 * MAX_DEPTH
"""Most characters that cannot nest too deep: every bracket needs its partner, and the parser's own
complaint about one without comes no deeper than this."""

_NOT_A_BRACKET = re.compile(r"[^\[\]{}]+")
_STEPS = {"[": 1, "{": 1, "]": -1, "}": -1}


class PayloadError(ValueError):
    """The text is not JSON that this library accepts.

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
