"""Plans of all families, of one stage per domain: a generator for Hypothesis."""

import numpy as np
from hypothesis import strategies as st
from sharing import MODES, exchanges, shares
from strategies import STATIC_SCHEDULES

from des import Placement, Plan, StreamingDiLoCo, Topology, Workload

STREAMING = tuple(
    StreamingDiLoCo(steps_between=3, layers_per_fragment=2, overlap_steps=steps, bits_per_value=4.0)
    for steps in (0, 1)
)

_BUCKETS_BYTES = st.sampled_from([None, 2.0, 8.0, 1e9, 4e9])


@st.composite
def families(draw: st.DrawFn, topology: Topology, workload: Workload) -> Plan:
    """Pipelines, replicas and groups of either, of one stage per domain, with any exchange."""
    most = min(topology.num_domains, workload.num_microbatches)
    count = draw(st.integers(1, most))
    order = draw(st.permutations(range(topology.num_domains)))
    layouts = []
    for replica in range(count):
        own = order[replica::count]
        size = draw(st.integers(1, min(len(own), workload.num_layers)))
        cuts = draw(
            st.sets(
                st.integers(1, max(1, workload.num_layers - 1)),
                min_size=size - 1,
                max_size=size - 1,
            )
        )
        layers = np.diff([0, *sorted(cuts), workload.num_layers]).tolist()
        layouts.append(Placement.contiguous(own[:size], layers))
    mode = draw(st.sampled_from(MODES) | st.sampled_from(STREAMING))
    return Plan(
        placement=layouts[0],
        schedule=draw(st.sampled_from(STATIC_SCHEDULES)),
        replicas=tuple(layouts[1:]),
        shares=draw(shares(count, workload.num_microbatches)),
        synchronisation=mode,
        exchange=draw(exchanges(count, mode, _BUCKETS_BYTES)),
        activation_compression=draw(st.sampled_from([1.0, 3.0])),
    )
