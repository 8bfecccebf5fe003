"""Laws of moving links declared for a world, and draws of them."""

from des.dynamics.law import Extremes, Law, LinkFigures, Path, Piece
from des.dynamics.laws import LAWS, kind_of
from des.dynamics.markov import LinkState, MarkovModulated
from des.dynamics.movement import Movement
from des.dynamics.ornstein_uhlenbeck import OrnsteinUhlenbeck
from des.dynamics.presets import DYNAMICS
from des.dynamics.product import Product
from des.dynamics.replay import LinkSeries, Replay
from des.dynamics.uniform import STEADY, UniformLaw

__all__ = [
    "DYNAMICS",
    "LAWS",
    "STEADY",
    "Extremes",
    "Law",
    "LinkFigures",
    "LinkSeries",
    "LinkState",
    "MarkovModulated",
    "Movement",
    "OrnsteinUhlenbeck",
    "Path",
    "Piece",
    "Product",
    "Replay",
    "UniformLaw",
    "kind_of",
]
