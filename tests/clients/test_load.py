"""A thousand streams at once through ``sse-machines relay``, as a process on one core."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sse_machines import CHAT, Receiver

# It measures other processes, and is slow where it is traced.
pytestmark = pytest.mark.untraced

ROOT = Path(__file__).parents[2]
STREAMS = 1000
PATH = "/v1/chat/completions"
ASK = b'{"model": "m", "stream": true}'
# All streams have begun before any of them ends.
CHAOS = "pause=4,at=9"
MEGABYTE = 2**20


@contextlib.contextmanager
def process(output: Path, *command: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A process that prints an address first, and that address. It is stopped at the end."""
    # Into a file: a pipe that nobody reads would hold the process up.
    with (
        output.open("wb") as stdout,
        subprocess.Popen([sys.executable, *command], cwd=ROOT, stdout=stdout, stderr=stdout) as running,
    ):
        try:
            yield running, address(output)
        finally:
            running.kill()


def address(output: Path) -> str:
    end = time.monotonic() + 30
    while not (found := re.findall(r"(http://\S+)\n", output.read_text(encoding="utf-8"))):
        assert time.monotonic() < end
        time.sleep(0.05)
    url: str = found[0]
    return url


async def read_stream(url: str, begun: list[int]) -> bytes:
    """The body of one answer, as it came, chunks and all."""
    host, _, port = url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        head = f"POST {PATH} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\nx-chaos: {CHAOS}\r\n"
        writer.write(f"{head}content-length: {len(ASK)}\r\n\r\n".encode() + ASK)
        data = await reader.readuntil(b"\r\n\r\n")
        assert b" 200 " in data.partition(b"\r\n")[0]
        begun[0] += 1
        begun[1] = max(begun[1], begun[0])
        body = await reader.read()
        begun[0] -= 1
        return body
    finally:
        writer.close()


async def read_streams(url: str) -> tuple[collections.Counter[bytes], int]:
    """All of them at once: which bodies came how often, and how many were open at the same time."""
    begun = [0, 0]
    bodies = await asyncio.gather(*(read_stream(url, begun) for _ in range(STREAMS)))
    return collections.Counter(map(unchunked, bodies)), begun[1]


def unchunked(body: bytes) -> bytes:
    whole, rest = b"", body
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        whole, rest = whole + rest[: int(size, 16)], rest[int(size, 16) + 2 :]
    return whole


def memory(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    (size,) = re.findall(r"VmRSS:\s+(\d+) kB", status)
    return int(size) * 1024


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs a process bound to one core")
def test_a_thousand_streams_at_once_lose_nothing_and_leave_nothing(tmp_path: Path) -> None:
    log = tmp_path / "gateway"
    relay = ("-m", "sse_machines", "relay", "--listen", "127.0.0.1:0", "--upstream")
    with (
        process(tmp_path / "upstream", "examples/chaos_upstream.py") as (_, upstream),
        process(log, *relay, upstream) as (gateway, url),
    ):
        os.sched_setaffinity(gateway.pid, {min(os.sched_getaffinity(0))})
        sizes = []
        for _ in range(3):
            bodies, most = asyncio.run(read_streams(url))
            assert most == STREAMS
            assert list(bodies.values()) == [STREAMS]
            sizes.append(memory(gateway.pid))
        # The first thousand fill what is kept; after that there is nothing to be kept.
        assert sizes[2] - sizes[1] < 2 * MEGABYTE
        receiver = Receiver(CHAT)
        receiver.receive_data(next(iter(bodies)))
        assert len([event for event in receiver if event.type != "comment"]) > 10
        assert receiver.finished
        gateway.send_signal(signal.SIGTERM)
        gateway.wait(timeout=10)
    lines = log.read_text(encoding="utf-8").splitlines()[1:]
    assert len(lines) == 3 * STREAMS
    assert all(" status=200 outcome=completed attempts=1 " in line for line in lines)
