"""A headless Chromium, driven over the DevTools protocol through two pipes: what tests of HTML pages need, out of the
standard library."""

import base64
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find():
    """The path of a Chromium, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class BrowserError(RuntimeError):
    pass


class Browser:
    """Use as a context manager. One page at a time."""

    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(prefix="replayeval-chromium-", ignore_cleanup_errors=True)
        to_browser, self.sending = os.pipe()
        self.receiving, from_browser = os.pipe()
        # Chromium reads commands from descriptor 3 and answers on 4.
        shell = f'exec 3<&{to_browser} 4>&{from_browser}; exec "$@"'
        command = [find(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                   "--no-first-run", "--disable-background-networking", "--disable-component-update",
                   f"--user-data-dir={self.profile.name}", "--remote-debugging-pipe", "about:blank"]
        self.process = subprocess.Popen(["bash", "-c", shell, "bash", *command], pass_fds=(to_browser, from_browser),
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.buffer = b""
        self.number = 0
        self.events = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.sending)  # Chromium ends when its pipe does
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.receiving)
        self.profile.cleanup()

    def _read(self):
        while b"\0" not in self.buffer:
            chunk = os.read(self.receiving, 1 << 20)
            if not chunk:
                raise BrowserError("Chromium ended")
            self.buffer += chunk
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if hasattr(self, "session"):
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.sending, data):]
        while True:
            answer = self._read()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, file, width, dark=False, height=900):
        """Loads a local file at a window width in CSS pixels; returns once it is laid out."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", media="screen",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.events = []
        self.call("Page.navigate", url=pathlib.Path(file).resolve().as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._read())
        self.evaluate("document.fonts.ready.then(() => true)")

    def evaluate(self, expression):
        """The value of a JavaScript expression, a promise's included."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise BrowserError(result["exceptionDetails"]["exception"].get("description", "an exception"))
        return result["result"].get("value")

    def complaints(self):
        """What stands on the console, and every request for anything but the page itself."""
        said = []
        for event in self.events:
            parameters = event.get("params", {})
            if event.get("method") == "Log.entryAdded":
                said.append(parameters["entry"]["text"])
            elif event.get("method") == "Runtime.consoleAPICalled":
                said.append(" ".join(str(argument.get("value")) for argument in parameters["args"]))
            elif event.get("method") == "Runtime.exceptionThrown":
                said.append(parameters["exceptionDetails"]["text"])
            elif event.get("method") == "Network.requestWillBeSent" and parameters.get("type") != "Document":
                url = parameters["request"]["url"]
                if not url.startswith("data:"):
                    said.append("request for " + url)
        return said

    def screenshot(self, file):
        """The whole page as PNG."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        picture = self.call("Page.captureScreenshot", captureBeyondViewport=True,
                            clip={"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 16000),
                                  "scale": 1})
        pathlib.Path(file).write_bytes(base64.b64decode(picture["data"]))
