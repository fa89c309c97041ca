"""A page in a headless Chromium, driven by its own protocol over a pipe: no server, no network."""

import base64
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any, Self

import pytest

SECONDS = 120
"""How long a page may take to draw everything, on a busy machine."""

# The browser reads commands from descriptor 3 and answers on 4.
COMMAND = """exec "$0" --headless=new --no-sandbox --disable-gpu --no-first-run \
--disable-dev-shm-usage --remote-debugging-pipe --user-data-dir="$1" 3<&0 4>&1 </dev/null >/dev/null
"""


class Page:
    """An open page; where there is no browser the test is skipped.

    Attributes:
        complaints: what the console said of errors and warnings, and what scripts raised.
        fetched: the addresses that it asked for, data within the page aside.
    """

    def __init__(self, profile: Path) -> None:
        names = ("chromium", "chromium-browser", "google-chrome")
        program = next(filter(None, map(shutil.which, names)), None)
        if program is None:
            pytest.skip("there is no Chromium here (Debian: apt-get install chromium)")
        self.complaints: list[str] = []
        self.fetched: list[str] = []
        self._number = 0
        self._session: dict[str, str] = {}
        self._process = subprocess.Popen(
            ["bash", "-c", COMMAND, program, profile],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        target = self.call("Target.createTarget", url="about:blank")
        attached = self.call("Target.attachToTarget", **target, flatten=True)
        self._session = {"sessionId": attached["sessionId"]}
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._process:
            self._process.terminate()

    def call(self, method: str, **parameters: object) -> Any:
        """Send a command and return what it answers; what happens meanwhile is noted."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message | self._session).encode() + b"\0")
        self._process.stdin.flush()
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            self._note(answer)

    def open(self, place: Path | str, *, width: int, scheme: str) -> None:
        """Open a file or an address, ``light`` or ``dark``, until all is drawn.

        What was noted of pages before is forgotten.
        """
        self.complaints.clear()
        self.fetched.clear()
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[feature])
        address = place if isinstance(place, str) else place.as_uri()
        self.call("Page.navigate", url=address)
        self.wait("document.documentElement?.dataset.ready === 'yes'")

    def run(self, expression: str) -> Any:
        """Return the value of an expression in the page, awaited."""
        done = self.call(
            "Runtime.evaluate",
            expression=expression,
            awaitPromise=True,
            returnByValue=True,
            timeout=SECONDS * 1000,
        )
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

    def press(self, key: str, *, control: bool = False, text: str = "") -> None:
        """Press a key, which writes nothing unless a text is given, and let it go."""
        codes = {"Enter": 13, "Tab": 9, "Escape": 27, "ArrowUp": 38, "ArrowRight": 39}
        pressed = {"key": key, "windowsVirtualKeyCode": codes[key], "text": text}
        pressed["modifiers"] = 2 * control
        for event in ("keyDown" if text else "rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=event, **pressed)

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

    def _read(self) -> Any:
        assert self._process.stdout is not None
        text = b""
        while (byte := self._process.stdout.read(1)) != b"\0":
            assert byte, "the browser has ended"
            text += byte
        return json.loads(text)

    def _note(self, event: dict[str, Any]) -> None:
        said = event.get("params", {})
        level = said.get("type") or said.get("entry", {}).get("level")
        is_fault = event["method"] == "Runtime.exceptionThrown"
        if is_fault or level in ("error", "warning", "assert"):
            self.complaints.append(str(said))
        if event["method"] == "Network.requestWillBeSent":
            address = said["request"]["url"]
            if not address.startswith("data:"):
                self.fetched.append(address)
