"""Page of a report: one HTML file that needs no network and no other file."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from importlib.util import find_spec

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from des.base.extras import needed_extra
from des.base.lazy import lazy_imports
from des.figures.web import web_spec
from scenarios.frame.report import Report

with lazy_imports(__name__):
    import plotly

    from des.figures import paper
    from des.figures.figure import Figure

MOST_BYTES = 8_000_000
"""Bound of the size of a page."""


def render_report(report: Report) -> str:
    """Return the page: style, figures and the library that draws them are inside.

    Without that library, which is plotly, figures are pictures.

    Its content security policy allows no network and no ``eval``; scripts are allowed by their
    hashes.

    Raises
    ------
    ValueError
        If the page would be larger than `MOST_BYTES`.
    """
    figures = list(report.all_figures())
    moves = find_spec("plotly") is not None
    specs = {figure.name: web_spec(figure) for figure in figures} if moves else {}
    pictures = {} if moves else {figure.name: _picture(figure) for figure in figures}
    scripts = (_plotly(), _shipped("figures.js")) if specs else ()
    page = _template().render(
        report=report,
        specs=Markup(_json(specs)) if specs else "",
        pictures=pictures,
        stands_still=f"Figures stand still here; to zoom in one {needed_extra('explore')}.",
        targets=None if report.targets is None else Markup(report.targets),
        plotly=Markup(scripts[0]) if scripts else "",
        script=Markup(scripts[1]) if scripts else "",
        style=Markup(_shipped("style.css")),
        policy=_policy(scripts),
    )
    if len(page.encode()) > MOST_BYTES:
        raise ValueError(
            f"report {report.title}: page must be at most {MOST_BYTES} bytes, got "
            f"{len(page.encode())}"
        )
    return page


def _policy(scripts: tuple[str, ...]) -> str:
    hashes = [hashlib.sha256(one.encode()).digest() for one in scripts]
    allowed = " ".join(f"'sha256-{base64.b64encode(one).decode()}'" for one in hashes) or "'none'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _json(specs: Mapping[str, object]) -> str:
    """JSON that cannot end the element which holds it."""
    text = json.dumps(specs, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


@cache
def _template() -> Template:
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True
    )
    return environment.from_string(_shipped("report.html.j2"))


@cache
def _shipped(name: str) -> str:
    return resources.files("scenarios.frame").joinpath("page", name).read_text(encoding="utf-8")


def _picture(figure: Figure) -> str:
    """Address of a picture that the page holds itself."""
    return f"data:image/png;base64,{base64.b64encode(paper.image_bytes(figure)).decode()}"


@cache
def _plotly() -> str:
    """The library of plotly's package, as it stands; what a page has of ``</script`` is escaped."""
    path = resources.files(plotly.__name__).joinpath("package_data", "plotly.min.js")
    return path.read_text(encoding="utf-8").replace("</script", "<\\/script")
