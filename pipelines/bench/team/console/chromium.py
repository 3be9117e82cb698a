"""A headless Chromium that is driven by its DevTools protocol."""

from __future__ import annotations

import base64
import itertools
import json
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx
from websockets.sync.client import connect

from configs.errors import CorrectableError

START_S, ANSWER_S, PAGE_S = 60.0, 60.0, 20.0
"""Seconds for the browser's start, for its answer to a call, and for a page to be drawn."""
DRAWN = """
const drawn = new MutationObserver(() => {
  if (document.body?.dataset.ready !== "true") return;
  drawn.disconnect();
  window.drawnRows = document.querySelectorAll("tbody tr").length;
  requestAnimationFrame(() => setTimeout(() => { window.drawnAt = performance.now(); }));
});
drawn.observe(document, {subtree: true, attributes: true, attributeFilter: ["data-ready"]});
"""
"""Notes in each page, after the frame that shows its data, the milliseconds since it was gone to, and its rows."""


class BrowserError(CorrectableError, RuntimeError):
    """The browser is missing, does not start, or a page is not as it should be; the message says what helps."""


def require_programs(*names: str) -> None:
    """Check that programs of Debian's packages of the same names are there.

    Raises:
        BrowserError: one is not.
    """
    for name in names:
        if shutil.which(name) is None:
            raise BrowserError(f"{name} is not installed: apt-get install {name}")


class Chromium:
    """One browser with one page; what its console says of problems is kept in `problems`.

    Attributes:
        problems: errors and warnings of the console, exceptions, and requests that failed, since it was emptied.
    """

    def __init__(self, folder: Path, nice: int = 0) -> None:
        """Start it.

        Args:
            folder: of its profile, a new one.
            nice: added to its priority's number, where others are to come first.

        Raises:
            BrowserError: it is not installed, or does not start.
        """
        require_programs("chromium")
        command = [
            "nice", "-n", str(nice), "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--hide-scrollbars", "--remote-debugging-port=0", f"--user-data-dir={folder}",
        ]  # fmt: skip
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            port = self._port(folder / "DevToolsActivePort")
            page = httpx.put(f"http://127.0.0.1:{port}/json/new?about:blank").json()
            self._socket = connect(page["webSocketDebuggerUrl"], max_size=None, max_queue=None, ping_interval=None)
        except BaseException:
            self._end()
            raise
        self._ids = itertools.count(1)
        self.problems: list[str] = []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Page.addScriptToEvaluateOnNewDocument", source=DRAWN)
        self.call("Page.bringToFront")

    def _port(self, file: Path) -> str:
        deadline = time.monotonic() + START_S
        while not file.exists() or "\n" not in file.read_text():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise BrowserError(f"chromium did not start within {START_S:g} s: try `chromium --headless` by hand.")
            time.sleep(0.05)
        return file.read_text().split()[0]

    def call(self, method: str, **params: Any) -> Any:
        """Call a method of the protocol and return its result; what happens meanwhile is noted.

        Raises:
            BrowserError: it answers with an error.
        """
        number = next(self._ids)
        self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            told = json.loads(self._socket.recv(ANSWER_S))
            if told.get("id") == number:
                if "error" in told:
                    raise BrowserError(f"chromium refuses {method}: {told['error']}")
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
        """Return the value of an expression in the page, once a promise is kept.

        Raises:
            BrowserError: it throws.
        """
        found = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            thrown = found["exceptionDetails"]
            said = thrown.get("exception", {}).get("description", thrown["text"])
            raise BrowserError(f"{said}, thrown by {expression[:200]}")
        return found["result"].get("value")

    def wait_for(self, expression: str, timeout_s: float = PAGE_S) -> float:
        """Wait until an expression is true in the page; returns the seconds that took.

        Raises:
            BrowserError: it is not within `timeout_s`.
        """
        began = time.monotonic()
        while not self.evaluate(expression):
            if time.monotonic() - began > timeout_s:
                raise BrowserError(f"{expression}: not within {timeout_s:g} s; the console says {self.problems}")
            time.sleep(0.05)
        return time.monotonic() - began

    def open(self, url: str, width: int, theme: str) -> float:
        """Open a page as wide as that, in a theme of the system's.

        Returns:
            Seconds from going there until the frame with its data was drawn, by the browser's clock.

        Raises:
            BrowserError: it is not drawn within `PAGE_S`.
        """
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        self.call("Page.navigate", url=url)
        self.wait_for("window.drawnAt > 0")
        drawn_ms: float = self.evaluate("window.drawnAt")
        return drawn_ms / 1000

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
        self._end()

    def _end(self) -> None:
        self._process.terminate()
        self._process.wait(20)


_CODES = {"Tab": 9, "Enter": 13, "Escape": 27}
