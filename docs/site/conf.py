"""Settings of Sphinx for the site: its source is a copy that ``docs/site/build.py`` makes."""

import importlib
import importlib.metadata
import runpy
import sys
from importlib.util import find_spec
from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

SITE = Path(__file__).resolve().parent
sys.path.insert(0, str(SITE))  # for the modules next to this file
add_mathml = importlib.import_module("formulas").add_mathml
add_footnote_numbers = importlib.import_module("footnotes").add_footnote_numbers
EXTRAS = runpy.run_path(str(SITE.parents[1] / "conftest.py"))["NEEDS"]

project = "EastWest"
author = "EastWest contributors"
copyright = "EastWest contributors"
release = importlib.metadata.version("eastwest")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "index"
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
default_role = "py:obj"
html_math_renderer = "mathml"

autodoc_default_options = {
    "members": True,
    "show-inheritance": True,
    "member-order": "bysource",
    "ignore-module-all": True,
}
autodoc_mock_imports = [name for name in EXTRAS if not find_spec(name)]
autodoc_class_signature = "separated"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
toc_object_entries = False

html_theme = "furo"
html_title = "EastWest"
html_static_path = [str(SITE / "static")]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
templates_path: list[str] = []
suppress_warnings = [
    "ref.python",  # a word between backticks may be the name of several objects
    "ref.footnote",  # a source of a whole module
    "myst.header",  # pages begin sections where they read best
]


def setup(app: Sphinx) -> None:
    """Add formulas in MathML and numbers of sources; show CSV as it is: there is no lexer."""
    add_mathml(app)
    add_footnote_numbers(app)
    app.add_lexer("csv", TextLexer)
