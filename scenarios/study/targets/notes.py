"""Notes below the table of targets: its size, and the sources that measured it."""

from __future__ import annotations

from collections.abc import Sequence

from des.base.lazy import lazy_imports

with lazy_imports(__name__):
    from scenarios.study import trained_plans
    from scenarios.study.targets import time_and_utilisation
    from scenarios.study.targets.measurement_size import Scope
    from scenarios.study.targets.results_store import KeptGroup


def scope_note(scope: Scope) -> str:
    """Say on how much the table rests."""
    sizes = scope.sizes
    where = f"the world {scope.world.name}" if scope.world else f"{sizes.num_worlds} worlds a suite"
    where += " of real sites" if scope.has_sites else ""
    note = f"{where}, {sizes.num_draws} draws each, {sizes.num_epochs} epochs a draw; "
    firsts = [world for name in time_and_utilisation.SUITES for world in scope.worlds(name, 1)]
    note += trained_plans.devices_note(scope.trainer, firsts)
    if scope.is_short:
        return f"{note}: too few draws to claim anything"
    return note


def revisions_note(groups: Sequence[KeptGroup]) -> str:
    """Say so if not all was measured by the same source."""
    revisions = dict.fromkeys(str(group.source_revision) for group in groups)
    if len(revisions) == 1:
        return ""
    return f"; measured at the source revisions {', '.join(revisions)}"
