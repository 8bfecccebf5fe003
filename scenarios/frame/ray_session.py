"""A connection to Ray for the length of a command; needs the extra ``ray``."""

import logging
import socket
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import ray

from scenarios.frame.ray_extra import LOCAL

OBJECT_STORE_BYTES = 512 * 2**20
"""Object store of a Ray of our own: rollouts and weights are small; the rest goes to disk."""

RETRIES = 3
"""Retries of a task whose machine died."""

_CONNECT_TIMEOUT_S = 10.0
_STARTS, _TIMED_OUT = 10, "timed out during startup"


@contextmanager
def ray_session(address: str, *, num_cpus: int) -> Iterator[int]:
    """Connect to a cluster, or start a Ray on this machine; the end undoes either.

    Gives the number of its CPUs, which is the number of actors or tasks at once.

    Parameters
    ----------
    address
        ``local``: start one. ``auto``: the cluster of this machine or of the variable
        RAY_ADDRESS. Else ``host:port`` of a running cluster that this machine belongs to.
    num_cpus
        Of a Ray that is started here; a running cluster has its own.

    Raises
    ------
    ValueError
        If there is no cluster at the address.
    """
    if address == LOCAL:
        _start(num_cpus)
    else:
        _connect(address)
    try:
        known = ray.cluster_resources()  # type: ignore[no-untyped-call]
        yield num_cpus if address == LOCAL else int(known.get("CPU", 0))
    finally:
        ray.shutdown()


def _start(num_cpus: int) -> None:
    """Start a Ray here; on a busy machine that may take longer than Ray waits, half a minute."""
    for attempt in range(1, _STARTS + 1):
        try:
            ray.init(
                LOCAL,
                num_cpus=num_cpus,
                include_dashboard=False,
                object_store_memory=OBJECT_STORE_BYTES,
                log_to_driver=False,
                logging_level=logging.ERROR,
                _system_config={"worker_niceness": 0},  # at Ray's 15 they starve beside other work
            )
        except Exception as error:
            _end_what_was_started(error)
            ray.shutdown()
            if attempt == _STARTS or _TIMED_OUT not in str(error):
                raise
        else:
            return


def _end_what_was_started(error: Exception) -> None:
    """End the processes of a start that has failed, which Ray itself forgets."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        end = getattr(frame.f_locals.get("self"), "kill_all_processes", None)
        if end is not None:
            end(check_alive=False, allow_graceful=False, wait=True)


def _connect(address: str) -> None:
    if address != "auto":
        _require_reachable(address)
    try:
        ray.init(address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, ValueError) as error:
        raise ValueError(_refusal(address, str(error))) from error


def _require_reachable(address: str) -> None:
    """Check the port first: Ray would try an address without a server for minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_TIMEOUT_S).close()
    except (OSError, ValueError, OverflowError) as error:
        raise ValueError(_refusal(address, str(error))) from error


def _refusal(address: str, reason: str) -> str:
    return (
        f"ray: address must be {LOCAL}, auto or host:port of a running cluster, "
        f"got {address!r} ({reason})"
    )
