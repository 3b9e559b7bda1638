"""The command, in this process and, where pipes and signals matter, in one of its own."""

from __future__ import annotations

import io
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sse_machines import MESSAGES, cli, collect
from tests import wire

SAMPLE = Path(cli.__file__).parent / "samples" / "messages.sse"
INTERRUPTED = wire.start() + wire.text(0, "par") + wire.ERROR


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "answer.sse"
    path.write_bytes(wire.ANSWER)
    return path


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def objects(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines(capsys)]


def test_decode_a_file(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["decode", str(recording)]) == 0
    shown = lines(capsys)
    assert shown[3] == "comment              keep-alive"
    assert shown[2] == "ping"
    assert 'content_block_delta  1 text_delta "你好, "' in shown
    assert 'content_block_delta  1 text_delta "world \\u2028🌍"' in shown
    assert shown[-7:] == [
        "message_stop",
        "",
        "text: 12 characters, reasoning: 2",
        'tool call: f {"a":1}',
        'usage: {"input_tokens": 5, "output_tokens": 3}',
        "finish reason: tool_use",
        "outcome: completed",
    ]


def test_decode_says_what_is_not_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cut.sse"
    path.write_bytes(wire.ANSWER[: wire.ANSWER.index(wire.block_stop(2))])
    assert cli.main(["decode", str(path)]) == 1
    assert lines(capsys)[-4:] == [
        "text: 12 characters, reasoning: 2",
        'tool call: f {"a":1}, incomplete',
        'usage so far: {"input_tokens": 5, "output_tokens": 1}',
        "outcome: truncated",
    ]


def test_decode_to_the_answer_alone(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["decode", "--final", str(recording)]) == 0
    output = capsys.readouterr()
    assert json.loads(output.out) == collect(wire.ANSWER).message
    assert output.err == ""


def test_decode_to_what_came_of_the_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cut.sse"
    path.write_bytes(wire.ANSWER[: wire.ANSWER.index(wire.block_stop(0))])
    assert cli.main(["decode", "--final", str(path)]) == 1
    output = capsys.readouterr()
    assert json.loads(output.out)["content"][0]["thinking"] == "hm"
    assert output.err.startswith("sse-machines: truncated: eof while the stream is ")


def test_the_answer_alone_and_lines_of_json_exclude_each_other(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        cli.main(["decode", "--final", "--json", "--sample"])
    assert "not allowed with" in capsys.readouterr().err


def test_decode_as_json(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["decode", "--json", str(recording)]) == 0
    shown = objects(capsys)
    assert shown[0] == {"type": "message_start", "message": wire.message()}
    assert shown[3] == {"type": "comment", "text": "keep-alive"}
    assert shown[-2] == {"type": "end_of_stream", "outcome": "completed"}
    assert shown[-1] == {
        "type": "summary",
        "outcome": "completed",
        "finish_reason": "tool_use",
        "text_length": 12,
        "reasoning_length": 2,
        "tool_calls": [
            {"id": "toolu_1", "name": "f", "arguments": '{"a":1}', "complete": True, "input": {"a": 1}}
        ],
        "usage": {"input_tokens": 5, "output_tokens": 3},
        "usage_final": True,
    }


def test_decode_the_sample(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["decode", "--sample", "--strict"]) == 0
    assert lines(capsys)[-1] == "outcome: completed"
    assert cli.main(["decode", str(SAMPLE), "--protocol", "messages"]) == 0


def test_decode_leaves_out_what_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "no_usage.sse"
    path.write_bytes(wire.start() + wire.event("message_delta", delta={}) + wire.STOP)
    assert cli.main(["decode", str(path)]) == 0
    assert "message_delta        {}" in lines(capsys)


def test_decode_marks_violations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "deviant.sse"
    path.write_bytes(wire.start() + wire.FUTURE + wire.block_stop(3) + INTERRUPTED[len(wire.start()) :])
    assert cli.main(["decode", str(path)]) == 1
    shown = lines(capsys)
    assert shown[1] == 'unknown              session.status {"type": "session.status", "s": 1}'
    assert shown[2].startswith("! stop_without_start: ")
    assert shown[2].endswith(" (dropped)")
    assert shown[3].startswith("! delta_without_start: ")
    assert shown[5] == 'error                overloaded_error "Overloaded"'
    assert shown[-1] == "outcome: failed"


def test_decode_violations_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "deviant.sse"
    path.write_bytes(wire.start() + wire.block_stop(3))
    assert cli.main(["decode", "--json", str(path)]) == 1
    _, violation, error, summary = objects(capsys)
    assert summary["outcome"] == "truncated"
    assert violation == {
        "type": "violation",
        "code": "stop_without_start",
        "message": violation["message"],
        "state": "ABSENT",
        "key": 3,
        "legal": violation["legal"],
        "event": {"type": "content_block_stop", "index": 3},
        "dropped": True,
    }
    assert error["type"] == "protocol_error"
    assert error["code"] == "truncated"
    assert error["state"] == "BETWEEN"
    assert error["tail_length"] == 0
    assert error["outcome"] == "truncated"
    assert "accumulator" not in error


def test_decode_strictly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "deviant.sse"
    path.write_bytes(wire.start() + wire.block_start(0) + wire.message_delta() + wire.STOP)
    assert cli.main(["decode", str(path)]) == 0
    capsys.readouterr()
    assert cli.main(["decode", "--strict", str(path)]) == 1
    shown = lines(capsys)
    assert shown[2].startswith("error  block_left_open: message_delta while the block 0 is TEXT")
    assert shown[-1] == "outcome: protocol_error"


@pytest.mark.parametrize("name", ["chat", "responses", "messages"])
def test_decode_finds_out_the_protocol(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["decode", "--sample", name, "--strict"]) == 0
    found = lines(capsys)
    assert cli.main(["decode", "--sample", name, "--strict", "--protocol", name]) == 0
    assert lines(capsys) == found
    assert found[-1] == "outcome: completed"


def test_decode_a_chat_for_a_person(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["decode", "--sample", "chat"]) == 0
    shown = lines(capsys)
    assert shown[1] == 'chat.completion.chunk 0 "Let me "'
    assert shown[0] == 'chat.completion.chunk 0 {"role": "assistant", "content": "", "refusal": null}'
    assert "chat.completion.chunk 0 {} tool_calls" in shown
    end = shown.index("[DONE]")
    assert shown[end - 1].startswith('chat.completion.chunk {"prompt_tokens": 31')
    assert shown[end + 1] == ""


def test_decode_responses_for_a_person(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["decode", "--sample", "responses"]) == 0
    shown = lines(capsys)
    assert shown[0] == 'response.created     {"id": "resp_sample", "status": "in_progress"}'
    assert 'response.output_text.delta 1 "msg_sample" 0 "over Oslo"' in shown
    assert '"usage": {"input_tokens": 31' in shown[shown.index("") - 1]


def test_decode_the_wrong_protocol(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["decode", "--sample", "chat", "--protocol", "messages"]) == 1
    assert lines(capsys) == [
        "error  wrong_protocol: this looks like chat, not messages; legal: message_start, ping, error",
        "",
        "text: 0 characters, reasoning: 0",
        "outcome: protocol_error",
    ]


@pytest.fixture
def recordings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    streams = {
        "right": wire.ANSWER,
        "deviant": wire.start()
        + wire.text(0, "a")
        + wire.text(0, "b")
        + wire.message_delta()
        + wire.STOP,
        "dropped": wire.ANSWER + wire.PING + wire.PING,
        "failed": INTERRUPTED,
        "cut": wire.ANSWER[:900],
        "page": b"<html>",
    }
    for name, stream in streams.items():
        Path(name).write_bytes(stream)
    return list(streams)


def test_check(recordings: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", *recordings]) == 1
    *shown, summary = lines(capsys)
    assert shown[:4] == [
        "ok    right: messages, completed, 16 events",
        "ok    deviant: messages, completed, 5 events, delta_without_start x 1, block_left_open x 1",
        "ok    dropped: messages, completed, 18 events, event_after_stop x 2",
        "WRONG failed: messages, failed, 3 events, delta_without_start x 1",
    ]
    assert shown[4].startswith("WRONG cut: messages, truncated, ")
    assert "truncated: eof" in shown[4]
    assert shown[5].startswith("WRONG page: undecided, not_sse, 0 events, not an event stream")
    assert summary == "6 files, 3 right, 3 wrong"


@pytest.mark.usefixtures("recordings")
def test_check_strictly(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", "--strict", "right", "deviant"]) == 1
    assert [line[:5] for line in lines(capsys)] == ["ok   ", "WRONG", "2 fil"]
    assert cli.main(["check", "--strict", "right"]) == 0
    assert lines(capsys)[-1] == "1 files, 1 right, 0 wrong"


@pytest.mark.usefixtures("recordings")
def test_check_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", "--json", "deviant", "cut"]) == 1
    deviant, cut, summary = objects(capsys)
    assert deviant == {
        "file": "deviant",
        "protocol": "messages",
        "outcome": "completed",
        "events": 5,
        "violations": {"delta_without_start": 1, "block_left_open": 1},
        "error": None,
        "right": True,
    }
    assert cut["error"]["code"] == "truncated"
    assert summary == {"files": 2, "right": 1, "wrong": 1}


def test_check_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(wire.ANSWER)))
    assert cli.main(["check", "-"]) == 0
    assert lines(capsys)[0].startswith("ok    -: messages, completed")


def test_strangers_cannot_move_the_cursor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "hostile.sse"
    path.write_bytes(": \x1b[2J\x9b\n".encode() + wire.start() + wire.text(0, "\x1b]0;x\x07\ud800"))
    cli.main(["decode", str(path)])
    out = capsys.readouterr().out
    assert "\\x1b[2J\\x9b" in out
    assert all(character.isprintable() or character == "\n" for character in out)


def test_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(wire.ANSWER)))
    assert cli.main(["decode"]) == 0
    assert lines(capsys)[-1] == "outcome: completed"


@pytest.mark.parametrize(
    "arguments",
    [
        ["decode", "no/such/file"],
        ["check", "no/such/file"],
        ["draw", "messages", "--table", "none"],
    ],
)
def test_wrong_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("sse-machines: ")


@pytest.mark.parametrize("arguments", [[], ["decode", "--protocol", "morse"], ["sing"]])
def test_wrong_words(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    assert caught.value.code == 2
    assert "usage: sse-machines" in capsys.readouterr().err


def test_draw(capsys: pytest.CaptureFixture[str]) -> None:
    stream, block = MESSAGES.mermaid()
    assert cli.main(["draw", "messages"]) == 0
    assert capsys.readouterr().out == stream
    assert cli.main(["draw", "messages", "--table", "block"]) == 0
    assert capsys.readouterr().out == block
    assert "IN_BLOCK --> BETWEEN : content_block_stop" in stream


@pytest.mark.parametrize("name", cli.PROTOCOLS)
def test_draw_every_table(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    protocol = cli.PROTOCOLS[name]
    for table, diagram in zip(protocol.tables, protocol.mermaid(), strict=True):
        assert cli.main(["draw", name, "--table", table.name]) == 0
        assert capsys.readouterr().out == diagram


COMMAND = [sys.executable, "-m", "sse_machines", "decode", "-"]


def test_events_are_shown_as_they_arrive() -> None:
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for frame in (wire.start(), wire.PING):
            process.stdin.write(frame)
            process.stdin.flush()
            assert process.stdout.readline().split()[0].decode() in frame.decode()
        process.stdin.close()
        assert process.stdout.read().endswith(b"outcome: truncated\n")
    assert process.returncode == 1


def test_a_reader_that_leaves_ends_it_quietly() -> None:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(COMMAND, **pipes) as process:  # type: ignore[call-overload]
        process.stdin.write(wire.start())
        process.stdin.flush()
        process.stdout.readline()
        process.stdout.close()
        process.stdin.write(wire.PING)
        process.stdin.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


# Whoever runs the tests in the background may have interrupts switched off, and children inherit that.
SCRIPT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from sse_machines.cli import main
sys.exit(main(["decode", "-"]))
"""
INTERRUPTIBLE = [sys.executable, "-c", SCRIPT]


@pytest.mark.skipif(os.name == "nt", reason="signals are different there")
def test_an_interrupt_ends_it_quietly() -> None:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(INTERRUPTIBLE, **pipes) as process:  # type: ignore[call-overload]
        process.stdin.write(wire.start())
        process.stdin.flush()
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
        assert process.stderr.read() == b""


def test_interrupts_and_broken_pipes_in_this_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_draw", interrupt)
    assert cli.main(["draw", "messages"]) == 130

    class Gone(io.StringIO):
        def write(self, _: str) -> int:
            raise BrokenPipeError

        def fileno(self) -> int:
            return spare

    spare = os.open(tmp_path / "spare", os.O_CREAT | os.O_WRONLY)
    monkeypatch.setattr("sys.stdout", Gone())
    assert cli.main(["decode", "--sample"]) == 141
    os.close(spare)
    assert capfd.readouterr().out == ""


def test_python_m(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import runpy

    monkeypatch.setattr("sys.argv", ["sse-machines", "decode", "--sample"])
    with pytest.raises(SystemExit) as caught:
        runpy.run_module("sse_machines", run_name="__main__")
    assert caught.value.code == 0
    assert lines(capsys)[-1] == "outcome: completed"
    runpy.run_module("sse_machines.__main__", run_name="somewhere else")


# The gateway. What it does is tested elsewhere.


class Serving:
    """Stands in for uvicorn: notes how it was started, and sees that one can connect by then."""

    def __init__(self) -> None:
        self.gateway: Any = None
        self.address: tuple[str, int] = ("", 0)

    def run(self, server: Any, sockets: list[socket.socket]) -> None:
        self.gateway = server.config.app
        self.address = sockets[0].getsockname()[:2]
        with socket.create_connection(self.address):
            pass


@pytest.fixture
def serving(monkeypatch: pytest.MonkeyPatch) -> Serving:
    it = Serving()

    def run(server: Any, sockets: list[socket.socket]) -> None:
        it.run(server, sockets)

    monkeypatch.setattr("uvicorn.Server.run", run)
    return it


def test_relay_listens_on_loopback_and_says_where(
    serving: Serving, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["relay", "--listen", "127.0.0.1:0", "--upstream", "http://upstream"]) == 0
    host, port = serving.address
    assert host == "127.0.0.1"
    assert lines(capsys) == [f"listening on http://127.0.0.1:{port}"]
    config = serving.gateway.config
    assert (config.keepalive.interval, config.keepalive.before_output) == (10.0, True)
    assert config.stall.idle_progress == 120.0
    assert config.hold is not None
    assert serving.gateway.retries == 1


def test_relay_takes_its_times(serving: Serving, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--listen", "[::1]:0", "--keepalive", "2.5", "--stall", "60", "--retries", "3"]
    assert cli.main(["relay", "--upstream", "http://upstream", *options]) == 0
    assert lines(capsys) == [f"listening on http://[::1]:{serving.address[1]}"]
    config = serving.gateway.config
    assert (config.keepalive.interval, config.stall.idle_progress) == (2.5, 60.0)
    assert serving.gateway.retries == 3


def test_relay_tells_what_became_of_a_stream(
    serving: Serving, capsys: pytest.CaptureFixture[str]
) -> None:
    cli.main(["relay", "--listen", ":0", "--upstream", "http://upstream"])
    serving.gateway.served("a line")
    assert serving.address[0] == "127.0.0.1"
    assert lines(capsys)[1:] == ["a line"]


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--upstream", "http://u", "--keepalive", "0"],
        ["--upstream", "http://u", "--stall", "nan"],
        ["--upstream", "http://u", "--stall", "inf"],
        ["--upstream", "http://u", "--listen", "8080x"],
        ["--upstream", "http://u", "--retries", "x"],
    ],
)
def test_relay_refuses_what_makes_no_sense(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        cli.main(["relay", *options])
    assert exit_.value.code == 2
    assert "usage: sse-machines relay" in capsys.readouterr().err


def test_relay_says_which_extra_it_needs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "sse_machines.adapters.gateway", raising=False)
    monkeypatch.delattr("sse_machines.adapters.gateway", raising=False)
    monkeypatch.setitem(sys.modules, "httpx", None)
    assert cli.main(["relay", "--upstream", "http://upstream"]) == 2
    assert "pip install 'sse-machines[gateway]'" in capsys.readouterr().err
