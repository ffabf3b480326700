"""A worker is frozen under load and goes on later: the tier leaves it out, its calls end on replicas, and no session
that was open meanwhile loses it. MOETIER_FULL=1: 20 rounds."""
import json
import random
import signal
import time
import unittest

from lost_worker import cases_of, worker_state
from process_tier import FULL, ProcessTier, wait_until
from tier_figures import metric, milliseconds, percentile
from traffic import Traffic
import vectors

ROUNDS = 20 if FULL else 2
SESSIONS = 2


class FrozenWorker(unittest.TestCase):
    def test_with_replicas_no_call_fails_and_it_serves_again_for_open_sessions(self):
        agreed, stalls, suspects = [], [], []
        with ProcessTier(workers=3, slots=22) as tier:
            cases = cases_of(vectors.load())
            sessions = [Traffic(tier.address, cases, return_mode="exact") for _ in range(SESSIONS)]
            for traffic in sessions:
                traffic.start()
            epoch = tier.status()["epoch"]
            for turn in range(ROUNDS):
                name = f"worker@{1 + turn % 3}"
                time.sleep(random.uniform(0.1, 0.3))
                frozen = time.monotonic()
                tier.workers[name].signal(signal.SIGSTOP)
                agreed.append(wait_until(lambda: metric(tier.coordinator, "coordinator_members", view="agreed") == 2, 5,
                                         f"an epoch without {name}"))
                self.assertGreater(tier.status()["epoch"], epoch)
                time.sleep(max(0.0, 1.3 - (time.monotonic() - frozen)))
                stalls += [traffic.longest(since=frozen) for traffic in sessions]
                tier.workers[name].signal(signal.SIGCONT)
                wait_until(lambda: worker_state(tier, name) == "serving", 10, f"the return of {name}")
                before = calls_of(tier, name)
                wait_until(lambda: calls_of(tier, name) > before, 5, f"calls to {name} of the open sessions")
                epoch = tier.status()["epoch"]
            suspects = tier.coordinator.log_text().count('"worker_suspected"')
            losses = tier.status()["losses"]
            for traffic in sessions:
                traffic.stop()
        failed = [str(c.error) for traffic in sessions for c in traffic.failed()]
        wrong = sum(len(traffic.wrong()) for traffic in sessions)
        print(json.dumps({
            "rounds": ROUNDS, "sessions": SESSIONS, "calls": sum(len(t.calls) for t in sessions),
            "lost_calls": len(failed), "wrong_rows": wrong,
            "agreed_ms": milliseconds(agreed), "stall_ms": milliseconds(stalls),
            "detection_ms": milliseconds([loss["detection_ns"] * 1e-9 for loss in losses]),
            "recovery_ms": milliseconds([loss["recovery_ns"] * 1e-9 for loss in losses]),
            "suspected_first": suspects, "replays": sum(t.stats.replays for t in sessions),
            "late_returns_dropped": sum(t.stats.late_returns for t in sessions)}))
        self.assertEqual([], failed)
        self.assertEqual(0, wrong)
        self.assertEqual(["silent"] * ROUNDS, [loss["cause"] for loss in losses])
        self.assertGreaterEqual(suspects, ROUNDS)  # more where a loaded machine makes a sound one's beats late
        self.assertLessEqual(percentile(agreed, 50), 0.6)
        self.assertLessEqual(max(agreed), 1.2)
        self.assertLessEqual(percentile(stalls, 99), 1.5)
        self.assertGreater(sum(t.stats.late_returns for t in sessions), 0,
                           "the woken workers' rows were counted nowhere")


def calls_of(tier, name):
    return next(w["calls_total"] for w in tier.status()["workers"] if w["name"] == name)


if __name__ == "__main__":
    unittest.main()
