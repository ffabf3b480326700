"""An attention service that asks for more or less than a tier can do, as a process of its own.

Usage: overload_client.py ADDRESS TENANT LANES TOKENS. A lane is a thread with a session of its own. Says {"ready":
true}, then does what each line of its standard input asks for and answers it with a line. {"calls": n, "deadline":
seconds} makes n calls in every lane. {"rate": calls a second or null for a closed loop, "from": t, "until": t,
"lanes": n, "deadline": seconds of a call} is a phase (times are monotonic seconds), answered with counts. In an open
loop calls become due at their rate whatever becomes of the others; one that no lane takes within its deadline is
`unsent`. A refused call is not tried again, and its lane waits for as long as the refusal says.
"""
import collections
import json
import sys
import threading
import time

import numpy as np

import moetier

LAYER = 0


class Due:
    """The calls of one phase in the order in which they become due."""

    def __init__(self, rate, begin, until):
        self.rate, self.begin, self.until = rate, begin, until
        self.lock, self.count = threading.Lock(), 0

    def take(self):
        """When the next call is due; None after the phase."""
        with self.lock:
            at = time.monotonic() if self.rate is None else self.begin + self.count / self.rate
            if at >= self.until:
                return None
            self.count += 1
            return max(at, self.begin)


class Lane:
    def __init__(self, connection, tokens, seed):
        self.session = connection.session(max_tokens=tokens)
        random = np.random.default_rng(seed)
        model = connection.model
        self.call = {"layer": LAYER, "hidden": random.standard_normal((tokens, model.hidden_size), dtype=np.float32),
                     "logits": random.standard_normal((tokens, model.router_columns), dtype=np.float32)}
        self.out = np.empty((tokens, model.hidden_size), np.float32)

    def run(self, due, deadline, ended):
        while (at := due.take()) is not None:
            pause = at - time.monotonic()
            if pause > 0:
                time.sleep(pause)
            elif -pause > deadline:
                ended.append(("UNSENT", 0.0))
                continue
            try:
                with self.session.step() as step:
                    step.forward(**self.call, out=self.out, deadline=deadline)
                ended.append(("OK", time.monotonic() - at))
            except moetier.Error as e:
                ended.append((e.status, time.monotonic() - at))
                if e.retry_after or due.rate is None:
                    time.sleep(e.retry_after or 0.001)


def touch(lanes, wish):
    """Every bank of every session is used, so that what a session takes is taken."""
    for lane in lanes:
        for _ in range(wish["calls"]):
            with lane.session.step() as step:
                step.forward(**lane.call, out=lane.out, deadline=wish["deadline"])
    return {}


def phase(lanes, wish):
    due = Due(wish["rate"], wish["from"], wish["until"])
    ended = [[] for _ in lanes[:wish["lanes"]]]
    threads = [threading.Thread(target=lane.run, args=(due, wish["deadline"], list_))
               for lane, list_ in zip(lanes, ended)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counts = collections.Counter(status for list_ in ended for status, _ in list_)
    good = sorted(seconds for list_ in ended for status, seconds in list_ if status == "OK")
    at = lambda q: round(1e3 * good[min(len(good) - 1, int(q * len(good)))], 3) if good else None  # noqa: E731
    return {"offered": due.count, "ended": counts, "p50_ms": at(0.5), "p99_ms": at(0.99)}


def main():
    address, tenant, count, tokens = sys.argv[1:5]
    with moetier.connect(address, tenant=tenant) as connection:
        lanes = [Lane(connection, int(tokens), n) for n in range(int(count))]
        print(json.dumps({"ready": True}), flush=True)
        for line in sys.stdin:
            wish = json.loads(line)
            print(json.dumps((touch if "calls" in wish else phase)(lanes, wish)), flush=True)
        for lane in lanes:
            lane.session.close()


if __name__ == "__main__":
    main()
