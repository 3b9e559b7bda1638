"""Chat completions made of chunks: every rule of accumulation, and the public bug reports about it.

The ids are those of the project's collection of cases.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, strategies as st
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk as OpenAIChunk

from sse_machines import CHAT, AnswerTooLarge, Outcome, Result, collect
from sse_machines.chat import Accumulator, ChatCompletionChunk
from tests.chat import wire
from tests.chat.wire import call, calls, choice, chunk, delta, event, finish, role, text

END = finish() + wire.DONE
CALLED = finish("tool_calls") + wire.DONE


def read(stream: bytes) -> Result:
    return collect(stream, CHAT)


def answer(stream: bytes) -> Accumulator:
    result = read(stream).accumulator
    assert isinstance(result, Accumulator)
    return result


def message(stream: bytes, index: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = answer(stream).snapshot()["choices"][index]["message"]
    return found


def made(stream: bytes) -> list[tuple[Any, Any, str]]:
    return [(call.id, call.name, call.arguments) for call in read(stream).tool_calls]


# --- the whole object


def test_an_answer_as_a_chat_completion() -> None:
    assert read(wire.ANSWER).message == {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "system_fingerprint": None,
        "usage": {"prompt_tokens": 14, "completion_tokens": 52, "total_tokens": 66},
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "logprobs": None,
                "message": {
                    "role": "assistant",
                    "content": "你好, world \u2028🌍",
                    "refusal": None,
                    "annotations": None,
                    "audio": None,
                    "function_call": None,
                    "tool_calls": [
                        {
                            "index": 0,
                            "id": "call_1",
                            "type": "function",
                            "function": {"name": "f", "arguments": '{"a":1}'},
                        }
                    ],
                },
            }
        ],
    }


TOKEN_A: dict[str, Any] = {"token": "a", "logprob": -1, "bytes": None, "top_logprobs": []}
TOKEN_B = {**TOKEN_A, "token": "b"}
CLEAN = {
    "text": role() + text("Hel") + text("lo") + finish(),
    "usage": role() + text("a") + finish() + wire.USAGE,
    "calls": role()
    + calls(call(0, "", "a", "f"))
    + calls(call(0, '{"x":'), call(0, "1}"))
    + calls(call(1, "{}", "b", "g"))
    + finish("tool_calls"),
    "two": role(0) + role(1) + text("a", 0) + text("b", 1) + finish("stop", 0) + finish("stop", 1),
    "refusal": delta(role="assistant", refusal="")
    + delta(refusal="I ")
    + delta(refusal="won't")
    + finish(),
    "logprobs": chunk(
        {**choice({"role": "assistant", "content": "a"}), "logprobs": {"content": [TOKEN_A]}}
    )
    + chunk({**choice({"content": "b"}), "logprobs": {"content": [TOKEN_B], "refusal": None}})
    + finish(),
    "reasoning": role()
    + delta(reasoning_content="h")
    + delta(reasoning_content="m")
    + text("a")
    + finish(),
    "function": role()
    + delta(function_call={"name": "f", "arguments": ""})
    + delta(function_call={"arguments": "{}"})
    + finish("function_call"),
    "fingerprint": chunk(choice({"role": "assistant"}), system_fingerprint="fp", service_tier="flex")
    + chunk(choice({"content": "a"}, "stop"), system_fingerprint="fp"),
}


def pruned(value: Any) -> Any:
    if isinstance(value, dict):
        left_out = ("parsed", "parsed_arguments")
        return {k: pruned(v) for k, v in value.items() if v is not None and k not in left_out}
    return [*map(pruned, value)] if isinstance(value, list) else value


@pytest.mark.parametrize("name", CLEAN)
def test_is_what_the_sdk_accumulates(name: str) -> None:
    state = ChatCompletionStreamState()
    accumulator = CHAT.accumulator()
    for received in wire.receive(CLEAN[name] + wire.DONE)[1]:
        accumulator.apply(received)
        if isinstance(received, ChatCompletionChunk):
            state.handle_chunk(OpenAIChunk.model_validate(received.payload))
    final = state.get_final_completion().to_dict()
    assert pruned(accumulator.snapshot()) == pruned(final)


@pytest.mark.parametrize("stream", [*CLEAN.values(), wire.ANSWER])
def test_at_every_moment_a_snapshot_is_json_of_its_own(stream: bytes) -> None:
    accumulator = CHAT.accumulator()
    events = wire.receive(stream + wire.DONE)[1]
    payloads = copy.deepcopy([getattr(event, "payload", None) for event in events])
    assert accumulator.snapshot() == {}
    for received in events:
        accumulator.apply(received)
        before = json.dumps(accumulator.snapshot())
        snapshot = accumulator.snapshot()
        for entry in snapshot["choices"]:
            entry["message"]["content"] = "spoilt"
            for made_call in entry["message"]["tool_calls"] or []:
                made_call["function"].clear()
            (entry["logprobs"] or {}).clear()
        snapshot["choices"].clear()
        assert json.dumps(accumulator.snapshot()) == before
    assert [getattr(event, "payload", None) for event in events] == payloads


# --- the envelope


def test_members_of_the_first_chunk_that_has_something_there() -> None:
    filters = {"id": "", "object": "", "created": 0, "model": "", "choices": []}
    stream = (
        event({**filters, "prompt_filter_results": [{"prompt_index": 0}]})
        + chunk(choice({"role": "assistant"}), created=7, system_fingerprint=None)
        + chunk(choice({"content": "a"}), id="other", created=8, model="n", system_fingerprint="fp")
        + finish(obfuscation="x")
        + wire.DONE
    )
    snapshot = answer(stream).snapshot()
    del snapshot["choices"]
    assert snapshot == {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 7,
        "model": "m",
        "system_fingerprint": "fp",
        "prompt_filter_results": [{"prompt_index": 0}],
        "usage": None,
    }


def test_an_empty_member_stays_where_nothing_better_comes() -> None:
    stream = chunk(choice({"role": "assistant"}), id="", citations=None) + finish(id="") + wire.DONE
    assert answer(chunk(choice({"role": "assistant"}), id="")).snapshot()["id"] == ""
    assert "citations" not in answer(stream).snapshot()


def test_members_of_a_choice() -> None:
    filtered: Any = {"hate": {"filtered": False}}
    stream = (
        chunk({**choice({"role": "assistant"}), "content_filter_results": {}, "obfuscation": "x"})
        + chunk({**choice({"content": "a"}), "content_filter_results": filtered, "token_ids": [1]})
        + chunk(
            {**choice({"content": "b"}), "content_filter_results": {}, "token_ids": [2, 3], "text": "b"}
        )
        + chunk({**choice({}, "stop"), "native_finish_reason": "STOP", "token_ids": None})
    )
    made_choice = answer(stream).snapshot()["choices"][0]
    assert made_choice["content_filter_results"] == filtered
    assert made_choice["token_ids"] == [1, 2, 3]
    assert made_choice["native_finish_reason"] == "STOP"
    assert not {"obfuscation", "text", "delta"} & made_choice.keys()
    assert answer(chunk({**choice({}), "token_ids": None})).snapshot()["choices"][0]["token_ids"] is None


# --- text, reasoning and everything else in a delta


def test_tc14_equal_pieces_are_both_content() -> None:
    stream = role() + text("ab") + text("ab") + text("\n") + text("\n") + END
    assert read(stream).text == "abab\n\n"
    assert answer(stream).text_length == 6


def test_en05_and_en06_surrogates() -> None:
    assert read(role() + text("x\ud800y") + END).text == "x\ud800y"
    assert read(role() + text("\ud83d") + text("\ude00!") + END).text == "😀!"


def test_roles_are_said_once() -> None:
    stream = delta(role="assistant", content="a") + delta(role="assistant", content="b") + END
    assert message(stream)["role"] == "assistant"
    assert message(stream)["content"] == "ab"


def test_null_adds_nothing() -> None:
    stream = role() + delta(content=None, refusal=None, tool_calls=None, role=None) + text("a") + END
    assert message(stream)["content"] == "a"
    assert message(stream)["refusal"] is None
    assert message(delta(role="assistant", content=None) + END)["content"] is None


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_in_either_spelling(name: str) -> None:
    def piece(value: str) -> bytes:
        return chunk(choice({name: value}))

    result = read(role() + piece("h") + piece("m") + text("a") + END)
    assert (result.reasoning, result.text) == ("hm", "a")
    assert result.accumulator.reasoning_length == 2


def test_reasoning_in_two_spellings_counts_once() -> None:
    stream = role() + delta(reasoning="h", reasoning_content="h") + END
    assert answer(stream).reasoning == "h"
    assert answer(stream).reasoning_length == 1


def test_reasoning_details_by_index_and_type() -> None:
    def details(*entries: Any) -> bytes:
        return delta(reasoning_details=list(entries))

    summary = {"type": "reasoning.summary", "index": 0, "format": "v1", "id": "rs"}
    stream = (
        role()
        + details({**summary, "summary": "Fir"}, "odd")
        + details({**summary, "summary": "st"})
        + details({"type": "reasoning.text", "index": 1, "text": "deep"})
        + details({"type": "reasoning.encrypted", "index": 0, "data": "ab"})
        + details({"type": "reasoning.encrypted", "index": 0, "data": "cd"})
        + END
    )
    assert message(stream)["reasoning_details"] == [
        {**summary, "summary": "First"},
        {"type": "reasoning.encrypted", "index": 0, "data": "abcd"},
        "odd",
        {"type": "reasoning.text", "index": 1, "text": "deep"},
    ]
    assert answer(stream).reasoning == "Firstdeep"
    assert answer(stream).reasoning_length == 9
    assert answer(stream).output_started


def test_content_as_a_list_of_parts() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    stream = (
        role() + delta(content=[thinking]) + delta(content=[{"type": "text", "text": "1"}]) + text("44")
    )
    assert message(stream + END)["content"] == "144"
    assert message(stream + END)["reasoning_content"] == "hm"
    assert answer(stream).reasoning == "hm"


def test_refusal() -> None:
    result = read(CLEAN["refusal"] + wire.DONE).accumulator
    assert (result.refusal, result.text, result.text_length) == ("I won't", "", 7)
    assert result.output_started


def test_annotations_without_an_index_are_all_kept() -> None:
    stream = (
        role() + delta(annotations=[{"type": "a"}]) + delta(annotations=[{"type": "a"}, {"type": "b"}])
    )
    assert message(stream + END)["annotations"] == [{"type": "a"}, {"type": "a"}, {"type": "b"}]


def test_sound_comes_in_pieces_and_ends_without_a_finish_reason() -> None:
    stream = (
        delta(role="assistant", audio={"id": "audio_1", "transcript": "Hel"})
        + delta(audio={"transcript": "lo"})
        + delta(audio={"data": "AA"})
        + delta(audio={"id": "audio_1", "data": "BB"})
        + delta(audio={"expires_at": 5})
        + delta(audio={"expires_at": 7})
        + wire.USAGE
        + wire.DONE
    )
    assert message(stream)["audio"] == {
        "id": "audio_1",
        "transcript": "Hello",
        "data": "AABB",
        "expires_at": 7,
    }
    assert answer(stream).output_started
    assert answer(stream).usage_final
    assert not answer(delta(role="assistant", audio=None)).output_started


def test_legacy_function_calls() -> None:
    stream = CLEAN["function"] + wire.DONE
    assert message(stream)["function_call"] == {"name": "f", "arguments": "{}"}
    assert answer(stream).output_started


def test_members_that_nobody_documents() -> None:
    stream = (
        role()
        + delta(
            signature="ab",
            channel="analysis",
            n=1,
            ok=True,
            meta={"k": "v", "deep": {"s": "x"}, "z": None},
        )
        + delta(signature="cd", channel="analysis", n=2, ok=False, meta={"k": "w", "deep": {"t": 1}})
        + delta(meta="text", n=None, numbers=[1, None])
        + END
    )
    made_message = message(stream)
    assert made_message["signature"] == "abcd"
    assert made_message["channel"] == "analysis"
    assert (made_message["n"], made_message["ok"], made_message["numbers"]) == (2, False, [1, None])
    assert made_message["meta"] == "text"
    assert message(stream[: stream.index(delta(meta="text", n=None, numbers=[1, None]))])["meta"] == {
        "k": "w",
        "deep": {"s": "x", "t": 1},
        "z": None,
    }


def test_logprobs_are_extended() -> None:
    stream = CLEAN["logprobs"] + wire.DONE
    logprobs = answer(stream).snapshot()["choices"][0]["logprobs"]
    assert logprobs == {"content": [TOKEN_A, TOKEN_B], "refusal": None}
    odd = chunk({**choice({"role": "assistant"}), "logprobs": [1]})
    assert answer(odd).snapshot()["choices"][0]["logprobs"] is None


# --- choices


def test_po26_choices_in_any_order() -> None:
    stream = role(1) + text("B", 1) + role(0) + text("A", 0) + finish("stop", 1)
    stream += text("a", 0) + finish("length", 0) + wire.DONE
    found = answer(stream)
    assert {index: (it.text, it.finish_reason) for index, it in found.choices.items()} == {
        0: ("Aa", "length"),
        1: ("B", "stop"),
    }
    assert [*found.choices] == [0, 1]
    assert [it["index"] for it in found.snapshot()["choices"]] == [0, 1]
    assert (found.text, found.finish_reason, found.text_length) == ("Aa", "length", 3)
    assert found.choices[1].refusal == found.choices[1].reasoning == ""


def test_nothing_has_started_before_the_first_piece() -> None:
    assert not answer(role()).output_started
    assert answer(role() + text("a")).output_started
    assert answer(role() + calls(call(0, "", "a", "f"))).output_started
    nothing = answer(b": hello\n\n")
    assert (nothing.text, nothing.reasoning, nothing.refusal) == ("", "", "")
    assert (nothing.tool_calls, nothing.finish_reason, nothing.choices) == ((), None, {})


# --- tool calls


def test_tc01_no_index() -> None:
    pieces = [call(None, '{"x":', "call_a", "f"), call(None, "1}"), call(None, "{}", "call_b", "g")]
    stream = role() + b"".join(map(calls, pieces)) + CALLED
    assert made(stream) == [("call_a", "f", '{"x":1}'), ("call_b", "g", "{}")]
    assert [it.index for it in read(stream).tool_calls] == [None, None]
    assert [it.input for it in read(stream).tool_calls] == [{"x": 1}, {}]


def test_tc02_one_index_for_all() -> None:
    stream = role() + calls(call(0, '{"p":1}', "a", "f")) + calls(call(0, '{"p":2}', "b", "f")) + CALLED
    assert made(stream) == [("a", "f", '{"p":1}'), ("b", "f", '{"p":2}')]


def test_tc04_and_tc05_nulls_and_late_names() -> None:
    nulls = {"index": 0, "id": None, "type": None, "function": {"name": None, "arguments": None}}
    stream = role() + calls(call(0, '{"a":', "a")) + calls(nulls) + calls(call(0, "1}", name="f"))
    stream += calls({"index": 0, "function": None}) + delta(tool_calls=None) + CALLED
    assert made(stream) == [("a", "f", '{"a":1}')]


def test_a_delta_that_has_nothing_but_null_for_calls() -> None:
    # The shortcut for repetitions looked into it, and raised a TypeError.
    stream = role() + text("a") + delta(tool_calls=None) + delta(tool_calls=[]) + text("b") + END
    assert (read(stream).text, made(stream), read(stream).violations) == ("ab", [], ())


def test_ids_and_names_are_said_once() -> None:
    stream = role() + calls(call(0, "{", "a", "f")) + calls(call(0, "}", "a", "f")) + CALLED
    assert made(stream) == [("a", "f", "{}")]


@pytest.mark.parametrize("index", [1, 65_535, 2**40])
def test_tc07_and_md05_any_index_is_a_key(index: int) -> None:
    stream = role() + calls(call(index, "{", "a", "f")) + calls(call(index, "}", "a")) + CALLED
    assert made(stream) == [("a", "f", "{}")]
    assert len(json.dumps(read(stream).message)) < 1000


def test_tc08_two_pieces_in_one_chunk() -> None:
    stream = role() + calls(call(0, '{"a"', "a", "f"), call(0, ":1")) + calls(call(0, "}")) + CALLED
    assert made(stream) == [("a", "f", '{"a":1}')]


def test_tc10_arguments_that_are_no_text() -> None:
    piece = {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": {"x": 1}}}
    assert made(role() + calls(piece) + CALLED) == [("a", "f", '{"x":1}')]


def test_interleaved_calls() -> None:
    stream = role() + calls(call(0, '{"a"', "a", "f"), call(1, '{"b"', "b", "g"))
    assert [it.complete for it in read(stream).tool_calls] == [False, False]
    stream += calls(call(0, ":1}")) + calls(call(1, ":2}"))
    # Another call went on, so the first one is whole.
    assert [it.complete for it in read(stream).tool_calls] == [True, False]
    stream += CALLED
    assert made(stream) == [("a", "f", '{"a":1}'), ("b", "g", '{"b":2}')]
    assert [it.input for it in read(stream).tool_calls] == [{"a": 1}, {"b": 2}]
    assert answer(stream).arguments_length == 14


def test_custom_tools() -> None:
    first = {"index": 0, "id": "a", "custom": {"name": "sh", "input": "l"}}
    stream = role() + calls(first) + calls({"index": 0, "custom": {"input": "s", "x": "y"}}) + CALLED
    (found,) = read(stream).tool_calls
    assert (found.type, found.name, found.input) == ("custom", "sh", "ls")
    assert message(stream)["tool_calls"] == [
        {"index": 0, "id": "a", "type": "custom", "custom": {"name": "sh", "input": "ls", "x": "y"}}
    ]


def test_what_comes_with_a_call_is_kept() -> None:
    signed = {"index": 0, "extra_content": {"google": {"thought_signature": "c2ln"}}}
    stream = role() + calls(call(0, "{}", "a", "f")) + calls(signed) + CALLED
    assert message(stream)["tool_calls"][0]["extra_content"] == signed["extra_content"]


@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_a_call_in_which_the_model_was_stopped_is_never_whole(reason: str) -> None:
    stream = role() + calls(call(0, "{}", "a", "f")) + calls(call(1, "{}", "b", "g"))
    first, last = read(stream + finish(reason) + wire.DONE).tool_calls
    assert (first.complete, first.input) == (True, {})
    assert (last.complete, last.input, last.arguments) == (False, None, "{}")


def test_a_call_in_a_stream_that_was_cut_is_not_whole() -> None:
    result = read(role() + calls(call(0, "{}", "a", "f")))
    assert result.outcome is Outcome.TRUNCATED
    assert [(it.complete, it.input) for it in result.tool_calls] == [(False, None)]


def test_no_arguments_and_arguments_that_are_no_json() -> None:
    stream = role() + calls(call(0, "", "a", "f")) + calls(call(1, '{"x"', "b", "g")) + CALLED
    assert [(it.complete, it.input) for it in read(stream).tool_calls] == [(True, {}), (False, None)]


def test_pieces_behind_the_finish_reason_open_the_call_again() -> None:
    stream = role() + calls(call(0, "{}", "a", "f")) + calls(call(1, "{}", "b", "g"))
    stream += finish("tool_calls") + calls(call(0, " "))
    assert [it.complete for it in read(stream + wire.DONE).tool_calls] == [False, True]


# --- usage and ends


def usage(**counts: Any) -> dict[str, Any]:
    return {"prompt_tokens": 16, **counts}


def test_us01_counts_replace_counts() -> None:
    stream = chunk(choice({"role": "assistant"}), usage=usage(completion_tokens=0))
    stream += chunk(choice({"content": "a"}), usage=usage(completion_tokens=1, total_tokens=None))
    assert read(stream).usage == {"prompt_tokens": 16, "completion_tokens": 1, "total_tokens": None}
    assert not read(stream).usage_final
    stream += text("b") + chunk(choice({}, "stop"), usage=None)
    assert not read(stream).usage_final
    stream += (
        chunk(usage={"completion_tokens": 3, "prompt_tokens": None, "total_tokens": 19}) + wire.DONE
    )
    assert read(stream).usage == {"prompt_tokens": 16, "completion_tokens": 3, "total_tokens": 19}
    assert read(stream).usage_final


def test_usage_with_the_finish_reason_is_final_at_once() -> None:
    stream = role() + chunk(choice({}, "stop"), usage=usage())
    assert read(stream).usage_final
    assert read(stream + wire.DONE).usage_final


def test_usage_that_only_came_before_the_end_is_final_with_the_end() -> None:
    stream = role() + chunk(choice({"content": "a"}), usage=usage()) + finish()
    assert read(stream[:-5]).usage_final is False
    assert read(stream + wire.DONE).usage_final
    missing_done = read(stream)
    assert missing_done.outcome is Outcome.COMPLETED_NO_DONE
    assert missing_done.usage_final
    assert not read(chunk(choice({"role": "assistant"}), usage=usage()) + wire.DONE).usage_final
    more = role() + chunk(choice({"content": "a"}), usage=usage()) + text("b") + END
    assert not read(more).usage_final


def test_no_usage_is_not_zero() -> None:
    assert read(role() + END).usage is None
    assert not read(role() + END).usage_final
    assert not read(role() + finish()).usage_final
    assert read(role() + chunk(choice({}, "stop"), usage="many")).usage is None


def test_the_end_mark_is_the_end() -> None:
    accumulator = CHAT.accumulator()
    *events, _end = wire.receive(wire.ANSWER)[1]
    for received in events:
        assert accumulator.outcome is Outcome.OPEN
        accumulator.apply(received)
    assert accumulator.outcome.value == "completed"


def test_me03_an_error_in_a_chunk_with_its_last_counts() -> None:
    error = {"code": 502, "message": "Provider disconnected"}
    ended = {**choice({"content": "t"}, "error"), "error": error}
    result = read(role() + text("par") + chunk(ended, usage=usage(), error=error) + wire.DONE)
    assert result.outcome is Outcome.FAILED
    assert result.text == "part"
    assert result.usage == usage()
    assert result.error is not None
    assert result.error.code == 502


def test_an_error_alone() -> None:
    result = read(role() + text("par") + wire.ERROR)
    assert (result.text, result.outcome, result.usage_final) == ("par", Outcome.FAILED, False)


# --- bounds


def many(*events: bytes) -> Accumulator:
    """Accumulate with little room until it is refused."""
    accumulator = CHAT.accumulator(max_size=100_000)
    made_events = wire.receive(role() + b"".join(events))[1]
    with pytest.raises(AnswerTooLarge):
        [*map(accumulator.apply, made_events)]
    return accumulator


MANY: dict[str, list[bytes]] = {
    "choices": [role(index) for index in range(1, 200)],
    "calls": [calls(call(index, "", str(index), "f")) for index in range(200)],
    "details": [delta(reasoning_details=[{"index": index}]) for index in range(1500)],
    "entries": [delta(annotations=[1]) for _ in range(2000)],
    "members": [delta(**{f"m{index}": 1}) for index in range(2000)],
    "envelope": [chunk(choice({"content": ""}), **{f"m{index}": 1}) for index in range(2000)],
    "logprobs": [chunk({**choice({}), "logprobs": {"content": [{}]}}) for _ in range(1500)],
    "of a choice": [chunk({**choice({}), f"m{index}": 1}) for index in range(2000)],
    "text": [text("x" * 1000) for _ in range(120)],
    "arguments": [calls(call(0, "x" * 1000, "a", "f")) for _ in range(120)],
    "nested": [delta(meta={"k": "x" * index}) for index in range(0, 110_000, 20_000)],
}


@pytest.mark.parametrize("name", MANY)
def test_whatever_there_is_much_of_reaches_the_limit(name: str) -> None:
    held = json.dumps(many(*MANY[name]).snapshot())
    assert len(held) < 400_000


def test_what_is_replaced_does_not_add_up() -> None:
    filtered = {**choice({"content": "a"}), "content_filter_results": {"hate": {"filtered": False}}}
    stream = role() + chunk(filtered) * 3000 + delta(meta={"k": "v" * 50}) * 3000
    stream += chunk(choice({"content": "a"}), usage=usage()) * 3000
    accumulator = CHAT.accumulator(max_size=60_000)
    for received in wire.receive(stream + END)[1]:
        accumulator.apply(received)
    assert accumulator.text_length == 6000


@given(st.lists(st.text(max_size=6), max_size=40))
def test_any_pieces_make_the_same_text(pieces: list[str]) -> None:
    whole = "".join(pieces)
    stream = role() + b"".join(map(text, pieces))
    stream += b"".join(delta(reasoning=piece) for piece in pieces)
    stream += calls(call(0, "", "a", "f")) + b"".join(calls(call(0, piece)) for piece in pieces)
    result = read(stream + CALLED)
    assert (result.text, result.tool_calls[0].arguments) == (whole, whole)
    assert result.reasoning == whole


def test_pf04_very_many_small_pieces() -> None:
    stream = role() + text("0123456789abcdef") * 32_000 + END
    assert len(read(stream).text) == 512_000
