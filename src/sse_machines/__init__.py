"""State machines for streamed LLM answers: bytes in, judged events out, without any transport.

See `Receiver` for a whole answer and `FrameReader` for the event stream alone. The events of each
protocol live in a module of their own: `sse_machines.messages`.
"""

from ._errors import (
    FrameTooLarge,
    LocalProtocolError,
    NotAnEventStream,
    ProtocolError,
    RemoteProtocolError,
    StreamTruncated,
)
from ._frames import Frame, FrameReader, encode_frame
from ._protocol import Comment, EndOfStream, Event, Outcome, Unknown, Violation
from ._streams import Limits, Receiver
from .messages import PROTOCOL as MESSAGES

__all__ = [
    "MESSAGES",
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
    "StreamTruncated",
    "Unknown",
    "Violation",
    "encode_frame",
]
