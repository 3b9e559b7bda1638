"""A gateway before one upstream, on Starlette and httpx: keep-alives, stalls, retries, a line a stream.

What ``sse-machines relay`` does, as the beginning of one's own. The status is sent with the first bytes:
an attempt that fails before them is made again, and is an HTTP error if that fails, too; behind them,
errors are events. ``python examples/gateway.py UPSTREAM PORT``
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncGenerator, AsyncIterator

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sse_machines import CHAT, MESSAGES, RESPONSES, Relay, RelayConfig
from sse_machines.adapters.asgi import EventStreamResponse
from sse_machines.adapters.asyncio import relayed
from sse_machines.relay import FailedBeforeOutput

PROTOCOLS = {"/v1/chat/completions": CHAT, "/v1/responses": RESPONSES, "/v1/messages": MESSAGES}
PASSED_ON = ("authorization", "x-api-key", "anthropic-version", "content-type", "x-chaos", "x-chaos-key")
ATTEMPTS = 2


def gateway(upstream: str, config: RelayConfig) -> Starlette:
    # How long silence may be, the relay decides.
    client = httpx.AsyncClient(base_url=upstream, timeout=httpx.Timeout(None, connect=10.0))

    async def answer(request: Request) -> Response:
        path, content = request.url.path, await request.body()
        headers = {name: request.headers[name] for name in PASSED_ON if name in request.headers}
        headers["accept-encoding"] = "identity"
        if not (await request.json()).get("stream"):
            whole = await client.post(path, content=content, headers=headers)
            return Response(whole.content, whole.status_code, media_type=whole.headers["content-type"])
        machine = Relay(PROTOCOLS[path], config, now=asyncio.get_running_loop().time())
        failures: list[FailedBeforeOutput] = []

        @contextlib.asynccontextmanager
        async def attempt() -> AsyncGenerator[AsyncIterator[bytes]]:
            async with client.stream("POST", path, content=content, headers=headers) as response:
                response.raise_for_status()
                yield response.aiter_raw()

        def retry(failure: FailedBeforeOutput) -> bool:
            failures.append(failure)
            return failure.retryable and len(failures) < ATTEMPTS

        async def stream() -> AsyncIterator[bytes]:
            try:
                async with relayed(attempt, machine, retry=retry) as body:
                    first = await anext(body)
                    yield b""  # Now it can be told what the status is.
                    yield first
                    async for data in body:
                        yield data
            finally:
                print(path, machine.outcome, machine.usage, machine.counters, flush=True)

        body = stream()
        await anext(body)
        if machine.outcome in {"aborted", "not_sse", "stalled", "truncated"} and failures:
            return JSONResponse(
                {"error": {"type": "api_error", "message": failures[-1].error.message}}, 502
            )
        return EventStreamResponse(body)

    return Starlette(routes=[Route(path, answer, methods=["POST"]) for path in PROTOCOLS])


if __name__ == "__main__":
    uvicorn.run(gateway(sys.argv[1], RelayConfig.hopbase()), port=int(sys.argv[2]), log_level="warning")
