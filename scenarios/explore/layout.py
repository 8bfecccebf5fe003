"""Page of the explorer: its controls, figures and tables."""

from collections.abc import Sequence

from dash import dcc, html
from dash.development.base_component import Component

from des import ARCHITECTURES, SCHEDULES
from des.world.topology import Topology
from scenarios.explore.scene import FAMILY_NAMES, Settings

FIGURES = ("map", "gantt", "links", "memory")
EMPTY = {
    "layout": {
        "height": 20,
        "margin": {"t": 0, "b": 0},
        "xaxis": {"visible": False},
        "yaxis": {"visible": False},
    }
}
"""Figure of what has not been drawn yet."""

SWEPT = ("what_if", "families", "bubbles")
QUICK_FACTS = ("settings", "layer times", "time", "bottleneck", "cost", "memory")
FACTS = (*QUICK_FACTS, "bound")
EXPORTS = {
    "network": "network file",
    "plan": "plan",
    "trace": "trace",
    "report": "report",
}
"""Kinds of files to save, and the names on their buttons."""


def page(settings: Settings, topology: Topology, networks: Sequence[str]) -> Component:
    """Return the page with its controls at the positions of the settings."""
    return html.Main(
        [
            html.H1("Explore a world, a job and a plan"),
            html.P(id="answer", className="answer", role="status"),
            html.Div([_controls(settings, topology, networks), _figures()], className="explorer"),
            html.H2("Planners and policy"),
            html.Button("Compare planners", id="compare", n_clicks=0),
            html.Div(id="planners", tabIndex=0, className="wide"),
            html.H2("From which bandwidth on does another family win?"),
            html.Button("Sweep", id="sweep", n_clicks=0),
            html.P(id="swept"),
            *(_graph(name) for name in SWEPT),
            html.H2("Save"),
            html.Div(
                [
                    html.Button(f"Save {name}", id=f"save-{key}", n_clicks=0)
                    for key, name in EXPORTS.items()
                ]
            ),
            dcc.Store(id="rested"),
            *(dcc.Download(id=f"download-{key}") for key in EXPORTS),
            html.H2("Run folders"),
            html.Div(id="runs"),
        ]
    )


def _controls(settings: Settings, topology: Topology, networks: Sequence[str]) -> Component:
    gpus = max(domain.num_gpus for domain in topology.domains)
    models = sorted({*ARCHITECTURES, settings.model})
    return html.Div(
        [
            _choice("network", "World", networks, settings.network),
            _choice("model", "Model", models, settings.model),
            _choice("family", "Family", FAMILY_NAMES, settings.family),
            _choice("schedule", "Schedule", tuple(SCHEDULES), settings.schedule),
            _slider("bandwidth", "Bandwidth, 1/16 to 16 times", (-4.0, 4.0, 0.25), 0.0),
            _slider("latency", "Latency, 1/16 to 16 times", (-4.0, 4.0, 0.25), 0.0),
            _slider("gpus", "GPUs of a domain", (1, max(64, gpus), 1), gpus),
            _slider(
                "sequences",
                f"Sequences of {settings.sequence_length} tokens a step, one a microbatch",
                (1, max(256, settings.num_sequences), 1),
                settings.num_sequences,
            ),
        ],
        className="controls",
        role="group",
    )


def _choice(name: str, label: str, values: Sequence[str], value: str) -> Component:
    """A field that suggests values, by the browser's own means."""
    field = dcc.Input(
        id=name, type="text", list=f"{name}-values", value=value, debounce=True, name=name
    )
    suggested = html.Datalist([html.Option(value=one) for one in values], id=f"{name}-values")
    return html.Label([html.Span(label), field, suggested])


def _slider(name: str, label: str, bounds: tuple[float, float, float], value: float) -> Component:
    """A slider of the browser's own, which a keyboard moves and whose label is read."""
    least, most, step = bounds
    field = dcc.Input(
        id=name, type="range", min=least, max=most, step=step, value=value, debounce=False
    )
    return html.Label([html.Span(label), field])


def _figures() -> Component:
    facts = [html.Tr([html.Th(name, scope="row"), html.Td(id=f"fact-{name}")]) for name in FACTS]
    return html.Div(
        [
            html.Table(html.Tbody(facts), className="pairs"),
            *(_graph(name) for name in FIGURES),
        ],
        className="figures",
    )


def _graph(name: str) -> Component:
    config: dcc.Graph.Config = {"displaylogo": False, "displayModeBar": False}
    return html.Figure(
        [
            dcc.Graph(id=name, config=config, figure=EMPTY),
            html.Figcaption(id=f"{name}-seen"),
        ]
    )
