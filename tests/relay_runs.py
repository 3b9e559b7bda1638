"""Made-up upstreams for a relay, and what it does with them call by call.

Here is how a stream, its cuts, its times and a configuration are drawn, and what the bytes of an
upstream amount to when nothing but frames and JSON is looked at. What has to be true of it is in
`test_relay_properties`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs
from hypothesis import strategies as st

from sse_machines import (
    CHAT,
    MESSAGES,
    RESPONSES,
    Drain,
    ErrorInfo,
    Frame,
    FrameReader,
    FrameTooLarge,
    Hold,
    Identity,
    KeepAlive,
    Limits,
    Output,
    Relay,
    RelayConfig,
    Stall,
)
from sse_machines._protocol import Protocol
from sse_machines.relay import KeepAliveQueued, Phase
from tests import wire
from tests.chat import wire as chat
from tests.responses import wire as responses

BOM = b"\xef\xbb\xbf"
TEXT = "k33p"
"""What a relay's own comments say; no upstream says it."""
KEEP_ALIVE = re.compile(rb': k33p\n\n?|event: ping\ndata: \{"type":"ping"\}\n\n')
"""A keep-alive, as it cannot come from upstream: those here write JSON with blanks."""
IDENTITY = Identity(id="resp_9", model="m", created=1.0)

CHAT_CALLS = (chat.calls(chat.call(0, "", "call_1", "f")), chat.calls(chat.call(0, '{"a":1}')))
CHAT_PLOTS: dict[str, tuple[bytes, ...]] = {
    "answer": (chat.role(), *map(chat.text, "abc"), chat.finish(), chat.USAGE, chat.DONE),
    "tools": (chat.role(), *CHAT_CALLS, chat.finish("tool_calls"), chat.DONE),
    "reasoning": (
        *(chat.role(), chat.delta(reasoning_content="hm"), chat.text("a"), chat.finish("length")),
        *(chat.USAGE, chat.DONE),
    ),
    "two": (
        *(chat.role(), chat.role(1), chat.text("a"), chat.text("b", 1), chat.finish()),
        *(chat.text("c", 1), chat.finish(index=1), chat.DONE),
    ),
    "no done": (chat.role(), chat.text("a"), chat.text("b"), chat.finish(), chat.USAGE),
    "half": (chat.role(), chat.role(1), chat.text("a"), chat.text("b", 1), chat.finish()),
    "cut": (chat.role(), chat.text("a"), chat.text("b")),
    "usage amid": (chat.role(), *map(chat.text, "abc"), chat.USAGE, *map(chat.text, "def")),
    "done early": (chat.role(), chat.text("a"), chat.DONE),
    "error": (chat.role(), chat.text("a"), chat.ERROR, chat.DONE),
    "error first": (chat.ERROR,),
}
THINKING = (
    wire.block_start(0, "thinking", thinking="", signature=""),
    wire.delta(0, "thinking_delta", thinking="hm"),
    wire.delta(0, "signature_delta", signature="c2ln"),
    wire.block_stop(0),
)
TOOL = (
    wire.block_start(1, "tool_use", id="toolu_1", name="f", input={}),
    wire.delta(1, "input_json_delta", partial_json='{"a":'),
    wire.delta(1, "input_json_delta", partial_json="1}"),
    wire.block_stop(1),
)
WORDS = (wire.block_start(0, text=""), *(wire.text(0, text) for text in "abc"))
MESSAGES_PLOTS: dict[str, tuple[bytes, ...]] = {
    "answer": (wire.start(), *WORDS, wire.block_stop(0), wire.message_delta(), wire.STOP),
    "tools": (
        *(wire.start(), wire.PING, *WORDS, wire.block_stop(0), *TOOL),
        *(wire.message_delta("tool_use"), wire.STOP),
    ),
    "reasoning": (wire.start(), *THINKING, wire.message_delta("max_tokens"), wire.STOP),
    "no stop": (wire.start(), *WORDS, wire.block_stop(0), wire.message_delta()),
    "no reason": (wire.start(), *WORDS, wire.block_stop(0)),
    "open": (wire.start(), *WORDS),
    "open tool": (wire.start(), *WORDS, wire.block_stop(0), *TOOL[:-2], wire.message_delta()),
    "early": (wire.start(), *WORDS, wire.STOP),
    "error": (wire.start(), *WORDS, wire.ERROR),
    "error first": (wire.ERROR,),
}
TALK = (responses.CREATED, *responses.MESSAGE)
RESPONSES_PLOTS: dict[str, tuple[bytes, ...]] = {
    "answer": (*TALK, responses.COMPLETED),
    "tools": responses.FRAMES,
    "incomplete": (*TALK, responses.lifecycle("incomplete")),
    "failed": (*TALK, responses.lifecycle("failed", error={"code": "server_error", "message": "m"})),
    "cancelled": (*TALK, responses.lifecycle("cancelled")),
    "cut": TALK,
    "open": TALK[:5],
    "error": (*TALK[:4], responses.ERROR),
    "error first": (responses.ERROR,),
    "no start": (*responses.MESSAGE, responses.COMPLETED),
}
BODIES = (
    b'{"error": {"message": "m"}}\n\n',
    b'{\n "error": 1\n}',
    b"<html>\n\n<p>502</p>\n",
    b"Bad gateway",
    b"upstream says:\n\nno\n\n",
)
"""What is no event stream, though it came instead of one."""
SHARED_ODD = (
    *(
        b"data: {\n\n",
        b"data: hello\n\n",
        b"data: \xff\xfe\n\n",
        b"data:\n\n",
        b"data\n\n",
        b"data: 1\n\n",
    ),
    *(b"event: late\n\n", b"id: 5\n\n", b"retry: 10\n\n", b"junk\n\n", b"\n", b"\n\n", b"data: []\n\n"),
    *(
        b": c\n",
        b": c\n\n",
        b":\n\n",
        b": c\n: d\n\n",
        b": a\xe2\x80\xa8b\n",
        b"id: 1\0\n\n",
        b"x: y\n\n",
    ),
    *(
        b"id: 6\n: c\n\n",
        b"retry: 7\n: c\n\n",
        b'event: x\ndata: {"type": "x", "y": "\xe2\x80\xa8\xc2\x85"}\n\n',
    ),
    *(wire.FUTURE, wire.DONE),
)
ODD: dict[str, tuple[bytes, ...]] = {
    "chat": (
        *SHARED_ODD,
        *(chat.text("late"), chat.text("x", 3), chat.finish(), chat.USAGE, chat.ANNOTATION),
        *(chat.delta(), chat.chunk(chat.choice({"content": ""}), usage={"prompt_tokens": 2})),
        *(chat.event({**chat.HEAD, "choices": []}, "delta"), chat.event({**chat.HEAD}), chat.ERROR),
        chat.chunk(usage=None),
    ),
    "messages": (
        *SHARED_ODD,
        *(wire.PING, wire.start(), wire.text(0, "late"), wire.text(7, "x"), wire.block_stop(0)),
        *(wire.message_delta(), wire.message_delta(None), wire.STOP, wire.ERROR),
        *(wire.text(0, "x").partition(b"\n")[2], wire.event("content_block_delta", index=0)),
    ),
    "responses": (
        *SHARED_ODD,
        *(responses.KEEPALIVE, responses.CREATED, responses.text("late"), responses.text("x", 7)),
        *(responses.done(), responses.COMPLETED, responses.ERROR, responses.lifecycle("queued")),
        responses.text("x").partition(b"\n")[2],
    ),
}
PLOTS = {"chat": CHAT_PLOTS, "messages": MESSAGES_PLOTS, "responses": RESPONSES_PLOTS}
SOUND = (
    "answer",
    "tools",
    "reasoning",
    "two",
    "incomplete",
    "error",
    "failed",
    "cut",
    "no done",
    "usage amid",
    "no stop",
)
ENDS = {
    "messages": ("message_stop", "error"),
    "responses": (
        *("error", "response.completed", "response.incomplete", "response.failed"),
        *("response.cancelled", "response.done"),
    ),
}
"""The types of the events after which nothing comes."""


@attrs.frozen
class Call:
    """A call of a relay: of a method, so much later, with bytes or a number."""

    do: str
    wait: float = 0.0
    data: bytes = b""
    size: int = 0


@attrs.frozen
class Case:
    """A relay, and what each of its upstreams does."""

    protocol: Protocol[Any, Any]
    config: RelayConfig
    attempts: tuple[tuple[Call, ...], ...]
    identity: Identity | None = None

    def relay(self) -> Relay:
        return Relay(self.protocol, self.config, now=0.0, identity=self.identity)

    @property
    def bytes_in(self) -> bytes:
        """What the first upstream sends."""
        return b"".join(call.data for call in self.attempts[0])


@attrs.frozen
class Turn:
    """One call, and what came of it."""

    call: Call
    now: float
    output: Output
    phase: Phase
    progress_at: float | None


@attrs.define
class Played:
    """What a relay did, call by call."""

    case: Case
    relay: Relay
    turns: list[Turn] = attrs.field(factory=list)
    now: float = 0.0

    @property
    def data(self) -> bytes:
        return b"".join(turn.output.data for turn in self.turns)

    @property
    def events(self) -> list[Any]:
        return [event for turn in self.turns for event in turn.output.events]

    @property
    def bytes_in(self) -> bytes:
        """What the last upstream has sent while it was read."""
        data, read = b"", True
        for turn in self.turns:
            data = b"" if turn.call.do == "again" else data + turn.call.data * read
            read = not turn.output.close_upstream
        return data


Between = Callable[[Relay, float], Relay]


def play(case: Case, between: Between | None = None) -> Played:
    """Make all calls; with ``between``, each on what that makes of the relay."""
    played = Played(case, case.relay())
    for number, calls in enumerate(case.attempts):
        if number:
            make(played, Call("again"), between)
        for call in calls:
            make(played, call, between)
        if played.relay.phase not in (Phase.FAILED, Phase.HOLDING):
            break
    if played.relay.phase is Phase.FAILED:
        make(played, Call("give up"), between)
    return played


def make(played: Played, call: Call, between: Between | None) -> None:
    """Make one call, and hold the relay to what it promises of every one."""
    relay, turns = played.relay, played.turns
    deadline = turns[-1].output.deadline if turns else None
    # A relay takes a time before the last one for the last one.
    told = played.now + call.wait
    if call.do == "due" and deadline is not None:
        told = deadline
    played.now = max(played.now, told)
    if between is not None:
        relay = played.relay = between(relay, played.now)
    output = _CALLS[call.do](relay, told, call)
    assert output.deadline is None or output.deadline > played.now
    if turns and turns[-1].output.finished:
        assert output == Output(b"", [], None, close_upstream=True, finished=True)
    progress_at = relay.counters.last_progress_at
    turns.append(Turn(call, played.now, output, relay.phase, progress_at))


_CALLS: dict[str, Callable[[Relay, float, Call], Output]] = {
    "data": lambda relay, now, call: relay.receive_data(call.data, now),
    "tick": lambda relay, now, _: relay.handle_timeout(now),
    "due": lambda relay, now, _: relay.handle_timeout(now),
    "eof": lambda relay, now, _: relay.receive_eof(now),
    "error": lambda relay, now, _: relay.receive_error("reset", now),
    "leave": lambda relay, now, _: relay.downstream_closed(now),
    "unsent": lambda relay, now, call: relay.downstream_ready(call.size, now),
    "fail": lambda relay, now, _: relay.fail(ErrorInfo(message="gone", type="t", code="odd"), now),
    "again": lambda relay, now, _: relay.new_attempt(now),
    "give up": lambda relay, now, _: relay.fail(None, now),
}


# What is drawn.

WAITS = st.sampled_from([0.0, 0.0, 0.0, 0.0, 0.5, 4.0, 11.0, 35.0, 100.0, -3.0])


@st.composite
def configs(draw: st.DrawFn, protocol: Protocol[Any, Any]) -> RelayConfig:
    forms = ["comment", "comment1", "auto"] + (["ping"] if protocol is MESSAGES else [])
    keepalive = KeepAlive(
        interval=draw(st.sampled_from([10.0, 1.0])),
        text=TEXT,
        form=draw(st.sampled_from(forms)),
        before_output=draw(st.booleans()),
    )
    stall = Stall(
        first_byte=draw(st.sampled_from([None, 15.0])),
        first_output=draw(st.sampled_from([None, 60.0])),
        idle_bytes=draw(st.sampled_from([None, 20.0])),
        idle_progress=draw(st.sampled_from([120.0, 30.0, None])),
        total=draw(st.sampled_from([None, 300.0])),
        on_expiry=draw(st.sampled_from(["report", "fail"])),
    )
    holds = [None, Hold(), Hold(max_bytes=200), Hold(max_events=2)]
    return RelayConfig(
        keepalive=draw(st.sampled_from([keepalive, keepalive, keepalive, None])),
        stall=draw(st.sampled_from([None, stall])),
        hold=draw(st.sampled_from(holds)),
        drain=draw(st.sampled_from([None, Drain(), Drain(max_bytes=500)])),
        limits=draw(st.sampled_from([Limits(), Limits(), Limits(), Limits(max_event_size=300)])),
        repair_tail=draw(st.sampled_from([True, True, False])),
        done_after_error=draw(st.booleans()),
        suppress_usage=draw(st.booleans()),
        comments=draw(st.sampled_from(["forward", "drop"])),
        eof_tail=draw(st.sampled_from(["discard", "accept"])),
        observe=draw(st.sampled_from(["full", "full", "light"])),
        max_unsent=100,
    )


@st.composite
def scripts(draw: st.DrawFn, name: str) -> list[bytes]:
    """Frames of an upstream, with what does not belong there."""
    frames = list(PLOTS[name][draw(st.sampled_from(sorted(PLOTS[name])))])
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.integers(0, len(frames)))
        if draw(st.integers(0, 4)):
            frames.insert(place, draw(st.sampled_from(ODD[name])))
        else:
            del frames[place : place + 1]
    junk = st.lists(st.sampled_from(ODD[name]), max_size=3)
    return frames + draw(st.one_of(st.just([]), junk))


DRESSES: tuple[Callable[[bytes], bytes], ...] = (
    lambda frame: frame,
    lambda frame: b"id: 3\n" + frame,
    lambda frame: b"retry: 9\n" + frame,
    lambda frame: b": before\n" + frame,
    lambda frame: frame.replace(b"\ndata", b"\n: inside\ndata", 1),
    lambda frame: frame[:-1] + b": inside\n\n",
    lambda frame: frame.replace(b"data: ", b"data:", 1),
    # JSON may go on in another line where it has a blank.
    lambda frame: frame.replace(b', "', b',\ndata: "', 1),
    lambda frame: frame + b"\n",
)
EOLS = (b"\n", b"\r\n", b"\r")


@st.composite
def streams(draw: st.DrawFn, name: str, frames: Sequence[bytes], *, dressed: bool = True) -> bytes:
    """Bytes of frames, in one of the forms in which they can be written."""
    if name == "responses" and draw(st.integers(0, 4)) < 4:
        frames = list(_numbered(frames))
    eols = [draw(st.sampled_from(EOLS))] if draw(st.integers(0, 3)) else EOLS
    out = [BOM] if draw(st.integers(0, 2)) == 2 else []
    dresses = DRESSES if dressed and draw(st.booleans()) else DRESSES[:1]
    for frame in frames:
        dress = draw(st.sampled_from(dresses)) if b"data: " in frame else DRESSES[0]
        out.append(dress(frame).replace(b"\n", draw(st.sampled_from(eols))))
    return b"".join(out)


def _numbered(frames: Sequence[bytes]) -> Iterator[bytes]:
    """Frames with the numbers that are due, where they are events at all."""
    number = 0
    for frame in frames:
        if b'data: {"' in frame and b"\xe2" not in frame:
            yield responses.numbered(frame, start=number)
            number += 1
        else:
            yield frame


@st.composite
def cuts(draw: st.DrawFn, stream: bytes, *, fine: bool = True) -> list[bytes]:
    """Chunks of a stream, empty ones among them."""
    kind = draw(st.integers(0, 7 if fine else 6))
    if kind == 7:
        return [stream[n : n + 1] for n in range(len(stream))]
    places = st.integers(0, len(stream))
    if kind > 3:
        # Behind the CR of a blank line is where it matters most.
        where = rb"[\r\n]" if kind > 4 else rb"(?<=[\r\n])\r"
        ends = [match.end() for match in re.finditer(where, stream)]
        places = st.sampled_from(ends) if ends else places
    marks = sorted(draw(st.lists(places, max_size=12)))
    return [stream[a:b] for a, b in zip([0, *marks], [*marks, len(stream)], strict=True)]


ENDINGS = (
    (Call("eof"),),
    (Call("error"),),
    # It hangs, and time goes on.
    tuple(Call("due") for _ in range(6)),
    (Call("tick", 400.0), Call("tick", 400.0)),
    (Call("leave"), Call("tick", 5.0), Call("tick", 400.0)),
    (Call("fail"),),
)


@st.composite
def attempts(draw: st.DrawFn, name: str, *, fine: bool, leaves: bool = True) -> tuple[Call, ...]:
    """What one upstream does, and what goes on downstream meanwhile."""
    if draw(st.integers(0, 11)) == 11:
        stream = draw(st.sampled_from(BODIES))
    else:
        stream = draw(streams(name, draw(scripts(name))))
    if draw(st.integers(0, 3)) == 3:
        whole = len(stream.rstrip(b"\r\n"))
        stream = stream[: draw(st.just(whole) | st.integers(0, len(stream)))]
    # A keep-alive may come before anything else does.
    calls = list(draw(st.sampled_from([(), (), (Call("tick", 11.0),)])))
    for chunk in draw(cuts(stream, fine=fine)):
        calls.append(Call("data", 0.0 if len(calls) > 60 else draw(WAITS), chunk))
        if len(calls) < 60:
            calls += draw(st.sampled_from(MEANWHILE))
    if leaves and draw(st.integers(0, 7)) == 7:
        calls.insert(draw(st.integers(0, len(calls))), Call("leave"))
    return (*calls, *draw(st.sampled_from([*ENDINGS[:1] * 4, *ENDINGS])))


MEANWHILE: tuple[tuple[Call, ...], ...] = (
    *((),) * 5,
    (Call("tick"),),
    (Call("tick", 11.0),),
    (Call("tick", 11.0),),
    (Call("tick", 60.0),),
    (Call("tick", -50.0),),
    (Call("due"),),
    (Call("due"), Call("due"), Call("due")),
    (Call("unsent", size=50),),
    (Call("unsent", size=500), Call("tick", 20.0), Call("unsent", size=0)),
    (Call("data", 3.0),),
)


@st.composite
def cases(draw: st.DrawFn, *, fine: bool = True, leaves: bool = True) -> Case:
    """A whole case; without ``fine`` not cut into single bytes."""
    protocol = draw(st.sampled_from([CHAT, MESSAGES, RESPONSES]))
    config = draw(configs(protocol))
    count = draw(st.sampled_from([1, 1, 2])) if config.hold else 1
    made = [draw(attempts(protocol.name, fine=fine, leaves=leaves)) for _ in range(count)]
    return Case(protocol, config, tuple(made), draw(st.sampled_from([None, IDENTITY])))


# What bytes amount to.


def payload_of(frame: Frame) -> Any:
    """The JSON in a frame; None if there is none."""
    try:
        return json.loads(frame.data or "")
    except ValueError:
        return None


def ends(protocol: Protocol[Any, Any], frame: Frame) -> bool:
    """Whether a frame ends an answer."""
    if is_done(frame):
        return protocol is CHAT
    payload = payload_of(frame)
    if not isinstance(payload, dict):
        return False
    if protocol is CHAT:
        return bool(payload.get("error"))
    return payload.get("type") in ENDS[protocol.name]


def is_done(frame: Frame) -> bool:
    return frame.data is not None and frame.data.strip() == "[DONE]"


class Witness:
    """Says what has to go out of an upstream, by frames and JSON alone.

    Attributes:
        wanted: The bytes to forward of what is complete, the one that ends the answer included.
        end: That one; None while it has not come.
        left: Whether the client is gone.
        replaced: Whether its own error came while all was held back.
        refused: Whether the relay took it for no event stream.
        went_on: Whether the relay saw progress in the last call.
        could_go_on: Whether there was anything in it that can be progress.
    """

    def __init__(self, case: Case) -> None:
        self._case = case
        self.reader = FrameReader(max_event_size=case.config.limits.max_event_size)
        self._parts: list[bytes] = []
        self.end: Frame | None = None
        self.left = self.refused = self.replaced = self._done_with = False
        self.went_on = self.could_go_on = False
        self._progress_at: float | None = None
        self.frames: list[Frame] = []
        self._before: tuple[bytes, bool, bool] = (b"", True, False)

    @property
    def wanted(self) -> bytes:
        return b"".join(self._parts)

    def beginnings(self) -> Iterator[bytes]:
        """What can have gone out of an upstream that was refused, the longest one first."""
        for count in range(len(self._parts), -1, -1):
            yield joined(b"".join(self._parts[:count])).removeprefix(BOM)

    def see(self, turn: Turn) -> None:
        """Take note of a call."""
        causes = [getattr(event, "cause", "") for event in turn.output.events]
        self.refused = self.refused or "not_sse" in causes
        self.replaced = self.replaced or "upstream" in causes
        self.left = self.left or turn.call.do == "leave"
        known = len(self.frames)
        if turn.call.do == "data" and not self._done_with:
            self._feed(turn.call.data)
        self._done_with = turn.output.close_upstream
        self.went_on = turn.progress_at != self._progress_at
        self._progress_at = turn.progress_at
        self.could_go_on = any(map(can_go_on, self.frames[known:]))
        # The end may bring the last event; another attempt does not forget when the last one went on.
        self.could_go_on = self.could_go_on or turn.call.do in ("eof", "again")

    def _feed(self, data: bytes) -> None:
        self.reader.feed(data)
        try:
            for frame in iter(self.reader.next_frame, None):
                if self.end is None:
                    self._take(frame)
        except FrameTooLarge:
            pass

    def _take(self, frame: Frame) -> None:
        raw, kept, comment = self._before
        if frame.raw == b"\n" and raw.endswith(b"\r"):
            # The line end that was cut in two belongs to the frame it ends.
            self._before = (raw + b"\n", kept, comment)
        else:
            blank = not frame.raw.strip(b"\r\n")
            dropped_comment = self._case.config.comments == "drop" and frame.raw.startswith(b":")
            kept = not (dropped_comment or (blank and comment) or self._is_left_out(frame))
            self._before = (frame.raw, kept, dropped_comment)
            self.frames.append(frame)
            if ends(self._case.protocol, frame):
                self.end = frame
        if kept:
            self._parts.append(frame.raw)

    def _is_left_out(self, frame: Frame) -> bool:
        if self._case.protocol is not CHAT:
            return is_done(frame)
        payload = payload_of(frame)
        suppressed = self._case.config.suppress_usage and isinstance(payload, dict)
        return suppressed and payload.get("choices") == [] and bool(payload.get("usage"))


MARK = b"\1"
"""What stands for a keep-alive where only its place matters; no upstream sends it."""


def marked(turn: Turn) -> bytes:
    """What went out in one call, with a mark for the keep-alive: that is always the last."""
    data = turn.output.data
    if not any(isinstance(event, KeepAliveQueued) for event in turn.output.events):
        return data
    # The longest one that is there: its own blank line is not the upstream's.
    return _KEEP_ALIVE_AT_THE_END.sub(MARK, data)


_KEEP_ALIVE_AT_THE_END = re.compile(rb"(?:" + KEEP_ALIVE.pattern + rb")\Z")


def joined(data: bytes) -> bytes:
    """Bytes with every CR LF as one byte, for comparisons that the LF of one does not matter to."""
    return data.replace(b"\r\n", b"\r")


def can_go_on(frame: Frame) -> bool:
    """Whether a frame is more than a sign of life."""
    payload = payload_of(frame)
    kind = payload.get("type") if isinstance(payload, dict) else None
    return bool(frame.data) and kind not in ("ping", "keepalive")


def frames_of(data: bytes) -> list[Frame]:
    """The whole frames of bytes."""
    reader = FrameReader(max_event_size=None)
    reader.feed(data)
    return list(iter(reader.next_frame, None))


def raws(played: Played) -> list[bytes | None]:
    """The bytes of all events, which take no part in comparisons."""
    return [event.raw for event in played.events]


def comparable(event: Any) -> Any:
    """An event, so that equal ones compare equal: exceptions do not."""
    error = getattr(event, "exception", None)
    return event if error is None else (attrs.evolve(event, exception=None), type(error), error.code)


def comparable_turns(played: Played) -> list[Any]:
    return [
        (
            turn.now,
            turn.phase,
            turn.progress_at,
            turn.output._replace(events=[*map(comparable, turn.output.events)]),
        )
        for turn in played.turns
    ]


COMPLETES: dict[str, Callable[[Frame], bool]] = {
    "chat": is_done,
    "messages": lambda frame: payload_of(frame)["type"] == "message_stop",
    "responses": lambda frame: payload_of(frame)["type"] in ("response.completed", "response.done"),
}
"""Whether a frame that ends an answer says that it is complete."""


def lacks_nothing(protocol: Protocol[Any, Any], frames: Sequence[Frame]) -> bool:
    """Whether an answer lacks nothing but its last event or mark."""
    payloads = [payload for payload in map(payload_of, frames) if isinstance(payload, dict)]
    if protocol is CHAT:
        choices = [choice for payload in payloads for choice in payload.get("choices") or ()]
        finished = {choice["index"] for choice in choices if choice.get("finish_reason")}
        return bool(finished) and {choice["index"] for choice in choices} == finished
    reasons = [
        payload["delta"].get("stop_reason")
        for payload in payloads
        if payload.get("type") == "message_delta"
    ]
    return protocol is MESSAGES and not open_blocks(payloads) and any(reasons)


def open_blocks(payloads: Sequence[Any]) -> set[Any]:
    """The blocks of which a client saw the beginning and no end."""
    begun = set[Any]()
    for payload in payloads:
        if payload.get("type") == "content_block_start":
            begun.add(payload.get("index"))
        elif payload.get("type") == "content_block_stop":
            begun.discard(payload.get("index"))
    return begun


BEGINNINGS = {
    "chat": chat.role() + CHAT_CALLS[0],
    "messages": wire.start() + wire.block_start(0, text=""),
    "responses": responses.numbered(*TALK[:4]),
}
LOOPS: dict[str, tuple[bytes, ...]] = {
    "chat": (
        *(chat.text("a"), chat.text("abcdef " * 9), chat.delta(reasoning_content="hm"), CHAT_CALLS[1]),
        *(chat.delta(), chat.USAGE, b": c\n\n", b"id: 3\n\n", wire.FUTURE, b"data: {\n\n"),
    ),
    "messages": (
        *(
            wire.text(0, "a"),
            wire.text(0, "abcdef " * 9),
            wire.block_stop(0),
            wire.block_start(0, text=""),
        ),
        *(wire.PING, b": c\n\n", wire.FUTURE, b"data: {\n\n", wire.message_delta()),
    ),
    "responses": (
        *(responses.text("a"), responses.text("abcdef " * 9), responses.KEEPALIVE, responses.TEXT_DONE),
        *(b": c\n\n", wire.FUTURE, b"data: {\n\n", responses.lifecycle("in_progress")),
    ),
}
"""What can come again and again in an answer that grows long."""


@st.composite
def sound_cases(draw: st.DrawFn) -> Case:
    """Cases in which nothing is against the law, but the input may break off."""
    protocol = draw(st.sampled_from([CHAT, MESSAGES, RESPONSES]))
    config, plots = draw(configs(protocol)), PLOTS[protocol.name]
    frames = list(plots[draw(st.sampled_from([name for name in SOUND if name in plots]))])
    if protocol is RESPONSES:
        frames = list(_numbered(frames))
    for _ in range(draw(st.integers(0, 3))):
        frames.insert(draw(st.integers(0, len(frames))), draw(st.sampled_from([b": c\n\n", b": c\n"])))
    stream = draw(streams("", frames))
    calls: list[Call] = []
    for chunk in draw(cuts(stream)):
        calls += [Call("data", draw(WAITS) if len(calls) < 60 else 0.0, chunk)]
        calls += draw(st.sampled_from(MEANWHILE)) if len(calls) < 60 else ()
    return Case(protocol, config, ((*calls, *draw(st.sampled_from(ENDINGS))),), IDENTITY)


@st.composite
def loops(draw: st.DrawFn) -> Case:
    """A relay, what comes first, and what can come again and again behind that."""
    protocol = draw(st.sampled_from([CHAT, MESSAGES, RESPONSES]))
    config = attrs.evolve(draw(configs(protocol)), stall=None, hold=None, limits=Limits())
    chosen = draw(st.lists(st.sampled_from(LOOPS[protocol.name]), min_size=1, max_size=5))
    begin = (Call("data", data=BEGINNINGS[protocol.name]),)
    return Case(protocol, config, (begin, tuple(Call("data", data=frame) for frame in chosen)))
