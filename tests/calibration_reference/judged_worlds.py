"""Worlds and jobs that ``EastWest/Placement-v0`` judges by ASTRA-sim."""

import dataclasses

import numpy as np
from reference_programs import small_case

from agents.flat.env import PlacementEnv
from calibration.cases.case import Measurement, PlacementCase
from calibration.measuring.measure import measure_case
from des import Placement, Plan, Topology, UniformLaw

BACKENDS = ("astra-unaware", "astra-aware", "astra-pairwise")
LAW = UniformLaw(bandwidth_fluctuation=0.3, latency_jitter=0.2)
STILL = small_case("overlapped").topology
"""Equal links; a message takes 0.25 s on the wire and 0.05 s more."""
JOB = small_case(num_microbatches=2).workload
"""Three layers of 1 s there and 2 s back."""
FIRST, *OTHERS = STILL.links
MOVING = dataclasses.replace(
    STILL,
    links=(dataclasses.replace(FIRST, bandwidth_bytes_per_s=2.0**28), *OTHERS),
    dynamics=LAW,
)
"""One link of a quarter of the bandwidth, and all of them move from epoch to epoch."""
SPREAD, PAIRED = np.array([0, 1, 2]), np.array([1, 1, 2])


def arguments(**changes: object) -> dict[str, object]:
    return {"topology": MOVING, "workload": JOB, "epochs_per_episode": 3, **changes}


def make(backend: str, **changes: object) -> PlacementEnv:
    return PlacementEnv(**arguments(backend=backend, **changes))


def measured(topology: Topology, backend: str, *domains: int, **options: object) -> Measurement:
    """Ask the adapter itself."""
    plan = Plan(placement=Placement(domain_of_layer=domains), schedule="1f1b")
    case = PlacementCase(topology=topology, workload=JOB, plan=plan)
    return measure_case(case, backend.removeprefix("astra-"), **options)


def play(env: PlacementEnv, seed: int) -> list[object]:
    observation, at_reset = env.reset(seed=seed)
    rows: list[object] = [observation.tolist(), at_reset]
    for action in (SPREAD, PAIRED, SPREAD):
        observation, *rest = env.step(action)
        rows += [observation.tolist(), *rest]
    return rows
