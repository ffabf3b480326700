"""A headless browser for scenario tests: Debian's chromium, spoken to by its DevTools protocol over two pipes (JSON
objects that end in a zero byte). It keeps what the page wrote to the console and what it asked for over the network.
Standard library only.
"""
import base64
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import tempfile
import time

from process_tier import ENVIRONMENT


def find():
    """The program, or None."""
    return shutil.which("chromium")


class Browser:
    """`with Browser() as b: b.open(url)`; one page."""

    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="moetier-browser-")
        from_us, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()
        for end in (from_us, from_browser):
            os.set_inheritable(end, True)

        def take_pipes():  # the protocol's places: 3 to read, 4 to write
            low = os.dup(from_us), os.dup(from_browser)
            high = os.dup2(low[0], 20), os.dup2(low[1], 21)
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)
            os.setpgid(0, 0)

        self.process = subprocess.Popen(
            [find(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync", "--mute-audio",
             "--hide-scrollbars", f"--user-data-dir={self.profile}", "--remote-debugging-pipe", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False,
            preexec_fn=take_pipes, env=ENVIRONMENT)
        os.close(from_us)
        os.close(from_browser)
        self.unread, self.number, self.session = b"", 0, None
        self.console, self.requests, self.failures = [], [], []
        try:
            target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
            self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Network", "Log"):
                self.call(domain + ".enable")
        except BaseException:
            self.__exit__()  # nobody else will
            raise

    def _receive(self, limit):
        """The next message, or None after the limit."""
        until = time.monotonic() + limit
        while b"\0" not in self.unread:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.read_end], [], [], left)[0]:
                return None
            block = os.read(self.read_end, 1 << 20)
            if not block:
                raise AssertionError("the browser has ended")
            self.unread += block
        text, self.unread = self.unread.split(b"\0", 1)
        message = json.loads(text)
        self._note(message)
        return message

    def _note(self, message):
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.consoleAPICalled":
            self.console.append(" ".join(str(a.get("value", a.get("description"))) for a in params["args"]))
        elif method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.console.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Log.entryAdded":
            self.console.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Network.loadingFailed":
            self.failures.append(params["errorText"])

    def call(self, method, limit=30.0, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + limit
        while time.monotonic() < until:
            answer = self._receive(until - time.monotonic())
            if answer and answer.get("id") == message["id"]:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]
        raise AssertionError(f"{method} got no answer within {limit} s")

    def open(self, url):
        self.call("Page.navigate", url=url)

    def evaluate(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait_for(self, expression, limit, what):
        """Seconds until the expression is true; looks ten times a second."""
        began = time.monotonic()
        while time.monotonic() - began < limit:
            if self.evaluate(expression):
                return time.monotonic() - began
            self._receive(0.1)
        raise AssertionError(f"{what} did not come within {limit} s; the page says: {self.text()[:2000]}")

    def text(self):
        return self.evaluate("document.body.innerText")

    def look(self, width, height, scheme="light", phone=False):
        """The window's size and the reader's colours."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2 if phone else 1,
                  mobile=phone)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self, path):
        """The whole page, not only what the window shows."""
        picture = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        pathlib.Path(path).write_bytes(base64.b64decode(picture["data"]))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for end in (self.write_end, self.read_end):
            os.close(end)
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)
