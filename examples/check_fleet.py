"""Checks a folder of recorded streams on the machines of a Dask cluster, or on this one.

``python examples/check_fleet.py FOLDER [--scheduler ADDRESS]``. Prints how many answers ended in which
way, and then every file whose answer is not whole or deviates from its protocol. The workers have to see
the folder under the same name, and have the library. The exit status is 0 if there is no such file.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import distributed

from sse_machines import Outcome, collect

# Half of it has types, which no checker is content with.
dask: Any = distributed


class Finding(NamedTuple):
    """What is to be said of one recorded stream: plain values, since they travel."""

    path: str
    outcome: str
    faults: tuple[str, ...]


def check(path: str) -> Finding:
    """Judge one file. A function of what is in it alone, so any worker may do it, and more than once."""
    with Path(path).open("rb") as body:
        result = collect(iter(lambda: body.read(65536), b""))
    codes = dict.fromkeys(violation.code for violation in result.violations)
    error = () if result.error is None else (result.error.message,)
    return Finding(path, str(result.outcome), (*codes, *error))


def check_all(client: Any, folder: Path) -> list[Finding]:
    paths = sorted(str(path) for path in folder.resolve().rglob("*.sse"))
    # Without pure=False a file that was recorded anew would get the answer of the old one.
    findings: list[Finding] = client.gather(client.map(check, paths, pure=False, batch_size=1000))
    return findings


def report(findings: Iterable[Finding]) -> bool:
    findings = list(findings)
    for outcome, count in Counter(finding.outcome for finding in findings).most_common():
        print(f"{count:8} {outcome}")
    deviating = [one for one in findings if one.faults or one.outcome != Outcome.COMPLETED]
    for path, outcome, faults in deviating:
        print(f"{path}: {outcome}, {'; '.join(faults)}")
    return not deviating


def main() -> bool:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scheduler", help="the address of a running one, such as tcp://10.0.0.1:8786")
    options = parser.parse_args()
    if options.scheduler:
        with dask.Client(options.scheduler) as client:
            return report(check_all(client, options.folder))
    with (
        dask.LocalCluster(processes=False, dashboard_address=None) as cluster,
        dask.Client(cluster) as client,
    ):
        return report(check_all(client, options.folder))


if __name__ == "__main__":
    sys.exit(not main())
