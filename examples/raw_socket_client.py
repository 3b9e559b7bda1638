"""Prints a model's answer as it comes, read from a socket without an HTTP client, and how it ended.

``python examples/raw_socket_client.py URL [NAME=VALUE ...]``; the rest are headers. In which protocol
the answer is, it tells. The exit status is 0 if all of it came.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping

from sse_machines import Event, Outcome, Receiver, RemoteProtocolError, UnexpectedResponse
from sse_machines.adapters.asyncio import open_events
from sse_machines.chat import ChatCompletionChunk
from sse_machines.messages import ContentBlockDelta
from sse_machines.responses import OutputTextDelta

BODY = {"model": "sample", "stream": True, "messages": [{"role": "user", "content": "Oslo's weather?"}]}


async def show(url: str, headers: Mapping[str, str]) -> Outcome:
    receiver = Receiver.detecting(accumulate=True)
    try:
        async with open_events(url, receiver, headers=headers, content=BODY) as events:
            async for event in events:
                print(text_of(event), end="", flush=True)
    except UnexpectedResponse as error:
        print(f"[{error.message}: {error.sample}]")
        return Outcome.FAILED
    except RemoteProtocolError as error:
        print(f"\n[{error.message}]", error.__cause__ or "")
        return receiver.outcome
    error_sent = receiver.accumulator.error
    print(f"\n[{receiver.outcome}{f': {error_sent.message}' if error_sent else ''}]")
    return receiver.outcome


def text_of(event: Event) -> str:
    match event:
        case ChatCompletionChunk():
            return event.text()
        case OutputTextDelta(delta=text):
            return text
        case ContentBlockDelta(delta={"type": "text_delta", "text": str(text)}):
            return text
        case _:
            return ""


if __name__ == "__main__":
    outcome = asyncio.run(show(sys.argv[1], dict(field.split("=", 1) for field in sys.argv[2:])))
    sys.exit(outcome is not Outcome.COMPLETED)
