"""A worker is killed under load, with and without replicas of its experts."""
import json
import random
import statistics
import time
import unittest

import numpy as np

from process_tier import FULL, ProcessTier, wait_until
from traffic import Traffic
import vectors

ROUNDS = 20 if FULL else 2
DEADLINE = 1.0  # seconds, a session's default


def cases_of(data, rows=16):
    return [dict(layer=layer, hidden=hidden[:rows], logits=logits[:rows]) for (_, layer), (hidden, logits, _) in
            data.items()]


def worker_state(tier, name):
    return next((w["state"] for w in tier.status()["workers"] if w["name"] == name), "absent")


class LostWorker(unittest.TestCase):
    def test_with_replicas_every_call_ends_right_after_a_replay(self):
        stalls = []
        with ProcessTier(workers=3, slots=22) as tier:
            before = tier.placement()
            traffic = Traffic(tier.address, cases_of(vectors.load()), return_mode="exact")
            traffic.start()
            for turn in range(ROUNDS):
                name = random.choice(list(tier.workers))
                time.sleep(random.uniform(0.1, 0.4))
                killed = time.monotonic()
                tier.workers[name].kill()
                time.sleep(0.8)
                stalls.append(traffic.longest(since=killed))
                tier.workers[name].start()
                wait_until(lambda: worker_state(tier, name) == "serving", 20, f"the return of {name}")
            traffic.stop()
            after = tier.placement()
        self.assertEqual([], [str(c.error) for c in traffic.failed()])
        self.assertEqual([], traffic.wrong())
        self.assertEqual(before, after)
        print(json.dumps({"rounds": ROUNDS, "calls": len(traffic.calls), "failed": 0, "wrong": 0,
                          "stall_ms_p50": 1e3 * statistics.median(stalls), "stall_ms_worst": 1e3 * max(stalls)}))

    def test_without_replicas_only_calls_that_need_its_experts_end_unavailable(self):
        unready = []
        with ProcessTier(workers=3) as tier:
            before = tier.placement()
            data = vectors.load()
            hidden = data["novel", 1][0][:4]
            # Experts of worker@1, which is not killed here.
            spared = [dict(layer=layer, hidden=hidden, ids=np.tile(np.arange(4, dtype=np.int32), (4, 1)),
                           weights=np.full((4, 4), 0.25, np.float32)) for layer in vectors.LAYERS]
            everything = Traffic(tier.address, cases_of(data), return_mode="exact")
            elsewhere = Traffic(tier.address, spared, return_mode="exact")
            everything.start()
            elsewhere.start()
            for turn in range(ROUNDS):
                name = random.choice(["worker@2", "worker@3"])
                time.sleep(random.uniform(0.1, 0.4))
                tier.workers[name].kill()
                unready.append(wait_until(lambda: tier.coordinator.get("/readyz")[0] == 503, 2, "503"))
                time.sleep(0.3)
                tier.workers[name].start()
                wait_until(tier.ready, 20, "readiness")
            everything.stop()
            elsewhere.stop()
            after = tier.placement()
        self.assertEqual([], [str(c.error) for c in elsewhere.failed()])
        self.assertEqual([], everything.wrong() + elsewhere.wrong())
        self.assertLessEqual({c.error.status for c in everything.failed()}, {"UNAVAILABLE", "TIMEOUT"})
        self.assertTrue(everything.failed(), "a lost expert must be missed by somebody")
        self.assertLessEqual(everything.longest(), DEADLINE + 0.1)
        self.assertLessEqual(max(unready), 0.5)
        self.assertEqual(before, after)
        statuses = [c.error.status for c in everything.failed()]
        print(json.dumps({"rounds": ROUNDS, "calls": len(everything.calls), "others": len(elsewhere.calls),
                          "UNAVAILABLE": statuses.count("UNAVAILABLE"), "TIMEOUT": statuses.count("TIMEOUT"),
                          "longest_call_ms": 1e3 * everything.longest(), "others_longest_ms": 1e3 * elsewhere.longest(),
                          "unready_ms_p50": 1e3 * statistics.median(unready), "unready_ms_worst": 1e3 * max(unready)}))


if __name__ == "__main__":
    unittest.main()
