"""One program under many seeds of its links without Python in between."""

import numpy as np

from des.base.jit import kernel
from des.compiled.kernels.general import run_program
from des.compiled.kernels.program import ProgramArrays, State


@kernel
def run_seeds(
    program: ProgramArrays, state: State, seeds: np.ndarray, makespans_s: np.ndarray
) -> int:
    """Simulate a program under several seeds of its links; returns how many ended well.

    Stops at the first that does not. The seeds, which mean something for links drawn by seed only,
    are written into the program.
    """
    for number in range(len(seeds)):
        program.header[0].seed = seeds[number]
        if run_program(program, state) != 0:
            return number
        makespans_s[number] = state.outcome[0].end_s
    return len(seeds)
