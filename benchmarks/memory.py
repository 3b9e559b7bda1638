"""Memory of idle readers and receivers, by tracemalloc.

It counts what the interpreter's allocators were asked for, an object at a time on average over many. It
deliberately says nothing of peaks, of what a large event costs, or of the resident size of a process.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

from sse_machines import MESSAGES, FrameReader, Receiver

from .streams import stream


def bytes_per_object(make: Callable[[], object], count: int) -> float:
    """Make many objects and divide what they take."""
    # Whatever is filled only once, such as caches, belongs to no object.
    make()
    kept: list[object] = [None] * count
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(count):
            kept[number] = make()
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return (after - before) / count


def makers(events: int) -> dict[str, Callable[[], object]]:
    """What is measured, by name.

    Args:
        events: How many events the answer has of which half is received.
    """
    half = stream("messages", events).first_half
    return {
        "FrameReader, idle": FrameReader,
        "FrameReader, after half an answer": lambda: _drained_reader(half),
        "Receiver, idle": lambda: Receiver(MESSAGES),
        "Receiver, after half an answer": lambda: _drained_receiver(half),
    }


def _drained_reader(data: bytes) -> FrameReader:
    reader = FrameReader()
    reader.feed(data)
    while reader.next_frame() is not None:
        pass
    return reader


def _drained_receiver(data: bytes) -> Receiver[Any]:
    receiver = Receiver(MESSAGES)
    receiver.receive_data(data)
    while receiver.next_event() is not None:
        pass
    return receiver


def print_memory(events: int, count: int) -> None:
    """Measure and print."""
    print(f"bytes per object, over {count:,} of them")
    for name, make in makers(events).items():
        print(f"{name:36}{bytes_per_object(make, count):>8,.0f}")
