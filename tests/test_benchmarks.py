"""Every benchmark runs and names its contenders. How fast they are is deliberately not looked at."""

from __future__ import annotations

import json
import os
import re
from typing import Any

import attrs
import pytest

from benchmarks import contenders, relay as relaying, writers
from benchmarks.__main__ import main
from benchmarks.steps import SHAPES
from benchmarks.streams import STREAMS, Stream, stream
from benchmarks.timing import Job, measure
from sse_machines import Frame, FrameReader, Outcome, Receiver

# Being traced makes this three times slower, and the tests of the single rules reach every line.
pytestmark = pytest.mark.untraced

QUICK = ["--events", "30", "--rounds", "1", "--chunk", "50", "--chunk", "1000"]


@pytest.fixture
def output(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> str:
    main(request.param)
    return capsys.readouterr().out


@pytest.mark.parametrize("output", [["frames", *QUICK]], indirect=True)
def test_frames(output: str) -> None:
    for name in contenders.frames(b"\n"):
        assert output.count(f"\n{name} ") == 2
    assert "messages, CRLF" in output
    assert "1,000 B chunks" in output


@pytest.mark.parametrize("output", [["receive", *QUICK]], indirect=True)
def test_receive(output: str) -> None:
    for protocol in STREAMS:
        assert f"receive: {protocol}, " in output
    for name in contenders.receive("chat") | contenders.receive_with_orjson("chat"):
        assert output.count(f"\n{name} ") == len(STREAMS)
    assert output.count("\nopenai Stream ") == 2
    assert output.count("\nanthropic Stream ") == 1


@pytest.mark.parametrize("output", [["send", "--events", "30", "--rounds", "1"]], indirect=True)
def test_send(output: str) -> None:
    for protocol in STREAMS:
        assert f"\nsend: {protocol}\n" in output
    given = writers.events("chat", 30)
    for name in writers.send("chat", given) | writers.send_with_orjson("chat"):
        assert output.count(f"\n{name} ") == len(STREAMS)


@pytest.mark.parametrize(
    "output", [["accumulate", *QUICK, "--protocol", "messages", "--size", "500"]], indirect=True
)
def test_accumulate(output: str) -> None:
    assert "\naccumulate: messages, text\n" in output
    assert "\naccumulate: messages, one tool call, " in output
    assert output.count(f"\n{contenders.OURS} ") == 3


@pytest.mark.parametrize("output", [["partial", "--rounds", "1", "--size", "500"]], indirect=True)
def test_partial(output: str) -> None:
    assert "\npartial value after each 20-character delta: " in output
    assert "\nreceive a Messages stream with a tool call" in output


RELAY = ["relay", *QUICK, "--each", "--half", "10", "--count", "2", "--relays", "3", "--turns", "2"]


@pytest.mark.parametrize("output", [RELAY], indirect=True)
def test_relay(output: str) -> None:
    for protocol in STREAMS:
        assert f"\nrelay: {protocol}\n" in output
        assert f"\nrelay: {protocol}, event by event\n" in output
        for mode in relaying.MODES:
            assert re.search(rf"\n{protocol}: relay, {mode}, after half an answer +[\d,]+\n", output)
            assert re.search(rf"\n{protocol}, {mode}( +[\d,]+){{3}}\n", output)
        assert f"\n{protocol}: relay, idle " in output
    for name in (relaying.FRAMING, relaying.LIGHT, relaying.RECEIVE, relaying.FULL):
        assert len(re.findall(rf"\n{name} +\d", output)) == 2 * len(STREAMS)
    for ours, base, most in relaying.RATIOS:
        ratios = re.findall(rf"\n{ours} / {base}((?: +\d+\.\d\d)+) \(at most {most}\)", output)
        assert [len(found.split()) for found in ratios] == [2, 1] * len(STREAMS)


@pytest.mark.parametrize("mode", relaying.MODES)
def test_a_crowd_of_relays(mode: relaying.Mode) -> None:
    found = relaying.crowd("messages", mode, 3, 2)

    assert found.rate > 0
    assert found.size > 0


def test_a_relay_that_does_not_come_to_its_end() -> None:
    blocks = stream("messages", 30).blocks[:-1]

    with pytest.raises(RuntimeError, match="the answer ended as open"):
        relaying.check_bytes("messages", blocks)


def test_a_relay_that_loses_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    quiet = attrs.evolve(relaying.config("full"), comments="drop")
    talkative = Stream([b": lost\n\n", *stream("chat", 30).blocks])
    monkeypatch.setattr(relaying, "config", lambda _mode: quiet)
    monkeypatch.setattr(relaying, "stream", lambda *_: talkative)

    with pytest.raises(RuntimeError, match="the relay changes chat"):
        relaying.check_bytes("chat", talkative.blocks)
    with pytest.raises(RuntimeError, match="not all of the chat stream was forwarded"):
        relaying.crowd("chat", "full", 2, 2)


@pytest.mark.parametrize("protocol", STREAMS)
def test_all_writers_say_the_same(protocol: str) -> None:
    given = writers.events(protocol, 30)
    jobs = writers.send(protocol, given) | writers.send_with_orjson(protocol)
    said = {}
    for name, work in jobs.items():
        if work is not None:
            frames = [Frame.parse(block) for block in work(given.blocks)]
            texts = [frame.data for frame in frames if frame.data not in (None, "[DONE]", '"[DONE]"')]
            payloads = [json.loads(text or "") for text in texts]
            said[name] = [{k: v for k, v in p.items() if k != "sequence_number"} for p in payloads]
    assert len(said) >= 4
    assert all(payloads == said["sse_machines"] for payloads in said.values())


@pytest.mark.parametrize("output", [["memory", "--events", "10", "--count", "10"]], indirect=True)
def test_memory(output: str) -> None:
    assert output.count("FrameReader, ") == 2
    assert output.count("Receiver, ") == 2


@pytest.mark.parametrize("output", [["steps", "--size", "500"]], indirect=True)
def test_steps(output: str) -> None:
    for shape in SHAPES:
        assert shape.name in output


@pytest.mark.parametrize(
    ("command", "module"), [("frames", contenders), ("receive", contenders), ("send", writers)]
)
def test_without_peers(
    command: str, module: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def absent(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(module, "import_module", absent)
    main([command, *(QUICK[:4] if command == "send" else QUICK)])

    output = capsys.readouterr().out
    assert f"\n{contenders.OURS} " in output
    assert f"\n{module.FLOOR} " in output
    assert "not installed" in output


@pytest.mark.parametrize("arguments", [[], ["frames", "--events", "0"], ["steps", "--size", "x"]])
def test_bad_arguments(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    assert "usage" in capsys.readouterr().err


def test_a_contender_that_finds_too_little() -> None:
    job = Job(len, stream("messages", 30))

    with pytest.raises(RuntimeError, match="lazy found 1 of 30 events"):
        measure({"lazy": job}, 100_000, 1)


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("name", STREAMS)
def test_streams(name: str, line_end: bytes) -> None:
    made = stream(name, 30, line_end=line_end)
    reader = FrameReader()
    reader.feed(made.body)

    assert [frame.raw for frame in iter(reader.next_frame, None)] == made.blocks
    assert len(made.blocks) == 30
    assert b"".join(made.chunks(7)) == made.body
    assert made.body.startswith(made.first_half)


@pytest.mark.parametrize("name", STREAMS)
def test_the_streams_are_legal(name: str) -> None:
    receiver = Receiver(contenders.PROTOCOLS[name], strict=True)
    receiver.receive_data(stream(name, 30).body)
    receiver.receive_eof()

    assert len(list(receiver)) == 31
    assert receiver.outcome is Outcome.COMPLETED


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs processes bound to a core")
@pytest.mark.parametrize(
    "output",
    [["gateway", "--streams", "20", "--events", "5", "--interval", "0.02", "--rounds", "1"]],
    indirect=True,
)
def test_gateway(output: str) -> None:
    for name in ("no gateway", "Starlette and httpx", "sse-machines relay"):
        assert re.search(rf"^{name} +20/20 ", output, re.MULTILINE)
