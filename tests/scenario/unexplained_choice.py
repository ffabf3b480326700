"""A choice that nobody can explain: `moetier resolve` names each candidate's reason, offline."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from process_tier import ProcessTier

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOETIER = os.path.join(os.environ["MOETIER_BIN"], "moetier")
MODEL = ROOT / "tests/data/configs/deepseek_v3"
CPU = ROOT / "deploy/environments/cpu_avx2.json"
H200 = ROOT / "deploy/environments/h200.json"


def resolve(*words):
    return subprocess.run(
        [MOETIER, "resolve", *map(str, words)], capture_output=True, text=True, timeout=60
    )


class UnexplainedChoice(unittest.TestCase):
    def test_every_candidate_has_an_answer(self):
        ran = resolve("--model", MODEL, "--environment", CPU, "--workers", 8, "-o", "json")
        self.assertEqual(0, ran.returncode, ran.stderr)
        report = json.loads(ran.stdout)
        self.assertEqual("moetier.resolution/1", report["schema"])
        self.assertEqual("moetier.cpu.avx2.fp8_block", report["winner"])
        self.assertEqual("ucx.two_sided", report["communication"]["winner"])
        told = set(report["eligible"]) | {r["candidate"] for r in report["rejected"]}
        self.assertEqual(7, len(told))
        again = resolve("--model", MODEL, "--environment", CPU, "--workers", 8, "-o", "json")
        self.assertEqual(ran.stdout, again.stdout)

    def test_a_forced_one_that_cannot_run_ends_with_4_and_its_reason(self):
        for machine, forced, reason in (
            (CPU, ["backend=sm90_fp8"], "sm_unsupported: it needs a CUDA device"),
            (H200, ["backend=sm90_bf16"], "quant_unsupported"),
            (H200, ["backend=sm90_fp8", "communication=nvlink.one_sided"], "dep_missing"),
        ):
            words = [word for part in forced for word in ("--force", part)]
            ran = resolve("--model", MODEL, "--environment", machine, "--workers", 8, *words)
            self.assertEqual(4, ran.returncode, forced)
            self.assertIn(reason, ran.stderr)
        fused = resolve("--model", MODEL, "--environment", CPU, "--workers", 8,
                        "--force", "backend=FUSED", "--no-degradation")
        self.assertEqual(4, fused.returncode)
        self.assertIn("degrading is forbidden", fused.stderr)

    def test_wrong_words_and_files_have_their_own_codes(self):
        self.assertEqual(2, resolve("--model", MODEL, "--force", "backend=fastest").returncode)
        self.assertEqual(2, resolve().returncode)
        self.assertEqual(7, resolve("--model", ROOT / "no_such_model").returncode)
        with tempfile.NamedTemporaryFile("w", suffix=".json") as bad:
            bad.write('{"schema": "moetier.environment/1", "gpus": 8}')
            bad.flush()
            ran = resolve("--model", MODEL, "--environment", bad.name)
            self.assertEqual(7, ran.returncode)
            self.assertIn("is malformed", ran.stderr)

    def test_what_is_captured_reads_back(self):
        captured = resolve("--capture")
        self.assertEqual(0, captured.returncode, captured.stderr)
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write(captured.stdout)
            file.flush()
            model = ROOT / "deploy/demo/model"
            ran = resolve("--model", model, "--environment", file.name, "-o", "json")
            here = resolve("--model", model, "-o", "json")
        self.assertEqual(0, ran.returncode, ran.stderr)
        self.assertEqual(ran.stdout, here.stdout)

    def test_a_running_tier_and_the_offline_command_give_the_same_report(self):
        settings = ["--set", "model.quantise=mxfp4", "--set", "model.routing.method=renormalize_naive",
                    "--set", "session.max_tokens=64"]
        with ProcessTier(workers=2, settings=settings) as tier:
            live = json.loads(tier.command("resolve", "--live", "-o", "json").stdout)
        ran = resolve("--model", ROOT / "deploy/demo/model", "--workers", 2, *settings, "-o", "json")
        self.assertEqual(0, ran.returncode, ran.stderr)
        offline = json.loads(ran.stdout)
        # What a running tier alone knows: its epoch, its workers' own settings, the one carrier that they have opened.
        for report in (live, offline):
            del report["epoch"], report["env_fingerprints"]
            del report["communication"]["fallback"], report["communication"]["rejected"]
        self.assertEqual(live, offline)
        self.assertEqual("mxfp4", live["problem"]["quant"])
        self.assertEqual("renormalize_naive", live["problem"]["routing"])
        self.assertNotEqual("0" * 16, live["resolution_id"])

    def test_settings_forbid_degrading_as_the_flag_does(self):
        ran = resolve("--model", MODEL, "--environment", CPU, "--workers", 8,
                      "--set", "backend.force=FUSED", "--set", "backend.allow_degradation=false")
        self.assertEqual(4, ran.returncode)
        self.assertIn("degrading is forbidden", ran.stderr)
        twice = resolve("--model", MODEL, "--environment", CPU, "--set", "model.quantise=mxfp4")
        self.assertEqual(2, twice.returncode)
        self.assertIn("model.quantise", twice.stderr)

    def test_workers_that_do_not_agree_end_with_4(self):
        other = json.loads(CPU.read_text())
        other["numerics_combine"] = 9
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(other, file)
            file.flush()
            ran = resolve("--model", MODEL, "--environment", CPU, "--environment", file.name)
        self.assertEqual(4, ran.returncode)
        self.assertIn("numerics_combine is 1 on worker@1, 9 on worker@2", ran.stderr)

    def test_what_is_unknown_stays_possible(self):
        unknown = json.loads(CPU.read_text())
        for name in ("cpu_avx2", "cpu_fma", "kernels", "carriers", "host_memory_bytes"):
            unknown[name] = None
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(unknown, file)
            file.flush()
            ran = resolve("--model", MODEL, "--environment", file.name, "-o", "json")
        self.assertEqual(0, ran.returncode, ran.stderr)
        report = json.loads(ran.stdout)
        self.assertEqual("", report["winner"])
        self.assertIn("cpu_avx2", report["possible"][0]["unknown"])


if __name__ == "__main__":
    unittest.main()
