"""OpenAI Chat Completions: ``PROTOCOL``, its events, and the types of the JSON in them."""

from .._protocol import Comment, Done, EndOfStream, ErrorInfo, Outcome, Protocol, Unknown, Violation
from . import grammar as _grammar
from .accumulator import Accumulator, ChoiceSoFar
from .events import (
    AnyEvent,
    AudioDelta,
    ChatCompletionChunk,
    Choice,
    CustomToolCall,
    Delta,
    Error,
    FinishReason,
    FunctionCall,
    Logprobs,
    TokenLogprob,
    ToolCallDelta,
    Usage,
    decode as _decode,
    recognises as _recognises,
)
from .grammar import Call, ChoiceState, Member, State
from .meter import Meter as _Meter
from .repeat import LEARN as _LEARN, repeat as _repeat, repeats as _repeats
from .writing import Answer, interruption as _interruption

PROTOCOL: Protocol[AnyEvent, Accumulator] = Protocol(
    name="chat",
    module=__name__,
    tables=(_grammar.STREAM, _grammar.CHOICE, _grammar.CALL, _grammar.ENVELOPE),
    decode=_decode,
    recognises=_recognises,
    repeat=_repeat,
    repeats=_repeats,
    learn=_LEARN,
    moves=_grammar.MOVES,
    remember=_grammar.REMEMBER,
    memory=_grammar.Memory,
    outcomes=_grammar.OUTCOMES,
    named=False,
    error=Error,
    accumulator=Accumulator,
    meter=_Meter,
    interruption=_interruption,
)
"""The protocol as a value, for ``Receiver(PROTOCOL)``; also ``sse_machines.CHAT``."""

__all__ = [
    "PROTOCOL",
    "Accumulator",
    "Answer",
    "AnyEvent",
    "AudioDelta",
    "Call",
    "ChatCompletionChunk",
    "Choice",
    "ChoiceSoFar",
    "ChoiceState",
    "Comment",
    "CustomToolCall",
    "Delta",
    "Done",
    "EndOfStream",
    "Error",
    "ErrorInfo",
    "FinishReason",
    "FunctionCall",
    "Logprobs",
    "Member",
    "Outcome",
    "State",
    "TokenLogprob",
    "ToolCallDelta",
    "Unknown",
    "Usage",
    "Violation",
]
