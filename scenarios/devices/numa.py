"""Bind a process near its GPUs: CPUs of their NUMA nodes, memory that fits, the numactl line."""

from dataclasses import dataclass

from des.base.checks import prefixed_errors
from des.base.flags import option, required
from des.base.quantities import SIZE_BYTES, parse_quantity
from des.devices.numa import memory_nodes, numactl_line, optimal_cpus
from des.devices.server import Server
from des.devices.spans import format_spans, numbers_in, parse_spans, spans_of
from scenarios.devices.placement_flags import tell
from scenarios.devices.sources import ServerFlags, server_of

EXAMPLES = """\
examples:
  python -m scenarios.devices numa --simulate dgx-a100 --gpu-numbers 0 --count 16
  python -m scenarios.devices numa --file topo.txt,numactl.txt --gpu-numbers 2,3 --memory 64GiB
  python -m scenarios.devices numa --file topo.txt,/sys --gpu-numbers 1 --count 8 --taken 0-7

memory is checked where the free memory of NUMA nodes is known: numactl --hardware or sysfs
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(ServerFlags):
    """Flags of a binding."""

    gpu_numbers: tuple[int, ...] = required("numbers of the GPUs that the process drives")
    count: int | None = option(
        None, "CPUs of the process", default_text="all of the GPUs' own NUMA nodes"
    )
    taken: str = option("", "CPUs of other processes, such as 0-7,48", default_text="none")
    memory: str | None = option(
        None, "memory that the process needs, such as 64GiB", default_text="not checked"
    )
    json: bool = option(False, "print the binding as JSON, and nothing else")


def run(config: Config) -> None:
    """Print the binding."""
    server = server_of(config)
    with prefixed_errors("--taken "):
        taken = numbers_in(parse_spans(config.taken)) if config.taken else ()
    with prefixed_errors("--memory "):
        needed_bytes = None if config.memory is None else parse_quantity(config.memory, SIZE_BYTES)
    cpus = optimal_cpus(server, config.gpu_numbers, config.count, taken=taken)
    is_known = all(gpu.numa_nodes for gpu in server.gpus if gpu.number in config.gpu_numbers)
    nodes = (
        memory_nodes(server, config.gpu_numbers, needed_bytes)
        if is_known or needed_bytes is not None
        else ()
    )
    line = numactl_line(cpus, nodes)
    if config.json:
        tell({"gpus": config.gpu_numbers, "cpus": cpus, "memory_nodes": nodes, "command": line})
    else:
        tell(f"{_where(server, cpus)}{_memory(nodes)}{line} COMMAND\n")


def _where(server: Server, cpus: tuple[int, ...]) -> str:
    """Return a line for the CPUs of each NUMA node; one for all where nodes are not known."""
    left, lines = set(cpus), []
    for node in server.numa_nodes:
        there = left & set(numbers_in(node.cpus))
        if there:
            left -= there
            lines.append(f"CPUs of NUMA node {node.number}: {format_spans(spans_of(there))}\n")
    if left:
        lines.append(f"CPUs: {format_spans(spans_of(left))}\n")
    return "".join(lines)


def _memory(nodes: tuple[int, ...]) -> str:
    if nodes:
        return f"memory of NUMA nodes: {format_spans(spans_of(nodes))}\n"
    return "memory: not bound, as the GPUs' NUMA nodes are not known\n"
