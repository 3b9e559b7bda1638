"""A server that answers as Anthropic's does, with FastAPI: ``python examples/fastapi_server.py [PORT]``.

The model is a parrot. What it says becomes events, which are checked and written as they are made; who
does not ask for a stream gets what the events add up to.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from typing import Any

import uvicorn
from fastapi import FastAPI, Response
from fastapi.responses import JSONResponse

from sse_machines import MESSAGES, Sender, collect
from sse_machines.adapters.asgi import EventStreamResponse
from sse_machines.messages import Answer, AnyEvent

app = FastAPI()


@app.post("/v1/messages", response_model=None)
async def messages(request: dict[str, Any]) -> Response:
    if request.get("stream"):
        return EventStreamResponse(answer(request), MESSAGES)
    sender = Sender(MESSAGES)
    frames = [sender.send(event) async for event in answer(request)]
    return JSONResponse(collect(frames, MESSAGES).message)


async def answer(request: dict[str, Any]) -> AsyncIterator[AnyEvent]:
    words = re.findall(r"\S+\s*", str(request["messages"][-1]["content"]))
    made = Answer(id="msg_parrot", model=str(request.get("model")), input_tokens=len(words))
    for event in made.begin():
        yield event
    text = made.text()
    for event in text.begin():
        yield event
    async for word in parrot(words):
        for event in text.add(word):
            yield event
    for event in (*text.end(), *made.end(output_tokens=len(words))):
        yield event


async def parrot(words: list[str]) -> AsyncIterator[str]:
    for word in words:
        await asyncio.sleep(0.01)
        yield word


if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]) if len(sys.argv) > 1 else 8000)
