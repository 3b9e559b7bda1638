"""The gateway's machine: `Relay`, what it can be told, and what it tells."""

from ._meter import Identity, Usage
from ._relay import Output, Relay
from ._relay_config import Drain, ErrorTexts, Hold, KeepAlive, RelayConfig, Stall
from ._relay_events import (
    Closed,
    Counters,
    Diagnostic,
    FailedBeforeOutput,
    KeepAliveQueued,
    OutputStarted,
    RelayEvent,
    RelayOutcome,
    Stalled,
    Synthesized,
    TailDropped,
    Terminal,
    UsageChanged,
)
from ._relay_tables import PHASES, Phase

__all__ = [
    "PHASES",
    "Closed",
    "Counters",
    "Diagnostic",
    "Drain",
    "ErrorTexts",
    "FailedBeforeOutput",
    "Hold",
    "Identity",
    "KeepAlive",
    "KeepAliveQueued",
    "Output",
    "OutputStarted",
    "Phase",
    "Relay",
    "RelayConfig",
    "RelayEvent",
    "RelayOutcome",
    "Stall",
    "Stalled",
    "Synthesized",
    "TailDropped",
    "Terminal",
    "Usage",
    "UsageChanged",
]
