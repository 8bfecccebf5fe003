"""Sums over the layers of a workload, as kernels read them."""

import numpy as np

from des import Workload
from des.compiled.many.layout import Real


def sums_table(workload: Workload) -> Real:
    """Sums over the layers before each, and over all, as kernels read them, (L + 1, columns)."""
    sums = workload.sums_before
    columns = (
        sums.forward_flops,
        sums.backward_flops,
        sums.input_gradient_flops,
        sums.weight_gradient_flops,
        sums.activation_bytes,
        sums.weight_input_bytes,
        sums.num_parameters,
    )
    return np.ascontiguousarray(np.array(columns, dtype=np.float64).T)
