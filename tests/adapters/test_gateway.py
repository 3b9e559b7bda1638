"""The gateway, without sockets and in virtual time: requests as ASGI has them, a scripted upstream."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import attrs
import httpx
import pytest

from sse_machines import Drain, Hold, KeepAlive, RelayConfig, RelayOutcome, Stall
from sse_machines.adapters.gateway import Gateway, Served
from tests.adapters.streams import SAMPLES, pieces
from tests.adapters.virtual import run

SAMPLE = SAMPLES["messages"]
FOREVER = object()
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
CONFIG = RelayConfig(
    keepalive=KeepAlive(interval=10.0, text="here", before_output=True),
    stall=Stall(idle_progress=120.0),
    hold=Hold(),
)
EVENT_STREAM = {"content-type": "text/event-stream"}


class Body(httpx.AsyncByteStream):
    """The body of an answer: bytes, times to wait, errors to raise."""

    def __init__(self, steps: list[Any], closed: list[float]) -> None:
        self._steps = steps
        self._closed = closed

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for step in self._steps:
            if isinstance(step, bytes):
                yield step
            elif isinstance(step, Exception):
                raise step
            elif step is FOREVER:
                await asyncio.get_running_loop().create_future()
            else:
                await asyncio.sleep(step)

    async def aclose(self) -> None:
        self._closed.append(asyncio.get_running_loop().time())


class Upstream(httpx.AsyncBaseTransport):
    """Answers one request after the other with what it is given: steps of a body, or a response."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.requests: list[httpx.Request] = []
        self.times: list[float] = []
        self.closed: list[float] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        self.times.append(asyncio.get_running_loop().time())
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        if answer is FOREVER:
            await asyncio.get_running_loop().create_future()
        if isinstance(answer, httpx.Response):
            return answer
        headers = {
            **EVENT_STREAM,
            "x-request-id": "r-1",
            "connection": "keep-alive, x-hop",
            "x-hop": "1",
        }
        return httpx.Response(200, headers=headers, stream=Body(answer, self.closed))


@attrs.define
class Client:
    """One request, and what its client sees of the answer."""

    path: str = PATHS["messages"]
    method: str = "POST"
    content: bytes = b'{"model": "m-1", "stream": true}'
    headers: list[tuple[bytes, bytes]] = attrs.field(factory=list)
    query: bytes = b""
    # When it goes away, and after how many messages.
    leaves_at: float | None = None
    raw_path: bool = True
    status: int | None = None
    answered: list[tuple[bytes, bytes]] = attrs.field(factory=list)
    writes: list[tuple[float, bytes]] = attrs.field(factory=list)
    ended: bool = False

    @property
    def data(self) -> bytes:
        return b"".join(data for _, data in self.writes)

    @property
    def json(self) -> Any:
        return json.loads(self.data)

    @property
    def scope(self) -> dict[str, Any]:
        raw = {"raw_path": self.path.encode()} if self.raw_path else {}
        asked = {"method": self.method, "path": self.path, "query_string": self.query}
        return {"type": "http", "headers": self.headers, **asked, **raw}

    async def ask(self, app: Any) -> None:
        parts = pieces(self.content, 20) or [b""]
        messages = [
            {"type": "http.request", "body": part, "more_body": i < len(parts) - 1}
            for i, part in enumerate(parts)
        ]
        loop = asyncio.get_running_loop()

        async def receive() -> Any:
            if messages:
                return messages.pop(0)
            if self.leaves_at is None:
                await loop.create_future()
            await asyncio.sleep(max(0, self.leaves_at - loop.time()))  # type: ignore[operator]
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                assert self.status is None
                self.status, self.answered = message["status"], message["headers"]
                return
            assert self.status is not None
            assert not self.ended
            if message["body"]:
                self.writes.append((loop.time(), message["body"]))
            self.ended = not message.get("more_body", False)

        await app(self.scope, receive, send)


def serve(
    upstream: Upstream, client: Client, *, config: RelayConfig = CONFIG, retries: int = 1
) -> Served | None:
    """Let one client ask; what the gateway says of it."""
    served: list[Served] = []

    async def main() -> None:
        gateway = Gateway(
            "http://upstream/base/",
            config=config,
            retries=retries,
            served=served.append,
            transport=upstream,
        )
        await client.ask(gateway)
        await gateway.aclose()

    run(main())
    return served[0] if served else None


@pytest.mark.parametrize("name", PATHS)
def test_a_stream_passes_unchanged(name: str) -> None:
    upstream, client = Upstream(pieces(SAMPLES[name], 300)), Client(PATHS[name])
    served = serve(upstream, client)
    assert client.data == SAMPLES[name]
    assert client.status == 200
    assert client.ended
    assert served is not None
    assert (served.path, served.protocol, served.model) == (PATHS[name], name, "m-1")
    assert (served.status, served.outcome, served.attempts) == (200, RelayOutcome.COMPLETED, 1)
    assert served.usage.status == "final"
    assert served.counters.bytes_out == len(SAMPLES[name])
    assert len(upstream.closed) == 1


def test_headers_of_a_stream() -> None:
    client = Client(
        headers=[
            *((b"authorization", b"Bearer k"), (b"accept-encoding", b"gzip"), (b"host", b"me")),
            *((b"connection", b"X-Mine, close"), (b"x-mine", b"1"), (b"content-length", b"99")),
            (b"user-agent", b"sdk"),
        ],
        query=b"beta=true",
    )
    upstream = Upstream([SAMPLE])
    serve(upstream, client)
    (request,) = upstream.requests
    assert str(request.url) == "http://upstream/base/v1/messages?beta=true"
    assert dict(request.headers) == {
        "host": "upstream",
        "authorization": "Bearer k",
        "accept-encoding": "identity",
        "user-agent": "sdk",
        "content-length": str(len(client.content)),
    }
    assert request.content == client.content
    assert dict(client.answered) == {
        b"content-type": b"text/event-stream; charset=utf-8",
        b"cache-control": b"no-cache, no-transform",
        b"x-accel-buffering": b"no",
        b"x-request-id": b"r-1",
    }


def test_a_path_that_the_server_gives_only_decoded() -> None:
    client = Client("/v1/mo dels", method="GET", content=b"", raw_path=False)
    upstream = Upstream([b"[]"])
    serve(upstream, client)
    assert upstream.requests[0].url.raw_path == b"/base/v1/mo%20dels"


def test_keep_alives_come_before_output_too_and_commit_the_status() -> None:
    client, upstream = Client(), Upstream([25, SAMPLE[:900], 35, SAMPLE[900:]])
    served = serve(upstream, client)
    comments = [time for time, data in client.writes if data == b": here\n\n"]
    assert comments == [10.0, 20.0, 35.0, 45.0, 55.0]
    assert client.data.replace(b": here\n\n", b"") == SAMPLE
    assert served is not None
    assert served.first_output == 25.0
    assert served.seconds == 60.0


def test_a_stall_before_output_is_made_again_with_a_pause() -> None:
    client, upstream = Client(), Upstream([FOREVER], [SAMPLE])
    served = serve(upstream, client)
    assert upstream.times == [0.0, 120.5]
    assert upstream.closed[0] == 120.0
    assert client.data.replace(b": here\n\n", b"") == SAMPLE
    assert served is not None
    assert (served.outcome, served.attempts) == (RelayOutcome.COMPLETED, 2)


def test_pauses_before_attempts_double() -> None:
    error = httpx.ConnectError("refused")
    client, upstream = Client(), Upstream(error, error, error, [SAMPLE])
    serve(upstream, client, retries=3)
    assert upstream.times == [0.0, 0.5, 1.5, 3.5]
    assert client.data == SAMPLE


@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (httpx.ConnectError("refused"), 502),
        ([b"<html>no</html>\n\n"], 502),
        ([], 502),
        ([httpx.ReadError("reset")], 502),
    ],
)
def test_what_fails_before_output_is_an_http_error_where_nothing_was_said(
    name: str, answer: Any, status: int
) -> None:
    client = Client(PATHS[name])
    served = serve(Upstream(answer), client, retries=0)
    assert client.status == status
    assert dict(client.answered)[b"content-type"] == b"application/json"
    assert int(dict(client.answered)[b"content-length"]) == len(client.data)
    error = client.json["error"]
    assert error["type"] == "api_error"
    assert error["message"]
    assert ("code" in error) == (name != "messages")
    assert client.json.get("type") == ("error" if name == "messages" else None)
    assert served is not None
    assert served.status == status
    assert client.ended


def test_a_stall_before_output_and_keep_alives_is_a_gateway_timeout() -> None:
    config = attrs.evolve(CONFIG, keepalive=None)
    client = Client()
    served = serve(Upstream([FOREVER]), client, config=config, retries=0)
    assert client.status == 504
    assert served is not None
    assert served.seconds == 120.0


def test_a_stall_behind_keep_alives_is_an_event() -> None:
    client = Client()
    served = serve(Upstream([FOREVER]), client, retries=0)
    assert client.status == 200
    assert client.writes[-1][0] == 120.0
    assert client.writes[-1][1].startswith(b"event: error\n")
    assert served is not None
    assert served.status == 200


OVERLOADED = {"error": {"type": "overloaded_error", "message": "Overloaded"}, "type": "error"}


def refusal(status: int, content: bytes = json.dumps(OVERLOADED).encode()) -> httpx.Response:
    headers = {"retry-after": "3", "date": "now", "content-length": str(len(content))}
    return httpx.Response(status, headers=headers, stream=Body([content], []))


@pytest.mark.parametrize("status", [500, 502, 503, 504, 529])
def test_a_status_that_may_pass_is_tried_again(status: int) -> None:
    client = Client()
    served = serve(Upstream(refusal(status), [SAMPLE]), client)
    assert client.data == SAMPLE
    assert served is not None
    assert served.attempts == 2


@pytest.mark.parametrize(("status", "attempts"), [(400, 1), (401, 1), (429, 1), (529, 2), (302, 1)])
def test_the_upstreams_own_refusal_is_passed_on_as_it_is(status: int, attempts: int) -> None:
    client = Client()
    upstream = Upstream(*[refusal(status) for _ in range(attempts)])
    served = serve(upstream, client)
    assert client.status == status
    assert client.json == OVERLOADED
    headers = dict(client.answered)
    assert headers[b"retry-after"] == b"3"
    assert b"date" not in headers
    assert served is not None
    assert (served.status, served.attempts) == (status, attempts)
    assert served.outcome is RelayOutcome.FAILED_GATEWAY


def test_a_refusal_behind_keep_alives_is_an_event_in_its_words() -> None:
    client = Client()
    upstream = Upstream([FOREVER], refusal(400))
    serve(upstream, client)
    assert client.status == 200
    assert b'"type":"overloaded_error","message":"Overloaded"' in client.writes[-1][1].replace(
        b": ", b":"
    )


@pytest.mark.parametrize("content", [b"<html>", b"[1]", b"", b'{"error": "words"}', b"x" * 1_000_000])
def test_a_refusal_may_be_anything(content: bytes) -> None:
    client = Client()
    serve(Upstream(refusal(400, content)), client)
    assert client.status == 400
    assert content.startswith(client.data)
    assert len(client.data) == min(len(content), 256 * 1024)


def test_what_the_upstream_says_in_its_stream_before_output_goes_to_the_client() -> None:
    fault = {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}
    error = f"event: error\ndata: {json.dumps(fault)}\n\n".encode()
    client = Client()
    served = serve(Upstream([error]), client)
    assert client.status == 200
    assert client.data == error
    assert served is not None
    assert served.outcome is RelayOutcome.FAILED_UPSTREAM


def test_a_cut_behind_output_is_an_event_and_no_other_attempt() -> None:
    client, upstream = Client(), Upstream([SAMPLE[:900], httpx.ReadError("reset")])
    served = serve(upstream, client)
    assert b"Response stream interrupted, please retry" in client.data
    assert len(upstream.requests) == 1
    assert served is not None
    assert served.outcome is RelayOutcome.ABORTED


def test_without_hold_errors_are_events_from_the_start() -> None:
    client = Client()
    serve(Upstream(httpx.ConnectError("no")), client, config=RelayConfig())
    assert client.status == 200
    assert client.data.startswith(b"event: error\n")


def test_an_upstream_that_hangs_behind_the_end_is_left() -> None:
    client, upstream = Client(), Upstream([SAMPLE, FOREVER])
    served = serve(upstream, client)
    assert upstream.closed == [0.0]
    assert client.ended
    assert served is not None
    assert served.seconds == 0.0


@pytest.mark.parametrize("at", [0.0, 3.0])
@pytest.mark.parametrize("answer", [FOREVER, [FOREVER], [SAMPLE[:900], FOREVER]])
def test_a_client_that_leaves_has_the_upstream_closed_at_once(at: float, answer: Any) -> None:
    client, upstream = Client(leaves_at=at), Upstream(answer)
    served = serve(upstream, client)
    assert served is not None
    assert served.outcome is RelayOutcome.CANCELLED
    assert served.seconds == at
    if isinstance(answer, list):
        assert upstream.closed == [at]


def test_a_client_that_leaves_may_have_its_answer_drained() -> None:
    config = attrs.evolve(CONFIG, drain=Drain(max_seconds=60))
    client, upstream = Client(leaves_at=3.0), Upstream([SAMPLE[:900], 20, SAMPLE[900:]])
    served = serve(upstream, client, config=config)
    assert served is not None
    assert served.outcome is RelayOutcome.CANCELLED
    assert (served.usage.status, served.usage.output) == ("final", 64)
    assert served.seconds == 20.0
    assert not client.ended


def test_a_request_that_is_too_large_is_refused() -> None:
    async def main() -> None:
        client = Client(content=b" " * 101)
        await client.ask(Gateway("http://upstream", max_request=100, transport=Upstream()))
        assert client.status == 413
        assert client.json["error"]["message"] == "The request is too large"

    run(main())


# What is no stream.


@pytest.mark.parametrize(
    "client",
    [
        Client(content=b'{"stream": false}'),
        Client(content=b"{}"),
        Client(content=b"[]"),
        Client(content=b"no JSON"),
        Client(content=b"\xff"),
        Client("/v1/models", method="GET", content=b""),
        Client("/v1/embeddings"),
        Client(method="GET"),
    ],
)
def test_everything_else_passes_as_it_is(client: Client) -> None:
    client.headers = [(b"accept-encoding", b"gzip")]
    answer = httpx.Response(
        201,
        headers={"x-a": "1", "server": "s", "content-encoding": "gzip"},
        stream=Body([b"\x1f\x8b..."], []),
    )
    upstream = Upstream(answer)
    assert serve(upstream, client) is None
    assert upstream.requests[0].method == client.method
    assert upstream.requests[0].content == client.content
    assert upstream.requests[0].headers["accept-encoding"] == "gzip"
    assert client.status == 201
    assert client.data == b"\x1f\x8b..."
    assert dict(client.answered) == {b"x-a": b"1", b"content-encoding": b"gzip"}
    assert client.ended


def test_an_upstream_that_cannot_be_reached_is_a_bad_gateway() -> None:
    client = Client("/v1/models", method="GET", content=b"")
    serve(Upstream(httpx.ConnectError("refused")), client)
    assert client.status == 502
    assert client.json["error"]["message"] == "The model cannot be reached"


def test_an_answer_that_breaks_off_is_not_made_whole() -> None:
    client = Client("/v1/models", method="GET", content=b"")
    with pytest.raises(httpx.ReadError):
        serve(Upstream([b"[1", httpx.ReadError("reset")]), client)
    assert not client.ended


def test_a_client_that_leaves_ends_the_rest_too() -> None:
    client, upstream = Client("/v1/models", method="GET", leaves_at=3.0), Upstream([b"[", FOREVER])
    serve(upstream, client)
    assert upstream.closed == [3.0]


def test_the_call_itself_can_be_cancelled() -> None:
    upstream = Upstream([SAMPLE[:900], FOREVER])

    async def main() -> None:
        gateway = Gateway("http://upstream", config=CONFIG, transport=upstream)
        task = asyncio.ensure_future(Client().ask(gateway))
        await asyncio.sleep(5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert upstream.closed == [5.0]
        await gateway.aclose()

    run(main())


# Lifespan, lines, and the rest.


def test_connections_are_closed_at_the_end_of_the_lifespan() -> None:
    closed: list[bool] = []

    class Noting(Upstream):
        async def aclose(self) -> None:
            closed.append(True)

    async def main() -> None:
        gateway = Gateway("http://upstream", transport=Noting([SAMPLE]))
        for messages in (["startup", "shutdown"], ["startup", "shutdown"]):
            said: list[str] = []

            async def receive(messages: list[str] = messages) -> Any:
                if messages == ["shutdown"] and not closed:
                    await Client().ask(gateway)
                return {"type": f"lifespan.{messages.pop(0)}"}

            async def send(message: Any, said: list[str] = said) -> None:
                said.append(message["type"])

            await gateway({"type": "lifespan"}, receive, send)
            assert said == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
        assert closed == [True]

    run(main())


def test_a_gateway_has_no_web_sockets() -> None:
    nothing: Any = None
    with pytest.raises(ValueError, match="websocket"):
        run(Gateway("http://upstream")({"type": "websocket"}, nothing, nothing))


def test_streams_are_logged_by_default(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "sse_machines.gateway")

    async def main() -> None:
        gateway = Gateway("http://upstream", transport=Upstream([2, SAMPLE, FOREVER]))
        await Client(content=b'{"model": "a \\"b\\"\\n", "stream": true}').ask(gateway)
        await gateway.aclose()

    run(main())
    (record,) = caplog.records
    assert record.getMessage() == (
        'path=/v1/messages model="a \\"b\\"\\n" status=200 outcome=completed attempts=1 seconds=2.000 '
        f"first_output=2.000 events=21 bytes={len(SAMPLE)} usage=final input=31 output=64"
    )


def test_a_line_about_a_stream_without_output() -> None:
    client = Client(content=b'{"stream": true, "model": 7}', leaves_at=1.0)
    served = serve(Upstream(FOREVER), client)
    assert str(served) == (
        "path=/v1/messages model=- status=- outcome=cancelled attempts=1 seconds=1.000 first_output=- "
        "events=0 bytes=0 usage=none input=- output=-"
    )
