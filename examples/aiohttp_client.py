"""Prints a model's answer as it comes, read with aiohttp, and then how it ended.

``python examples/aiohttp_client.py URL [NAME=VALUE ...]``; the rest are headers. In which protocol the
answer is, it tells. The exit status is 0 if all of it came.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from http import HTTPStatus

import aiohttp

from sse_machines import Event, Outcome, Receiver, RemoteProtocolError
from sse_machines.adapters.asyncio import iter_events
from sse_machines.chat import ChatCompletionChunk
from sse_machines.messages import ContentBlockDelta
from sse_machines.responses import OutputTextDelta

BODY = {"model": "sample", "stream": True, "messages": [{"role": "user", "content": "Oslo's weather?"}]}
# What is compressed comes late, in lumps. How long a model may think is not for a socket to say.
HEADERS = {"accept-encoding": "identity"}
TIMEOUT = aiohttp.ClientTimeout(total=None, connect=10)


async def show(url: str, headers: Mapping[str, str]) -> Outcome:
    receiver = Receiver.detecting(accumulate=True)
    async with (
        aiohttp.ClientSession(timeout=TIMEOUT) as session,
        session.post(url, json=BODY, headers={**HEADERS, **headers}) as response,
    ):
        if response.status != HTTPStatus.OK:
            print(f"[{response.status}: {await response.text()}]")
            return Outcome.FAILED
        try:
            async with iter_events(response.content, receiver) as events:
                async for event in events:
                    print(text_of(event), end="", flush=True)
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
