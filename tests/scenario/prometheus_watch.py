"""Debian's prometheus watches a tier with the shipped rules: what it reads is what the traffic did, alerts fire for
their causes, and no process shows more series than it may."""
import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np

import moetier
from process_tier import ProcessTier, SOURCE
from prometheus_server import Prometheus, RULES, missing_programs
import vectors

DASHBOARD = SOURCE / "deploy" / "grafana" / "moetier.json"
GPU_ONLY = {"moetier_worker_device_errors_total", "moetier_worker_device_memory_bytes"}
WORKER_SERIES_MAX, COORDINATOR_SERIES_MAX, LAYERS_MAX = 400, 1500, 120
TOP_K = 4  # of the demo's model


def series_of(member):
    """The lines of /metrics that are samples."""
    return [line for line in member.get("/metrics")[1].splitlines() if line and not line.startswith("#")]


def names_in(lines):
    return {re.match(r"\w+", line).group() for line in lines}


def at_layers_max(lines):
    """How many series there would be for a model of LAYERS_MAX layers."""
    by_layer = [line for line in lines if re.search(r'layer="\d+"', line)]
    layers = {re.search(r'layer="(\d+)"', line).group(1) for line in by_layer}
    return len(lines) + (LAYERS_MAX - len(layers)) * len(by_layer) // len(layers)


def write_rows(path, hidden, logits):
    tensors = {"hidden": hidden, "logits": logits}
    header, data = {}, b""
    for name, tensor in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + tensor.nbytes]}
        data += tensor.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


class Watched(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if missing_programs():
            raise unittest.SkipTest(f"not installed: {missing_programs()}; deploy/setup.sh tests installs them")
        cls.folder = tempfile.TemporaryDirectory()
        # A stop of 0.7 s is no loss here.
        cls.tier = ProcessTier(workers=2, settings=["--set", "detect.timeout=3s"])
        cls.tier.__enter__()
        cls.addClassCleanup(cls.tier.__exit__, None)
        cls.watcher = Prometheus().__enter__()
        cls.addClassCleanup(cls.watcher.__exit__)
        cls.addClassCleanup(cls.folder.cleanup)
        cls.watcher.targets({"tier": cls.tier.members()})
        hidden, logits, _ = vectors.load()["novel", 0]
        cls.hidden, cls.logits = hidden[:16], logits[:16]
        cls.rows = pathlib.Path(cls.folder.name, "rows.safetensors")
        write_rows(cls.rows, cls.hidden, cls.logits)

    @classmethod
    def tearDownClass(cls):
        print("alerts fired: " + ", ".join(sorted(cls.watcher.fired)), file=sys.stderr)

    def forward(self, *arguments, path=None):
        """A call of a thin client, by the gateway."""
        return self.tier.command("forward", "--layer", "0", "--in", str(path or self.rows), "--out",
                                 self.folder.name + "/out.safetensors", *arguments, check=False)

    def call_directly(self, calls, rows=16, experts=None):
        """Calls of a fast client; with `experts` all rows go there."""
        with moetier.connect(self.tier.address) as service, service.session(max_tokens=64) as session:
            for _ in range(calls):
                with session.step() as step:
                    if experts is None:
                        step.forward(layer=0, hidden=self.hidden[:rows], logits=self.logits[:rows])
                    else:
                        ids = np.tile(np.array(experts, np.int32), (rows, 1))
                        step.forward(layer=0, hidden=self.hidden[:rows], ids=ids,
                                     weights=np.full(ids.shape, 0.25, np.float32))
            return session.stats

    # Named by letters: each goes on with what the one before has left.

    def test_a_figures_are_what_the_traffic_did(self):
        stats = self.call_directly(50)
        self.assertEqual(50, stats.calls)
        self.assertGreater(stats.held_ns, 0)
        # A worker has its rows while the source still sends the other's, so they may be held before all are in the air.
        self.assertGreaterEqual(stats.total_ns, stats.held_ns, "the worker held the rows longer than the call took")
        self.assertGreaterEqual(stats.total_ns, stats.air_ns)
        for _ in range(3):
            self.assertEqual(0, self.forward().returncode)
        bad = pathlib.Path(self.folder.name, "bad.safetensors")
        logits = self.logits.copy()
        logits[3, 5] = np.nan
        write_rows(bad, self.hidden, logits)
        self.assertEqual(1, self.forward(path=bad).returncode)
        wait = self.watcher.wait_value
        wait('sum(moetier_worker_rows_total{job="tier"})', 53 * 16 * TOP_K)
        wait('sum(moetier_worker_calls_total{status="ok"})', 2 * 53)  # both workers have a part of each
        wait('sum(moetier_worker_calls_total{status!="ok"})', 0)
        wait('sum(moetier_worker_batch_rows_sum) - sum(moetier_worker_engine_rows_total)', 0)
        for stage in ("receive", "wait", "group", "fc1", "fc2", "return"):
            wait(f'sum(moetier_worker_stage_seconds_count{{stage="{stage}"}})', 2 * 53)
        wait('sum(moetier_source_tickets_total{status="ok"})', 3)
        wait('sum(moetier_source_step_seconds_count)', 4)  # what is refused before it is sent fails no step
        for part in ("route", "wire", "wait", "sum"):
            wait(f'moetier_source_round_trip_seconds_count{{part="{part}"}}', 3)
        wait('moetier_source_invalid_route_total{cause="nonfinite"}', 1)
        wait('moetier_coordinator_rpc_seconds_count{method="forward"}', 4)
        wait('moetier_coordinator_rpc_errors_total{reason="invalid"}', 1)
        wait('sum(moetier_transport_errors_total)', 0)  # sessions that close are none
        wait('sum(moetier_worker_slots{state="serving"})', 4 * 32)
        wait('count(moetier_build_info)', 3)
        # A rate needs samples from before and after: what was first seen whole has none.
        self.call_directly(20)
        wait('sum(moetier_worker_stage_seconds_count{stage="fc1"})', 2 * 73)
        wait('round(sum(moetier:stage_share:ratio5m), 0.001)', 1)

    def test_b_stage_times_fit_the_callers_clock(self):
        before = self.watcher.value('sum(moetier_worker_stage_seconds_sum{stage=~"group|fc1|fc2|return"})')
        calls = self.watcher.value('sum(moetier_worker_stage_seconds_count{stage="fc1"})') + 2 * 200
        began = time.monotonic()
        self.call_directly(200)
        spent = time.monotonic() - began
        self.watcher.wait_value('sum(moetier_worker_stage_seconds_count{stage="fc1"})', calls)
        worked = self.watcher.value('sum(moetier_worker_stage_seconds_sum{stage=~"group|fc1|fc2|return"})') - before
        self.assertGreater(worked, 0)
        self.assertLess(worked, 2 * spent, "two workers cannot work longer than the caller waited")

    def test_c_metrics_are_well_formed_and_few(self):
        shown = set()
        for member, most in [(self.tier.coordinator, COORDINATOR_SERIES_MAX)] + \
                            [(w, WORKER_SERIES_MAX) for w in self.tier.workers.values()]:
            code, text = member.get("/metrics")
            self.assertEqual(200, code)
            checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
            self.assertEqual((0, "", ""), (checked.returncode, checked.stdout, checked.stderr))
            lines = series_of(member)
            many = at_layers_max(lines)
            print(f"{member.arguments[0]} {member.listening.get('name', '')}: {len(lines)} series, {many} with "
                  f"{LAYERS_MAX} layers, at most {most}", file=sys.stderr)
            self.assertLess(many, most)
            shown |= names_in(lines)
        rules, dashboard = RULES.read_text(), json.loads(DASHBOARD.read_text())
        asked = " ".join(t["expr"] for panel in dashboard["panels"] for t in panel.get("targets", ()))
        recorded = set(re.findall(r"record: (\S+)", rules))
        wanted = set(re.findall(r"\bmoetier_\w+", re.sub(r"#.*", "", rules) + " " + asked)) - GPU_ONLY
        self.assertEqual(set(), wanted - shown, "metrics that rules or dashboard name and nobody shows")
        self.assertEqual(set(), set(re.findall(r"moetier:[\w:]+", asked)) - recorded)
        self.assertGreater(len(wanted), 30)

    def test_d_uneven_rows_and_experts_without_spare(self):
        self.watcher.wait_alert("NoSpare")
        held = {w["name"]: w["first_slot"] for w in self.tier.status()["workers"]}
        self.assertEqual(0, held["worker@1"])
        layer = 'moetier_coordinator_layer_balancedness_ratio{layer="0"}'
        deadline = time.monotonic() + 30
        while "Imbalance" not in self.watcher.firing() or self.watcher.value(layer) != 0.5:
            self.assertLess(time.monotonic(), deadline, "alert Imbalance did not come")
            self.call_directly(40, experts=[0, 1, 2, 3])  # worker@1 holds them all
        self.assertLess(self.watcher.value("moetier:balancedness:min_layer"), 0.6)

    def test_e_an_engine_that_stands_still_and_calls_that_are_late(self):
        worker = self.tier.workers["worker@1"]
        for _ in range(4):
            worker.signal(signal.SIGSTOP)
            time.sleep(0.3)
            worker.signal(signal.SIGCONT)
            time.sleep(0.3)
        self.watcher.wait_alert("EngineStalled")
        # A call so long that its session still opens within a limit that the call itself cannot keep.
        long = pathlib.Path(self.folder.name, "long.safetensors")
        write_rows(long, np.tile(self.hidden, (256, 1)), np.tile(self.logits, (256, 1)))
        late, limit = 0, 5.0
        while late < 2:
            self.assertLess(limit, 2000, "no limit lets a session open and is too short for its call")
            self.forward("--timeout", f"{limit:.0f}ms", path=long)
            shown = self.tier.coordinator.get("/metrics")[1]
            ends = re.search(r'moetier_source_tickets_total{status="timeout"} (\d+)', shown)
            limit, late = (limit if int(ends.group(1)) > late else 1.3 * limit), int(ends.group(1))
        self.watcher.wait_alert("DeadlineMissed")
        self.watcher.wait_value('sum(moetier_source_tickets_total{status="timeout"})', late)

    def test_f_a_lost_worker_until_it_is_back(self):
        worker = self.tier.workers["worker@2"]
        worker.kill()
        self.watcher.wait_alert("WorkerLost", 5)
        self.watcher.wait_alert("HeartbeatOld")
        worker.start()
        self.tier.wait_ready()
        self.watcher.targets({"tier": self.tier.members()})
        self.watcher.wait_value('ALERTS{alertname="WorkerLost", alertstate="firing"}', None)
        self.watcher.wait_value('moetier_coordinator_workers{job="tier", state="serving"}', 2)


if __name__ == "__main__":
    unittest.main()
