"""A model: the shape of a decoder, from which layer times, memory and messages follow.

A preset is such a value in ``des/job/model_presets.py``; a YAML file with these fields is as good:
``eastwest simulate --model my_model.yaml``.
"""

from des import Workload
from des.job.architecture import Architecture
from des.job.models import build_workload

SMALL = Architecture(
    name="small",
    num_layers=24,
    hidden_size=2048,
    num_heads=16,
    num_key_value_heads=4,
    ffn_size=8192,
    vocabulary_size=50_257,
    gated_ffn=True,
    tied_embeddings=False,
)


def small_workload(num_microbatches: int = 16) -> Workload:
    """One iteration of the model."""
    return build_workload(
        SMALL,
        num_microbatches=num_microbatches,
        microbatch_size=1,
        sequence_length=2048,
        recomputation="flash",
    )
