"""Names that users choose among, without the modules behind them, which are slow to load."""

from des.base.offers import offered_names

PLANNERS_GROUP = "eastwest.planners"
"""Group of the entry points by which other packages add planners."""

_OWN_PLANNERS = (
    "exact",
    "uniform",
    "proportional",
    "round_robin",
    "random",
    "single_domain",
    "data_parallel",
    "megatron",
    "zero1",
    "zero3",
    "diloco",
    "streaming_diloco",
    "mast",
    "atlas",
    "formula",
    "sailor",
    "sailor_overlapped",
    "sailor_with_parallelism",
    "dtfm",
    "crosspipe",
    "cp_sat",
    "search",
    "decide",
)
PLANNER_NAMES = (
    *_OWN_PLANNERS,
    *(name for name in offered_names(PLANNERS_GROUP) if name not in _OWN_PLANNERS),
)
"""Keys of `agents.planners.table.PLANNERS`."""

RULE_NAMES = (
    "static",
    "greedy",
    "H1",
    "H4",
    "H8",
    "H16",
    "H32",
    "H64",
    "FTL",
    "VI",
    "clairvoyant",
)
"""Keys of `agents.replanning.table.RULES`."""

SCHEDULER_NAMES = (
    "search_once",
    "search_h1",
    "search_h4",
    "search_h8",
    "search_greedy",
    "atlas_h8",
    "formula_h8",
    "search_mean",
    "search_worst_case",
    "search_ar1",
    "mast_epochs",
)
"""Keys of `agents.replanning.table.SCHEDULERS`."""

MOVING_NAMES = (
    "decide_learned",
    "decide_h1",
    "decide_h4",
    "decide_h8",
    "decide_h16",
    "decide_h32",
    "decide_h64",
)
"""Keys of `agents.hi_ppo.whole_proposals`: schedulers that decide among plans of all families."""

SEARCHING_NAMES = tuple(name for name in MOVING_NAMES if name.startswith("decide_h"))
"""Schedulers that search among families in every epoch and move by a fixed rule."""

POLICY = "hi_ppo"
"""The trained policies."""

SEARCH_BOUND = "search_bound"
"""The scheduler that searches bound plans of a trainer in every epoch."""

SPOT_RULES = ("greedy", "hysteresis", "survival", "seasonal", "sampled")
"""Keys of `agents.replanning.spot.table.METHODS`: which to hold of sites that come and go."""
