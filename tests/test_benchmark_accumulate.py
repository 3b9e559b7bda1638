"""The benchmark of final objects runs, names its contenders, and all of them say what was meant.

How fast they are is deliberately not looked at. Peers are slow to import, so one test has all of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks import accumulate, contenders
from benchmarks.accumulate import SHAPES, Answer, print_accumulate, print_tools, text_answer, tool_answer
from benchmarks.streams import STREAMS
from benchmarks.timing import Job, measure
from sse_machines import Outcome, Receiver

# Being traced makes this three times slower, and the tests of the single rules reach every line.
pytestmark = pytest.mark.untraced

SIZE = 700


def answers(protocol: str) -> Iterator[Answer]:
    yield text_answer(protocol, 30)
    for shape in SHAPES:
        yield tool_answer(protocol, shape, SIZE)


def finishers(protocol: str) -> dict[str, Any]:
    return (
        accumulate.accumulate(protocol)
        | accumulate.accumulate_with_orjson(protocol)
        | accumulate.slow_accumulate(protocol)
    )


@pytest.fixture
def without_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(accumulate, "import_module", absent)
    monkeypatch.setattr(contenders, "import_module", absent)


@pytest.mark.parametrize("protocol", STREAMS)
def test_the_answers_are_legal(protocol: str) -> None:
    for answer in answers(protocol):
        receiver = Receiver(contenders.PROTOCOLS[protocol], strict=True)
        receiver.receive_data(answer.stream.body)
        receiver.receive_eof()

        assert len(list(receiver)) == len(answer.stream.blocks) + 1
        assert receiver.outcome is Outcome.COMPLETED


@pytest.mark.parametrize("shape", SHAPES)
def test_arguments(shape: str) -> None:
    answer = tool_answer("chat", shape, SIZE)

    assert len(answer.meant) == SIZE
    assert "".join(answer.blocks) == answer.meant
    assert set(map(len, answer.blocks)) == {accumulate.DELTA_SIZE}
    assert json.loads(answer.meant)["path"] == "src/shop/cart.py"


def test_text() -> None:
    assert text_answer("chat", 8).meant == " the state of a"


@pytest.mark.usefixtures("without_peers")
def test_the_text_without_peers(capsys: pytest.CaptureFixture[str]) -> None:
    print_accumulate(STREAMS, 30, 2, [50, 1000])

    output = capsys.readouterr().out
    for protocol in STREAMS:
        assert f"\naccumulate: {protocol}, text\n" in output
    assert "1,000 B chunks" in output
    for who in (contenders.OURS, contenders.FLOOR):
        assert output.count(f"\n{who:24} ") == len(STREAMS)
    for who, work in finishers("chat").items():
        assert f"\n{who} " in output
        assert (work is None) == (who != contenders.OURS)
        assert work is not None or f"\n{who:24}{'not installed':>22}{'not installed':>22}\n" in output


@pytest.mark.usefixtures("without_peers")
def test_tools_without_peers(capsys: pytest.CaptureFixture[str]) -> None:
    print_tools(STREAMS, [SIZE, 400, SIZE], 1)

    output = capsys.readouterr().out
    for protocol in STREAMS:
        for shape in SHAPES:
            assert f"\naccumulate: {protocol}, one tool call, {shape}, 1,400 B chunks\n" in output
    assert output.count(f"{'400 B':>22}{f'{SIZE} B':>22}{'growth':>10}\n") == len(STREAMS) * len(SHAPES)
    for who in (contenders.OURS, contenders.FLOOR):
        assert output.count(f"\n{who:24} ") == len(STREAMS) * len(SHAPES)
    missing = f"\n{accumulate.PYDANTIC_AI:24}{'not installed':>22}{'not installed':>22}{'-':>10}\n"
    assert output.count(missing) == len(STREAMS) * len(SHAPES)


def slow(chunks: list[bytes]) -> Any:
    return accumulate.accumulate("chat")[contenders.OURS](chunks)  # type: ignore[misc]


def test_nobody_waits_for_what_takes_too_long(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(accumulate, "_PATIENCE", 0.0)
    monkeypatch.setattr(accumulate, "slow_accumulate", lambda _: {"slow": slow})

    print_tools(["chat"], [200, 400, 800], 1)

    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("slow ")]
    assert len(lines) == len(SHAPES)
    for line in lines:
        assert line.count("not run") == 2
        assert line.endswith(f"{'not run':>22}{'-':>10}")


@pytest.mark.parametrize(
    ("taken", "expected"),
    [
        ({}, True),
        ({100: 1.0}, True),  # 5 microseconds
        ({1000: 4e4}, True),  # 2 seconds, and 8 of them if it is quadratic
        ({1000: 2e5}, False),  # 10 seconds, and 40
        ({500: 2e5, 1000: 1.5e5}, True),  # 5 seconds, and 7.5: 11 are to come
        ({500: 1e4, 1000: 1.2e5}, False),  # 0.25 seconds, and 6: 144 are to come
    ],
)
def test_what_is_worth_waiting_for(taken: dict[int, float], *, expected: bool) -> None:
    columns = {size: {"who": microseconds} for size, microseconds in taken.items()}

    assert accumulate._is_worth_it("who", 2000, columns) is expected


def test_who_was_given_up_is_not_run_again() -> None:
    assert not accumulate._is_worth_it("who", 2000, {1000: {}})


def test_a_contender_that_says_something_else() -> None:
    answer = tool_answer("messages", "one long string", SIZE)
    final = {"content": [{"type": "tool_use", "input": {"path": "src/shop/cart.py"}}]}
    jobs: dict[str, Job] = accumulate._jobs("messages", {"liar": lambda _: final}, answer)

    with pytest.raises(RuntimeError, match=f"liar found 0 of {SIZE // 20} events"):
        measure(jobs, 1000, 1)


# The last one: with the peers in memory, every collection of garbage takes long.
def test_all_contenders_say_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # LiteLLM gets them anyway; here they are taken back.
    monkeypatch.setenv("LITELLM_OFFLINE_MODE", "true")
    monkeypatch.setenv("LITELLM_MODE", "PRODUCTION")
    for protocol in STREAMS:
        for answer in answers(protocol):
            jobs = finishers(protocol)
            finals = {who: work(answer.chunks(100)) for who, work in jobs.items() if work is not None}
            values = {who: accumulate.said(protocol, final) for who, final in finals.items()}
            texts = {
                who: value if isinstance(value, str) else json.dumps(value)
                for who, value in values.items()
            }

            assert {"sse_machines", "sse_machines, orjson", accumulate.VENDOR[protocol]} <= texts.keys()
            assert texts == dict.fromkeys(texts, answer.meant)

    # One table is enough: every run begins with a collection, which takes long by now.
    print_accumulate(["chat"], 30, 1, [1000])
    output = capsys.readouterr().out
    for who, work in finishers("chat").items():
        assert f"\n{who} " in output
        assert work is None or f"\n{who:24}{'not installed':>22}\n" not in output
