"""Every example is run, over real sockets: its functions, and at least once as the script that it is."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import inspect
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import distributed
import httpx
import pytest
import uvicorn

from sse_machines import FrameReader, Hold, KeepAlive, Outcome, RelayConfig, Stall, collect
from tests.adapters.streams import PROTOCOLS, SAMPLES

EXAMPLES = Path(__file__).parents[1] / "examples"

CLIENTS = ["aiohttp_client", "httpx_client", "raw_socket_client", "requests_client", "urllib3_client"]
TESTED = {*CLIENTS, "chaos_script", "chaos_upstream", "check_fleet", "fastapi_server", "gateway"}

PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
TEXT = "Let me look at the sky over Oslo ☂️."
STREAM = b'{"stream": true}'
LIMIT = 20
"""Seconds after which something is wrong, and not only slow."""

every_protocol = pytest.mark.parametrize("name", PROTOCOLS)
every_client = pytest.mark.parametrize("client", CLIENTS)


def example(name: str) -> Any:
    return importlib.import_module(name)


def blocks_of(name: str) -> list[bytes]:
    reader = FrameReader()
    reader.feed(SAMPLES[name])
    return [frame.raw for frame in iter(reader.next_frame, None)]


# --- The files


def test_every_example_is_tested() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == TESTED


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_is_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 80


@contextlib.contextmanager
def script(name: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run an example as a script, with warnings as errors, and end it if it does not end by itself."""
    command = [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py"), *arguments]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8", "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env=environment,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def run(name: str, *arguments: str) -> tuple[int, str]:
    """Run an example to its end; its exit status and what it prints."""
    with script(name, *arguments) as process:
        printed, errors = process.communicate(timeout=LIMIT)
    assert not errors
    return process.returncode, printed


def read_until(stream: IO[str], text: str) -> str:
    """Read what a script prints, character by character, until a text is there."""
    printed = ""
    while not printed.endswith(text) and (character := stream.read(1)):
        printed += character
    return printed


# --- The script of the chaos


def steps(chaos: str, name: str = "messages") -> list[tuple[float, bytes]]:
    made: list[tuple[float, bytes]] = example("chaos_script").steps_of(PATHS[name], chaos, stream=True)
    return made


@every_protocol
def test_without_chaos_the_steps_are_the_blocks_of_the_sample_without_any_wait(name: str) -> None:
    (_, head), *chunks, (_, end) = steps("", name)
    assert head.startswith(b"HTTP/1.1 200 ")
    assert b"\r\ncontent-type: text/event-stream\r\n" in head
    assert [dechunked(data) for _, data in chunks] == [(block, False) for block in blocks_of(name)]
    assert end == b"0\r\n\r\n"
    assert {seconds for seconds, _ in steps("", name)} == {0}


@every_protocol
@pytest.mark.parametrize("more", [1, 50])
def test_more_blocks_of_text_make_a_longer_answer_without_fault(name: str, more: int) -> None:
    plain, longer = steps("", name), steps(f"repeat={more}", name)
    assert len(longer) == len(plain) + more
    result = collect(dechunked(b"".join(data for _, data in longer[1:]))[0], PROTOCOLS[name])
    assert (result.outcome, result.violations, result.error) == (Outcome.COMPLETED, (), None)


def test_a_delay_is_before_each_block_and_a_pause_before_one() -> None:
    count = len(blocks_of("messages"))
    waits = [seconds for seconds, _ in steps("delay=0.5, pause=2, at=3")]
    assert waits == [0, *[0.5] * 3, 2.5, *[0.5] * (count - 4), 0]
    assert [seconds for seconds, _ in steps("pause=2")][:3] == [0, 2, 0]


def test_a_path_that_no_protocol_has_is_not_found() -> None:
    [(_, data)] = example("chaos_script").steps_of("/v1/models", "", stream=True)
    assert data.startswith(b"HTTP/1.1 404 ")


def test_the_steps_can_be_looked_at() -> None:
    status, printed = run("chaos_script", "/v1/messages", "delay=0.25", "stall=2")
    assert status == 0
    lines = printed.splitlines()
    assert [line.split(" s ")[0].strip() for line in lines] == ["0.00", "0.25", "0.25", "inf"]
    assert "content_block_start" in lines[2]


# --- The chaos on the wire


@contextlib.contextmanager
def serving() -> Iterator[Any]:
    """An upstream, in a thread with an event loop of its own."""
    ready, stop = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()
    upstream = example("chaos_upstream").Chaos()

    async def serve() -> None:
        async with upstream:
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        assert ready.wait(LIMIT)
        yield upstream
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()
        # A task that failed is still there.
        assert upstream._tasks == set()


@pytest.fixture
def upstream() -> Iterator[Any]:
    with serving() as upstream:
        yield upstream


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes
    ended: bool
    """Whether the body came to its end."""


def connect(upstream: Any) -> socket.socket:
    host, port = upstream.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), LIMIT)


def request(
    target: str, chaos: str, body: bytes = STREAM, headers: dict[str, str] | None = None
) -> bytes:
    fields = {"host": "chaos", "x-chaos": chaos, "content-length": str(len(body)), **(headers or {})}
    lines = [f"POST {target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    return "".join(f"{line}\r\n" for line in [*lines, ""]).encode() + body


def reply(data: bytes) -> Reply:
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    if headers.get("transfer-encoding") == "chunked":
        body, ended = dechunked(body)
    else:
        ended = len(body) == int(headers["content-length"])
    return Reply(int(first.split()[1]), headers, body, ended)


def dechunked(data: bytes) -> tuple[bytes, bool]:
    """The content of the chunks that are there, and whether the last one is among them."""
    content = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        if size == b"0":
            assert data == b"\r\n"
            return content, True
        content += data[: int(size, 16)]
        assert data[int(size, 16) :][:2] == b"\r\n"
        data = data[int(size, 16) + 2 :]
    return content, False


def ask(
    upstream: Any, chaos: str, name: str = "messages", headers: dict[str, str] | None = None
) -> Reply:
    """Ask for an answer, and read until the upstream closes the connection."""
    with connect(upstream) as connection:
        connection.sendall(request(PATHS[name], chaos, headers=headers))
        return reply(b"".join(iter(lambda: connection.recv(65536), b"")))


def wait_for(condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.001)


@every_protocol
def test_without_chaos_the_sample_comes_as_a_chunked_event_stream(upstream: Any, name: str) -> None:
    got = ask(upstream, "", name)
    assert (got.status, got.headers["content-type"]) == (200, "text/event-stream")
    assert got.headers["connection"] == "close"
    assert (got.body, got.ended) == (SAMPLES[name], True)


@every_protocol
@pytest.mark.parametrize("count", [0, 7])
def test_a_cut_ends_within_a_block_and_without_the_last_chunk(
    upstream: Any, name: str, count: int
) -> None:
    blocks = blocks_of(name)
    got = ask(upstream, f"cut={count}", name)
    half = blocks[count][: (len(blocks[count]) + 1) // 2]
    assert (got.body, got.ended) == (b"".join(blocks[:count]) + half, False)


@every_protocol
def test_an_early_end_is_a_clean_one(upstream: Any, name: str) -> None:
    got = ask(upstream, "eof=6", name)
    assert (got.body, got.ended) == (b"".join(blocks_of(name)[:6]), True)


@every_protocol
@pytest.mark.parametrize("count", [0, 6])
def test_an_error_is_the_protocols_own(upstream: Any, name: str, count: int) -> None:
    got = ask(upstream, f"error={count}", name)
    assert got.ended
    assert got.body.startswith(b"".join(blocks_of(name)[:count]))
    result = collect(got.body, PROTOCOLS[name])
    assert (result.outcome, result.violations) == (Outcome.FAILED, ())
    assert result.error is not None
    assert result.error.message == "overloaded"


@pytest.mark.parametrize(("chaos", "count"), [("stall=5", 5), ("hang", None)])
def test_silence_keeps_the_connection_open_until_the_client_closes_it(
    upstream: Any, chaos: str, count: int | None
) -> None:
    expected = b"".join(data for _, data in steps(chaos))
    with connect(upstream) as connection:
        connection.sendall(request(PATHS["messages"], chaos))
        got = reply(receive(connection, len(expected)))
        assert (got.body, got.ended) == (b"".join(blocks_of("messages")[:count]), False)
        connection.settimeout(0.05)
        with pytest.raises(TimeoutError):
            connection.recv(1)
        assert upstream.open == 1
    wait_for(lambda: upstream.open == 0)


def receive(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = connection.recv(size - len(data))
        assert piece
        data += piece
    return data


def test_a_client_that_leaves_during_a_delay_is_noticed_at_once(upstream: Any) -> None:
    with connect(upstream) as connection:
        connection.sendall(request(PATHS["messages"], "delay=3600"))
        wait_for(lambda: upstream.open == 1)
    wait_for(lambda: upstream.open == 0)


def test_a_client_that_leaves_while_it_does_not_read_is_noticed_at_once(upstream: Any) -> None:
    with connect(upstream) as connection:
        connection.sendall(request(PATHS["messages"], "repeat=100000"))
        wait_for(lambda: upstream.open == 1)
    wait_for(lambda: upstream.open == 0)


def test_a_client_that_reads_late_loses_nothing(upstream: Any) -> None:
    host, port = upstream.url.removeprefix("http://").split(":")
    # Less than the answer fits in.
    upstream._server.sockets[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect((host, int(port)))
        connection.sendall(request(PATHS["messages"], "repeat=400"))
        wait_for(lambda: upstream.open == 1)
        time.sleep(0.1)
        assert upstream.open == 1
        got = reply(b"".join(iter(lambda: connection.recv(4096), b"")))
    assert got.ended
    assert got.body.count(b"text_delta") == 403


def test_blocks_are_not_kept_back_behind_a_pause(upstream: Any) -> None:
    before = b"".join(data for _, data in steps("")[:4])
    with connect(upstream) as connection:
        connection.sendall(request(PATHS["messages"], "pause=3600, at=3"))
        assert receive(connection, len(before)) == before


def test_a_pause_is_as_long_as_it_should_be(upstream: Any) -> None:
    began = time.monotonic()
    assert ask(upstream, "pause=0.1, at=3").body == SAMPLES["messages"]
    assert time.monotonic() - began > 0.09


def test_a_delay_slows_every_block_down(upstream: Any) -> None:
    began = time.monotonic()
    assert ask(upstream, "delay=0.01", "chat").body == SAMPLES["chat"]
    assert time.monotonic() - began > 0.009 * len(blocks_of("chat"))


def test_a_page_comes_with_status_200(upstream: Any) -> None:
    got = ask(upstream, "html")
    assert (got.status, got.headers["content-type"], got.ended) == (200, "text/html", True)
    assert got.body.startswith(b"<html>")


def test_a_status_comes_with_an_error_and_a_time_to_retry(upstream: Any) -> None:
    got = ask(upstream, "status=503")
    assert (got.status, got.headers["content-type"], got.ended) == (503, "application/json", True)
    assert got.headers["retry-after"] == "1"
    error = {"message": "overloaded", "type": "server_error", "code": "overloaded"}
    assert json.loads(got.body) == {"error": error}


def test_who_does_not_ask_for_a_stream_gets_none(upstream: Any) -> None:
    for body in (b"", b"{}", b'{"stream": false}'):
        with connect(upstream) as connection:
            connection.sendall(request(PATHS["messages"], "cut=3", body))
            got = reply(b"".join(iter(lambda: connection.recv(65536), b"")))
        assert (got.status, got.headers["content-type"], got.ended) == (200, "application/json", True)
        assert isinstance(json.loads(got.body), dict)


def test_chaos_can_end_after_some_requests_and_each_key_has_a_count_of_its_own(upstream: Any) -> None:
    assert ask(upstream, "eof=3").body != SAMPLES["messages"]
    for key in ("one", "two", ""):
        headers = {"x-chaos-key": key} if key else {}
        ended = [ask(upstream, "cut=3, times=2", headers=headers).ended for _ in range(4)]
        assert ended == [False, False, True, True]


def test_what_was_asked_can_be_looked_at(upstream: Any) -> None:
    ask(upstream, "", "chat", {"authorization": "Bearer key"})
    [seen] = upstream.requests
    assert (seen.target, seen.body) == (PATHS["chat"], STREAM)
    assert seen.headers["authorization"] == "Bearer key"


@pytest.mark.parametrize("data", [b"", b"POST /v1/messages", b"\0\r\n\r\n", request("/", "")[:-1]])
def test_what_is_no_request_is_not_answered(upstream: Any, data: bytes) -> None:
    with connect(upstream) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b""
    assert upstream.requests == []


def test_an_upstream_that_is_closed_leaves_no_connection_open() -> None:
    with serving() as upstream:
        silent, hanging = connect(upstream), connect(upstream)
        hanging.sendall(request(PATHS["messages"], "stall=0"))
        wait_for(lambda: upstream.open == 1)
    with silent, hanging:
        assert silent.recv(1) == b""
        assert not reply(b"".join(iter(lambda: hanging.recv(65536), b""))).ended
    assert upstream.open == 0


def test_hundreds_of_answers_are_open_at_the_same_time(upstream: Any) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(300):
            connection = stack.enter_context(connect(upstream))
            connection.sendall(request(PATHS["messages"], "stall=3"))
        wait_for(lambda: upstream.open == 300)
    wait_for(lambda: upstream.open == 0)


def test_the_upstream_runs_as_a_script() -> None:
    with script("chaos_upstream") as process:
        assert process.stdout is not None
        url = read_until(process.stdout, "\n").strip()
        outcome = example("urllib3_client").show(url + PATHS["chat"], {})
    assert outcome is Outcome.COMPLETED


# --- The clients


def show(client: str, url: str, headers: dict[str, str]) -> Outcome:
    outcome = example(client).show(url, headers)
    if inspect.isawaitable(outcome):
        outcome = asyncio.run(_await(outcome))
    assert isinstance(outcome, Outcome)
    return outcome


async def _await(awaitable: Any) -> Any:
    return await awaitable


@every_client
@every_protocol
def test_a_client_shows_a_whole_answer(
    upstream: Any, client: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = show(client, upstream.url + PATHS[name], {"authorization": "Bearer key"})
    assert outcome is Outcome.COMPLETED
    assert capsys.readouterr().out == f"{TEXT}\n[completed]\n"
    [seen] = upstream.requests
    assert seen.headers["authorization"] == "Bearer key"
    assert seen.headers["accept-encoding"] == "identity"
    wait_for(lambda: upstream.open == 0)


@every_client
@pytest.mark.parametrize(
    ("chaos", "ended"),
    [
        ("delay=0.005", (Outcome.COMPLETED, rf"{TEXT}\n\[completed\]")),
        ("hang", (Outcome.COMPLETED, rf"{TEXT}\n\[completed\]")),
        # A transport that fails is the cause, and is told, too.
        ("cut=12", (Outcome.TRUNCATED, r"Let me look \n\[truncated: .*input ended first.*\] \S.*")),
        ("eof=12", (Outcome.TRUNCATED, r"Let me look \n\[truncated: .*input ended first.*\] ")),
        ("error=12", (Outcome.FAILED, r"Let me look \n\[failed: overloaded\]")),
        ("status=503", (Outcome.FAILED, r"\[.*503: .*overloaded.*\]")),
    ],
)
def test_a_client_shows_what_has_come_and_how_it_ended(
    upstream: Any,
    client: str,
    chaos: str,
    ended: tuple[Outcome, str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    outcome, shown = ended
    assert show(client, upstream.url + PATHS["messages"], {"x-chaos": chaos}) is outcome
    assert re.fullmatch(shown + "\n", capsys.readouterr().out)
    # The client has closed the connection, of which the upstream has not said that it ends.
    wait_for(lambda: upstream.open == 0)


@every_client
def test_a_client_shows_that_a_page_is_no_answer(
    upstream: Any, client: str, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = show(client, upstream.url + PATHS["messages"], {"x-chaos": "html"})
    # Who sees the head of the answer need not look into the body.
    assert outcome is (Outcome.FAILED if client == "raw_socket_client" else Outcome.NOT_SSE)
    assert "<html><h1>Sign in</h1></html>" in capsys.readouterr().out


CHUNKED = b"transfer-encoding: chunked\r\n"


@every_client
@pytest.mark.parametrize("head", [b"", CHUNKED], ids=["until the end", "chunked"])
def test_a_client_shows_each_piece_before_the_next_one_is_sent(
    client: str, head: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces: list[str] = []
    shown = threading.Event()
    in_time: list[bool] = []

    def show_piece(text: str, *_: object, **__: object) -> None:
        pieces.append(text)
        if text.strip():
            shown.set()

    monkeypatch.setattr(example(client), "print", show_piece, raising=False)

    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            while b'"stream"' not in connection.recv(65536):
                pass
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n")
            connection.sendall(head + b"connection: close\r\n\r\n")
            for block in blocks_of("chat"):
                shown.clear()
                connection.sendall(b"%x\r\n%b\r\n" % (len(block), block) if head else block)
                if b'"content":"' in block and b'"content":""' not in block:
                    in_time.append(shown.wait(LIMIT))
                    if not in_time[-1]:
                        return
            if head:
                connection.sendall(b"0\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=serve, args=(listener,))
        server.start()
        outcome = show(client, f"http://127.0.0.1:{listener.getsockname()[1]}/v1/chat/completions", {})
        server.join()
    assert outcome is Outcome.COMPLETED
    assert in_time == [True] * 5
    assert "".join(pieces[:-1]) == TEXT


@every_client
@pytest.mark.parametrize(("chaos", "status"), [("", 0), ("cut=12", 1)])
def test_a_client_runs_as_a_script(upstream: Any, client: str, chaos: str, status: int) -> None:
    code, printed = run(client, upstream.url + PATHS["messages"], f"x-chaos={chaos}")
    assert code == status
    assert printed.startswith("Let me look ")


# --- The fleet


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """A folder of whole answers, of some that are cut, and of one that deviates."""
    (tmp_path / "deeper").mkdir()
    for name, sample in SAMPLES.items():
        (tmp_path / f"{name}.sse").write_bytes(sample)
        (tmp_path / "deeper" / f"{name}.sse").write_bytes(sample[: len(sample) // 2])
    odd = SAMPLES["messages"].replace(b"event: message_start\n", b"")
    (tmp_path / "odd.sse").write_bytes(odd)
    (tmp_path / "page.sse").write_bytes(b"<html></html>")
    (tmp_path / "notes.txt").write_bytes(b"not looked at")
    return tmp_path


FLEET = """\
       4 completed
       3 truncated
       1 not_sse
"""
DEVIATING = ["deeper/chat.sse", "deeper/messages.sse", "deeper/responses.sse", "odd.sse", "page.sse"]


@contextlib.contextmanager
def cluster(**options: Any) -> Iterator[Any]:
    dask: Any = distributed
    with dask.LocalCluster(processes=False, dashboard_address=None, **options) as cluster:
        yield cluster


def check_report(printed: str, fleet: Path) -> None:
    assert printed.startswith(FLEET)
    files = [line.removeprefix(f"{fleet.resolve()}{os.sep}") for line in printed.splitlines()[3:]]
    assert [Path(line.split(": ", 1)[0]).as_posix() for line in files] == DEVIATING
    odd = next(line for line in files if line.startswith("odd.sse"))
    assert odd == "odd.sse: completed, missing_event_name"


def test_a_fleet_is_checked(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dask: Any = distributed
    with cluster() as local, dask.Client(local) as client:
        findings = example("check_fleet").check_all(client, fleet)
    assert [Path(one.path).relative_to(fleet.resolve()).as_posix() for one in findings] == [
        *["chat.sse", *DEVIATING[:3], "messages.sse", *DEVIATING[3:], "responses.sse"]
    ]
    assert not example("check_fleet").report(findings)
    check_report(capsys.readouterr().out, fleet)


def test_a_fleet_is_checked_by_a_script_with_a_cluster_of_its_own(fleet: Path) -> None:
    status, printed = run("check_fleet", str(fleet))
    assert status == 1
    check_report(printed, fleet)


def test_a_fleet_is_checked_by_a_script_with_a_scheduler_elsewhere(fleet: Path) -> None:
    for name in DEVIATING:
        (fleet / name).unlink()
    with cluster(protocol="tcp", host="127.0.0.1") as local:
        status, printed = run("check_fleet", str(fleet), "--scheduler", local.scheduler_address)
    assert (status, printed) == (0, "       3 completed\n")


# --- The server


QUESTION = {"model": "parrot", "messages": [{"role": "user", "content": "Oslo's weather?"}]}


@contextlib.contextmanager
def served(app: Any) -> Iterator[str]:
    config = uvicorn.Config(app, log_level="critical", ws="none")
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@every_client
def test_the_server_streams_events_that_every_client_reads(
    client: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with served(example("fastapi_server").app) as url:
        assert show(client, url + PATHS["messages"], {}) is Outcome.COMPLETED
    assert capsys.readouterr().out == "Oslo's weather?\n[completed]\n"


def test_what_the_server_streams_adds_up_to_what_it_gives_at_once() -> None:
    with served(example("fastapi_server").app) as url:
        streamed = httpx.post(url + PATHS["messages"], json={**QUESTION, "stream": True})
        whole = httpx.post(url + PATHS["messages"], json=QUESTION).json()
    result = collect(streamed.content, PROTOCOLS["messages"], strict=True)
    assert streamed.headers["content-type"].startswith("text/event-stream")
    assert (result.outcome, result.message) == (Outcome.COMPLETED, whole)
    assert whole["content"] == [{"type": "text", "text": "Oslo's weather?"}]
    assert whole["usage"] == {"input_tokens": 2, "output_tokens": 2}


def test_the_server_runs_as_a_script() -> None:
    with script("fastapi_server", "0") as process:
        assert process.stderr is not None
        read_until(process.stderr, "running on ")
        url = read_until(process.stderr, " ").strip()
        assert example("urllib3_client").show(url + PATHS["messages"], {}) is Outcome.COMPLETED


# --- The gateway

QUICK = RelayConfig(
    keepalive=KeepAlive(interval=0.05, text="hopbase-keepalive", before_output=True),
    stall=Stall(idle_progress=0.4),
    hold=Hold(),
)


@pytest.fixture
def gateway(upstream: Any) -> Iterator[str]:
    with served(example("gateway").gateway(upstream.url, QUICK)) as url:
        yield url


def through(url: str, name: str, chaos: str) -> httpx.Response:
    headers = {"x-chaos": chaos, "content-type": "application/json"}
    return httpx.post(url + PATHS[name], content=STREAM, headers=headers, timeout=LIMIT)


@every_protocol
@pytest.mark.parametrize("chaos", ["", "hang", "cut=1,times=1", "status=503,times=1", "html,times=1"])
def test_the_gateway_passes_a_whole_answer_on(
    gateway: str, upstream: Any, name: str, chaos: str, capsys: pytest.CaptureFixture[str]
) -> None:
    response = through(gateway, name, chaos)
    assert response.status_code == 200
    # On a busy machine a pause can be long enough for a sign of life.
    assert response.content.replace(b": hopbase-keepalive\n\n", b"") == SAMPLES[name]
    assert len(upstream.requests) == 1 + ("times" in chaos)
    wait_for(lambda: upstream.open == 0)
    assert capsys.readouterr().out.startswith(f"{PATHS[name]} completed Usage(")


@every_protocol
@pytest.mark.parametrize("at", [1, 9])
def test_the_gateway_keeps_the_connection_alive(gateway: str, name: str, at: int) -> None:
    content = through(gateway, name, f"pause=0.2,at={at}").content
    assert content.count(b": hopbase-keepalive\n\n") >= 2
    assert content.replace(b": hopbase-keepalive\n\n", b"") == SAMPLES[name]


@every_protocol
@pytest.mark.parametrize(
    "ending", [("cut=9", "aborted"), ("eof=9", "truncated"), ("stall=9", "stalled")], ids="".join
)
def test_the_gateway_says_in_the_stream_that_it_breaks_off(
    gateway: str, upstream: Any, name: str, ending: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    chaos, outcome = ending
    result = collect(through(gateway, name, chaos).content, PROTOCOLS[name])
    assert result.outcome is Outcome.FAILED
    assert len(upstream.requests) == 1
    wait_for(lambda: upstream.open == 0)
    assert capsys.readouterr().out.startswith(f"{PATHS[name]} {outcome} Usage(")


@pytest.mark.parametrize("chaos", ["html", "status=503", "cut=1"])
def test_what_the_gateway_cannot_get_is_an_http_error(gateway: str, upstream: Any, chaos: str) -> None:
    response = through(gateway, "messages", chaos)
    assert response.status_code == 502
    assert response.json()["error"]["type"] == "api_error"
    assert len(upstream.requests) == 2


def test_the_gateway_passes_on_what_is_no_stream(gateway: str) -> None:
    response = httpx.post(gateway + PATHS["chat"], json={})
    assert response.json() == {"object": "sample"}


def test_a_client_that_leaves_the_gateway_has_the_upstream_closed(gateway: str, upstream: Any) -> None:
    headers = {"x-chaos": "stall=9", "content-type": "application/json"}
    with httpx.stream("POST", gateway + PATHS["messages"], content=STREAM, headers=headers) as response:
        next(response.iter_raw())
        assert upstream.open == 1
    wait_for(lambda: upstream.open == 0)


def test_the_gateway_runs_as_a_script(upstream: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with script("gateway", upstream.url, str(port)):
        wait_for(lambda: listens(port))
        assert through(f"http://127.0.0.1:{port}", "chat", "").content == SAMPLES["chat"]


def listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False
