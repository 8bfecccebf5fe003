"""Page of the explorer: its controls, figures and tables."""

from dash import dcc, html
from dash.development.base_component import Component

from scenarios.explore.controls import Controls

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


def page(controls: Controls, num_gpus: int) -> Component:
    """Return the page with its controls at their first settings."""
    return html.Main(
        [
            html.H1("Explore a world, a job and a plan"),
            html.P(id="answer", className="answer", role="status"),
            html.Div([_controls(controls, num_gpus), _figures()], className="explorer"),
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


def _controls(controls: Controls, num_gpus: int) -> Component:
    first = controls.first
    sequences = f"Sequences of {first.sequence_length} tokens a step, one a microbatch"
    return html.Div(
        [
            _choice("network", "World", controls, first.network),
            _choice("model", "Model", controls, first.model),
            _choice("family", "Family", controls, first.family),
            _choice("schedule", "Schedule", controls, first.schedule),
            _slider("bandwidth", "Bandwidth, 1/16 to 16 times", controls, 0.0),
            _slider("latency", "Latency, 1/16 to 16 times", controls, 0.0),
            _slider("gpus", "GPUs of a domain", controls, num_gpus),
            _slider("sequences", sequences, controls, first.num_sequences),
        ],
        className="controls",
        role="group",
    )


def _choice(name: str, label: str, controls: Controls, value: str) -> Component:
    """A field that suggests values, by the browser's own means."""
    field = dcc.Input(
        id=name, type="text", list=f"{name}-values", value=value, debounce=True, name=name
    )
    options = [html.Option(value=one) for one in controls.names[name]]
    suggested = html.Datalist(options, id=f"{name}-values")
    return html.Label([html.Span(label), field, suggested, _wrong(name)])


def _slider(name: str, label: str, controls: Controls, value: float) -> Component:
    """A slider of the browser's own, which a keyboard moves and whose label is read."""
    least, most, step = controls.spans[name]
    field = dcc.Input(
        id=name, type="range", min=least, max=most, step=step, value=value, debounce=False
    )
    return html.Label([html.Span(label), field, _wrong(name)])


def _wrong(name: str) -> Component:
    """Place at a control for what is wrong with its value."""
    return html.Span(id=f"wrong-{name}", className="wrong", role="alert")


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
