"""Every benchmark runs and names its contenders. How fast they are is deliberately not looked at."""

from __future__ import annotations

import pytest

from benchmarks import contenders
from benchmarks.__main__ import main
from benchmarks.steps import SHAPES
from benchmarks.streams import STREAMS, stream
from benchmarks.timing import Job, measure
from sse_machines import FrameReader, Outcome, Receiver

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


@pytest.mark.parametrize("output", [["memory", "--events", "10", "--count", "10"]], indirect=True)
def test_memory(output: str) -> None:
    assert output.count("FrameReader, ") == 2
    assert output.count("Receiver, ") == 2


@pytest.mark.parametrize("output", [["steps", "--size", "500"]], indirect=True)
def test_steps(output: str) -> None:
    for shape in SHAPES:
        assert shape.name in output


@pytest.mark.parametrize("command", ["frames", "receive"])
def test_without_peers(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def absent(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(contenders, "import_module", absent)
    main([command, *QUICK])

    output = capsys.readouterr().out
    assert f"\n{contenders.OURS} " in output
    assert f"\n{contenders.FLOOR} " in output
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
