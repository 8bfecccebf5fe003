"""Times of the devices of a domain in a row, on the GPUs that they are bound to."""

import numpy as np

from agents.devices.binding_times import BindingWork, device_table
from agents.hi_ppo.local.alike_gpus import DeviceTimes, alike_times, device_figures
from agents.hi_ppo.local.bound_plans import server_gpus_of, wide_sums_s
from agents.hi_ppo.local.case import DomainCase, LocalCase
from agents.hi_ppo.local.option_rows import LocalOption
from agents.hi_ppo.local.options import pass_steps
from des.costs.stage_times import compute_rate_flops_per_s
from des.job.transformer import GRADIENT_BYTES


def device_times(case: DomainCase, option: LocalOption, binding: tuple[int, ...]) -> DeviceTimes:
    """Times of the devices of a domain, on the GPUs that they are bound to if these are known."""
    if not isinstance(case, LocalCase):
        return alike_times(case, option)
    shape, gpus = option.parallelism, server_gpus_of(case)
    setting = option.microbatch_size, option.recomputation
    layers, figures = device_figures(case, setting, shape.pipeline)
    message_bytes = case.job.workload(*setting).message_bytes / shape.data
    steps, wide_s = 1.0 * pass_steps(shape.tensor, layers), np.zeros(shape.pipeline)
    if shape.tensor > gpus.per_server:
        steps, wide_s = wide_s, wide_sums_s(gpus, shape.tensor, message_bytes) * layers
    work = BindingWork(
        tensor=shape.tensor,
        data=shape.data,
        pipeline=shape.pipeline,
        compute_s=wide_s,
        tensor_steps=steps,
        tensor_bytes=message_bytes / shape.tensor,
        data_steps=2 * (shape.data - 1),
        data_bytes=GRADIENT_BYTES * figures[:, 2] / shape.tensor / shape.data,
        message_bytes=message_bytes,
        fill=0,
    )
    places = np.array(binding) % gpus.per_server
    sums_s, message_s, wire_s, gradients_s = device_table(work, gpus, places).T
    rate = compute_rate_flops_per_s(case.domain, case.corrections, shape)
    return DeviceTimes(
        forward_s=figures[:, 0] / rate + sums_s,
        backward_s=figures[:, 1] / rate + sums_s,
        transfer_s=wire_s[1:],
        latency_s=(message_s - wire_s)[1:],
        gradients_s=float(gradients_s.max()),
    )
