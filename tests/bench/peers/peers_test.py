"""The peers' script without a GPU: its routings are those of the bench, and its table tells win from loss."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np  # noqa: E402

import bench_rows  # noqa: E402
import side_by_side  # noqa: E402

VECTORS = Path(__file__).with_name("routing_vectors.txt")


class Routing(unittest.TestCase):
    def test_is_the_bench_s(self):
        lines = [line.split() for line in VECTORS.read_text().splitlines() if not line.startswith("#")]
        self.assertGreater(len(lines), 8)
        for name, tokens, kind, seed, routing, checksum in lines:
            shape = bench_rows.SHAPES[name]
            ids, weights = bench_rows.route(shape, int(tokens), kind, int(seed), int(routing))
            self.assertEqual(f"{bench_rows.checksum(ids):016x}", checksum, name)
            self.assertTrue((weights >= 0.5).all() and (weights < 1.5).all())
            self.assertTrue(all(len(set(row)) == shape.k for row in ids.tolist()))

    def test_equal_gives_every_slot_as_many(self):
        ids, _ = bench_rows.route(bench_rows.SHAPES["dsv3_ep8"], 256, "equal", 1, 0)
        self.assertEqual(np.bincount(ids.reshape(-1)).tolist(), [8] * 32)

    def test_rotation_reads_no_weight_again_before_the_pool_is_through(self):
        ids = np.array([[3], [9], [3]], dtype=np.int32)
        self.assertEqual(bench_rows.rotated(ids, 0, 8).tolist(), [[0], [1], [0]])
        self.assertEqual(bench_rows.rotated(ids, 3, 8).tolist(), [[6], [7], [6]])
        self.assertEqual(bench_rows.rotated(ids, 4, 8).tolist(), [[0], [1], [0]])

    def test_graphs_are_long_enough(self):
        self.assertEqual(bench_rows.layers(bench_rows.SHAPES["dsv3_ep8"], "fp8_block", 1), 16)
        self.assertEqual(bench_rows.layers(bench_rows.SHAPES["dsv3_ep8"], "fp8_block", 256), 4)
        self.assertEqual(bench_rows.layers(bench_rows.SHAPES["gpt_oss"], "bf16", 1024), 2)


class Table(unittest.TestCase):
    row = {"shape": "qwen3", "format": "bf16", "T": 64, "routing": "random"}

    def test_takes_the_fastest_peer_and_the_target(self):
        bench = [dict(self.row, t_us={"median": 250.0}, probe_us=200.0, target={"of_probe": 1.5})]
        peers = [
            dict(self.row, peer="a", mode="slow", t_us={"median": 400.0}),
            dict(self.row, peer="b", mode="fast", t_us={"median": 500.0 / 2}),
            dict(self.row, peer="c", mode="wrong", why="wrong result"),
        ]
        line = side_by_side.table(bench, peers)[1].split()
        self.assertEqual(line[4:], ["250.0", "250.0", "1.000", "300.0", "b", "fast"])

    def test_shows_what_one_side_lacks(self):
        lines = side_by_side.table([dict(self.row, t_us=None)], [])
        self.assertEqual(lines[1].split()[4:], ["-", "-", "-", "-"])
        lines = side_by_side.table([], [dict(self.row, peer="a", mode="m", t_us={"median": 2.0})])
        self.assertEqual(lines[1].split()[4:], ["-", "2.0", "-", "-", "a", "m"])

    def test_readme_s_row_says_what_was_missed_and_by_whom_it_is_beaten(self):
        bench = [
            dict(self.row, t_us={"median": 310.0}, rested_us=305.0, sort_us=3.5, of_floor=0.9, of_probe=1.1,
                 target={"us": 300})
        ]
        peers = [dict(self.row, peer="a", mode="m", t_us={"median": 155.0})]
        head, line = side_by_side.markdown(bench, peers)
        self.assertEqual(
            [c.strip() for c in line.strip("|").split("|")],
            ["qwen3 bf16", "64 random", "310.0", "305.0", "3.5", "0.90", "1.100", "300 (missed)", "155.0 a", "2.00"],
        )
        self.assertEqual(head.splitlines()[0].count("|"), line.count("|"))
        met = side_by_side.markdown([dict(bench[0], target={"us": 311})], [])[1]
        self.assertNotIn("missed", met)


if __name__ == "__main__":
    unittest.main()
