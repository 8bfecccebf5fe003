"""Servers put together from GPUs that are all alike, network cards and NUMA nodes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from des.devices.patterns import square
from des.devices.server import Gpu, Nic, NumaNode, Server

_GIB = 2.0**30
_GBIT_PER_S = 1e9 / 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Cards:
    """Network cards of a kind: tokens by place of a GPU and a card, and of two cards."""

    count: int
    gbit_per_s: float
    to_gpu: Callable[[int, int], str]
    to_card: Callable[[int, int], str]


def assembled(
    classes: Sequence[Sequence[str]],
    *,
    gpu: Gpu,
    node_of_gpu: Sequence[int],
    nodes: Sequence[NumaNode] = (),
    cards: Cards | None = None,
) -> Server:
    """Put GPUs that are all alike, cards and NUMA nodes together."""
    num_gpus, num_cards = len(classes), cards.count if cards else 0

    def joined(one: int, other: int) -> str:
        if other < num_gpus or cards is None:
            return classes[one][other]
        if one < num_gpus:
            return cards.to_gpu(one, other - num_gpus)
        return cards.to_card(one - num_gpus, other - num_gpus)

    cpus_of = {node.number: node.cpus for node in nodes}
    rate = cards.gbit_per_s * _GBIT_PER_S if cards else None
    return Server(
        name="server",
        gpus=tuple(
            replace(gpu, number=number, numa_nodes=(node,), cpus=cpus_of.get(node, ()))
            for number, node in enumerate(node_of_gpu)
        ),
        nics=tuple(Nic(name=f"NIC{n}", bandwidth_bytes_per_s=rate) for n in range(num_cards)),
        tokens=tuple(tuple(row) for row in square(num_gpus + num_cards, joined)),
        numa_nodes=tuple(nodes),
    )


def gpu_like(model: str, nvlink_gb_per_s: float | None = None) -> Gpu:
    """GPU of a model, whatever its number; the rate is that of one NVLink, each way."""
    rate = nvlink_gb_per_s and nvlink_gb_per_s * 1e9
    return Gpu(number=0, model=model, nvlink_bytes_per_s=rate)


def two_processors(
    cores: int, memory_gib: float, *, threads: int = 2, parts: int = 1, far: int = 21
) -> tuple[NumaNode, ...]:
    """NUMA nodes of two processors.

    Parameters
    ----------
    cores, memory_gib
        Of one processor.
    threads
        Of a core; second threads are numbered after all cores.
    parts
        Nodes of a processor, at a distance of 12.
    far
        Distance of the other processor.
    """
    count, share = 2 * parts, cores // parts
    return tuple(
        NumaNode(
            number=node,
            cpus=tuple(
                (first, first + share - 1)
                for first in range(node * share, 2 * cores * threads, 2 * cores)
            ),
            memory_bytes=memory_gib / parts * _GIB,
            free_bytes=memory_gib / parts * _GIB,
            distances=tuple(
                10 if node == other else 12 if node // parts == other // parts else far
                for other in range(count)
            ),
        )
        for node in range(count)
    )


def halves(num_gpus: int) -> list[int]:
    """NUMA node of each GPU: half of them at each of two."""
    return [2 * gpu // num_gpus for gpu in range(num_gpus)]


def cards_of(
    count: int, gbit_per_s: float, token: str, far: Callable[[int, int], str], gpus_each: int = 1
) -> Cards:
    """Cards that one or more GPUs each have at their switch, by the token of two switches."""
    return Cards(
        count=count,
        gbit_per_s=gbit_per_s,
        to_gpu=lambda gpu, card: token if gpu // gpus_each == card else far(gpu // gpus_each, card),
        to_card=far,
    )


def within_halves(count: int, middle: str) -> Callable[[int, int], str]:
    """Tokens of two switches, half of which are at each of two processors."""
    return lambda one, other: middle if 2 * one // count == 2 * other // count else "SYS"
