"""A plan made offline from recorded loads is what a tier serves: its placement, its shares, its balance."""
import json
import pathlib
import struct
import subprocess
import tempfile
import unittest
import urllib.request

import numpy as np

from embedded_tier import Up
from process_tier import BIN, MODEL, ProcessTier, wait_until
import vectors

TRACE = vectors.PATH.with_name("routing_trace.safetensors")
WORKERS = 3
LAYER = 3  # the least balanced one


def moetier(*arguments):
    return subprocess.run([str(BIN / "moetier"), *map(str, arguments)], capture_output=True, text=True, timeout=60)


def recorded_ids(domain, layer):
    data = TRACE.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    entry = json.loads(data[8:8 + size])[f"{domain}.layer{layer}"]
    begin, end = (8 + size + offset for offset in entry["data_offsets"])
    return np.frombuffer(data[begin:end], np.uint8).reshape(entry["shape"])


def write_call(path, ids):
    """A call that visits the recorded experts, with rows of no importance."""
    rows = {"hidden": np.ones((len(ids), 256), np.float32), "ids": ids.astype(np.int32),
            "weights": np.full(ids.shape, 0.25, np.float32)}
    header, data = {}, b""
    for name, tensor in rows.items():
        kind = {np.dtype(np.float32): "F32", np.dtype(np.int32): "I32"}[tensor.dtype]
        header[name] = {"dtype": kind, "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + tensor.nbytes]}
        data += tensor.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def rows_of_workers(up):
    """Rows that each worker has served in LAYER."""
    with urllib.request.urlopen(f"http://{up.http}/debug/placement", timeout=2) as answer:
        workers = json.loads(answer.read())["workers"]
    return np.array([sum(w["rows"][LAYER]) for w in workers], float)


def balance_of(up, folder):
    """Mean over largest worker of the rows served in LAYER, for 8,192 recorded tokens of one domain."""
    address, before = up.ready["address"], rows_of_workers(up).sum()
    ids = recorded_ids("novel", LAYER)[:8192]
    path = pathlib.Path(folder, "call.safetensors")
    for part in (ids[:4096], ids[4096:]):
        write_call(path, part)
        done = moetier("forward", "--layer", LAYER, "--in", path, "--use", "ids", "--address", address, "--out",
                       pathlib.Path(folder, "out.safetensors"))
        assert done.returncode == 0, done.stderr
    wait_until(lambda: rows_of_workers(up).sum() - before >= ids.size, 5, "the workers' counts")
    x = rows_of_workers(up)
    return float(x.mean() / x.max())


class PlannedTier(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.plan = pathlib.Path(self.folder, "plan.json")

    def make_plan(self, *arguments):
        done = moetier("plan", "--trace", TRACE, "--prefix", "novel.", "--model", MODEL, "--workers", WORKERS, "--out",
                       self.plan, "-o", "json", *arguments)
        self.assertEqual(0, done.returncode, done.stderr)
        return json.loads(done.stdout)

    def test_a_tier_serves_placement_and_shares_of_a_plan_and_its_balance(self):
        report = self.make_plan()
        self.assertGreater(report["percent_of_optimal"]["worst"], 99.95)
        served = {}
        for name, flags in (("default", []), ("planned", ["--placement", str(self.plan)])):
            with Up(*flags, workers=WORKERS) as up:
                address = up.ready["address"]
                if flags:
                    shown = json.loads(moetier("placement", "show", "--address", address, "-o", "json").stdout)
                    planned = json.loads(self.plan.read_text())
                    self.assertEqual(planned["layers"], shown["layers"])
                    self.assertEqual(planned["fingerprint"], shown["fingerprint"])
                served[name] = balance_of(up, self.folder)
                done = moetier("forward", "--layer", LAYER, "--in", vectors.PATH, "--prefix", f"code.layer{LAYER}.",
                               "--check", "--address", address)
                self.assertEqual(0, done.returncode, done.stderr)
        print(json.dumps({"balancedness": served}))
        self.assertLess(served["default"], 0.9)
        self.assertGreater(served["planned"], 0.97)

    def test_a_plan_of_another_model_or_one_edited_by_hand_is_refused_by_name(self):
        self.make_plan()
        plan = json.loads(self.plan.read_text())
        edited = json.loads(self.plan.read_text())
        edited["layers"][0]["slots"][:2] = edited["layers"][0]["slots"][1::-1]
        del plan["checksum"]
        stranger = plan | {"fingerprint": "0" * 15 + "1"}
        for other, code, said in ((stranger, 4, "the plan's fingerprint is not this model's"),
                                  (plan | {"experts": 31}, 7, "must be an integer from -1 to 30"),
                                  (edited, 7, "its checksum is not of what it says")):
            self.plan.write_text(json.dumps(other))
            with self.assertRaises(AssertionError) as ended:
                ProcessTier(workers=WORKERS, placement=self.plan)
            self.assertIn(f"coordinator ended with {code}:", str(ended.exception))
            self.assertIn(said, str(ended.exception))


if __name__ == "__main__":
    unittest.main()
