"""Clients are killed in the very middle of their calls: what they left half done holds up nobody else, and their
places are free again. MOETIER_FULL=1: 100 of them.

With --client ADDRESS: a client that calls until it is killed.
"""
import json
import os
import pathlib
import random
import subprocess
import sys
import time
import unittest

import moetier

from lost_worker import cases_of
from process_tier import FULL, ProcessTier, wait_until
from tier_figures import milliseconds, percentile
from traffic import Traffic
import vectors

ROUNDS = 100 if FULL else 8


def work(address):
    cases = cases_of(vectors.load(), rows=64)
    with moetier.connect(address) as tier, tier.session(max_tokens=64) as session:
        print("open", flush=True)
        for turn in range(10**9):
            with session.step() as step:
                step.forward(**cases[turn % len(cases)])


class KilledClient(unittest.TestCase):
    def test_others_notice_nothing_of_who_is_killed_in_the_middle_of_a_send(self):
        with ProcessTier(workers=2, settings=["--set", "session.lease=1s"]) as tier:
            others = Traffic(tier.address, cases_of(vectors.load()), return_mode="exact")
            others.start()
            for _ in range(ROUNDS):
                client = subprocess.Popen([sys.executable, str(pathlib.Path(__file__)), "--client", tier.address],
                                          stdout=subprocess.PIPE, text=True, env=os.environ)
                self.assertEqual("open\n", client.stdout.readline())
                # Also right after the opening, when memory is touched for the first time.
                time.sleep(random.choice((0.0, 0.002, 0.1)) * random.random())
                client.kill()
                client.wait()
                client.stdout.close()
            wait_until(lambda: len(tier.status()["sessions"]) == 1, 5, "the end of the last lease")
            others.stop()
        self.assertEqual([], [str(c.error) for c in others.failed()])
        self.assertEqual([], others.wrong())
        seconds = [c.seconds for c in others.calls]
        print(json.dumps({"rounds": ROUNDS, "others_calls": len(seconds), "others_failed": 0, "others_wrong": 0,
                          "others_call_ms": milliseconds(seconds)}))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--client"]:
        work(sys.argv[2])
    else:
        unittest.main()
