"""A client that calls without a pause on a thread of its own and keeps what came of each call."""
import threading
import time

import numpy as np

import moetier


class Call:
    def __init__(self, began, seconds, error, right):
        self.began, self.seconds, self.error, self.right = began, seconds, error, right


class Traffic(threading.Thread):
    """Calls layer after layer of `cases` (dicts of forward's arguments) in its own session until stopped. Every output
    must have the bits of the first round, made before the trouble begins."""

    def __init__(self, address, cases, **session):
        super().__init__(daemon=True)
        self.cases, self.calls, self.stopping = cases, [], threading.Event()
        self.connection = moetier.connect(address)
        self.session = self.connection.session(max_tokens=64, **session)
        self.wanted = [self._forward(case) for case in cases]

    def _forward(self, case):
        with self.session.step() as step:
            return np.array(step.forward(**case))

    def run(self):
        turn = 0
        while not self.stopping.is_set():
            case, wanted = self.cases[turn % len(self.cases)], self.wanted[turn % len(self.cases)]
            began, error, right = time.monotonic(), None, None
            try:
                right = self._forward(case).tobytes() == wanted.tobytes()
            except moetier.Error as e:
                error = e
                time.sleep(0.002)
            self.calls.append(Call(began, time.monotonic() - began, error, right))
            turn += 1

    def stop(self):
        self.stopping.set()
        self.join(timeout=20)
        if self.is_alive():
            raise AssertionError("a call never ended")
        self.stats = self.session.stats
        try:
            self.session.close()
        except moetier.Unavailable:
            pass  # no coordinator: the lease will lapse
        self.connection.close()

    def wrong(self):
        return [c for c in self.calls if c.right is False]

    def failed(self):
        return [c for c in self.calls if c.error is not None]

    def longest(self, since=0.0):
        return max((c.seconds for c in self.calls if c.began + c.seconds >= since), default=0.0)
