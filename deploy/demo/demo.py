#!/usr/bin/env python3
"""The demo: a coordinator and three workers as separate processes, and an attention service that writes three texts.

Every MoE block of every token is computed by the tier. The texts must equal greedy.json, which an independent
implementation wrote; the exit code is 0 only if all three do.
"""
import argparse
import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
WORKERS = 3


def free_ports(count):
    """Ports that nobody listens on now."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in sockets]


class Tier:
    """The tier's processes; leaving the block ends them all, and says so if one did not end well."""

    def __init__(self, binary, model, device, backend, quantise):
        rpc, control, *http = free_ports(3 + WORKERS)
        self.binary = binary
        self.address = f"127.0.0.1:{rpc}"
        self.http = [f"127.0.0.1:{port}" for port in http]
        self.state = tempfile.TemporaryDirectory(prefix="moetier-demo-")
        self.processes = {}
        self._start("coordinator", "coordinator", "--model", model, "--workers", str(WORKERS),
                    "--state-dir", os.path.join(self.state.name, "coordinator"), "--rpc-listen", self.address,
                    "--control-listen", f"127.0.0.1:{control}", "--http-listen", self.http[0],
                    "--backend", backend, "--quantise", quantise)
        for n in range(1, WORKERS + 1):
            self._start(f"worker@{n}", "worker", "--model", model, "--name", f"worker@{n}",
                        "--coordinator", f"127.0.0.1:{control}", "--http-listen", self.http[n], "--device", device)

    def _start(self, name, *arguments):
        log = open(os.path.join(self.state.name, name + ".log"), "wb")
        self.processes[name] = subprocess.Popen([self.binary, *arguments], stdout=log, stderr=log)

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        for process in self.processes.values():
            process.send_signal(signal.SIGTERM)
        ended = {}
        for name, process in self.processes.items():
            try:
                ended[name] = process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()
                ended[name] = "killed after 5 s"
        if failure[0] is not None:
            self.show_logs()
        self.state.cleanup()
        if failure[0] is None and any(ended.values()):
            raise SystemExit(f"not all processes ended well: {ended}")

    def show_logs(self):
        for name in self.processes:
            text = pathlib.Path(self.state.name, name + ".log").read_text(errors="replace")
            print(f"--- {name}\n{text[-2000:]}", file=sys.stderr)

    def wait_ready(self, limit=60):
        deadline = time.monotonic() + limit
        while time.monotonic() < deadline:
            for name, process in self.processes.items():
                if process.poll() is not None:
                    raise SystemExit(f"demo: {name} ended with {process.returncode} before the tier was ready")
            try:
                with urllib.request.urlopen(f"http://{self.http[0]}/readyz", timeout=1):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.05)
        raise SystemExit(f"demo: the tier is not ready after {limit} s")


def write_text(service, name, wanted, colour):
    """Streams one text; returns whether it equals what was wanted, byte for byte."""
    prompt, expected = wanted["prompt"].encode("latin-1"), wanted["greedy"].encode("latin-1")
    print(f"\n{colour[0]}{name}{colour[1]}\n{prompt.decode('latin-1')}", end="", flush=True)
    service.forget()
    written = bytearray(prompt)
    started = time.monotonic()
    for token, lead in service.generate(prompt, len(expected) - len(prompt)):
        written.append(token)
        print(chr(token), end="", flush=True)
        if written != expected[:len(written)]:
            print(f"\n*** differs from the expected text at byte {len(written) - 1}: {token} instead of "
                  f"{expected[len(written) - 1]}, logit lead {lead:.2e}")
            return False
    seconds = time.monotonic() - started
    count = len(expected) - len(prompt)
    print(f"\n--- equal to the expected text; {count} tokens, {count / seconds:.0f} a second")
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="directory with the moetier binary")
    parser.add_argument("--python", help="directory with the Python package (default: beside the binary)")
    parser.add_argument("--model", default=str(HERE / "model"), help="model directory")
    parser.add_argument("--device", default="auto", help="of the workers: auto, cpu, cuda or cuda:N")
    parser.add_argument("--backend", default="auto", help="which backend computes")
    parser.add_argument("--quantise", default="none", help="format in which the workers hold the experts")
    arguments = parser.parse_args()
    binaries = pathlib.Path(arguments.bin).resolve()
    sys.path[:0] = [str(HERE), arguments.python or str(binaries.parent / "lib" / "python")]
    try:
        import moetier
        from attention_service import AttentionService
    except ModuleNotFoundError as missing:
        raise SystemExit(f"demo: {sys.executable}: {missing}; needed are NumPy (on Debian /usr/bin/python3 with "
                         "python3-numpy) and moetier's package beside --bin or in --python")

    colour = ("\033[1m", "\033[0m") if sys.stdout.isatty() else ("", "")
    wanted = json.loads((pathlib.Path(arguments.model) / "greedy.json").read_text())
    with Tier(str(binaries / "moetier"), arguments.model, arguments.device, arguments.backend,
              arguments.quantise) as tier:
        print(f"starting a coordinator and {WORKERS} workers ...", flush=True)
        started = time.monotonic()
        tier.wait_ready()
        print(f"the tier is ready after {time.monotonic() - started:.1f} s")
        with moetier.connect(tier.address) as connection, connection.session(max_tokens=256) as session:
            service = AttentionService(arguments.model, session)
            equal = [write_text(service, name, text, colour) for name, text in wanted.items()]
            time.sleep(1.2)  # the workers report their load once a second
            print(flush=True)
            subprocess.run([tier.binary, "status", "--address", tier.address], check=True)
        print("\nmetrics: " + " ".join(f"http://{address}/metrics" for address in tier.http))
        print(f"status page: http://{tier.http[0]}/ (all of it ends now)")
    print(f"\n{sum(equal)} of {len(equal)} texts are equal to the expected ones")
    return 0 if all(equal) else 1


if __name__ == "__main__":
    sys.exit(main())
