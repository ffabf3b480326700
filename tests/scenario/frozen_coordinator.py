"""The coordinator is frozen while clients work, and goes on: direct sessions notice nothing, neither then nor when it
wakes; thin clients get a typed error by their deadline; workers say that they are not ready and serve on.
MOETIER_FULL=1: 20 rounds."""
import json
import signal
import subprocess
import tempfile
import time
import unittest

from lost_worker import cases_of
from process_tier import BIN, COMMAND_ENVIRONMENT, FULL, ProcessTier, wait_until
from tier_figures import milliseconds
from traffic import Traffic
import vectors

ROUNDS = 20 if FULL else 2
FROZEN = (0.4, 3.0)  # shorter than a detection time, and long enough that every worker gives it up
DEADLINE = 1.0


class FrozenCoordinator(unittest.TestCase):
    def test_direct_sessions_notice_nothing_and_thin_clients_get_typed_errors_in_time(self):
        thin, back, unready, stalls = [], [], [], []
        with ProcessTier(workers=3, slots=22) as tier, tempfile.TemporaryDirectory() as folder:
            traffic = Traffic(tier.address, cases_of(vectors.load()), return_mode="exact")
            traffic.start()
            forward = [str(BIN / "moetier"), "forward", "--layer", "0", "--in", str(vectors.PATH), "--prefix",
                       "novel.layer0.", "--out", folder + "/out.safetensors", "--via", "gateway", "--address",
                       tier.address, "--timeout", f"{round(1e3 * DEADLINE)}ms"]

            def ask():
                began = time.monotonic()
                done = subprocess.run(forward, capture_output=True, text=True, timeout=30, env=COMMAND_ENVIRONMENT)
                return done, time.monotonic() - began

            first, _ = ask()
            self.assertEqual(0, first.returncode, first.stderr)
            before = tier.status()
            for turn in range(ROUNDS):
                time.sleep(0.3)
                frozen = time.monotonic()
                tier.coordinator.signal(signal.SIGSTOP)
                if turn % 2 == 0:
                    done, seconds = ask()
                    self.assertNotEqual(0, done.returncode)
                    thin.append((done.returncode, done.stderr.strip(), seconds))
                    unready.append(wait_until(
                        lambda: all(w.get("/readyz")[0] == 503 for w in tier.workers.values()), 3,
                        "workers without lease"))
                time.sleep(max(0.0, FROZEN[1 - turn % 2] - (time.monotonic() - frozen)))
                woken = time.monotonic()
                tier.coordinator.signal(signal.SIGCONT)
                wait_until(lambda: ask()[0].returncode == 0, 10, "the gateway", pause=0.05)
                back.append(time.monotonic() - woken)
                wait_until(lambda: all(w.get("/readyz")[0] == 200 for w in tier.workers.values()), 10,
                           "every worker's lease", pause=0.05)
                time.sleep(0.3)
                stalls.append(traffic.longest(since=frozen))
            after = tier.status()
            traffic.stop()
        print(json.dumps({"rounds": ROUNDS, "calls": len(traffic.calls), "lost_calls": len(traffic.failed()),
                          "wrong_rows": len(traffic.wrong()), "longest_call_ms": milliseconds(stalls),
                          "thin_error": thin[0][1][-200:], "thin_seconds": [round(t[2], 2) for t in thin],
                          "gateway_back_ms": milliseconds(back), "losses": len(after["losses"])}))
        self.assertEqual([], [str(c.error) for c in traffic.failed()])
        self.assertEqual([], traffic.wrong())
        self.assertEqual([], after["losses"], "a worker was left out for the coordinator's own stop")
        self.assertEqual(before["epoch"], after["epoch"])
        for code, text, seconds in thin:
            self.assertLessEqual(seconds, DEADLINE + 1.0, "no answer by the deadline (and a process's start)")
            self.assertRegex(text, "UNAVAILABLE|TIMEOUT|coordinator", f"exit {code}")


if __name__ == "__main__":
    unittest.main()
