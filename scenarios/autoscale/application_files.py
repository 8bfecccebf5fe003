"""Files of a fleet: settings of the scaling manager by application, and what each pool starts with.

::

    applications:
      - application_id: chat
        scaling_manager: {scale_up_delay: 10.0, drain_check_interval: 1.0}
        trace: azure-2023-conv      # from here on for several applications on one cluster
        policy: predictive
        start_state: chat.yaml      # next to this file
        slo_ttft: 0.5
        slo_tbt: 0.1
        priority: 1

    prompt: {num_instances: 4, instance: h100-llama-3.3-70b-fp8-tp8, parallelism: 8}
    token: {num_instances: 2, instance: h100-llama-3.3-70b-fp8-tp4, parallelism: 4}
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from des.base.strict_forms import form_errors
from des.base.text_files import read_yaml
from des.serving.engines import engine_named
from des.serving.fleet_world import LAYOUTS_OF_POOLS

_Time = Annotated[float, Field(ge=0, strict=False)]


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)


class ManagerForm(_Form):
    """Settings of a scaling manager. [s]"""

    scale_up_delay: _Time = 10.0
    drain_check_interval: _Time = 1.0


_Objective = Annotated[float, Field(gt=0, strict=False)]


class ApplicationForm(_Form):
    """One application; what is not given is taken from the flags."""

    application_id: str | int
    scaling_manager: ManagerForm = ManagerForm()
    trace: str | None = None
    policy: str | None = None
    start_state: str | None = None
    slo_ttft: _Objective | None = None
    slo_tbt: _Objective | None = None
    priority: int = 0


class _ApplicationsForm(_Form):
    applications: tuple[ApplicationForm, ...]


class _PoolForm(_Form):
    num_instances: Annotated[int, Field(gt=0)]
    instance: str
    parallelism: Annotated[int, Field(gt=0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class StartState:
    """Instances of each pool at the start, and the name of the engine of each."""

    initial: dict[str, int]
    engines: dict[str, str]


def read_applications(path: Path) -> dict[str, ApplicationForm]:
    """Read all applications by their names.

    Raises
    ------
    ValueError
        If a field is wrong, a name comes twice, or there is none.
    """
    content = read_yaml(path)
    with form_errors(str(path)):
        form = _ApplicationsForm.model_validate(content, strict=False)
    found = {str(each.application_id): each for each in form.applications}
    if not found or len(found) < len(form.applications):
        raise ValueError(
            f"{path}: application_id must differ between at least 1 applications, got "
            f"{[each.application_id for each in form.applications]}"
        )
    return found


def read_manager(path: Path, application: str) -> ManagerForm:
    """Read the settings of one application.

    Raises
    ------
    ValueError
        If a field is wrong, or the application is not there; naming what is allowed.
    """
    found = read_applications(path)
    if application not in found:
        raise ValueError(
            f"{path}: application must be one of {', '.join(found)}, got {application!r}"
        )
    return found[application].scaling_manager


def read_start_state(path: Path) -> StartState:
    """Read what each pool starts with; nothing is assumed of a pool that is not there.

    Raises
    ------
    ValueError
        If a pool or a field is missing or wrong, or the parallelism is not that of the instance.
    """
    content = read_yaml(path)
    with form_errors(str(path)):
        pools = TypeAdapter(dict[str, _PoolForm]).validate_python(content)
    if tuple(pools) not in LAYOUTS_OF_POOLS:
        raise ValueError(
            f"{path}: must have a start state of the pools prompt and token, or of mixed, "
            f"got {list(pools)}"
        )
    for pool, each in pools.items():
        num_gpus = engine_named(each.instance).num_gpus
        if each.parallelism != num_gpus:
            raise ValueError(
                f"{path}: {pool}: parallelism must be {num_gpus}, for which {each.instance} has "
                f"times, got {each.parallelism}"
            )
    return StartState(
        initial={pool: each.num_instances for pool, each in pools.items()},
        engines={pool: each.instance for pool, each in pools.items()},
    )
