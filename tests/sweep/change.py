"""One change of a dump."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Edits = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Change:
    """One change: its kind, where it is (`orders-0@12`), and the edits that make it."""

    kind: str
    at: str
    edits: Edits

    @property
    def name(self) -> str:
        """For a folder and a cluster."""
        return re.sub(r"[^\w@.-]", "_", f"{self.kind}.{self.at}")
