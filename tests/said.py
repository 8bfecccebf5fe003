"""Output of a command, whether or not code had to be compiled."""


def without_compiling(stderr: str) -> str:
    """Lines on stderr but for those on compiling, which a filled cache does not have."""
    lines = stderr.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("compiling"))
