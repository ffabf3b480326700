"""`moetier forward` on the demo's twelve vectors: errors, and one set of bits in exact mode however the tier looks."""
import json
import pathlib
import tempfile
import unittest

import numpy as np

from process_tier import FULL, ProcessTier
import vectors

TIERS = [(1, None), (2, None), (2, 32), (3, None), (3, 22), (4, None), (4, 20)]  # workers, slots each


class ForwardVectors(unittest.TestCase):
    def test_all_vectors_by_gateway_and_direct_partial_and_exact(self):
        data = vectors.load()
        first, errors, runs = {}, {"partial": 0.0, "exact": 0.0}, 0
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder, "out.safetensors")
            for workers, slots in TIERS if FULL else TIERS[3:5]:
                with ProcessTier(workers=workers, slots=slots) as tier:
                    for (domain, layer), (_, _, wanted) in data.items():
                        for mode, via in [("exact", "gateway"), ("exact", "direct"), ("partial", "gateway"),
                                          ("partial", "direct")]:
                            tier.command("forward", "--layer", str(layer), "--in", str(vectors.PATH), "--prefix",
                                         f"{domain}.layer{layer}.", "--out", str(out), "--return-mode", mode,
                                         "--via", via)
                            output = vectors.read_safetensors(out)[0]["output"]
                            errors[mode] = max(errors[mode], float(np.abs(output - wanted).max()))
                            runs += 1
                            if mode == "exact":
                                bits = first.setdefault((domain, layer), output.tobytes())
                                self.assertEqual(bits, output.tobytes(), f"{domain}.layer{layer} via {via}, "
                                                 f"{workers} workers of {slots or 'even'} slots")
        self.assertLessEqual(max(errors.values()), 1e-5)
        print(json.dumps({"runs": runs, "largest_error": errors}))


if __name__ == "__main__":
    unittest.main()
