"""JSON texts that differ from an earlier one in a few strings, and in one number that is known.

Nearly all of a stream is one event over and over, with another piece of text in it. A `Template` is the
text of such an event with holes where those strings stand. A text that fits it has the same structure
and the same values but for the holes: JSON is context-free, so a string in the place of a string changes
nothing around it. Comparing is several times cheaper than parsing, and no less exact.

This module deliberately knows no protocol. Which strings may differ is the caller's to say, and what to
make of a text that fits.
"""

from __future__ import annotations

import copy
import json.decoder
import re
from collections.abc import Callable, Iterable
from typing import Any

import attrs

_MAX_LENGTH = 2048
"""Longest text that is made a template of: it is kept for as long as the stream runs."""

_PATIENCE = 8

# The scanner that the parser itself reads strings with; the type stubs leave it out.
_scan_string: Callable[[str, int], tuple[str, int]] = getattr(json.decoder, "scanstring")  # noqa: B009


# A string, and the colon behind it if it is a name.
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"(\s*:)?')

Segment = tuple[str, str | None]
"""What stands before and behind the number; None behind where it is no part of the segment."""


@attrs.frozen
class Template:
    """A text with holes.

    Attributes:
        holes: For each hole what stands before it, and the member that has the string.
        end: What stands behind the last hole.
        bare_end: The same without blanks, if neither a string nor the number is in it, else None:
            Anthropic fills its events up with blanks.
    """

    holes: tuple[tuple[Segment, str], ...]
    end: Segment
    bare_end: str | None

    @classmethod
    def of(cls, text: str, members: Iterable[str], number: str = "") -> Template | None:
        """Make a template of a text.

        Args:
            text: A JSON text that was parsed without an error.
            members: The members whose strings may differ. Those that the text lacks are left out.
            number: The member whose number may differ, if there is one.

        Returns:
            The template; None if one of them stands there twice, if the number or all strings are
            missing, if the name of one is written with escapes, or if the text is long.
        """
        members = tuple(members)
        if len(text) > _MAX_LENGTH or not _escaped_names(text).isdisjoint((*members, number)):
            return None
        spots = [
            (match.end(), _scan_string(text, match.end())[1], member)
            for member in members
            for match in _find(text, member, '"')
        ]
        if not spots or len({member for _, _, member in spots}) < len(spots):
            return None
        spots.sort()
        starts = [0] + [stop for _, stop, _ in spots]
        stops = [start for start, _, _ in spots] + [len(text)]
        segments = [_segment(text[a:b], number) for a, b in zip(starts, stops, strict=True)]
        if number and sum(behind is not None for _, behind in segments) != 1:
            return None
        *befores, end = segments
        bare = '"' not in end[0] and end[1] is None
        names = [member for _, _, member in spots]
        holes = tuple(zip(befores, names, strict=True))
        return cls(holes, end, end[0].replace(" ", "") if bare else None)

    def edges(self) -> tuple[bytes, bytes] | tuple[()]:
        """What stands around the string, if only one may differ, and nothing else; else nothing."""
        (before, number), _ = self.holes[0]
        if len(self.holes) > 1 or number is not None or self.end[1] is not None:
            return ()
        # The quote that ends the string is no part of what stands behind it.
        return before.encode(), b'"' + self.end[0].encode()

    def read(self, text: str, number: int | None) -> dict[str, str] | None:
        """Find the strings of a text that fits.

        Args:
            text: Any text.
            number: The number that has to stand in its place, if there is one.

        Returns:
            Member → string; None if the text does not fit.
        """
        found: dict[str, str] = {}
        place = 0
        for (before, behind), member in self.holes:
            segment = before if behind is None else f"{before}{number}{behind}"
            if not text.startswith(segment, place):
                return None
            try:
                found[member], place = _scan_string(text, place + len(segment))
            except ValueError:
                return None
        before, behind = self.end
        end = text[place:]
        if end == (before if behind is None else f"{before}{number}{behind}"):
            return found
        return found if end.replace(" ", "") == self.bare_end else None


@attrs.define
class Model:
    """The event that is expected to come again, with other strings in it.

    Attributes:
        asked: The moves that it asked for; it can come again while they are the last that were made.
            None while nothing is expected, and then there is no template.
        name: The event name of its frame.
        template: Its text.
        payload: A copy of its JSON, of which a repetition replaces everything that is no plain value.
        inner: A copy of the object in it that the string is in.
        member: The member that has the string.
        maker: Whatever makes the event, for those who need to know.
        used: Whether it has come again.
        edges: What stands around its one string, once somebody has asked; empty if it has more.
        patience: How often another one is still learned that then does not come again.
    """

    asked: Any = None
    name: str = ""
    template: Template | None = None
    payload: dict[str, Any] = attrs.field(factory=dict)
    inner: dict[str, Any] = attrs.field(factory=dict)
    member: str = ""
    maker: Any = None
    used: bool = True
    edges: tuple[bytes, bytes] | tuple[()] | None = None
    patience: int = _PATIENCE

    def learn(
        self, event: Any, asked: Any, inner: dict[str, Any], members: tuple[str, ...], number: str = ""
    ) -> None:
        """Expect an event to come again.

        Args:
            event: An event that was accepted.
            asked: The moves that it asked for and that moved nothing.
            inner: The object that the string is in.
            members: The members whose strings may differ; the first one has to be there.
            number: The member whose number may differ, if there is one.
        """
        self.patience = _PATIENCE if self.used else self.patience - 1
        self.used = False
        self.asked = self.edges = self.template = None
        if self.patience < 0:
            return
        frame = event.frame
        template = Template.of(frame.data or "", members, number)
        if template is not None and members[0] in [name for _, name in template.holes]:
            self.asked, self.template = asked, template
            self.name, self.member = frame.event or "", members[0]
            # The event is its owner's, who may change what is in it.
            self.payload, self.inner = event.payload.copy(), copy.deepcopy(inner)

    def is_due(self, name: str, settled: Any) -> bool:
        """Whether the event is expected, in a frame of this name.

        Args:
            name: The event name of the frame.
            settled: The moves that were made last, if they moved nothing.
        """
        return self.template is not None and self.asked is settled and name == self.name

    def around(self, settled: Any) -> tuple[bytes, bytes] | None:
        """What stands before and behind the one string in which the expected event may differ.

        Args:
            settled: The moves that were made last, if they moved nothing.

        Returns:
            Both in bytes; None if more than one string may differ, or nothing is expected.
        """
        if self.asked is not settled or self.template is None:
            return None
        if self.edges is None:
            self.edges = self.template.edges()
        return self.edges or None

    def fits(self, text: str, name: str, settled: Any, number: int | None) -> bool:
        """Whether a text is the event that is expected.

        Args:
            text: The data of a frame.
            name: Its event name.
            settled: The moves that were made last, if they moved nothing.
            number: The number that is due, if there is one.
        """
        if not self.is_due(name, settled):
            return False
        if self.template is None or self.template.read(text, number) is None:
            return False
        self.used = True
        return True


def is_flat(value: dict[str, Any], but: str = "") -> bool:
    """Whether an object holds, but for one member, nothing that anybody could change."""
    return not any(type(member) in (dict, list) for name, member in value.items() if name != but)


def _escaped_names(text: str) -> set[str]:
    """The names in a JSON text that are written with escapes, and would not be found as they stand."""
    return {
        _scan_string(text, string.start() + 1)[0]
        for string in _STRING.finditer(text)
        if string[2] and "\\" in string[1]
    }


def _find(text: str, member: str, value: str) -> list[re.Match[str]]:
    # The quote that begins a name never has a backslash before it; one inside a string always does.
    return [*re.finditer(rf'(?<!\\)"{member}"\s*:\s*{value}', text)]


def _segment(text: str, number: str) -> Segment:
    """Part a text at the number that is in it, if it is there once."""
    matches = _find(text, number, r"(\d+)") if number else []
    if len(matches) != 1:
        return text, None
    return text[: matches[0].start(1)], text[matches[0].end(1) :]
