"""Where the machines meet I/O: one module for every way of waiting, and all of them thin.

`sse_machines.adapters.sync`, `.asyncio` and `.trio` read events from any source of bytes and relay one
answer from a source to a sink; `.asgi` and `.wsgi` fit the same into web servers. What they have in
common, and what is no I/O, stands in private modules beside them. Nothing here is imported by
``import sse_machines``.
"""
