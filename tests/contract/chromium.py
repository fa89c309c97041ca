"""A page in a headless Chromium, driven by its own protocol over a pipe: no server, no network."""

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import pytest

SECONDS = 120
"""How long a page may take to draw everything, on a busy machine."""

_OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-dev-shm-usage",
)


def chromium() -> str:
    """Return the browser's program; where there is none the test is skipped."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if program := shutil.which(name):
            return program
    pytest.skip("there is no Chromium here (Debian, Ubuntu: apt-get install chromium)")


class Page:
    """An open page.

    Attributes:
        complaints: what the console said of errors and warnings, and what scripts raised.
        fetched: the addresses that it asked for, data within the page aside.
    """

    def __init__(self, profile: Path) -> None:
        program = chromium()
        self.complaints: list[str] = []
        self.fetched: list[str] = []
        self._number = 0
        self._session = ""
        commands, self._commands = os.pipe()
        self._answers, answers = os.pipe()
        # The browser reads commands from descriptor 3 and answers on 4, whatever they are here.
        redirected = f'exec "$0" "$@" 3<&{commands} 4>&{answers}'
        arguments = [
            program,
            *_OPTIONS,
            "--remote-debugging-pipe",
            f"--user-data-dir={profile}",
        ]
        self._process = subprocess.Popen(
            ["bash", "-c", redirected, *arguments],
            pass_fds=(commands, answers),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        self._stream = os.fdopen(self._answers, "rb")
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call(
            "Target.attachToTarget", targetId=target, flatten=True
        )["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(30)
        os.close(self._commands)
        self._stream.close()

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """Send a command and return what it answers; what happens meanwhile is noted."""
        self._number += 1
        message: dict[str, object] = {
            "id": self._number,
            "method": method,
            "params": parameters,
        }
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def open(self, place: Path | str, *, width: int, scheme: str) -> None:
        """Open a file or an address, ``light`` or ``dark``, until all is drawn."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[feature])
        self.call(
            "Page.navigate", url=place if isinstance(place, str) else place.as_uri()
        )
        self.wait("document.documentElement?.dataset.ready === 'yes'")

    def run(self, expression: str) -> Any:
        """Return the value of an expression in the page, awaited."""
        options = {
            "awaitPromise": True,
            "returnByValue": True,
            "timeout": SECONDS * 1000,
        }
        done = self.call("Runtime.evaluate", expression=expression, **options)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def wait(self, expression: str) -> None:
        """Wait until an expression is true: what answers to a key may do so a moment later."""
        until = f"""new Promise(done => {{
            const look = () => {expression} ? done(true) : setTimeout(look, 50);
            look();
        }})"""
        assert self.run(until) is True

    def point(self, selector: str, place: int = 0) -> None:
        """Move the pointer to the middle of an element: of several, that at a place."""
        script = f"""(() => {{
            const found = document.querySelectorAll({json.dumps(selector)})[{place}];
            found.scrollIntoView({{block: "center", inline: "center", behavior: "instant"}});
            const box = found.getBoundingClientRect();
            return {{x: box.x + box.width / 2, y: box.y + box.height / 2}};
        }})()"""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", **self.run(script))

    def click(self, selector: str) -> None:
        """Click on the middle of an element."""
        self.point(selector)
        self.run(f"document.querySelector({json.dumps(selector)}).click()")

    def press_enter(self) -> None:
        """Press the Enter key and let it go."""
        key = {"key": "Enter", "windowsVirtualKeyCode": 13}
        self.call("Input.dispatchKeyEvent", type="keyDown", text="\r", **key)
        self.call("Input.dispatchKeyEvent", type="keyUp", **key)

    def press(self, key: str, *, control: bool = False) -> None:
        """Press a key that writes nothing, and let it go."""
        codes = {"Enter": 13, "Tab": 9, "Escape": 27, "ArrowUp": 38, "ArrowRight": 39}
        one = {
            "key": key,
            "windowsVirtualKeyCode": codes[key],
            "modifiers": 2 * control,
        }
        self.call("Input.dispatchKeyEvent", type="rawKeyDown", **one)
        self.call("Input.dispatchKeyEvent", type="keyUp", **one)

    def picture(self, output: Path, *, whole: bool = False) -> None:
        """Keep what is seen as PNG: of the window, or of the whole page."""
        taken = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_bytes(base64.b64decode(taken["data"]))

    def printed(self, output: Path) -> None:
        """Keep the page as it prints, as PDF."""
        done = self.call(
            "Page.printToPDF", printBackground=True, preferCSSPageSize=True
        )
        output.write_bytes(base64.b64decode(done["data"]))

    def _read(self) -> dict[str, Any]:
        text = bytearray()
        while (byte := self._stream.read(1)) != b"\0":
            assert byte, "the browser has ended"
            text += byte
        message: dict[str, Any] = json.loads(text)
        return message

    def _note(self, event: Mapping[str, Any]) -> None:
        method, said = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.complaints.append(str(said["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and said["type"] in (
            "error",
            "warning",
            "assert",
        ):
            self.complaints.append(str(said["args"]))
        elif method == "Log.entryAdded" and said["entry"]["level"] in (
            "error",
            "warning",
        ):
            self.complaints.append(str(said["entry"]))
        elif method == "Network.requestWillBeSent":
            url = said["request"]["url"]
            if not url.startswith("data:"):
                self.fetched.append(url)
