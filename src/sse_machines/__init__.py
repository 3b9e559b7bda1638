"""State machines for streamed LLM answers: bytes in, judged events out, without any transport.

See `Receiver` for a whole answer, `Relay` for a gateway's part in one, and `FrameReader` for the event
stream alone. The events of each protocol live in a module of their own: `sse_machines.chat`,
`sse_machines.responses` and `sse_machines.messages`; what a relay tells, in `sse_machines.relay`.
"""

from ._accumulator import Accumulator, ToolCall
from ._collect import Result, collect
from ._detect import detect
from ._errors import (
    AnswerTooLarge,
    FrameTooLarge,
    LocalProtocolError,
    NotAnEventStream,
    ProtocolError,
    RemoteProtocolError,
    StreamTruncated,
    UnexpectedResponse,
)
from ._frames import Frame, FrameReader, encode_frame
from ._meter import Identity, Usage
from ._protocol import Comment, EndOfStream, ErrorInfo, Event, Outcome, Unknown, Violation
from ._receiver import Limits, Receiver
from ._relay import Output, Relay
from ._relay_config import Drain, ErrorTexts, Hold, KeepAlive, RelayConfig, Stall
from ._relay_events import RelayOutcome
from ._sender import Sender
from .chat import PROTOCOL as CHAT
from .messages import PROTOCOL as MESSAGES
from .responses import PROTOCOL as RESPONSES

__all__ = [
    "CHAT",
    "MESSAGES",
    "RESPONSES",
    "Accumulator",
    "AnswerTooLarge",
    "Comment",
    "Drain",
    "EndOfStream",
    "ErrorInfo",
    "ErrorTexts",
    "Event",
    "Frame",
    "FrameReader",
    "FrameTooLarge",
    "Hold",
    "Identity",
    "KeepAlive",
    "Limits",
    "LocalProtocolError",
    "NotAnEventStream",
    "Outcome",
    "Output",
    "ProtocolError",
    "Receiver",
    "Relay",
    "RelayConfig",
    "RelayOutcome",
    "RemoteProtocolError",
    "Result",
    "Sender",
    "Stall",
    "StreamTruncated",
    "ToolCall",
    "UnexpectedResponse",
    "Unknown",
    "Usage",
    "Violation",
    "collect",
    "detect",
    "encode_frame",
]
