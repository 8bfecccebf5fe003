"""Client of a job: asks for its lease before each iteration, and pushes metrics on the way.

It needs nothing but Python, so that a training can have a copy of this file.
"""

import json
import os
import socket


class Lease:
    """Lease of one rank, which its node answers for; all ranks are told to leave at one iteration.

    A loop ``for i in range(first, last): if not lease.goes_on(i, loss=x): save; break`` is all.
    """

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(os.environ["LEASE_SOCKET"])
        self._lines = self._socket.makefile("rw", encoding="utf-8")

    def goes_on(self, iteration: int, **metrics: float) -> bool:
        """Whether the rank may begin an iteration; where not it has to save and leave."""
        self._lines.write(json.dumps({"iteration": iteration, "metrics": metrics}) + "\n")
        self._lines.flush()
        answer = self._lines.readline().strip()
        if answer not in ("go", "leave"):
            raise ConnectionError(answer or "the node has ended")
        return answer == "go"

    def close(self) -> None:
        """Close the connection to the node."""
        self._lines.close()
        self._socket.close()
