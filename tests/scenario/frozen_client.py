"""A client is frozen in the middle of its calls: its lease lapses, what it held is freed, nobody else notices; when
it goes on it is told so by a typed error and can open a new session. MOETIER_FULL=1: 20 rounds.

With --client ADDRESS: the client itself, one JSON line per thing that happened to it.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

import moetier

from lost_worker import cases_of
from process_tier import FULL, ProcessTier, wait_until
from tier_figures import metric, milliseconds, percentile
from traffic import Traffic
import vectors

ROUNDS = 20 if FULL else 2
LEASE = 1.0


def work(address):
    """Calls until the session is lost, then once more in a new one."""
    cases = cases_of(vectors.load())
    with moetier.connect(address) as tier:
        with tier.session(max_tokens=64) as session:
            print(json.dumps({"open": True}), flush=True)
            for turn in range(10**9):
                try:
                    with session.step() as step:
                        step.forward(**cases[turn % len(cases)])
                except moetier.Error as e:
                    print(json.dumps({"status": e.status, "text": str(e)}), flush=True)
                    if e.status == "SESSION_LOST":
                        break
                    time.sleep(0.01)
        with tier.session(max_tokens=64) as session, session.step() as step:
            step.forward(**cases[0])
        print(json.dumps({"again": True}), flush=True)


class Client:
    def __init__(self, address):
        self.process = subprocess.Popen([sys.executable, str(pathlib.Path(__file__)), "--client", address],
                                        stdout=subprocess.PIPE, text=True, env=os.environ)
        self.line()

    def line(self):
        return json.loads(self.process.stdout.readline())

    def end(self):
        code = self.process.wait(timeout=10)
        self.process.stdout.close()
        return code


def sessions(tier):
    return {s["session"] for s in tier.status()["sessions"]}


class FrozenClient(unittest.TestCase):
    def test_its_lease_lapses_nobody_else_notices_and_it_is_told_when_it_goes_on(self):
        freed, told = [], []
        with ProcessTier(workers=2) as tier:
            others = Traffic(tier.address, cases_of(vectors.load()), return_mode="exact")
            others.start()
            (own,) = sessions(tier)
            for _ in range(ROUNDS):
                client = Client(tier.address)
                (victim,) = sessions(tier) - {own}
                time.sleep(0.2)
                frozen = time.monotonic()
                client.process.send_signal(signal.SIGSTOP)
                wait_until(lambda: victim not in sessions(tier), 5, "the end of its session", pause=0.02)
                freed.append(time.monotonic() - frozen)
                wait_until(lambda: all(metric(w, "worker_sources") == 1 for w in tier.workers.values()), 2,
                           "its places in the workers' tables")
                time.sleep(0.3)
                client.process.send_signal(signal.SIGCONT)
                errors = []
                while True:
                    line = client.line()
                    if "again" in line:
                        break
                    errors.append(line["status"])
                told.append(errors)
                self.assertEqual(0, client.end())
                self.assertEqual({own}, sessions(tier))
            others.stop()
            epoch = tier.status()["epoch"]
        seconds = [c.seconds for c in others.calls]
        print(json.dumps({"rounds": ROUNDS, "freed_ms": milliseconds(freed), "told": told[0],
                          "others_calls": len(others.calls), "others_lost": len(others.failed()),
                          "others_wrong": len(others.wrong()),
                          "others_call_ms": {"p50": round(1e3 * percentile(seconds, 50), 2),
                                             "p99": round(1e3 * percentile(seconds, 99), 2),
                                             "max": round(1e3 * max(seconds), 2)}, "epoch": epoch}))
        self.assertEqual([], [str(c.error) for c in others.failed()])
        self.assertEqual([], others.wrong())
        self.assertLessEqual(percentile(freed, 50), LEASE + 0.4)
        self.assertLessEqual(others.longest(), 1.0)
        for errors in told:
            self.assertEqual("SESSION_LOST", errors[-1])


if __name__ == "__main__":
    if "--client" in sys.argv:
        work(sys.argv[-1])
    else:
        unittest.main()
