"""Headless Chromium, spoken to over a pipe by the DevTools protocol; needs no other package."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
_FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --hide-scrollbars --no-first-run "
    "--disable-extensions --disable-background-networking --disable-component-update "
    "--disable-dev-shm-usage --remote-debugging-pipe"
)
_KEYS = {"ArrowLeft": (37, ""), "Enter": (13, "\r"), "Space": (32, " "), "Tab": (9, "")}
"""Number and text of keys by their codes."""
_ENDS = "file:", "data:", "blob:", "about:"


class Tab:
    """One page, with its console errors and the URLs that it requested."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading, self._writing, self._rest, self._next = reading, writing, b"", 0
        self._session: str | None = None
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.num_saved = 0
        self._events: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Inspector"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: object) -> dict[str, Any]:
        """Send a command and return its result; events on the way are recorded."""
        self._next += 1
        message: dict[str, Any] = {"id": self._next, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._writing, json.dumps(message).encode() + b"\0")
        while (answer := self._receive()).get("id") != self._next:
            pass
        assert "error" not in answer, (method, answer["error"])
        result: dict[str, Any] = answer["result"]
        return result

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            piece = os.read(self._reading, 1 << 20)
            assert piece, "the browser has ended"
            self._rest += piece
        text, self._rest = self._rest.split(b"\0", 1)
        message: dict[str, Any] = json.loads(text)
        self._record(message.get("method", ""), message.get("params", {}))
        return message

    def _record(self, event: str, params: dict[str, Any]) -> None:
        self._events.append(event)
        assert event != "Inspector.targetCrashed", "the page has crashed"
        if event == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(params["exceptionDetails"])[:500])
        elif event == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.complaints.append(json.dumps(params["args"])[:500])
        elif event == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(params["entry"]["text"][:500])
        elif event == "Network.requestWillBeSent":
            url = params["request"]["url"]
            if not url.startswith(_ENDS):
                self.requests.append(url)
        elif event == "Page.downloadProgress" and params["state"] == "completed":
            self.num_saved += 1

    def show(self, *, width: int = 1280, height: int = 900, scheme: str = "light") -> None:
        """Set the size of the window and the colour scheme."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 500,
        )
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def open(self, url: str, ready: str) -> None:
        """Open a page and wait until an expression is true."""
        self._events.clear()
        self.call("Page.navigate", url=url)
        while "Page.loadEventFired" not in self._events:
            self._receive()
        self.wait_for(ready)

    def wait_for(self, expression: str) -> None:
        """Wait until an expression is true, by polling it every 5 ms."""
        self.run(
            "new Promise(done => { const look = () => "
            f"({expression}) ? done(true) : setTimeout(look, 5); look(); }})"
        )

    def run(self, script: str) -> Any:
        """Return the value of an expression; of a promise, the value that it resolves to."""
        answer = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, json.dumps(answer["exceptionDetails"])[:800]
        return answer["result"].get("value")

    def press(self, key: str, times: int = 1) -> None:
        """Press and release a key, in the element that has the focus."""
        code, text = _KEYS[key]
        names = {"key": text or key, "code": key, "windowsVirtualKeyCode": code}
        for _ in range(times):
            down = names | ({"text": text} if text else {})
            self.call("Input.dispatchKeyEvent", type="keyDown", **down)
            self.call("Input.dispatchKeyEvent", type="keyUp", **names)

    def save_into(self, folder: Path) -> None:
        """Put what the page saves into a folder; ``num_saved`` counts files that are whole."""
        self.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(folder))

    def wait_for_saved(self, num: int) -> None:
        """Wait until as many files are saved."""
        while self.num_saved < num:
            self._receive()

    def picture(self, path: Path) -> None:
        """Take a picture of what the window shows."""
        found = self.call("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(found["data"]))

    def overflow(self) -> int:
        """Pixels by which the page is wider than the window."""
        return int(self.run("document.documentElement.scrollWidth - window.innerWidth"))

    def violations(self) -> list[str]:
        """Rules of accessibility that axe finds broken, with what breaks them."""
        self.run(resources.files("axe_core_python").joinpath("axe.min.js").read_text("utf-8"))
        found = self.run(
            "axe.run({resultTypes: ['violations'], preload: false})"
            ".then(r => r.violations.map(v => v.id + ': ' + "
            "v.nodes.slice(0, 3).map(n => n.html.slice(0, 120)).join(' | ')))"
        )
        return list(found)


@contextmanager
def chromium() -> Iterator[Tab]:
    """Start a browser of its own folder, and end it."""
    there, back = os.pipe(), os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        command = f'exec "$0" {_FLAGS} --user-data-dir="$1" 3<&{there[0]} 4>&{back[1]}'
        process = subprocess.Popen(
            ["bash", "-c", command, str(CHROMIUM), home],
            pass_fds=(there[0], back[1]),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(there[0])
        os.close(back[1])
        try:
            yield Tab(back[0], there[1])
        finally:
            os.close(there[1])
            process.terminate()
            process.wait()
            os.close(back[0])
