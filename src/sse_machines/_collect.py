"""One call for a whole answer: bytes in, everything that is known of it out.

For scripts, tests and recorded streams, which have all of it. This module deliberately does not read
from anything but what it is given, and lets no error of the wire out: what went wrong is in the result.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from ._accumulator import Accumulator, ToolCall
from ._errors import RemoteProtocolError
from ._payload import Loads
from ._protocol import ErrorInfo, JSONObject, Outcome, Protocol, Violation
from ._receiver import Limits, Receiver

MAX_VIOLATIONS = 1000
"""Most deviations that a result lists."""

_DEFAULT_LIMITS = Limits()


@attrs.frozen(kw_only=True)
class Result:
    """An answer, as far as it came, and how it ended.

    Attributes:
        outcome: How it ended.
        message: The answer as the vendor's API sends it when nothing is streamed, as far as it came;
            None where nothing came of it.
        text: Its text.
        reasoning: Its reasoning, as far as the server shows it.
        tool_calls: The calls that the client has to answer. Only those that are ``complete`` may be.
        usage: The token counts as last told; None if none were.
        usage_final: Whether they count the whole answer.
        finish_reason: Why the model stopped, in the wire's word; None if it did not say.
        violations: The deviations that were tolerated; the first 1,000, if there are more.
        error: What an error event in the stream said, or why the stream could not be read on; None if
            all went well. Both have ``code`` and ``message``.
        accumulator: All the rest that is known of it, such as other choices.
    """

    outcome: Outcome
    message: JSONObject | None
    text: str
    reasoning: str
    tool_calls: tuple[ToolCall, ...]
    usage: JSONObject | None
    usage_final: bool
    finish_reason: str | None
    violations: tuple[Violation, ...]
    error: ErrorInfo | RemoteProtocolError | None
    accumulator: Accumulator = attrs.field(repr=False)


def collect(
    body: bytes | bytearray | memoryview | Iterable[bytes],
    protocol: Protocol[Any, Any] | None = None,
    *,
    strict: bool = False,
    limits: Limits = _DEFAULT_LIMITS,
    loads: Loads | None = None,
) -> Result:
    """Read an answer to its end.

    Args:
        body: All of its bytes, or anything that gives them piece by piece: a list, an open file, what an
            HTTP client iterates over.
        protocol: Which protocol it is in; by default the stream tells.
        strict: End at the first deviation.
        limits: What to be ready to keep.
        loads: A JSON parser to use, as for `Receiver`.

    Returns:
        What came of it, whatever the wire did: a cut, an error, garbage. An exception that ``body``
        raises while it is read passes through.
    """
    options: dict[str, Any] = {"strict": strict, "limits": limits, "loads": loads, "accumulate": True}
    receiver: Receiver[Any, Any]
    receiver = Receiver.detecting(**options) if protocol is None else Receiver(protocol, **options)
    pieces: Any = (body,) if isinstance(body, bytes | bytearray | memoryview) else body
    violations: list[Violation] = []
    failure: RemoteProtocolError | None = None
    try:
        for piece in pieces:
            receiver.receive_data(piece)
            _drain(receiver, violations)
        receiver.receive_eof()
        _drain(receiver, violations)
    except RemoteProtocolError as error:
        failure = error
    return _result(receiver, tuple(violations), failure)


def _drain(receiver: Receiver[Any, Any], violations: list[Violation]) -> None:
    for event in receiver:
        if type(event) is Violation and len(violations) < MAX_VIOLATIONS:
            violations.append(event)


def _result(
    receiver: Receiver[Any, Any], violations: tuple[Violation, ...], failure: RemoteProtocolError | None
) -> Result:
    accumulator: Accumulator = receiver.accumulator
    return Result(
        outcome=receiver.outcome,
        message=accumulator.snapshot() or None,
        text=accumulator.text,
        reasoning=accumulator.reasoning,
        tool_calls=accumulator.tool_calls,
        usage=accumulator.usage,
        usage_final=accumulator.usage_final,
        finish_reason=accumulator.finish_reason,
        violations=violations,
        error=accumulator.error or failure,
        accumulator=accumulator,
    )
