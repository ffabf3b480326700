"""What a tier refuses to start with, and what a default one shows to others: loopback alone, changes by its own
user."""
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import unittest

from certificates import Authority
from process_tier import BIN, COMMAND_ENVIRONMENT, MODEL, ProcessTier

FREE = "127.0.0.1:0"
SOMEWHERE = "192.0.2.1:0"  # an address of nobody's


def listeners(pid):
    """Local addresses (as /proc has them) of a process's listening TCP sockets."""
    inodes = set()
    for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = os.readlink(fd)
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    found = []
    for table in ("tcp", "tcp6"):
        for line in pathlib.Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and words[9] in inodes:
                found.append(words[1])
    return found


def is_loopback(address):
    host = address.split(":")[0]
    return host.endswith("7F") if len(host) == 8 else host == "00000000000000000000000001000000"


class Start(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="moetier-security-")
        cls.rpc, cls.control = Authority(cls.folder, "rpc"), Authority(cls.folder, "control")
        cls.server, cls.actor = cls.rpc.issue("coordinator", "serverAuth"), cls.control.issue("actor")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    def refuse(self, words, *arguments, role="coordinator", listen=FREE, control=FREE, http=FREE, model=MODEL,
               state=None):
        state = state or os.path.join(self.folder, "state")
        own = []
        if role == "coordinator":
            own = ["--state-dir", state, "--rpc-listen", listen, "--control-listen", control]
        command = [str(BIN / "moetier"), role, "--model", str(model), "--http-listen", http, *own, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=COMMAND_ENVIRONMENT)
        self.assertEqual(2, done.returncode, done.stderr)
        self.assertIn(words, done.stderr)
        self.assertEqual("", done.stdout)

    def spoilt(self, name):
        files = self.rpc.issue("coordinator", "serverAuth", file=name)
        return files

    def test_nothing_listens_beyond_loopback_without_certificates(self):
        self.refuse("coordinator.rpc_listen", listen=SOMEWHERE)
        self.refuse("coordinator.control_listen", control=SOMEWHERE)
        self.refuse("coordinator.control_listen", "--insecure", "rpc,http", control=SOMEWHERE)
        self.refuse("coordinator.control_listen", *self.server.settings("rpc"), control=SOMEWHERE)
        self.refuse("worker.coordinator", "--coordinator", "192.0.2.1:7401", role="worker")
        self.refuse("http.listen", http=SOMEWHERE)
        self.refuse("security.insecure is 'control'", "--insecure", "control")

    def test_files_that_cannot_serve_are_named_with_why(self):
        words = self.server.settings("rpc")
        self.refuse("security.rpc.ca is not set", *words[:2])
        no_file = [w.replace(self.server.cert, "/nowhere.pem") for w in words]
        self.refuse("certificate file /nowhere.pem: there is no such file", *no_file)
        open_key = self.spoilt("open")
        os.chmod(open_key.key, 0o644)
        self.refuse(f"certificate file {open_key.key}: others may read the key", *open_key.settings("rpc"))
        mixed = self.spoilt("mixed")
        mixed.key = self.server.key
        self.refuse("the key does not belong to the certificate", *mixed.settings("rpc"))
        foreign = self.spoilt("foreign")
        foreign.ca = str(self.control.ca)
        self.refuse(f"certificate file {foreign.cert}: the zone's authority did not issue it", *foreign.settings("rpc"))
        expired = self.rpc.issue("coordinator", begins=-7200, ends=-60, file="expired")
        self.refuse(f"certificate file {expired.cert}: it has expired", *expired.settings("rpc"))
        expired = self.control.issue("actor", begins=-7200, ends=-60, file="expired")
        self.refuse(f"certificate file {expired.cert}: it has expired", *expired.settings("control"), role="worker")
        client = self.rpc.issue("coordinator", "clientAuth", file="client")
        self.refuse("it is not meant for this side of a link", *client.settings("rpc"))
        both = self.rpc.issue("actor", file="actor")
        self.refuse("an authority of its own", *words, *both.settings("control"))

    def test_folders_that_others_may_write_are_refused(self):
        state = os.path.join(self.folder, "open-state")
        os.mkdir(state, 0o700)
        os.chmod(state, 0o777)
        self.refuse("it must be 0700", state=state)
        model = os.path.join(self.folder, "open-model")
        shutil.copytree(MODEL, model)
        os.chmod(model, 0o777)
        self.refuse("model.path", model=model)
        self.refuse("which others may write (mode 0777)", role="worker", model=model)


class DefaultTier(unittest.TestCase):
    def test_it_listens_on_loopback_alone_and_takes_changes_from_its_own_user(self):
        with ProcessTier(workers=1, settings=("--set", "moe.lora=on")) as tier:
            found = {member.listening["role"]: listeners(member.process.pid) for member in tier.members()}
            print("listening sockets:", found)
            self.assertGreaterEqual(len(found["coordinator"]), 3)
            for addresses in found.values():
                self.assertTrue(all(is_loopback(a) for a in addresses), found)
            # By the socket that the command finds itself: past the border, to the adapter that is not there.
            done = tier.command("adapters", "load", "x", "/nowhere", "-o", "json", check=False)
            self.assertNotIn(json.loads(done.stdout)["reason"], ("denied", "coordinator_unreached"), done.stdout)
            if os.geteuid() == 0:
                other = subprocess.run([str(BIN / "moetier"), "adapters", "drop", "x", "--address", tier.address, "-o",
                                        "json"], capture_output=True, text=True, timeout=60, env=COMMAND_ENVIRONMENT,
                                       user=65534, group=65534, extra_groups=[])
                self.assertEqual(4, other.returncode, other.stdout + other.stderr)
                self.assertEqual("denied", json.loads(other.stdout)["reason"])
            idle = [socket.create_connection(("127.0.0.1", int(tier.address.rsplit(":", 1)[1]))) for _ in range(300)]
            self.assertTrue(tier.status()["ready"])
            for s in idle:
                s.close()


if __name__ == "__main__":
    unittest.main()
