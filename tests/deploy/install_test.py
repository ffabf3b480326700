"""`cmake --install` of build directory argv[1] to a prefix that is then moved: the program serves, C programs link by
pkg-config and by CMake's package, Python imports, units are what systemd takes, example settings are legal.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
MODEL = SOURCE / "deploy" / "demo" / "model"
BUILD = pathlib.Path(sys.argv.pop(1)).resolve()

PROGRAM = r"""
#include <stdio.h>
#include <moetier.h>

/* The tier at argv[1], told in a line; or the name of what went wrong. */
int main(int argc, char **argv) {
  moetier_service *service = NULL;
  moetier_service_options options = {sizeof options, MOETIER_VERSION};
  moetier_model_info info = {sizeof info, MOETIER_VERSION};
  options.address = argc > 1 ? argv[1] : "";
  options.connect_timeout_ns = 5000000000ull;
  moetier_status status = moetier_service_open(&options, &service);
  if (status == MOETIER_OK) status = moetier_service_info(service, &info);
  printf("%s experts %u\n", moetier_status_name(status), info.experts);
  moetier_service_close(service);
  return status == MOETIER_OK ? 0 : 1;
}
"""

CMAKE_PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(user C)
find_package(moetier 0.1 REQUIRED)
add_executable(user user.c)
target_link_libraries(user PRIVATE moetier::moetier)
"""


def run(*words, **how):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=240, **how)
    if done.returncode != 0:
        raise AssertionError(f"{words}: exit {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = pathlib.Path(tempfile.mkdtemp())
        first = cls.scratch / "first"
        run("cmake", "--install", BUILD, "--prefix", first, "--strip")
        cls.units = {unit.name: unit.read_text() for unit in (first / "lib" / "systemd" / "system").iterdir()}
        cls.first = first
        cls.prefix = cls.scratch / "moved"
        shutil.copytree(first, cls.prefix, symlinks=True)
        cls.bare = {"PATH": os.environ["PATH"], "TMPDIR": str(cls.scratch)}
        cls.tier = subprocess.Popen([cls.prefix / "bin" / "moetier", "up", "--model", MODEL, "--workers", "1",
                                     "--rpc-port", "0", "-o", "json"], stdout=subprocess.PIPE,
                                    stderr=subprocess.DEVNULL, text=True, env=cls.bare)
        line = cls.tier.stdout.readline()
        cls.address = json.loads(line)["address"] if line else None

    @classmethod
    def tearDownClass(cls):
        cls.tier.terminate()
        cls.tier.wait(timeout=20)
        cls.tier.stdout.close()
        shutil.rmtree(cls.scratch)

    def test_the_program_serves_from_where_it_was_moved(self):
        self.assertIsNotNone(self.address, "up did not become ready")
        run(self.prefix / "bin" / "moetier", "forward", "--address", self.address, "--layer", "0", "--check", "--in",
            SOURCE / "deploy/demo/vectors/moe_vectors.safetensors", "--prefix", "novel.layer0.", env=self.bare)

    def test_the_library_has_a_versioned_name(self):
        lib = self.prefix / "lib"
        self.assertEqual("libmoetier.so.1", os.readlink(lib / "libmoetier.so"))
        self.assertRegex(os.readlink(lib / "libmoetier.so.1"), r"^libmoetier\.so\.1\.\d+\.\d+$")
        self.assertIn("[libmoetier.so.1]", run("readelf", "-d", lib / "libmoetier.so"))

    def build_by_pkg_config(self, folder):
        (folder / "user.c").write_text(PROGRAM)
        environment = {**os.environ, "PKG_CONFIG_PATH": str(self.prefix / "lib" / "pkgconfig")}
        flags = run("pkg-config", "--cflags", "--libs", "moetier", env=environment).split()
        self.assertRegex(run("pkg-config", "--modversion", "moetier", env=environment), r"^\d+\.\d+\.\d+\n$")
        run("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers", "-o", folder / "user",
            folder / "user.c", *flags)
        return folder / "user"

    def test_a_c_program_links_by_pkg_config_and_reaches_the_tier(self):
        with tempfile.TemporaryDirectory(dir=self.scratch) as folder:
            program = self.build_by_pkg_config(pathlib.Path(folder))
            environment = {**self.bare, "LD_LIBRARY_PATH": str(self.prefix / "lib")}
            self.assertEqual("OK experts 32\n", run(program, self.address, env=environment))
            wrong = subprocess.run([program, "127.0.0.1:1"], capture_output=True, text=True, env=environment)
            self.assertEqual((1, "UNAVAILABLE experts 0\n"), (wrong.returncode, wrong.stdout))

    def test_a_c_program_links_by_cmakes_package(self):
        with tempfile.TemporaryDirectory(dir=self.scratch) as folder:
            folder = pathlib.Path(folder)
            (folder / "user.c").write_text(PROGRAM)
            (folder / "CMakeLists.txt").write_text(CMAKE_PROJECT)
            run("cmake", "-S", folder, "-B", folder / "b", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={self.prefix}")
            run("cmake", "--build", folder / "b")
            self.assertEqual("OK experts 32\n", run(folder / "b" / "user", self.address, env=self.bare))

    def test_python_finds_the_library_beside_it(self):
        code = "import sys, moetier; print(moetier.connect(sys.argv[1]).model.experts)"
        environment = {**self.bare, "PYTHONPATH": str(self.prefix / "lib" / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
        self.assertEqual("32\n", run("/usr/bin/python3", "-c", code, self.address, env=environment))

    def test_what_is_installed_names_no_folder_of_the_build(self):
        for path in self.prefix.rglob("*"):
            if path.suffix in (".pc", ".cmake", ".service", ".conf", ".yaml", ".py"):
                text = path.read_text()
                self.assertNotIn(str(SOURCE), text, path)
                if path.suffix in (".pc", ".cmake"):
                    self.assertNotIn(str(self.first), text, path)
        for name in ("README.md", "CHANGELOG.md", "LICENSE", "deploy.md"):
            self.assertTrue((self.prefix / "share" / "doc" / "moetier" / name).is_file(), name)

    def test_units_say_what_the_service_needs(self):
        self.assertEqual({"moetier-coordinator.service", "moetier-worker@.service"}, set(self.units))
        for name, text in self.units.items():
            for line in ("Type=notify", "LimitMEMLOCK=infinity", "Restart=on-failure", "StartLimitBurst=3",
                         "StartLimitIntervalSec=30", "TimeoutStopSec=75", "NoNewPrivileges=yes"):
                self.assertIn(f"\n{line}\n", text, name)
            start = re.search(r"^ExecStart=(\S+) (coordinator|worker) ", text, re.MULTILINE)
            self.assertEqual(str(self.first / "bin" / "moetier"), start.group(1))

    @unittest.skipUnless(shutil.which("systemd-analyze"), "systemd-analyze is not here (package systemd)")
    def test_systemd_finds_nothing_wrong_with_the_units(self):
        with tempfile.TemporaryDirectory(dir=self.scratch) as folder:
            for name, text in self.units.items():
                path = pathlib.Path(folder) / name.replace("@.", "@3.")
                path.write_text(text)
                said = subprocess.run(["systemd-analyze", "verify", "--man=no", path], capture_output=True, text=True)
                self.assertEqual("", said.stderr + said.stdout, name)
            # It says nothing of a good one, and something of a bad one.
            path.write_text(text.replace("Restart=on-failure", "Restart=sometimes"))
            said = subprocess.run(["systemd-analyze", "verify", "--man=no", path], capture_output=True, text=True)
            self.assertIn("sometimes", said.stderr)

    def test_what_an_integrator_reads_is_there(self):
        share = self.prefix / "share"
        self.assertIn("interface Session", (share / "moetier" / "schemas" / "tier.capnp").read_text())
        self.assertIn("## Transformers models", (share / "doc" / "moetier" / "client.md").read_text())
        self.assertIn("thin_client.cpp", [f.name for f in (share / "moetier" / "client").iterdir()])

    def test_every_example_is_legal_for_every_role(self):
        examples = sorted((self.prefix / "share" / "moetier" / "examples").glob("*.yaml"))
        self.assertGreaterEqual(len(examples), 2)
        for example in examples:
            for role in ("up", "coordinator", "worker"):
                shown = json.loads(run(self.prefix / "bin" / "moetier", role, "--config", example, "--print-config",
                                       "-o", "json", env=self.bare))
                given = [key for key, value in shown["settings"].items() if example.name in value["origin"]]
                self.assertIn("model.path", given, example)
            # Units must be able to stop what these settings drain.
            drain = shown["settings"]["drain.timeout"]["value"]
            self.assertTrue(drain.endswith("s") and int(drain[:-1]) + 5 < 75 or drain == "1m", drain)


if __name__ == "__main__":
    unittest.main()
