"""Let a browser read an event stream through its own ``EventSource``.

Serve :data:`PAGE` on the origin of the stream and give its address to :func:`read`.
The query of that address says what to open and, besides ``message``, ``end`` and ``error``, what to
listen for: ``?url=/events&types=ping,content_block_delta``.
"""

from __future__ import annotations

import contextlib
import html
import json
import os
import re
import signal
import subprocess
import tempfile
from typing import cast

PAGE = """<!DOCTYPE html>
<meta charset="utf-8">
<link rel="icon" href="data:,">
<title>open</title>
<pre id="result"></pre>
<script>
const query = new URLSearchParams(location.search);
const types = (query.get("types") ?? "").split(",").filter((type) => type !== "");
const source = new EventSource(query.get("url") ?? "/events");
const seen = [];

function record(event) {
  // A lost connection is an event of type "error" too, but none that the server sent.
  if (event instanceof MessageEvent) seen.push([event.type, event.data, event.lastEventId]);
}

function finish() {
  source.close();
  document.getElementById("result").textContent = JSON.stringify(seen);
  document.title = "closed";
}

for (const type of new Set(["message", "end", "error", ...types])) source.addEventListener(type, record);
for (const type of ["end", "error"]) source.addEventListener(type, finish);
</script>
"""

_RESULT = re.compile(r'<pre id="result">([^<]+)</pre>')

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # The document is dumped when this much of the page's own time is over, and that time stands still
    # while a request is under way: so not before the page has closed the stream, however slow it is.
    "--virtual-time-budget=10000",
    "--dump-dom",
)


def read(chromium: str, url: str, timeout: float) -> list[list[str]]:
    """Open the page in a headless Chromium, and return ``[type, data, lastEventId]`` of each event.

    Args:
        chromium: The browser's executable.
        url: Where :data:`PAGE` is served.
        timeout: The seconds after which the browser is killed and ``TimeoutExpired`` raised.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as own:
        command = [chromium, *_FLAGS, f"--user-data-dir={own}/profile", url]
        # A browser that is killed leaves in there what it would have removed.
        document, complaints = _run(command, timeout, {**os.environ, "TMPDIR": own})
    found = _RESULT.search(document)
    if found is None:
        raise ValueError(f"the page has recorded nothing; the browser says: {complaints[-2000:]}")
    return cast("list[list[str]]", json.loads(html.unescape(found[1])))


def _run(command: list[str], timeout: float, env: dict[str, str]) -> tuple[str, str]:
    """What a program writes, both ways; no child of it is left behind."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, start_new_session=True
    ) as program:
        try:
            output, complaints = program.communicate(timeout=timeout)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
    return output.decode(), complaints.decode(errors="replace")
