"""Several attention services on one tier: right texts side by side; a killed, an idle and a frozen one block nobody."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

from lost_worker import cases_of
from process_tier import ProcessTier, wait_until
from traffic import Traffic
import vectors

CLIENT = str(pathlib.Path(__file__).with_name("attention_client.py"))


class Service:
    def __init__(self, tier, name, *flags):
        before = sessions(tier)
        self.process = subprocess.Popen([sys.executable, CLIENT, tier.address, name, *flags],
                                        stdout=subprocess.PIPE, text=True, env=os.environ)
        self.process.stdout.readline()  # its session is open
        (self.session,) = sessions(tier) - before

    def last_line(self):
        *_, last = self.process.stdout
        return json.loads(last)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def sessions(tier):
    return {s["session"] for s in tier.status()["sessions"]}


class TwoServices(unittest.TestCase):
    def test_two_at_once_write_their_own_right_texts(self):
        with ProcessTier(workers=3) as tier:
            both = [Service(tier, name) for name in ("scripture", "code")]
            self.assertEqual([{"equal": True}] * 2, [service.last_line() for service in both])
            for service in both:
                self.assertEqual(0, service.process.wait(timeout=5))
                service.process.stdout.close()

    def test_a_killed_one_frees_its_session_within_a_second(self):
        with ProcessTier(workers=2) as tier:
            victim = Service(tier, "novel")
            self.assertIn(victim.session, sessions(tier))
            time.sleep(0.2)
            victim.kill()
            seconds = wait_until(lambda: victim.session not in sessions(tier), 3, "the end of its session")
            self.assertLessEqual(seconds, 1.3)  # the lease of one second, and a look every 0.1 s
            print(json.dumps({"freed_after_seconds": seconds}))

    def test_an_idle_and_a_frozen_one_block_nobody(self):
        with ProcessTier(workers=2) as tier:
            idle = Service(tier, "novel", "--idle")
            frozen = Service(tier, "novel")
            time.sleep(0.1)
            frozen.process.send_signal(signal.SIGSTOP)  # most likely inside a call
            traffic = Traffic(tier.address, cases_of(vectors.load()), return_mode="exact")
            traffic.start()
            time.sleep(3)
            traffic.stop()
            self.assertEqual([], [str(c.error) for c in traffic.failed()])
            self.assertEqual([], traffic.wrong())
            self.assertNotIn(frozen.session, sessions(tier))
            self.assertIn(idle.session, sessions(tier))
            print(json.dumps({"calls": len(traffic.calls), "longest_ms": 1e3 * traffic.longest()}))
            frozen.process.send_signal(signal.SIGCONT)
            frozen.kill()
            idle.kill()


if __name__ == "__main__":
    unittest.main()
