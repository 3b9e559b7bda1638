"""The answer made of chunks: every rule of accumulation, the bounds, and what the official SDK makes.

Tests with an id are public bug reports, as in ``test_cases.py``.
"""

from __future__ import annotations

import copy
import itertools
import json
import pickle
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import openai
import pytest
from hypothesis import given, strategies as st
from openai._models import construct_type
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk as SDKChunk

from sse_machines import CHAT, AnswerTooLarge, Limits, Outcome, Receiver, Result, collect
from sse_machines._accumulator import DEFAULT_MAX_ANSWER_SIZE
from sse_machines.chat import Accumulator, ChatCompletionChunk, ChoiceSoFar, ErrorInfo
from tests.chat import wire
from tests.chat.wire import call, calls, choice, chunk, delta, event, finish, role, text

END = finish() + wire.DONE
TOOLS = finish("tool_calls") + wire.DONE
HI = role() + text("ok")
COUNTS = {"prompt_tokens": 14, "completion_tokens": 52, "total_tokens": 66}


def read(*frames: bytes) -> Result:
    return collect(b"".join(frames), CHAT)


def answer(*frames: bytes) -> Accumulator:
    accumulator = read(*frames).accumulator
    assert isinstance(accumulator, Accumulator)
    return accumulator


def choice_of(*frames: bytes) -> dict[str, Any]:
    (only,) = answer(*frames).snapshot()["choices"]
    assert isinstance(only, dict)
    return only


def message(*frames: bytes) -> dict[str, Any]:
    found = choice_of(*frames)["message"]
    assert isinstance(found, dict)
    return found


def made(*frames: bytes) -> list[tuple[str | None, str | None, str]]:
    """Id, name and arguments of every call."""
    return [(made.id, made.name, made.arguments) for made in read(*frames).tool_calls]


def inputs(*frames: bytes) -> list[tuple[bool, Any]]:
    """Whether every call is whole, and its input."""
    return [(made.complete, made.input) for made in read(*frames).tool_calls]


def with_choice(delta: Any = None, finish: str | None = None, **members: Any) -> bytes:
    """A chunk with members of vendors in its choice."""
    return chunk({**choice(delta or {}, finish), **members})


# The envelope.


def test_po16_the_first_members_that_are_not_empty_count() -> None:
    filters = {"id": "", "object": "", "created": 0, "model": "", "choices": []}
    snapshot = answer(
        event({**filters, "prompt_filter_results": [{"prompt_index": 0}]}),
        chunk(choice({"role": "assistant", "content": ""}), created=7, service_tier="flex"),
        chunk(choice({"content": "ok"}), id="other", created=8, model="n", service_tier="auto"),
        event({**filters, "object": "chat.completion.done"}),
        END,
    ).snapshot()
    assert snapshot.pop("choices")[0]["message"]["content"] == "ok"
    assert snapshot == {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 7,
        "model": "m",
        "service_tier": "flex",
        "system_fingerprint": None,
        "prompt_filter_results": [{"prompt_index": 0}],
        "usage": None,
    }


def test_a_fingerprint_may_come_late_and_null_does_not_take_it_back() -> None:
    chunks = [
        chunk(choice({"content": "a"}), system_fingerprint=value) for value in (None, "f", None, "g")
    ]
    assert answer(role(), *chunks, END).snapshot()["system_fingerprint"] == "f"


def test_an_empty_member_stays_where_nothing_better_comes() -> None:
    values: list[Any] = [[], ""]
    empty = [chunk(choice({"role": "assistant"}), citations=value, id="") for value in values]
    snapshot = answer(*empty).snapshot()
    assert (snapshot["id"], snapshot["citations"]) == ("", [])
    # Null is no value.
    assert "citations" not in answer(chunk(choice({"content": "a"}), citations=None)).snapshot()


def test_the_last_moderation_counts_and_null_does_not_erase_it() -> None:
    said = [{"input": {}}, {"input": {}, "output": {"flagged": True}}, None, {}]
    chunks = [chunk(moderation=value) for value in said]
    assert answer(HI, *chunks, END).snapshot()["moderation"] == said[1]


def test_obfuscation_belongs_to_no_answer() -> None:
    padded = chunk({**choice({"content": "a"}), "obfuscation": "x"}, obfuscation="x9")
    assert "obfuscation" not in json.dumps(answer(role(), padded, END).snapshot())


def test_members_of_vendors_stay() -> None:
    first = chunk(choice({"content": "a"}), provider="P", citations=["u"], x_groq={"id": "r"})
    snapshot = answer(role(), first, END).snapshot()
    assert (snapshot["provider"], snapshot["citations"]) == ("P", ["u"])
    assert snapshot["x_groq"] == {"id": "r"}


# Usage.


def test_us01_counts_replace_counts() -> None:
    running = [
        chunk(choice({"content": piece}), usage={"prompt_tokens": 16, "completion_tokens": number})
        for number, piece in enumerate(["", "a", "b"])
    ]
    last = {"prompt_tokens": 16, "completion_tokens": 3, "total_tokens": 19}
    result = read(role(), *running, chunk(choice({}, "stop"), usage=None), chunk(usage=last), wire.DONE)
    assert (result.text, result.usage, result.usage_final) == ("ab", last, True)


def test_counts_are_replaced_one_by_one_and_null_is_not_0() -> None:
    usages = [
        {"prompt_tokens": 5, "completion_tokens": 1, "details": {"a": 1, "b": 2}, "cost": None},
        {"prompt_tokens": None, "completion_tokens": 0, "details": {"a": 3}},
        None,
    ]
    result = read(HI, *(chunk(usage=usage) for usage in usages), END)
    assert result.usage == {
        "prompt_tokens": 5,
        "completion_tokens": 0,
        "details": {"a": 3},
        "cost": None,
    }


def test_no_usage_is_none_and_not_final() -> None:
    for frames in ([HI, END], [HI, finish()], [HI, finish(), chunk(usage=None), wire.DONE]):
        result = read(*frames)
        assert result.usage is None
        assert not result.usage_final


RUNNING = chunk(choice({"content": "a"}), usage=COUNTS)
WITH_FINISH = chunk(choice({}, "stop"), usage=COUNTS)
SOUND = delta(role="assistant", audio={"id": "a", "data": "AA"})
SILENCE = delta(audio={"expires_at": 5})
FINAL: dict[str, tuple[list[bytes], bool]] = {
    "with the finish reason": ([HI, WITH_FINISH], True),
    "with the finish reason, and the end mark": ([HI, WITH_FINISH, wire.DONE], True),
    "behind the finish reason": ([HI, finish(), wire.USAGE], True),
    "behind the finish reason, and the end mark": ([HI, finish(), wire.USAGE, wire.DONE], True),
    "running, and a cut": ([role(), RUNNING], False),
    "running, and more text": ([role(), RUNNING, text("b"), END], False),
    "running, and the end mark": ([role(), RUNNING, END], True),
    "running, and the end without its mark": ([role(), RUNNING, finish()], True),
    "running, and the end mark alone": ([role(), RUNNING, wire.DONE], False),
    "behind one of two choices, and a cut": ([HI, WITH_FINISH, role(1), text("b", 1)], False),
    "behind one of two choices": ([HI, WITH_FINISH, text("b", 1), finish(index=1), wire.DONE], False),
    "with the later one of two choices": (
        [HI, role(1), finish(index=1), chunk(choice({}, "stop"), usage=COUNTS)],
        True,
    ),
    "in a chunk that opens a choice and ends it": ([chunk(choice({}, "stop"), usage=COUNTS)], True),
    "behind sound": ([SOUND, SILENCE, wire.USAGE, wire.DONE], True),
    "before the end of sound": ([SOUND, wire.USAGE, SILENCE, wire.DONE], True),
    "in sound that has no end": ([SOUND, wire.USAGE], False),
    "without any choice": ([wire.USAGE, wire.DONE], False),
}


@pytest.mark.parametrize("name", FINAL)
def test_usage_is_final_once_it_counts_all(name: str) -> None:
    frames, final = FINAL[name]
    result = read(*frames)
    assert result.usage == COUNTS
    assert result.usage_final is final


def test_po23_usage_comes_behind_the_finish_reason() -> None:
    counts = {"prompt_tokens": 23, "completion_tokens": 235, "total_tokens": 258}
    result = read(HI, finish(), chunk(usage=counts), wire.DONE)
    assert (result.usage, result.usage_final, result.text) == (counts, True, "ok")


# Text, refusals, reasoning and the role.


def test_the_role_is_said_once() -> None:
    frames = [delta(role="", content="a"), *[delta(role="assistant", content="b")] * 2]
    assert message(*frames, END)["role"] == "assistant"
    assert message(*frames, delta(role="tool"), delta(role=None), END)["role"] == "assistant"
    assert message(text("a"), END)["role"] is None


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_has_two_spellings(name: str) -> None:
    def piece(value: str | None) -> bytes:
        return chunk(choice({name: value, "content": None}))

    result = read(role(), piece(""), piece("h"), piece(None), piece("m"), text("a"), END)
    assert (result.reasoning, result.text) == ("hm", "a")
    assert result.accumulator.reasoning_length == 2
    assert result.accumulator.text_length == 1
    assert message(role(), piece("h"), piece("m"), END)[name] == "hm"


def test_reasoning_in_both_spellings_counts_once() -> None:
    accumulator = answer(role(), delta(reasoning="hm", reasoning_content="hm"), END)
    assert (accumulator.reasoning, accumulator.reasoning_length) == ("hm", 2)


def test_a_spelling_that_stays_empty_does_not_hide_the_other_one() -> None:
    accumulator = answer(role(), delta(reasoning_content="", reasoning="hm"), END)
    assert (accumulator.reasoning, accumulator.reasoning_length) == ("hm", 2)


def test_reasoning_that_comes_in_details_alone() -> None:
    details = [{"index": 1, "text": "b"}, {"index": 0, "summary": "a"}, {"index": 2, "data": "x"}, "odd"]
    accumulator = answer(role(), delta(reasoning_content="", reasoning_details=details), END)
    assert (accumulator.reasoning, accumulator.reasoning_length) == ("ab", 2)
    named = answer(role(), delta(reasoning="n", reasoning_details=details), END)
    assert (named.reasoning, named.reasoning_length) == ("n", 1)
    assert answer(role(), delta(reasoning_details="none"), END).reasoning == ""


def test_refusals_are_text_of_another_kind() -> None:
    accumulator = answer(
        delta(role="assistant", refusal=None), delta(refusal="I "), delta(refusal="won't"), END
    )
    assert (accumulator.refusal, accumulator.text, accumulator.text_length) == ("I won't", "", 7)
    assert accumulator.snapshot()["choices"][0]["message"]["refusal"] == "I won't"
    assert accumulator.snapshot()["choices"][0]["message"]["content"] is None


def test_content_that_comes_in_parts() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "h"}]}
    more = {"type": "thinking", "thinking": "m"}
    frames = [
        role(),
        delta(content=[thinking]),
        delta(content=[more, {"type": "text", "text": "1"}]),
        delta(content=[{"type": "reference", "ids": [1]}, "odd"]),
        text("44"),
    ]
    assert message(*frames, END)["content"] == "144"
    assert message(*frames, END)["reasoning_content"] == "hm"
    assert read(*frames, END).reasoning == "hm"


def test_tc14_equal_pieces_are_both_text() -> None:
    assert read(role(), *map(text, ["ab", "ab", "\n", "\n"]), END).text == "abab\n\n"


def test_en05_half_a_character_stays_what_it_is() -> None:
    result = read(role(), text("x\ud800y"), END)
    assert result.text == "x\ud800y"
    assert json.loads(json.dumps(result.message))["choices"][0]["message"]["content"] == "x\ud800y"


def test_en06_a_character_that_was_cut_in_two() -> None:
    result = read(role(), text("\ud83d"), text("\ude00!"), END)
    assert (result.text, result.violations) == ("😀!", ())


def test_po17_choices_that_are_null() -> None:
    null = event({**wire.HEAD, "choices": None, "base_resp": {"status_code": 0}})
    result = read(role(), null, text("ok"), END)
    assert result.text == "ok"
    assert result.message is not None
    assert result.message["base_resp"] == {"status_code": 0}


def test_po19_deltas_that_are_missing() -> None:
    filters = {"index": 0, "finish_reason": None, "content_filter_offsets": {"check_offset": 1}}
    frames = [HI, chunk(filters, id="", object=""), chunk(choice(None, "stop")), wire.DONE]
    assert choice_of(*frames)["content_filter_offsets"] == {"check_offset": 1}
    assert (read(*frames).text, read(*frames).finish_reason) == ("ok", "stop")


def test_po20_text_and_finish_reason_in_one_chunk() -> None:
    result = read(role(), text("Hel"), finish(content="lo"), wire.DONE)
    assert (result.text, result.finish_reason) == ("Hello", "stop")


def test_po22_text_behind_the_finish_reason() -> None:
    result = read(role(), text("Hel"), finish(), text("lo"), wire.USAGE, wire.DONE)
    assert (result.text, result.finish_reason, result.usage) == ("Hello", "stop", COUNTS)


def test_po25_an_end_without_a_finish_reason() -> None:
    result = read(HI, wire.DONE)
    assert (result.text, result.finish_reason, result.outcome) == ("ok", None, Outcome.COMPLETED)
    assert choice_of(HI, wire.DONE)["finish_reason"] is None


def test_fr25_the_last_chunk_lacks_its_blank_line() -> None:
    result = read(HI, finish().rstrip())
    assert (result.outcome, result.text) == (Outcome.COMPLETED_NO_DONE, "ok")
    assert result.finish_reason == "stop"


def test_the_last_finish_reason_counts() -> None:
    frames = [HI, finish(), finish("content_filter"), chunk(choice({}, "")), wire.DONE]
    assert read(*frames).finish_reason == "content_filter"


# Tool calls.


def test_tc01_calls_without_an_index() -> None:
    pieces = [call(None, '{"x":', "call_a", "f"), call(None, "1}"), call(None, "{}", "call_b", "g")]
    result = read(role(), *map(calls, pieces), TOOLS)
    assert made(role(), *map(calls, pieces), TOOLS) == [
        ("call_a", "f", '{"x":1}'),
        ("call_b", "g", "{}"),
    ]
    assert [made.index for made in result.tool_calls] == [None, None]


def test_tc02_all_calls_have_index_0() -> None:
    pieces = [call(0, '{"p":"a"}', "call_a", "f"), call(0, '{"p":"b"}', "call_b", "f")]
    frames = [role(), *map(calls, pieces), calls(call(0, " ")), calls(call(0, " ", "call_a")), TOOLS]
    assert made(*frames) == [("call_a", "f", '{"p":"a"} '), ("call_b", "f", '{"p":"b"} ')]
    assert [made.index for made in read(*frames).tool_calls] == [0, 0]


def test_tc04_nulls_are_nothing() -> None:
    nothing = {"index": 0, "id": None, "type": None, "function": {"name": None, "arguments": "{}"}}
    frames = [
        role(),
        calls(call(0, "", "call_a", "calc")),
        delta(role=None, content="", tool_calls=[nothing]),
        calls({"index": 0, "function": {"arguments": None}}, {"index": 0, "function": None}),
        finish("tool_calls", tool_calls=None),
        wire.DONE,
    ]
    assert made(*frames) == [("call_a", "calc", "{}")]


def test_tc05_the_name_comes_late_and_an_id_never() -> None:
    frames = [
        role(),
        calls(call(0, '{"a":', "call_a")),
        calls(call(0, "1}", None, "f")),
        calls(call(1, "{}", None, "g")),
        TOOLS,
    ]
    assert made(*frames) == [("call_a", "f", '{"a":1}'), (None, "g", "{}")]
    assert [made["id"] for made in message(*frames)["tool_calls"]] == ["call_a", None]


def test_ids_and_names_are_said_once() -> None:
    # Alibaba repeats them empty, others repeat them as they are.
    pieces = [
        call(0, "{", "a", "f"),
        call(0, "}", "a", "f"),
        call(0, " ", "", ""),
        call(0, " ", "a", "g"),
    ]
    assert made(role(), *map(calls, pieces), TOOLS) == [("a", "f", "{}  ")]


def test_tc07_the_first_index_is_1() -> None:
    frames = [HI, calls(call(1, "", "call_a", "f")), calls(call(1, "{}")), TOOLS]
    assert made(*frames) == [("call_a", "f", "{}")]
    assert message(*frames)["tool_calls"][0]["index"] == 1


def test_tc08_one_index_twice_in_a_chunk() -> None:
    pieces = calls(call(0, '{"a"', "call_a", "f"), call(0, ":1"))
    assert made(role(), pieces, calls(call(0, "}")), TOOLS) == [("call_a", "f", '{"a":1}')]


def test_tc10_arguments_that_are_an_object() -> None:
    piece = {**call(0, "", "call_a"), "function": {"name": "f", "arguments": {"x": 1}}}
    frames = [role(), calls(piece), TOOLS]
    assert made(*frames) == [("call_a", "f", '{"x":1}')]
    assert inputs(*frames) == [(True, {"x": 1})]


def test_md05_indexes_of_tools_beyond_all_bounds() -> None:
    pieces = [
        {**call(0, "{}", f"call_{name}", name), "index": index}
        for name, index in (("f", 2_000_000_000), ("g", -1), ("h", True), ("i", "7"))
    ]
    result = read(role(), *map(calls, pieces), TOOLS)
    assert [made.name for made in result.tool_calls] == ["f", "g", "h", "i"]
    assert [made.index for made in result.tool_calls] == [2_000_000_000, -1, None, None]
    assert [made.input for made in result.tool_calls] == [{}] * 4
    assert len(json.dumps(result.message)) < 1_000


def test_calls_that_take_turns() -> None:
    frames = [role(), calls(call(0, '{"a"', "a", "f"), call(1, '{"b"', "b", "g"))]
    assert inputs(*frames) == [(False, None), (False, None)]
    frames += [calls(call(0, ":1}")), calls(call(1, ":2"))]
    assert inputs(*frames) == [(True, {"a": 1}), (False, None)]
    frames += [calls(call(1, "}")), TOOLS]
    assert inputs(*frames) == [(True, {"a": 1}), (True, {"b": 2})]
    assert answer(*frames).arguments_length == 14


def test_a_call_that_goes_on_is_not_whole() -> None:
    head = [role(), calls(call(0, "{}", "a", "f")), calls(call(1, "{}", "b", "g"))]
    assert inputs(*head) == [(True, {}), (False, None)]
    assert inputs(*head, calls(call(0, " "))) == [(False, None), (True, {})]


def test_the_index_in_use_belongs_to_the_latest_call_that_had_it() -> None:
    pieces = [call(0, "{", "a", "f"), call(0, "[", "b", "g"), call(0, "]"), call(0, "}", "a")]
    pieces.append(call(0, " "))
    assert made(role(), *map(calls, pieces), TOOLS) == [("a", "f", "{} "), ("b", "g", "[]")]


def test_custom_tools_have_text() -> None:
    pieces: list[Any] = [
        {"index": 0, "id": "a", "type": "custom", "custom": {"name": "sh", "input": ""}},
        {"index": 0, "custom": {"input": "l", "format": "text"}},
        {"index": 0, "custom": {"input": "s"}},
    ]
    frames = [role(), *map(calls, pieces), TOOLS]
    (found,) = read(*frames).tool_calls
    assert (found.type, found.name, found.complete, found.input) == ("custom", "sh", True, "ls")
    assert message(*frames)["tool_calls"] == [
        {
            "index": 0,
            "id": "a",
            "type": "custom",
            "custom": {"name": "sh", "input": "ls", "format": "text"},
        }
    ]


def test_the_type_of_a_call_is_seen_where_it_is_not_said() -> None:
    pieces: list[Any] = [
        {"index": 0, "id": "a", "custom": {"name": "sh", "input": "ls"}},
        {"index": 1, "id": "b", "type": None, "function": {"name": "f"}},
        {"index": 2, "id": "c", "type": ["odd"], "function": {"name": "f"}},
        {"index": 3, "id": "d", "type": "odd", "function": {"name": "f", "arguments": "{}"}},
        {"index": 3, "type": "function"},
    ]
    frames = [role(), *map(calls, pieces), TOOLS]
    types = ["custom", "function", "function", "odd"]
    assert [made.type for made in read(*frames).tool_calls] == types
    assert [made["type"] for made in message(*frames)["tool_calls"]] == types


def test_what_comes_with_a_call_stays() -> None:
    signature = {"google": {"thought_signature": "c2ln"}}
    pieces: list[Any] = [
        {**call(0, "{", "a", "f"), "extra_content": {"google": {"thought_signature": "x"}}},
        {"index": 0, "function": {"arguments": "}", "strict": True}},
        {"index": 0, "extra_content": signature},
    ]
    assert message(role(), *map(calls, pieces), TOOLS)["tool_calls"] == [
        {
            "index": 0,
            "id": "a",
            "type": "function",
            "function": {"name": "f", "arguments": "{}", "strict": True},
            "extra_content": signature,
        }
    ]


def test_legacy_function_calls() -> None:
    pieces: list[Any] = [
        {"name": "f", "arguments": ""},
        {"name": "f", "arguments": '{"a"'},
        {"arguments": ":1}"},
    ]
    frames = [role(), *(delta(function_call=piece) for piece in pieces), finish("function_call")]
    assert message(*frames)["function_call"] == {"name": "f", "arguments": '{"a":1}'}
    assert answer(*frames).output_started
    assert read(*frames).tool_calls == ()


# When a call is whole.

A, B = calls(call(0, "{}", "a", "f")), calls(call(1, "{}", "b", "g"))
NO_A, NO_B = calls(call(0, "", "a", "f")), calls(call(1, "", "b", "g"))


@pytest.mark.parametrize("reason", ["stop", "tool_calls", "function_call", "a new one"])
def test_a_finish_reason_closes_the_call(reason: str) -> None:
    assert inputs(role(), A, finish(reason)) == [(True, {})]


@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_a_call_in_which_the_model_was_stopped_is_not_whole(reason: str) -> None:
    frames = [role(), A, B, finish(reason), wire.DONE]
    assert inputs(*frames) == [(True, {}), (False, None)]
    # The text of what came of it is there.
    assert made(*frames) == [("a", "f", "{}"), ("b", "g", "{}")]


def test_a_call_is_not_whole_before_a_filter_that_comes_late() -> None:
    assert inputs(role(), A, finish("tool_calls"), finish("content_filter")) == [(False, None)]


def test_a_call_in_an_answer_that_failed_is_not_whole() -> None:
    failed = chunk(choice({}, "error"), error={"code": 502, "message": "m"})
    for frames in ([role(), A, failed], [role(), A, wire.ERROR]):
        assert read(*frames).outcome is Outcome.FAILED
        assert inputs(*frames) == [(False, None)]


def test_a_call_that_was_cut_by_the_end_of_the_input_is_not_whole() -> None:
    result = read(role(), A)
    assert result.outcome is Outcome.TRUNCATED
    assert [(made.complete, made.input) for made in result.tool_calls] == [(False, None)]
    # Nor is it with the end mark alone: nobody said how it ended.
    assert inputs(role(), A, wire.DONE) == [(False, None)]


def test_no_arguments_are_an_empty_object_once_the_model_stopped_by_itself() -> None:
    assert inputs(role(), NO_A) == [(False, None)]
    assert inputs(role(), NO_A, finish("tool_calls")) == [(True, {})]
    assert inputs(role(), NO_A, NO_B, finish("tool_calls")) == [(True, {}), (True, {})]


def test_calls_that_are_announced_at_once_have_no_arguments_yet() -> None:
    frames = [role(), NO_A, NO_B]
    assert inputs(*frames) == [(False, None), (False, None)]
    # The model was stopped before it came to the arguments of either.
    assert inputs(*frames, finish("length")) == [(False, None), (False, None)]
    frames += [calls(call(0, '{"x":1}')), calls(call(1, '{"y"'))]
    assert inputs(*frames, finish("length")) == [(True, {"x": 1}), (False, None)]


def test_a_call_without_arguments_stays_whole_when_another_goes_on_behind_the_finish() -> None:
    frames = [role(), NO_A, NO_B, finish("tool_calls"), calls(call(0, "[")), calls(call(1, " "))]
    assert inputs(*frames) == [(False, None), (False, None)]
    assert inputs(*frames[:5]) == [(False, None), (True, {})]
    assert inputs(*frames, finish("tool_calls")) == [(False, None), (True, {})]


@pytest.mark.parametrize("arguments", ['{"a":1', '{"a":1}}', "{'a':1}", "nil", '{"a":NaN}', '"'])
def test_arguments_that_are_no_json_are_never_repaired(arguments: str) -> None:
    frames = [role(), calls(call(0, arguments, "a", "f")), TOOLS]
    assert inputs(*frames) == [(False, None)]
    assert made(*frames) == [("a", "f", arguments)]


def test_pieces_behind_the_finish_reason() -> None:
    head = [role(), calls(call(0, '{"a":', "a", "f")), finish("tool_calls")]
    assert inputs(*head) == [(False, None)]
    assert inputs(*head, calls(call(0, "1}")), wire.DONE) == [(True, {"a": 1})]
    # Of another call: nobody said that it is whole, before the next finish reason does.
    assert inputs(*head, B, wire.DONE) == [(False, None), (False, None)]
    assert inputs(*head, B, finish("tool_calls"), wire.DONE) == [(False, None), (True, {})]


def test_arguments_can_be_read_while_they_arrive() -> None:
    (found,) = read(role(), calls(call(0, '{"a":[1,2', "a", "f"))).tool_calls
    assert found.partial_input.value == {"a": [1]}
    assert (found.complete, found.input) == (False, None)


def test_the_input_of_a_call_is_a_copy() -> None:
    (found,) = read(role(), calls(call(0, '{"a":[]}', "a", "f")), TOOLS).tool_calls
    found.input["a"].append(1)
    assert found.input == {"a": []}


# What else a delta has.


def test_sound_comes_in_pieces() -> None:
    frames = [
        delta(role="assistant", audio={"id": "audio_1", "transcript": "Hel"}),
        delta(audio={"transcript": "lo", "data": "AA"}),
        delta(audio={"id": "audio_1", "data": "BB", "expires_at": 5}),
        delta(audio={"expires_at": 7}),
    ]
    heard = {"id": "audio_1", "transcript": "Hello", "data": "AABB", "expires_at": 7}
    assert message(*frames, wire.DONE)["audio"] == heard
    assert answer(*frames).choices[0].finished
    assert not answer(*frames[:2]).choices[0].finished


def test_annotations_are_put_behind_each_other() -> None:
    one: Any = {"type": "url_citation", "url_citation": {"url": "u", "title": "t"}}
    two: Any = {"type": "url_citation", "url_citation": {"url": "v", "title": "t"}}
    frames = [role(), delta(annotations=[one]), delta(annotations=None), delta(annotations=[one, two])]
    assert message(*frames, END)["annotations"] == [one, one, two]


def test_details_of_reasoning_belong_together_by_index_and_type() -> None:
    summary = {"type": "reasoning.summary", "index": 0, "format": "openai", "id": "rs"}
    entries: list[Any] = [
        {"type": "reasoning.text", "index": 1, "text": "deep", "signature": None},
        {**summary, "summary": "Fir"},
        {**summary, "summary": "st"},
        {"type": "reasoning.encrypted", "index": 0, "data": "ab"},
        {"type": "reasoning.encrypted", "index": 0, "data": "cd"},
        {"type": "reasoning.text", "index": 1, "text": "er", "signature": "s"},
    ]
    chunks = [delta(reasoning_details=[entry]) for entry in entries]
    assert message(role(), *chunks, END)["reasoning_details"] == [
        {**summary, "summary": "First"},
        {"type": "reasoning.encrypted", "index": 0, "data": "abcd"},
        {"type": "reasoning.text", "index": 1, "text": "deeper", "signature": "s"},
    ]


def test_an_entry_without_an_index_is_a_new_one() -> None:
    entries: list[Any] = [{"index": 1, "text": "a"}, {"text": "b"}, {"text": "c"}, {"index": True}, "d"]
    chunks = [delta(parts=[entry]) for entry in entries]
    assert message(role(), *chunks, END)["parts"] == entries


def test_unknown_members_go_by_their_type() -> None:
    pieces: list[Any] = [
        {"signature": "ab", "n": 1, "ok": True, "on": None, "meta": {"k": "v", "deep": {"s": "x"}}},
        {"signature": "cd", "n": 2.5, "ok": False, "on": 1, "meta": {"k": "w!", "deep": {"t": 1}}},
        {"signature": None, "n": None, "ok": None, "meta": None, "channel": "analysis", "no": None},
        {"channel": "analysis", "meta": {"text": "a", "k": None}},
        {"channel": "final", "meta": {"text": "b", "name": "n"}, "list": [1, None, [2]]},
        {"meta": {"name": "m"}, "list": ["s"]},
    ]
    found = message(role(), *(chunk(choice(piece)) for piece in pieces), END)
    assert {name: found[name] for name in ("signature", "n", "ok", "on", "channel", "no", "list")} == {
        "signature": "abcd",
        "n": 2.5,
        "ok": False,
        "on": 1,
        "channel": "analysis",
        "no": None,
        "list": [1, None, [2], "s"],
    }
    assert found["meta"] == {"k": "w!", "deep": {"s": "x", "t": 1}, "text": "ab", "name": "n"}


def test_a_member_that_changes_its_type_is_the_last() -> None:
    values: list[Any] = [1, "a", {"k": 1}, [1], {"k": 2}, True]
    for first, last in itertools.permutations(values, 2):
        found = message(role(), delta(odd=first), delta(odd=last), END)["odd"]
        assert found == ({"k": last["k"]} if isinstance(last, dict) else last)


def test_logprobs_are_put_behind_each_other() -> None:
    one, two = ({"token": token, "logprob": -1, "bytes": [1]} for token in "ab")
    said: list[Any] = [
        {"content": None, "refusal": None, "model": "l"},
        {"content": [one], "refusal": None},
        None,
        {"content": [two, one], "refusal": [two]},
        {"content": None, "model": "m"},
    ]
    chunks = [with_choice({"content": "a"}, logprobs=entry) for entry in said]
    assert choice_of(role(), *chunks, END)["logprobs"] == {
        "content": [one, two, one],
        "refusal": [two],
        "model": "l",
    }
    assert choice_of(role(), with_choice(logprobs=[1]), END)["logprobs"] is None


def test_members_of_vendors_in_a_choice() -> None:
    chunks = [
        with_choice(content_filter_results={}, native_finish_reason=None, token_ids=None, text="t"),
        with_choice({"content": "a"}, content_filter_results={"hate": {"filtered": True}}),
        with_choice({"content": "b"}, content_filter_results={}, token_ids=[1], message={}),
        with_choice({}, "stop", native_finish_reason="STOP", token_ids=[2, 3], matched_stop=7),
        with_choice(native_finish_reason="", matched_stop=0, token_ids=None),
    ]
    found = choice_of(role(), *chunks, wire.DONE)
    assert found.pop("message")["content"] == "ab"
    assert found == {
        "index": 0,
        "finish_reason": "stop",
        "logprobs": None,
        "content_filter_results": {"hate": {"filtered": True}},
        "native_finish_reason": "STOP",
        "matched_stop": 7,
        "token_ids": [1, 2, 3],
    }


def test_fc05_members_of_vendors() -> None:
    odd = {
        **choice({"content": "a", "reasoning_content": "r1"}),
        "message": {"role": "assistant", "content": "a"},
        "native_finish_reason": None,
    }
    result = read(role(), chunk(odd, id="other-id", provider="P", citations=["u"]), END)
    assert (result.text, result.reasoning) == ("a", "r1")
    assert result.message is not None
    assert (result.message["id"], result.message["provider"]) == ("chatcmpl-1", "P")
    assert result.message["choices"][0]["message"]["content"] == "a"


def test_fc03_an_extension_of_a_vendor() -> None:
    result = read(role(), event({"tool": "web_search"}, "tool.progress"), text("ok"), END)
    assert result.text == "ok"
    assert "tool" not in json.dumps([*(result.message or {})])


def test_me08_one_frame_that_is_no_json() -> None:
    broken = b'data: {"choices":[{"index":0,"delta":{"content":"LOST\n\n'
    result = read(role(), text("a"), broken, text("b"), END)
    assert (result.text, result.outcome) == ("ab", Outcome.COMPLETED)


# Several choices.


def test_po26_several_choices() -> None:
    accumulator = answer(
        *[role(1), role(0), text("A"), text("B", 1), finish(index=1), text("a"), finish("length")],
        wire.DONE,
    )
    assert [*accumulator.choices] == [0, 1]
    assert [(it.text, it.finish_reason) for it in accumulator.choices.values()] == [
        ("Aa", "length"),
        ("B", "stop"),
    ]
    assert [it["index"] for it in accumulator.snapshot()["choices"]] == [0, 1]
    assert (accumulator.text, accumulator.finish_reason) == ("Aa", "length")
    assert accumulator.text_length == 3


def test_everything_of_the_first_choice_and_the_lengths_of_all() -> None:
    first = {"content": "a", "refusal": "no", "reasoning": "r", "tool_calls": [call(0, "{}", "a", "f")]}
    other = {"content": "bb", "reasoning": "rr", "tool_calls": [call(0, "[[]]", "b", "g")]}
    accumulator = answer(chunk(choice(other, index=1), choice(first)), finish("tool_calls", 1), TOOLS)
    assert (accumulator.text, accumulator.refusal, accumulator.reasoning) == ("a", "no", "r")
    assert [made.id for made in accumulator.tool_calls] == ["a"]
    lengths = (
        accumulator.text_length,
        accumulator.reasoning_length,
        accumulator.arguments_length,
    )
    assert lengths == (5, 3, 6)
    second = accumulator.choices[1]
    assert (second.text, second.refusal, second.reasoning) == ("bb", "", "rr")
    assert [(made.id, made.input) for made in second.tool_calls] == [("b", [[]])]


def test_a_choice_with_a_high_index_costs_no_more_than_another() -> None:
    accumulator = answer(role(65_535), text("z", 65_535), finish(index=65_535), wire.DONE)
    assert [*accumulator.choices] == [65_535]
    assert accumulator.text == "z"
    assert len(accumulator.snapshot()["choices"]) == 1


def test_choices_cannot_be_put_in_from_outside_and_go_on_growing() -> None:
    accumulator = CHAT.accumulator()
    accumulator.apply(ChatCompletionChunk(choices=[{"index": 0, "delta": {"content": "a"}}]))
    choices = accumulator.choices
    assert isinstance(choices, dict)
    choices[7] = ChoiceSoFar(7)
    accumulator.apply(ChatCompletionChunk(choices=[{"delta": {"content": "b"}}]))
    assert [*accumulator.choices] == [0]
    assert choices[0].text == "ab"


# Whether anything has come.

NOTHING = [
    {"role": "assistant", "content": "", "refusal": None},
    {"audio": None, "function_call": None, "tool_calls": None, "reasoning": ""},
    {"tool_calls": [], "reasoning_details": [], "reasoning_content": None},
]
SOMETHING: list[dict[str, Any]] = [
    {"content": "a"},
    {"refusal": "a"},
    {"reasoning": "a"},
    {"reasoning_content": "a"},
    {"reasoning_details": [{"text": "a"}]},
    {"tool_calls": [call(0, "", "a", "f")]},
    {"function_call": {"name": "f"}},
    {"audio": {"id": "a"}},
]


@pytest.mark.parametrize("piece", NOTHING, ids=str)
def test_nothing_of_the_answer_has_come(piece: Any) -> None:
    assert not answer(chunk(choice(piece)), wire.USAGE).output_started


@pytest.mark.parametrize("piece", SOMETHING, ids=str)
def test_something_of_the_answer_has_come(piece: Any) -> None:
    assert answer(role(), chunk(choice(piece, index=1))).output_started


# Errors and ends.


def test_me03_an_error_beside_empty_choices() -> None:
    error = {"code": 502, "message": "Provider disconnected"}
    result = read(role(), text("par"), chunk(id="gen-1", error=error), wire.DONE)
    assert (result.text, result.outcome) == ("par", Outcome.FAILED)
    assert isinstance(result.error, ErrorInfo)
    assert (result.error.code, result.error.message) == (502, "Provider disconnected")


def test_me05_an_error_before_anything() -> None:
    result = read(wire.ERROR, wire.DONE)
    assert (result.outcome, result.message, result.text) == (Outcome.FAILED, None, "")
    assert not result.accumulator.output_started
    assert result.error is not None
    assert result.error.message == "m"


def test_an_error_with_the_last_words_and_counts() -> None:
    error = {"code": 502, "message": "m"}
    last = chunk(choice({"content": "t"}, "error"), usage=COUNTS, error=error)
    result = read(role(), text("par"), last, wire.DONE)
    assert (result.text, result.usage, result.finish_reason) == ("part", COUNTS, "error")
    assert result.outcome is Outcome.FAILED
    broken = event({**wire.HEAD, "choices": [1], "usage": COUNTS, "error": error})
    assert (read(HI, broken).text, read(HI, broken).usage) == ("ok", None)


def test_the_outcome_is_known_with_the_end_mark() -> None:
    accumulator = CHAT.accumulator()
    _, events = wire.receive(wire.ANSWER)
    outcomes = []
    for received in events:
        accumulator.apply(received)
        outcomes.append(accumulator.outcome)
    # The end mark, and the end of the input behind it.
    assert outcomes == [*[Outcome.OPEN] * (len(events) - 2), *[Outcome.COMPLETED] * 2]
    assert accumulator.usage_final


def test_nothing_has_come() -> None:
    accumulator = CHAT.accumulator()
    assert accumulator.snapshot() == {}
    assert (accumulator.text, accumulator.reasoning, accumulator.refusal) == ("", "", "")
    assert (accumulator.tool_calls, accumulator.choices) == ((), {})
    assert (accumulator.finish_reason, accumulator.usage, accumulator.error) == (None, None, None)
    assert (accumulator.text_length, accumulator.arguments_length) == (0, 0)
    assert not accumulator.output_started
    assert not accumulator.usage_final
    assert read(b": hello\n\n").message is None


# The whole object, at every moment.

TOKEN: dict[str, Any] = {"token": "a", "logprob": -1.5, "bytes": [97], "top_logprobs": []}
CLEAN: dict[str, list[bytes]] = {
    "text": [role(), text("Hel"), text("lo"), finish()],
    "text and usage": [role(), text("你好"), finish(), wire.USAGE],
    "usage with the finish reason": [HI, WITH_FINISH],
    "parallel calls": [
        role(),
        *[calls(call(0, "", "a", "f")), calls(call(0, '{"x":')), calls(call(0, "1}"))],
        *[calls(call(1, "", "b", "g")), calls(call(1, "{}")), finish("tool_calls")],
    ],
    "calls that take turns": [
        role(),
        calls(call(0, "", "a", "f"), call(1, "", "b", "g")),
        *[calls(call(0, '{"x":'), call(1, '{"y":')), calls(call(1, "2}"), call(0, "1}"))],
        finish("tool_calls"),
    ],
    "text and a call": [HI, calls(call(0, "{}", "a", "f")), finish("tool_calls"), wire.USAGE],
    "two choices": [
        *[role(), role(1), text("a", 1), text("b"), text("c", 1)],
        *[finish(index=1), finish()],
    ],
    "a refusal": [delta(role="assistant", refusal=""), delta(refusal="I "), delta(refusal="won't"), END],
    "logprobs": [
        with_choice({"role": "assistant", "content": ""}, logprobs=None),
        with_choice({"content": "a"}, logprobs={"content": [TOKEN], "refusal": None}),
        with_choice({"content": "b"}, logprobs={"content": [TOKEN, TOKEN], "refusal": None}),
        with_choice({"refusal": "c"}, logprobs={"content": None, "refusal": [TOKEN]}),
        finish(),
    ],
    "reasoning": [role(), delta(reasoning_content="h"), delta(reasoning_content="m"), text("a"), END],
    "a legacy function": [
        delta(role="assistant", content=None, function_call={"name": "f", "arguments": ""}),
        *[delta(function_call={"arguments": '{"a":'}), delta(function_call={"arguments": "1}"})],
        finish("function_call"),
    ],
    "sound": [
        delta(role="assistant", audio={"id": "audio_1", "transcript": "Hel"}),
        *[delta(audio={"transcript": "lo"}), delta(audio={"data": "AA"}), delta(audio={"data": "BB"})],
        *[delta(audio={"expires_at": 7}), wire.USAGE],
    ],
    "moderation": [HI, finish(), chunk(moderation={"input": {"type": "moderation_results"}})],
    "the envelope": [
        chunk(
            choice({"role": "assistant", "content": "a"}), system_fingerprint="fp", service_tier="flex"
        ),
        chunk(choice({}, "stop"), system_fingerprint="fp", service_tier="flex"),
    ],
}


def without_nulls(value: Any) -> Any:
    """What the two objects have to agree in: null is absent, and the SDK's parsed values are its own."""
    if isinstance(value, dict):
        members = {name: without_nulls(member) for name, member in value.items()}
        own = ("parsed", "parsed_arguments")
        return {name: it for name, it in members.items() if it is not None and name not in own}
    return [*map(without_nulls, value)] if isinstance(value, list) else value


def chunks_of(frames: Iterable[bytes]) -> list[ChatCompletionChunk]:
    _, events = wire.receive(b"".join(frames))
    return [received for received in events if isinstance(received, ChatCompletionChunk)]


@pytest.mark.parametrize("name", CLEAN)
def test_is_what_the_official_sdk_accumulates(name: str) -> None:
    state = ChatCompletionStreamState(input_tools=openai.omit, response_format=openai.omit)
    for received in chunks_of(CLEAN[name]):
        sdk_chunk: Any = construct_type(type_=SDKChunk, value=copy.deepcopy(received.payload))
        state.handle_chunk(sdk_chunk)
    snapshot = answer(*CLEAN[name], wire.DONE).snapshot()
    assert without_nulls(snapshot) == without_nulls(state.get_final_completion().to_dict())


DEVIANT = [
    event({"id": "", "object": "", "choices": [], "prompt_filter_results": [{"prompt_index": 0}]}),
    with_choice(
        {"role": "assistant", "meta": {"k": ["v"]}}, content_filter_results={"hate": {"n": [1]}}
    ),
    with_choice(
        {"content": [{"type": "text", "text": "a"}]}, token_ids=[1], logprobs={"content": [TOKEN]}
    ),
    delta(
        reasoning_details=[{"index": 0, "type": "reasoning.text", "text": "h"}], annotations=[{"a": {}}]
    ),
    with_choice({"audio": {"id": "a", "data": "b"}}, token_ids=[2], logprobs={"content": [TOKEN]}),
    calls({**call(None, "{}", "a", "f"), "extra_content": {"google": {"s": "x"}}}),
    calls(call(None, "[]", "b", "g")),
    chunk(choice({}, "tool_calls"), usage={**COUNTS, "completion_tokens_details": {"n": 1}}),
]
STREAMS = {**CLEAN, "deviant": DEVIANT}


def spoil(value: Any) -> None:
    """Change everything in a value that can be changed."""
    inner = [*value.values()] if isinstance(value, dict) else value if isinstance(value, list) else []
    for member in inner:
        spoil(member)
    if isinstance(value, dict):
        value.clear()
        value["spoilt"] = True
    elif isinstance(value, list):
        value[:] = ["spoilt"]


@pytest.mark.parametrize("name", STREAMS)
def test_a_snapshot_is_json_of_its_own_at_every_moment(name: str) -> None:
    accumulator = CHAT.accumulator()
    chunks = chunks_of(STREAMS[name])
    payloads = copy.deepcopy([received.payload for received in chunks])
    for received in chunks:
        accumulator.apply(received)
        before = json.dumps(accumulator.snapshot())
        assert json.loads(before) == accumulator.snapshot()
        spoil(accumulator.snapshot())
        spoil(accumulator.usage)
        assert json.dumps(accumulator.snapshot()) == before
    assert [received.payload for received in chunks] == payloads


@pytest.mark.parametrize("name", STREAMS)
def test_a_copy_goes_on_alone(name: str) -> None:
    chunks = chunks_of(STREAMS[name])
    for cut in range(len(chunks)):
        accumulator = CHAT.accumulator()
        for received in chunks[:cut]:
            accumulator.apply(received)
        before = accumulator.snapshot()
        copies = [copy.copy(accumulator), pickle.loads(pickle.dumps(accumulator))]
        for copied in copies:
            for received in chunks[cut:]:
                copied.apply(received)
            assert copied.snapshot() == answer(*STREAMS[name]).snapshot()
        assert accumulator.snapshot() == before


@pytest.mark.parametrize("name", STREAMS)
def test_what_came_before_a_cut_is_a_prefix(name: str) -> None:
    frames = STREAMS[name]
    whole = read(*frames, wire.DONE)
    for cut in range(len(frames)):
        part = read(*frames[:cut])
        assert whole.text.startswith(part.text)
        assert whole.reasoning.startswith(part.reasoning)
        for before, after in zip(part.tool_calls, whole.tool_calls, strict=False):
            assert after.arguments.startswith(before.arguments)
            assert (before.id, before.name) == (after.id, after.name)


@given(st.text(max_size=40), st.lists(st.integers(0, 40), max_size=8))
def test_any_cut_of_a_text_makes_the_same_answer(whole: str, cuts: list[int]) -> None:
    # Cut in UTF-16, as servers in JavaScript and Java do.
    units = whole.encode("utf-16-le", "surrogatepass")
    bounds = [0, *sorted(2 * cut for cut in cuts), len(units)]
    pieces = [
        units[begin:end].decode("utf-16-le", "surrogatepass")
        for begin, end in itertools.pairwise(bounds)
    ]
    frames = [role(), calls(call(0, "", "a", "f"))]
    for piece in pieces:
        details = [{"index": 0, "type": "reasoning.text", "text": piece}]
        frames += [
            delta(content=piece, reasoning=piece, refusal=piece, reasoning_details=details),
            calls(call(0, piece)),
        ]
    found = answer(*frames, END)
    assert (found.text, found.reasoning, found.refusal) == (whole, whole, whole)
    assert found.tool_calls[0].arguments == whole
    snapshot = found.snapshot()["choices"][0]["message"]
    assert snapshot["reasoning_details"][0]["text"] == whole


# Bounds.

SMALL = 200_000


def chunk_of(delta: Any = None, index: Any = 0, **members: Any) -> ChatCompletionChunk:
    """A chunk whose choice has more members."""
    made_choice: Any = {"index": index, "delta": delta or {}, "finish_reason": None, **members}
    return ChatCompletionChunk(choices=[made_choice])


def envelope(**members: Any) -> ChatCompletionChunk:
    return ChatCompletionChunk(payload=members)


LONG = "n" * 5_000
ENDLESS: dict[str, Callable[[int], ChatCompletionChunk]] = {
    "choices": lambda n: chunk_of(index=n),
    "choices that finish": lambda n: chunk_of(index=n, finish_reason=f"{LONG}{n}"),
    "text": lambda n: chunk_of({"content": f"{n:>1000}"}),
    "text of many choices": lambda n: chunk_of({"content": f"{n:>100}"}, index=n % 50),
    "reasoning": lambda n: chunk_of({"reasoning": f"{n:>1000}"}),
    "refusals": lambda n: chunk_of({"refusal": f"{n:>1000}"}),
    "parts": lambda n: chunk_of({"content": [{"type": "text", "text": f"{n:>1000}"}]}),
    "thoughts": lambda n: chunk_of({"content": [{"type": "thinking", "thinking": f"{n:>1000}"}]}),
    "calls": lambda n: chunk_of({"tool_calls": [call(n, "", f"c{n}", "f")]}),
    "calls with long ids": lambda n: chunk_of({"tool_calls": [call(n, "", f"{n}{LONG}", "f")]}),
    "calls with long names": lambda n: chunk_of({"tool_calls": [call(n, "", f"{n}", f"{LONG}{n}")]}),
    "calls with long types": lambda n: chunk_of(
        {"tool_calls": [{"index": n, "id": f"{n}", "type": f"{LONG}{n}"}]}
    ),
    "arguments": lambda n: chunk_of({"tool_calls": [call(0, f"{n:>1000}", "a", "f")]}),
    "arguments as objects": lambda n: chunk_of(
        {"tool_calls": [{"index": 0, "id": "a", "function": {"arguments": {"a": f"{n:>1000}"}}}]}
    ),
    "input": lambda n: chunk_of(
        {"tool_calls": [{"index": 0, "id": "a", "custom": {"input": f"{n:>1000}"}}]}
    ),
    "members of a call": lambda n: chunk_of({"tool_calls": [{"index": 0, "id": "a", f"m{n}": n}]}),
    "members of a function": lambda n: chunk_of(
        {"tool_calls": [{"index": 0, "id": "a", "function": {f"m{n}": None}}]}
    ),
    "annotations": lambda n: chunk_of({"annotations": [{"url": f"{n}"}]}),
    "entries that are null": lambda _: chunk_of({"annotations": [None]}),
    "details": lambda n: chunk_of({"reasoning_details": [{"index": n}]}),
    "types of details": lambda n: chunk_of({"reasoning_details": [{"index": 0, "type": f"{n}"}]}),
    "text of details": lambda n: chunk_of({"reasoning_details": [{"index": 0, "text": f"{n:>1000}"}]}),
    "sound": lambda n: chunk_of({"audio": {"data": f"{n:>1000}"}}),
    "members of a delta": lambda n: chunk_of({f"m{n}": n}),
    "members that are null": lambda n: chunk_of({f"m{n}": None}),
    "members with long names": lambda n: chunk_of({f"{LONG}{n}": None}),
    "members of members": lambda n: chunk_of({"meta": {f"m{n}": True}}),
    "members that grow": lambda n: chunk_of({"meta": {"k": "x" * (n * 100)}}),
    "members of a choice": lambda n: chunk_of(**{f"m{n}": n}),
    "members of a choice that are null": lambda n: chunk_of(**{f"m{n}": None}),
    "members of a choice with long names": lambda n: chunk_of(**{f"{LONG}{n}": n}),
    "members of a choice that grow": lambda n: chunk_of(m=["x"] * 100 * n),
    "tokens": lambda n: chunk_of(token_ids=[n]),
    "logprobs": lambda n: chunk_of(logprobs={"content": [{"token": f"{n}"}]}),
    "logprobs of all kinds": lambda n: chunk_of(logprobs={f"m{n}": []}),
    "logprobs with long names": lambda n: chunk_of(logprobs={f"{LONG}{n}": []}),
    "logprobs that are no lists": lambda n: chunk_of(logprobs={f"m{n}": f"{n}{LONG}"}),
    "members of chunks": lambda n: envelope(**{f"m{n}": n}),
    "members of chunks that are empty": lambda n: envelope(**{f"m{n}": ""}),
    "members of chunks with long names": lambda n: envelope(**{f"{LONG}{n}": 1}),
    "moderation": lambda n: envelope(moderation={"output": ["x"] * 100 * n}),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_whatever_there_is_more_and_more_of_reaches_the_limit(name: str) -> None:
    accumulator = CHAT.accumulator(max_size=SMALL)
    # What is learnt once and for all is not what the answer takes.
    CHAT.accumulator().apply(ENDLESS[name](0))
    tracemalloc.start()
    try:
        with pytest.raises(AnswerTooLarge) as caught:
            [*map(accumulator.apply, map(ENDLESS[name], range(10_000)))]
        held, _peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert caught.value.limit == SMALL
    assert held < 8 * SMALL


def test_an_answer_that_is_too_large_does_not_change_any_more() -> None:
    accumulator = CHAT.accumulator(max_size=10_000)
    accumulator.apply(chunk_of({"content": "x" * 10_000}))
    before = accumulator.snapshot()
    for _ in range(2):
        with pytest.raises(AnswerTooLarge):
            accumulator.apply(chunk_of({"content": "y"}))
    assert accumulator.snapshot() == before
    assert accumulator.text_length == 10_000


def test_a_receiver_raises_where_the_answer_is_too_large() -> None:
    receiver = Receiver(CHAT, accumulate=True, limits=Limits(max_answer_size=5_000))
    receiver.receive_data(role() + text("x" * 1_000) * 10)
    with pytest.raises(AnswerTooLarge) as caught:
        list(receiver)
    assert caught.value.limit == 5_000
    assert isinstance(caught.value.event, ChatCompletionChunk)


def test_without_a_limit_everything_stays() -> None:
    accumulator = CHAT.accumulator(max_size=None)
    for number in range(3_000):
        accumulator.apply(chunk_of({f"m{number}": LONG}))
    assert len(accumulator.snapshot()["choices"][0]["message"]) > 3_000


FILTERED = {name: {"filtered": False, "severity": "safe"} for name in ("hate", "sexual", "violence")}
REPEATED: dict[str, ChatCompletionChunk] = {
    "filters of Azure": chunk_of(content_filter_results=FILTERED),
    "members of a delta": chunk_of({"meta": {"k": "v" * 50, "n": 1, "no": None}, "role": "assistant"}),
    "members of a call": chunk_of(
        {"tool_calls": [{**call(0, "", "a" * 50, "f" * 50), "extra_content": {"s": "x" * 50}}]}
    ),
    "details": chunk_of(
        {"reasoning_details": [{"index": 0, "type": "reasoning.text", "signature": "s" * 50}]}
    ),
    "nulls": chunk_of({"content": None, "reasoning_content": None}, logprobs=None, token_ids=None),
    "logprobs that are no lists": chunk_of(logprobs={"content": None, "model": LONG}),
    "finish reasons": chunk_of(finish_reason="stop" * 10),
    "the envelope": envelope(id="i" * 50, provider="P" * 50, citations=["u"] * 10, empty=[], none=None),
    "moderation": envelope(moderation={"input": FILTERED}),
    "usage": envelope(usage=COUNTS),
}


@pytest.mark.parametrize("name", REPEATED)
def test_what_is_said_again_does_not_add_up(name: str) -> None:
    once, often = (CHAT.accumulator(max_size=20_000) for _ in range(2))
    once.apply(REPEATED[name])
    for _ in range(10_000):
        often.apply(REPEATED[name])
    assert often.snapshot() == once.snapshot()
    # There is as much room as after the first time.
    assert often._room == once._room < DEFAULT_MAX_ANSWER_SIZE


def test_what_is_replaced_by_less_gives_room_back() -> None:
    accumulator = CHAT.accumulator(max_size=20_000)
    for size in (1, 15_000) * 10:
        accumulator.apply(chunk_of({"meta": {"k": "x" * size}}, matched_stop="x" * (15_001 - size)))
    assert len(accumulator.snapshot()["choices"][0]["message"]["meta"]["k"]) == 15_000


# Very many pieces.


def numbered(make: Callable[[str], dict[str, Any]]) -> Iterator[ChatCompletionChunk]:
    return (chunk_of(make(f"{number},")) for number in range(20_000))


NUMBERS = "".join(f"{number}," for number in range(20_000))


@pytest.mark.parametrize("name", ["content", "refusal", "reasoning", "signature"])
def test_very_many_pieces_of_text(name: str) -> None:
    accumulator = CHAT.accumulator()
    for received in numbered(lambda piece: {name: piece}):
        accumulator.apply(received)
    assert accumulator.snapshot()["choices"][0]["message"][name] == NUMBERS


def test_very_many_pieces_of_arguments() -> None:
    accumulator = CHAT.accumulator()
    for received in numbered(lambda piece: {"tool_calls": [call(0, piece, "a", "f")]}):
        accumulator.apply(received)
    assert accumulator.tool_calls[0].arguments == NUMBERS
    assert accumulator.arguments_length == len(NUMBERS)


def test_very_many_pieces_of_details() -> None:
    accumulator = CHAT.accumulator()
    for received in numbered(lambda piece: {"reasoning_details": [{"index": 3, "text": piece}]}):
        accumulator.apply(received)
    assert accumulator.reasoning == NUMBERS
    details = accumulator.snapshot()["choices"][0]["message"]["reasoning_details"]
    assert details == [{"index": 3, "text": NUMBERS}]


def test_pf04_many_small_pieces() -> None:
    result = read(role(), text("x" * 16) * 32_000, END)
    assert result.text == "x" * 512_000
