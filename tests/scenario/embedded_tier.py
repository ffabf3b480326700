"""`moetier up`: what it starts it ends, starts again within its budget, and never leaves behind."""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

from process_tier import BIN, MODEL, ProcessTier, wait_until


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def ready(http):
    try:
        with urllib.request.urlopen(f"http://{http}/readyz", timeout=1) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False


def other_model(folder):
    """A folder whose config.json describes a model beside the demo's."""
    config = json.loads((MODEL / "config.json").read_text())
    config["moe_intermediate_size"] *= 2
    path = pathlib.Path(folder) / "other"
    path.mkdir()
    (path / "config.json").write_text(json.dumps(config))
    return str(path)


def copied_model(folder):
    path = pathlib.Path(folder) / "model"
    shutil.copytree(MODEL, path)
    return path


def change_a_weight(model):
    """Flips a bit of the first routed expert's first weight: the first worker's, by the default placement."""
    path = model / "model.safetensors"
    tensors = bytearray(path.read_bytes())
    start = 8 + int.from_bytes(tensors[:8], "little")
    header = json.loads(tensors[8:start])
    tensors[start + min(value["data_offsets"][0] for name, value in header.items() if ".experts." in name)] ^= 1
    path.write_bytes(tensors)


class Up:
    """A running `moetier up -o json` and its ready line."""

    def __init__(self, *arguments, workers=2, environment=None, model=MODEL, before_start=None):
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [str(BIN / "moetier"), "up", "--model", str(model), "--workers", str(workers), "--rpc-port", "0",
             "-o", "json", *arguments], stdout=subprocess.PIPE, stderr=self.log,
            env={**os.environ, **(environment or {})}, preexec_fn=before_start)
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"up ended with {self.process.wait()}: {self.log_text()[-3000:]}")
        self.ready = json.loads(line)
        self.http = self.ready["coordinator"]["http"]

    def log_text(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    def log_lines(self, event):
        return [json.loads(line) for line in self.log_text().splitlines() if f'"event":"{event}"' in line]

    def pids(self):
        """Every process it has started so far."""
        return [line["child_pid"] for line in self.log_lines("child_started")]

    def newest_pid(self, name):
        return [line["child_pid"] for line in self.log_lines("child_started") if line["name"] == name][-1]

    def end(self, number=signal.SIGTERM):
        started = time.monotonic()
        self.process.send_signal(number)
        return self.process.wait(timeout=6), time.monotonic() - started

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.log.close()


class EmbeddedTier(unittest.TestCase):
    def test_it_is_ready_answers_and_ends_with_all_its_children(self):
        with Up() as up:
            self.assertTrue(ready(up.http))
            self.assertEqual(["worker@0", "worker@1"], [w["name"] for w in up.ready["workers"]])
            done = subprocess.run([str(BIN / "moetier"), "status", "--address", up.ready["address"], "-o", "json"],
                                  capture_output=True, timeout=30)
            self.assertEqual(0, done.returncode)
            self.assertTrue(json.loads(done.stdout)["ready"])
            state = up.log_lines("child_started")
            self.assertEqual(3, len(state))
            code, seconds = up.end()
            self.assertEqual(0, code)
            self.assertLess(seconds, 5.0)
            self.assertEqual([], [pid for pid in up.pids() if alive(pid)])
            self.assertEqual([], up.log_lines("child_killed"))

    def test_a_service_manager_hears_of_ready_and_of_stopping(self):
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(folder + "/notify")
            manager.settimeout(10)
            with Up(workers=1, environment={"NOTIFY_SOCKET": folder + "/notify"}) as up:
                self.assertEqual(b"READY=1\nSTATUS=serving", manager.recv(4096))
                self.assertEqual(0, up.end()[0])
            self.assertEqual(b"STOPPING=1", manager.recv(4096))

    def test_a_coordinator_is_ready_for_its_manager_when_its_tier_is(self):
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(folder + "/notify")
            manager.settimeout(10)
            listen = [word for flag in ("--rpc-listen", "--control-listen", "--http-listen")
                      for word in (flag, "127.0.0.1:0")]
            coordinator = subprocess.Popen(
                [str(BIN / "moetier"), "coordinator", "--model", str(MODEL), "--workers", "1",
                 "--state-dir", folder + "/s", *listen], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                env={**os.environ, "NOTIFY_SOCKET": folder + "/notify"})
            control = json.loads(coordinator.stdout.readline())["control"]
            self.assertTrue(manager.recv(4096).startswith(b"STATUS=not ready: "))
            worker = subprocess.Popen([str(BIN / "moetier"), "worker", "--model", str(MODEL), "--name", "worker@1",
                                       "--coordinator", control, "--http-listen", "127.0.0.1:0"],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                said = manager.recv(4096)
                while not said.startswith(b"READY=1"):
                    said = manager.recv(4096)
                coordinator.terminate()
                self.assertEqual(0, coordinator.wait(timeout=10))
                while said != b"STOPPING=1":
                    said = manager.recv(4096)
            finally:
                for process in (worker, coordinator):
                    process.kill()
                    process.wait()
                coordinator.stdout.close()

    def test_a_manager_that_signals_them_all_asks_once(self):
        with Up() as up:
            for pid in up.pids()[1:]:  # workers, which tell their sources first and take longest
                os.kill(pid, signal.SIGTERM)
            self.assertEqual(0, up.end()[0])
            self.assertEqual([], up.log_lines("stopped_at_once"))
            self.assertEqual([], up.log_lines("child_killed"))

    def test_who_ignores_the_end_of_children_does_not_keep_it_from_knowing(self):
        with Up(before_start=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN)) as up:
            os.kill(up.newest_pid("worker@1"), signal.SIGKILL)
            wait_until(lambda: len(up.log_lines("child_started")) == 4, 5, "its restart")
            wait_until(lambda: ready(up.http), 10, "readiness")
            self.assertEqual(0, up.end()[0])

    def test_interrupt_ends_it_as_well(self):
        with Up(workers=1) as up:
            self.assertEqual(0, up.end(signal.SIGINT)[0])

    def test_a_killed_up_leaves_no_child_behind(self):
        with Up() as up:
            pids = up.pids()
            up.process.kill()
            wait_until(lambda: not any(alive(pid) for pid in pids), 2, "the children's end")

    def test_dead_children_are_started_again_where_they_were(self):
        with Up() as up:
            for name in ("worker@1", "coordinator"):
                os.kill(up.newest_pid(name), signal.SIGKILL)
                wait_until(lambda: not ready(up.http), 2, f"not ready without {name}", pause=0.001)
                wait_until(lambda: ready(up.http), 10, f"ready again with {name}")
            self.assertEqual(0, up.end()[0])
            self.assertEqual([], [pid for pid in up.pids() if alive(pid)])

    def test_a_worker_that_may_not_start_again_is_given_up_and_the_others_serve(self):
        with tempfile.TemporaryDirectory() as folder:
            model = copied_model(folder)
            with Up("--slots", "22", workers=3, model=model) as up:
                change_a_weight(model)
                os.kill(up.newest_pid("worker@0"), signal.SIGKILL)
                wait_until(lambda: up.log_lines("worker_given_up"), 10, "the end of its second start")
                self.assertEqual(7, up.log_lines("worker_given_up")[0]["code"])
                for _ in range(5):  # seconds: looks of `up`, too
                    wait_until(lambda: ready(up.http), 1, "readiness without it")
                    time.sleep(1)
                for name in ("worker@1", "worker@2"):
                    os.kill(up.newest_pid(name), signal.SIGKILL)
                self.assertEqual(7, up.process.wait(timeout=15))
                self.assertEqual([], [pid for pid in up.pids() if alive(pid)])

    def test_who_lacks_a_worker_waits_for_one_that_loads(self):
        with Up("--slots", "22", "--set", "restart.budget=1 in 10m", workers=3) as up:
            for _ in range(2):
                wait_until(lambda: ready(up.http), 10, "readiness")
                os.kill(up.newest_pid("worker@1"), signal.SIGKILL)
                time.sleep(1)
            wait_until(lambda: up.log_lines("worker_given_up"), 5, "the budget's end")
            os.kill(up.newest_pid("worker@0"), signal.SIGKILL)
            wait_until(lambda: len(up.log_lines("child_started")) == 6, 5, "its restart")
            os.kill(up.newest_pid("worker@0"), signal.SIGSTOP)  # as one that loads for long
            time.sleep(12)
            self.assertIsNone(up.process.poll(), up.log_text()[-2000:])
            os.kill(up.newest_pid("worker@0"), signal.SIGCONT)
            wait_until(lambda: ready(up.http), 10, "readiness with it")
            self.assertEqual(0, up.end()[0])

    def test_a_spent_restart_budget_ends_it_with_1_when_nobody_else_serves_its_experts(self):
        with Up("--set", "restart.budget=1 in 10m") as up:
            os.kill(up.newest_pid("worker@0"), signal.SIGKILL)
            wait_until(lambda: len(up.pids()) == 4, 5, "the restart")
            os.kill(up.newest_pid("worker@0"), signal.SIGKILL)
            self.assertEqual(1, up.process.wait(timeout=20))
            self.assertEqual(1, len(up.log_lines("restart_budget_spent")))
            self.assertEqual(1, len(up.log_lines("tier_given_up")))
            self.assertEqual([], [pid for pid in up.pids() if alive(pid)])


class FrozenCoordinator(unittest.TestCase):
    """A worker asked to stop while nobody answers it."""

    def test_it_ends_by_its_drain_limit_and_well(self):
        with ProcessTier(workers=1) as tier:
            tier.coordinator.signal(signal.SIGSTOP)
            code, seconds = tier.workers["worker@1"].end()
            self.assertEqual(0, code)
            self.assertLess(seconds, 5.0)

    def test_a_second_signal_ends_it_at_once_with_1(self):
        with ProcessTier(workers=1) as tier:
            worker = tier.workers["worker@1"]
            tier.coordinator.signal(signal.SIGSTOP)
            worker.signal(signal.SIGTERM)
            wait_until(lambda: "stopping" in worker.log_text(), 2, "the first signal's line")
            code, seconds = worker.end(limit=1.0)
            self.assertEqual(1, code)


class OtherWeights(unittest.TestCase):
    def test_a_worker_whose_weights_differ_from_the_tiers_ends_with_7(self):
        with ProcessTier(workers=1) as tier, tempfile.TemporaryDirectory() as folder:
            worker = tier.workers["worker@1"]
            worker.kill()
            path = copied_model(folder)
            change_a_weight(path)
            worker.arguments[worker.arguments.index("--model") + 1] = str(path)
            worker.start()
            self.assertEqual(7, worker.process.wait(timeout=20), worker.log_text()[-2000:])
            self.assertIn('"reason":"weight_mismatch"', worker.log_text())


class Refusals(unittest.TestCase):
    """Each start that cannot work: its exit code, a sentence, and nothing left running."""

    def refuse(self, code, sentence, *arguments, environment=None):
        done = subprocess.run([str(BIN / "moetier"), *arguments], capture_output=True, text=True, timeout=30,
                              env={**os.environ, **(environment or {})})
        self.assertEqual(code, done.returncode, done.stderr)
        self.assertIn(sentence, done.stderr)
        if "json" in arguments:
            document = json.loads(done.stdout)
            self.assertEqual("moetier.error/1", document["schema"])
            self.assertEqual({"schema", "status", "reason", "text"}, set(document))
        else:
            self.assertEqual("", done.stdout)

    def test_a_busy_port_of_any_kind_is_9(self):
        with socket.socket() as busy, tempfile.TemporaryDirectory() as state:
            busy.bind(("127.0.0.1", 0))
            busy.listen()
            taken = f"127.0.0.1:{busy.getsockname()[1]}"
            free = "127.0.0.1:0"
            flags = ("--rpc-listen", "--control-listen", "--http-listen")
            for flag in flags:
                listen = [word for f in flags for word in (f, taken if f == flag else free)]
                self.refuse(9, "address is in use", "coordinator", "--model", str(MODEL), "--state-dir",
                            state + "/s", *listen)
            self.refuse(9, "address is in use", "worker", "--model", str(MODEL), "--http-listen", taken)
            self.refuse(9, "address is in use", "up", "--model", str(MODEL), "--rpc-port", taken.split(":")[1])

    def test_bad_configuration_is_2(self):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write("worker:\n  slotz: 3\n")
            file.flush()
            self.refuse(2, f"{file.name}:2: unknown setting worker.slotz; did you mean worker.slots?", "worker",
                        "--config", file.name)
        self.refuse(2, "/nowhere.yaml", "worker", "--config", "/nowhere.yaml")
        self.refuse(2, "setting worker.slots is 'x'", "worker", "--slots", "x")
        self.refuse(2, "MOETIER_WORKER_SLOTS", "worker", environment={"MOETIER_WORKER_SLOTZ": "1"})
        self.refuse(2, "setting model.path is not set", "up")
        self.refuse(2, "setting worker.device is 'gpu'; allowed: auto, cpu, cuda or cuda:N", "worker", "--device",
                    "gpu")
        self.refuse(2, "on loopback", "coordinator", "--control-listen", "0.0.0.0:7401")
        self.refuse(2, "setting security.rpc.ca is not set", "coordinator", "--set", "security.rpc.cert=a.pem")

    def test_a_gpu_that_is_not_there_is_2_and_says_what_lacks(self):
        # By a build without CUDA, a machine without a device, or one with fewer than 64.
        sentence = "setting worker.device is cuda"
        self.refuse(2, sentence, "worker", "--model", str(MODEL), "--device", "cuda:63")
        self.refuse(2, sentence, "worker", "--model", str(MODEL), "--device", "cuda:63", "-o", "json")
        self.refuse(2, sentence, "resolve", "--capture", "--set", "worker.device=cuda:63")

    def test_a_bad_model_is_7_and_a_bad_plan_too(self):
        self.refuse(7, "cannot read", "up", "--model", "/nowhere", "--rpc-port", "0")
        self.refuse(7, "cannot read", "worker", "--model", "/nowhere", "--http-listen", "127.0.0.1:0")
        self.refuse(7, "/nowhere.json", "up", "--model", str(MODEL), "--placement", "/nowhere.json", "--rpc-port", "0")

    def test_a_plan_that_fits_no_tier_of_this_model_is_4_before_anybody_joins(self):
        with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile("w", suffix=".json") as plan:
            counts = pathlib.Path(folder) / "counts.csv"
            counts.write_text("layer,e0,e1,e2,e3\n0,4,3,2,1\n1,1,2,3,4\n")
            made = subprocess.run([str(BIN / "moetier"), "plan", "--counts", str(counts), "--workers", "2", "--out",
                                   folder + "/plan.json"], capture_output=True, text=True, timeout=30)
            self.assertEqual(0, made.returncode, made.stderr)
            listen = [word for flag in ("--rpc-listen", "--control-listen", "--http-listen")
                      for word in (flag, "127.0.0.1:0")]
            misfit = ("--model", str(MODEL), "--placement", folder + "/plan.json")
            self.refuse(4, "placement: ", "coordinator", *misfit, "--state-dir", folder + "/s", *listen)
            self.refuse(4, "placement: ", "up", *misfit, "--rpc-port", "0")

    def test_what_can_never_be_ready_ends_up_with_its_code_and_a_sentence(self):
        up = ("up", "--model", str(MODEL), "--rpc-port", "0")
        self.refuse(4, "no backend: ", *up, "--backend", "sm90_bf16")
        self.refuse(4, "memory_insufficient: weights of 4 layers", *up, "--memory", "1MiB")
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / "model"
            shutil.copytree(MODEL, model)
            tensors = bytearray((model / "model.safetensors").read_bytes())
            header = json.loads(tensors[8:8 + int.from_bytes(tensors[:8], "little")])
            first = min(value["data_offsets"][0] for name, value in header.items() if ".experts." in name)
            at = 8 + int.from_bytes(tensors[:8], "little") + first
            tensors[at:at + 2] = b"\xc0\x7f"  # NaN in bf16
            (model / "model.safetensors").write_bytes(tensors)
            damaged = ("up", "--model", str(model), "--rpc-port", "0")
            self.refuse(7, "1 elements that are not finite", *damaged)
            with Up("--set", f"model.path={model}", "--set", "model.nonfinite=serve", workers=1) as served:
                self.assertEqual(0, served.end()[0])

    def test_a_killed_ups_temporary_state_is_gone_after_the_next_start(self):
        with tempfile.TemporaryDirectory() as scratch:
            environment = {"TMPDIR": scratch}
            with Up(workers=1, environment=environment) as up:
                self.assertEqual(1, len(list(pathlib.Path(scratch).glob("moetier-up-*"))))
                up.process.kill()
                up.process.wait()
            self.assertEqual(1, len(list(pathlib.Path(scratch).glob("moetier-up-*"))))
            with Up(workers=1, environment=environment) as up:
                self.assertEqual(1, len(list(pathlib.Path(scratch).glob("moetier-up-*"))))
                self.assertEqual(0, up.end()[0])
            self.assertEqual([], list(pathlib.Path(scratch).glob("moetier-up-*")))

    def test_a_bad_input_file_is_7_and_bad_words_about_it_2(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"\x7f" * 64)
            file.flush()
            forward = ("forward", "--layer", "1", "--in", file.name, "--out", file.name + ".out")
            self.refuse(7, "the header of", *forward)
            self.refuse(7, "the header of", *forward, "-o", "json")
            self.refuse(2, "--address", *forward, "--address", "x")
            self.refuse(2, "--layer", *forward, "--layer", "", "-o", "json")

    def test_another_model_on_an_old_state_is_7_before_it_listens(self):
        with tempfile.TemporaryDirectory() as folder:
            state = folder + "/s"
            with Up("--set", "coordinator.state_dir=" + state) as up:
                self.assertEqual(0, up.end()[0])
            other = other_model(folder)
            listen = [word for flag in ("--rpc-listen", "--control-listen", "--http-listen")
                      for word in (flag, "127.0.0.1:0")]
            start = ("coordinator", "--model", other, "--state-dir", state, *listen)
            self.refuse(7, "the tier serves", *start)
            self.refuse(7, "the tier serves", *start, "-o", "json")

    def test_nobody_there_is_3(self):
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{closed.getsockname()[1]}"
            status = ("status", "--address", address, "--timeout", "2s")
            self.refuse(3, "the coordinator is not reached", *status)
            self.refuse(3, "the coordinator is not reached", *status, "-o", "json")

    def test_a_second_coordinator_on_one_state_is_refused(self):
        with Up("--set", f"coordinator.state_dir={tempfile.mkdtemp()}/s") as up:
            state = [a for a in up.process.args if a.startswith("coordinator.state_dir=")][0].split("=")[1]
            self.refuse(2, "another coordinator", "coordinator", "--model", str(MODEL), "--state-dir", state,
                        "--rpc-listen", "127.0.0.1:0", "--control-listen", "127.0.0.1:0",
                        "--http-listen", "127.0.0.1:0")


if __name__ == "__main__":
    unittest.main()
