"""What a request to a model has, and how a server has answered it: plain values.

They stand apart from `_http`, since who makes no request needs no h11.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Mapping
from typing import Any, TypedDict

import attrs

Headers = Mapping[str, str] | Iterable[tuple[str, str]]


class Request(TypedDict, total=False):
    """What a request can have besides its URL.

    Attributes:
        method: The method; POST by default.
        headers: Headers besides the usual ones, or instead of them.
        content: The body: bytes as they are, anything else as JSON.
        ssl: How to encrypt, where the URL says so; by default as Python does.
    """

    method: str
    headers: Headers
    content: Any
    ssl: ssl.SSLContext | None


@attrs.frozen(kw_only=True)
class Response:
    """How a server has answered, apart from the body.

    Attributes:
        status: The status code.
        reason: The words behind it, if any.
        headers: Names in lower case, and values, in order.
    """

    status: int
    reason: str
    headers: tuple[tuple[str, str], ...]

    def header(self, name: str) -> str:
        """The value of the first header of that name; ``""`` if there is none."""
        return next((value for key, value in self.headers if key == name.lower()), "")
