"""Prints a model's answer as it comes, read with urllib3, and then how it ended.

``python examples/urllib3_client.py URL [NAME=VALUE ...]``; the rest are headers. In which protocol the
answer is, it tells. The exit status is 0 if all of it came.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from http import HTTPStatus

import urllib3

from sse_machines import Event, Outcome, Receiver, RemoteProtocolError
from sse_machines.adapters.sync import iter_events
from sse_machines.chat import ChatCompletionChunk
from sse_machines.messages import ContentBlockDelta
from sse_machines.responses import OutputTextDelta

BODY = {"model": "sample", "stream": True, "messages": [{"role": "user", "content": "Oslo's weather?"}]}
# What is compressed comes late, in lumps. How long a model may think is not for a socket to say.
HEADERS = {"accept-encoding": "identity"}
TIMEOUT = urllib3.Timeout(connect=10, read=None)


def show(url: str, headers: Mapping[str, str]) -> Outcome:
    receiver = Receiver.detecting(accumulate=True)
    with (
        urllib3.PoolManager(timeout=TIMEOUT, retries=False) as pool,
        pool.request(
            "POST", url, json=BODY, headers={**HEADERS, **headers}, preload_content=False
        ) as response,
    ):
        if response.status != HTTPStatus.OK:
            print(f"[{response.status}: {response.data.decode()}]")
            return Outcome.FAILED
        try:
            # Not stream(): that holds back a body without chunks until 64 KiB of it are there.
            with iter_events(response, receiver) as events:
                for event in events:
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
    outcome = show(sys.argv[1], dict(field.split("=", 1) for field in sys.argv[2:]))
    sys.exit(outcome is not Outcome.COMPLETED)
