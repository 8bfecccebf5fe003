"""Rows of the CSV files of measured runs: which columns count and what their cells may hold."""

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from scenarios.reproduce.cases import Count, NonNegativeNumber, PositiveNumber
from scenarios.reproduce.sailor_network import Bandwidth, bandwidth_of

_NO_ESTIMATE = ("", "n/a", "nan")


def _blank_is_none(value: object) -> object:
    return None if value == "" else value


Text = Annotated[str, Field(min_length=1)]
Coefficient = Annotated[float | None, BeforeValidator(_blank_is_none)]
ReplicaIds = Annotated[
    tuple[Annotated[int, Field(ge=0)], ...],
    BeforeValidator(lambda text: tuple(str(text).split(";"))),
]


class CsvForm(BaseModel):
    """A row of a file: its fields are the columns that count, the others are not looked at."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False, frozen=True)


class UsableForm(CsvForm):
    """Whether a run counts; of one that does not, nothing else is looked at."""

    usable: bool


class RunForm(UsableForm):
    """A run: its layout, what was measured and what published simulators estimate.

    An estimate that is blank, n/a or nan is none.
    """

    run_id: Text
    cluster: Text
    model: Text
    schedule: Literal["1F1B"]
    transformer_layers: Annotated[int, Field(ge=2)]
    pp: Count
    dp: Count
    tp: Count
    n_microbatches: Count
    measured_iter_s: PositiveNumber
    published: dict[str, PositiveNumber] = {}

    @model_validator(mode="before")
    @classmethod
    def _gather_published(cls, cells: dict[str, object]) -> dict[str, object]:
        estimates = {
            column: value
            for column, value in cells.items()
            if column.startswith("est_")
            and column.endswith("_s")
            and str(value).strip().lower() not in _NO_ESTIMATE
        }
        return {**cells, "published": estimates}

    @property
    def published_s(self) -> dict[str, float]:
        """Estimates by the simulator that made them. [s]"""
        return {
            column.removeprefix("est_").removesuffix("_s"): estimate_s
            for column, estimate_s in self.published.items()
        }


class StageForm(CsvForm):
    """A stage of a run on one type of GPU, for some of the replicas, and its profile.

    ``forward_s`` and ``backward_s`` are of one microbatch, ``update_s`` is the optimiser step as
    profiled, of another model (see ``update_share``, this stage's parameters over that model's).
    ``parameter_bytes`` are of one GPU, ``activation_bytes`` leave the stage with a microbatch over
    all its GPUs.
    """

    run_id: Text
    stage: Annotated[int, Field(ge=0)]
    gpu_type: Text
    replica_ids: ReplicaIds
    first_layer: Annotated[int, Field(ge=0)]
    n_layers: Count
    forward_s: PositiveNumber = Field(alias="fwd_s")
    backward_s: PositiveNumber = Field(alias="bwd_s")
    update_s: NonNegativeNumber = Field(alias="update_s_per_layer_profile")
    parameter_bytes: PositiveNumber = Field(alias="param_bytes_per_gpu")
    activation_bytes: NonNegativeNumber = Field(alias="send_act_bytes")
    p2p_c2: Coefficient
    p2p_c1: Coefficient
    p2p_c0: Coefficient
    ar_c2: Coefficient
    ar_c1: Coefficient
    ar_c0: Coefficient
    update_share: float = 0.0

    @property
    def next_stage(self) -> Bandwidth | None:
        """Bandwidth of its message to the next stage, which the last stage has none of."""
        return _bandwidth_if_given(self.p2p_c2, self.p2p_c1, self.p2p_c0)

    @property
    def replica(self) -> Bandwidth | None:
        """Bandwidth of one GPU to one of another replica, which a single replica has none of."""
        return _bandwidth_if_given(self.ar_c2, self.ar_c1, self.ar_c0)


def _bandwidth_if_given(c2: float | None, c1: float | None, c0: float | None) -> Bandwidth | None:
    return None if c2 is None or c1 is None or c0 is None else bandwidth_of(c2, c1, c0)


class LayerForm(CsvForm):
    """Size of one layer of a model, on each of its tensor-parallel GPUs."""

    model: Text
    tp: Count
    layer: Annotated[int, Field(ge=0)]
    params_floats: PositiveNumber


class LinkForm(CsvForm):
    """Bandwidth between some GPUs and as many others. [GB/s]"""

    src_gpu: Text
    dst_gpu: Text
    gpus_per_side: Count
    c2: float
    c1: float
    c0: float
    scope: Text
