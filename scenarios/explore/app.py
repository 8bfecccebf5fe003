"""Application of the explorer: what the controls of its page do."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

import flask
from dash import Dash, Input, Output, State, html, no_update
from dash.exceptions import PreventUpdate

from des.figures.figure import Figure
from des.figures.web import web_spec
from des.plan.plan_texts import pipelines_text
from des.worlds import EXAMPLES, WORLDS
from scenarios.explore.bubbles import bubble_figure, bubble_table
from scenarios.explore.exports import export_of
from scenarios.explore.layout import EXPORTS, FIGURES, QUICK_FACTS, SWEPT, page
from scenarios.explore.rivals import rival_table
from scenarios.explore.scene import Scene, Settings, scene_of
from scenarios.explore.what_if import bandwidth_sweep, family_map, sweep_lines
from scenarios.frame.http_door import MOST_BODY_BYTES, foreign_request

_CONTROLS = (
    *("network", "model", "family", "schedule"),
    *("bandwidth", "latency", "gpus", "sequences"),
)
_SWEPT_FACTORS = (0.0625, 0.25, 1.0, 4.0, 16.0)
_SWEPT_SCHEDULES = ("1f1b", "1f1b_4x", "gpipe", "zb_h1")
_STYLE = """
.explorer { display: grid; grid-template-columns: 18rem minmax(0, 1fr); gap: 1.5rem; }
.figures { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 0 1rem;
  grid-auto-flow: dense; }
.figures > table, .figures > figure:nth-of-type(2n) { grid-column: 1 / -1; }
.controls > * { display: block; margin-bottom: 0.8rem; }
.controls input { width: 100%; font: inherit; color: var(--ink); background: var(--paper); }
button { font: inherit; padding: 0.3rem 0.8rem; margin: 0 0.5rem 0.5rem 0; }
#planners td:last-child { white-space: normal; overflow-wrap: anywhere; text-align: left; }
@media (max-width: 900px) { .explorer, .figures { grid-template-columns: minmax(0, 1fr); } }
"""


_RESTED = """async function() {
  const mine = window.pictures = (window.pictures || 0) + 1;
  await new Promise(done => setTimeout(done, 300));
  return mine === window.pictures ? mine : window.dash_clientside.no_update;
}"""
"""Number of the picture after which the controls have rested for 0.3 s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explorer:
    """Begin of an exploration: settings, and the folder in which runs are looked for."""

    settings: Settings
    runs: Path


def explorer_app(explorer: Explorer) -> Dash:
    """Return the application, ready to be served.

    Raises
    ------
    ValueError
        If the settings do not make a scene.
    """
    first = scene_of(explorer.settings)
    app = Dash(
        "eastwest",
        title="Explorer",
        update_title="",
        assets_folder=str(Path(__file__).with_name("no_assets")),  # by default one of the caller's
        include_assets_files=False,
    )
    style = resources.files("scenarios.frame").joinpath("page", "style.css").read_text("utf-8")
    app.index_string = app.index_string.replace("<html>", '<html lang="en">').replace(
        "{%css%}", f"{{%css%}}<style>{style}{_STYLE}</style>"
    )
    networks = sorted({*WORLDS, *EXAMPLES, explorer.settings.network})
    app.layout = page(explorer.settings, first.topology, networks)
    _draw_on_change(app, explorer.settings)
    _bound_when_drawn(app, explorer.settings)
    _compare_on_click(app, explorer.settings)
    _save_on_click(app, explorer.settings)
    _serve_runs(app, explorer.runs)
    _refuse_foreign_pages(app.server)
    return app


def settings_from(values: Sequence[Any], first: Settings) -> Settings:
    """Return the first settings with the controls' values, in the order of the page."""
    network, model, family, schedule, bandwidth, latency, gpus, sequences = values
    return replace(
        first,
        network=network,
        model=model,
        family=family,
        schedule=schedule,
        bandwidth_factor=2.0 ** float(bandwidth),
        latency_factor=2.0 ** float(latency),
        num_gpus=int(gpus),
        num_sequences=int(sequences),
    )


def page_figure(figure: Figure) -> dict[str, Any]:
    """Return a figure as the page draws it."""
    spec = web_spec(figure)
    return {"data": spec["data"], "layout": spec["layout"] | {"uirevision": figure.name}}


def _inputs() -> list[Input]:
    return [Input(name, "value") for name in _CONTROLS]


def _states() -> list[State]:
    return [State(name, "value") for name in _CONTROLS]


def _draw_on_change(app: Dash, first: Settings) -> None:
    outputs = [Output("answer", "children")]
    outputs += [Output(f"fact-{name}", "children") for name in QUICK_FACTS]
    for name in FIGURES:
        outputs += [Output(name, "figure"), Output(f"{name}-seen", "children")]

    @app.callback(*outputs, *_inputs())
    def draw(*values: Any) -> tuple[Any, ...]:
        try:
            scene = scene_of(settings_from(values, first))
        except ValueError as error:
            return (f"This cannot be: {error}", *[no_update] * (len(outputs) - 1))
        return _shown(scene)


def _bound_when_drawn(app: Dash, first: Settings) -> None:
    """Say the bound once the controls rest, as its proof would hold up the next picture."""
    app.clientside_callback(  # type: ignore[no-untyped-call]
        _RESTED, Output("rested", "data"), Input("fact-time", "children"), prevent_initial_call=True
    )

    @app.callback(
        Output("fact-bound", "children"),
        Input("rested", "data"),
        *_states(),
        prevent_initial_call=True,
    )
    def bound(_: int, *values: Any) -> str:
        return scene_of(settings_from(values, first)).bound_sentence()


def _shown(scene: Scene) -> tuple[Any, ...]:
    facts = scene.quick_sentences()
    names = tuple(scene.topology.index_of)
    answer = f"{pipelines_text(scene.plan, names)}: {facts['time']}"
    figures: list[Any] = []
    for figure in (*scene.views.first, *scene.views.more):
        figures += [page_figure(figure), figure.seen]
    return (answer, *(facts[name] for name in QUICK_FACTS), *figures)


def _compare_on_click(app: Dash, first: Settings) -> None:
    @app.callback(Output("planners", "children"), Input("compare", "n_clicks"), *_states())
    def compare(clicks: int, *values: Any) -> Any:
        if not clicks:
            raise PreventUpdate
        table = rival_table(scene_of(settings_from(values, first)))
        head = html.Tr([html.Th(str(name)) for name in table])
        rows = table.itertuples(index=False)
        body = [html.Tr([html.Td(cell) for cell in row]) for row in rows]
        return html.Table([html.Thead(head), html.Tbody(body)])

    shown = [
        Output(name, field)
        for name in SWEPT
        for name, field in ((name, "figure"), (f"{name}-seen", "children"))
    ]

    @app.callback(
        Output("swept", "children"),
        *shown,
        Input("sweep", "n_clicks"),
        *_states(),
    )
    def sweep(clicks: int, *values: Any) -> tuple[Any, ...]:
        if not clicks:
            raise PreventUpdate
        settings = settings_from(values, first)
        found = bandwidth_sweep(scene_of(settings))
        num = settings.num_sequences
        figures = (
            sweep_lines(found),
            family_map(settings, num_sequences=(num, 4 * num), factors=_SWEPT_FACTORS),
            bubble_figure(bubble_table(settings, schedules=_SWEPT_SCHEDULES)),
        )
        drawn = [part for figure in figures for part in (page_figure(figure), figure.seen)]
        return (found.sentence(), *drawn)


def _save_on_click(app: Dash, first: Settings) -> None:
    for key in EXPORTS:

        @app.callback(
            Output(f"download-{key}", "data"), Input(f"save-{key}", "n_clicks"), *_states()
        )
        def save(clicks: int, *values: Any, key: str = key) -> Any:
            if not clicks:
                raise PreventUpdate
            name, content = export_of(scene_of(settings_from(values, first)), key)
            encoded = base64.b64encode(content).decode()
            return {"filename": name, "content": encoded, "base64": True}


def _refuse_foreign_pages(server: flask.Flask) -> None:
    server.config["MAX_CONTENT_LENGTH"] = MOST_BODY_BYTES

    @server.before_request
    def refuse() -> flask.Response | None:
        headers = {name.lower(): value for name, value in flask.request.headers.items()}
        refusal = foreign_request(flask.request.method, headers, has_certificate=False)
        return None if refusal is None else flask.Response(refusal[1], refusal[0])


def _serve_runs(app: Dash, runs: Path) -> None:
    """List folders that have a report, and serve it; nothing else of them is served."""

    @app.callback(Output("runs", "children"), Input("network", "value"))
    def list_runs(_: str) -> Any:
        found = sorted(path.parent.name for path in runs.glob("*/report.html"))
        links = [html.Li(html.A(name, href=f"/runs/{name}", target="_blank")) for name in found]
        return html.Ul(links) if links else html.P(f"No run with a report in {runs}.")

    def run_report(name: str) -> flask.Response:
        return flask.send_from_directory(runs.resolve() / name, "report.html")

    app.server.add_url_rule("/runs/<name>", view_func=run_report)
