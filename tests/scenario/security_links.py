"""A tier behind TLS and those who knock at it: each is refused without a word, counted where there is a counter, takes
no memory, and a session beside them goes on."""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import struct
import tempfile
import threading
import time
import unittest

import numpy as np

import moetier
import vectors
from certificates import Authority
from process_tier import SANITIZED, ProcessTier, wait_until

# What no text for a client may hold: addresses, paths, pointers, and words of libraries under us.
SECRETS = (r"\d+\.\d+\.\d+\.\d+", r"(?<![\w.])/[\w.-]+/", r"0x[0-9a-f]{4,}",
           r"(?i)openssl|SSL_|kj/|capnp|ucx|ucs_|cuda|errno", r"BEGIN [A-Z ]*KEY")


def place(address):
    host, port = address.rsplit(":", 1)
    return host, int(port)


def stranger(files=None, newest=ssl.TLSVersion.TLSv1_3):
    """A client that believes any server, and shows these files."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    context.minimum_version, context.maximum_version = ssl.TLSVersion.MINIMUM_SUPPORTED, newest
    if files:
        context.load_cert_chain(files.cert, files.key)
    return context


def is_let_in(address, context):
    """Whether the peer keeps the connection after a handshake by `context`."""
    try:
        with socket.create_connection(place(address), timeout=5) as plain, context.wrap_socket(plain) as inside:
            inside.settimeout(1)
            return bool(inside.recv(1))
    except socket.timeout:
        return True  # it waits for our first word
    except OSError:
        return False


class Traffic(threading.Thread):
    """A session of its own that computes all the time and notices every harm."""

    def __init__(self, address, tls):
        super().__init__()
        self.address, self.tls, self.calls, self.trouble, self.over = address, tls, 0, None, threading.Event()
        self.hidden, self.logits, self.wanted = vectors.load()[("novel", 0)]

    def run(self):
        try:
            with moetier.connect(self.address, tls=self.tls) as tier, tier.session(max_tokens=64) as session:
                while not self.over.is_set():
                    with session.step() as step:
                        y = step.forward(layer=0, hidden=self.hidden[:16].copy(), logits=self.logits[:16].copy())
                    if not np.allclose(y, self.wanted[:16], rtol=0, atol=1e-4 * np.abs(self.wanted).max()):
                        self.trouble = "wrong rows"
                    self.calls += 1
                    self.over.wait(0.01)
        except Exception as failure:  # whatever it is, the test tells it
            self.trouble = repr(failure)


class Links(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="moetier-security-")
        cls.rpc, cls.control = Authority(cls.folder, "rpc"), Authority(cls.folder, "control")
        cls.other = Authority(cls.folder, "other")
        cls.server, cls.actor = cls.rpc.issue("coordinator", "serverAuth"), cls.control.issue("actor")
        cls.blue, cls.ops = cls.rpc.issue("blue", "clientAuth"), cls.rpc.issue("ops", "clientAuth")
        cls.tier = ProcessTier(workers=1, settings=[*cls.server.settings("rpc"), *cls.actor.settings("control"),
                                                    "--set", "security.administrators=ops, on call"])
        cls.tier.__enter__()
        cls.tls = moetier.Tls(cls.blue.cert, cls.blue.key, cls.blue.ca)
        cls.traffic = Traffic(cls.tier.address, cls.tls)
        cls.traffic.start()
        wait_until(lambda: cls.traffic.calls > 0 or cls.traffic.trouble, 10, "the first call")

    @classmethod
    def tearDownClass(cls):
        cls.traffic.over.set()
        cls.traffic.join()
        cls.tier.__exit__(None, None, None)
        shutil.rmtree(cls.folder, ignore_errors=True)

    def tearDown(self):
        before = self.traffic.calls
        self.assertIsNone(self.traffic.trouble)
        wait_until(lambda: self.traffic.calls > before, 5, "the next call of the session beside")

    def counter(self, family, reason):
        text = self.tier.coordinator.get("/metrics", limit=5)[1]
        return float(re.search(rf'^moetier_coordinator_{family}{{reason="{reason}"}} (\S+)$', text, re.M).group(1))

    def refused(self, reason, act):
        before = self.counter("handshakes_refused_total", reason)
        act()
        wait_until(lambda: self.counter("handshakes_refused_total", reason) > before, 10, f"the count of {reason}", 0.1)

    def test_handshakes_that_prove_nothing(self):
        good = self.rpc.issue("red", "clientAuth")
        self.assertTrue(is_let_in(self.tier.address, stranger(good)))  # so that the rest proves something
        foreign, zone = self.other.issue("blue"), self.control.issue("blue", file="zone")
        expired = self.rpc.issue("blue", begins=-7200, ends=-60, file="expired")
        early = self.rpc.issue("blue", begins=3600, ends=7200, file="early")
        for reason, files in (("no_certificate", None), ("untrusted", foreign), ("untrusted", zone),
                              ("expired", expired), ("not_yet_valid", early)):
            with self.subTest(reason=reason, files=files and files.cert):
                self.refused(reason, lambda: self.assertFalse(is_let_in(self.tier.address, stranger(files))))
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_1):
            with self.subTest(version=version):
                self.refused("old_protocol",
                             lambda: self.assertFalse(is_let_in(self.tier.address, stranger(good, version))))

    def test_the_actor_link_believes_its_own_zone_alone(self):
        address = self.tier.coordinator.listening["control"]
        self.assertTrue(is_let_in(address, stranger(self.actor)))
        expired = self.control.issue("actor", begins=-7200, ends=-60, file="expired")
        for files in (None, self.blue, self.other.issue("actor"), expired):
            self.assertFalse(is_let_in(address, stranger(files)))
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_1):
            self.assertFalse(is_let_in(address, stranger(self.actor, version)))
        # A header of the actors' own protocol that claims 2 GiB, before any handshake.
        with socket.create_connection(place(address), timeout=5) as s:
            s.sendall(struct.pack(">BBBBIQQQ", 0, 0, 0, 0, 2**31 - 1, 0, 0, 0) * 2)
            try:
                self.assertIn(s.recv(4096)[:1], (b"", b"\x15"))  # closed, or an alert and then closed
            except ConnectionResetError:
                pass
        self.assertLess(self.memory(), 512 * 1024)

    def memory(self):
        text = pathlib.Path(f"/proc/{self.tier.coordinator.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", text).group(1))

    def hello(self):
        """The first bytes that a client says."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        try:
            stranger().wrap_bio(incoming, outgoing).do_handshake()
        except ssl.SSLWantReadError:
            return outgoing.read()

    def knock(self):
        """Plain bytes, half a handshake and then a reset, a handshake without a certificate."""
        with socket.create_connection(place(self.tier.address), timeout=5) as s:
            s.sendall(b"GET / HTTP/1.1\r\n\r\n")
            try:
                self.assertNotIn(b"moetier", s.recv(4096))
            except ConnectionResetError:
                pass
        with socket.create_connection(place(self.tier.address), timeout=5) as s:
            s.sendall(self.hello()[:100])
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        is_let_in(self.tier.address, stranger())

    def test_other_bytes_and_resets_are_counted_and_take_no_memory(self):
        self.refused("no_tls", self.knock)
        for _ in range(50):
            self.knock()
        before = self.memory()
        for _ in range(200):
            self.knock()
        after = self.memory()
        print(f"200 rounds of hostile handshakes: {before} kB before, {after} kB after")
        if not SANITIZED:
            self.assertLess(abs(after - before), before * 0.01)

    def test_a_thousand_half_open_and_one_that_dawdles_lock_nobody_out(self):
        late = self.counter("connections_ended_total", "late")
        silent, slow = [], socket.create_connection(place(self.tier.address), timeout=5)
        hello = self.hello()
        for i in range(1000):
            silent.append(socket.create_connection(place(self.tier.address), timeout=5))
            if i % 2:
                silent[-1].sendall(hello[:40])
        started = time.monotonic()
        with moetier.connect(self.tier.address, tls=self.tls) as tier:
            tier.model
        print(f"beside 1,000 half-open connections: connected in {time.monotonic() - started:.3f} s")
        closed = None
        for byte in hello[:60]:
            try:
                slow.sendall(bytes([byte]))
            except OSError:
                closed = time.monotonic() - started
                break
            time.sleep(0.2)
        self.assertIsNotNone(closed, "a byte at a time keeps its connection")
        wait_until(lambda: self.counter("connections_ended_total", "late") > late, 10, "late ones", 0.2)
        ended = sum(self.counter("connections_ended_total", why) for why in ("yielded", "late"))
        self.assertGreater(ended, 700)  # by a newer one, or by the clock where connecting itself took longer
        for s in (*silent, slow):
            s.close()

    def test_a_recorded_session_opens_nothing_when_it_is_played_again(self):
        recorded, listener = bytearray(), socket.create_server(("127.0.0.1", 0))

        def pump(source, sink, keep):
            try:
                while part := source.recv(65536):
                    if keep:
                        recorded.extend(part)
                    sink.sendall(part)
            except OSError:
                pass

        def relay():
            near, _ = listener.accept()
            far = socket.create_connection(place(self.tier.address))
            threading.Thread(target=pump, args=(far, near, False), daemon=True).start()
            pump(near, far, True)
            far.close()

        threading.Thread(target=relay, daemon=True).start()
        address = "127.0.0.1:%d" % listener.getsockname()[1]
        with moetier.connect(address, tls=self.tls) as tier, tier.session(max_tokens=16):
            pass
        listener.close()
        self.assertGreater(len(recorded), 1000)
        sessions = self.counter("connections_ended_total", "malformed")
        with socket.create_connection(place(self.tier.address), timeout=5) as s:
            s.sendall(recorded)
            answer = b""
            try:
                while part := s.recv(65536):
                    answer += part
            except OSError:
                pass
        self.assertNotIn(b"moetier", answer)
        self.assertEqual(sessions, self.counter("connections_ended_total", "malformed"))  # it never came to messages

    def test_tenants_see_and_change_nothing_that_is_not_theirs(self):
        texts = []
        for command in (("status",), ("adapters", "load", "x", "/tmp"), ("adapters", "drop", "x"),
                        ("placement", "show")):
            done = self.tier.command(*command, *self.blue.flags(), "-o", "json", check=False)
            self.assertEqual(4, done.returncode, done.stderr)
            self.assertEqual("denied", json.loads(done.stdout)["reason"])
            texts.append(json.loads(done.stdout)["text"])
        self.assertEqual(0, self.tier.command("status", *self.ops.flags()).returncode)
        socket_path = self.tier.coordinator.listening["admin"]
        self.assertEqual(0o600, os.stat(socket_path).st_mode & 0o777)
        local = self.tier.command("status", "-o", "json", check=False, address="unix:" + socket_path)
        self.assertEqual(0, local.returncode, local.stdout + local.stderr)
        sessions = json.loads(local.stdout)["sessions"]
        self.assertIn("blue", [s["tenant"] for s in sessions])
        with self.assertRaises(moetier.Denied) as refusal:
            with moetier.connect(self.tier.address, tls=self.tls, tenant="red") as tier:
                tier.session(max_tokens=16)
        texts.append(str(refusal.exception))
        foreign = self.other.issue("blue", file="stranger")
        for tls in (moetier.Tls(foreign.cert, foreign.key, foreign.ca), self.tls._replace(server_name="tier.example"),
                    None):
            with self.assertRaises(moetier.Unavailable) as refusal:
                moetier.connect(self.tier.address, tls=tls, timeout=0.5)
            texts.append(str(refusal.exception))
        print("\n".join(texts))
        for text in texts:
            for secret in SECRETS:
                self.assertIsNone(re.search(secret, text), text)

    def test_renewed_certificates_are_taken_up_without_a_restart(self):
        self.assertEqual(self.server.cert, self.rpc.issue("coordinator", "serverAuth").cert)  # over the old files
        log = self.tier.coordinator.log_text
        self.tier.coordinator.signal(signal.SIGHUP)
        wait_until(lambda: log().count('"event":"certificate"') >= 3, 5, "the renewed certificate")
        with moetier.connect(self.tier.address, tls=self.tls) as tier:
            tier.model
        key = pathlib.Path(self.server.key)
        good = key.read_text()
        key.write_text("no key")
        self.tier.coordinator.signal(signal.SIGHUP)
        wait_until(lambda: "certificate_not_renewed" in log(), 5, "the refusal")
        with moetier.connect(self.tier.address, tls=self.tls) as tier:
            tier.model
        key.write_text(good)

    def test_no_log_holds_a_secret(self):
        secrets = [line for files in (self.server, self.actor, self.blue)
                   for line in pathlib.Path(files.key).read_text().splitlines() if len(line) > 20]
        for member in self.tier.members():
            text = member.log_text()
            for secret in secrets:
                self.assertNotIn(secret, text)


if __name__ == "__main__":
    unittest.main()
