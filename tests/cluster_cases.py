"""Clusters for tests: a regular one of any size, and Hypothesis generators of crooked ones."""

from hypothesis import strategies as st

from des.devices.cluster import Block, Cluster, ClusterNode, Switch

LEVELS = ("zone", "block", "rack")


def regular_cluster(num_nodes: int, *, per_rack: int = 16, per_spine: int = 32) -> Cluster:
    """Nodes in racks below spines below one datacentre, 8 GPUs each."""
    num_racks = -(-num_nodes // per_rack)
    num_spines = -(-num_racks // per_spine)
    return Cluster(
        nodes=tuple(
            ClusterNode(name=f"n{at:05d}", switch=f"r{at // per_rack}", num_gpus=8)
            for at in range(num_nodes)
        ),
        switches=(
            *(
                Switch(name=f"r{at}", level="rack", parent=f"sp{at // per_spine}")
                for at in range(num_racks)
            ),
            *(Switch(name=f"sp{at}", level="spine", parent="dc") for at in range(num_spines)),
            Switch(name="dc", level="datacentre"),
        ),
    )


@st.composite
def clusters(draw: st.DrawFn, most_nodes: int = 8) -> Cluster:
    """Draw trees of up to three levels with nodes anywhere, and NVLink domains that may cross."""
    depth = draw(st.integers(0, 3))
    switches: list[Switch] = []
    for level in LEVELS[:depth]:
        above = [each.name for each in switches if each.level != level]
        for at in range(draw(st.integers(1, 3))):
            parent = draw(st.sampled_from(above)) if above else None
            switches.append(Switch(name=f"{level}{at}", level=level, parent=parent))
    names = [each.name for each in switches]
    blocks = [f"nvl{at}" for at in range(draw(st.integers(0, 3)))]
    places = st.sampled_from([*names, *names, None]) if names else st.none()
    domains = st.sampled_from([*blocks, None]) if blocks else st.none()
    nodes = tuple(
        ClusterNode(
            name=f"n{at}",
            switch=draw(places),
            block=draw(domains),
            num_gpus=draw(st.sampled_from([None, 4, 8])),
            server=draw(st.sampled_from([None, "gb200"])),
            labels=draw(st.sampled_from([(), (("kubernetes.io/arch", "arm64"),)])),
        )
        for at in range(draw(st.integers(1, most_nodes)))
    )
    return Cluster(
        nodes=nodes,
        switches=tuple(switches),
        blocks=tuple(Block(name=name) for name in blocks),
        block_sizes=draw(st.sampled_from([(), (2, 4)])),
    )
