"""Chunks and errors of Chat Completions: what is in them, and what is wrong with their form."""

from __future__ import annotations

from typing import Any

import pytest

from sse_machines import CHAT, Outcome, Unknown
from sse_machines._protocol import Malformed
from sse_machines.chat import ChatCompletionChunk, Choice, Error
from tests import wire as common
from tests.chat import wire

THINKING = [
    {
        "type": "thinking",
        "thinking": [{"type": "text", "text": "hm"}, {"type": "reference", "ids": [1]}],
    },
    {"type": "text", "text": "hi"},
    "odd",
]


def chunk(*choices: Any, **members: Any) -> ChatCompletionChunk:
    made = CHAT.decode({**wire.HEAD, "choices": list(choices), **members}, "", b"")
    assert isinstance(made, ChatCompletionChunk)
    return made


def test_what_a_chunk_says_of_the_answer() -> None:
    made = chunk(
        service_tier="default",
        system_fingerprint="fp",
        obfuscation="x9",
        moderation={"input": {}, "output": {}},
        usage={"total_tokens": 3},
    )
    assert (made.id, made.model, made.created) == ("chatcmpl-1", "m", 0)
    assert (made.service_tier, made.system_fingerprint, made.obfuscation) == ("default", "fp", "x9")
    assert made.moderation == {"input": {}, "output": {}}
    assert made.usage == {"total_tokens": 3}
    assert made.extra.keys() == {
        *("id", "created", "model", "service_tier", "system_fingerprint", "obfuscation", "moderation")
    }


def test_what_a_chunk_does_not_say_is_none() -> None:
    made = ChatCompletionChunk(payload={"id": 7, "created": "now", "moderation": []})
    assert (made.id, made.model, made.created, made.moderation) == (None, None, None, None)
    assert made.choices == []
    assert made.usage is None


def test_a_chunk_that_is_made_here_has_its_payload() -> None:
    choices: list[Choice] = [{"index": 0, "delta": {"content": "a"}}]
    made = ChatCompletionChunk(choices=choices, payload={"id": "1"})
    assert made.payload == {"id": "1", "object": "chat.completion.chunk", "choices": choices}
    assert made == CHAT.decode(made.payload, "", b"")


def test_the_pieces_of_a_choice() -> None:
    call = wire.call(0, "{}", "call_1", "f")
    made = chunk(
        wire.choice({"content": "a"}),
        wire.choice({"content": "b", "reasoning": "r", "tool_calls": [call]}, "stop", 1),
        {"index": 2, "finish_reason": "length"},
    )
    assert [index for index, _ in made.deltas] == [0, 1]
    assert (made.text(), made.text(1), made.text(2), made.text(9)) == ("a", "b", "", "")
    assert (made.reasoning(), made.reasoning(1)) == ("", "r")
    assert (made.finish_reason(), made.finish_reason(1), made.finish_reason(2)) == (
        None,
        "stop",
        "length",
    )
    assert (made.tool_calls(), made.tool_calls(1)) == ([], [call])


@pytest.mark.parametrize("member", ["reasoning_content", "reasoning"])
def test_reasoning_has_many_names(member: str) -> None:
    assert chunk(wire.choice({"content": None, member: "hm"})).reasoning() == "hm"


def test_reasoning_that_is_sent_under_two_names_counts_once() -> None:
    assert chunk(wire.choice({"reasoning": "hm", "reasoning_content": "hm"})).reasoning() == "hm"


def test_content_that_is_a_list_of_parts() -> None:
    _, events = wire.receive(wire.role() + wire.delta(content=THINKING))
    assert common.codes(events)[:1] == ["content_not_string"]
    made = events[2]
    assert (made.text(), made.reasoning()) == ("hi", "hm")


# The forms in which errors come, in the order in which they are looked for.
OBJECT = {"message": "m", "type": "server_error", "param": None, "code": None}
OLD = {"object": "error", "message": "m", "type": "BadRequestError", "code": 400}
UPSTREAM = {"code": 502, "message": "m"}
ERRORS: list[tuple[str, bytes, Any]] = [
    ("a named frame", wire.event({"error": OBJECT}, "error"), OBJECT),
    ("flat in a named frame", wire.event({"message": "m"}, "error"), {"message": "m"}),
    ("an object", wire.event({"error": OBJECT}), OBJECT),
    ("a text", wire.event({"error": "m"}), "m"),
    ("in a chunk without choices", wire.chunk(error=UPSTREAM), UPSTREAM),
    ("at the finish", wire.chunk(wire.choice({"content": ""}, "error"), error=UPSTREAM), UPSTREAM),
    ("in a choice", wire.chunk({**wire.choice({}, "error"), "error": UPSTREAM}), UPSTREAM),
    ("of old vLLM", wire.event(OLD), OLD),
]


@pytest.mark.parametrize(("frame", "error"), [row[1:] for row in ERRORS], ids=[row[0] for row in ERRORS])
def test_every_form_of_an_error(frame: bytes, error: Any) -> None:
    for before in (b"", wire.role() + wire.text("par")):
        for behind in (b"", wire.DONE):
            receiver, events = wire.receive(before + frame + behind, strict=True)
            (event,) = [event for event in events if isinstance(event, Error)]
            assert event.error == error
            assert event.info.message == "m"
            assert common.codes(events) == []
            assert receiver.outcome is Outcome.FAILED


def test_a_finish_reason_that_is_an_error_and_says_no_more() -> None:
    _, events = wire.receive(wire.role() + wire.finish("error"))
    error = events[-2]
    assert isinstance(error, Error)
    assert error.error["choices"][0]["finish_reason"] == "error"
    assert (error.info.type, error.info.message, error.info.retryable) == (None, "", None)


@pytest.mark.parametrize("nothing", [None, {}, "", False])
def test_an_error_that_is_nothing_is_none(nothing: Any) -> None:
    stream = (
        wire.role()
        + wire.chunk(wire.choice({"content": "a"}), error=nothing)
        + wire.finish()
        + wire.DONE
    )
    receiver, events = wire.receive(stream, strict=True)
    assert receiver.outcome is Outcome.COMPLETED
    assert events[1].text() == "a"


@pytest.mark.parametrize(
    ("error", "retryable"),
    [
        ({"code": "rate_limit_exceeded"}, True),
        ({"code": "insufficient_quota", "type": "server_error"}, False),
        ({"type": "server_error", "code": None}, True),
        ({"code": 429}, True),
        ({"code": 401}, False),
        ({"code": "new"}, None),
    ],
)
def test_whether_to_try_again(error: Any, retryable: bool | None) -> None:
    assert Error(error=error).info.retryable is retryable


def test_an_error_is_written_without_a_type() -> None:
    assert Error(error={"message": "m"}).payload == {"error": {"message": "m"}}


def test_what_a_chunk_with_an_error_says_besides() -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    frame = wire.chunk(wire.choice({"content": "par"}, "error"), error={"message": "m"}, usage=usage)
    error = wire.receive(frame)[1][0]
    assert isinstance(error, Error)
    assert error.chunk is not None
    assert (error.chunk.text(), error.chunk.usage) == ("par", usage)


@pytest.mark.parametrize(
    ("choices", "is_there"),
    [(None, False), ([7], False), ([{"delta": {"content": "a"}}], True), ("x", False)],
)
def test_what_a_chunk_with_an_error_says_may_be_malformed(choices: Any, is_there: bool) -> None:
    error = wire.receive(wire.event({"error": {"message": "m"}, "choices": choices}))[1][0]
    assert isinstance(error, Error)
    assert (error.chunk is not None) == is_there


def bad(**members: Any) -> Any:
    return {**wire.HEAD, "choices": [], **members}


UNREADABLE: list[tuple[Any, str]] = [
    ([1], "the payload must be an object"),
    ("text", "the payload must be an object"),
    (bad(choices={}), "choices must be an array"),
    (bad(choices=["x"]), "a choice must be an object"),
    (bad(choices=[{"index": True}]), "index of a choice must be an integer"),
    (bad(choices=[{"index": "0"}]), "index of a choice must be an integer"),
    (bad(choices=[{"index": -1}]), "an index must be between 0 and 65535"),
    (bad(choices=[{"index": 65_536}]), "an index must be between 0 and 65535"),
    (bad(choices=[{"index": 0, "finish_reason": 1}]), "finish_reason must be a string"),
    (bad(choices=[{"index": 0, "delta": "x"}]), "a delta must be an object"),
    (bad(choices=[wire.choice({"content": 7})]), "content of a delta must be a string"),
    (bad(choices=[wire.choice({"role": 7})]), "role of a delta must be a string"),
    (bad(choices=[wire.choice({"tool_calls": {}})]), "tool_calls must be an array"),
    (bad(choices=[wire.choice({"tool_calls": [1]})]), "a tool call must be an object"),
    (bad(choices=[wire.choice({"tool_calls": [{"id": 7}]})]), "id of a tool call must be a string"),
    (
        bad(choices=[wire.choice({"tool_calls": [{"function": 7}]})]),
        "function of a tool call must be an",
    ),
    (bad(choices=[wire.choice({"tool_calls": [{"custom": []}]})]), "custom of a tool call must be an"),
    (
        bad(choices=[wire.choice({"tool_calls": [{"function": {"name": 7}}]})]),
        "name of a function must be a string",
    ),
    (bad(choices=[wire.choice({}), wire.choice({"role": 7}, None, 1)]), "role of a delta must be"),
]


@pytest.mark.parametrize(("payload", "message"), UNREADABLE)
def test_what_nobody_could_read_on_with(payload: Any, message: str) -> None:
    with pytest.raises(Malformed) as caught:
        CHAT.decode(payload, "", b"")
    assert message in caught.value.message
    assert caught.value.code == "malformed_event"
    assert isinstance(caught.value.event, Unknown)
    stream = wire.role() + wire.event(payload) + wire.finish() + wire.DONE
    receiver, events = wire.receive(stream)
    assert common.codes(events) == ["malformed_event"]
    assert receiver.outcome is Outcome.COMPLETED
    assert wire.receive(stream, strict=True)[0].outcome is Outcome.PROTOCOL_ERROR


READABLE: list[tuple[Any, str]] = [
    ({"choices": [{"delta": {"content": "a"}}]}, "missing_index"),
    ({"choices": [wire.choice({"content": [{"type": "text", "text": "a"}]})]}, "content_not_string"),
    ({"usage": {"total_tokens": -1}}, "malformed_usage"),
    ({"usage": {"prompt_tokens": True}}, "malformed_usage"),
    ({"usage": [1]}, "malformed_usage"),
]


@pytest.mark.parametrize(("members", "code"), READABLE)
def test_what_can_be_read_but_is_reported(members: Any, code: str) -> None:
    frame = wire.event({**wire.HEAD, "choices": [], **members})
    receiver, events = wire.receive(wire.role() + frame + wire.finish() + wire.DONE)
    assert common.codes(events) == [code]
    assert isinstance(events[2], ChatCompletionChunk)
    assert receiver.outcome is Outcome.COMPLETED


def test_usage_may_lack_counts_and_have_others() -> None:
    usage = {"prompt_tokens": None, "cost": 0.1, "completion_tokens": 2}
    stream = wire.role() + wire.finish() + wire.chunk(usage=usage) + wire.DONE
    assert common.codes(wire.receive(stream, strict=True)[1]) == []


@pytest.mark.parametrize("choices", [None, "absent"])
@pytest.mark.parametrize("usage", [None, {"total_tokens": 3}])
def test_choices_may_be_null_or_absent(choices: Any, usage: Any) -> None:
    payload = {**wire.HEAD, "choices": choices, "usage": usage}
    if choices == "absent":
        del payload["choices"]
    _, events = wire.receive(wire.role() + wire.finish() + wire.event(payload) + wire.DONE, strict=True)
    assert common.codes(events) == []
    assert isinstance(events[2], ChatCompletionChunk)
    assert (events[2].choices, events[2].usage) == ([], usage)


@pytest.mark.parametrize("name", ["message", "chat.completion.chunk"])
def test_names_that_are_none(name: str) -> None:
    stream = wire.event({**wire.HEAD, "choices": [wire.choice({"role": "assistant"})]}, name)
    assert common.codes(wire.receive(stream)[1])[:-1] == []


def test_a_chunk_in_a_frame_of_another_name() -> None:
    stream = wire.event({**wire.HEAD, "choices": [wire.choice({"role": "assistant"})]}, "delta")
    _, events = wire.receive(stream)
    assert common.codes(events)[:-1] == ["unexpected_event_name"]
    assert isinstance(events[1], ChatCompletionChunk)


def test_an_extension_of_a_vendor() -> None:
    stream = (
        wire.role() + wire.event({"tool": "x", "usage": {}}, "tool.progress") + wire.finish() + wire.DONE
    )
    _, events = wire.receive(stream, strict=True)
    assert common.codes(events) == []
    assert isinstance(events[1], Unknown)
    assert (events[1].name, events[1].payload) == ("tool.progress", {"tool": "x", "usage": {}})


def test_an_object_that_is_no_chunk() -> None:
    _, events = wire.receive(wire.role() + wire.event({"note": 1}))
    assert isinstance(events[1], Unknown)
    assert events[1].name == "message"
