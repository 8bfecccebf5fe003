"""All-to-alls of experts that pass while the GPU works on another microbatch."""

from dataclasses import replace

import pytest
from sharing import FREE, gpus
from sparse_jobs import EXPERTS, small, small_job, whole_plan

from des import Topology
from des.costs.bound_stages import bound_stages
from des.costs.layer_products import Spread
from des.costs.layer_times import layer_seconds, speed_of
from des.costs.stage_times import stage_times_s
from des.plan.corrections import NO_CORRECTIONS
from des.world.kernel_figures import FITTED_KERNELS


def passes(domain, workload):
    plan = whole_plan(workload, data=2, expert=2)
    (found,) = stage_times_s(
        workload, bound_stages(Topology.of([domain], []), plan), NO_CORRECTIONS
    )
    return found


@pytest.mark.parametrize(
    ("bandwidth", "flops_per_s"), [(1e-9, 1.0), (1e-3, 1.0), (1e-3, 2.0), (1e12, 1.0)]
)
def test_all_to_alls_hide_behind_what_the_gpu_does_in_a_layer(bandwidth, flops_per_s):
    """However long the host takes to launch it; a half of it in each direction.

    At 1e-3 bytes/s messages take some times what hides them.
    """
    workload = small_job(small(experts=EXPERTS))
    kernels = replace(FITTED_KERNELS, layer_launch_s=1.0)
    open_waits, hidden, free = (
        passes(
            replace(gpus("A", 2, inner), kernels=own, gpu_peak_flops_per_s=flops_per_s), workload
        )
        for inner, own in (
            ((bandwidth, 0.0), kernels),
            ((bandwidth, 0.0), replace(kernels, hides_all_to_alls=True)),
            (FREE, kernels),
        )
    )
    launched = replace(gpus("A", 2), kernels=replace(kernels, layer_launch_s=0.0))
    gpu = speed_of(replace(launched, gpu_peak_flops_per_s=flops_per_s))
    spread = {"tensor": 1, "data": 2, "exchange_s": 0.0, "spread": Spread(expert=2), "layer": 1}
    busy_s = sum(layer_seconds(workload.shape, gpu, **spread)[:3])

    for kind in ("F", "D"):
        wait_s = open_waits[kind] - free[kind]
        assert hidden[kind] - free[kind] == pytest.approx(max(0.0, wait_s - busy_s / 2), abs=1e-9)
    assert hidden["W"] == free["W"]
