"""Plants the mistakes of list.py into the simulator, one at a time, and runs seeds until one finds it.

run.py --build DIR [--short] [--seeds N] [NAME...]

A mistake is compiled from a changed copy of its source file and linked before the libraries, so that nothing else is
built. Needs a built moetier_sim. Exit code 1 if a mistake was not found; a mistake whose text is not in its file any
more is an error too.
"""
import argparse
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from list import MUTATIONS, SHORT  # noqa: E402

SOURCE = pathlib.Path(__file__).resolve().parents[3]


class Simulator:
    """How the built simulator was compiled and linked, as ninja knows it."""

    def __init__(self, build):
        self.build = pathlib.Path(build).resolve()
        shown = subprocess.run(["ninja", "-C", str(self.build), "-t", "commands", "moetier_sim"], check=True,
                               capture_output=True, text=True).stdout.splitlines()
        self.commands = [line for line in shown if not line.startswith("ninja:")]
        (self.link,) = [c for c in self.commands if re.search(r" -o \S*moetier_sim ", c)]

    def compile(self, source, copy, into):
        (line,) = [c for c in self.commands if c.rstrip().endswith(f" -c {SOURCE / source}")] or \
            [c for c in self.commands if re.search(rf" -c \S*{re.escape(str(source))}$", c.rstrip())]
        words = shlex.split(line)
        out = words.index("-o")
        words[out + 1] = str(into)
        words[words.index("-c") + 1] = str(copy)
        words = ["-w" if w == "-MD" else w for w in words]  # a mistake may well leave something unused
        for flag in ("-MT", "-MF"):
            if flag in words:
                del words[words.index(flag):words.index(flag) + 2]
        subprocess.run(words, cwd=self.build, check=True)

    def linked_with(self, mutant, into):
        # `: && COMMAND && :` of CMake's ninja files.
        line = re.sub(r"^: && | && :$", "", self.link)
        line = re.sub(r" -o (\S*moetier_sim) ", f" {shlex.quote(str(mutant))} -o {shlex.quote(str(into))} ", line)
        subprocess.run(line, shell=True, cwd=self.build, check=True)


def plant(simulator, mutation, folder):
    name, source, right, wrong = mutation
    text = (SOURCE / source).read_text()
    if text.count(right) != 1:
        raise SystemExit(f"{name}: its text stands {text.count(right)} times in {source}")
    copy = folder / pathlib.Path(source).name
    copy.write_text(f'#line 1 "{SOURCE / source}"\n' + text.replace(right, wrong))
    simulator.compile(source, copy, folder / "mutant.o")
    simulator.linked_with(folder / "mutant.o", folder / "sim")
    return folder / "sim"


def main():
    asked = argparse.ArgumentParser()
    asked.add_argument("--build", required=True)
    asked.add_argument("--short", action="store_true", help="a few only, unless MOETIER_FULL=1")
    asked.add_argument("--seeds", type=int, default=3000)
    asked.add_argument("names", nargs="*")
    options = asked.parse_args()
    short = options.short and os.environ.get("MOETIER_FULL") != "1"
    chosen = [m for m in MUTATIONS if (m[0] in options.names if options.names else not short or m[0] in SHORT)]
    simulator = Simulator(options.build)
    missed = []
    for mutation in chosen:
        with tempfile.TemporaryDirectory(prefix="moetier-mutant-") as folder:
            binary = plant(simulator, mutation, pathlib.Path(folder))
            began = time.monotonic()
            done = subprocess.run([str(binary), "--must-fail", "--seeds", str(options.seeds)],
                                  capture_output=True, text=True)
        found = done.returncode not in (1, 2)  # 0 a rule was broken, 3 an assertion, below 0 a crash
        said = (done.stdout + done.stderr).strip().splitlines()
        otherwise = said[0] if said else f"exit {done.returncode}"
        words = next((line for line in said if line.startswith("seed ")), otherwise)
        print(f"{'found ' if found else 'MISSED'} {mutation[0]:42} {time.monotonic() - began:6.1f} s  {words[:120]}",
              flush=True)
        if not found:
            missed.append(mutation[0])
    print(f"{len(chosen) - len(missed)} of {len(chosen)} mistakes found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
