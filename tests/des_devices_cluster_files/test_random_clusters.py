"""Random clusters in every format: what it can express comes back."""

import pytest
from cluster_cases import clusters, regular_cluster
from hypothesis import assume, given

from des.devices.cluster import Cluster
from des.devices.cluster_files.features import excess, leave_out
from des.devices.cluster_files.table import CLUSTER_FORMATS, format_of_text, write_cluster


def facts(cluster: Cluster) -> tuple[object, ...]:
    """All of a cluster, without the order of nodes and units."""
    return (
        sorted(cluster.nodes, key=lambda node: node.name),
        sorted(cluster.switches, key=lambda switch: switch.name),
        sorted(cluster.blocks, key=lambda block: block.name),
        cluster.block_sizes,
    )


@pytest.mark.parametrize("name", CLUSTER_FORMATS)
@given(cluster=clusters())
def test_expressible_parts_come_back(name, cluster):
    row = CLUSTER_FORMATS[name]
    try:
        lost = excess(name, cluster, row.expresses)
    except ValueError:
        assume(False)
    cluster = leave_out(cluster, lost)
    try:
        text = write_cluster(cluster, name)
    except ValueError as error:
        assert "needs" in str(error)  # noqa: PT017
        return
    again = row.read(text)

    assert facts(again) == facts(cluster)
    assert row.read(write_cluster(again, name, ())) == again
    assert CLUSTER_FORMATS[format_of_text(text)].read is row.read


@pytest.mark.parametrize("name", ["slurm-tree", "slurm-conf", "node-labels"])
def test_a_thousand_nodes_come_back(name):
    cluster = regular_cluster(1000)
    cluster = leave_out(cluster, excess(name, cluster, CLUSTER_FORMATS[name].expresses))

    assert facts(CLUSTER_FORMATS[name].read(write_cluster(cluster, name))) == facts(cluster)
