"""What is written is read back as the same event: every class of every protocol, with any values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from sse_machines import (
    CHAT,
    Comment,
    Event,
    LocalProtocolError,
    Receiver,
    Sender,
    Unknown,
    chat,
    messages,
    responses,
)
from sse_machines._payload import dumps
from sse_machines._protocol import Done, Protocol, WireEvent
from sse_machines.responses import roles
from tests import test_sender_law as law, wire
from tests.responses import wire as responses_wire

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | text
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(text, values, max_size=3)
extras = st.dictionaries(text.map("x_{}".format), values, max_size=2)
indexes = st.integers(0, 65_535)
counts = st.none() | st.integers(0, 2**40)


def members(**known: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """An object with these members and others."""
    return st.builds(lambda more, own: {**more, **own}, extras, st.fixed_dictionaries(known))


TEXTS = messages.events.DELTA_TEXTS
delta = st.one_of(
    *(members(type=st.just(kind), **{member: text}) for kind, member in TEXTS.items()),
    members(type=text.filter(lambda kind: kind not in TEXTS)),
)
usage = members(input_tokens=counts, output_tokens=counts)
choice = members(
    index=indexes,
    delta=st.none() | members(content=st.none() | text, role=st.none() | text),
    finish_reason=st.none() | text.filter(lambda reason: reason != "error"),
)
FIELDS: dict[type, dict[str, st.SearchStrategy[Any]]] = {
    chat.ChatCompletionChunk: {
        "choices": st.lists(choice, max_size=3),
        "usage": st.none() | members(prompt_tokens=counts, total_tokens=counts),
    },
    chat.Error: {"error": members(message=text)},
    messages.MessageStart: {
        "message": st.builds(lambda more, use: wire.message(**more, usage=use), extras, usage)
    },
    messages.ContentBlockStart: {"index": indexes, "content_block": members(type=text)},
    messages.ContentBlockDelta: {"index": indexes, "delta": delta},
    messages.ContentBlockStop: {"index": indexes},
    messages.MessageDelta: {"delta": members(stop_reason=st.none() | text), "usage": usage},
    messages.Error: {"error": objects},
    responses.Error: {"error": members(message=text)},
    responses.CodeInterpreterCallCodeDelta: {"delta": st.none() | text},
    responses.ShellCallOutputContentDelta: {"delta": objects},
    responses.ShellCallOutputContentDone: {"output": st.lists(objects, max_size=2)},
    roles.LifecycleEvent: {
        "response": st.builds(
            lambda more, use: responses_wire.response(**more, usage=use), extras, st.none() | usage
        )
    },
    roles.SequencedEvent: {
        **dict.fromkeys(("output_index", "content_index", "summary_index", "command_index"), indexes),
        **dict.fromkeys(("annotation_index", "partial_image_index"), indexes),
        **dict.fromkeys(("item", "part"), objects),
        **dict.fromkeys(("delta", "text", "refusal", "arguments", "input", "code", "diff"), text),
        **dict.fromkeys(("command", "partial_image_b64"), text),
        "item_id": st.none() | text,
        "annotation": values,
    },
    WireEvent: {},
}
CLASSES = [
    (protocol, cls) for protocol in law.PROTOCOLS for cls in protocol.moves if issubclass(cls, WireEvent)
]


def events(cls: type[WireEvent]) -> st.SearchStrategy[WireEvent]:
    """Events of a class, with the values that its fields may have."""
    fields: dict[str, st.SearchStrategy[Any]] = {}
    for base in reversed(cls.__mro__):
        fields.update(FIELDS.get(base, {}))
    return st.builds(cls, payload=extras, **{name: fields[name] for name in cls.wire_names})


def there_and_back(protocol: Protocol[Any], event: Event) -> list[Any]:
    """What a receiver makes of what a sender writes, while neither of them looks at the order."""
    lawless = law.asking(protocol)
    sender, receiver = Sender(lawless), Receiver(lawless, strict=True)
    receiver.receive_data(sender.send(event))
    return list(receiver)


def test_every_class_is_there() -> None:
    assert len(CLASSES) == 2 + 8 + len(responses.events.PUBLISHED) + len(responses.events.UNPUBLISHED)


@pytest.mark.parametrize(
    ("protocol", "cls"), CLASSES, ids=[f"{p.name}-{c.__name__}" for p, c in CLASSES]
)
def test_every_class(protocol: Protocol[Any], cls: type[WireEvent]) -> None:
    @settings(max_examples=25, deadline=None)
    @given(events(cls))
    def check(event: WireEvent) -> None:
        (back,) = there_and_back(protocol, event)
        assert back == event
        assert type(back) is cls
        for name in cls.wire_names:
            assert getattr(back, name) == getattr(event, name)

    check()


@pytest.mark.parametrize("protocol", law.PROTOCOLS, ids=lambda p: p.name)
@given(name=text, payload=extras)
@settings(deadline=None)
def test_unknown_events(protocol: Protocol[Any], name: str, payload: dict[str, Any]) -> None:
    kind = f"x.{name}".translate(dict.fromkeys(b"\r\n\0", "_"))
    payload = {"type": kind, **payload}
    event = Unknown(name=kind, payload=payload, data=dumps(payload))
    assert there_and_back(protocol, event) == [event]


@given(text)
def test_comments(comment: str) -> None:
    event = Comment(text=comment.translate(dict.fromkeys(b"\r\n\0")))
    assert there_and_back(CHAT, event) == [event]


BAD = {
    "a lone surrogate": "\ud800",
    "NaN": float("nan"),
    "a number for a key": {1: "x"},
    "a key with a lone surrogate": {"\udfff": 1},
}


@pytest.mark.untraced
@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_what_has_no_text_is_refused_in_every_field(bad: Any, data: st.DataObject) -> None:
    protocol, cls = data.draw(st.sampled_from(CLASSES))
    event = data.draw(events(cls))
    field = data.draw(st.sampled_from(["x", *cls.wire_names]))
    nested = data.draw(st.sampled_from([lambda v: v, lambda v: {"x": v}, lambda v: [[], v]]))
    # As it is if somebody changes what an event holds, which nobody is kept from.
    event.payload[field] = nested(bad)
    with pytest.raises(LocalProtocolError) as caught:
        there_and_back(protocol, event)
    assert caught.value.code == "bad_payload"


def test_the_end_mark() -> None:
    assert there_and_back(CHAT, Done()) == [Done()]


@pytest.mark.parametrize("error", [None, {}, "", 0])
def test_what_would_be_read_as_something_else_is_refused(error: Any) -> None:
    with pytest.raises(LocalProtocolError) as caught:
        Sender(CHAT).send(chat.Error(error=error))
    assert caught.value.code == "malformed_event"
