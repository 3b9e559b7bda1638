"""The clocks of a relay: what was last when, and which of them has run out.

Two families run independently: bytes, and progress. Comments, pings and drips feed the first one only.
The module deliberately reads no clock: time is what it is told, in seconds, and it never runs backwards.
"""

from __future__ import annotations

from ._relay_config import Stall
from ._relay_events import STALL_KINDS, StallKind


class Clocks:
    """Knows when something is due.

    Attributes:
        hears_bytes: Whether any clock has to be told of bytes.
        now: The latest time that was told.
        progress_at: When there was progress last; None while there was none.
        output_at: When output came first; None while it has not.
        written_at: When a byte was last written downstream, or when all began.
    """

    __slots__ = (
        *("_active", "_limits", "_paused_at", "_running"),
        *("hears_bytes", "now", "output_at", "progress_at", "written_at"),
    )

    def __init__(self, stall: Stall | None, now: float) -> None:
        self._limits: tuple[tuple[StallKind, float], ...] = () if stall is None else stall.limits
        # Those that do not stand still.
        self._active = self._limits
        self.hears_bytes = any(kind in _FED_BY_BYTES for kind, _ in self._limits)
        self.now = self.written_at = now
        self.output_at: float | None = None
        self.progress_at: float | None = None
        self._paused_at: float | None = None
        # Which clocks run, and since when.
        self._running: dict[StallKind, float] = {"total": now}
        self.restart()

    def restart(self) -> None:
        """Begin another attempt."""
        self.output_at = None
        self._running.update(dict.fromkeys(_OF_AN_ATTEMPT, self.now))

    def advance(self, now: float) -> None:
        """Tell the time."""
        # Not max(), which is several times slower, and takes a NaN for the latest time.
        if now > self.now:  # noqa: PLR1730
            self.now = now

    def byte(self) -> None:
        """Note that a byte came from upstream."""
        self._running["idle_bytes"] = self.now
        self._running.pop("first_byte", None)

    def progress(self) -> None:
        """Note that the model went on."""
        self.progress_at = self._running["idle_progress"] = self.now

    def start_output(self) -> None:
        """Note that the first output has come."""
        self.output_at = self.now
        self._running.pop("first_output", None)

    def pause(self) -> None:
        """Stop the clocks of the upstream: nobody reads from it."""
        if self._paused_at is None:
            self._paused_at = self.now
            self._active = tuple(limit for limit in self._limits if limit[0] not in _OF_AN_ATTEMPT)

    def resume(self) -> None:
        """Let them go on from where they were."""
        if self._paused_at is None:
            return
        pause = self.now - self._paused_at
        self._paused_at = None
        self._active = self._limits
        for kind in _OF_AN_ATTEMPT:
            if kind in self._running:
                self._running[kind] += pause

    def mute(self, kind: StallKind) -> None:
        """Say no more that a clock has run out, until it is fed."""
        self._running.pop(kind, None)

    def deadline(self) -> float | None:
        """When the next clock runs out; None for never."""
        due = None
        running = self._running
        for kind, seconds in self._active:
            if kind in running:
                at = running[kind] + seconds
                if due is None or at < due:
                    due = at
        return due

    def expired(self) -> tuple[StallKind, float]:
        """The first clock that has run out, and since when it ran. There has to be one."""
        return next(
            (kind, self._running[kind])
            for kind, seconds in self._active
            if kind in self._running and self._running[kind] + seconds <= self.now
        )


_FED_BY_BYTES = ("first_byte", "idle_bytes")
_OF_AN_ATTEMPT: tuple[StallKind, ...] = tuple(kind for kind in STALL_KINDS if kind != "total")
