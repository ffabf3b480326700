"""The benches that move rows: what they print of themselves adds up, and what they are asked to keep to ends them.

Few calls: nothing here is judged by its speed.
"""
import json
import subprocess
import unittest

from process_tier import BIN, COMMAND_ENVIRONMENT, MODEL, ProcessTier

PARTS = ("route", "pack", "wire", "queue", "group", "compute", "return", "combine", "rest")


def bench(*arguments, code=0):
    done = subprocess.run([str(BIN / "moetier"), "bench", *arguments], capture_output=True, text=True, timeout=200,
                          env=COMMAND_ENVIRONMENT)
    if done.returncode != code:
        raise AssertionError(f"bench {' '.join(arguments)}: exit {done.returncode}: {done.stdout} {done.stderr}")
    return done


def document(*arguments, code=0):
    return json.loads(bench(*arguments, "-o", "json", code=code).stdout)


class Benches(unittest.TestCase):
    def check_percentiles(self, latency):
        values = [latency[key] for key in ("min", "p50", "p90", "p99", "p999", "max")]
        self.assertEqual(values, sorted(values))
        self.assertGreater(values[0], 0)

    def test_tier_splits_every_cell_into_parts_that_add_up(self):
        told = document("tier", "--model", str(MODEL), "--workers", "1,2", "--tokens", "1,16", "--repeat", "200",
                        "--warmup", "20")
        self.assertEqual(told["schema"], "moetier.bench/1")
        self.assertEqual(told["errors"], 0)
        self.assertEqual([(c["workers"], c["tokens"]) for c in told["cells"]], [(1, 1), (1, 16), (2, 1), (2, 16)])
        for cell in told["cells"]:
            self.check_percentiles(cell["latency_us"])
            self.check_percentiles(cell["echo_us"])
            split = cell["split_us"]
            self.assertEqual(set(split), {"total", *PARTS})
            self.assertAlmostEqual(sum(split[part] for part in PARTS), split["total"], delta=1e-6 * split["total"])
            for part in PARTS:
                self.assertGreaterEqual(split[part], 0, (part, cell))
            self.assertGreater(split["compute"], 0)
            self.assertLess(split["rest"], split["total"] / 2)
            self.assertAlmostEqual(cell["own_share_us"], split["total"] - split["compute"], delta=1e-6 * split["total"])
            self.assertAlmostEqual(cell["own_share_echoes"] * cell["echo_us"]["p50"], cell["own_share_us"],
                                   delta=1e-6 * split["total"])
            self.assertAlmostEqual(cell["tokens_per_s"] * cell["latency_us"]["mean"], 1e6 * cell["tokens"],
                                   delta=1e-3 * cell["tokens"])

    def test_tier_of_a_running_tier_is_one_cell_at_the_top(self):
        with ProcessTier(workers=1) as tier:
            told = document("tier", "--repeat", "100", "--warmup", "10", "--address", tier.address)
            self.assertEqual(told["problem"]["tokens"], 1)
            self.assertEqual(told["problem"]["workers"], 1)
            self.check_percentiles(told["latency_us"])
            self.assertEqual(set(told["stages_us"]), {"route", "pack", "wait", "sum"})
            self.assertEqual(set(told["split_us"]), {"total", "route", "pack", "wire", "held", "combine", "rest"})
            self.assertEqual(told["latency_us"], told["cells"][0]["latency_us"])
            for key in ("echo_us", "compute_us", "own_share_us", "own_share_echoes", "algbw", "roofline_ratio"):
                self.assertIn(key, told)
            # Three sessions at once against a tier that others call too; its workers' stages are theirs to know.
            shared = document("sessions", "--sessions", "3", "--tokens", "6", "--repeat", "2", "--steps", "5",
                              "--address", tier.address)
            self.assertEqual([c["sessions"] for c in shared["cells"]], [1, 3])
            self.assertNotIn("compute_us", shared["cells"][0])
            self.assertTrue(bench("tier", "--markdown", "--repeat", "20", "--address", tier.address).stdout
                            .startswith("| workers | tokens |"))
            # Demands are judged after everything is measured; figures that are not there before.
            broken = bench("tier", "--repeat", "20", "--assert", "p50_us=0.001", "--address", tier.address, code=8)
            self.assertIn("demanded: at most 0.001", broken.stderr)
            refused = bench("tier", "--assert", "speed=1", "--address", tier.address, code=2)
            self.assertIn("own_share_echoes", refused.stderr)

    def test_sessions_cost_is_over_one_at_equal_tokens(self):
        arguments = ("sessions", "--model", str(MODEL), "--workers", "1", "--sessions", "4,2", "--tokens", "4,32",
                     "--repeat", "3", "--steps", "10")
        told = document(*arguments, "--assert", "cost=1000")
        self.assertEqual([(c["tokens"], c["sessions"]) for c in told["cells"]],
                         [(4, 1), (4, 2), (4, 4), (32, 1), (32, 2), (32, 4)])
        for cell in told["cells"]:
            self.assertEqual(cell["rounds"], 3)
            self.assertLessEqual(cell["cost_min"], cell["cost"])
            self.assertLessEqual(cell["cost"], cell["cost_max"])
            self.assertAlmostEqual(cell["tokens_per_s"] * cell["step_us"], 1e6 * cell["tokens"], delta=1)
            self.assertGreater(cell["compute_us"], 0)
            self.assertLess(cell["compute_share"], 1.01)  # one worker computes one call at a time
            if cell["sessions"] == 1:
                self.assertEqual((cell["cost"], cell["cost_min"], cell["cost_max"]), (1, 1, 1))
        broken = document(*arguments[:-4], "--repeat", "1", "--steps", "2", "--assert", "cost=0.01", code=8)
        self.assertEqual(broken["errors"], len(broken["unmet"]))
        self.assertEqual(broken["errors"], 6)

    def test_wire_shows_every_way_beside_copies_of_the_same_size(self):
        told = document("wire", "--hidden", "256", "--rows", "1,16", "--mib", "1", "--repeat", "50", "--warmup", "5")
        self.assertEqual([c["way"] for c in told["cells"]],
                         ["shm"] * 3 + ["tcp"] * 3 + ["ucx"] * 3 + ["shared_memory"] * 3 +
                         ["in_process"] * 3)
        self.assertEqual([c["bytes_out"] for c in told["cells"][:3]], [1024, 16384, 1 << 20])
        for cell in told["cells"]:
            self.assertNotIn("skipped", cell)
            self.check_percentiles(cell["latency_us"])
            moved = cell["bytes_out"] + cell["bytes_back"]
            rate = cell["algbw"]
            self.assertAlmostEqual(rate * cell["latency_us"]["p50"] * 1e3, moved, delta=1e-3 * moved)
            self.assertAlmostEqual(cell["roofline_ratio"] * cell["copy_gb_s"], rate, delta=1e-6 * rate)

    def test_an_embedded_tier_needs_a_model(self):
        self.assertIn("--model", bench("tier", "--workers", "1", code=2).stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
