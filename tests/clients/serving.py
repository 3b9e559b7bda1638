"""Two real servers on loopback that send what they are given: ASGI on uvicorn, and sockets through h11.

A path has what makes the chunks of its body, anew for every request, and every chunk is a write of its
own. The servers deliberately know nothing of what is in them, and nothing sleeps: the socket listens
before anybody is told its address.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import h11
import uvicorn

Headers = list[tuple[bytes, bytes]]

EVENT_STREAM: Headers = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
]
HTML: Headers = [(b"content-type", b"text/html; charset=utf-8")]


class Page(str):
    """A page, for a browser that is to read a stream."""

    __slots__ = ()


Body = Callable[[], Iterable[bytes]]
Routes = Mapping[str, "Body | Page"]


def _answer(routes: Routes, path: str) -> tuple[int, Headers, Iterable[bytes]]:
    found = routes.get(path)
    if found is None:
        return 404, [(b"content-length", b"0")], []
    if isinstance(found, Page):
        return 200, HTML, [found.encode()]
    return 200, EVENT_STREAM, found()


@contextlib.contextmanager
def _listening() -> Iterator[tuple[socket.socket, str]]:
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        yield listener, f"http://127.0.0.1:{listener.getsockname()[1]}"


@contextlib.contextmanager
def uvicorn_server(routes: Routes) -> Iterator[str]:
    """Serve the routes from an ASGI application on uvicorn; gives the base URL."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        status, headers, chunks = _answer(routes, scope["path"])
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": status, "headers": headers})
        for chunk in chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    config = uvicorn.Config(app, log_level="critical", lifespan="off", ws="none")
    server = uvicorn.Server(config)
    with _listening() as (listener, base):
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield base
        finally:
            server.should_exit = True
            thread.join()


@contextlib.contextmanager
def h11_server(routes: Routes) -> Iterator[str]:
    """Serve the routes from plain sockets, one request a connection; gives the base URL."""
    threads: list[threading.Thread] = []
    connections: list[socket.socket] = []

    def accept(listener: socket.socket) -> None:
        # Shutting the listener down is what ends this.
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                connections.append(connection)
                threads.append(threading.Thread(target=_serve, args=(connection, routes)))
                threads[-1].start()

    with _listening() as (listener, base):
        acceptor = threading.Thread(target=accept, args=(listener,))
        acceptor.start()
        try:
            yield base
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            acceptor.join()
            # Nobody waits for a client that has connected and asks for nothing.
            for connection in connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RD)
            for thread in threads:
                thread.join()


def _serve(connection: socket.socket, routes: Routes) -> None:
    machine = h11.Connection(h11.SERVER)
    # A client that has read enough goes away.
    with connection, contextlib.suppress(ConnectionError, h11.RemoteProtocolError):
        path = _request(connection, machine)
        if path is None:
            return
        status, headers, chunks = _answer(routes, path)
        head = h11.Response(status_code=status, headers=[*headers, (b"connection", b"close")])
        connection.sendall(machine.send(head) or b"")
        for chunk in chunks:
            connection.sendall(machine.send(h11.Data(data=chunk)) or b"")
        connection.sendall(machine.send(h11.EndOfMessage()) or b"")


def _request(connection: socket.socket, machine: h11.Connection) -> str | None:
    """Read a whole request; its path, or None if the client went away before it had one."""
    path: str | None = None
    while True:
        event = machine.next_event()
        if event is h11.NEED_DATA:
            machine.receive_data(connection.recv(65536))
        elif isinstance(event, h11.Request):
            path = event.target.decode().partition("?")[0]
        elif isinstance(event, h11.EndOfMessage):
            return path
        elif isinstance(event, h11.ConnectionClosed):
            return None
