"""Processes of `moetier up` are frozen one after the other and go on: up itself, each worker, the coordinator. Nothing
is started anew for that, and the open session loses no call."""
import json
import os
import signal
import time
import unittest
import urllib.request

from embedded_tier import Up, ready
from lost_worker import cases_of
from process_tier import FULL, wait_until
from traffic import Traffic
import vectors

ROUNDS = 5 if FULL else 1


class FrozenUp(unittest.TestCase):
    def test_a_frozen_process_of_it_is_left_out_or_not_missed_and_taken_back(self):
        with Up("--slots", "22", workers=3) as up:
            traffic = Traffic(up.ready["address"], cases_of(vectors.load()), return_mode="exact")
            traffic.start()
            started = up.pids()
            names = ["worker@0", "worker@1", "worker@2", "coordinator"]
            stalls = {}
            for _ in range(ROUNDS):
                for name in ["up", *names]:
                    pid = up.process.pid if name == "up" else up.newest_pid(name)
                    frozen = time.monotonic()
                    os.kill(pid, signal.SIGSTOP)
                    time.sleep(1.3)
                    os.kill(pid, signal.SIGCONT)
                    wait_until(lambda: ready(up.http) and workers_serving(up) == 3, 15, f"the return of {name}",
                               pause=0.05)
                    stalls[name] = max(stalls.get(name, 0), round(1e3 * traffic.longest(since=frozen)))
            traffic.stop()
            self.assertEqual(started, up.pids(), "a child was started anew")
            code, _ = up.end()
        print(json.dumps({"rounds": ROUNDS, "calls": len(traffic.calls), "lost_calls": len(traffic.failed()),
                          "wrong_rows": len(traffic.wrong()), "stall_ms_max": stalls}))
        self.assertEqual(0, code)
        self.assertEqual([], [str(c.error) for c in traffic.failed()])
        self.assertEqual([], traffic.wrong())
        self.assertLessEqual(max(stalls.values()), 1500)


def workers_serving(up):
    with urllib.request.urlopen(f"http://{up.http}/metrics", timeout=2) as answer:
        for line in answer.read().decode().splitlines():
            if line.startswith('moetier_coordinator_members{view="agreed"}'):
                return float(line.split()[-1])
    return 0


if __name__ == "__main__":
    unittest.main()
