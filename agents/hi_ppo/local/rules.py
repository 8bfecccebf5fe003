"""Local plans by rule, to compare with."""

import numpy as np

from agents.hi_ppo.local.bound_plans import LocalPlan, in_order, quickly_bound
from agents.hi_ppo.local.case import LocalCase
from agents.hi_ppo.local.features import observe
from agents.hi_ppo.local.options import Options
from agents.hi_ppo.local.policy import LocalNet, option_scores


def largest_tensor(case: LocalCase, options: Options) -> LocalPlan:
    """Share layers over as many GPUs as can be, on GPUs in the order of their numbers.

    Of these plans the one that uses most GPUs, keeps most activations and has the smallest
    microbatches and most replicas: the usual choice without a look at the wires.
    """
    return in_order(case, options, _largest_tensor(options))


def largest_tensor_bound(case: LocalCase, options: Options) -> LocalPlan:
    """`largest_tensor` on the GPUs that `quick_binding` finds."""
    return quickly_bound(case, options, [_largest_tensor(options)])


def smallest_tensor_bound(case: LocalCase, options: Options) -> LocalPlan:
    """Share layers over as few GPUs as can be, with most GPUs in use; else as above."""
    rows = options.rows
    used = rows.tensor * rows.data * rows.pipeline
    row = int(np.lexsort((-rows.data, rows.microbatch_size, rows.is_full, -used, rows.tensor))[0])
    return quickly_bound(case, options, [row])


def least_estimate(case: LocalCase, options: Options, *, num_proposals: int = 1) -> LocalPlan:
    """Bind the options of least `Observation.estimate_s` and take the quickest: nothing learnt."""
    order = np.argsort(observe(case, options).estimate_s, kind="stable")
    return quickly_bound(case, options, order[:num_proposals].tolist())


def best_scored(
    case: LocalCase, options: Options, *, policy: LocalNet, num_proposals: int = 1
) -> LocalPlan:
    """Bind the options of the highest scores of a policy and take the quickest."""
    order = np.argsort(-option_scores(policy, observe(case, options)), kind="stable")
    return quickly_bound(case, options, order[:num_proposals].tolist())


def random_options(
    case: LocalCase, options: Options, *, rng: np.random.Generator, num_proposals: int = 1
) -> LocalPlan:
    """Bind random options that fit, all equally likely, and take the quickest."""
    return quickly_bound(case, options, rng.permutation(len(options))[:num_proposals].tolist())


def _largest_tensor(options: Options) -> int:
    rows = options.rows
    used = rows.tensor * rows.data * rows.pipeline
    keys = (-rows.data, rows.microbatch_size, rows.is_full, -used, -rows.tensor)
    return int(np.lexsort(keys)[0])
