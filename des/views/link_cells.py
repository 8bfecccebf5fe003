"""Heat map of the links: how busy every direction is in an iteration."""

from dataclasses import replace

from des.engine.result import IterationResult
from des.figures.figure import Figure, panel_figure
from des.figures.marks import Cells
from des.figures.panels import Axis, named_rows
from des.views.gantt import short_name
from des.world.topology import Topology

_MOST_TEXTS = 12


def link_cells(topology: Topology, result: IterationResult) -> Figure:
    """Return the busy share of each link, senders in rows and receivers in columns. [%]"""
    names = tuple(short_name(domain.name) for domain in topology.domains)
    num = len(names)
    values: list[list[float | None]] = [[None] * num for _ in names]
    hovers = [[""] * num for _ in names]
    uses = {(use.source, use.target): use for use in result.links}
    for (source, target), index in topology.link_index.items():
        link = topology.links[index]
        use = uses.get((link.source, link.target))
        share = 0.0 if use is None else 100.0 * use.busy_s / result.makespan_s
        values[source][target] = share
        sent = 0.0 if use is None else use.num_bytes / 1e9
        hovers[source][target] = (
            f"{link.source} to {link.target}\nbusy {share:.1f} %, {sent:.3g} GB sent\n"
            f"{link.bandwidth_bytes_per_s * 8e-9:.3g} Gbit/s, {link.latency_s * 1e3:.3g} ms"
        )
    texts = [["" if one is None else f"{one:.0f}" for one in row] for row in values]
    cells = Cells(
        label="busy [%]",
        rows=names,
        columns=names,
        values=tuple(map(tuple, values)),
        texts=tuple(map(tuple, texts)) if num <= _MOST_TEXTS else (),
        hovers=tuple(map(tuple, hovers)),
    )
    senders = named_rows(names)
    return panel_figure(
        name="links",
        title="How busy the links are in one iteration",
        seen=_sentence(result),
        x=Axis(label="to", ticks=senders.ticks),
        y=replace(senders, label="from"),
        marks=(cells,),
        height=min(7.0, 1.2 + 0.34 * num),
        grid="none",
    )


def _sentence(result: IterationResult) -> str:
    used = sorted((use for use in result.links if use.num_messages), key=lambda use: -use.busy_s)
    if not used:
        return "No link is used: the plan stays inside one domain."
    shares = ", ".join(
        f"{use.source} to {use.target} {100 * use.busy_s / result.makespan_s:.0f} %"
        for use in used[:4]
    )
    return f"Share of the iteration in which a link sends, the busiest first: {shares}."
