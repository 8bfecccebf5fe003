"""Local plans by rule, to compare with."""

import numpy as np

from agents.hi_ppo.local.binding import iteration_s
from agents.hi_ppo.local.bound_plans import LocalPlan, quickly_bound, wires_of, work_of
from agents.hi_ppo.local.case import LocalCase
from agents.hi_ppo.local.features import observe
from agents.hi_ppo.local.options import Options, options_of


def largest_tensor(case: LocalCase, options: Options | None = None) -> LocalPlan:
    """Share layers over as many GPUs as can be, on GPUs in the order of their numbers.

    Of these plans the one that uses most GPUs, keeps most activations and has the smallest
    microbatches and most replicas: the usual choice without a look at the wires.

    Raises
    ------
    InfeasiblePlacementError
        If no option fits.
    """
    options = options_of(case) if options is None else options
    row = _largest_tensor(options)
    option = options.rows.options[row]
    binding = case.gpus.free[: option.parallelism.num_gpus]
    time_s = iteration_s(work_of(case, options, [row])[0], wires_of(case), np.array(binding))
    return LocalPlan(
        option=option,
        binding=binding,
        seconds_per_sequence=time_s / case.job.num_sequences,
    )


def largest_tensor_bound(case: LocalCase, options: Options | None = None) -> LocalPlan:
    """`largest_tensor` on the GPUs that `quick_binding` finds."""
    options = options_of(case) if options is None else options
    return quickly_bound(case, options, [_largest_tensor(options)])


def smallest_tensor_bound(case: LocalCase, options: Options | None = None) -> LocalPlan:
    """Share layers over as few GPUs as can be, with most GPUs in use; else as above."""
    options = options_of(case) if options is None else options
    rows = options.rows
    used = rows.tensor * rows.data * rows.pipeline
    row = int(np.lexsort((-rows.data, rows.microbatch_size, rows.is_full, -used, rows.tensor))[0])
    return quickly_bound(case, options, [row])


def least_estimate(
    case: LocalCase, options: Options | None = None, *, num_proposals: int = 1
) -> LocalPlan:
    """Bind the options of least `Observation.estimate_s` and take the quickest: nothing learnt."""
    options = options_of(case) if options is None else options
    order = np.argsort(observe(case, options).estimate_s, kind="stable")
    return quickly_bound(case, options, order[:num_proposals].tolist())


def _largest_tensor(options: Options) -> int:
    rows = options.rows
    used = rows.tensor * rows.data * rows.pipeline
    keys = (-rows.data, rows.microbatch_size, rows.is_full, -used, -rows.tensor)
    return int(np.lexsort(keys)[0])
