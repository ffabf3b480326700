"""Ten times the load from eight clients of two tenants: what is admitted is as much as ever, what is refused is refused
by a typed error, nothing grows, and the tenant that asks for little notices next to nothing. MOETIER_FULL=1: 60 s.

The clients share the tier's processors, so the model is one whose experts are work: what clients do for their calls,
also for those that are refused, is little beside it."""
import collections
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np

from families import write
from process_tier import FULL, MODEL, SANITIZED, ProcessTier

CLIENT = str(pathlib.Path(__file__).with_name("overload_client.py"))
TOKENS, LANES = 256, 4
HIDDEN, WIDTH, EXPERTS, TOP_K = 512, 512, 32, 8  # of the model
LEARNING_DEADLINE = 5.0
CALLS_PER_DEADLINE = 20  # half of them may wait; all lanes together ask for three times that
GREEDY = 7  # processes of the greedy tenant; one of the modest
MODEST_RATE, MODEST_DEADLINE = 4.0, 1.0  # calls a second; a patience that few processors for the clients do not use up
PEAK_SECONDS, LOAD_SECONDS = (20, 60) if FULL else (4, 8)
# A short round on a shared machine, which changes its speed within seconds, is judged mildly.
GOODPUT = 0.95 if FULL else 0.75
TENANTS = ["--set", "session.lease=10s",  # a shared machine may let no client run for a second
           "--set", "tenants[0].match=greedy", "--set", "tenants[0].sessions=40",
           "--set", "tenants[1].match=modest", "--set", "tenants[1].tokens_in_flight=4096"]


def write_model(folder):
    """One MoE layer of random experts."""
    random = np.random.default_rng(1)

    def matrix(*shape):
        return (random.standard_normal(shape, np.float32).view(np.uint32) >> 16).astype(np.uint16)

    config = json.loads((MODEL / "config.json").read_text())
    config |= {"hidden_size": HIDDEN, "moe_intermediate_size": WIDTH, "num_local_experts": EXPERTS,
               "num_experts": EXPERTS, "num_experts_per_tok": TOP_K, "num_hidden_layers": 1}
    pathlib.Path(folder, "config.json").write_text(json.dumps(config))
    tensors = {"model.layers.0.mlp.gate.weight": matrix(EXPERTS, HIDDEN)}
    for e in range(EXPERTS):
        for part, shape in (("gate", (WIDTH, HIDDEN)), ("up", (WIDTH, HIDDEN)), ("down", (HIDDEN, WIDTH))):
            tensors[f"model.layers.0.mlp.experts.{e}.{part}_proj.weight"] = matrix(*shape)
    write(pathlib.Path(folder, "model.safetensors"), tensors)


class Client:
    def __init__(self, address, tenant, lanes):
        self.process = subprocess.Popen([sys.executable, CLIENT, address, tenant, str(lanes), str(TOKENS)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def told(self):
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"a client ended with {self.process.wait()}")
        return json.loads(line)

    def ask(self, **wish):
        self.process.stdin.write(json.dumps(wish) + "\n")
        self.process.stdin.flush()

    def end(self):
        self.process.stdin.close()
        self.process.wait(timeout=20)
        self.process.stdout.close()


def rss(tier):
    """KiB of each process of the tier."""
    def of(member):
        text = pathlib.Path(f"/proc/{member.process.pid}/status").read_text()
        return int(next(line.split()[1] for line in text.splitlines() if line.startswith("VmRSS:")))
    return {"coordinator": of(tier.coordinator), **{name: of(w) for name, w in tier.workers.items()}}


def run(clients, seconds, rates, deadline, lanes=LANES, watch=None):
    """One phase of all clients; the sums of the greedy ones and the modest one's own."""
    begin = time.monotonic() + 0.3
    for client, rate in zip(clients, rates):
        own = MODEST_DEADLINE if client is clients[-1] else deadline
        client.ask(rate=rate, lanes=lanes, deadline=own, **{"from": begin, "until": begin + seconds})
    while watch and time.monotonic() < begin + seconds:
        watch()
        time.sleep(0.5)
    told = [client.told() for client in clients]
    ended = collections.Counter()
    for t in told[:GREEDY]:
        ended.update(t["ended"])
    return {"offered": sum(t["offered"] for t in told[:GREEDY]), "ended": dict(ended),
            "p99_ms": max((t["p99_ms"] or 0 for t in told[:GREEDY]), default=0),
            "goodput": TOKENS * sum(t["ended"].get("OK", 0) for t in told) / seconds,
            "modest": told[-1]}


def total(member, name):
    lines = member.get("/metrics")[1].splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("moetier_" + name))


class Overload(unittest.TestCase):
    def test_ten_times_the_load_costs_no_goodput_no_memory_and_no_other_tenant(self):
        with tempfile.TemporaryDirectory() as model:
            write_model(model)
            self.run_on(model)

    def run_on(self, model):
        with ProcessTier(workers=2, model=model, settings=TENANTS) as tier:
            clients = [Client(tier.address, "greedy", LANES) for _ in range(GREEDY)]
            clients.append(Client(tier.address, "modest", 1))
            for client in clients:
                client.told()
            idle = [1e-6] * GREEDY  # one call each, at the beginning
            closed = [None] * GREEDY
            for client in clients:
                client.ask(calls=4, deadline=LEARNING_DEADLINE)
            for client in clients:
                client.told()
            learned = run(clients, 2, closed + [MODEST_RATE], LEARNING_DEADLINE, lanes=1)
            deadline = max(0.05, CALLS_PER_DEADLINE * TOKENS / learned["goodput"])
            alone = run(clients, PEAK_SECONDS, idle + [MODEST_RATE], deadline)
            peak = run(clients, PEAK_SECONDS, closed + [MODEST_RATE], deadline, lanes=1)
            calls = peak["goodput"] / TOKENS
            flood = [10 * calls / GREEDY] * GREEDY + [MODEST_RATE]
            # Memory is real once it is touched first, once and for all.
            run(clients, PEAK_SECONDS, flood, deadline)
            before, during = rss(tier), collections.defaultdict(int)

            def watch():
                for name, kib in rss(tier).items():
                    during[name] = max(during[name], kib)

            load = run(clients, LOAD_SECONDS, flood, deadline, watch=watch)
            again = run(clients, PEAK_SECONDS, closed + [MODEST_RATE], deadline, lanes=1)
            after = rss(tier)
            refused = {name: total(w, "worker_refused_total") for name, w in tier.workers.items()}
            report = {"deadline_ms": round(1e3 * deadline, 1),
                      "peak_tokens_per_s": [round(peak["goodput"]), round(again["goodput"])],
                      "load_tokens_per_s": round(load["goodput"]),
                      "goodput_of_peak": round(load["goodput"] / peak["goodput"], 3),
                      "offered_of_peak": round((load["offered"] / LOAD_SECONDS + MODEST_RATE) / calls, 2),
                      "ended": load["ended"], "greedy_p99_ms": {"peak": peak["p99_ms"], "load": load["p99_ms"]},
                      "modest": {"alone": alone["modest"], "at_peak": peak["modest"], "beside": load["modest"]},
                      "refused_by_workers": refused,
                      "rss_kib": {"before": before, "during": dict(during), "after": after}}
            print(json.dumps(report, indent=1))
            for client in clients:
                client.end()
            if SANITIZED:
                return  # it ran; its figures say nothing

            self.assertGreater(load["offered"], 5 * calls * LOAD_SECONDS)
            self.assertGreaterEqual(load["goodput"], GOODPUT * min(peak["goodput"], again["goodput"]))
            self.assertLessEqual(set(load["ended"]), {"OK", "OVERLOADED", "TIMEOUT", "UNSENT"})
            self.assertGreater(load["ended"].get("OVERLOADED", 0), 0)
            for name in before:
                self.assertLessEqual(max(during[name], after[name]), 1.05 * before[name] + 4096, name)
            modest = load["modest"]["ended"]
            self.assertGreaterEqual(modest.get("OK", 0), 0.9 * sum(modest.values()), modest)


if __name__ == "__main__":
    unittest.main()
