"""Each rule of ptxas_gate.py bites, and a clean report passes."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import ptxas_gate as gate  # noqa: E402

CLEAN = """0m0.01s 0m0.02s
1m2.5s 0m0.25s
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z4rowsPf' for 'sm_90a'
ptxas info    : Function properties for _Z4rowsPf
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers
ptxas info    : Compile time = 86.473 ms
"""


def complaints(text, table=None):
    return gate.judge({"a.cu.o": gate.read_report(text)}, table or {"rows": 40})


class Gate(unittest.TestCase):
    def test_passes_a_clean_report(self):
        self.assertEqual(complaints(CLEAN), [])
        self.assertEqual(gate.compile_seconds(CLEAN), 62.75)
        self.assertEqual(complaints(CLEAN, {"rows": 48}), [])

    def test_stops_spills_and_stack_frames(self):
        for clean, bad in (
            ("0 bytes spill stores", "8 bytes spill stores"),
            ("0 bytes spill loads", "4 bytes spill loads"),
            ("0 bytes stack frame", "288 bytes stack frame"),
        ):
            found = complaints(CLEAN.replace(clean, bad))
            self.assertEqual(len(found), 1)
            self.assertIn(bad, found[0])

    def test_stops_c75xx_messages(self):
        for code in ("C7508", "C7510", "C7520"):
            found = complaints(CLEAN + f"ptxas info    : ({code}) Potential Performance Loss: ...\n")
            self.assertEqual(len(found), 1)
            self.assertIn(code, found[0])

    def test_stops_more_registers_than_recorded(self):
        self.assertEqual(
            complaints(CLEAN, {"rows": 39}), ["a.cu.o: rows uses 40 registers, recorded are 39"]
        )

    def test_stops_what_one_side_lacks(self):
        self.assertEqual(
            complaints(CLEAN, {"columns": 40}),
            ["a.cu.o: rows uses 40 registers and has no record", "the record of columns has no kernel"],
        )

    def test_names_kernels_as_a_reader_would(self):
        self.assertEqual(
            gate.short_name(
                "void moetier::kernels::cuda::bench::fill<(moetier::kernels::cuda::gemm_format)1, (int)-4>(float*)"
            ),
            "bench::fill<1,-4>",
        )
        self.assertEqual(
            gate.short_name("moetier::kernels::cuda::(anonymous namespace)::mark(unsigned int*)"), "mark"
        )

    def test_reads_machine_code(self):
        text = "\tFunction : ladder_kernel\n  /*0010*/ HGMMA.64x8x16 R24 ;\n"
        self.assertEqual(gate.judge_machine_code("a", text), [])
        self.assertEqual(
            gate.judge_machine_code("a", text.replace("HGMMA", "HMMA")),
            ["a: ladder_kernel has no HGMMA or QGMMA"],
        )
        self.assertEqual(
            gate.judge_machine_code("a", text + "  /*0020*/ STL [R1], R2 ;\n"),
            ["a: ladder_kernel reaches local memory: STL [R1], R2 ;"],
        )

    def test_reads_its_own_table(self):
        self.assertEqual(gate.read_table(gate.HEAD + "f<1> 40\ng 8\n"), {"f<1>": 40, "g": 8})


if __name__ == "__main__":
    unittest.main()
