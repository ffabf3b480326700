"""The coordinator is killed and started again while clients work."""
import json
import statistics
import tempfile
import time
import unittest

from lost_worker import cases_of
from process_tier import FULL, ProcessTier, wait_until
from traffic import Traffic
import vectors

ROUNDS = 20 if FULL else 2


class LostCoordinator(unittest.TestCase):
    def test_direct_sessions_notice_nothing_and_the_gateway_is_back_within_a_second(self):
        back = []
        with ProcessTier(workers=3, slots=22) as tier, tempfile.TemporaryDirectory() as folder:
            before = tier.placement()
            traffic = Traffic(tier.address, cases_of(vectors.load()), return_mode="exact")
            traffic.start()

            def gateway_serves():
                done = tier.command("forward", "--layer", "0", "--in", str(vectors.PATH), "--prefix", "novel.layer0.",
                                    "--out", folder + "/out.safetensors", "--via", "gateway", check=False)
                return done.returncode == 0

            self.assertTrue(gateway_serves())
            for _ in range(ROUNDS):
                tier.coordinator.kill()
                time.sleep(0.3)
                tier.coordinator.start()
                back.append(wait_until(gateway_serves, 10, "the gateway"))
                time.sleep(0.5)
            after = tier.placement()
            epoch = tier.status()["epoch"]
            traffic.stop()
        self.assertEqual([], [str(c.error) for c in traffic.failed()])
        self.assertEqual([], traffic.wrong())
        self.assertEqual(before, after)
        self.assertGreaterEqual(epoch, ROUNDS)
        self.assertLessEqual(max(back), 1.0)
        print(json.dumps({"rounds": ROUNDS, "calls": len(traffic.calls), "longest_call_ms": 1e3 * traffic.longest(),
                          "gateway_back_ms_p50": 1e3 * statistics.median(back), "worst": 1e3 * max(back)}))


if __name__ == "__main__":
    unittest.main()
