"""A thread that reads what has no timeouts, so that somebody else can wait for it with one.

This module deliberately knows nothing of what is read.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from typing import Any

from ._reading import closer, pieces


class Threaded:
    """An iterable of bytes or what has ``read1``, to be read as a socket is.

    The thread reads one chunk ahead, and closes the source where it is done with it. A thread that is
    inside of a foreign read when it is told to stop, stops when that returns: give clients of which that
    is not sure a read timeout.
    """

    def __init__(self, chunks: Any) -> None:
        self._chunks = chunks
        self._ready: queue.Queue[bytes | Exception] = queue.Queue(1)
        self._stopped = False
        self._timeout: float | None = None
        self._thread: threading.Thread | None = None

    def settimeout(self, timeout: float | None) -> None:
        """Set how many seconds `recv` waits; None: for ever."""
        self._timeout = timeout

    def recv(self, _size: int) -> bytes:
        """The next chunk, whatever its size; ``b""`` at the end.

        Raises:
            TimeoutError: There is none yet.
            Exception: What the iterable raised.
        """
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()
        try:
            chunk = self._ready.get(timeout=self._timeout)
        except queue.Empty:
            raise TimeoutError from None
        if isinstance(chunk, TimeoutError):
            # It is the source that has timed out, not the wait for it.
            raise ConnectionAbortedError(str(chunk)) from chunk
        if isinstance(chunk, Exception):
            raise chunk
        return chunk

    def close(self) -> None:
        """Have the thread stop."""
        self._stopped = True
        if self._thread is None:
            self._close()
            return
        # It may wait for room.
        with contextlib.suppress(queue.Empty):
            self._ready.get_nowait()

    def _run(self) -> None:
        last: bytes | Exception = b""
        try:
            self._pass_on()
        except Exception as error:  # noqa: BLE001 - every client library has its own
            last = error
        try:
            self._close()
        except Exception as error:  # noqa: BLE001 - the same
            last = error
        if not self._stopped:
            self._ready.put(last)

    def _pass_on(self) -> None:
        for chunk in pieces(self._chunks):
            if chunk:
                self._ready.put(chunk)
            # Another read might take for ever.
            if self._stopped:
                return

    def _close(self) -> None:
        close = closer(self._chunks)
        if close is not None:
            close()
