"""A headless Chromium that does what it is told: DevTools protocol over a pipe, without any package."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from capwatch.web import files

NEEDED = pytest.mark.skipif(
    shutil.which("chromium") is None or not files.COMPLETE,
    reason="chromium (a Debian package) or uPlot (`bash tests/prepare npm` fetches it) is not there",
)
"""Tests that open the page."""
SHOWN = "document.documentElement.dataset.updates >= 1"
PATIENCE_S = 30.0
Json = dict[str, Any]


class Page:
    """One page, and all that it asked for or complained about since it was opened."""

    def __init__(self, process: subprocess.Popen[bytes], to: int, back: int) -> None:
        self._to, self._back, self._buffer, self._number = to, back, b"", 0
        self.process = process
        self.requests: list[str] = []
        self.complaints: list[str] = []
        target = self._send("Target.createTarget", {"url": "about:blank"}, None)["targetId"]
        self._session = str(
            self._send("Target.attachToTarget", {"targetId": target, "flatten": True}, None)["sessionId"]
        )
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> Json:
        """The answer to a command of the protocol."""
        return self._send(method, parameters, self._session)

    def _send(self, method: str, parameters: Json, session: str | None) -> Json:
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": parameters} | ({"sessionId": session} if session else {})
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._hear()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                found: Json = answer["result"]
                return found
            self._note(answer)

    def _hear(self) -> Json:
        while b"\0" not in self._buffer:
            read = os.read(self._back, 1 << 20)
            assert read, "chromium is gone"
            self._buffer += read
        message, _, self._buffer = self._buffer.partition(b"\0")
        found: Json = json.loads(message)
        return found

    def _note(self, event: Json) -> None:
        told = event.get("params", {})
        match event.get("method"):
            case "Network.requestWillBeSent":
                self.requests.append(told["request"]["url"])
            case "Runtime.exceptionThrown":
                self.complaints.append(json.dumps(told["exceptionDetails"])[:500])
            case "Runtime.consoleAPICalled":
                self.complaints.append(json.dumps(told["args"])[:500])
            case "Log.entryAdded":
                self.complaints.append(f"{told['entry']['text']} {told['entry'].get('url', '')}")

    def open(self, url: str) -> None:
        """Go to an address and wait until its document is there."""
        self.call("Page.navigate", url="about:blank")  # or the page before would still ask, and complain of no answer
        self.requests.clear()
        self.complaints.clear()
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete'")

    def ask(self, expression: str) -> Any:
        """The value of an expression of JavaScript."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def until(self, expression: str) -> None:
        """Wait until an expression holds."""
        deadline = time.monotonic() + PATIENCE_S
        while not self.ask(expression):
            assert time.monotonic() < deadline, f"never came: {expression}\n{self.complaints}"
            time.sleep(0.03)

    def size(self, width: int, height: int, *, phone: bool = False, scale: float = 1.0) -> None:
        """The viewport, in CSS pixels."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=phone
        )

    def scheme(self, name: str) -> None:
        """What the system of the reader prefers: `light` or `dark`."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def press(self, *keys: str) -> None:
        """Press keys one after the other."""
        codes = {"Tab": 9, "Enter": 13, " ": 32, "ArrowRight": 39, "ArrowLeft": 37}
        for key in keys:
            told = {"key": key, "code": key if len(key) > 1 else "", "windowsVirtualKeyCode": codes.get(key, 0)}
            text = {"Enter": "\r", " ": " "}.get(key, key if len(key) == 1 else None)
            self.call("Input.dispatchKeyEvent", type="keyDown", **told, **({"text": text} if text else {}))
            self.call("Input.dispatchKeyEvent", type="keyUp", **told)

    def picture(self, path: Path, *, whole: bool = False) -> None:
        """Write what is seen as PNG, or the whole page."""
        told: Json = {"format": "png", "captureBeyondViewport": whole}
        if whole:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            told["clip"] = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", **told)["data"]))


@contextmanager
def chromium(folder: Path) -> Iterator[Page]:
    """A browser with an empty profile in a folder, and a page in it."""
    child_in, to = os.pipe()
    back, child_out = os.pipe()
    flags = "--headless=new --no-sandbox --disable-gpu --hide-scrollbars --no-first-run --remote-debugging-pipe"
    # The protocol is spoken over the descriptors 3 and 4, whatever their numbers are here.
    command = f'exec 3<&{child_in} 4>&{child_out}; exec chromium {flags} --user-data-dir="$0" about:blank'
    process = subprocess.Popen(
        ["bash", "-c", command, str(folder)],
        pass_fds=(child_in, child_out),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(child_in)
    os.close(child_out)
    try:
        yield Page(process, to, back)
    finally:
        os.close(to)
        os.close(back)
        process.terminate()
        process.wait(PATIENCE_S)


def texts(page: Page, selector: str) -> list[str]:
    """What elements say."""
    found = page.ask(f"[...document.querySelectorAll({json.dumps(selector)})].map((one) => one.textContent)")
    return [str(text) for text in found]
