"""Subject of the calibration of a training: from its flags, its world and its job."""

import os
from dataclasses import replace
from pathlib import Path
from typing import cast

from calibration import FittedFor, ReferenceRunError, WorkloadFamily, read_corrections
from calibration.fit.fit import require_enough
from calibration.loop import LoggedSubject, LoopBackend, Subject
from calibration.measuring.environment import BINARIES_VARIABLE
from des import NO_CORRECTIONS, Corrections, Topology, Workload
from des.base.command import UsageError
from scenarios.train.training_config import TrainingFlags

MICROBATCH_SIZES = (1, 2, 4)
"""The first size is trained on; by the others bandwidths and latencies can be told apart."""


MOST_PACKET_MICROBATCHES = 4
"""Most microbatches of placements that ns-3 simulates: its run time grows with the bytes sent."""


def subject_of(
    flags: TrainingFlags, *, topology: Topology, workload: Workload, schedule: str
) -> Subject | LoggedSubject | str:
    """Say what is calibrated and how, or why nothing is.

    Raises
    ------
    ValueError
        If the requested reference cannot run what is trained or is not there, or there are
        fewer placements than a fit needs.
    """
    wanted = flags.calibration
    if (wanted == "runs") is (flags.calibration_logs is None):
        raise UsageError(
            "calibration_logs must be given with --calibration runs, and with it alone; got "
            f"{flags.calibration_logs} with {wanted}"
        )
    if wanted == "none":
        return "as requested"
    if flags.calibration_logs is not None:
        return LoggedSubject(topology=topology, logs=flags.calibration_logs)
    if wanted == "auto" and flags.corrections is not None:
        return "as factors were given with --corrections"
    require_enough(flags.calibration_placements)
    folder = os.environ.get(BINARIES_VARIABLE)
    backend = "pairwise" if wanted == "auto" else wanted
    if backend == "ns3" and workload.num_microbatches > MOST_PACKET_MICROBATCHES:
        workload = replace(workload, num_microbatches=MOST_PACKET_MICROBATCHES)
    num_microbatches = workload.num_microbatches
    try:
        return Subject(
            topology=topology,
            workload=workload,
            schedule=schedule,
            family=WorkloadFamily(
                models=(flags.model,),
                num_layers=flags.num_layers,
                num_microbatches=(num_microbatches, num_microbatches),
                microbatch_sizes=MICROBATCH_SIZES,
                sequence_lengths=(flags.sequence_length,),
                schedules=(schedule,),
            ),
            backend=cast(LoopBackend, backend),  # checked with the flags
            binaries=Path(folder) if folder and backend not in ("pairwise", "ns3") else None,
            num_placements=flags.calibration_placements,
            seed=flags.seed,
        )
    except ReferenceRunError as error:
        owner = "calibration" if backend == "ns3" else BINARIES_VARIABLE
        raise ValueError(f"{owner}: {error}") from error
    except ValueError as error:
        if wanted != "auto":
            raise
        return f"as what is trained cannot be calibrated: {error}"


def first_factors(flags: TrainingFlags, topology: Topology, workload: Workload) -> Corrections:
    """Factors that a training begins with; errors where they do not fit what is trained."""
    if flags.corrections is None:
        return NO_CORRECTIONS
    fitted_for = FittedFor.of(workload, topology, network=flags.network)
    return read_corrections(flags.corrections, used_for=fitted_for)
