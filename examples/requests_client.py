"""Prints a model's answer as it comes, read with requests, and then how it ended.

``python examples/requests_client.py URL [NAME=VALUE ...]``; the rest are headers. In which protocol the
answer is, it tells. The exit status is 0 if all of it came.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import requests

from sse_machines import Event, Outcome, Receiver, RemoteProtocolError
from sse_machines.adapters.sync import iter_events
from sse_machines.chat import ChatCompletionChunk
from sse_machines.messages import ContentBlockDelta
from sse_machines.responses import OutputTextDelta

BODY: dict[str, Any] = {
    "model": "sample",
    "stream": True,
    "messages": [{"role": "user", "content": "Oslo's weather?"}],
}
# What is compressed comes late, in lumps. How long a model may think is not for a socket to say.
HEADERS = {"accept-encoding": "identity"}
TIMEOUT = (10, None)


def show(url: str, headers: Mapping[str, str]) -> Outcome:
    receiver = Receiver.detecting(accumulate=True)
    with requests.post(
        url, json=BODY, headers={**HEADERS, **headers}, stream=True, timeout=TIMEOUT
    ) as response:
        if response.status_code != requests.codes.ok:
            print(f"[{response.status_code}: {response.text}]")
            return Outcome.FAILED
        try:
            # Not iter_content(None): that holds back a body without chunks until its end.
            with iter_events(response.raw, receiver) as events:
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
