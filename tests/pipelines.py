"""Pipelines for tests of schedules: unequal stages, slow borders and little memory."""

from dataclasses import dataclass

from hypothesis import strategies as st

from des.schedules import Border, Pipeline
from des.schedules.interleaved import loop_devices, wave_devices


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Strategies for figures of pipelines, memory in multiples of what a microbatch needs."""

    of_stage: st.SearchStrategy[float]
    transfer_s: st.SearchStrategy[float]
    latency_s: st.SearchStrategy[float]
    memory: st.SearchStrategy[float]


_SMALL = st.integers(0, 6).map(float)
WHOLE = Figures(
    of_stage=st.integers(1, 9).map(float),
    transfer_s=_SMALL,
    latency_s=_SMALL,
    memory=st.integers(1, 6),
)
"""Whole times, so that no two sums of them differ by a rounding."""

ANY = Figures(
    of_stage=st.floats(0.1, 9.0),
    transfer_s=st.floats(0.0, 3.0),
    latency_s=st.floats(0.0, 9.0),
    memory=st.floats(1.0, 6.0),
)


@st.composite
def pipelines(
    draw: st.DrawFn,
    *,
    max_devices: int = 4,
    max_chunks: int = 3,
    max_microbatches: int = 8,
    figures: Figures = WHOLE,
) -> Pipeline:
    """Any pattern of stages on devices, each with memory for a microbatch on all of its stages.

    An input gradient may need more memory than its forward pass.
    """
    num_devices = draw(st.integers(1, max_devices))
    devices_of = draw(st.sampled_from([loop_devices, wave_devices]))
    device_of_stage = devices_of(num_devices, draw(st.integers(1, max_chunks)))
    count = len(device_of_stage)
    each_stage = st.lists(figures.of_stage, min_size=count, max_size=count).map(tuple)
    border = st.builds(Border, transfer_s=figures.transfer_s, latency_s=figures.latency_s)
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
        memory_bytes=tuple(room * draw(figures.memory) for room in least),
    )
