"""What an operator looks at besides the page: `status --watch`, the heat map, JSON logs and their level, /debug, the
flight recorder. Every JSON document says what it is by one pattern.
"""
import fcntl
import http.client
import json
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import tempfile
import termios
import time
import unittest

import numpy as np

import moetier
from process_tier import BIN, COMMAND_ENVIRONMENT, ENVIRONMENT, MODEL, ProcessTier, wait_until
import vectors

SCHEMA = re.compile(r"moetier\.[a-z][a-z_]*/[1-9][0-9]*")
PROGRAM = str(BIN / "moetier")
VECTORS = MODEL.parent / "vectors" / "moe_vectors.safetensors"


def log_lines(text):
    """Each line of a log, as the JSON object that it must be."""
    return [json.loads(line) for line in text.splitlines()]


def events(text, name):
    return [line for line in log_lines(text) if line["event"] == name]


class Terminal:
    """A command on a terminal of its own, and what it has drawn there."""

    def __init__(self, rows, columns, *arguments):
        self.pid, self.end = pty.fork()
        if self.pid == 0:
            os.execve(PROGRAM, [PROGRAM, *arguments], COMMAND_ENVIRONMENT)
        self.drawn, self.code = b"", None
        self.resize(rows, columns)

    def resize(self, rows, columns):
        fcntl.ioctl(self.end, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def hear(self, pause):
        while select.select([self.end], [], [], pause)[0]:
            try:
                block = os.read(self.end, 65536)
            except OSError:  # it has ended
                return False
            if not block:
                return False
            self.drawn += block
        return True

    def frames(self):
        """The rows of each whole picture, without the codes."""
        whole = self.drawn.split(b"\x1b[H")[1:]
        return [[row.replace("\x1b[K", "").rstrip("\r") for row in frame.split(b"\x1b[J")[0].decode().split("\r\n")]
                for frame in whole if b"\x1b[J" in frame]

    def wait_for(self, condition, limit, what):
        until = time.monotonic() + limit
        while not condition():
            if time.monotonic() > until:
                raise AssertionError(f"{what} did not come; drawn: {self.drawn[-2000:]!r}")
            self.hear(0.05)

    def press(self, key):
        os.write(self.end, key)

    def wait(self, limit):
        until = time.monotonic() + limit
        while self.code is None and time.monotonic() < until:
            self.hear(0.05)
            done, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if done else None
        if self.code is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.end)
        return self.code


class Watch(unittest.TestCase):
    def test_on_a_terminal_it_is_one_picture_that_fits_and_ends_well(self):
        with ProcessTier(workers=2) as tier:
            screen = Terminal(30, 100, "status", "--watch", "--interval", "200ms", "--address", tier.address)
            try:
                screen.wait_for(lambda: any("rows/s" in row for f in screen.frames() for row in f), 10, "a second look")
                self.assertTrue(screen.drawn.startswith(b"\x1b[?1049h\x1b[?25l"))
                tier.workers["worker@2"].kill()
                screen.wait_for(lambda: any("worker@2" in row and "lost" in row for row in screen.frames()[-1]), 5,
                                "the loss")
                before = len(screen.frames())
                screen.resize(8, 40)
                screen.wait_for(lambda: len(screen.frames()) >= before + 3, 5, "pictures of the new size")
                for frame in screen.frames()[-2:]:
                    self.assertLessEqual(len(frame), 8)
                    self.assertLessEqual(max(map(len, frame)), 40)
                # None of the codes scrolls or adds a line: the screen is only ever drawn over.
                self.assertNotIn(b"\n\n", screen.drawn.replace(b"\r", b""))
                screen.press(b"\x03")
            finally:
                code = screen.wait(5)
            self.assertEqual(0, code)
            left = screen.drawn.rsplit(b"\x1b[?25h\x1b[?1049l", 1)
            self.assertEqual(2, len(left), "the terminal is given back as it was")
            self.assertIn(b"worker@2", left[1])  # what was seen last stays

    def test_elsewhere_it_is_lines_or_documents_and_outlives_the_coordinator(self):
        with ProcessTier(workers=1) as tier:
            for form in ("table", "json"):
                watch = subprocess.Popen([PROGRAM, "status", "--watch", "--interval", "100ms", "-o", form, "--address",
                                          tier.address], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                         env=COMMAND_ENVIRONMENT)
                lines = [watch.stdout.readline() for _ in range(3)]
                if form == "json":
                    self.assertEqual({"moetier.status/1"}, {json.loads(line)["schema"] for line in lines})
                else:
                    self.assertTrue(all("ready  workers 1/1" in line for line in lines), lines)
                    self.assertNotIn("\x1b", "".join(lines))
                    tier.coordinator.kill()
                    wait_until(lambda: "no answer: " in watch.stdout.readline(), 10, "the silence")
                    tier.coordinator.start()
                    wait_until(lambda: "ready  workers 1/1" in watch.stdout.readline(), 20, "the new coordinator")
                watch.send_signal(signal.SIGINT)
                self.assertEqual(0, watch.wait(timeout=5))
                self.assertEqual("", watch.stderr.read())
                watch.stdout.close()
                watch.stderr.close()


class Documents(unittest.TestCase):
    def test_each_names_its_schema_by_one_pattern(self):
        with ProcessTier(workers=2) as tier:
            rows = tier.command("forward", "--layer", "1", "--in", str(VECTORS), "--prefix", "novel.layer1.", "--out",
                                tier.folder + "/out.safetensors", "-o", "json")
            seen = {"forward": json.loads(rows.stdout)["schema"]}
            # Reports come once a second.
            wait_until(lambda: any(sum(l["rows"]) for l in tier.status()["load"]), 5, "counted rows", pause=0.2)
            for words in (["status"], ["placement", "show"], ["placement", "heatmap"], ["adapters", "list"],
                          ["log-level", "configured"], ["resolve", "--live"], ["resolve", "--capture"],
                          ["up", "--print-config"]):
                done = subprocess.run([PROGRAM, *words, "--address", tier.address, "-o", "json"], capture_output=True,
                                      text=True, timeout=60, env=COMMAND_ENVIRONMENT)
                self.assertEqual(0, done.returncode, (words, done.stderr))
                seen[" ".join(words)] = json.loads(done.stdout)["schema"]
            version = subprocess.run([PROGRAM, "--version", "-o", "json"], capture_output=True, text=True, timeout=60)
            seen["version"] = json.loads(version.stdout)["schema"]
            seen["listening"] = tier.coordinator.listening["schema"]
            for member, pages in (
                    (tier.coordinator, "/status.json /livez /readyz /version /debug/config /debug/placement "
                                       "/debug/experts /debug/environment /debug/resolution /debug/waits "
                                       "/debug/flight"),
                    (tier.workers["worker@1"], "/livez /readyz /version /debug/config /debug/environment /debug/waits "
                                               "/debug/flight")):
                for page in pages.split():
                    code, text = member.get(page)
                    self.assertEqual(200, code, (page, text))
                    seen[page] = json.loads(text)["schema"]
            self.assertEqual({}, {what: name for what, name in seen.items() if not SCHEMA.fullmatch(name)})
            print(json.dumps(sorted(set(seen.values()))))

            # Their contents: rows that were sent are found again, per expert and in the recorders of both sides.
            hot = json.loads(tier.command("placement", "heatmap", "--layer", "1", "--top", "3", "-o", "json").stdout)
            self.assertEqual([1], [layer["layer"] for layer in hot["layers"]])
            layer = hot["layers"][0]
            self.assertEqual(3, len(layer["experts"]))
            self.assertGreater(layer["rows"], 0)
            for expert in layer["experts"]:
                self.assertEqual(expert["rows"], sum(r["rows"] for r in expert["replicas"]))
                self.assertAlmostEqual(expert["rows"] / layer["rows"], expert["share"])
            self.assertIn("balance", tier.command("placement", "heatmap").stdout)
            refused = tier.command("placement", "heatmap", "--layer", "99", check=False)
            self.assertEqual(1, refused.returncode)
            self.assertIn("99", refused.stderr)
            flight = json.loads(tier.coordinator.get("/debug/flight")[1])
            self.assertEqual({0, 1}, {w["peer"] for w in flight["waits"]})
            self.assertTrue(all(w["layer"] == 1 and w["status"] == "OK" and w["bytes_due"] == w["bytes_seen"]
                                for w in flight["waits"]), flight)
            self.assertEqual("source", json.loads(tier.workers["worker@1"].get("/debug/waits")[1])["peers_are"])

            config = json.loads(tier.coordinator.get("/debug/config")[1])["settings"]
            self.assertEqual("flag --workers", config["coordinator.workers"]["origin"])
            self.assertEqual("default", config["detect.heartbeat"]["origin"])

    def test_debug_pages_are_refused_to_a_page_of_elsewhere(self):
        with ProcessTier(workers=1) as tier:
            host, port = tier.coordinator.listening["http"].rsplit(":", 1)
            for name, code in (("evil.example", 403), (f"127.0.0.1:{port}", 200)):
                link = http.client.HTTPConnection(host, int(port), timeout=5)
                link.request("GET", "/debug/config", headers={"Host": name})
                answer = link.getresponse()
                self.assertEqual(code, answer.status)
                self.assertEqual(code == 200, b"settings" in answer.read())
                link.close()

    def test_a_document_that_the_disk_does_not_take_is_none(self):
        with open("/dev/full", "wb") as full:
            for arguments in (["resolve", "--capture"], ["coordinator", "--print-config"]):
                ended = subprocess.run([PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE, text=True,
                                       env=COMMAND_ENVIRONMENT)
                self.assertEqual((7, "moetier: cannot write standard output: it took not all\n"),
                                 (ended.returncode, ended.stderr), arguments)

    def test_up_shows_no_port_that_it_does_not_use(self):
        shown = subprocess.run([PROGRAM, "up", "--model", str(MODEL), "--print-config"], capture_output=True, text=True,
                               timeout=30, env=COMMAND_ENVIRONMENT).stdout
        self.assertEqual({"7400", "0"}, set(re.findall(r'"127\.0\.0\.1:(\d+)"', shown)), shown)
        self.assertIn("set by up for each worker", shown)


class Logs(unittest.TestCase):
    def test_lines_are_objects_with_ids_and_their_level_can_be_set_meanwhile(self):
        with ProcessTier(workers=1) as tier:
            worker = tier.workers["worker@1"]
            connection = moetier.connect(tier.address)
            session = connection.session(max_tokens=4)
            for text, component in ((tier.coordinator.log_text(), "coordinator"), (worker.log_text(), "worker")):
                for line in log_lines(text):
                    self.assertEqual(["ts", "level", "event", "component"], list(line)[:4])
                    self.assertEqual(component, line["component"])
            self.assertEqual(["worker@1"], [line["worker"] for line in events(worker.log_text(), "linked")])
            opened = events(tier.coordinator.log_text(), "session_opened")[0]
            self.assertEqual((tier.status()["epoch"], 1), (opened["epoch"], opened["generation"]))
            self.assertEqual(tier.status()["sessions"][0]["session"], opened["session"])

            tier.command("log-level", "error")
            session.close()
            connection.close()
            for member in (tier.coordinator, worker):
                wait_until(lambda: tier.status()["sessions"] == [], 5, "the session's end", pause=0.1)
            time.sleep(0.3)  # some beats: the level comes with one
            self.assertEqual([], events(tier.coordinator.log_text(), "session_ended"))
            tier.command("log-level", "debug")
            for member in (tier.coordinator, worker):
                wait_until(lambda: [e["set"] for e in events(member.log_text(), "log_level")][-1:] == ["debug"], 5,
                           "the level", pause=0.05)
            refused = tier.command("log-level", "loud", check=False)
            self.assertEqual(2, refused.returncode)

    def test_who_stops_reading_them_holds_up_no_tier(self):
        reading, writing = os.pipe()  # a pager that is paused
        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
        up = subprocess.Popen([PROGRAM, "up", "--model", str(MODEL), "--workers", "2", "--rpc-port", "0", "--log-level",
                               "debug", "-o", "json"], stdout=subprocess.PIPE, stderr=writing, text=True,
                              env=ENVIRONMENT)
        try:
            os.close(writing)
            self.assertTrue(select.select([up.stdout], [], [], 30)[0], "it is not ready")
            address = json.loads(up.stdout.readline())["address"]
            asked = subprocess.run([PROGRAM, "status", "--address", address], capture_output=True, timeout=30,
                                   env=COMMAND_ENVIRONMENT)
            self.assertEqual(0, asked.returncode, asked.stderr)
            up.terminate()
            self.assertEqual(0, up.wait(timeout=10))
        finally:
            up.kill()
            up.wait()
            up.stdout.close()
            os.close(reading)

    def test_a_worker_that_reaches_no_coordinator_says_so(self):
        with tempfile.TemporaryFile() as log:
            worker = subprocess.Popen([PROGRAM, "worker", "--model", str(MODEL), "--coordinator", "127.0.0.1:9",
                                       "--http-listen", "127.0.0.1:0"], stdout=subprocess.DEVNULL, stderr=log,
                                      env=ENVIRONMENT)

            def said():
                log.seek(0)
                return events(log.read().decode(), "coordinator_unreached")

            try:
                wait_until(said, 10, "the line", pause=0.1)
                time.sleep(1)
                self.assertEqual(1, len(said()), "told once, then every ten seconds")
                self.assertEqual(("warn", "127.0.0.1:9", "worker@1"),
                                 tuple(said()[0][key] for key in ("level", "coordinator", "worker")))
            finally:
                worker.terminate()
                worker.wait(timeout=10)

    def test_all_that_up_prints_is_whole_lines_of_json(self):
        up = subprocess.Popen([PROGRAM, "up", "--model", str(MODEL), "--workers", "2", "--rpc-port", "0", "-o", "json"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ENVIRONMENT)
        try:
            lines = []
            while not lines or lines[-1].get("schema") != "moetier.ready/1":
                lines.append(json.loads(up.stdout.readline()))
        finally:
            up.terminate()
            rest = up.stdout.read()
            self.assertEqual(0, up.wait(timeout=10))
            up.stdout.close()
        lines += log_lines(rest)
        self.assertEqual(1, sum("schema" in line for line in lines))
        self.assertTrue(all("ts" in line for line in lines if "schema" not in line))
        self.assertEqual({"up", "coordinator", "worker"}, {line["component"] for line in lines if "ts" in line})


class FlightRecorder(unittest.TestCase):
    def test_a_timeout_writes_it_and_names_the_late_worker(self):
        hidden, logits, _ = vectors.load()["novel", 1]
        with ProcessTier(workers=2, settings=("--set", "deadline.decode=200ms")) as tier:
            path = pathlib.Path(tier.folder) / "client_flight.json"
            connection = moetier.connect(tier.address, flight_file=path)
            session = connection.session(max_tokens=16)
            with session.step() as step:
                step.forward(layer=1, hidden=hidden[:16], logits=logits[:16])
            self.assertFalse(path.exists())
            late = next(w["worker"] for w in tier.status()["workers"] if w["name"] == "worker@2")
            tier.workers["worker@2"].signal(signal.SIGSTOP)
            with self.assertRaises(moetier.Timeout):
                with session.step() as step:
                    step.forward(layer=1, hidden=hidden[:16], logits=logits[:16])
            flight = json.loads(path.read_text())
            self.assertEqual("moetier.flight/1", flight["schema"])
            self.assertEqual(0o600, path.stat().st_mode & 0o777)
            ends = [(w["peer"], w["status"]) for w in flight["waits"]]
            self.assertIn((late, "TIMEOUT"), ends)
            self.assertGreaterEqual(ends.count((late, "OK")), 1)  # the call before
            slow = next(w for w in flight["waits"] if w["status"] == "TIMEOUT")
            self.assertEqual((1, 0), (slow["layer"], slow["bytes_seen"]))
            self.assertGreater(slow["bytes_due"], 0)
            self.assertGreaterEqual(slow["age_ns"], 200e6)
            tier.workers["worker@2"].signal(signal.SIGCONT)
            connection.close()


if __name__ == "__main__":
    unittest.main()
