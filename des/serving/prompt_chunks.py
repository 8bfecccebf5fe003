"""Chunks of prompts that an iteration reads within its budget of tokens."""

from collections.abc import Sequence

from des.serving.fleet_requests import FleetRequest


def chunk_pieces(reading: Sequence[FleetRequest], budget: int) -> list[int]:
    """Tokens of each prompt to read within a budget, the first prompts first.

    Examples
    --------
    >>> from des.serving.requests import Request
    >>> long = Request(request_id=0, arrival_s=0.0, prompt_tokens=9, output_tokens=1)
    >>> chunk_pieces([FleetRequest(long, number, 9, 9) for number in range(3)], 12)
    [9, 3]
    """
    pieces: list[int] = []
    left = budget
    for one in reading:
        piece = min(one.to_read, left)
        if piece <= 0:
            break
        left -= piece
        pieces.append(piece)
    return pieces


def piece_products(reading: Sequence[FleetRequest], pieces: Sequence[int]) -> float:
    """Sum over prompts of the tokens to read times the mean context of them."""
    products = 0.0
    for one, piece in zip(reading, pieces, strict=False):
        products += piece * (one.held - one.to_read + piece / 2)
    return products
