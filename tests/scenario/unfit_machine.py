"""A machine that is not fit for a tier: `moetier doctor` names each lack, with what to do, before a start meets it."""
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import unittest

from process_tier import BIN, MODEL, ProcessTier

MOETIER = str(BIN / "moetier")


def doctor(*words, environment=None, before=()):
    """(exit code, findings by check)."""
    done = subprocess.run([*before, MOETIER, "doctor", "-o", "json", *map(str, words)], capture_output=True, text=True,
                          timeout=120, env={**os.environ, **(environment or {})})
    if not done.stdout:
        raise AssertionError(f"doctor {words}: exit {done.returncode}: {done.stderr}")
    document = json.loads(done.stdout)
    assert document["schema"] == "moetier.doctor/1"
    return done.returncode, {line["check"]: line for line in document["findings"]}


def free_ports(count):
    """As many addresses, free a moment ago."""
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    addresses = [f"127.0.0.1:{s.getsockname()[1]}" for s in sockets]
    for s in sockets:
        s.close()
    return addresses


class UnfitMachine(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        rpc, control, http = free_ports(3)
        self.state = self.folder / "state"
        self.fit = ["--model", MODEL, "--state-dir", self.state, "--set", f"coordinator.rpc_listen={rpc}",
                    "--set", f"coordinator.control_listen={control}", "--set", f"http.listen={http}"]

    def look(self, check, verdict, sentence, *words, **how):
        code, lines = doctor(*self.fit, *words, **how)
        line = lines[check]
        self.assertEqual(verdict, line["verdict"], line)
        self.assertIn(sentence, line["seen"])
        self.assertEqual(verdict in ("WARN", "FAIL"), "remedy" in line, line)
        if verdict == "FAIL":
            self.assertEqual(8, code)
        return lines

    def test_this_machine_has_every_line_once_and_no_failure_of_ours(self):
        code, lines = doctor(*self.fit)
        self.assertEqual({
            "cpu_features", "cpu_quota", "gpu", "gpu_driver", "gpu_peers", "nics", "link_rate", "bonds", "rdma",
            "gpu_nics", "memlock", "open_files", "shm", "cross_memory", "proc_links", "carrier", "carrier_lanes",
            "carrier_memory", "nccl", "node_identity", "port coordinator.rpc_listen",
            "port coordinator.control_listen", "port http.listen", "certificate rpc",
            "certificate_key rpc", "certificate_chain rpc", "certificate control",
            "certificate_key control", "certificate_chain control", "model", "memory", "state_dir"}, set(lines))
        for check in ("carrier", "carrier_lanes", "model", "memory", "port http.listen"):
            self.assertEqual("PASS", lines[check]["verdict"], lines[check])
        self.assertFalse(self.state.exists())
        self.assertEqual(8 if any(line["verdict"] == "FAIL" for line in lines.values()) else 0, code)

    def test_the_table_has_a_line_each_with_its_remedy(self):
        done = subprocess.run([MOETIER, "doctor", "--model", "/nowhere"], capture_output=True, text=True, timeout=120)
        self.assertEqual(8, done.returncode)
        line = next(line for line in done.stdout.splitlines() if " model " in line)
        self.assertTrue(line.startswith("FAIL  model "), line)
        self.assertIn("; remedy: ", line)
        self.assertIn(" failed, ", done.stdout.splitlines()[-1])

    def test_limits_of_the_process(self):
        self.look("open_files", "FAIL", "100 open files", before=["prlimit", "--nofile=100:100"])
        self.look("open_files", "WARN", "512 open files", before=["prlimit", "--nofile=512:512"])
        locked = ["prlimit", "--memlock=65536:65536"]
        self.look("memlock", "PASS", "64.0 KiB", before=[*locked, "setpriv", "--bounding-set=-ipc_lock"])
        # A GPU worker's rows are pinned, whether the device is there or not.
        lines = self.look("memlock", "FAIL", "64.0 KiB", "--device", "cuda", before=[*locked, "setpriv",
                                                                                "--bounding-set=-ipc_lock"])
        self.assertIn(lines["gpu"]["verdict"], ("PASS", "WARN", "FAIL"))

    def test_more_threads_than_processors(self):
        self.look("cpu_quota", "WARN", "1 processors", "--workers", "2", before=["taskset", "-c", "0"])

    def test_a_port_that_is_taken(self):
        with socket.socket() as busy:
            busy.bind(("127.0.0.1", 0))
            busy.listen()
            taken = f"127.0.0.1:{busy.getsockname()[1]}"
            self.look("port http.listen", "FAIL", "in use", "--set", f"http.listen={taken}")

    def test_a_shard_that_was_cut_or_is_gone(self):
        model = self.folder / "model"
        shutil.copytree(MODEL, model)
        self.fit[self.fit.index(MODEL)] = model
        os.truncate(model / "model.safetensors", 1 << 20)
        self.look("model", "FAIL", "model.safetensors")
        (model / "model.safetensors").unlink()
        lines = self.look("model", "FAIL", "cannot read")
        self.assertEqual("SKIP", lines["memory"]["verdict"])

    def test_weights_that_do_not_fit(self):
        self.look("memory", "FAIL", "worker.memory allows 1.0 MiB", "--memory", "1MiB")

    def test_a_state_directory_that_others_may_enter_or_that_cannot_be_written(self):
        self.state.mkdir(mode=0o755)
        self.look("state_dir", "FAIL", "mode 0755")
        self.state.chmod(0o700)
        self.assertIn("mode 0700", doctor(*self.fit)[1]["state_dir"]["seen"])
        self.assertEqual([], list(self.state.iterdir()))
        if shutil.which("unshare") and os.geteuid() == 0:
            full = ["unshare", "--mount", "sh", "-c",
                    f'mount -t tmpfs -o size=4k,mode=0700 none {self.state} && head -c 4096 /dev/zero >{self.state}/f '
                    '&& exec "$@"', "sh"]
            probe = subprocess.run([*full, "true"], capture_output=True)
            if probe.returncode == 0:
                self.look("state_dir", "FAIL", "No space left", before=full)

    def test_rows_that_would_fall_back_to_tcp(self):
        ucx = ("--set", "transport.carrier=ucx")
        lines = self.look("carrier_lanes", "WARN", "tcp", *ucx, environment={"UCX_TLS": "tcp"})
        self.assertIn("unset UCX_TLS", lines["carrier_lanes"]["remedy"])
        self.look("carrier", "FAIL", "cannot run", *ucx, environment={"UCX_TLS": "nothing"})

    def test_other_machines_are_measured_on_the_tiers_own_carrier(self):
        answering = subprocess.Popen([MOETIER, "doctor", "--answer", "127.0.0.1:0", "-o", "json"], text=True,
                                     stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            peer = json.loads(answering.stdout.readline())["address"]
            nobody = free_ports(1)[0]
            with ProcessTier(workers=1) as tier:
                code, lines = doctor("--peers", f"{peer},{nobody},{tier.address}", "--timeout", "5s")
            self.assertEqual(8, code)
            self.assertIn(lines[f"peer {peer}"]["verdict"], ("PASS", "WARN"))
            self.assertIn("a doctor on this host answers in", lines[f"peer {peer}"]["seen"])
            self.assertIn(lines[f"rows {peer}"]["verdict"], ("PASS", "WARN"))
            self.assertIn("4 KiB there and back in", lines[f"rows {peer}"]["seen"])
            self.assertEqual("FAIL", lines[f"peer {nobody}"]["verdict"])
            self.assertIn("refused", lines[f"peer {nobody}"]["seen"])
            self.assertIn("a tier answers in", lines[f"peer {tier.address}"]["seen"])
            self.assertEqual("SKIP", lines[f"rows {tier.address}"]["verdict"])
            answering.terminate()
            self.assertEqual(0, answering.wait(timeout=10))
        finally:
            answering.kill()
            answering.wait()
            answering.stdout.close()

    def test_nobody_answers_on_a_network_without_being_asked_twice(self):
        done = subprocess.run([MOETIER, "doctor", "--answer", "192.0.2.1:0"], capture_output=True, text=True,
                              timeout=60)
        self.assertEqual(2, done.returncode)
        self.assertIn("--insecure", done.stderr)

    def test_wrong_settings_are_2_as_everywhere(self):
        done = subprocess.run([MOETIER, "doctor", "--set", "worker.slotz=1"], capture_output=True, timeout=60)
        self.assertEqual(2, done.returncode)


if __name__ == "__main__":
    unittest.main()
