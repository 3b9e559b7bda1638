"""Answers from plain arguments: legal from their first event to their last, and nothing hidden."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from sse_machines import (
    CHAT,
    MESSAGES,
    RESPONSES,
    LocalProtocolError,
    Outcome,
    Sender,
    chat,
    messages,
    responses,
)
from tests import wire


def chat_answer(**options: Any) -> chat.Answer:
    return chat.Answer(id="chatcmpl-1", model="m", created=7, **options)


def messages_answer() -> messages.Answer:
    return messages.Answer(id="msg_1", model="m", input_tokens=9)


def responses_answer(**options: Any) -> responses.Answer:
    return responses.Answer(id="resp_1", model="m", created_at=7, **options)


def sent(protocol: Any, events: Iterable[Any]) -> list[Any]:
    """The payloads of what a strict receiver makes of events that went through a sender."""
    sender = Sender(protocol)
    receiver, back = wire.receive(
        b"".join(sender.send(event) for event in events), protocol=protocol, strict=True
    )
    assert wire.codes(back) == []
    assert receiver.outcome is sender.outcome
    return [event.payload for event in back if hasattr(event, "payload")]


def test_chat() -> None:
    answer = chat_answer()
    first, second = answer.tool_call(id="call_1", name="f"), answer.tool_call(id="call_2", name="g")
    payloads = sent(
        CHAT,
        [
            *answer.begin(),
            *answer.reasoning().whole("hm"),
            *answer.text().whole(["Hel", "lo"]),
            *first.whole(['{"a":', "1}"]),
            *second.whole("{}"),
            *answer.end("tool_calls", prompt_tokens=5, completion_tokens=3),
        ],
    )
    head = {"object": "chat.completion.chunk", "id": "chatcmpl-1", "created": 7, "model": "m"}
    assert all({**payload, **head} == payload for payload in payloads)
    choices = [choice for payload in payloads for choice in payload["choices"]]
    assert [choice["delta"] for choice in choices] == [
        {"role": "assistant", "content": ""},
        {"reasoning_content": "hm"},
        {"content": "Hel"},
        {"content": "lo"},
        {"tool_calls": [piece(0, "", id="call_1", type="function", name="f")]},
        {"tool_calls": [piece(0, '{"a":')]},
        {"tool_calls": [piece(0, "1}")]},
        {"tool_calls": [piece(1, "", id="call_2", type="function", name="g")]},
        {"tool_calls": [piece(1, "{}")]},
        {},
    ]
    assert [choice["finish_reason"] for choice in choices] == [*[None] * 9, "tool_calls"]
    assert payloads[-1]["usage"] == {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}
    assert payloads[-1]["choices"] == []


def piece(index: int, arguments: str, name: str = "", **members: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments} if name else {"arguments": arguments}
    return {"index": index, **members, "function": function}


def test_chat_without_usage_and_with_another_reasoning() -> None:
    answer = chat_answer(reasoning_member="reasoning")
    payloads = sent(CHAT, [*answer.begin(), *answer.reasoning().whole("hm"), *answer.end()])
    assert payloads[1]["choices"][0]["delta"] == {"reasoning": "hm"}
    assert len(payloads) == 3
    assert "usage" not in payloads[2]


def test_messages() -> None:
    answer = messages_answer()
    payloads = sent(
        MESSAGES,
        [
            *answer.begin(),
            *answer.thinking(signature="c2ln").whole("hm"),
            *answer.text().whole(["Hel", "lo"]),
            *answer.tool_use(id="toolu_1", name="f").whole(['{"a":', "1}"]),
            *answer.end("stop_sequence", output_tokens=3, stop_sequence="x"),
        ],
    )
    assert [payload.get("content_block") or payload.get("delta") for payload in payloads] == [
        None,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "hm"},
        {"type": "signature_delta", "signature": "c2ln"},
        None,
        {"type": "text", "text": ""},
        {"type": "text_delta", "text": "Hel"},
        {"type": "text_delta", "text": "lo"},
        None,
        {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}},
        {"type": "input_json_delta", "partial_json": '{"a":'},
        {"type": "input_json_delta", "partial_json": "1}"},
        None,
        {"stop_reason": "stop_sequence", "stop_sequence": "x"},
        None,
    ]
    assert payloads[0]["message"]["usage"] == {"input_tokens": 9, "output_tokens": 0}
    assert payloads[-2]["usage"] == {"output_tokens": 3}


def test_responses() -> None:
    answer = responses_answer(response={"metadata": {"k": "v"}})
    payloads = sent(
        RESPONSES,
        [
            *answer.begin(),
            *answer.reasoning().whole("hm"),
            *answer.text().whole(["Hel", "lo"]),
            *answer.function_call(call_id="call_1", name="f").whole(['{"a":', "1}"]),
            *answer.end(input_tokens=5, output_tokens=3),
        ],
    )
    assert [payload["sequence_number"] for payload in payloads] == list(range(len(payloads)))
    assert [payload["type"].removeprefix("response.") for payload in payloads] == [
        "created",
        "in_progress",
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ]
    part = {"type": "output_text", "text": "Hello", "annotations": [], "logprobs": []}
    output = [
        {"id": "rs_1_0", "type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {
            "id": "msg_1_1",
            "type": "message",
            "status": "completed",
            "role": "assistant",
            "content": [part],
        },
        {
            "id": "fc_1_2",
            "type": "function_call",
            "status": "completed",
            "call_id": "call_1",
            "name": "f",
            "arguments": '{"a":1}',
        },
    ]
    assert [p["item"] for p in payloads if p["type"] == "response.output_item.done"] == output
    assert payloads[12]["text"] == "Hello"
    assert payloads[13]["part"] == part
    assert payloads[18]["arguments"] == '{"a":1}'
    completed = payloads[-1]["response"]
    assert completed["output"] == output
    assert (completed["status"], completed["metadata"]) == ("completed", {"k": "v"})
    assert completed["usage"]["total_tokens"] == 8
    assert payloads[0]["response"]["status"] == "in_progress"


def test_a_response_that_was_stopped() -> None:
    answer = responses_answer()
    part = answer.text()
    events = [*answer.begin(), *part.begin(), *part.add("Hel")]
    events += answer.end(input_tokens=5, output_tokens=3, incomplete="max_output_tokens")
    payloads = sent(RESPONSES, events)
    assert payloads[-1]["type"] == "response.incomplete"
    assert payloads[-1]["response"]["status"] == "incomplete"
    assert payloads[-1]["response"]["incomplete_details"] == {"reason": "max_output_tokens"}
    assert payloads[-1]["response"]["output"] == []


def test_parts_can_be_interleaved_where_the_protocol_lets_them() -> None:
    answer = responses_answer()
    one, two = answer.text(), answer.function_call(call_id="c", name="f")
    events = [*answer.begin(), *one.begin(), *two.begin(), *one.add("a"), *two.add("{}"), *one.add("b")]
    events += [*two.end(), *one.end(), *answer.end(input_tokens=1, output_tokens=1)]
    assert sent(RESPONSES, events)[-1]["response"]["output"][0]["content"][0]["text"] == "ab"

    blocks = messages_answer()
    first, second = blocks.text(), blocks.text()
    sender = Sender(MESSAGES)
    for event in (*blocks.begin(), *first.begin()):
        sender.send(event)
    with pytest.raises(LocalProtocolError) as caught:
        sender.send(next(second.begin()))
    assert caught.value.code == "interleaved_blocks"


@pytest.mark.parametrize("answer", [chat_answer(), messages_answer(), responses_answer()])
def test_pieces_are_taken_one_by_one(answer: Any) -> None:
    taken: list[str] = []

    def pieces() -> Iterator[str]:
        for piece in ("a", "b"):
            taken.append(piece)
            yield piece

    events = answer.text().whole(pieces())
    for event in events:
        if json.dumps(event.payload).count('"a"'):
            break
    assert taken == ["a"]
    assert list(events)
    assert taken == ["a", "b"]


text = st.text(st.characters(exclude_categories=["Cs"]))
MAKERS: dict[str, tuple[Any, Any, dict[str, Any], dict[str, Any]]] = {
    "chat": (
        CHAT,
        chat_answer,
        {
            "text": chat.Answer.text,
            "reasoning": chat.Answer.reasoning,
            "tool": lambda answer: answer.tool_call(id=f"call_{answer._calls}", name="f"),
        },
        {},
    ),
    "messages": (
        MESSAGES,
        messages_answer,
        {
            "text": messages.Answer.text,
            "reasoning": lambda answer: answer.thinking(signature="s"),
            "tool": lambda answer: answer.tool_use(id="t", name="f"),
        },
        {"output_tokens": 1},
    ),
    "responses": (
        RESPONSES,
        responses_answer,
        {
            "text": responses.Answer.text,
            "reasoning": responses.Answer.reasoning,
            "tool": lambda answer: answer.function_call(call_id="c", name="f"),
        },
        {"input_tokens": 1, "output_tokens": 1},
    ),
}


@pytest.mark.parametrize("name", MAKERS)
@given(parts=st.lists(st.tuples(st.sampled_from(["text", "reasoning", "tool"]), st.lists(text))))
@settings(deadline=None, max_examples=50)
def test_any_answer_is_legal(name: str, parts: list[tuple[str, list[str]]]) -> None:
    protocol, make_answer, make, end = MAKERS[name]
    sender, answer = Sender(protocol), make_answer()
    events = list(answer.begin())
    for kind, pieces in parts:
        events += make[kind](answer).whole(pieces)
    for event in (*events, *answer.end(**end)):
        sender.send(event)
    assert sender.outcome is Outcome.COMPLETED
