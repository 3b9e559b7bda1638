"""What a sender refuses a strict receiver refuses, by the same code, and nothing else.

Once for every cell of every table, with an event that asks for nothing but that cell; once for every
event in every state of a stream; and once for streams that Hypothesis makes up.
"""

from __future__ import annotations

import copy
import enum
from typing import Any

import attrs
import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from sse_machines import (
    CHAT,
    MESSAGES,
    RESPONSES,
    Comment,
    Event,
    LocalProtocolError,
    ProtocolError,
    Receiver,
    Sender,
    Unknown,
    Violation,
)
from sse_machines._machine import Table
from sse_machines._protocol import EOF, EOF_INSIDE, Protocol
from tests.chat import test_transitions as chat, wire as chat_wire
from tests.messages import test_transitions as messages
from tests.responses import test_transitions as responses, wire as responses_wire

PROTOCOLS: tuple[Protocol[Any], ...] = (CHAT, RESPONSES, MESSAGES)
PROBES = {
    # One event for each protocol whose form is beyond doubt; what it asks for is put in its place.
    CHAT: chat_wire.text("a"),
    RESPONSES: responses_wire.KEEPALIVE,
    MESSAGES: b'event: ping\ndata: {"type":"ping"}\n\n',
}
KEYS: dict[str, Any] = {"stream": None, "block": 0, "choice": 0, "item": 0, "sequence": None}
CELLS = [
    (protocol, table, state, symbol)
    for protocol in PROTOCOLS
    for table in protocol.tables
    for state in table.states
    for symbol in (*table.symbols, "never heard of")
    # The end of the input is nothing that is sent.
    if symbol not in (EOF, EOF_INSIDE)
]


def decoded(protocol: Protocol[Any], frame: bytes) -> Any:
    """The event that a frame says, whatever else is said about it."""
    receiver = Receiver(protocol)
    receiver.receive_data(frame)
    seen: list[Any] = []
    try:
        seen += receiver
    except ProtocolError as error:
        seen.append(error.event)
    last = seen[-1]
    return last.event if isinstance(last, Violation) else last


def asking(protocol: Protocol[Any], *moves: Any) -> Protocol[Any]:
    """A protocol in which every event asks for the same moves, and nothing is remembered."""
    return attrs.evolve(
        protocol,
        moves=dict.fromkeys(protocol.moves, lambda _event, _machine, _memory: moves),
        remember={},
        learn={},
        numbered=None,
    )


def strict_code(receiver: Receiver[Any]) -> str:
    try:
        list(receiver)
    except ProtocolError as error:
        return error.code
    return ""


def sent_code(sender: Sender[Any], event: Event) -> str:
    before = sender._machine.dump()
    try:
        sender.send(event)
    except LocalProtocolError as error:
        assert sender._machine.dump() == before
        return error.code
    return ""


def test_every_cell_is_asked_for() -> None:
    """No table is left out, and the cells of all kinds are there."""
    assert len(CELLS) == sum(
        len(table.states) * (len({*table.symbols} - {EOF, EOF_INSIDE}) + 1)
        for protocol in PROTOCOLS
        for table in protocol.tables
    )
    assert sum(symbol in table.legal[state] for _, table, state, symbol in CELLS) > 300


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda p: p.name)
def test_every_cell(protocol: Protocol[Any]) -> None:
    event = decoded(protocol, PROBES[protocol])
    cells = [cell[1:] for cell in CELLS if cell[0] is protocol]
    assert cells
    refused = 0
    for table, state, symbol in cells:
        sender, receiver = _both(protocol, table, state, symbol)
        receiver.receive_data(PROBES[protocol])
        code = strict_code(receiver)
        assert sent_code(sender, event) == code, (table.name, state, symbol)
        assert sender._machine.dump() == receiver._machine.dump()
        assert (symbol in table.legal[state]) <= (not code)
        refused += bool(code)
    assert 0 < refused < len(cells)


def _both(
    protocol: Protocol[Any], table: Table, state: enum.Enum, symbol: str
) -> tuple[Sender[Any], Receiver[Any]]:
    """A sender and a strict receiver that stand in a state, and will be asked for a symbol."""
    key = KEYS.get(table.name, (0, 0))
    law = asking(protocol, (table.name, key, symbol))
    sender, receiver = Sender(law), Receiver(law, strict=True)
    for machine in (sender._machine, receiver._machine):
        machine.load(({table.name: {key: state}}, {}, {}))
    return sender, receiver


MATRICES: dict[str, tuple[Protocol[Any], Any, Any]] = {
    "chat": (CHAT, chat.PREFIX, chat.EVENTS),
    "messages": (MESSAGES, messages.PREFIX, messages.EVENTS),
    "responses": (RESPONSES, responses.PREFIX, responses.EVENTS),
}
EVENTS_IN_STATES = [
    (name, state, event)
    for name, (_, prefixes, events) in MATRICES.items()
    for state in prefixes
    for event in events
]


def prefix_and_frame(name: str, state: str, event: str) -> tuple[bytes, bytes]:
    """Legal bytes that lead to a state, and those of an event with the number that is due."""
    _, prefixes, events = MATRICES[name]
    if name == "responses":
        return responses_wire.numbered(*prefixes[state]), responses.numbered(state, event)
    return prefixes[state], events[event]


@pytest.mark.parametrize(("name", "state", "event"), EVENTS_IN_STATES)
def test_every_event_in_every_state(name: str, state: str, event: str) -> None:
    protocol = MATRICES[name][0]
    prefix, frame = prefix_and_frame(name, state, event)
    sender: Sender[Any] = Sender(protocol)
    receiver: Receiver[Any] = Receiver(protocol, strict=True)
    receiver.receive_data(prefix)
    for received in receiver:
        assert sender.send(received)
    receiver.receive_data(frame)
    assert sent_code(sender, decoded(protocol, frame)) == strict_code(receiver)
    assert sender.state is receiver.state
    assert sender._machine.dump() == receiver._machine.dump()


class BothEnds(RuleBasedStateMachine):
    """A sender, and a strict receiver of what it writes."""

    name = ""

    @initialize()
    def begin(self) -> None:
        self.protocol, _, self.events = MATRICES[self.name]
        self.numbered = self.protocol is RESPONSES
        self.sender: Sender[Any] = Sender(self.protocol)
        self.receiver: Receiver[Any] = Receiver(self.protocol, strict=True)

    @rule(data=st.data())
    def event(self, data: st.DataObject) -> None:
        frame = self.events[data.draw(st.sampled_from(sorted(self.events)))]
        if not self.numbered:
            self.check(decoded(self.protocol, frame), frame)
            return
        due = self.sender._memory.next_number
        # Events without a number get the one that is due.
        step = data.draw(st.sampled_from([None, None, 0, 0, 1, -1]))
        given = responses_wire.numbered(frame, start=due + (step or 0))
        self.check(decoded(self.protocol, frame if step is None else given), given)

    def check(self, event: Any, frame: bytes) -> None:
        """Send an event whose bytes are known, and see what a receiver says to those."""
        witness = copy.copy(self.receiver)
        witness.receive_data(frame)
        expected = strict_code(witness)
        if expected:
            with pytest.raises(LocalProtocolError) as caught:
                self.sender.send(event)
            assert caught.value.code == expected
            return
        out = self.sender.send(event)
        self.receiver.receive_data(out)
        (back,) = self.receiver
        number = self.sender._memory.next_number - 1 if self.numbered else None
        assert type(back) is type(event)
        if isinstance(event, Unknown) or number is None:
            assert back == event
        else:
            assert back.payload == {**event.payload, "sequence_number": number}

    @rule(text=st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"])))
    def comment(self, text: str) -> None:
        self.receiver.receive_data(self.sender.comment(text))
        assert list(self.receiver) == [Comment(text=text)]

    @rule()
    def copies(self) -> None:
        self.sender, self.receiver = copy.copy(self.sender), copy.copy(self.receiver)

    def teardown(self) -> None:
        if not hasattr(self, "sender"):
            return
        assert self.sender._machine.dump() == self.receiver._machine.dump()
        if not self.sender.finished:
            self.receiver.receive_data(self.sender.interrupt())
            assert len(list(self.receiver)) == 1
            assert self.receiver.outcome == "failed"


@pytest.mark.untraced
@pytest.mark.parametrize("name", MATRICES)
def test_both_ends_agree(name: str) -> None:
    machine = type(name, (BothEnds,), {"name": name})
    run_state_machine_as_test(
        machine, settings=settings(max_examples=150, stateful_step_count=40, deadline=None)
    )
