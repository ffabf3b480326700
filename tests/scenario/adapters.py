"""Adapters of routed experts through the whole tier: loaded, listed and dropped by admin calls, chosen per token.
Outputs are compared with float64 where the adapter is folded into the experts' matrices."""
import json
import pathlib
import shutil
import tempfile
import unittest

import numpy as np

import moetier
from families import ORACLES, TOLERANCE, layers_of, read, relative_error, write
from process_tier import ProcessTier, wait_until

LORA = ("--set", "moe.lora=on")
RANKS = {"red": 4, "blue": 7}
ALPHA = 16
FAMILIES = ("qwen3_moe", "deepseek_v3")
PARTS = ("gate_proj", "up_proj", "down_proj")


def random_adapter(folder, model, tensors, seed, rank, change=lambda tensors, config: None):
    """A PEFT directory that touches two of three experts of every MoE layer; its matrices by expert tensor name."""
    random = np.random.default_rng(seed)
    matrices, files = {}, {}
    layers = json.loads((ORACLES / model / "config.json").read_text())["num_hidden_layers"]  # behind them: drafts
    for name, weight in tensors.items():
        if ".mlp.experts." not in name or not name.endswith(".weight") or int(name.split(".")[2]) >= layers:
            continue
        expert = int(name.split(".mlp.experts.")[1].split(".")[0])
        if expert % 3 == seed % 3:
            continue
        out, into = weight.shape
        scale = float(np.abs(weight).mean())
        a = (random.standard_normal((rank, into)) * scale).astype(np.float32)
        b = (random.standard_normal((out, rank)) * 0.5).astype(np.float32)
        matrices[name] = (a, b, ALPHA / rank)
        stem = "base_model.model." + name[:-len(".weight")]
        files[stem + ".lora_A.weight"], files[stem + ".lora_B.weight"] = a, b
    config = {"peft_type": "LORA", "r": rank, "lora_alpha": ALPHA, "bias": "none", "use_rslora": False,
              "target_modules": list(PARTS), "base_model_name_or_path": model}
    change(files, config)
    path = pathlib.Path(folder)
    path.mkdir()
    (path / "adapter_config.json").write_text(json.dumps(config))
    write(path / "adapter_model.safetensors", files)
    return matrices


class Oracle:
    """One family's checkpoint in float64."""

    def __init__(self, name):
        self.path = ORACLES / name
        self.tensors = read(self.path / "model.safetensors")
        vectors = read(self.path / "vectors.safetensors")
        self.layer = layers_of(vectors)[-1]
        v = {key.split(".", 1)[1]: value for key, value in vectors.items() if key.startswith(f"layer{self.layer}.")}
        self.hidden, self.logits, self.wanted = v["hidden"], v["logits"], v["output_w" if "output_w" in v else "output"]
        self.scale = np.abs(self.wanted).max()

    def matrix(self, expert, part, adapter):
        name = f"model.layers.{self.layer}.mlp.experts.{expert}.{part}.weight"
        weight = self.tensors[name].astype(np.float64)
        if adapter and name in adapter:
            a, b, scale = adapter[name]
            weight = weight + scale * b.astype(np.float64) @ a.astype(np.float64)
        return weight

    def output(self, ids, weights, adapters):
        """adapters: one a row, None = none."""
        rows = []
        for x, row_ids, row_weights, adapter in zip(self.hidden.astype(np.float64), ids, weights, adapters):
            total = np.zeros_like(x)
            for expert, weight in zip(row_ids.tolist(), row_weights.tolist()):
                gate, up, down = (self.matrix(expert, part, adapter) for part in PARTS)
                inner = gate @ x
                total += weight * (down @ (inner / (1 + np.exp(-inner)) * (up @ x)))
            rows.append(total)
        return np.array(rows)


class Adapters(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="moetier-adapters-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def adapters_of(self, oracle, name):
        return {colour: random_adapter(f"{self.folder}/{name}-{colour}", name, oracle.tensors, seed, rank)
                for seed, (colour, rank) in enumerate(RANKS.items())}

    def listed(self, tier):
        return json.loads(tier.command("adapters", "list", "-o", "json").stdout)

    def load(self, tier, name, path, **options):
        return tier.command("adapters", "load", name, str(path), "-o", "json", **options)

    def forward(self, tier, layer, inputs, *flags, check=True):
        source, out = pathlib.Path(self.folder, "in.safetensors"), pathlib.Path(self.folder, "out.safetensors")
        write(source, inputs)
        done = tier.command("forward", "--layer", str(layer), "--in", str(source), "--out", str(out), "--with-routing",
                            "-o", "json", *flags, check=check)
        return read(out) if check else done

    def refused(self, done, reason, *words):
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(f'"{reason}"', done.stdout, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_each_row_is_computed_with_its_own_adapter(self):
        for name in FAMILIES:
            with self.subTest(name):
                oracle = Oracle(name)
                matrices = self.adapters_of(oracle, name)
                rows = len(oracle.hidden)
                inputs = {"hidden": oracle.hidden, "logits": oracle.logits}
                with ProcessTier(workers=2, model=oracle.path) as tier:
                    plain = {mode: self.forward(tier, oracle.layer, inputs, "--return-mode", mode)
                             for mode in ("partial", "exact")}
                    self.refused(self.load(tier, "red", f"{self.folder}/{name}-red", check=False), "not_enabled")
                    self.assertFalse(self.listed(tier)["enabled"])
                with ProcessTier(workers=2, model=oracle.path, settings=LORA) as tier:
                    for number, colour in enumerate(RANKS):
                        loaded = json.loads(self.load(tier, colour, f"{self.folder}/{name}-{colour}").stdout)
                        entry = loaded["adapters"][-1]
                        self.assertEqual((number, colour, True, ["worker@1", "worker@2"]),
                                         (entry["adapter"], entry["name"], entry["listed"], entry["workers"]))
                    chosen = np.array([(-1, 0, 1)[row % 3] for row in range(rows)], np.int32)
                    mine = [(None, *matrices.values())[row % 3] for row in range(rows)]
                    figures = {}
                    for mode in ("partial", "exact"):
                        for via in ("gateway", "direct"):
                            got = self.forward(tier, oracle.layer, {**inputs, "adapter_ids": chosen}, "--return-mode",
                                               mode, "--via", via)
                            wanted = oracle.output(got["ids"], got["weights"], mine)
                            figures[f"{mode} {via}"] = relative_error(got["output"], wanted)
                            self.assertLessEqual(figures[f"{mode} {via}"], TOLERANCE)
                            without = chosen == -1
                            np.testing.assert_array_equal(got["output"][without], plain[mode]["output"][without])
                            changed = np.abs(got["output"] - plain[mode]["output"]).max(axis=1) / oracle.scale
                            touched = [c >= 0 and any(e % 3 != c for e in row) for c, row in zip(chosen, got["ids"])]
                            self.assertGreater(changed[touched].min(), 100 * TOLERANCE)
                            self.assertGreater(sum(touched), rows // 2)
                    with_all_off = self.forward(tier, oracle.layer, {**inputs, "adapter_ids": np.full_like(chosen, -1)})
                    np.testing.assert_array_equal(with_all_off["output"], plain["partial"]["output"])
                    self.dropped(tier, oracle, inputs, chosen)
                print(json.dumps({"family": name, "relative_error": figures}), flush=True)

    def dropped(self, tier, oracle, inputs, chosen):
        """What calls get once an adapter is gone, and that its id does not come back."""
        tier.command("adapters", "drop", "red")
        for via in ("gateway", "direct"):
            done = self.forward(tier, oracle.layer, {**inputs, "adapter_ids": chosen}, "--via", via, check=False)
            self.refused(done, "lora_unsupported", "row 1 names adapter 0; loaded: 1")
        again = tier.command("adapters", "drop", "red", "-o", "json", check=False)
        self.refused(again, "invalid_argument", "blue")
        name = pathlib.Path(self.listed(tier)["adapters"][0]["path"]).name
        self.load(tier, "red", f"{self.folder}/{name.replace('blue', 'red')}")
        self.assertEqual([1, 2], [a["adapter"] for a in self.listed(tier)["adapters"]])
        self.assertIn("blue", tier.command("adapters", "list").stdout)

    def test_a_call_with_adapters_in_several_chunks_is_refused(self):
        oracle = Oracle("qwen3_moe")
        self.adapters_of(oracle, "qwen3_moe")
        ids = np.zeros(len(oracle.hidden), np.int32)
        with ProcessTier(workers=2, model=oracle.path, settings=LORA) as tier:
            self.load(tier, "red", f"{self.folder}/qwen3_moe-red")
            with moetier.connect(tier.address) as service:
                self.assertTrue(service.model.adapters)
                with service.session(max_rows_per_chunk=4) as session, session.step() as step:
                    with self.assertRaises(moetier.Error) as refusal:
                        step.forward(oracle.layer, oracle.hidden, oracle.logits, adapter_ids=ids)
                    self.assertEqual("lora_multichunk", refusal.exception.reason)
                    few = step.forward(oracle.layer, oracle.hidden[:4], oracle.logits[:4], adapter_ids=ids[:4])
                with service.session() as session, session.step() as step:
                    whole = step.forward(oracle.layer, oracle.hidden, oracle.logits, adapter_ids=ids)
                np.testing.assert_array_equal(few, whole[:4])

    def test_a_worker_that_returns_has_the_adapters_again_and_so_has_a_restarted_coordinator(self):
        oracle = Oracle("qwen3_moe")
        matrices = self.adapters_of(oracle, "qwen3_moe")
        inputs = {"hidden": oracle.hidden, "logits": oracle.logits,
                  "adapter_ids": np.zeros(len(oracle.hidden), np.int32)}
        with ProcessTier(workers=2, model=oracle.path, settings=LORA) as tier:
            self.load(tier, "red", f"{self.folder}/qwen3_moe-red")
            before = self.forward(tier, oracle.layer, inputs)
            wanted = oracle.output(before["ids"], before["weights"], [matrices["red"]] * len(oracle.hidden))
            self.assertLessEqual(relative_error(before["output"], wanted), TOLERANCE)
            tier.workers["worker@2"].kill()
            wait_until(lambda: not tier.ready(), 5, "the loss of a worker")
            self.assertEqual([["worker@1"]], [a["workers"] for a in self.listed(tier)["adapters"]])
            tier.workers["worker@2"].start()
            took = tier.wait_ready()
            self.assertEqual([(True, ["worker@1", "worker@2"])],
                             [(a["listed"], a["workers"]) for a in self.listed(tier)["adapters"]])
            np.testing.assert_array_equal(before["output"], self.forward(tier, oracle.layer, inputs)["output"])
            tier.coordinator.kill()
            tier.coordinator.start()
            tier.wait_ready()
            self.assertEqual([(0, "red", True)],
                             [(a["adapter"], a["name"], a["listed"]) for a in self.listed(tier)["adapters"]])
            np.testing.assert_array_equal(before["output"], self.forward(tier, oracle.layer, inputs)["output"])
            print(json.dumps({"returned_ms": 1e3 * took}), flush=True)
            # Its files are gone: the worker serves without the adapter, and nobody may name it.
            tier.workers["worker@2"].kill()
            wait_until(lambda: not tier.ready(), 5, "the loss of a worker")
            shutil.rmtree(f"{self.folder}/qwen3_moe-red")
            tier.workers["worker@2"].start()
            tier.wait_ready()
            entry = self.listed(tier)["adapters"][0]
            self.assertEqual((False, ["worker@1"]), (entry["listed"], entry["workers"]))
            self.assertIn("adapter_config.json", entry["problem"])
            self.refused(self.forward(tier, oracle.layer, inputs, check=False), "lora_unsupported", "loaded: none")

    def test_an_adapter_that_a_worker_refuses_is_kept_by_none(self):
        oracle = Oracle("qwen3_moe")
        wrong = {
            "dora": lambda tensors, config: config.update(use_dora=True),
            "rank": lambda tensors, config: config.update(r=5),
            "attention": lambda tensors, config: tensors.update(
                {"base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight": np.zeros((4, 8), np.float32)}),
        }
        with ProcessTier(workers=2, model=oracle.path, settings=LORA) as tier:
            for name, change in wrong.items():
                random_adapter(f"{self.folder}/{name}", "qwen3_moe", oracle.tensors, 0, 4, change)
                done = self.load(tier, name, f"{self.folder}/{name}", check=False)
                self.assertEqual(7, done.returncode, done.stderr)
                self.refused(done, "adapter_refused", f"adapter {name} is not loaded: worker worker@")
            self.refused(self.load(tier, "absent", f"{self.folder}/absent", check=False), "adapter_refused",
                         "cannot read")
            self.assertEqual([], self.listed(tier)["adapters"])
            random_adapter(f"{self.folder}/good", "qwen3_moe", oracle.tensors, 0, 4)
            self.load(tier, "good", f"{self.folder}/good")
            self.load(tier, "good", f"{self.folder}/good")  # again: nothing changes
            self.assertEqual(["good"], [a["name"] for a in self.listed(tier)["adapters"]])
            self.refused(self.load(tier, "good", f"{self.folder}/dora", check=False), "invalid_argument")

    def test_quantised_experts_and_adapters_do_not_resolve(self):
        path = ORACLES / "qwen3_moe"
        tier = ProcessTier(workers=1, model=path, settings=(*LORA, "--set", "model.quantise=mxfp4"))
        try:
            wait_until(lambda: "lora_unsupported" in tier.coordinator.get("/readyz")[1], 20, "the refusal")
            self.assertEqual(503, tier.coordinator.get("/readyz")[0])
            rejected = json.loads(tier.coordinator.get("/debug/resolution")[1])["rejected"]
            self.assertIn("lora_unsupported", {r["reason"] for r in rejected})
        finally:
            tier.__exit__(None, None, None)


if __name__ == "__main__":
    unittest.main()
