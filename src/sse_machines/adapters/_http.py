"""One HTTP/1.1 request and its answer, for the adapters that open a connection themselves.

h11 does the protocol; here is what an event stream asks of the answer. The module deliberately has no
socket: bytes go in and out. It needs the extra ``http``.
"""

from __future__ import annotations

import ssl as tls
from collections.abc import Mapping
from typing import Any
from urllib.parse import SplitResult, urlsplit

import h11

from .._errors import SAMPLE_LENGTH, LocalProtocolError, RemoteProtocolError, UnexpectedResponse
from .._payload import PayloadError, dumps, loads
from ._request import Headers, Response

_MAX_BODY = 64 * 1024
_OK = 200
_PORTS = {"http": 80, "https": 443}


class Exchange:
    """A request and its answer.

    Args:
        url: Where to send it, ``http`` or ``https``.
        method: The method.
        headers: Headers besides ``host``, ``accept``, ``accept-encoding``, ``connection``, and the type
            and length of the content; those given here come instead of them.
        content: The body: bytes as they are, anything else as JSON, None for none.
        ssl: How to encrypt; None for a context that trusts what the machine trusts.

    Attributes:
        host, port: Where to connect.
        context: How to encrypt the connection; None: not at all.
        request: The bytes to send.
        response: The head of the answer, once `opened` says so.

    Raises:
        LocalProtocolError: The URL or the request is none (``"bad_request"``).
    """

    def __init__(
        self,
        url: str,
        *,
        method: str = "POST",
        headers: Headers = (),
        content: Any = None,
        ssl: tls.SSLContext | None = None,
    ) -> None:
        parts, self.host, self.port = _split(url)
        self.context = (ssl or tls.create_default_context()) if parts.scheme == "https" else None
        self.response: Response | None = None
        self._connection = h11.Connection(h11.CLIENT)
        self._refused = bytearray()
        self._over = False
        body = _written(content)
        defaults = {
            "host": parts.netloc.rpartition("@")[2],
            "accept": "text/event-stream",
            # What is compressed arrives late, in lumps.
            "accept-encoding": "identity",
            "connection": "close",
        }
        pairs: Any = headers.items() if isinstance(headers, Mapping) else headers
        given: list[tuple[str, str]] = [*pairs]
        names = {name.lower() for name, _ in given}
        if content is not None:
            defaults["content-type"] = "application/json"
        # A body that has a transfer coding has no other length.
        if content is not None and "transfer-encoding" not in names:
            defaults["content-length"] = str(len(body))
        fields = [(name, value) for name, value in defaults.items() if name not in names] + given
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        try:
            self.request = self._send(h11.Request(method=method, target=target, headers=fields), body)
        except (h11.LocalProtocolError, UnicodeEncodeError) as error:
            raise LocalProtocolError(f"no HTTP request: {error}", code="bad_request") from error

    def _send(self, request: h11.Request, body: bytes) -> bytes:
        events = (request, h11.Data(data=body), h11.EndOfMessage())
        return b"".join(self._connection.send(event) or b"" for event in events)

    def feed(self, data: bytes | bytearray) -> None:
        """Take bytes from the connection; ``b""`` says that the server has closed it."""
        self._connection.receive_data(bytes(data))

    def opened(self) -> bool:
        """Whether the head is there and right; False: feed it more.

        Raises:
            UnexpectedResponse: The status is not 200, or the content is compressed or no event stream.
            RemoteProtocolError: The answer is no HTTP/1.1, or ended before it began (``"bad_http"``).
        """
        while self.response is None:
            event = self._next()
            if event is h11.NEED_DATA:
                return False
            if event is h11.PAUSED:
                raise RemoteProtocolError("the server has switched to another protocol", code="bad_http")
            if isinstance(event, h11.Response):
                self.response = Response(
                    status=event.status_code,
                    reason=bytes(event.reason).decode("latin-1"),
                    headers=tuple((k.decode("latin-1"), v.decode("latin-1")) for k, v in event.headers),
                )
        fault = _fault(self.response)
        if fault is not None:
            return self._refuse(self.response, *fault)
        return True

    def take(self) -> bytes | None:
        """The next piece of the body; ``b""``: feed it more; None: the body is over.

        Raises:
            RemoteProtocolError: The connection was closed, or left HTTP, inside of the body
                (``"bad_http"``).
        """
        if self._over:
            return None
        event = self._next()
        if isinstance(event, h11.Data):
            return bytes(event.data)
        self._over = event is not h11.NEED_DATA
        return None if self._over else b""

    def _next(self) -> Any:
        try:
            return self._connection.next_event()
        except h11.RemoteProtocolError as error:
            raise RemoteProtocolError(f"no whole HTTP answer: {error}", code="bad_http") from error

    def _refuse(self, response: Response, code: str, message: str) -> bool:
        """Read the body of an answer that is not what was asked for, or enough of it, then say so."""
        try:
            while len(self._refused) < _MAX_BODY and (data := self.take()) is not None:
                if not data:
                    return False
                self._refused += data
        except RemoteProtocolError:
            # What there is of the body has to do.
            pass
        raise _unexpected(response, code, message, bytes(self._refused[:_MAX_BODY]))


def _split(url: str) -> tuple[SplitResult, str, int]:
    """A URL, its host and its port."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise LocalProtocolError(f"not a URL: {url!r}", code="bad_request") from error
    if parts.scheme not in _PORTS or not host:
        raise LocalProtocolError(f"not an http or https URL: {url!r}", code="bad_request")
    return parts, host, _PORTS[parts.scheme] if port is None else port


def _written(content: Any) -> bytes:
    if content is None or isinstance(content, bytes):
        return content or b""
    try:
        return dumps(content).encode()
    except ValueError as error:
        raise LocalProtocolError(f"the content has no JSON: {error}", code="bad_request") from error


def _fault(response: Response) -> tuple[str, str] | None:
    """What keeps an answer from being an event stream."""
    kind = response.header("content-type").partition(";")[0].strip().lower()
    coding = response.header("content-encoding").strip().lower()
    if response.status != _OK:
        return "http_status", f"the server answered {response.status} {response.reason}".rstrip()
    if coding not in ("", "identity"):
        return "content_encoding", f"the body is compressed ({coding}), though that was not asked for"
    # Who says nothing may mean it; the receiver will see.
    if kind not in ("", "text/event-stream"):
        return "content_type", f"the server answered {kind}, not text/event-stream"
    return None


def _unexpected(response: Response, code: str, message: str, head: bytes) -> UnexpectedResponse:
    try:
        body = loads(head.decode(errors="replace"))
    except PayloadError:
        body = None
    return UnexpectedResponse(
        message,
        code=code,
        status=response.status,
        headers=response.headers,
        head=head,
        sample=head[:SAMPLE_LENGTH].decode(errors="replace"),
        body=body,
        error=body.get("error") if isinstance(body, dict) else None,
        outcome="not_sse",
    )
