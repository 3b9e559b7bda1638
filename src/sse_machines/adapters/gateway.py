"""A gateway between clients and one upstream: an ASGI application, and the command that serves it.

Streams of the three protocols go through a `Relay`: keep-alives, stalls, another attempt before output,
errors in the protocol's own form. Everything else passes through as it is. This module deliberately
knows nothing of keys, models and prices; it says what became of each stream, and `Served` has what a
biller needs. It needs the extra ``gateway``.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any
from urllib.parse import quote

import attrs
import httpx
import uvicorn

from .._detect import PROTOCOLS
from .._meter import Usage
from .._payload import PayloadError, loads
from .._protocol import ErrorInfo, Protocol
from .._relay import Relay
from .._relay_config import RelayConfig
from .._relay_events import Counters, FailedBeforeOutput, RelayOutcome
from ._asgi import Message, Receive, Send, disconnect, unless
from .asgi import HEADERS
from .asyncio import relay

_logger = logging.getLogger("sse_machines.gateway")
_PATHS = {"/chat/completions": "chat", "/responses": "responses", "/messages": "messages"}
_ENDPOINTS = {
    path: protocol for path, name in _PATHS.items() for protocol in PROTOCOLS if protocol.name == name
}
_HOP_BY_HOP = {
    *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection"),
    *("te", "trailer", "transfer-encoding", "upgrade"),
}
_NOT_SENT_ON = _HOP_BY_HOP | {"host", "content-length", "expect"}
_NOT_SENT_BACK = _HOP_BY_HOP | {"date", "server"}
_SET_BY_US = {"content-type", "content-length", "content-encoding", "cache-control", "x-accel-buffering"}
_TRANSIENT = {500, 502, 503, 504, 529}
"""Statuses behind which the same request can be expected to work soon. 529 says "overloaded"."""
_OK, _TOO_LARGE, _BAD_GATEWAY, _GATEWAY_TIMEOUT = 200, 413, 502, 504
_MAX_ERROR = 256 * 1024
_CONNECT_TIMEOUT = 10.0
_IDLE_CONNECTIONS = 100
_UNREACHABLE = "The model cannot be reached"
_REQUEST_TOO_LARGE = "The request is too large"


@attrs.frozen(kw_only=True)
class Served:
    """What became of a stream.

    Attributes:
        path: The path of the request.
        protocol: The name of the protocol.
        model: What the client asked for, or None.
        status: The HTTP status that the client got; None if it left before there was one.
        outcome: How the stream ended for the client.
        attempts: How many requests were sent upstream.
        seconds: How long all of it took.
        first_output: Seconds to the first output; None if there was none.
        usage: What the upstream told of tokens.
        counters: What passed.
    """

    path: str
    protocol: str
    model: str | None
    status: int | None
    outcome: RelayOutcome
    attempts: int
    seconds: float
    first_output: float | None
    usage: Usage
    counters: Counters

    def __str__(self) -> str:
        usage, counters = self.usage, self.counters
        facts = {
            "path": self.path,
            "model": self.model,
            "status": self.status,
            "outcome": self.outcome,
            "attempts": self.attempts,
            "seconds": f"{self.seconds:.3f}",
            "first_output": None if self.first_output is None else f"{self.first_output:.3f}",
            "events": counters.events,
            "bytes": counters.bytes_out,
            "usage": usage.status,
            "input": usage.input,
            "output": usage.output,
        }
        return " ".join(f"{name}={_word(value)}" for name, value in facts.items())


def _word(value: object) -> str:
    """A value of a log line: what a stranger chose has no way to begin another line or field."""
    text = "-" if value is None else str(value)
    return (
        text
        if text.isascii() and text.isprintable() and not set(text) & set(' "=')
        else json.dumps(text)
    )


class Gateway:
    """An ASGI application that relays streams and passes everything else through.

    Args:
        upstream: The URL before the path, such as ``"https://api.example.com"``.
        config: How streams are relayed.
        retries: How many more attempts there are, at most, while the client has seen no output.
        backoff: Seconds before the first of them; each one doubles it.
        served: Is told what became of each stream. By default it is logged, at level INFO, by the logger
            ``sse_machines.gateway``.
        max_request: Most bytes of a request; larger ones are refused (413).
        transport: What makes connections, for httpx; None for its own.
    """

    def __init__(
        self,
        upstream: str,
        *,
        config: RelayConfig | None = None,
        retries: int = 1,
        backoff: float = 0.5,
        served: Callable[[Served], object] = _logger.info,
        max_request: int = 64 * 1024 * 1024,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._upstream = upstream.rstrip("/")
        self.config = RelayConfig.hopbase() if config is None else config
        self.retries = retries
        self.backoff = backoff
        self.served = served
        self._max_request = max_request
        self._transport = transport
        self._client: httpx.AsyncClient | None = None

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve a request, as ASGI has it."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)
        else:
            raise ValueError(f"a gateway has no {scope['type']}")

    async def aclose(self) -> None:
        """Close the connections to the upstream. ASGI servers have it done at their end."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.aclose()
        await send({"type": "lifespan.shutdown.complete"})

    async def _serve(self, scope: Message, receive: Receive, send: Send) -> None:
        body = await _body(receive, self._max_request)
        if body is None:
            await _refuse(send, _Refusal.of(_TOO_LARGE, ErrorInfo(message=_REQUEST_TOO_LARGE), scope))
            return
        protocol, model = _asked_for(scope, body)
        if protocol is None:
            await unless(disconnect(receive), self._pass_on(scope, body, send))
            return
        asked = _Asked(scope=scope, body=body, protocol=protocol, model=model)
        stream = _Stream(self, asked, _Answer(send))
        gone = disconnect(receive)
        # Who drains is only told, and reads on.
        await unless(stream.leave(gone) if self.config.drain else gone, stream.serve())

    async def _pass_on(self, scope: Message, body: bytes, send: Send) -> None:
        """Send a request on that is none for a stream we know, and the answer back, as they are."""
        async with contextlib.AsyncExitStack() as stack:
            try:
                response = await stack.enter_async_context(self.request(scope, body))
            except httpx.TransportError:
                await _refuse(send, _Refusal.of(_BAD_GATEWAY, ErrorInfo(message=_UNREACHABLE), scope))
                return
            headers = _without(response.headers.raw, _NOT_SENT_BACK)
            await send(
                {"type": "http.response.start", "status": response.status_code, "headers": headers}
            )
            async for data in response.aiter_raw():
                await send({"type": "http.response.body", "body": data, "more_body": True})
            await send({"type": "http.response.body", "body": b""})

    def request(
        self, scope: Message, body: bytes, **headers: str
    ) -> contextlib.AbstractAsyncContextManager[httpx.Response]:
        """Send a request on."""
        if self._client is None:
            # The clocks of the relays decide how long is too long, and how many connections there are,
            # the clients.
            self._client = httpx.AsyncClient(
                timeout=httpx.Timeout(None, connect=_CONNECT_TIMEOUT),
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=_IDLE_CONNECTIONS),
                transport=self._transport,
            )
            # What the client did not send is not to be added.
            self._client.headers.clear()
        url = self._upstream + (scope.get("raw_path") or quote(scope["path"]).encode()).decode("ascii")
        if scope["query_string"]:
            url += "?" + scope["query_string"].decode("ascii")
        sent = _without(scope["headers"], _NOT_SENT_ON | headers.keys())
        sent += [(name.encode(), value.encode()) for name, value in headers.items()]
        return self._client.stream(scope["method"], url, headers=sent, content=body)


@attrs.frozen(kw_only=True)
class _Asked:
    """A request for a stream."""

    scope: Message
    body: bytes
    protocol: Protocol[Any]
    model: str | None


class _Stream:
    """One request for a stream, and its answer."""

    def __init__(self, gateway: Gateway, asked: _Asked, answer: _Answer) -> None:
        self._gateway = gateway
        self._asked = asked
        self._answer = answer
        self._attempts = 0
        self._refusal: _Refusal | None = None

    async def serve(self) -> None:
        """Answer it, and say what became of it."""
        clock = asyncio.get_running_loop().time
        begin = clock()
        machine = Relay(self._asked.protocol, self._gateway.config, now=begin)
        try:
            await relay(self._upstream, self._answer.write, machine, retry=self._retry)
            await self._answer.end()
        finally:
            counters = machine.counters
            output_at = counters.first_output_at
            served = Served(
                path=self._asked.scope["path"],
                protocol=self._asked.protocol.name,
                model=self._asked.model,
                status=self._answer.status,
                outcome=machine.outcome,
                attempts=self._attempts,
                seconds=clock() - begin,
                first_output=None if output_at is None else output_at - begin,
                usage=machine.usage,
                counters=counters,
            )
            self._gateway.served(served)

    async def leave(self, gone: Awaitable[None]) -> None:
        """Note that the client is gone, and wait for ever: what is drained ends by itself."""
        await gone
        self._answer.gone = True
        await asyncio.get_running_loop().create_future()

    @contextlib.asynccontextmanager
    async def _upstream(self) -> AsyncGenerator[AsyncIterator[bytes]]:
        if self._attempts:
            await asyncio.sleep(self._gateway.backoff * 2 ** (self._attempts - 1))
        self._attempts += 1
        sending = self._gateway.request(
            self._asked.scope, self._asked.body, **{"accept-encoding": "identity"}
        )
        async with sending as response:
            if response.status_code != _OK:
                self._refusal = await _Refusal.read(response)
                raise ConnectionRefusedError(f"status {response.status_code}")
            self._answer.headers = _without(response.headers.raw, _NOT_SENT_BACK | _SET_BY_US)
            yield response.aiter_raw()

    def _retry(self, failure: FailedBeforeOutput) -> bool | ErrorInfo:
        refusal, self._refusal = self._refusal, None
        retryable = failure.retryable if refusal is None else refusal.status in _TRANSIENT
        if retryable and self._attempts <= self._gateway.retries:
            return True
        if refusal is None and failure.cause == "upstream":
            # It has its own words in the stream.
            return False
        if refusal is None:
            status = _GATEWAY_TIMEOUT if failure.cause == "stalled" else _BAD_GATEWAY
            refusal = _Refusal.of(status, failure.error, self._asked.scope)
        self._answer.refusal = refusal
        return refusal.error


class _Answer:
    """What the client gets: nothing is sent before there is something to say.

    Attributes:
        status: What it was told; None while it was not.
        headers: What comes from the upstream.
        refusal: What it is told instead of a stream, if no byte of one has gone out.
        gone: Whether it is gone.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status: int | None = None
        self.headers: list[tuple[bytes, bytes]] = []
        self.refusal: _Refusal | None = None
        self.gone = False

    async def write(self, data: bytes) -> None:
        if self.gone:
            raise ConnectionResetError
        if self.status is None:
            await self._start()
        if self.status == _OK:
            await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def _start(self) -> None:
        if self.refusal is not None:
            self.status = self.refusal.status
            await _refuse(self._send, self.refusal)
            return
        self.status = _OK
        headers = [*HEADERS, *self.headers]
        await self._send({"type": "http.response.start", "status": _OK, "headers": headers})

    async def end(self) -> None:
        if self.status == _OK and not self.gone:
            await self._send({"type": "http.response.body", "body": b""})


@attrs.frozen(kw_only=True)
class _Refusal:
    """An answer that is no stream."""

    status: int
    headers: list[tuple[bytes, bytes]]
    content: bytes
    error: ErrorInfo

    @classmethod
    def of(cls, status: int, error: ErrorInfo, scope: Message) -> _Refusal:
        """An error of our own, in the form that the endpoint has for errors."""
        kind = error.type or "api_error"
        if scope["path"].endswith("/messages"):
            content: Any = {"type": "error", "error": {"type": kind, "message": error.message}}
        else:
            content = {
                "error": {"message": error.message, "type": kind, "param": None, "code": error.code}
            }
        headers = [(b"content-type", b"application/json")]
        return cls(status=status, headers=headers, content=json.dumps(content).encode(), error=error)

    @classmethod
    async def read(cls, response: httpx.Response) -> _Refusal:
        """What the upstream answered instead."""
        content = b""
        async for data in response.aiter_raw():
            content += data
            if len(content) > _MAX_ERROR:
                break
        try:
            body = loads(content.decode(errors="replace"))
        except PayloadError:
            body = None
        error = body.get("error") if isinstance(body, dict) else None
        return cls(
            status=response.status_code,
            headers=_without(response.headers.raw, _NOT_SENT_BACK | {"content-length"}),
            content=content[:_MAX_ERROR],
            error=ErrorInfo.of(error or f"status {response.status_code}", {}),
        )


async def _refuse(send: Send, refusal: _Refusal) -> None:
    headers = [*refusal.headers, (b"content-length", str(len(refusal.content)).encode())]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": refusal.content})


async def _body(receive: Receive, limit: int) -> bytes | None:
    """The whole body of a request; None if it is too large."""
    body, more = bytearray(), True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > limit:
            return None
    return bytes(body)


def _asked_for(scope: Message, body: bytes) -> tuple[Protocol[Any] | None, str | None]:
    """The protocol of the stream that is asked for, None if none is, and the model."""
    protocol = next((it for end, it in _ENDPOINTS.items() if scope["path"].endswith(end)), None)
    if protocol is None or scope["method"] != "POST":
        return None, None
    try:
        request = loads(body.decode(errors="replace"))
    except PayloadError:
        return None, None
    if not isinstance(request, dict) or request.get("stream") is not True:
        return None, None
    model = request.get("model")
    return protocol, model if isinstance(model, str) else None


def _without(headers: Any, names: Any) -> list[tuple[bytes, bytes]]:
    """Headers without some, and without those that the connection header names."""
    pairs = [(bytes(name), bytes(value)) for name, value in headers]
    named = b",".join(value for name, value in pairs if name.lower() == b"connection")
    dropped = {name.strip().lower() for name in named.decode("latin-1").split(",")}
    dropped |= set(names)
    return [pair for pair in pairs if pair[0].lower().decode("latin-1") not in dropped]


def serve(gateway: Gateway, host: str, port: int) -> None:
    """Serve a gateway until the process is told to stop; one line for each stream is printed.

    Args:
        gateway: The application.
        host: The address to listen on.
        port: The port; 0 for one that is free.
    """
    # There are no other lines: each request that is no stream is the upstream's business.
    config = uvicorn.Config(gateway, host=host, port=port, log_level="warning", access_log=False)
    with config.bind_socket() as listening:
        # Who reads the line can connect.
        listening.listen(config.backlog)
        shown = f"[{host}]" if ":" in host else host
        print(f"listening on http://{shown}:{listening.getsockname()[1]}", flush=True)  # noqa: T201
        uvicorn.Server(config).run(sockets=[listening])


def tell(served: Served) -> None:
    """Print a line about a stream."""
    print(served, flush=True)  # noqa: T201 - the command's output
