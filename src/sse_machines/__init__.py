"""State machines for streamed LLM answers: bytes in, judged events out, without any transport.

See `Receiver` for a whole answer and `FrameReader` for the event stream alone. The events of each
protocol live in a module of their own: `sse_machines.chat`, `sse_machines.responses` and
`sse_machines.messages`.
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
)
from ._frames import Frame, FrameReader, encode_frame
from ._protocol import Comment, EndOfStream, Event, Outcome, Unknown, Violation
from ._receiver import Limits, Receiver
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
    "EndOfStream",
    "Event",
    "Frame",
    "FrameReader",
    "FrameTooLarge",
    "Limits",
    "LocalProtocolError",
    "NotAnEventStream",
    "Outcome",
    "ProtocolError",
    "Receiver",
    "RemoteProtocolError",
    "Result",
    "Sender",
    "StreamTruncated",
    "ToolCall",
    "Unknown",
    "Violation",
    "collect",
    "detect",
    "encode_frame",
]
