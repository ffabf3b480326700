"""SIGTERM of each process under load: what is in flight ends, exit 0 within 5 s. A session that ends leaves nothing."""
import json
import pathlib
import time
import unittest

import moetier

from lost_worker import cases_of
from process_tier import ProcessTier, wait_until
from traffic import Traffic
import vectors


class OrderlyEnd(unittest.TestCase):
    def test_a_worker_with_replicas_leaves_and_no_call_fails(self):
        with ProcessTier(workers=3, slots=22) as tier:
            traffic = Traffic(tier.address, cases_of(vectors.load()), return_mode="exact")
            traffic.start()
            time.sleep(0.2)
            code, seconds = tier.workers["worker@2"].end()
            time.sleep(0.3)
            traffic.stop()
        self.assertEqual(0, code)
        self.assertEqual([], [str(c.error) for c in traffic.failed()])
        self.assertEqual([], traffic.wrong())
        print(json.dumps({"process": "worker", "exit": code, "seconds": seconds}))

    def test_the_coordinator_ends_while_a_direct_session_goes_on(self):
        with ProcessTier(workers=2) as tier:
            traffic = Traffic(tier.address, cases_of(vectors.load()), return_mode="exact")
            traffic.start()
            time.sleep(0.2)
            code, seconds = tier.coordinator.end()
            time.sleep(0.5)
            self.assertEqual([], [str(c.error) for c in traffic.failed()])
            self.assertEqual([], traffic.wrong())
            traffic.stop()
        self.assertEqual(0, code)
        print(json.dumps({"process": "coordinator", "exit": code, "seconds": seconds}))

    def test_sessions_that_called_nothing_leave_no_connection_at_the_workers(self):
        def mapped():  # the carrier maps a peer's memory for each connection
            return [pathlib.Path(f"/proc/{worker.process.pid}/maps").read_text().count("/SYSV")
                    for worker in tier.workers.values()]

        with ProcessTier(workers=2) as tier, moetier.connect(tier.address) as service:
            before = mapped()
            for pause in (0, 0, 0.3, 0.3):  # without and with the carrier's own words between two idle peers
                with service.session(max_tokens=16):
                    time.sleep(pause)
            # This process lives on, so that nothing of it goes by its end.
            wait_until(lambda: mapped() == before, 5, f"the memory of before, {before} segments, now {mapped()}")


if __name__ == "__main__":
    unittest.main()
