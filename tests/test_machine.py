"""The interpreter alone, on small tables of its own."""

from __future__ import annotations

import enum

import pytest

from sse_machines._machine import ILLEGAL, Drop, Finding, Follow, Machine, Refuse, Table, To


class Door(enum.Enum):
    SHUT = 1
    OPEN = 2
    GONE = 3


SHUT, OPEN, GONE = Door

DOOR = Table(
    "door",
    {SHUT: {"open": OPEN, "knock": SHUT}, OPEN: {"shut": SHUT, "remove": GONE}, GONE: {}},
    {
        SHUT: {"shut": To(SHUT, "shut_twice", "a reason"), "remove": Refuse("nailed", "a reason")},
        OPEN: {"open": Drop("open_twice", "a reason"), "kick": Follow(GONE, "a reason")},
    },
)
ROOM = Table(
    "room",
    {SHUT: {"enter": OPEN}, OPEN: {"enter": OPEN, "leave": GONE}, GONE: {}},
    {GONE: {"enter": Drop("gone", "a reason")}},
    closed=GONE,
    rising=True,
)


def door(symbol: str) -> tuple[tuple[str, None, str]]:
    return (("door", None, symbol),)


def room(key: int, symbol: str) -> tuple[str, int, str]:
    return ("room", key, symbol)


def machine() -> Machine:
    return Machine((DOOR, ROOM))


def test_begins_in_the_first_row() -> None:
    assert machine().state("door") is SHUT
    assert machine().state("room", 5) is SHUT


def test_legal_moves_are_made() -> None:
    m = machine()
    assert m.step(door("open")) == []
    assert m.state("door") is OPEN
    assert m.legal("door") == ("shut", "remove")


def test_an_illegal_move_is_found_and_not_made() -> None:
    m = machine()
    (finding,) = m.step(door("fly"))
    assert finding == Finding("door", None, SHUT, "fly", finding.cell, ("open", "knock"))
    assert finding.cell.code == ILLEGAL
    assert finding.fatal
    assert not finding.dropped
    assert m.state("door") is SHUT


def test_nothing_moves_if_one_move_is_not_legal() -> None:
    m = machine()
    assert m.step((*door("open"), room(0, "leave"))) != []
    assert m.state("door") is SHUT
    assert m.next_key("room") == 0


def test_tolerated_cells_say_what_to_do() -> None:
    m = machine()
    (twice,) = m.judge(door("shut"))
    assert (twice.cell.code, twice.fatal, twice.dropped) == ("shut_twice", False, False)
    (nailed,) = m.judge(door("remove"))
    assert (nailed.cell.code, nailed.fatal, nailed.dropped) == ("nailed", True, False)
    m.step(door("open"))
    (again,) = m.judge(door("open"))
    assert (again.cell.code, again.fatal, again.dropped) == ("open_twice", False, True)
    (kick,) = m.judge(door("kick"))
    assert (kick.cell.code, kick.fatal, kick.dropped) == ("", False, False)


def test_moves_behind_a_dropped_one_are_not_looked_at() -> None:
    m = machine()
    m.step(door("open"))
    findings = m.judge((*door("open"), room(0, "leave")))
    assert [finding.cell.code for finding in findings] == ["open_twice"]
    findings = m.judge((*door("fly"), *door("open"), room(0, "leave")))
    assert [finding.cell.code for finding in findings] == [ILLEGAL, "open_twice"]


def test_tolerated_moves_are_made_on_request() -> None:
    m = machine()
    m.apply(door("shut"))
    assert m.state("door") is SHUT
    m.step(door("open"))
    m.apply(door("kick"))
    assert m.state("door") is GONE
    assert m.legal("door") == ()


def test_a_state_without_legal_moves_is_kept_all_the_same() -> None:
    m = machine()
    m.step(door("open"))
    m.step(door("remove"))
    assert m.state("door") is GONE
    assert m.judge(door("knock")) != []


def test_closed_keys_are_forgotten_but_stay_closed() -> None:
    m = machine()
    for key in range(1000):
        assert m.step((room(key, "enter"),)) == []
        assert list(m.open_keys("room")) == [key]
        assert m.step((room(key, "leave"),)) == []
    assert not m.open_keys("room")
    assert m.next_key("room") == 1000
    assert m.state("room", 17) is GONE
    assert m.state("room", 1000) is SHUT
    (finding,) = m.step((room(17, "enter"),))
    assert finding.cell.code == "gone"


def test_keys_stay_open_in_the_order_they_began() -> None:
    m = machine()
    m.step((room(4, "enter"),))
    m.step((room(6, "enter"),))
    m.step((room(4, "enter"),))
    assert list(m.open_keys("room")) == [4, 6]
    assert m.next_key("room") == 7
    # Between the two, keys that never began count as closed: keys only rise.
    assert m.state("room", 5) is GONE


def test_settled_moves_are_those_that_led_nowhere() -> None:
    m = machine()
    knock = door("knock")
    assert m.step(knock) == []
    assert m.settled is knock
    m.step(door("open"))
    assert m.settled is None
    m.apply(door("open")[:0])
    m.step(door("shut"))
    assert m.settled is None
    # A tolerated move must be reported each time, even if it leads nowhere.
    m.apply(door("shut"))
    assert m.settled is None


def test_settled_moves_are_settled_in_all_their_tables() -> None:
    m = machine()
    both = (*door("knock"), room(0, "enter"))
    m.step(both)
    assert m.settled is None
    m.step(both)
    assert m.settled is both


def test_dump_and_load() -> None:
    m = machine()
    m.step(door("open"))
    m.step((room(0, "enter"),))
    m.step((room(0, "leave"),))
    m.step((room(1, "enter"),))
    dump = m.dump()
    m.step((room(1, "leave"),))
    other = machine()
    other.load(dump)
    assert other.dump() == dump
    assert other.state("door") is OPEN
    assert other.state("room", 0) is GONE
    assert other.state("room", 1) is OPEN
    assert other.settled is None


def test_as_rows() -> None:
    assert DOOR.as_rows() == [
        ("SHUT", "open", "legal", "OPEN", "", ""),
        ("SHUT", "knock", "legal", "SHUT", "", ""),
        ("SHUT", "shut", "to", "SHUT", "shut_twice", "a reason"),
        ("SHUT", "remove", "refuse", "", "nailed", "a reason"),
        ("OPEN", "shut", "legal", "SHUT", "", ""),
        ("OPEN", "remove", "legal", "GONE", "", ""),
        ("OPEN", "open", "drop", "", "open_twice", "a reason"),
        ("OPEN", "kick", "follow", "GONE", "", "a reason"),
    ]


def test_mermaid() -> None:
    assert DOOR.mermaid() == (
        "stateDiagram-v2\n"
        "    [*] --> SHUT\n"
        "    SHUT --> OPEN : open\n"
        "    SHUT --> SHUT : knock\n"
        "    OPEN --> SHUT : shut\n"
        "    OPEN --> GONE : remove\n"
    )


def test_states_and_symbols() -> None:
    assert DOOR.states == (SHUT, OPEN, GONE)
    assert DOOR.symbols == ("open", "knock", "shut", "remove", "kick")


def test_a_state_that_is_no_state_is_an_error_at_once() -> None:
    with pytest.raises(KeyError):
        Table("bad", {SHUT: {"open": OPEN}}, {})


HALL = Table(
    "hall",
    {SHUT: {"enter": OPEN}, OPEN: {"enter": OPEN, "leave": GONE}, GONE: {"enter": GONE}},
    {SHUT: {"knock": To(OPEN, "knocked", "a reason"), "ring": Drop("rang", "a reason")}},
    closed=GONE,
)


def test_a_closed_key_begins_anew_where_keys_do_not_rise() -> None:
    m = Machine((HALL,))
    key = (3, "any")
    assert m.step((("hall", key, "enter"), ("hall", key, "leave"))) == []
    assert m.state("hall", key) is SHUT
    assert list(m.open_keys("hall")) == []


def test_each_move_is_judged_as_if_those_before_it_had_been_made() -> None:
    m = Machine((HALL,))
    assert m.judge((("hall", 0, "enter"), ("hall", 0, "leave"), ("hall", 0, "enter"))) == []
    first, second = m.judge((("hall", 0, "knock"), ("hall", 0, "knock")))
    assert (first.state, second.state) == (SHUT, OPEN)
    assert m.state("hall", 0) is SHUT
    # Another key has a row of its own.
    (finding,) = m.judge((("hall", 0, "enter"), ("hall", 1, "leave")))
    assert (finding.key, finding.state) == (1, SHUT)


def test_keys_can_begin_in_another_row() -> None:
    m = Machine((HALL, DOOR))
    m.step((("hall", 0, "enter"),))
    m.begin("hall", GONE)
    assert m.state("hall", 0) is OPEN
    assert m.state("hall", 1) is GONE
    assert m.state("door") is SHUT
    copy = Machine((HALL, DOOR))
    copy.load(m.dump())
    assert (copy.state("hall", 0), copy.state("hall", 1)) == (OPEN, GONE)


def test_beginning_in_another_row_is_judged_again() -> None:
    m = Machine((HALL,))
    moves = (("hall", 0, "enter"),)
    m.begin("hall", GONE)
    m.step(moves)
    assert m.settled is moves
    m.begin("hall", SHUT)
    assert m.settled is None


def test_a_row_without_legal_symbols_is_a_row() -> None:
    table = Table(
        "once",
        {SHUT: {}, OPEN: {}},
        {SHUT: {"open": To(OPEN, "opened", "a reason")}, OPEN: {"open": Follow(OPEN, "a reason")}},
    )
    m = Machine((table,))
    findings = m.judge((("once", 0, "open"), ("once", 0, "open")))
    assert [finding.cell.code for finding in findings] == ["opened", ""]


def test_where_a_symbol_leads() -> None:
    assert HALL.after(SHUT, "enter") is OPEN
    assert HALL.after(SHUT, "knock") is OPEN
    assert HALL.after(SHUT, "ring") is SHUT
    assert HALL.after(SHUT, "leave") is SHUT
