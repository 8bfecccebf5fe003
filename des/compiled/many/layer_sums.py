"""Sums over the layers of a workload, as kernels read them."""

from collections.abc import Sequence

import numpy as np

from des.compiled.many.layout import Real
from des.costs.layer_work import least_work_before, work_before
from des.job.workload import Workload
from des.world.domain import Domain


def work_table(workload: Workload, domains: Sequence[Domain]) -> Real:
    """Work of the passes F, B, D and W before each layer and of all, (L + 1, 4 K). [FLOP]

    Every domain is one device with four columns, see `des.costs.layer_work.work_before`.
    """
    columns = [column for domain in domains for column in work_before(workload, domain)]
    return np.ascontiguousarray(np.array(columns, dtype=np.float64).T)


def sums_table(workload: Workload, domains: Sequence[Domain]) -> Real:
    """Sums over the layers before each, and over all, as kernels read them, (L + 1, 7).

    Of the passes' work it is the least of all domains, layer by layer; where their times follow
    from FLOPs that is the same in all.
    """
    sums = workload.sums_before
    rest = (sums.activation_bytes, sums.weight_input_bytes, sums.num_parameters)
    columns = (*least_work_before(workload, domains), *rest)
    return np.ascontiguousarray(np.array(columns, dtype=np.float64).T)
