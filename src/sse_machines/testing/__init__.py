"""What helps to test code that is built on state machines: a clock that nobody has to wait for."""

from ._driver import Arrive, Break, End, Fail, Leave, Recording, Step, Unsent, Write, drive

__all__ = [
    "Arrive",
    "Break",
    "End",
    "Fail",
    "Leave",
    "Recording",
    "Step",
    "Unsent",
    "Write",
    "drive",
]
