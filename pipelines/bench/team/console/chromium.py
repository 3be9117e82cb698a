"""A headless Chromium that is driven by its DevTools protocol."""

from __future__ import annotations

import base64
import itertools
import json
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx
from websockets.sync.client import connect

from tests.fakes.waiting import wait_until


class Chromium:
    """One browser with one page; what its console says of problems is kept in `problems`."""

    def __init__(self, folder: Path) -> None:
        command = [
            "nice", "-n", "19", "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--hide-scrollbars", "--remote-debugging-port=0", f"--user-data-dir={folder}",
        ]  # fmt: skip
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        port_file = folder / "DevToolsActivePort"
        wait_until(lambda: port_file.exists() and port_file.read_text().count("\n"), "Chromium's port", 60)
        port = port_file.read_text().split()[0]
        page = httpx.put(f"http://127.0.0.1:{port}/json/new?about:blank").json()
        self._socket = connect(page["webSocketDebuggerUrl"], max_size=None)
        self._ids = itertools.count(1)
        self.problems: list[str] = []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> Any:
        """Call a method of the protocol and return its result; what happens meanwhile is noted."""
        number = next(self._ids)
        self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            told = json.loads(self._socket.recv(60))
            if told.get("id") == number:
                assert "error" not in told, (method, told["error"])
                return told["result"]
            self._note(told)

    def _note(self, told: dict[str, Any]) -> None:
        method, params = told.get("method"), told.get("params", {})
        if method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.problems.append(" ".join(str(one.get("value", one.get("description"))) for one in params["args"]))
        elif method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.problems.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.problems.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page, once a promise is kept."""
        found = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait_for(self, expression: str, timeout_s: float = 20) -> float:
        """Wait until an expression is true in the page; returns the seconds that took."""
        began = time.monotonic()
        while not self.evaluate(expression):
            assert time.monotonic() - began < timeout_s, f"{expression} after {timeout_s} s: {self.problems}"
            time.sleep(0.05)
        return time.monotonic() - began

    def open(self, url: str, width: int, theme: str) -> float:
        """Open a page as wide as that, in a theme of the system's; returns the seconds until it has drawn its data."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        self.call("Page.navigate", url=url)
        return self.wait_for("document.body?.dataset.ready === 'true'")

    def press(self, key: str) -> None:
        """Press a key, such as `Tab`, `Enter`, or a character."""
        text, code = {"Enter": "\r"}.get(key, key if len(key) == 1 else ""), _CODES.get(key, 0)
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=text, windowsVirtualKeyCode=code)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def screenshot(self, file: Path, whole: bool = False) -> None:
        """Save what is seen, or the whole page, as PNG."""
        taken = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(taken["data"]))

    def close(self) -> None:
        """End the browser."""
        self._socket.close()
        self._process.terminate()
        self._process.wait(20)


_CODES = {"Tab": 9, "Enter": 13, "Escape": 27}
