"""The cost of a change of placement, and how often one is forced."""

from dataclasses import dataclass

from des.base.checks import require_non_negative

RESTART_S = 11.4
"""Time in which a training stops, rebuilds its communicators and restarts.

Planning 0.1, clean-up 3, topology 1.25, communicators 4.5, model 2 and data loaders 0.5 s: the
steps of a reconfiguration as measured by F. Strati et al., "Sailor: Automating distributed training
over dynamic, heterogeneous, and geo-distributed clusters", SOSP'25.
"""

GPU_HOURS_PER_INTERRUPTION = 16_384 * 54 * 24 / 419
"""GPU hours between interruptions that were not planned: 419 of them in 54 days on 16,384 H100 (The
Llama 3 Herd of Models, arXiv 2407.21783, section 3.3.4). [h]"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """Cost of a change of placement, see `des.simulation.migration.migration_s`."""

    restart_s: float = RESTART_S
    pays_bytes: bool = True

    def __post_init__(self) -> None:
        require_non_negative("replacement", "restart_s", self.restart_s)
        if not isinstance(self.pays_bytes, bool):
            raise ValueError(
                f"replacement: pays_bytes must be True or False, got {self.pays_bytes!r}"
            )
