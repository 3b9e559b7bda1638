"""Ten thousand streams of our own, broken in ways that are the same in every run."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import sse_machines
from sse_machines import CHAT, MESSAGES, RESPONSES, detect
from sse_machines._protocol import Protocol
from tests import broken, wire
from tests.chat import wire as chat_wire
from tests.responses import wire as responses_wire

# Being traced makes this three times slower, and the tests of the single rules reach every line.
pytestmark = pytest.mark.untraced

SAMPLES = Path(sse_machines.__file__).parent / "samples"
STREAMS = [path.read_bytes() for path in sorted(SAMPLES.rglob("*.sse"))]
PROTOCOLS = [detect(stream) for stream in STREAMS]
OURS = [
    *zip(PROTOCOLS, STREAMS, strict=True),
    (CHAT, chat_wire.ANSWER),
    (RESPONSES, responses_wire.ANSWER),
    (MESSAGES, wire.ANSWER),
]
MUTATIONS = 10_000


@pytest.mark.parametrize("seed", range(20))
def test_broken_streams_are_judged_and_never_crash(seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(MUTATIONS // 20):
        protocol, stream = dice.choice(OURS)
        assert protocol is not None
        broken.check(protocol, stream, dice)


@pytest.mark.parametrize("protocol", [CHAT, RESPONSES, MESSAGES], ids=str)
def test_foreign_streams_are_judged_and_never_crash(protocol: Protocol[Any]) -> None:
    dice = random.Random(protocol.name)
    for _ in range(500):
        broken.check(protocol, dice.choice(STREAMS), dice)
