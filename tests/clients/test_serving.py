"""The two servers themselves."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Any

import httpx
import pytest

from tests.clients.serving import Page, h11_server, uvicorn_server

# Being traced makes this three times slower, and the tests of the single rules reach every line.
pytestmark = pytest.mark.untraced

CHUNKS = [b"data: 1\n\n", "data: 我\n\n".encode()]
ROUTES: dict[str, Any] = {"/a/b": CHUNKS.__iter__, "/": Page("<p>")}


@pytest.mark.parametrize("server", [uvicorn_server, h11_server])
def test_chunks_arrive_unchanged(server: Any) -> None:
    before = threading.active_count()
    with server(ROUTES) as base, httpx.Client(trust_env=False) as client:
        for method in ("GET", "POST"):
            response = client.request(method, f"{base}/a/b?x=1", content=b"x" * 100_000)
            assert response.content == b"".join(CHUNKS)
            assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
            assert response.headers["transfer-encoding"] == "chunked"
        assert client.get(f"{base}/").headers["content-type"] == "text/html; charset=utf-8"
        assert client.get(f"{base}/c").status_code == 404
    assert threading.active_count() == before


@pytest.mark.parametrize("server", [uvicorn_server, h11_server])
def test_connections_that_ask_for_nothing(server: Any) -> None:
    before = threading.active_count()
    with contextlib.ExitStack() as clients, server(ROUTES) as base:
        address = "127.0.0.1", int(base.rpartition(":")[2])
        socket.create_connection(address).close()
        clients.enter_context(socket.create_connection(address))
        with httpx.Client(trust_env=False) as client:
            assert client.get(f"{base}/a/b").content == b"".join(CHUNKS)
    assert threading.active_count() == before
