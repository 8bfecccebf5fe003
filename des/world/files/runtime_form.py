"""The key ``runtime`` of the transport: habits of the program that trains, and TCP of the hosts."""

from dataclasses import replace
from typing import Any

from des.base.quantities import SIZE_BYTES, format_quantity
from des.base.strict_forms import StrictForm
from des.world.files.quantity_fields import Size
from des.world.hosts import Hosts, hosts_named
from des.world.runtime import Receives, Runtime, RuntimeConnections, SendersWait, runtime_named
from des.world.transport import Transport


class RuntimeForm(StrictForm):
    """A runtime by name, or fields in place of those of ``preset`` and ``hosts``."""

    preset: str = "ideal"
    hosts: str | None = None
    rendezvous: bool | None = None
    receives: Receives | None = None
    senders_wait: SendersWait | None = None
    connections: RuntimeConnections | None = None
    restart_after_idle: bool | None = None
    send_buffer: Size | None = None

    def to_runtime(self) -> Runtime:
        """Make the habits.

        Raises
        ------
        ValueError
            If there is no runtime of the name.
        """
        return replace(
            runtime_named(self.preset),
            **_given(
                rendezvous=self.rendezvous,
                receives=self.receives,
                senders_wait=self.senders_wait,
                connections=self.connections,
            ),
        )

    def to_hosts(self) -> Hosts | None:
        """Make the hosts, those of Linux as it comes where only fields are given; None: no windows.

        Raises
        ------
        ValueError
            If there are no hosts of the name, or a figure is impossible.
        """
        fields = _given(
            restart_after_idle=self.restart_after_idle, send_buffer_bytes=self.send_buffer
        )
        if self.hosts is None and not fields:
            return None
        return replace(hosts_named(self.hosts or "linux_default"), **fields)


def runtime_form(entry: RuntimeForm | str) -> RuntimeForm:
    """Return the form of an entry, which may be the name of a runtime alone."""
    return RuntimeForm(preset=entry) if isinstance(entry, str) else entry


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def runtime_entry(transport: Transport) -> dict[str, object]:
    """Return the entry of a transport's runtime and hosts."""
    runtime, hosts = transport.runtime, transport.hosts
    entry: dict[str, object] = {
        "rendezvous": runtime.rendezvous,
        "receives": runtime.receives,
        "senders_wait": runtime.senders_wait,
        "connections": runtime.connections,
    }
    if hosts is not None:
        entry["restart_after_idle"] = hosts.restart_after_idle
        entry["send_buffer"] = format_quantity(hosts.send_buffer_bytes, "B", SIZE_BYTES)
    return entry
