"""Servers for tests: hand-made ones, random ones, and the same ones under other numbers."""

from collections.abc import Callable, Sequence

from hypothesis import strategies as st

from des.devices.patterns import hybrid_cube_mesh, nvswitch, pcie_two_numa
from des.devices.server import Gpu, Nic, Server

TOKENS = ("NV1", "NV2", "PIX", "PXB", "PHB", "NODE", "SYS")


def server_of_tokens(
    tokens: Sequence[Sequence[str]],
    *,
    numa: Sequence[tuple[int, ...]] | None = None,
    num_cards: int = 0,
) -> Server:
    """Server of a square of tokens: GPUs first, the last ``num_cards`` rows network cards."""
    num_gpus = len(tokens) - num_cards
    nodes = numa or [()] * num_gpus
    return Server(
        name="s",
        gpus=tuple(Gpu(number=gpu, numa_nodes=nodes[gpu]) for gpu in range(num_gpus)),
        nics=tuple(Nic(name=f"NIC{card}") for card in range(num_cards)),
        tokens=tuple(map(tuple, tokens)),
    )


def server_of_pairs(num_gpus: int, token: Callable[[int, int], str], **options: object) -> Server:
    """Server of a token for each pair, the lower place first."""
    tokens = [
        [
            "X" if one == other else token(min(one, other), max(one, other))
            for other in range(num_gpus)
        ]
        for one in range(num_gpus)
    ]
    return server_of_tokens(tokens, **options)  # type: ignore[arg-type]


def cube_mesh() -> Server:
    """DGX-1 with V100 as NVIDIA draws it."""
    return server_of_tokens(hybrid_cube_mesh(), numa=[(0,)] * 4 + [(1,)] * 4)


def switched(num_gpus: int = 8) -> Server:
    """Every GPU reaches each other over 12 NVLinks."""
    return server_of_tokens(nvswitch(num_gpus))


def pcie(num_gpus: int = 8) -> Server:
    """No NVLinks: pairs at a PCIe switch, half of the GPUs at each processor."""
    half = num_gpus // 2
    return server_of_tokens(pcie_two_numa(num_gpus), numa=[(0,)] * half + [(1,)] * half)


def renamed(server: Server, order: Sequence[int]) -> Server:
    """Same server whose rows come in another order; GPUs keep their numbers."""
    rows = [*order, *range(server.num_gpus, len(server.tokens))]
    return Server(
        name=server.name,
        gpus=tuple(server.gpus[place] for place in order),
        nics=server.nics,
        tokens=tuple(tuple(server.tokens[one][other] for other in rows) for one in rows),
    )


@st.composite
def servers(draw: st.DrawFn, *, most_gpus: int = 8, most_cards: int = 2) -> Server:
    """Random servers: any token of any pair, NUMA nodes, perhaps network cards."""
    num_gpus = draw(st.integers(1, most_gpus))
    num_cards = draw(st.integers(0, most_cards))
    count = num_gpus + num_cards
    tokens = [["X"] * count for _ in range(count)]
    for one in range(count):
        for other in range(one):
            allowed = TOKENS if one < num_gpus else TOKENS[2:]
            tokens[one][other] = tokens[other][one] = draw(st.sampled_from(allowed))
    nodes = st.lists(st.integers(0, 2), min_size=1, max_size=2, unique=True).map(tuple)
    numa = [draw(nodes) for _ in range(num_gpus)]
    return server_of_tokens(tokens, numa=numa, num_cards=num_cards)
