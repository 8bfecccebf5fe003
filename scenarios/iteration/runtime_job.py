"""Values that the reference runtime runs: stages, messages and exchanges of a step."""

from collections.abc import Mapping

from des.base.strict_forms import StrictForm, form_errors
from des.base.strict_json import parse_json
from des.world.runtime import Receives

RUNTIME = "runtime.json"
OPERATIONS: Mapping[Receives, str] = {"first": "receives_first.csv", "stock": "receives_stock.csv"}
"""Files with the operations of each rank, by the place where receives are posted."""

FORMAT = "eastwest-runtime 1"


class RuntimeStage(StrictForm):
    """A stage: its replica and layers, and the times of its passes F, B, I and W."""

    replica: int
    first_layer: int
    num_layers: int
    durations_s: list[float]


class RuntimeBucket(StrictForm):
    """Layers that the stages of all replicas exchange, with figures of each stage.

    A stage's exchange begins when its last pass has ``left_fractions`` to go, or ``after_step``.
    ``inner_sums_s`` are the times of sums inside the device, before and after it. [s] With a
    ``due_step``, from 1, it is exchanged after that step of each period, else after the last.
    """

    first_layer: int
    num_layers: int
    num_bytes: float
    stages: list[int]
    left_fractions: list[float]
    inner_sums_s: list[list[float]]
    after_step: bool
    due_step: int = 0


class RuntimeJob(StrictForm):
    """Job of the reference runtime, but for the operations of its ranks.

    ``shares`` are the microbatches of each replica, whose tokens weigh its changes in an exchange
    after every ``steps_between`` steps; those of fragments come back ``overlap_steps`` steps later.
    """

    format: str
    stages_of_rank: list[list[int]]
    stages: list[RuntimeStage]
    shares: list[int]
    message_bytes: float
    steps_between: int
    bits_per_value: float
    overlap_steps: int = 0
    buckets: list[RuntimeBucket]
    update_s: float


def read_runtime_job(text: str) -> RuntimeJob:
    """Read the job of a file.

    Raises
    ------
    ValueError
        Naming the file, the field, what is allowed and what came.
    """
    content = parse_json(text)
    with form_errors(RUNTIME):
        job = RuntimeJob.model_validate(content)
    if job.format != FORMAT:
        raise ValueError(f"{RUNTIME}: format must be {FORMAT}, got {job.format!r}")
    return job


def rank_of_stages(job: RuntimeJob) -> list[int]:
    """Return the rank of each stage.

    Raises
    ------
    ValueError
        If a stage has none, or several.
    """
    rank_of = {stage: rank for rank, own in enumerate(job.stages_of_rank) for stage in own}
    count = sum(map(len, job.stages_of_rank))
    if not sorted(rank_of) == list(range(count)) == list(range(len(job.stages))):
        raise ValueError(
            f"{RUNTIME}: stages_of_rank must have each of {len(job.stages)} stages once, "
            f"got {job.stages_of_rank}"
        )
    return [rank_of[stage] for stage in range(count)]
