"""A tier of real processes for scenario tests: a coordinator and workers on free ports, each of which a test may kill,
freeze, end or start again. Standard library only.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("MOETIER_BIN", SOURCE / "build" / "release" / "bin"))
MODEL = SOURCE / "deploy" / "demo" / "model"
FULL = os.environ.get("MOETIER_FULL") == "1"
SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")  # keeps what is freed: memory says nothing there
# Our own processes bring their sanitizer's runtime with them and answer for their leaks.
ENVIRONMENT = {key: value for key, value in os.environ.items() if key not in ("LD_PRELOAD", "ASAN_OPTIONS")}
# Not the short commands: the leak check's tracer crashes in UCX's memory when a process ends with its threads running.
COMMAND_ENVIRONMENT = {**ENVIRONMENT, "ASAN_OPTIONS": "detect_leaks=0"}


def wait_until(condition, limit, what, pause=0.005):
    """Seconds until `condition` holds; fails the test after `limit`."""
    started = time.monotonic()
    while time.monotonic() - started < limit:
        if condition():
            return time.monotonic() - started
        time.sleep(pause)  # real processes: there is no other clock
    raise AssertionError(f"{what} did not come within {limit} s")


class Member:
    """One process of the tier and what it said when it began to listen."""

    def __init__(self, arguments, log):
        self.arguments, self.log = arguments, log
        self.start()

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([str(BIN / "moetier"), *self.arguments], stdout=subprocess.PIPE, stderr=log,
                                            env=ENVIRONMENT)
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"{self.arguments[0]} ended with {self.process.wait()}: {self.log_text()[-2000:]}")
        self.listening = json.loads(line)
        # The next start listens at the same addresses, so that peers find it again.
        for flag, key in (("--rpc-listen", "rpc"), ("--control-listen", "control"), ("--http-listen", "http")):
            if flag in self.arguments:
                self.arguments[self.arguments.index(flag) + 1] = self.listening[key]

    def log_text(self):
        return pathlib.Path(self.log).read_text(errors="replace")

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.signal(signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()

    def end(self, limit=5.0):
        """SIGTERM; (exit code, seconds)."""
        started = time.monotonic()
        self.signal(signal.SIGTERM)
        code = self.process.wait(timeout=limit)
        self.process.stdout.close()
        return code, time.monotonic() - started

    def get(self, path, limit=1.0):
        """(status, text) of one of its pages; (0, "") if nobody answers."""
        try:
            with urllib.request.urlopen(f"http://{self.listening['http']}{path}", timeout=limit) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refusal:
            return refusal.code, refusal.read().decode()
        except (urllib.error.URLError, OSError):
            return 0, ""


class ProcessTier:
    """`with ProcessTier(workers=3) as tier:` is a ready tier; leaving ends all of it."""

    def __init__(self, workers=3, slots=None, placement=None, model=MODEL, settings=()):
        self.folder = tempfile.mkdtemp(prefix="moetier-scenario-")
        listen = ["--http-listen", "127.0.0.1:0"]
        more = ["--placement", str(placement)] if placement else []
        self.coordinator = self._member("coordinator", [
            "coordinator", "--model", str(model), "--workers", str(workers), "--state-dir", self.folder + "/state",
            "--rpc-listen", "127.0.0.1:0", "--control-listen", "127.0.0.1:0", *listen, *more, *settings])
        self.workers = {}
        for n in range(1, workers + 1):
            name = f"worker@{n}"
            count = slots[n - 1] if isinstance(slots, (list, tuple)) else slots
            self.workers[name] = self._member(name, [
                "worker", "--model", str(model), "--name", name, "--coordinator",
                self.coordinator.listening["control"], *listen, *(["--slots", str(count)] if count else []), *settings])

    def _member(self, name, arguments):
        return Member(arguments, os.path.join(self.folder, name + ".log"))

    @property
    def address(self):
        return self.coordinator.listening["rpc"]

    def members(self):
        return [self.coordinator, *self.workers.values()]

    def ready(self):
        return self.coordinator.get("/readyz")[0] == 200

    def wait_ready(self, limit=30):
        return wait_until(self.ready, limit, "readiness")

    def command(self, *arguments, check=True, address=None):
        done = subprocess.run([str(BIN / "moetier"), *arguments, "--address", address or self.address],
                              capture_output=True, text=True, timeout=60, env=COMMAND_ENVIRONMENT)
        if check and done.returncode != 0:
            raise AssertionError(f"moetier {' '.join(arguments)}: exit {done.returncode}: {done.stderr}")
        return done

    def status(self):
        return json.loads(self.command("status", "-o", "json", check=False).stdout)

    def placement(self):
        return json.loads(self.command("placement", "show", "-o", "json").stdout)

    def __enter__(self):
        try:
            self.wait_ready()
        except AssertionError:
            self.__exit__(AssertionError, None, None)
            raise
        return self

    def __exit__(self, failure, *_):
        for member in self.members():
            if member.process.poll() is None:
                member.signal(signal.SIGCONT)
                member.signal(signal.SIGTERM)
        for member in self.members():
            try:
                member.process.wait(timeout=6)
            except subprocess.TimeoutExpired:
                member.process.kill()
                member.process.wait()
            member.process.stdout.close()
        if failure is not None:
            for member in self.members():
                print(f"--- {member.log}\n{member.log_text()[-3000:]}")
        shutil.rmtree(self.folder, ignore_errors=True)
