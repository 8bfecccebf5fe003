"""Times of devices that are bound to GPUs known one by one, in compiled code.

Formulas and figures are those of `agents.hi_ppo.local.times.device_times`, but for rounding.
"""

import numpy as np

from agents.hi_ppo.local.alike_gpus import DeviceTimes, device_figures
from agents.hi_ppo.local.binding import BindingWork, device_s_of
from agents.hi_ppo.local.bound_plans import ways_out_of, wires_of
from agents.hi_ppo.local.case import DomainCase, LocalCase
from agents.hi_ppo.local.option_rows import LocalOption
from agents.hi_ppo.local.options import pass_steps
from agents.hi_ppo.local.server_times import WaysOut, border_s_of, gradients_s_of
from agents.hi_ppo.local.times import device_times
from des.base.jit import kernel
from des.costs.stage_times import compute_rate_flops_per_s
from des.devices.rings import Real, Whole, Wires
from des.job.transformer import GRADIENT_BYTES


def quick_device_times(
    case: DomainCase, option: LocalOption, binding: tuple[int, ...]
) -> DeviceTimes:
    """Times of the devices of a domain; compiled where tensor groups stay inside known servers."""
    shape = option.parallelism
    if not isinstance(case, LocalCase) or shape.tensor > case.gpus.num_gpus:
        return device_times(case, option, binding)
    setting = option.microbatch_size, option.recomputation
    layers, figures = device_figures(case, setting, shape.pipeline)
    message_bytes = case.job.workload(*setting).message_bytes / shape.data
    work = BindingWork(
        tensor=shape.tensor,
        data=shape.data,
        pipeline=shape.pipeline,
        compute_s=np.zeros(shape.pipeline),
        tensor_steps=pass_steps(shape.tensor, layers).astype(np.float64),
        tensor_bytes=message_bytes / shape.tensor,
        data_steps=2 * (shape.data - 1),
        data_bytes=GRADIENT_BYTES * figures[:, 2] / shape.tensor / shape.data,
        message_bytes=message_bytes,
        fill=0,
    )
    places = np.array(binding) % case.gpus.num_gpus
    found = np.empty((4, shape.pipeline))
    _write_times(work, wires_of(case), ways_out_of(case), places, found)
    sums_s, wire_s, flight_s, gradients_s = found
    rate = compute_rate_flops_per_s(case.domain, case.corrections, shape)
    return DeviceTimes(
        forward_s=figures[:, 0] / rate + sums_s,
        backward_s=figures[:, 1] / rate + sums_s,
        transfer_s=wire_s[1:],
        latency_s=flight_s[1:],
        gradients_s=float(gradients_s.max()),
    )


@kernel
def _write_times(
    work: BindingWork, wires: Wires, ways: WaysOut, binding: Whole, found: Real
) -> None:
    """Write times of devices (4, p): tensor sums of one pass, wire, flight, sums of gradients."""
    for device in range(work.pipeline):
        message_s, wire_s = border_s_of(work, wires, ways, binding, device)
        found[0, device] = device_s_of(work, wires, binding, device)
        found[1, device], found[2, device] = wire_s, message_s - wire_s
        found[3, device] = gradients_s_of(work, wires, ways, binding, device)
