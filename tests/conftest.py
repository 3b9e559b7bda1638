"""Tests that are not traced for coverage."""

from __future__ import annotations

from collections.abc import Iterator

import coverage
import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Leave a test marked ``untraced`` out of the coverage: being traced makes it three times slower.

    So is what it sets up. The marker of pytest-cov does nearly the same, but fails where coverage is
    switched off.
    """
    stopped: list[coverage.Coverage] = []
    # A worker of xdist is traced twice: coverage starts itself in it, and pytest-cov does so again.
    while _is_untraced(item) and (traced := coverage.Coverage.current()) is not None:
        traced.stop()
        stopped.append(traced)
    try:
        return (yield)
    finally:
        for traced in reversed(stopped):
            traced.start()


def _is_untraced(item: pytest.Item) -> bool:
    return item.get_closest_marker("untraced") is not None
