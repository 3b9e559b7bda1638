"""``python -m sse_machines``: the same as the ``sse-machines`` command."""

from .cli import main

if __name__ == "__main__":
    raise SystemExit(main())
