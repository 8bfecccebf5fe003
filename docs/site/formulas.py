"""Extension of Sphinx: formulas as MathML, which browsers draw without scripts or network."""

from docutils import nodes
from latex2mathml.converter import convert
from latex2mathml.exceptions import NoAvailableTokensError
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

_LOG = logging.getLogger(__name__)


def _mathml(node: nodes.Element, display: str) -> str:
    """MathML of a formula; one that cannot be read is a warning, which ends the build."""
    text = node.astext()
    try:
        return str(convert(text, display=display))
    except (NoAvailableTokensError, ValueError, IndexError) as error:
        _LOG.warning("formula %r: %r", text, error, location=node)
        return ""


def _inline(translator: HTML5Translator, node: nodes.math) -> None:
    translator.body.append(_mathml(node, "inline"))
    raise nodes.SkipNode


def _block(translator: HTML5Translator, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="formula" tabindex="0">{_mathml(node, "block")}</div>')
    raise nodes.SkipNode


def add_mathml(app: Sphinx) -> None:
    """Add the renderer `mathml`."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
