"""Debian's own prometheus over a tier of real processes, with the shipped rules in a copy whose times are seconds, so
that what takes ten minutes in service takes one. Standard library only.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import urllib.error
import urllib.parse
import urllib.request

from process_tier import SOURCE, wait_until

RULES = SOURCE / "deploy" / "prometheus" / "moetier.rules.yml"
WINDOW = 6  # seconds, in place of the rules' minutes


def missing_programs():
    return [p for p in ("prometheus", "promtool") if shutil.which(p) is None]


def hastened(text):
    """The rules with every time shortened: they are the shipped ones in all else."""
    text = re.sub(r"\[\d+[smh]\]", f"[{WINDOW}s]", text)
    text = re.sub(r"\boffset 1d\b", f"offset {2 * WINDOW}s", text)
    text = re.sub(r"(\n\s+)for: \w+", r"\1for: 1s", text)
    return re.sub(r"(\n\s+)interval: \w+", r"\1interval: 1s", text)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Prometheus:
    """`with Prometheus() as watcher:`; targets() says whom it scrapes, from the next second on."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="moetier-prometheus-"))
        self.url = f"http://127.0.0.1:{free_port()}"
        self.fired = {}  # alert -> labels of one that fired
        (self.folder / "rules.yml").write_text(hastened(RULES.read_text()))
        self.targets({})
        (self.folder / "prometheus.yml").write_text(json.dumps({  # JSON is YAML
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": ["rules.yml"],
            "scrape_configs": [{"job_name": "moetier", "file_sd_configs": [{"files": ["targets.json"],
                                                                            "refresh_interval": "1s"}]}]}))

    def targets(self, by_tier):
        """{tier: [members]}: the members' /metrics, each tier a job of its own."""
        groups = [{"targets": [m.listening["http"] for m in members], "labels": {"job": tier}}
                  for tier, members in by_tier.items()]
        draft = self.folder / "targets.draft"
        draft.write_text(json.dumps(groups))
        os.replace(draft, self.folder / "targets.json")

    def __enter__(self):
        self.log = open(self.folder / "log", "wb")
        self.process = subprocess.Popen(
            ["prometheus", "--config.file", str(self.folder / "prometheus.yml"), "--storage.tsdb.path",
             str(self.folder / "data"), "--web.listen-address", self.url.removeprefix("http://"), "--log.level=warn"],
            stdout=self.log, stderr=self.log)
        wait_until(lambda: self._answers(), 20, "prometheus", pause=0.1)
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _answers(self):
        if self.process.poll() is not None:
            raise AssertionError("prometheus ended: " + (self.folder / "log").read_text(errors="replace")[-2000:])
        try:
            return urllib.request.urlopen(self.url + "/-/ready", timeout=1).status == 200
        except (urllib.error.URLError, OSError):
            return False

    def _ask(self, path, **arguments):
        query = "?" + urllib.parse.urlencode(arguments) if arguments else ""
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}{query}", timeout=5) as answer:
            return json.loads(answer.read())["data"]

    def value(self, expression):
        """Of an expression that has one sample; None while it has none."""
        samples = self._ask("query", query=expression)["result"]
        if len(samples) > 1:
            raise AssertionError(f"{expression}: {len(samples)} samples")
        return float(samples[0]["value"][1]) if samples else None

    def wait_value(self, expression, wanted, limit=10):
        """Until it is `wanted`; (seconds, or a failure that names the last value)."""
        seen = []
        try:
            return wait_until(lambda: seen.append(self.value(expression)) or seen[-1] == wanted, limit, expression,
                              pause=0.25)
        except AssertionError:
            raise AssertionError(f"{expression} is {seen[-1]}, not {wanted}, after {limit} s") from None

    def firing(self):
        for alert in self._ask("alerts")["alerts"]:
            if alert["state"] == "firing":
                self.fired.setdefault(alert["labels"]["alertname"], alert)
        return self.fired

    def wait_alert(self, name, limit=20):
        return wait_until(lambda: name in self.firing(), limit, f"alert {name}", 0.25)
