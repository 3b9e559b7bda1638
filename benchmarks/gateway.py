"""What a gateway costs under load: many streams at once through one process on one core, over loopback.

An upstream stamps every event with the time at which it writes it; a client reads the stamp. So the
latency of an event is what it took from the upstream's write to the client's read, and what a gateway
adds is that minus the same without a gateway. The upstream and the clients share the other core, and
every contender gets the same load, one after the other.

Linux only, where the memory and the processor time of a process can be read. LiteLLM's proxy takes part
where it is installed.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

PATH = "/v1/chat/completions"
_REQUEST = json.dumps(
    {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [{"role": "user", "content": "Go on."}],
    }
).encode()
_STAMP = re.compile(rb'"content": ?"(\d{20})"')
_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)
_CHUNK = (
    '{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m",'
    '"choices":[{"index":0,"delta":%s,"finish_reason":%s}]}'
)
_USAGE = (
    '{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[],'
    '"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}'
)
_BACKLOG = 4096
_STARTS_WITHIN = 120.0


class Load(NamedTuple):
    """What every contender is given.

    Attributes:
        streams: How many at once.
        events: How many stamped events in each.
        interval: Seconds between two events of a stream; 0: as fast as it goes.
    """

    streams: int
    events: int
    interval: float


class Result(NamedTuple):
    """What one of them made of it.

    Attributes:
        streams: How many came whole, with all of their events and the end.
        events: How many events arrived.
        seconds: How long all of it took.
        latencies: Seconds of each event, sorted.
        cpu: Seconds of processor time of the gateway; None without one.
        rss: Its resident memory in bytes: before, at its largest, and afterwards.
    """

    streams: int
    events: int
    seconds: float
    latencies: list[float]
    cpu: float | None
    rss: tuple[int, int, int] | None


# The upstream.


async def serve_upstream(load: Load) -> None:
    """Serve stamped answers on a free port, whose number is printed, for ever."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: (\d+)", head)
            await reader.readexactly(int(length[1]) if length else 0)
            writer.write(_HEAD + _event(_CHUNK % ('{"role":"assistant","content":""}', "null")))
            for _ in range(load.events):
                await asyncio.sleep(load.interval)
                stamp = f'{{"content":"{time.monotonic_ns():020}"}}'
                writer.write(_event(_CHUNK % (stamp, "null")))
                await writer.drain()
            end = (_CHUNK % ("{}", '"stop"'), _USAGE, "[DONE]")
            writer.write(b"".join(map(_event, end)) + b"0\r\n\r\n")
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=_BACKLOG)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def _event(data: str) -> bytes:
    event = b"data: " + data.encode() + b"\n\n"
    return b"%x\r\n%s\r\n" % (len(event), event)


# A gateway that does nothing but pass bytes on.


def serve_pass_through(upstream: str, port: int) -> None:
    """Serve what anybody would write first: Starlette in front, httpx behind, no more."""
    import httpx  # noqa: PLC0415 - a contender
    import uvicorn  # noqa: PLC0415 - the same
    from starlette.applications import Starlette  # noqa: PLC0415 - the same
    from starlette.requests import Request  # noqa: PLC0415 - the same
    from starlette.responses import StreamingResponse  # noqa: PLC0415 - the same
    from starlette.routing import Route  # noqa: PLC0415 - the same

    client = httpx.AsyncClient(timeout=None, limits=httpx.Limits(max_connections=None))

    async def endpoint(request: Request) -> StreamingResponse:
        asked = client.build_request("POST", upstream + PATH, content=await request.body())
        response = await client.send(asked, stream=True)
        return StreamingResponse(response.aiter_raw(), media_type="text/event-stream")

    app = Starlette(routes=[Route(PATH, endpoint, methods=["POST"])])
    uvicorn.run(app, port=port, log_level="critical", backlog=_BACKLOG)


# The clients.


async def _read_one(address: tuple[str, int], latencies: list[float]) -> int:
    """Read one stream; how many events came, or 0 if it is not whole."""
    reader, writer = await asyncio.open_connection(*address)
    try:
        host = f"{address[0]}:{address[1]}"
        head = f"POST {PATH} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n"
        head += f"authorization: Bearer sk-1\r\ncontent-length: {len(_REQUEST)}\r\n\r\n"
        writer.write(head.encode() + _REQUEST)
        rest, events = b"", 0
        while b"[DONE]" not in rest:
            data = await reader.read(65536)
            if not data:
                return 0
            now = time.monotonic_ns()
            rest += data
            end = 0
            for stamp in _STAMP.finditer(rest):
                latencies.append((now - int(stamp[1])) / 1e9)
                end = stamp.end()
                events += 1
            rest = rest[end:]
        return events
    finally:
        writer.close()


async def read_all(address: tuple[str, int], load: Load) -> tuple[list[int], list[float]]:
    """Read all streams at once, begun evenly over one interval."""
    latencies: list[float] = []

    async def one(number: int) -> int:
        await asyncio.sleep(number / load.streams * max(load.interval, 0.1))
        try:
            return await _read_one(address, latencies)
        except OSError:
            return 0

    counts = await asyncio.gather(*map(one, range(load.streams)))
    return list(counts), sorted(latencies)


# Processes.


@contextlib.contextmanager
def _process(command: list[str], core: int, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A process on one core."""
    with subprocess.Popen(command, text=True, **options) as process:
        os.sched_setaffinity(process.pid, {core})
        try:
            yield process
        finally:
            process.kill()


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory(pid: int, name: str) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(rf"{name}:\s+(\d+) kB", status)
    return int(found[1]) * 1024 if found else 0


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


def _wait_for(port: int, process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + _STARTS_WITHIN
    while process.poll() is None and time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.1)
    raise RuntimeError(f"{process.args!r} does not listen")


LITELLM = """
model_list:
  - model_name: m
    litellm_params: {{model: openai/m, api_base: "{upstream}/v1", api_key: none}}
general_settings: {{master_key: sk-1}}
litellm_settings: {{telemetry: false, num_retries: 0}}
"""


def _commands(upstream: str, port: int, folder: str) -> dict[str, list[str]]:
    """How each gateway is started."""
    here = [sys.executable, "-m"]
    commands = {
        "Starlette and httpx": [*here, "benchmarks.gateway", "pass-through", upstream, str(port)],
        "sse-machines relay": [
            *(*here, "sse_machines", "relay", "--upstream", upstream, "--listen", f"127.0.0.1:{port}")
        ],
    }
    litellm = os.environ.get("LITELLM") or (importlib.util.find_spec("apscheduler") and "litellm")
    if litellm:
        config = Path(folder, "litellm.yaml")
        config.write_text(LITELLM.format(upstream=upstream))
        commands["LiteLLM proxy"] = [litellm, "--config", str(config), "--port", str(port)]
    return commands


def run(load: Load, rounds: int) -> dict[str, Result]:
    """Give the load to everybody: first to the upstream itself, then to each gateway."""
    results: dict[str, Result] = {}
    os.sched_setaffinity(0, {1})
    command = [sys.executable, "-m", "benchmarks.gateway", "upstream", *map(str, load)]
    with (
        tempfile.TemporaryDirectory() as folder,
        _process(command, 1, stdout=subprocess.PIPE) as upstream,
    ):
        assert upstream.stdout is not None
        upstream_port = int(upstream.stdout.readline())
        results["no gateway"] = _measure(upstream_port, None, load, rounds)
        port = _free_port()
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        for name, gateway in _commands(f"http://127.0.0.1:{upstream_port}", port, folder).items():
            with _process(gateway, 0, **quiet) as process:
                _wait_for(port, process)
                results[name] = _measure(port, process.pid, load, rounds)
    return results


def _measure(port: int, pid: int | None, load: Load, rounds: int) -> Result:
    """Several rounds; the first only warms up, and memory is compared between it and the last."""
    address = ("127.0.0.1", port)
    asyncio.run(read_all(address, load))
    before = _memory(pid, "VmRSS") if pid else 0
    cpu = _cpu(pid) if pid else 0.0
    begin = time.monotonic()
    counts: list[int] = []
    latencies: list[float] = []
    for _ in range(rounds):
        more, times = asyncio.run(read_all(address, load))
        counts += more
        latencies += times
    seconds = time.monotonic() - begin
    return Result(
        streams=sum(count == load.events for count in counts),
        events=sum(counts),
        seconds=seconds,
        latencies=sorted(latencies),
        cpu=_cpu(pid) - cpu if pid else None,
        rss=(before, _memory(pid, "VmHWM"), _memory(pid, "VmRSS")) if pid else None,
    )


def print_load(load: Load, rounds: int) -> None:
    """Print a table: who carried how much, what it added, and what it took."""
    every = f"every {load.interval:g} s" if load.interval else "as fast as it goes"
    print(f"{rounds} x {load.streams:,} streams at once of {load.events} events, {every}, one core")
    print(
        f"{'':20} {'whole':>13} {'events/s':>9} {'p50 added':>10} {'p99 added':>10} {'CPU/event':>10}"
        f" {'memory before, most, after':>27}"
    )
    results = run(load, rounds)
    floor = results["no gateway"].latencies
    for name, result in results.items():
        print(f"{name:20} {_row(result, floor, load.streams * rounds)}")


def _row(result: Result, floor: list[float], streams: int) -> str:
    cells = [f"{result.streams:,}/{streams:,}".rjust(13), f"{result.events / result.seconds:9,.0f}"]
    for share in (0.5, 0.99):
        latency, least = _quantile(result.latencies, share), _quantile(floor, share)
        shown = latency if result.cpu is None else latency - least
        cells.append(f"{shown * 1e3:7.1f} ms")
    if result.cpu is not None and result.rss is not None:
        cells.append(f"{result.cpu / max(result.events, 1) * 1e6:7.0f} us")
        cells.append("  ".join(f"{size / 2**20:.0f} MB" for size in result.rss).rjust(27))
    return " ".join(cells)


def _quantile(values: list[float], share: float) -> float:
    return values[min(int(len(values) * share), len(values) - 1)] if values else float("nan")


if __name__ == "__main__":
    if sys.argv[1] == "upstream":
        asyncio.run(serve_upstream(Load(int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))))
    else:
        serve_pass_through(sys.argv[2], int(sys.argv[3]))
