"""A browser's own ``EventSource`` reads what senders write."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest

from sse_machines import CHAT, MESSAGES, RESPONSES, encode_frame
from sse_machines._protocol import Protocol
from tests.clients import meant
from tests.clients.browser import PAGE, read
from tests.clients.serving import Page, uvicorn_server

# Being traced makes this three times slower, and the tests of the single rules reach every line.
pytestmark = pytest.mark.untraced

CHROMIUM = shutil.which("chromium")
API: dict[str, Protocol[Any]] = {"chat": CHAT, "responses": RESPONSES, "messages": MESSAGES}
END = encode_frame(event="end", data="")


@pytest.mark.skipif(CHROMIUM is None, reason="Debian's chromium is not installed")
def test_event_source() -> None:
    assert CHROMIUM is not None
    # With a comment between any two events.
    parts = [meant.ALL["keepalive", api].write for api in API]
    sent = [
        (event.type if protocol.named else "message", getattr(event, "payload", "[DONE]"))
        for api, protocol in API.items()
        for event in meant.whole(api)
    ]
    types = sorted({name for name, _ in sent} - {"message"})
    routes: dict[str, Any] = {
        "/": Page(PAGE),
        "/events": lambda: [*(chunk for write in parts for chunk in write()), END],
    }
    with uvicorn_server(routes) as base:
        seen = read(CHROMIUM, f"{base}/?url=/events&types={','.join(types)}", timeout=60)
    assert [name for name, _, _ in seen] == [name for name, _ in sent] + ["end"]
    for (_, data, last_id), (_, payload) in zip(seen, sent, strict=False):
        value = json.loads(data) if data != "[DONE]" else data
        assert without_number(value) == payload
        assert last_id == ""


def without_number(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: inner for key, inner in value.items() if key != "sequence_number"}
