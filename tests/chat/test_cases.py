"""Public bug reports about Chat Completions streams, each as a small input with the right behaviour.

The ids are those of the project's collection of cases.
"""

from __future__ import annotations

from typing import Any

import pytest

from sse_machines import (
    EndOfStream,
    NotAnEventStream,
    Outcome,
    RemoteProtocolError,
    StreamTruncated,
    Unknown,
    Violation,
)
from sse_machines.chat import ChatCompletionChunk, Error
from tests import wire as common
from tests.chat import wire

END = wire.finish() + wire.DONE
HI = wire.role() + wire.text("ok")


def text_of(events: list[Any], index: int = 0) -> str:
    return "".join(event.text(index) for event in events if isinstance(event, ChatCompletionChunk))


def calls_of(events: list[Any]) -> list[tuple[Any, Any, Any]]:
    """Id, name and arguments of every piece of a tool call."""
    chunks = [event for event in events if isinstance(event, ChatCompletionChunk)]
    pieces = [piece for chunk in chunks for piece in chunk.tool_calls()]
    functions = [piece.get("function") or {} for piece in pieces]
    return [
        (piece.get("id"), function.get("name"), function.get("arguments"))
        for piece, function in zip(pieces, functions, strict=True)
    ]


def usage_of(events: list[Any]) -> Any:
    usages = [event.usage for event in events if isinstance(event, ChatCompletionChunk) and event.usage]
    return usages[-1] if usages else None


def check(
    stream: bytes, codes: list[str], outcome: Outcome = Outcome.COMPLETED, text: str | None = None
) -> list[Any]:
    """Lenient: these deviations, this outcome, this text. Strict: the first of them is raised."""
    receiver, events = wire.receive(stream)
    assert common.codes(events) == codes
    assert receiver.outcome is outcome
    if text is not None:
        assert text_of(events) == text
    _, seen = wire.receive(stream, strict=True)
    assert common.codes(seen) == codes[:1]
    if codes:
        assert isinstance(seen[-1], RemoteProtocolError)
    else:
        assert seen[-1] == EndOfStream(outcome=outcome)
    return events


def test_fr01_line_separators_of_unicode_are_data() -> None:
    check(
        wire.role() + wire.text("a\u2028b\u2029c\x85d\x0be") + END, [], text="a\u2028b\u2029c\x85d\x0be"
    )


def test_fr07_no_space_after_the_colon() -> None:
    check((wire.role() + wire.text("hi") + END).replace(b"data: ", b"data:"), [], text="hi")


@pytest.mark.parametrize("comment", [b": OPENROUTER PROCESSING\n\n", b":\n\n", b":\n"])
def test_fr11_and_fr13_comments_are_not_json(comment: bytes) -> None:
    events = check(comment * 2 + wire.role() + comment + wire.text("ok") + END, [], text="ok")
    assert [event.type for event in events].count("comment") == 3


def test_fr14_a_comment_after_an_id_is_no_event() -> None:
    stream = b"id: 7\n" + wire.role() + b": ping\n\n" + wire.text("ok") + b": ping\n\n" + END
    check(stream, [], text="ok")


def test_fr20_an_event_with_empty_data() -> None:
    receiver, events = wire.receive(wire.role() + b"data:\n\ndata: \n\n" + wire.text("ok") + END)
    assert common.codes(events) == ["empty_data", "empty_data"]
    assert all(event.dropped for event in events if isinstance(event, Violation))
    assert (text_of(events), receiver.outcome) == ("ok", Outcome.COMPLETED)


def test_fr25_the_last_chunk_lacks_its_blank_line() -> None:
    stream = HI + wire.finish().rstrip()
    receiver, events = wire.receive(stream)
    assert common.codes(events) == ["unterminated_final_event", "missing_done"]
    assert (receiver.outcome, text_of(events)) == (Outcome.COMPLETED_NO_DONE, "ok")
    assert isinstance(wire.receive(stream, strict=True)[1][-1], StreamTruncated)
    # Never after an abort.
    assert wire.receive(stream, clean=False)[0].outcome is Outcome.TRUNCATED


def test_fr26_the_end_mark_lacks_its_line_ends() -> None:
    receiver, events = wire.receive(HI + END.rstrip())
    assert common.codes(events) == ["unterminated_final_event"]
    assert receiver.outcome is Outcome.COMPLETED


def test_fr28_the_end_mark_is_the_whole_data() -> None:
    stream = (
        wire.role()
        + wire.text("x [DONE] y")
        + wire.calls(wire.call(0, '{"s":"[DONE]"}', "call_1", "f"))
        + b"data: [DONE] not really\n\n"
        + wire.finish("tool_calls")
        + b"data:  [DONE]\t\n\n"
    )
    check(stream, ["malformed_payload"], text="x [DONE] y")


def test_fr29_blank_lines_between_events() -> None:
    check(b"\n\n" + wire.role() + b"\n\n\n" + wire.text("ok") + b"\r\n\r\n" + END, [], text="ok")


def test_en02_invalid_utf8() -> None:
    stream = wire.role() + wire.text("a?b").replace(b"a?b", b"a\xff\xc3(b") + END
    check(stream, [], text="a\ufffd\ufffd(b")


def test_en03_a_character_that_was_cut() -> None:
    receiver, _ = wire.receive(wire.role() + b'data: {"id":"\xe4\xbd')
    assert receiver.outcome is Outcome.TRUNCATED


def test_en05_and_en06_surrogates() -> None:
    stream = wire.role() + wire.text("x\ud800y") + wire.text("\ud83d") + wire.text("\ude00!") + END
    check(stream, [], text="x\ud800y\ud83d\ude00!")


def test_po16_azure_begins_with_a_chunk_about_filters() -> None:
    begin = wire.chunk(id="", object="", model="", prompt_filter_results=[{"prompt_index": 0}])
    check(begin + HI + END, [], text="ok")


def test_po17_choices_that_are_null() -> None:
    check(
        wire.role() + wire.chunk().replace(b'"choices": []', b'"choices": null') + wire.text("ok") + END,
        [],
    )


def test_po19_deltas_that_are_missing() -> None:
    filters = wire.chunk(
        {"index": 0, "finish_reason": None, "content_filter_offsets": {}}, id="", object=""
    )
    events = check(HI + filters + wire.chunk(wire.choice(None, "stop")) + wire.DONE, ["delta_missing"])
    assert text_of(events) == "ok"


def test_po20_text_and_finish_reason_in_one_chunk() -> None:
    events = check(
        wire.role() + wire.text("Hel") + wire.finish(content="lo") + wire.DONE, [], text="Hello"
    )
    assert events[2].finish_reason() == "stop"


def test_po22_text_after_the_finish_reason() -> None:
    stream = wire.role() + wire.text("Hel") + wire.finish() + wire.text("lo") + wire.USAGE + wire.DONE
    events = check(stream, ["delta_after_finish"], text="Hello")
    assert next(event.key for event in events if isinstance(event, Violation)) == 0


def test_po23_usage_comes_after_the_finish_reason() -> None:
    events = check(HI + wire.finish() + wire.USAGE + wire.DONE, [])
    assert usage_of(events) == {"prompt_tokens": 14, "completion_tokens": 52, "total_tokens": 66}


def test_po25_the_end_mark_without_a_finish_reason() -> None:
    events = check(HI + wire.DONE, ["done_without_finish_reason"], text="ok")
    assert all(event.finish_reason() is None for event in events[:2])


def test_po26_several_choices() -> None:
    stream = (
        wire.role()
        + wire.role(1)
        + wire.text("A")
        + wire.text("B", 1)
        + wire.finish(index=1)
        + wire.text("a")
        + wire.finish("length")
        + wire.DONE
    )
    events = check(stream, [], text="Aa")
    assert text_of(events, 1) == "B"


A, B = wire.call(0, '{"p":"a"}', "call_a", "f"), wire.call(0, '{"p":"b"}', "call_b", "f")
TOOLS = wire.finish("tool_calls") + wire.DONE


def test_tc01_no_index() -> None:
    stream = (
        wire.role()
        + wire.calls(wire.call(None, '{"x":', "call_a", "f"))
        + wire.calls(wire.call(None, "1}"))
        + wire.calls(wire.call(None, "{}", "call_b", "g"))
        + TOOLS
    )
    events = check(stream, ["tool_index_missing", "tool_index_missing"])
    assert [event.key for event in events if isinstance(event, Violation)] == [(0, 0), (0, 1)]


def test_tc02_all_calls_have_index_0() -> None:
    events = check(wire.role() + wire.calls(A) + wire.calls(B) + TOOLS, ["tool_index_reused"])
    assert calls_of(events) == [("call_a", "f", '{"p":"a"}'), ("call_b", "f", '{"p":"b"}')]


def test_tc04_nulls_are_nothing() -> None:
    nothing = {"index": 0, "id": None, "type": None, "function": {"name": None, "arguments": "{}"}}
    stream = (
        wire.role()
        + wire.calls(wire.call(0, "", "call_a", "calc"))
        + wire.delta(role=None, content="", tool_calls=[nothing])
        + wire.calls({"index": 0, "function": {"arguments": None}})
        + wire.finish("tool_calls", tool_calls=None)
        + wire.DONE
    )
    check(stream, [])


def test_tc05_the_name_comes_late_and_an_id_never() -> None:
    stream = (
        wire.role()
        + wire.calls(wire.call(0, '{"a":', "call_a"))
        + wire.calls(wire.call(0, "1}", None, "f"))
        + wire.calls(wire.call(1, "{}", None, "g"))
        + TOOLS
    )
    check(stream, ["tool_id_missing"])


def test_tc07_the_first_index_is_1() -> None:
    stream = HI + wire.calls(wire.call(1, "", "call_a", "f")) + wire.calls(wire.call(1, "{}")) + TOOLS
    check(stream, ["tool_index_gap"])


def test_tc08_one_index_twice_in_a_chunk() -> None:
    pieces = wire.calls(wire.call(0, '{"a"', "call_a", "f"), wire.call(0, ":1"))
    check(wire.role() + pieces + wire.calls(wire.call(0, "}")) + TOOLS, [])


def test_tc10_arguments_that_are_an_object() -> None:
    call = {**wire.call(0, "", "call_a", "f"), "function": {"name": "f", "arguments": {"x": 1}}}
    events = check(wire.role() + wire.calls(call) + TOOLS, ["arguments_not_string"])
    assert calls_of(events) == [("call_a", "f", {"x": 1})]


def test_tc14_equal_pieces_are_both_text() -> None:
    texts = [wire.text(piece) for piece in ("ab", "ab", "\n", "\n")]
    check(wire.role() + b"".join(texts) + END, [], text="abab\n\n")


def test_me03_an_error_beside_empty_choices() -> None:
    error = wire.chunk(id="gen-1", error={"code": 502, "message": "Provider disconnected"})
    events = check(wire.role() + wire.text("par") + error + wire.DONE, [], Outcome.FAILED, "par")
    assert [event.info.code for event in events if isinstance(event, Error)] == [502]


def test_me05_an_error_before_anything() -> None:
    events = check(wire.ERROR + wire.DONE, [], Outcome.FAILED)
    assert isinstance(events[0], Error)


def test_me08_one_frame_that_is_no_json() -> None:
    stream = wire.role() + wire.text("a") + b'data: {"choices":[{"index":0,\n\n' + wire.text("b") + END
    events = check(stream, ["malformed_payload"], text="ab")
    (unknown,) = [event for event in events if isinstance(event, Unknown)]
    assert unknown.data == '{"choices":[{"index":0,'


def test_me09_a_bare_error_that_is_no_event() -> None:
    body = b'{"error":{"message":"request exceeds the available context size","code":400}}'
    receiver, events = wire.receive(body)
    assert isinstance(events[-1], NotAnEventStream)
    assert events[-1].error["code"] == 400
    assert receiver.outcome is Outcome.NOT_SSE


def test_me11_a_page() -> None:
    receiver, events = wire.receive(b"<!DOCTYPE html>\n<html><head></head></html>")
    assert isinstance(events[-1], NotAnEventStream)
    assert events[-1].sample.startswith("<!DOCTYPE html>")
    assert receiver.outcome is Outcome.NOT_SSE


def test_tk09_a_ping_that_is_written_as_data() -> None:
    pings = b"data: : ping - 2026-12-01\n\ndata: 2026-12-01 01:35:43\n\n"
    check(
        wire.role() + pings + wire.text("ok") + END,
        ["malformed_payload", "malformed_payload"],
        text="ok",
    )


def test_us01_usage_on_every_chunk() -> None:
    usages = [{"prompt_tokens": 16, "completion_tokens": number} for number in range(3)]
    chunks = [wire.chunk(wire.choice({"content": "a"}), usage=usage) for usage in usages]
    last = wire.chunk(usage={"prompt_tokens": 16, "completion_tokens": 3, "total_tokens": 19})
    events = check(wire.role() + b"".join(chunks) + wire.finish() + last + wire.DONE, [], text="aaa")
    assert usage_of(events) == {"prompt_tokens": 16, "completion_tokens": 3, "total_tokens": 19}


def test_fc03_an_extension_of_a_vendor() -> None:
    stream = wire.role() + wire.event({"tool": "web_search"}, "tool.progress") + wire.text("ok") + END
    events = check(stream, [], text="ok")
    assert events[1].name == "tool.progress"


def test_fc05_members_of_vendors() -> None:
    odd = {
        **wire.choice({"content": "a", "reasoning_content": "r1"}),
        "message": {"role": "assistant", "content": "a"},
        "native_finish_reason": None,
    }
    stream = wire.role() + wire.chunk(odd, id="other-id", provider="P", citations=["u"]) + END
    events = check(stream, ["id_changed"], text="a")
    assert events[2].reasoning() == "r1"
    assert events[2].extra["provider"] == "P"


def test_md05_indexes_of_tools_beyond_all_bounds() -> None:
    frames = [
        wire.calls({**wire.call(0, "{}", f"call_{index}", "f"), "index": index})
        for index in (2_000_000_000, -1, True)
    ]
    check(wire.role() + b"".join(frames) + TOOLS, ["tool_index_invalid"] * 3)


def test_pf04_many_small_pieces() -> None:
    stream = wire.role() + wire.text("x" * 16) * 2000 + END
    assert len(check(stream, [])) == 2004


def test_cb04_finished_right_after_the_end_mark() -> None:
    receiver, _ = wire.receive([HI + END, b""])
    assert receiver.finished
    _, events = wire.receive(HI + wire.finish())
    assert common.codes(events) == ["missing_done"]
