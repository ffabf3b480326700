"""What transport/client/README.md shows is what transport/client/examples holds, and all of it runs: C, Python and RPC
against a tier of real processes, with a worker lost and back in between."""
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

import numpy as np

from families import read
from process_tier import BIN, MODEL, SOURCE, ProcessTier

CLIENT = SOURCE / "transport" / "client"
EXAMPLES = CLIENT / "examples"
PROGRAMS = pathlib.Path(os.environ.get("MOETIER_EXAMPLES", BIN))
README = (CLIENT / "README.md").read_text()
CONFIG = json.loads((MODEL / "config.json").read_text())
LIMIT = 60
STEPS_BEFORE = 200


def program(name):
    return [str(PROGRAMS / f"example_{name}")]


def script(name):
    return [sys.executable, str(EXAMPLES / f"{name}.py")]


def run(command, *arguments):
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=LIMIT)
    if done.returncode != 0:
        raise AssertionError(f"{command[-1]} {arguments}: exit {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def regions(path):
    """The marked parts of an example: name -> text, without the indentation of their first line."""
    found, name = {}, None
    for line in path.read_text().splitlines():
        mark = re.match(r"\s*(?:/\*|//|#) \[(?:example: (\w+)|end)\]", line)
        if mark:
            name = mark[1]
            if name:
                found[name] = []
        elif name:
            found[name].append(line)
    texts = {}
    for name, lines in found.items():
        indent = len(lines[0]) - len(lines[0].lstrip())
        texts[name] = "\n".join(line[indent:] for line in lines).strip("\n")
    return texts


def layer_of_demo(layer, x, logits):
    """A layer of the demo's Qwen3-MoE, from its checkpoint."""
    stem = f"model.layers.{layer}.mlp.experts."
    weights = read(MODEL / "model.safetensors")
    chosen = np.argsort(-logits, axis=1, kind="stable")[:, :CONFIG["num_experts_per_tok"]]
    out = np.zeros_like(x)
    for t, experts in enumerate(chosen):
        p = np.exp(logits[t, experts] - logits[t, experts].max())
        for weight, e in zip(p / p.sum(), experts):
            gate, up, down = (weights[f"{stem}{e}.{name}_proj.weight"] for name in ("gate", "up", "down"))
            g = gate @ x[t]
            out[t] += weight * (down @ (g / (1 + np.exp(-g)) * (up @ x[t])))
    return out


class Readme(unittest.TestCase):
    def test_code_is_that_of_the_examples(self):
        blocks = re.findall(r"<!-- examples/([\w.]+): (\w+) -->\n```\w+\n(.*?)\n```", README, re.S)
        self.assertGreater(len(blocks), 8)
        for file, name, text in blocks:
            with self.subTest(f"{file}: {name}"):
                self.assertEqual(text, regions(EXAMPLES / file)[name])
        # No code in C or Python stands there that is not an example's.
        self.assertEqual(len(re.findall(r"^```(?:c|cpp|python)$", README, re.M)), len(blocks))

    def test_every_status_has_its_row_and_the_examples_agree(self):
        header = (CLIENT / "abi" / "moetier.h").read_text()
        enum = re.search(r"typedef enum moetier_status \{(.*?)\}", header, re.S)[1]
        declared = {int(number) for number in re.findall(r"MOETIER_\w+ = (\d+)", enum)}
        rows = re.findall(r"^\| `(\w+)` \| (\d+) \| ([^|]*) \| ([\w ]+) \|", README, re.M)
        table = {int(number): (name, action) for name, number, _, action in rows}
        self.assertEqual((len(rows), set(table)), (len(declared), declared))
        in_c = {int(line.split()[1]): (line.split()[0], " ".join(line.split()[2:]))
                for line in run(program("steps"), "--actions").splitlines()}
        self.assertEqual(in_c, table)
        in_python = [line.split("\t") for line in run(script("steps"), "--actions").splitlines()]
        self.assertEqual({int(code): (status, action) for status, code, action, _ in in_python},
                         {number: row for number, row in table.items() if number > 2})
        classes = dict(re.findall(r"^\| `(\w+)` \| \d+ \| (?:[^|]*) \| (?:[\w ]+) \| `(\w+)`", README, re.M))
        self.assertEqual(classes, {status: name for status, _, _, name in in_python} | {"DEGRADED": "Degraded"})


class Examples(unittest.TestCase):
    def test_c_python_and_rpc_get_the_same_layer(self):
        with ProcessTier(workers=2) as tier:
            said = {name: run(command, tier.address).strip() for name, command in
                    (("c", program("layer_call")), ("python", script("layer_call")), ("rpc", program("thin_client")))}
            ranks = run(script("ranks"), tier.address).splitlines()
        layers = {name: int(text.split()[0]) for name, text in said.items()}
        sums = {name: float(text.split()[-1]) for name, text in said.items()}
        h, e, last = CONFIG["hidden_size"], CONFIG["num_local_experts"], CONFIG["num_hidden_layers"] - 1
        x = np.sin(0.37 * np.arange(5 * h)).astype(np.float32).reshape(5, h)
        logits = np.cos(1.7 * np.arange(5 * e)).astype(np.float32).reshape(5, e)
        wanted = float(np.abs(layer_of_demo(last, x, logits)).sum())
        self.assertEqual(set(layers.values()), {last + 1}, said)
        for name, figure in sums.items():
            self.assertAlmostEqual(figure / wanted, 1, delta=1e-4, msg=f"{name}: {said}, wanted {wanted}")
        calls = 2 * (last + 1)  # two steps
        self.assertEqual(ranks, [f"rank {rank}: {3 * rank * calls} tokens" for rank in range(3)])

    def test_a_step_is_run_again_until_a_lost_worker_is_back(self):
        for command in (program("steps"), script("steps")):
            with self.subTest(command[-1]), ProcessTier(workers=2) as tier:
                self.assertRegex(run(command, tier.address, "2"), r"(?s)^step 1: \d+ calls, attempt 1, OK\n.*step 2")
                runs = subprocess.Popen([*command, tier.address, "100000"], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
                try:
                    # Not while the carrier still connects: see the limits in README.
                    for _ in range(STEPS_BEFORE):
                        self.assertIn("attempt 1, OK", runs.stdout.readline())
                    tier.workers["worker@2"].kill()
                    self.assertIn("attempt 1: ", runs.stderr.readline())  # it is missed
                    tier.workers["worker@2"].start()
                    again = next(line for line in runs.stdout if re.search(r"attempt (?!1,)\d+, OK", line))
                    self.assertTrue(again.startswith("step "))
                    events = "".join(line for _, line in zip(range(5), runs.stdout))
                    self.assertRegex(events, r"step \d+: \d+ calls, attempt 1, OK")
                finally:
                    runs.terminate()
                    runs.communicate()


if __name__ == "__main__":
    unittest.main()
