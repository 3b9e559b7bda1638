"""The official Python clients: how each of them reads one answer, and what it shows of it.

Nothing here knows what was meant. An error that a client raises is a result, and so is what it had
shown before. ``python -m tests.clients.readers BASE_URL`` prints what LiteLLM reads, a line each: it is
slow to import and changes global settings, so it gets a process of its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import attrs
import openai

from tests.clients.meant import SCENARIOS

KEY = "none"
ASK: Any = [{"role": "user", "content": "Go on."}]


@attrs.define
class Sight:
    """What a client has shown; kept up while it reads, so that it outlives an error.

    Attributes:
        text, reasoning: All pieces, joined.
        tools: The calls in their order, each with id, name and arguments as text.
        usage: Input and output tokens.
        finish: The reason, or the status of a response.
        final: The final object of the SDK, where it makes one.
        error: What was raised, or reported in an event.
    """

    text: str = ""
    reasoning: str = ""
    tools: dict[Any, dict[str, str]] = attrs.field(factory=dict)
    usage: dict[str, int] | None = None
    finish: str | None = None
    final: Any = None
    error: dict[str, str | None] | None = None

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The calls with their arguments parsed."""
        return [
            {**call, "arguments": json.loads(call["arguments"] or "{}")} for call in self.tools.values()
        ]


@attrs.frozen
class Reader:
    """One way of one client.

    Attributes:
        api: The protocol.
        open: (client, model) → the stream, or what has to be awaited for it.
        see: (event, sight) → None.
        final: The method of the stream that gives the final object; empty if there is none.
    """

    api: str
    open: Callable[[Any], Any]
    see: Callable[[Any, Sight], None]
    final: str = ""


def see_chunk(chunk: Any, sight: Sight) -> None:
    """A chunk of Chat Completions, of OpenAI or of LiteLLM."""
    usage = getattr(chunk, "usage", None)
    if usage:
        sight.usage = {"input": usage.prompt_tokens, "output": usage.completion_tokens}
    for choice in chunk.choices:
        sight.text += choice.delta.content or ""
        sight.reasoning += getattr(choice.delta, "reasoning_content", None) or ""
        sight.finish = choice.finish_reason or sight.finish
        for piece in choice.delta.tool_calls or ():
            new = {"id": piece.id or "", "name": piece.function.name or "", "arguments": ""}
            call = sight.tools.setdefault(piece.index, new)
            call["arguments"] += piece.function.arguments or ""


def see_chat_event(event: Any, sight: Sight) -> None:
    """An event of the helper for Chat Completions, which has the chunks among them."""
    if event.type == "chunk":
        see_chunk(event.chunk, sight)


def see_response_event(event: Any, sight: Sight) -> None:
    """An event of Responses."""
    match str(getattr(event.type, "value", event.type)):
        case "response.output_text.delta":
            sight.text += event.delta
        case "response.reasoning_summary_text.delta":
            sight.reasoning += event.delta
        case "response.output_item.done" if event.item.type == "function_call":
            item = event.item
            call = {"id": item.call_id, "name": item.name, "arguments": item.arguments}
            sight.tools[event.output_index] = call
        case "response.completed" | "response.failed":
            see_response(event.response, sight)


def see_response(response: Any, sight: Sight) -> None:
    sight.finish = response.status
    if response.usage:
        usage = response.usage
        sight.usage = {"input": usage.input_tokens, "output": usage.output_tokens}
    if response.error:
        error = response.error
        members = error if isinstance(error, dict) else error.model_dump()
        sight.error = {"type": None, "code": members["code"], "message": members["message"]}


def see_message_event(event: Any, sight: Sight) -> None:
    """An event of Messages; the helper gives some of its own between them."""
    match event.type:
        case "message_start":
            usage = event.message.usage
            sight.usage = {"input": usage.input_tokens, "output": usage.output_tokens}
        case "content_block_start" if event.content_block.type == "tool_use":
            block = event.content_block
            sight.tools[event.index] = {"id": block.id, "name": block.name, "arguments": ""}
        case "content_block_delta":
            see_block_delta(event, sight)
        case "message_delta":
            sight.finish = event.delta.stop_reason
            sight.usage = {**(sight.usage or {}), "output": event.usage.output_tokens}


def see_block_delta(event: Any, sight: Sight) -> None:
    match event.delta.type:
        case "text_delta":
            sight.text += event.delta.text
        case "thinking_delta":
            sight.reasoning += event.delta.thinking
        case "input_json_delta":
            sight.tools[event.index]["arguments"] += event.delta.partial_json


USAGE: Any = {"include_usage": True}
READERS = {
    "openai chat raw": Reader(
        "chat",
        lambda client: client.chat.completions.create(
            model="m", messages=ASK, stream=True, stream_options=USAGE
        ),
        see_chunk,
    ),
    "openai chat helper": Reader(
        "chat",
        lambda client: client.chat.completions.stream(model="m", messages=ASK, stream_options=USAGE),
        see_chat_event,
        "get_final_completion",
    ),
    "openai responses raw": Reader(
        "responses",
        lambda client: client.responses.create(model="m", input="Go on.", stream=True),
        see_response_event,
    ),
    "openai responses helper": Reader(
        "responses",
        lambda client: client.responses.stream(model="m", input="Go on."),
        see_response_event,
        "get_final_response",
    ),
    "anthropic messages raw": Reader(
        "messages",
        lambda client: client.messages.create(model="m", messages=ASK, max_tokens=9, stream=True),
        see_message_event,
    ),
    "anthropic messages helper": Reader(
        "messages",
        lambda client: client.messages.stream(model="m", messages=ASK, max_tokens=9),
        see_message_event,
        "get_final_message",
    ),
}


def error_of(error: Exception) -> dict[str, str | None]:
    """An error that was raised, in the words of the vendor as far as the client kept them."""
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, dict) else {}
    members = inner if isinstance(inner, dict) else {}
    names = {name: members.get(name, getattr(error, name, None)) for name in ("type", "code")}
    return {**names, "message": str(error), "class": type(error).__name__}


def read(name: str, url: str) -> Sight:
    """Read one answer with a synchronous client.

    Args:
        name: A key of `READERS`.
        url: Where the API is, up to its version.
    """
    reader, sight = READERS[name], Sight()
    sdk: Any = anthropic.Anthropic if name.startswith("anthropic") else openai.OpenAI
    with sdk(api_key=KEY, base_url=_base(name, url), max_retries=0) as client:
        try:
            with reader.open(client) as stream:
                for event in stream:
                    reader.see(event, sight)
                if reader.final:
                    sight.final = getattr(stream, reader.final)().model_dump(mode="json")
        except (openai.OpenAIError, anthropic.AnthropicError, RuntimeError) as error:
            sight.error = sight.error or error_of(error)
    return sight


async def read_async(name: str, url: str) -> Sight:
    """Read one answer with an asynchronous client; the arguments are those of `read`."""
    reader, sight = READERS[name], Sight()
    sdk: Any = anthropic.AsyncAnthropic if name.startswith("anthropic") else openai.AsyncOpenAI
    async with sdk(api_key=KEY, base_url=_base(name, url), max_retries=0) as client:
        try:
            opened = reader.open(client)
            async with opened if reader.final else await opened as stream:
                async for event in stream:
                    reader.see(event, sight)
                if reader.final:
                    sight.final = (await getattr(stream, reader.final)()).model_dump(mode="json")
        except (openai.OpenAIError, anthropic.AnthropicError, RuntimeError) as error:
            sight.error = sight.error or error_of(error)
    return sight


def _base(name: str, url: str) -> str:
    """Anthropic's SDK writes the version itself."""
    return url.removesuffix("/v1") if name.startswith("anthropic") else url


def litellm_readers(litellm: Any) -> dict[str, Callable[[str, Sight], Any]]:
    """Ways of LiteLLM: (URL up to the version, sight) → the chunks it saw."""
    common = {"messages": ASK, "stream": True, "api_key": KEY, "num_retries": 0, "max_retries": 0}
    chat = {**common, "model": "openai/m", "stream_options": USAGE}
    messages = {**common, "model": "anthropic/m", "max_tokens": 9, "stream_options": USAGE}

    # A model that it does not know is asked for the whole answer instead.
    asked: dict[str, Any] = {"model": "openai/gpt-4o", "input": "Go on.", "stream": True, "api_key": KEY}

    def take(chunks: list[Any], chunk: Any, sight: Sight) -> None:
        chunks.append(chunk)
        see_chunk(chunk, sight)

    def sync(arguments: dict[str, Any], url: str, sight: Sight) -> list[Any]:
        chunks: list[Any] = []
        for chunk in litellm.completion(**arguments, api_base=url):
            take(chunks, chunk, sight)
        return chunks

    def asynchronous(arguments: dict[str, Any], url: str, sight: Sight) -> list[Any]:
        async def run() -> list[Any]:
            chunks: list[Any] = []
            async for chunk in await litellm.acompletion(**arguments, api_base=url):
                take(chunks, chunk, sight)
            return chunks

        return asyncio.run(run())

    def responses(url: str, sight: Sight) -> list[Any]:
        for event in litellm.responses(**asked, api_base=url):
            see_response_event(event, sight)
        return []

    def responses_asynchronous(url: str, sight: Sight) -> list[Any]:
        async def run() -> list[Any]:
            stream = await litellm.aresponses(**asked, api_base=url)
            async for event in stream:
                see_response_event(event, sight)
            return []

        return asyncio.run(run())

    return {
        "litellm chat sync": lambda url, sight: sync(chat, url, sight),
        "litellm chat async": lambda url, sight: asynchronous(chat, url, sight),
        "litellm messages sync": lambda url, sight: sync(messages, url.removesuffix("/v1"), sight),
        "litellm messages async": lambda url, sight: asynchronous(
            messages, url.removesuffix("/v1"), sight
        ),
        "litellm responses sync": responses,
        "litellm responses async": responses_asynchronous,
    }


def litellm_lines(base: str) -> Iterator[dict[str, Any]]:
    """Everything that LiteLLM reads."""
    # Otherwise it asks the network for a table of prices, and reads an .env file.
    os.environ["LITELLM_OFFLINE_MODE"] = "true"
    os.environ["LITELLM_MODE"] = "PRODUCTION"
    import litellm

    litellm.suppress_debug_info = True
    for scenario in SCENARIOS:
        for name, way in litellm_readers(litellm).items():
            sight = Sight()
            try:
                chunks = way(f"{base}/{scenario}/v1", sight)
                if chunks:
                    whole: Any = litellm.stream_chunk_builder(chunks)
                    sight.final = whole.model_dump(mode="json")
            except Exception as error:  # noqa: BLE001 - whatever it raises is the result
                sight.error = error_of(error)
            yield {"name": name, "scenario": scenario, **attrs.asdict(sight), "calls": sight.calls}


if __name__ == "__main__":
    for line in litellm_lines(sys.argv[-1]):
        sys.stdout.write(f"{json.dumps(line)}\n")
