"""How faithful predictions are: errors against references, by regime, in tables and reports."""

from calibration.fidelity.errors import (
    Errors,
    Fidelity,
    fidelity,
    fidelity_by_regime,
    fidelity_table,
)

__all__ = ["Errors", "Fidelity", "fidelity", "fidelity_by_regime", "fidelity_table"]
