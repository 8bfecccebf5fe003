"""Application of the explorer: what the controls of its page do."""

import base64
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import flask
from dash import Dash, Input, Output, State, html, no_update
from dash.exceptions import PreventUpdate

from des.figures.figure import Figure
from des.figures.web import web_spec
from des.plan.plan_texts import pipelines_text
from scenarios.explore.bubbles import bubble_figure, bubble_table
from scenarios.explore.calls import TimeLimit, refuse_odd_calls
from scenarios.explore.controls import CONTROLS, ControlError, Controls
from scenarios.explore.exports import export_of, names_with_report, read_report
from scenarios.explore.layout import EXPORTS, FIGURES, QUICK_FACTS, SWEPT, page
from scenarios.explore.rivals import rival_table
from scenarios.explore.scene import Scene, Settings, scene_of
from scenarios.explore.what_if import bandwidth_sweep, family_map, sweep_lines
from scenarios.frame.http_door import MOST_BODY_BYTES, foreign_request

_AnswerT = TypeVar("_AnswerT")
_LIMIT_S = 300.0
"""Most time for an answer; a sweep takes minutes where kernels are compiled first. [s]"""

_SWEPT_FACTORS = (0.0625, 0.25, 1.0, 4.0, 16.0)
_SWEPT_SCHEDULES = ("1f1b", "1f1b_4x", "gpipe", "zb_h1")
_STYLE = """
.explorer { display: grid; grid-template-columns: 18rem minmax(0, 1fr); gap: 1.5rem; }
.figures { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 0 1rem;
  grid-auto-flow: dense; }
.figures > table, .figures > figure:nth-of-type(2n) { grid-column: 1 / -1; }
.controls > * { display: block; margin-bottom: 0.8rem; }
.wrong { color: var(--bad); }
.controls input { width: 100%; font: inherit; color: var(--ink); background: var(--paper); }
button { font: inherit; padding: 0.3rem 0.8rem; margin: 0 0.5rem 0.5rem 0; }
#planners td:last-child { white-space: normal; min-width: 16rem; overflow-wrap: anywhere;
  text-align: left; }
@media (max-width: 900px) { .explorer, .figures { grid-template-columns: minmax(0, 1fr); } }
"""


_RESTED = """async function() {
  const mine = window.pictures = (window.pictures || 0) + 1;
  window.dash_clientside.set_props('fact-bound', {children: ''});
  await new Promise(done => setTimeout(done, 300));
  return mine === window.pictures ? mine : window.dash_clientside.no_update;
}"""
"""Number of the picture after which the controls have rested for 0.3 s; bounds before are old."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explorer:
    """Begin of an exploration: settings, the folder of runs, and the time limit of an answer."""

    settings: Settings
    runs: Path
    limit: TimeLimit = field(default_factory=lambda: TimeLimit(_LIMIT_S))


def explorer_app(explorer: Explorer) -> Dash:
    """Return the application, ready to be served.

    Raises
    ------
    ValueError
        If the settings do not make a scene.
    """
    first = scene_of(explorer.settings)
    answers = _Answers(Controls.of(explorer.settings, first.topology), explorer.limit)
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
    num_gpus = max(domain.num_gpus for domain in first.topology.domains)
    app.layout = page(answers.controls, num_gpus)
    _draw_on_change(app, answers)
    _bound_when_drawn(app, answers)
    _compare_on_click(app, answers)
    _save_on_click(app, answers)
    _serve_runs(app, explorer.runs)
    _refuse_foreign_pages(app.server)
    refuse_odd_calls(app)
    return app


class _Answers(NamedTuple):
    """Means of all answers: values of controls, and the time limit."""

    controls: Controls
    limit: TimeLimit

    def of(self, values: Sequence[Any], work: Callable[[Settings], _AnswerT]) -> _AnswerT:
        """Answer for values of the controls.

        Raises
        ------
        ValueError
            If a value cannot be, or the answer takes too long.
        """
        settings = self.controls.settings(values)
        return self.limit.result(lambda: work(settings))


def page_figure(figure: Figure) -> dict[str, Any]:
    """Return a figure as the page draws it."""
    spec = web_spec(figure)
    return {"data": spec["data"], "layout": spec["layout"] | {"uirevision": figure.name}}


def _inputs() -> list[Input]:
    return [Input(name, "value") for name in CONTROLS]


def _figure_outputs(names: Iterable[str]) -> list[Output]:
    return [
        Output(*part) for name in names for part in ((name, "figure"), (f"{name}-seen", "children"))
    ]


def _drawn(figures: Iterable[Figure]) -> list[Any]:
    """Values of these outputs."""
    return [part for figure in figures for part in (page_figure(figure), figure.seen)]


def _states() -> list[State]:
    return [State(name, "value") for name in CONTROLS]


def _draw_on_change(app: Dash, answers: _Answers) -> None:
    outputs = [Output("answer", "children")]
    outputs += [Output(f"fact-{name}", "children") for name in QUICK_FACTS]
    outputs += _figure_outputs(FIGURES)
    wrong = [Output(f"wrong-{name}", "children") for name in CONTROLS]

    @app.callback(*outputs, *wrong, *_inputs())
    def draw(*values: Any) -> tuple[Any, ...]:
        try:
            shown = answers.of(values, lambda settings: _show(scene_of(settings)))
        except ValueError as error:
            control = error.control if isinstance(error, ControlError) else ""
            said = [str(error) if name == control else "" for name in CONTROLS]
            return (f"This cannot be: {error}", *[no_update] * (len(outputs) - 1), *said)
        return (*shown, *[""] * len(wrong))


def _bound_when_drawn(app: Dash, answers: _Answers) -> None:
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
        try:
            return answers.of(values, lambda settings: scene_of(settings).bound_sentence())
        except ValueError as error:
            return f"none: {error}"


def _show(scene: Scene) -> tuple[Any, ...]:
    facts = scene.quick_sentences()
    names = tuple(scene.topology.index_of)
    answer = f"{pipelines_text(scene.plan, names)}: {facts['time']}"
    figures = _drawn((*scene.views.first, *scene.views.more))
    return (answer, *(facts[name] for name in QUICK_FACTS), *figures)


def _compare_on_click(app: Dash, answers: _Answers) -> None:
    @app.callback(Output("planners", "children"), Input("compare", "n_clicks"), *_states())
    def compare(clicks: int, *values: Any) -> Any:
        if not clicks:
            raise PreventUpdate
        try:
            table = answers.of(values, lambda settings: rival_table(scene_of(settings)))
        except ValueError as error:
            return f"This cannot be: {error}"
        head = html.Tr([html.Th(str(name)) for name in table])
        rows = table.itertuples(index=False)
        body = [html.Tr([html.Td(cell) for cell in row]) for row in rows]
        return html.Table([html.Thead(head), html.Tbody(body)])

    shown = _figure_outputs(SWEPT)

    @app.callback(
        Output("swept", "children"),
        *shown,
        Input("sweep", "n_clicks"),
        *_states(),
    )
    def sweep(clicks: int, *values: Any) -> tuple[Any, ...]:
        if not clicks:
            raise PreventUpdate
        try:
            return answers.of(values, _swept)
        except ValueError as error:
            return (f"This cannot be: {error}", *[no_update] * len(shown))


def _swept(settings: Settings) -> tuple[Any, ...]:
    found = bandwidth_sweep(scene_of(settings))
    num = settings.num_sequences
    figures = (
        sweep_lines(found),
        family_map(settings, num_sequences=(num, 4 * num), factors=_SWEPT_FACTORS),
        bubble_figure(bubble_table(settings, schedules=_SWEPT_SCHEDULES)),
    )
    return (found.sentence(), *_drawn(figures))


def _save_on_click(app: Dash, answers: _Answers) -> None:
    for key in EXPORTS:

        @app.callback(
            Output(f"download-{key}", "data"), Input(f"save-{key}", "n_clicks"), *_states()
        )
        def save(clicks: int, *values: Any, key: str = key) -> Any:
            if not clicks:
                raise PreventUpdate
            try:
                name, content = answers.of(
                    values, lambda settings: export_of(scene_of(settings), key)
                )
            except ValueError as error:
                raise PreventUpdate from error  # the picture says why
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
    """List folders that have a report, and serve it; nothing else of them is served.

    A report is a page of its own origin, which cannot make calls of this one.
    """

    @app.callback(Output("runs", "children"), Input("network", "value"))
    def list_runs(_: str) -> Any:
        found = names_with_report(runs)
        links = [html.Li(html.A(name, href=f"/runs/{name}", target="_blank")) for name in found]
        return html.Ul(links) if links else html.P(f"No run with a report in {runs}.")

    def run_report(name: str) -> flask.Response:
        content = read_report(runs, name)
        if content is None:
            return flask.Response("no such run\n", 404)
        found = flask.Response(content, mimetype="text/html")
        found.headers["Content-Security-Policy"] = "sandbox allow-scripts allow-downloads"
        return found

    app.server.add_url_rule("/runs/<name>", view_func=run_report)
