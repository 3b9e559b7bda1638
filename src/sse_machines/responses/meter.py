"""OpenAI Responses: how much there is of an answer, and what it cost.

Nearly everything of this protocol is told several times: in pieces, as a whole text, in a part, in an
item and in the response. A character counts once, when it is first told. For that the lengths of the
items that are open are remembered, and of items that are done their frames, which a response that breaks
off has to name. Nothing is judged here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, cast

from .._frames import DEFAULT_MAX_EVENT_SIZE, Frame
from .._meter import (
    LIFE,
    OUTPUT,
    PROGRESS,
    TERMINAL,
    Identity,
    Meter as _Meter,
    take_life,
    take_terminal,
    take_unknown,
)
from .._payload import PayloadError, dumps, loads
from .._protocol import Comment, Done as DoneMark, JSONObject, Unknown
from .accumulator import ARGUMENTS, GROWS, LIFECYCLE, OUTCOMES, REPLACES, Place, called_with
from .events import (
    Created,
    Error,
    InProgress,
    Keepalive,
    OutputItemAdded,
    OutputItemDone,
    Queued,
)
from .moves import Memory
from .roles import RETRYABLE, LifecycleEvent
from .writing import Answer

_TEXT, _REASONING, _ARGUMENTS = "text", "reasoning", "arguments"
_KINDS = {"message": _TEXT, "reasoning": _REASONING}
"""What the text of an item is; that of all others is what a tool is called with."""
_PIECES: tuple[Any, ...] = tuple(GROWS)
_EMPTY = tuple(_KINDS)
"""Items that are nothing until there is text in them."""

Handler = Callable[[Any, Any], int]
Slot = tuple[str, Any]
"""Where in an item a text grows: in its content, its summary or elsewhere, and the index there."""


def _kind_of(kind: Any) -> str:
    """What the text of an item of a type is."""
    return _KINDS.get(kind, _ARGUMENTS) if type(kind) is str else _ARGUMENTS


def _slot_of(place: Place) -> tuple[str, str]:
    """What the text in a place is, and the name of its slots."""
    kind = place.item["type"]
    return _kind_of(kind), place.path[0]


_GROWING = {cls: (*_slot_of(place), place.key) for cls, place in GROWS.items()}
"""What an event adds to, the name of its slots, and the member that tells which one."""


def _piece_handler(cls: type) -> Handler:
    kind, group, member = _GROWING[cls]

    def take(meter: Meter, event: Any) -> int:
        piece = event.delta
        if not piece:
            return LIFE
        # The payload tells the same as the fields, which a repetition leaves to be looked up.
        payload = event.payload
        slot = (group, payload.get(member) or 0)
        meter.add_piece(payload.get("output_index") or 0, kind, slot, len(piece))
        return OUTPUT

    return take


def _whole_handler(place: Place) -> Handler:
    kind, group = _slot_of(place)

    def take(meter: Meter, event: Any) -> int:
        payload: Any = event.payload
        value: Any = payload.get(place.value)
        if type(value) is dict:
            value = value.get("refusal" if value.get("type") == "refusal" else "text")
        if type(value) is not str:
            return PROGRESS
        slot = (group, payload.get(place.key) or 0)
        return meter.add_whole(payload.get("output_index") or 0, kind, slot, len(value))

    return take


def _texts_of(item: Any) -> Iterator[tuple[str, Slot, int]]:
    """What is in an item: what it is, the slot it grew in, and its length."""
    if type(item) is not dict:
        return
    for group in ("content", "summary"):
        parts = item.get(group)
        for index, part in enumerate(parts if type(parts) is list else ()):
            text: Any = (part.get("text") or part.get("refusal")) if type(part) is dict else None
            if type(text) is str:
                yield _kind_of(item.get("type")), (group, index), len(text)
    for index, text in enumerate(called_with(item)):
        if type(text) is str:
            yield _ARGUMENTS, (ARGUMENTS[item["type"]][0], index), len(text)


def _is_writable(name: str, value: Any) -> bool:
    try:
        dumps({name: value}).encode()
    except (PayloadError, UnicodeEncodeError):
        return False
    return True


def _item_in(raw: bytes) -> Any:
    """The item that a frame has."""
    return loads(Frame.parse(raw).data or "").get("item")


class Meter(_Meter):
    """Counts what events tell first. Usage is final where the response has ended with it."""

    __slots__ = ("_done", "_room", "open")

    places: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "input": ("input_tokens",),
        "cached_input": ("input_tokens_details", "cached_tokens"),
        "cache_write": ("input_tokens_details", "cache_write_tokens"),
        "output": ("output_tokens",),
        "reasoning": ("output_tokens_details", "reasoning_tokens"),
        "total": ("total_tokens",),
    }
    retryable: ClassVar[Mapping[str | int, bool]] = RETRYABLE
    terminals: ClassVar[frozenset[type]] = frozenset((*OUTCOMES, Error))
    unread: ClassVar[frozenset[bytes]] = frozenset(event.type.encode() for event in _PIECES)
    error_codes: ClassVar[frozenset[str] | None] = frozenset(
        (
            *("server_error", "rate_limit_exceeded", "invalid_prompt", "data_residency_mismatch"),
            *("bio_policy", "misalignment_policy_violation", "vector_store_timeout", "invalid_image"),
            *("invalid_image_format", "invalid_base64_image", "invalid_image_url", "image_too_large"),
            *("image_too_small", "image_parse_error", "image_content_policy_violation"),
            *("invalid_image_mode", "image_file_too_large", "unsupported_image_media_type"),
            *("empty_image_file", "failed_to_download_image", "image_file_not_found"),
        )
    )

    def __init__(self) -> None:
        super().__init__()
        # output_index → slot → how much of it is counted, for the items that are open.
        self.open: dict[Any, dict[Slot, int]] = {}
        # The frames of the items that are done, as long as they are no more than one event may be.
        self._done: list[bytes] = []
        self._room = DEFAULT_MAX_EVENT_SIZE

    def take_run(self, run: Sequence[Any], memory: Memory) -> bool:  # noqa: ARG002
        """Count the pieces of deltas that are alike: those of one text."""
        first = run[0]
        kind, group, member = _GROWING[type(first)]
        length = 0
        for event in run:
            length += len(event.delta)
        payload = first.payload
        slot = (group, payload.get(member) or 0)
        self.add_piece(payload.get("output_index") or 0, kind, slot, length)
        return length > 0

    @staticmethod
    def opening(identity: Identity) -> Created:
        """The ``response.created``: clients know nothing of a response that fails without one."""
        answer = Answer(id=identity.id, model=identity.model, created_at=identity.created)
        return cast("Created", next(answer.begin()))

    def recall(self, memory: Memory) -> None:
        """Let the response have the items that are done, and the usage that was told last.

        What cannot be written, such as half of a surrogate pair, is left out: an error has to come out.
        """
        if memory.response is None:
            return
        told: JSONObject = {"output": [_item_in(raw) for raw in self._done]} if self._done else {}
        if self.usage is not None:
            told["usage"] = self.usage
        response: JSONObject = {**memory.response, **told}
        memory.response = {name: told for name, told in response.items() if _is_writable(name, told)}

    def add_piece(self, index: Any, kind: str, slot: Slot, length: int) -> None:
        """Count the next piece of a text."""
        slots = self.open.get(index)
        if slots is None:
            slots = self.open[index] = {}
        slots[slot] = slots.get(slot, 0) + length
        self.add(kind, length)

    def add(self, kind: str, length: int) -> None:
        """Count characters."""
        if kind == _TEXT:
            self.text += length
        elif kind == _REASONING:
            self.reasoning += length
        else:
            self.arguments += length

    def add_whole(self, index: Any, kind: str, slot: Slot, length: int) -> int:
        """Count what is new in the whole of a text of which a part may be counted."""
        slots = self.open.setdefault(index, {})
        new = length - slots.get(slot, 0)
        if new <= 0:
            return PROGRESS
        slots[slot] = length
        self.add(kind, new)
        return OUTPUT

    def _take_added(self, event: OutputItemAdded) -> int:
        self._take_item(event.output_index, event.item)
        return PROGRESS if event.item.get("type") in _EMPTY else OUTPUT

    def _take_done(self, event: OutputItemDone) -> int:
        shows = self._take_item(event.output_index, event.item)
        self.open.pop(event.output_index, None)
        raw = event.raw or b""
        self._room -= len(raw)
        if self._room < 0:
            # A response that has only some of its items would be wrong; one that has none is just short.
            self._done.clear()
        else:
            self._done.append(raw)
        return shows

    def _take_item(self, index: int, item: Any) -> int:
        """Count what is new in an item."""
        return max([PROGRESS, *(self.add_whole(index, *text) for text in _texts_of(item))])

    def _take_lifecycle(self, event: LifecycleEvent) -> int:
        if self._take_usage(event.response.get("usage")):
            self.usage_final = type(event) in self.terminals
        return LIFE if type(event) in (InProgress, Queued) else PROGRESS

    def _take_end(self, event: LifecycleEvent) -> int:
        self._take_lifecycle(event)
        output = event.response.get("output")
        if not (self.text or self.reasoning or self.arguments) and type(output) is list:
            for index, item in enumerate(output):
                self._take_item(index, item)
        return TERMINAL

    handlers: ClassVar[Mapping[type, Handler]] = {
        **dict.fromkeys(LIFECYCLE, _take_lifecycle),
        **dict.fromkeys(OUTCOMES, _take_end),
        **{cls: _piece_handler(cls) for cls in GROWS},
        **{cls: _whole_handler(place) for cls, place in REPLACES.items()},
        OutputItemAdded: _take_added,
        OutputItemDone: _take_done,
        Error: take_terminal,
        # Servers repeat the state of a response that waits, only to show that they live.
        Keepalive: take_life,
        DoneMark: take_life,
        Unknown: take_unknown,
        Comment: take_life,
    }
