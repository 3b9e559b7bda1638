"""The answers in recorded streams, beside what the vendors' own SDKs make of the same bytes.

Everything that differs is explained by a rule below, whose check looks at both values; how many streams
each rule explains is counted, so that a rule can neither hide more than it says nor go stale. The
recordings stay outside of the repository: without them, these tests skip.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sse_machines import Outcome, Receiver, RemoteProtocolError, Result, collect
from tests import test_corpus as corpus, wire

ROWS = [row for row in corpus.ROWS if row.get("expected")]
OTHERS = [row for row in corpus.ROWS if not row.get("expected")]

pytestmark = [
    pytest.mark.skipif(not corpus.ROWS, reason="the recordings are not here"),
    # The tests of each accumulator reach every line of it.
    pytest.mark.untraced,
]

HELPERS_OWN = ("parsed", "parsed_arguments")
"""What the SDK's helper adds for those who gave it a schema. Nobody did: it is always null."""


class _Absent:
    def __repr__(self) -> str:
        return "absent"


ABSENT = _Absent()


class Rule(NamedTuple):
    """Why a difference is right.

    Attributes:
        reason: What is wrong with the SDK's object, or beside the point.
        streams: How many recordings have such a difference.
        path: Where it stands.
        check: Whether it is this difference: what the SDK has, what we have.
    """

    reason: str
    streams: int
    path: str
    check: Callable[[Any, Any], bool]


def glued(want: Any, got: Any) -> bool:
    return isinstance(want, str) and bool(got) and want == got * (len(want) // len(got)) != got


def only_ours(want: Any, got: Any) -> bool:
    return want in (ABSENT, "", 0, {}) and got is not ABSENT


def only_theirs(want: Any, got: Any) -> bool:
    return want is not ABSENT and got is ABSENT


def torn_by_type(want: Any, got: Any) -> bool:
    """The same pieces, of which the SDK put two kinds into one entry."""

    def pieces(entries: Any) -> list[str]:
        members = ("text", "summary", "data")
        return ["".join(entry.get(name, "") for entry in entries) for name in members]

    types = {(entry.get("index"), entry.get("type")) for entry in got}
    return len(want) < len(got) == len(types) and pieces(want) == pieces(got)


_MESSAGE = r"\.choices\[\d+\]\.message"
_CHOICE = r"\.choices\[\d+\]"
RULES = [
    Rule(
        "what is said once and repeated is glued together",
        93,
        rf"{_MESSAGE}\.(role|name|channel|tool_calls\[\d+\]\.(id|function\.name)"
        r"|reasoning_details\[\d+\]\.(id|format))",
        glued,
    ),
    Rule("members are kept of the first chunk only, even if empty there", 66, r"\.\w+", only_ours),
    Rule(
        "members of a choice are kept of its first chunk only",
        49,
        rf"{_CHOICE}\.(native_finish_reason|matched_stop|stop_reason|seed|content_filter_results\b.*)",
        only_ours,
    ),
    Rule(
        "random padding, and the piece of text of the first chunk, are no part of an answer",
        9,
        rf"{_CHOICE}\.(obfuscation|text)",
        only_theirs,
    ),
    Rule(
        "a call without a type is one of a function",
        1,
        rf"{_MESSAGE}\.tool_calls\[\d+\]\.type",
        lambda want, got: want is ABSENT and got == "function",
    ),
    Rule(
        "text and encrypted reasoning of one index are two entries",
        6,
        rf"{_MESSAGE}\.reasoning_details\[\]",
        torn_by_type,
    ),
    Rule(
        "numbers and flags are added up",
        3,
        rf"{_MESSAGE}\.(token_id|reasoning_encrypted)",
        lambda want, got: type(want) is int and got is not ABSENT and got <= want,
    ),
    Rule(
        "an output that is empty at the end is that of the items",
        5,
        r"\.output\[\]",
        lambda want, got: want == [] and len(got) > 0,
    ),
    Rule(
        "words that Python keeps for itself have an underscore in the SDK, not on the wire",
        3,
        r".*\.(from|from_|schema|schema_)",
        lambda want, got: ABSENT in (want, got),
    ),
    Rule(
        "arguments that were cut are presented as whole",
        2,
        r"\.content\[\d+\]\.(input|partial_json)",
        lambda want, got: (want is ABSENT) != (got is ABSENT),
    ),
]

ONE_OFFS = {
    "chat/053-cerebras-tools-reasoning-duplicate-finish.sse": (
        "two answers are glued; the SDK makes one call of both calls"
    ),
    "chat/080-deepseek-reasoning-logprobs.sse": "the SDK drops logprobs of reasoning",
    "chat/168-mistral-text-odd.sse": "the SDK drops text in the first chunk that lists it",
    "chat/172-mistral-text-odd.sse": "the SDK drops reasoning in content that is a list",
    "chat/314-openrouter-tools.sse": "a call without any arguments has the text of none",
    "messages/109-anthropic-empty-hand.sse": "the SDK drops counts that it does not know",
    "messages/110-anthropic-tools-no-message-stop-cut-hand.sse": "the block began without its input",
    "messages/118-anthropic-tools-reasoning-duplicate-message-start-hand.sse": (
        "two different answers are spliced, which is fatal; the SDK mixes them"
    ),
}
BEGINS_IN_THE_MIDDLE = "responses/128-openai-text-sequence-hand.sse"
"""Its pieces begin late, and only the response at its end has all of the text."""
EQUAL = 281
"""How many answers are equal in everything."""


def answer(row: dict[str, Any]) -> Result:
    return collect(corpus.bytes_of(row), corpus.PROTOCOLS[row["protocol"]])


def expected(row: dict[str, Any]) -> Any:
    return json.loads(Path(corpus.CORPUS, row["expected"]).read_text(encoding="utf-8"))


def pruned(value: Any) -> Any:
    """A value without what is null: SDKs differ in whether they leave it out."""
    if isinstance(value, dict):
        return {
            name: pruned(member)
            for name, member in value.items()
            if member is not None and name not in HELPERS_OWN
        }
    return [pruned(entry) for entry in value] if isinstance(value, list) else value


def differences(want: Any, got: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    if isinstance(want, dict) and isinstance(got, dict):
        for name in sorted(want.keys() | got.keys()):
            yield from differences(want.get(name, ABSENT), got.get(name, ABSENT), f"{path}.{name}")
    elif isinstance(want, list) and isinstance(got, list):
        if len(want) != len(got):
            yield f"{path}[]", want, got
        else:
            for index, (one, other) in enumerate(zip(want, got, strict=True)):
                yield from differences(one, other, f"{path}[{index}]")
    elif want != got or isinstance(want, bool) != isinstance(got, bool):
        yield path, want, got


def found(row: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    message = json.loads(json.dumps(answer(row).message))
    return list(differences(pruned(expected(row)), pruned(message)))


def explanation(path: str, want: Any, got: Any) -> str:
    for rule in RULES:
        if re.fullmatch(rule.path, path) and rule.check(want, got):
            return rule.reason
    return f"unexplained: {path}: {want!r} and {got!r}"


@pytest.mark.parametrize("row", ROWS, ids=corpus.name)
def test_is_what_the_sdk_accumulates(row: dict[str, Any]) -> None:
    if row["file"] in ONE_OFFS:
        assert found(row)
        return
    reasons = {explanation(*difference) for difference in found(row)}
    assert reasons <= {rule.reason for rule in RULES}


def test_so_many_are_equal_and_so_many_differ_for_a_reason() -> None:
    counts: Counter[str] = Counter()
    for row in ROWS:
        if row["file"] not in ONE_OFFS:
            counts.update({explanation(*difference) for difference in found(row)} or {"equal"})
    assert counts == {"equal": EQUAL, **{rule.reason: rule.streams for rule in RULES}}
    assert len(ROWS) == 453


def test_the_helpers_own_members_are_always_null() -> None:
    def values(value: Any) -> Iterator[Any]:
        if isinstance(value, dict):
            yield from (member for name, member in value.items() if name in HELPERS_OWN)
        if isinstance(value, dict | list):
            for inner in value.values() if isinstance(value, dict) else value:
                yield from values(inner)

    assert {str(value) for row in ROWS for value in values(expected(row))} == {"None"}


@pytest.mark.parametrize("row", corpus.ROWS, ids=corpus.name)
def test_a_receiver_that_accumulates_gives_the_same_answer_in_every_cut(row: dict[str, Any]) -> None:
    stream = corpus.bytes_of(row)
    protocol = corpus.PROTOCOLS[row["protocol"]]
    told = row["file"] in corpus.NO_EVENT
    receiver: Receiver[Any]
    receiver = Receiver(protocol, accumulate=True) if told else Receiver.detecting(accumulate=True)
    pieces = [stream[start : start + 997] for start in range(0, len(stream), 997)]
    *_, last = wire.drain(receiver, pieces)
    whole = answer(row)
    if isinstance(last, RemoteProtocolError):
        assert last.accumulator is receiver.accumulator
    assert (receiver.accumulator.snapshot() or None) == whole.message
    assert receiver.accumulator.outcome is whole.outcome is receiver.outcome


@pytest.mark.parametrize("row", corpus.CORE, ids=corpus.name)
def test_what_was_there_before_a_cut_stays(row: dict[str, Any]) -> None:
    stream = corpus.bytes_of(row)
    whole = answer(row)
    for cut in range(0, len(stream), max(1, len(stream) // 12)):
        part = collect(stream[:cut], corpus.PROTOCOLS[row["protocol"]])
        assert whole.text.startswith(part.text) or row["file"] == BEGINS_IN_THE_MIDDLE
        assert part.outcome is not Outcome.OPEN
        if part.outcome is Outcome.TRUNCATED:
            assert part.error is not None
            assert part.finish_reason is not None or not part.usage_final
        json.dumps(part.message)
