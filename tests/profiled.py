"""Profiles of layers with times by hand, or with those that shapes give."""

import csv
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from des import Domain, build_workload
from des.costs.layer_times import head_seconds, layer_seconds, speed_of
from des.costs.profiled_times import measured_end, name_layer
from des.job.workload import ModelShape
from des.world.files.profile_files import NEEDED_COLUMNS
from des.world.layer_profiles import LayerProfile, ProfiledLayer, ProfilePoint
from des.worlds import WORLDS

HEADER = (
    "gpu,layer,hidden_size,tensor,microbatch_size,sequence,"
    "forward_s,input_gradient_s,weight_gradient_s"
)
SMALL_CSV = f"""\
# measured by hand
{HEADER}
h100,dense,4096,1,1,4096,0.010,0.012,0.008
h100,dense,4096,1,2,4096,0.018,0.022,0.015
h100,head,4096,1,1,4096,0.004,0.004,0.004
h100,head,4096,1,2,4096,0.007,0.007,0.007
"""


def point(
    layer: ProfiledLayer, place: tuple[int, int, int], times_s: tuple[float, float, float]
) -> ProfilePoint:
    """Point of a layer at tensor, microbatch_size and sequence."""
    tensor, microbatch_size, sequence = place
    forward_s, input_gradient_s, weight_gradient_s = times_s
    return ProfilePoint(
        layer=layer,
        tensor=tensor,
        microbatch_size=microbatch_size,
        sequence=sequence,
        forward_s=forward_s,
        input_gradient_s=input_gradient_s,
        weight_gradient_s=weight_gradient_s,
    )


def profile_of_shapes(
    shape: ModelShape,
    domain: Domain,
    *,
    tensors: Iterable[int] = (1,),
    sizes: Iterable[int],
    sequences: Iterable[int],
) -> LayerProfile:
    """Profile with the times that shapes give to the layers and the head of a model."""
    gpu = speed_of(replace(domain, profile=None))
    assert gpu is not None
    points = {}
    for tensor in tensors:
        for size in sizes:
            for sequence in sequences:
                there = replace(shape, batch_size=size, sequence=sequence)
                place = (tensor, size, sequence)
                for layer in range(shape.architecture.num_layers):
                    times_s = layer_seconds(
                        there, gpu, tensor=tensor, data=1, exchange_s=0.0, layer=layer
                    )
                    kind = name_layer(shape.architecture, layer)
                    points[kind, place] = point(kind, place, times_s[:3])
                head_s = head_seconds(there, gpu, tensor=tensor, data=1)
                head = measured_end(shape.architecture, "head")
                points[head, place] = point(head, place, head_s[:3])
    return LayerProfile(name="shapes.csv", gpu="h100", points=tuple(points.values()))


def profiled(domain: Domain, profile: LayerProfile) -> Domain:
    """Domain with measured times in place of those from shapes."""
    return replace(domain, profile=profile)


def write_profile(path: Path, domain: Domain, model: str) -> None:
    """Write a profile of the times of shapes that a model has on an H100."""
    shape = build_workload(model).shape
    assert shape is not None
    measured = profile_of_shapes(shape, domain, sizes=(1, 2), sequences=(4096,))
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(NEEDED_COLUMNS)
        for one in measured.points:
            writer.writerow(
                ("h100", one.layer.kind, one.layer.hidden_size, *map(int, one.place), *one.passes)
            )


def world_on_h100(path: Path, lines: str) -> Path:
    """Write the shipped world on H100 GPUs, with further keys in all domains."""
    text = WORLDS["east_central_west"].read_text("utf-8")
    own_gpus = re.sub(r"\n +(gpu_\w+|attainable_fraction):[^\n]*", "", text)
    path.write_text(own_gpus.replace("num_gpus: 8", f"num_gpus: 8\n      gpu: h100\n      {lines}"))
    return path
