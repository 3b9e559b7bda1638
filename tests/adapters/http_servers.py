"""A server on loopback that sends exactly the bytes that it is told to, and keeps what it was sent.

It deliberately knows next to nothing of HTTP: it takes one connection, reads one request, and then
follows its script. So tests decide about every byte on the wire, and about how the connection ends.
"""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from typing_extensions import Self

Step: TypeAlias = "bytes | Callable[[socket.socket], None]"
"""What to send, or what else to do with the connection."""

PATIENCE = 5.0
"""Seconds after which something that was to happen counts as never happening."""

_TLS = Path(__file__).parent.parent / "data" / "tls"
_CERTIFICATE = _TLS / "certificate.pem"
_HANDSHAKE = b"\x16\x03"


class Server:
    """Serves one connection, in a thread. Leaving the context waits for its end.

    A script that runs out ends the connection in good order. Unless it is told to `reset`, the server
    does not end before its client has closed the connection, too: one that never does fails the test.

    Args:
        script: What to do when the request is there.
        secure: Whether to encrypt.

    Attributes:
        request: What the client has sent, up to the end of the request.
        url: Where the server is, without a path.
        refused: Why no handshake came about; None if one did, or was not needed.
    """

    def __init__(self, *script: Step, secure: bool = False) -> None:
        self.request = b""
        self.refused: OSError | None = None
        self._script = script
        self._context = _server_context() if secure else None
        self._fault: Exception | None = None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(PATIENCE)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.port: int = self._listener.getsockname()[1]
        self.url = f"{'https' if secure else 'http'}://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        self._thread.join()
        self._listener.close()
        if self._fault is not None and error is None:
            raise self._fault

    def _run(self) -> None:
        try:
            connection, _ = self._listener.accept()
            connection.settimeout(PATIENCE)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with connection:
                self._greet(connection)
        except Exception as error:  # noqa: BLE001 - the test's thread raises it
            self._fault = error

    def _greet(self, connection: socket.socket) -> None:
        if self._context is None:
            self._serve(connection)
            return
        try:
            secured = self._context.wrap_socket(connection, server_side=True)
        except OSError as error:
            self.refused = error
            return
        with secured:
            self._serve(secured)

    def _serve(self, connection: socket.socket) -> None:
        self.request = _read_request(connection)
        # Clients that have heard enough are gone.
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            for step in self._script:
                if isinstance(step, bytes):
                    connection.sendall(step)
                else:
                    step(connection)
        if connection.fileno() != -1:
            _end(connection)


def slowly(data: bytes) -> Step:
    """Send every byte on its own."""

    def act(connection: socket.socket) -> None:
        for value in data:
            connection.sendall(bytes([value]))

    return act


def flood(data: bytes) -> Step:
    """Send the same again and again, until the client closes the connection."""

    def act(connection: socket.socket) -> None:
        while True:
            connection.sendall(data)

    return act


def waiting(event: threading.Event) -> Step:
    """Wait for something that the test does."""

    def act(_: socket.socket) -> None:
        if not event.wait(PATIENCE):
            raise TimeoutError("what the server was to wait for never came")

    return act


def hang(connection: socket.socket) -> None:
    """Keep the connection open until the client closes it."""
    # Clients that have heard enough close with a reset, or without telling the layer of encryption.
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        while connection.recv(4096):
            pass


def cut(connection: socket.socket) -> None:
    """End the connection without telling the layer of encryption."""
    connection.shutdown(socket.SHUT_WR)


def reset(connection: socket.socket) -> None:
    """End the connection with a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def trusting() -> ssl.SSLContext:
    """A context for clients that know the server's certificate."""
    return ssl.create_default_context(cafile=_CERTIFICATE)


def _server_context() -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(_CERTIFICATE, _TLS / "key.pem")
    return context


def _read_request(connection: socket.socket) -> bytes:
    request = b""
    while not _is_whole(request) and (data := connection.recv(4096)):
        request += data
    return request


def _is_whole(request: bytes) -> bool:
    if request.startswith(_HANDSHAKE):
        return True
    head, end, body = request.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
    return bool(end) and len(body) >= (0 if length is None else int(length[1]))


def _end(connection: socket.socket) -> None:
    if isinstance(connection, ssl.SSLSocket) and connection.version() is not None:
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            connection = connection.unwrap()
    # It may be ended already, from either side.
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_WR)
    hang(connection)
