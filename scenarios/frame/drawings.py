"""Pictures of single servers and collectives, drawn by matplotlib without global state."""

import io

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine


def png_bytes(figure: Figure) -> bytes:
    """Render a picture; the same one gives the same bytes on the same installation."""
    content = io.BytesIO()
    figure.savefig(content, format="png", metadata={"Software": None})
    return content.getvalue()


def new_figure(*, width_inches: float, height_inches: float) -> Figure:
    """Make a picture that knows how to draw itself."""
    layout = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1)
    figure = Figure(figsize=(width_inches, height_inches), dpi=150, layout=layout)
    FigureCanvasAgg(figure)
    return figure


def laid_out(figure: Figure) -> Figure:
    """Lay the picture out once; a second pass would move it by less than a pixel, but move it."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure
