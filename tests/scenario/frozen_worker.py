"""A worker is frozen under load and goes on later: the tier leaves it out, then takes it back, and no session that was
open meanwhile loses it."""
import json
import signal
import time
import unittest

from lost_worker import cases_of, worker_state
from process_tier import FULL, ProcessTier, wait_until
from traffic import Traffic
import vectors

ROUNDS = 20 if FULL else 2


class FrozenWorker(unittest.TestCase):
    def test_with_replicas_no_call_fails_and_it_serves_again_for_open_sessions(self):
        stalls = []
        with ProcessTier(workers=3, slots=22) as tier:
            traffic = Traffic(tier.address, cases_of(vectors.load()), return_mode="exact")
            traffic.start()
            for turn in range(ROUNDS):
                name = f"worker@{1 + turn % 3}"
                time.sleep(0.2)
                frozen = time.monotonic()
                tier.workers[name].signal(signal.SIGSTOP)
                time.sleep(1.3)
                tier.workers[name].signal(signal.SIGCONT)
                wait_until(lambda: worker_state(tier, name) == "serving", 10, f"the return of {name}")
                stalls.append(traffic.longest(since=frozen))
                before = calls_of(tier, name)
                wait_until(lambda: calls_of(tier, name) > before, 5, f"calls to {name} of the open session")
            traffic.stop()
        self.assertEqual([], [str(c.error) for c in traffic.failed()])
        self.assertEqual([], traffic.wrong())
        print(json.dumps({"rounds": ROUNDS, "calls": len(traffic.calls), "stall_ms_worst": 1e3 * max(stalls)}))


def calls_of(tier, name):
    return next(w["calls_total"] for w in tier.status()["workers"] if w["name"] == name)


if __name__ == "__main__":
    unittest.main()
