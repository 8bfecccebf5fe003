"""Planners to compare a policy with: each looks at one decision and returns a plan."""

from collections.abc import Mapping
from types import MappingProxyType

from agents.decision.problem import Planner
from agents.planners.dtfm.dtfm import dtfm
from agents.planners.exact.cp_sat import cp_sat
from agents.planners.exact.exact import exact
from agents.planners.rules.atlas import atlas
from agents.planners.rules.crosspipe import crosspipe
from agents.planners.rules.data_parallel import data_parallel
from agents.planners.rules.diloco import diloco, streaming_diloco
from agents.planners.rules.formula import formula
from agents.planners.rules.mast import mast
from agents.planners.rules.megatron import megatron
from agents.planners.rules.single_domain import single_domain
from agents.planners.rules.static import proportional, random, round_robin, uniform
from agents.planners.rules.zero import zero1, zero3
from agents.planners.sailor.sailor import sailor, sailor_overlapped, sailor_with_parallelism

PLANNERS: dict[str, Planner] = {
    "exact": exact,
    "uniform": uniform,
    "proportional": proportional,
    "round_robin": round_robin,
    "random": random,
    "single_domain": single_domain,
}
"""Planners of a placement alone, by the name users write."""

BASELINES: Mapping[str, Planner] = MappingProxyType(
    {
        **PLANNERS,
        "data_parallel": data_parallel,
        "megatron": megatron,
        "zero1": zero1,
        "zero3": zero3,
        "diloco": diloco,
        "streaming_diloco": streaming_diloco,
        "mast": mast,
        "atlas": atlas,
        "formula": formula,
    }
)
"""Planners of milliseconds by name, those of whole plans too; with `depth.with_best_depth` any of
them searches the schedules to choose from."""

SEARCHERS: Mapping[str, Planner] = MappingProxyType(
    {
        "sailor": sailor,
        "sailor_overlapped": sailor_overlapped,
        "sailor_with_parallelism": sailor_with_parallelism,
        "dtfm": dtfm,
        "crosspipe": crosspipe,
        "cp_sat": cp_sat,
    }
)
"""Planners that search for up to many seconds, and choose among schedules by themselves.

`crosspipe` makes a schedule of its own, of halved backward passes, which nobody else may choose.
"""
