"""The official Python clients read through the gateway, from an upstream that misbehaves; real sockets.

The upstream does what the first part of the path says: ``/cut=5/v1/messages``. Times are a hundredth of
what they are in earnest; what is exact about them is tested in virtual time elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import anthropic
import attrs
import httpx
import openai
import pytest
import uvicorn
from chaos_upstream import Chaos

from sse_machines import Hold, KeepAlive, RelayConfig, RelayOutcome, Stall
from sse_machines.adapters.gateway import Gateway, Served
from tests.clients.readers import READERS, Sight, read, read_async

# Being traced makes this slower, and the tests of the single rules reach every line.
pytestmark = pytest.mark.untraced

CONFIG = RelayConfig(
    keepalive=KeepAlive(interval=0.1, text="hopbase-keepalive", before_output=True),
    stall=Stall(idle_progress=0.6),
    hold=Hold(),
)
INTERRUPTED = "Response stream interrupted, please retry"
RAW = [name for name in READERS if name.endswith("raw")]
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
NUMBERS = itertools.count()
# What the clients make of a status; Anthropic's has a class more.
CLASSES = {
    400: {"BadRequestError"},
    502: {"InternalServerError"},
    503: {"InternalServerError", "ServiceUnavailableError"},
}
SOON = 1.0
"""Seconds within which an upstream is to be left."""


class Place:
    """The upstream and the gateway, each in a thread with a loop of its own."""

    def __init__(self) -> None:
        self.served: list[Served] = []
        self.upstream: Any = None
        self.url = ""
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._ready = threading.Event()

    @contextlib.contextmanager
    def running(self) -> Iterator[Place]:
        upstream = threading.Thread(target=self._loop.run_until_complete, args=(self._upstream(),))
        upstream.start()
        assert self._ready.wait(5)
        gateway = Gateway(self.upstream.url, config=CONFIG, backoff=0.01, served=self.served.append)
        server = uvicorn.Server(uvicorn.Config(_behaving(gateway), log_level="critical"))
        with socket.create_server(("127.0.0.1", 0)) as listening:
            self.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
            serving = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
            serving.start()
            try:
                yield self
            finally:
                server.should_exit = True
                serving.join()
                self._loop.call_soon_threadsafe(self._stop.set)
                upstream.join()
                self._loop.close()

    async def _upstream(self) -> None:
        async with Chaos() as self.upstream:
            self._ready.set()
            await self._stop.wait()

    def wait_until(self, condition: Any) -> float:
        """Wait for something that happens in another thread; how long it took."""
        begin = time.monotonic()
        while not condition():
            assert time.monotonic() < begin + 5
            time.sleep(0.01)
        return time.monotonic() - begin


def _behaving(app: Any) -> Any:
    """Make a header of the first part of the path."""

    async def behaving(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            _, chaos, rest = scope["path"].split("/", 2)
            # What it counts is counted for each path.
            named = [(b"x-chaos", chaos.encode()), (b"x-chaos-key", chaos.encode())]
            headers = [*scope["headers"], *named]
            scope = {**scope, "headers": headers, "path": f"/{rest}", "raw_path": f"/{rest}".encode()}
        await app(scope, receive, send)

    return behaving


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with Place().running() as it:
        yield it


@pytest.fixture(params=["sync", "async"])
def kind(request: pytest.FixtureRequest) -> str:
    kind: str = request.param
    return kind


def sight_of(place: Place, name: str, kind: str, chaos: str) -> tuple[Sight, Served]:
    place.served.clear()
    url = f"{place.url}/{chaos}/v1"
    sight = read(name, url) if kind == "sync" else asyncio.run(read_async(name, url))
    place.wait_until(lambda: place.served)
    assert place.wait_until(lambda: place.upstream.open == 0) < SOON
    (served,) = place.served
    return sight, served


def direct(place: Place, name: str) -> Sight:
    """What the client sees without a gateway."""
    return read(name, f"{place.upstream.url}/v1")


def check_whole(place: Place, name: str, sight: Sight, served: Served) -> None:
    assert sight.error is None
    assert attrs.asdict(sight) == attrs.asdict(direct(place, name))
    assert sight.text
    assert served.outcome is RelayOutcome.COMPLETED
    assert served.usage.status == "final"


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("chaos", ["clean", "hang", "pause=0.35,at=1", "pause=0.35,at=9", "delay=0.01"])
def test_a_whole_answer(place: Place, name: str, kind: str, chaos: str) -> None:
    sight, served = sight_of(place, name, kind, chaos)
    check_whole(place, name, sight, served)
    assert served.attempts == 1


@pytest.mark.parametrize("api", PATHS)
@pytest.mark.parametrize("at", [1, 9])
def test_keep_alives_arrive_during_a_pause_and_change_nothing(place: Place, api: str, at: int) -> None:
    url = f"{place.url}/pause=0.35,at={at}{PATHS[api]}"
    with httpx.stream("POST", url, json={"stream": True}) as response:
        assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert response.headers["cache-control"] == "no-cache, no-transform"
        assert response.headers["x-accel-buffering"] == "no"
        data = b"".join(response.iter_raw())
    comment = b": hopbase-keepalive\n\n"
    assert 2 <= data.count(comment) <= 4
    assert (
        data.replace(comment, b"")
        == httpx.post(f"{place.upstream.url}{PATHS[api]}", json={"stream": True}).content
    )


def check_broken(name: str, sight: Sight, message: str) -> None:
    assert sight.error is not None
    assert message in (sight.error["message"] or "")
    if READERS[name].api == "responses":
        assert sight.error["code"] == "server_error"


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(
    ("chaos", "ending"),
    [
        ("stall=9", (RelayOutcome.STALLED, "The model stopped responding, please retry")),
        ("cut=9", (RelayOutcome.ABORTED, INTERRUPTED)),
        ("eof=9", (RelayOutcome.TRUNCATED, INTERRUPTED)),
        ("error=9", (RelayOutcome.FAILED_UPSTREAM, "overloaded")),
    ],
)
def test_an_answer_that_breaks_off(
    place: Place, name: str, kind: str, chaos: str, ending: tuple[RelayOutcome, str]
) -> None:
    outcome, message = ending
    sight, served = sight_of(place, name, kind, chaos)
    check_broken(name, sight, message)
    assert sight.final is None
    assert served.outcome is outcome
    # Retrying is over once there was output.
    assert served.attempts == 1
    whole = direct(place, name)
    seen = sight.text + sight.reasoning
    assert seen
    assert (whole.reasoning + whole.text).startswith(seen) or (whole.text + whole.reasoning).startswith(
        seen
    )


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(
    "chaos", ["cut=0", "cut=1", "eof=1", "error=1", "stall=1", "html", "status=503"]
)
def test_what_fails_before_output_is_tried_again(place: Place, name: str, kind: str, chaos: str) -> None:
    sight, served = sight_of(place, name, kind, f"{chaos},times=1,n={next(NUMBERS)}")
    check_whole(place, name, sight, served)
    assert served.attempts == 2


@pytest.mark.parametrize("name", RAW)
@pytest.mark.parametrize(("chaos", "status"), [("status=400", 400), ("status=503", 503), ("html", 502)])
def test_what_fails_before_output_for_good_is_an_http_error(
    place: Place, name: str, kind: str, chaos: str, status: int
) -> None:
    sight, served = sight_of(place, name, kind, chaos)
    assert sight.error is not None
    assert served.status == status
    assert sight.error["class"] in CLASSES[status]
    assert served.attempts == (1 if status == 400 else 2)


@pytest.mark.parametrize("name", RAW)
@pytest.mark.parametrize("chaos", ["stall=9", "delay=0.05"])
def test_a_client_that_leaves_has_the_upstream_closed_within_a_second(
    place: Place, name: str, kind: str, chaos: str
) -> None:
    place.served.clear()
    url = f"{place.url}/{chaos}" + ("" if name.startswith("anthropic") else "/v1")
    if kind == "sync":
        _leave(name, url)
    else:
        asyncio.run(_leave_async(name, url))
    assert place.wait_until(lambda: place.upstream.open == 0) < SOON
    place.wait_until(lambda: place.served)
    assert place.served[0].outcome is RelayOutcome.CANCELLED
    assert place.served[0].counters.events > 0


def _leave(name: str, url: str) -> None:
    sdk: Any = anthropic.Anthropic if name.startswith("anthropic") else openai.OpenAI
    with sdk(api_key="none", base_url=url) as client, READERS[name].open(client) as stream:
        next(iter(stream))


async def _leave_async(name: str, url: str) -> None:
    sdk: Any = anthropic.AsyncAnthropic if name.startswith("anthropic") else openai.AsyncOpenAI
    async with sdk(api_key="none", base_url=url) as client, await READERS[name].open(client) as stream:
        await anext(aiter(stream))
