"""A measurement, a key of a run and the bits of what is stored."""

from calibration.cases.case import Measurement
from calibration.cases.case_key import RunKey

MEASUREMENT = Measurement(makespan_s=0.1 + 0.2, communication_bytes=1e9, exposed_s=(1 / 3, -0.0))


def run_key(number=0, *, backend="aware", aggregation="harmonic", version="1"):
    """Make the key of a run of some case."""
    return RunKey(
        case_digest=f"{number:064x}", backend=backend, aggregation=aggregation, version=version
    )


def bits(measurement):
    """Write all figures so that no two floats look the same."""
    figures = (measurement.makespan_s, measurement.communication_bytes, *measurement.exposed_s)
    return [figure.hex() for figure in figures]
