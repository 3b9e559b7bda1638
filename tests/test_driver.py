"""The driver in virtual time, and what it does not let a relay get away with."""

from __future__ import annotations

import pickle

import pytest

from sse_machines import CHAT, MESSAGES, Hold, Relay, RelayConfig
from sse_machines.relay import Output
from sse_machines.testing import Arrive, Break, End, Leave, Unsent, Write, drive
from tests import wire

KEEPALIVE = b": keep-alive\n\n"


def test_it_tells_what_was_written_when() -> None:
    recording = drive(Relay(MESSAGES, now=100.0), [Arrive(3, wire.start()), End(20)], start=100.0)
    assert recording.writes[:2] == [Write(103.0, wire.start()), Write(113.0, KEEPALIVE)]
    assert recording.writes[-1].at == recording.ended_at == recording.now == 120.0


def test_an_upstream_that_hangs_is_waited_for() -> None:
    recording = drive(Relay(CHAT, RelayConfig(stall=None), now=0.0), until=35.0)
    assert recording.data == KEEPALIVE * 3
    assert (recording.ended_at, recording.now) == (None, 35.0)


def test_without_a_deadline_nothing_is_waited_for() -> None:
    config = RelayConfig(stall=None, keepalive=None)
    assert drive(Relay(CHAT, config, now=0.0), until=35.0).now == 0.0


def test_nothing_happens_to_an_upstream_that_was_left() -> None:
    steps = [Leave(1), Arrive(2, wire.ANSWER), Unsent(3, 9), Break(4)]
    recording = drive(Relay(MESSAGES, now=0.0), steps)
    assert (recording.data, recording.ended_at, recording.now) == (b"", 1, 1)


def test_upstreams_are_tried_one_by_one() -> None:
    relay = Relay(MESSAGES, RelayConfig(hold=Hold()), now=0.0)
    recording = drive(relay, [Break(1)], [End(2)], [Arrive(3, wire.ANSWER)], [Break(0)])
    assert recording.data == wire.ANSWER
    assert recording.left_at == [1, 3, 6]


def test_another_relay_can_be_put_in_its_place() -> None:
    first = Relay(MESSAGES, now=0.0)
    recording = drive(first, [Arrive(0, wire.ANSWER)], between=lambda r: pickle.loads(pickle.dumps(r)))
    assert recording.relay is not first
    assert recording.data == wire.ANSWER


class _Late(Relay):
    """A relay whose deadline is never in the future."""

    def handle_timeout(self, now: float) -> Output:
        return super().handle_timeout(now)._replace(deadline=now)


class _Talkative(Relay):
    """A relay that does not know when to stop."""

    def receive_data(self, data: bytes | bytearray | memoryview, now: float) -> Output:
        super().receive_data(data, now)
        return Output(b"more", [], None, close_upstream=True, finished=True)


def test_promises_are_held() -> None:
    with pytest.raises(AssertionError, match="is not after 0"):
        drive(_Late(MESSAGES, now=0.0))
    with pytest.raises(AssertionError, match="after the end"):
        drive(_Talkative(MESSAGES, now=0.0), [Arrive(0, b"a"), Arrive(0, b"b")])
