"""Pipelines for tests of schedules: unequal stages, slow borders and little memory."""

from hypothesis import strategies as st

from des.schedules import Border, Pipeline
from des.schedules.interleaved import loop_devices, wave_devices


@st.composite
def pipelines(
    draw: st.DrawFn, *, max_devices: int = 4, max_chunks: int = 3, max_microbatches: int = 8
) -> Pipeline:
    """Any pattern of stages on devices, each with memory for a microbatch on all of its stages.

    Times are whole, so that no two sums of them differ by a rounding.
    """
    num_devices = draw(st.integers(1, max_devices))
    devices_of = draw(st.sampled_from([loop_devices, wave_devices]))
    device_of_stage = devices_of(num_devices, draw(st.integers(1, max_chunks)))
    count = len(device_of_stage)
    each_stage = st.lists(st.integers(1, 9).map(float), min_size=count, max_size=count).map(tuple)
    time = st.integers(0, 6).map(float)
    border = st.builds(Border, transfer_s=time, latency_s=time)
    each_border = st.lists(border, min_size=count - 1, max_size=count - 1).map(tuple)
    whole, rest = draw(each_stage), draw(each_stage)
    least = [0.0] * num_devices
    for stage, device in enumerate(device_of_stage):
        least[device] += max(whole[stage], rest[stage])
    return Pipeline(
        num_microbatches=draw(st.integers(1, max_microbatches)),
        device_of_stage=device_of_stage,
        forward_s=draw(each_stage),
        input_gradient_s=draw(each_stage),
        weight_gradient_s=draw(each_stage),
        down=draw(each_border),
        up=draw(each_border),
        activation_bytes=whole,
        weight_input_bytes=rest,
        memory_bytes=tuple(room * draw(st.integers(1, 6)) for room in least),
    )
