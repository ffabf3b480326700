"""Every model family through the whole tier: each oracle checkpoint served by two workers, each of its MoE layers by
`moetier forward`, against what an independent implementation computed. MOETIER_ORACLES picks folders by name."""
import json
import os
import pathlib
import struct
import tempfile
import unittest

import numpy as np

from process_tier import SOURCE, ProcessTier

ORACLES = pathlib.Path(os.environ.get("MOETIER_ORACLE_DIR", SOURCE / "tests" / "data" / "oracles"))
NAMES = sorted(path.name for path in ORACLES.iterdir() if path.is_dir())
TOLERANCE = 1e-5  # of the output's scale
# What the tier cannot compute, and the reason it gives.
NO_SHARED = {"gemma4": "not_enabled", "nemotron_h_latent": "not_enabled", "deepseek_v4_fp4": "not_enabled"}
NO_GATE = {"gemma4", "nemotron_h_latent"}
KINDS = {"F32": np.float32, "I32": np.int32, "I64": np.int64, "BF16": np.uint16}


def read(path, only=None):
    """Tensors of a safetensors file by name; BF16 as float32."""
    data = pathlib.Path(path).read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name == "__metadata__" or entry["dtype"] not in KINDS or (only and name not in only):
            continue
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        values = np.frombuffer(data[begin:end], KINDS[entry["dtype"]]).reshape(entry["shape"])
        if entry["dtype"] == "BF16":
            values = (values.astype(np.uint32) << 16).view(np.float32)
        tensors[name] = values
    return tensors


def write(path, tensors):
    """uint16 stands for the bits of BF16."""
    header, blobs, at = {}, [], 0
    for name, values in tensors.items():
        kind = next(k for k, t in KINDS.items() if values.dtype == t)
        blobs.append(np.ascontiguousarray(values).tobytes())
        header[name] = {"dtype": kind, "shape": list(values.shape), "data_offsets": [at, at + len(blobs[-1])]}
        at += len(blobs[-1])
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def layers_of(vectors):
    return sorted({int(name.split(".")[0][len("layer"):]) for name in vectors})


def relative_error(given, wanted):
    return float(np.abs(given - wanted).max() / max(1e-30, np.abs(wanted).max()))


class Families(unittest.TestCase):
    maxDiff = None

    def forward(self, tier, folder, layer, inputs, *flags, reason=None):
        source, out = pathlib.Path(folder, "in.safetensors"), pathlib.Path(folder, "out.safetensors")
        write(source, inputs)
        done = tier.command("forward", "--layer", str(layer), "--in", str(source), "--out", str(out), "--with-routing",
                            *flags, "-o", "json", check=reason is None)
        if reason is None:
            return read(out)
        self.assertNotEqual(done.returncode, 0, f"layer {layer} {flags}")
        self.assertIn(f'"{reason}"', done.stdout, done.stderr)
        return None

    def run_folder(self, name, folder):
        vectors = read(ORACLES / name / "vectors.safetensors")
        figures = {"partial": 0.0, "exact": 0.0, "gate": 0.0, "block": 0.0}
        with ProcessTier(workers=2, model=ORACLES / name) as tier:
            for layer in layers_of(vectors):
                v = {key.split(".", 1)[1]: value for key, value in vectors.items() if key.startswith(f"layer{layer}.")}
                hidden, logits = v["hidden"], v["logits"]
                rows, wanted = v.get("expert_input", hidden), v["output_w" if "output_w" in v else "output"]
                block = v["output_block_w" if "output_block_w" in v else "output_block"]
                if name == "nemotron_h_latent":  # the attention side projects
                    key = f"backbone.layers.{layer}.mixer.fc1_latent_proj.weight"
                    weight = read(ORACLES / name / "model.safetensors", {key})[key]
                    rows, wanted = (hidden @ weight.T).astype(np.float32), v["output_latent"]
                inputs = {"hidden": rows, "logits": logits}
                if "token_ids" in v:
                    inputs["token_ids"] = v["token_ids"]
                for mode, via in (("partial", "gateway"), ("exact", "direct")):
                    got = self.forward(tier, folder, layer, inputs, "--return-mode", mode, "--via", via)
                    figures[mode] = max(figures[mode], relative_error(got["output"], wanted))
                    if "ids" in v:
                        self.check_routing(name, layer, got, v)
                if name not in NO_GATE:
                    ungated = {key: value for key, value in inputs.items() if key != "logits"}
                    got = self.forward(tier, folder, layer, ungated, "--use", "gate")
                    figures["gate"] = max(figures["gate"], relative_error(got["output"], wanted))
                else:
                    self.forward(tier, folder, layer, inputs, "--use", "gate", reason="not_enabled")
                shared = not np.array_equal(block, wanted)
                if shared and name not in NO_SHARED:
                    for mode, via in (("partial", "direct"), ("exact", "gateway")):
                        got = self.forward(tier, folder, layer, inputs, "--shared-experts", "tier",
                                           "--return-mode", mode,
                                           "--via", via)
                        figures["block"] = max(figures["block"], relative_error(got["output"], block))
                else:
                    self.forward(tier, folder, layer, inputs, "--shared-experts", "tier", reason="not_enabled")
        return figures

    def check_routing(self, name, layer, got, v):
        for t, (ids, weights) in enumerate(zip(got["ids"], got["weights"])):
            wanted = dict(zip(v["ids"][t].tolist(), v["weights"][t].tolist()))
            self.assertEqual(set(ids.tolist()), set(wanted), f"{name} layer {layer} row {t}")
            for expert, weight in zip(ids.tolist(), weights.tolist()):
                self.assertAlmostEqual(weight, wanted[expert], delta=2e-5 * max(1.0, abs(wanted[expert])),
                                       msg=f"{name} layer {layer} row {t} expert {expert}")

    def test_every_oracle(self):
        wanted = os.environ.get("MOETIER_ORACLES", "").split() or NAMES
        with tempfile.TemporaryDirectory() as folder:
            for name in wanted:
                with self.subTest(name):
                    figures = self.run_folder(name, folder)
                    print(json.dumps({"family": name, "relative_error": figures}), flush=True)
                    self.assertLessEqual(max(figures.values()), TOLERANCE)


if __name__ == "__main__":
    unittest.main()
