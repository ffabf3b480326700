"""Reads what ptxas said of every device object (OBJECT.ptxas, left by the build) and fails on a spill, a stack
frame, a C75xx message (wgmma serialised, setmaxnreg ignored, ...), more registers than registers.txt records
for a kernel, a kernel without a record and a record without a kernel. Where cuobjdump is found, the machine
code is read too: no access to local memory, and matrix instructions in every kernel that is there for them.

    python3 tests/kernels/cuda/ptxas_gate.py --table tests/kernels/cuda/registers.txt OBJECT...
    ... --record        writes the table from these objects instead
"""

import argparse
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

HEAD = "# kernel, registers of a thread: the most that a build may use. Written by the target record_registers.\n"
# Kernels whose products must run on the tensor cores' own instructions.
NEEDS_MATRIX_UNITS = re.compile(r"ladder|straight|small_kernel|grouped_gemm")


@dataclass
class Kernel:
    name: str  # demangled, without moetier::kernels::cuda:: and arguments
    registers: int = 0
    complaints: list = field(default_factory=list)


def short_name(demangled):
    """moetier::kernels::cuda::bench::f<(int)4>(args) -> bench::f<4>"""
    name = demangled.replace("moetier::kernels::cuda::", "").replace("(anonymous namespace)::", "")
    name = re.sub(r"\((?:\w+(?:::\w+)*)\)(?=-?\d|true|false)", "", name)
    depth = 0
    for at, c in enumerate(name):
        depth += {"<": 1, ">": -1}.get(c, 0)
        if c == "(" and depth == 0:
            name = name[:at]
            break
    return name.removeprefix("void ").replace(" ", "")


def demangle(names):
    tool = shutil.which("c++filt")
    if not tool or not names:
        return list(names)
    out = subprocess.run([tool], input="\n".join(names), capture_output=True, text=True, check=True)
    return out.stdout.splitlines()


def read_report(text):
    """(kernels, complaints of the file) of one .ptxas file."""
    kernels, complaints, current = [], [], None
    for line in text.splitlines():
        found = re.search(r"Compiling entry function '([^']+)'", line)
        if found:
            current = Kernel(found.group(1))
            kernels.append(current)
        sizes = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line)
        if sizes and any(int(n) for n in sizes.groups()):
            where = current.complaints if current else complaints
            where.append(line.strip())
        used = re.search(r"Used (\d+) registers", line)
        if used and current:
            current.registers = int(used.group(1))
        if re.search(r"\bC75\d\d\b", line):
            complaints.append(line.strip())
    for kernel, name in zip(kernels, demangle([k.name for k in kernels])):
        kernel.name = short_name(name)
    return kernels, complaints


def compile_seconds(text):
    """Processor time of the compiler: the second line of what `times` printed."""
    found = re.match(r"[^\n]*\n(\d+)m([\d.]+)s (\d+)m([\d.]+)s", text)
    if not found:
        return 0.0
    minutes, seconds, system_minutes, system_seconds = map(float, found.groups())
    return 60 * (minutes + system_minutes) + seconds + system_seconds


def read_table(text):
    table = {}
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            name, registers = line.rsplit(None, 1)
            table[name] = int(registers)
    return table


def judge(reports, table):
    """Complaints about {object name: (kernels, complaints)}, as lines."""
    lines, seen = [], set()
    for name, (kernels, complaints) in reports.items():
        lines += [f"{name}: {c}" for c in complaints]
        for k in kernels:
            seen.add(k.name)
            lines += [f"{name}: {k.name}: {c}" for c in k.complaints]
            if k.name not in table:
                lines.append(f"{name}: {k.name} uses {k.registers} registers and has no record")
            elif k.registers > table[k.name]:
                lines.append(f"{name}: {k.name} uses {k.registers} registers, recorded are {table[k.name]}")
    lines += [f"the record of {k} has no kernel" for k in table if k not in seen]
    return lines


def judge_machine_code(name, text):
    """Complaints about what cuobjdump --dump-sass prints of one object."""
    lines = []
    for part in re.split(r"^\s*Function : ", text, flags=re.MULTILINE)[1:]:
        symbol, _, code = part.partition("\n")
        kernel = short_name(demangle([symbol.strip()])[0])
        local = re.search(r"\b(LDL|STL)\b[^\n]*", code)
        if local:
            lines.append(f"{name}: {kernel} reaches local memory: {local.group(0).strip()}")
        if NEEDS_MATRIX_UNITS.search(kernel) and not re.search(r"\b[HQ]GMMA\b", code):
            lines.append(f"{name}: {kernel} has no HGMMA or QGMMA")
    return lines


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--table", required=True)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("objects", nargs="*")
    options = parser.parse_args(arguments)
    objects = [Path(o) for o in options.objects if o.endswith(".cu.o")]
    reports, lines, seconds = {}, [], 0.0
    for o in objects:
        report = Path(f"{o}.ptxas")
        if not report.is_file():
            lines.append(f"{o.name}: no report beside the object: build it again")
            continue
        text = report.read_text(errors="replace")
        seconds += compile_seconds(text)
        reports[o.name] = read_report(text)
    kernels = sorted({(k.name, k.registers) for ks, _ in reports.values() for k in ks})
    if options.record:
        Path(options.table).write_text(HEAD + "".join(f"{n} {r}\n" for n, r in kernels))
    lines += judge(reports, read_table(Path(options.table).read_text()))
    tool = shutil.which("cuobjdump")
    if tool:
        for o in objects:
            dumped = subprocess.run([tool, "--dump-sass", o], capture_output=True, text=True)
            lines += judge_machine_code(o.name, dumped.stdout)
    else:
        print("cuobjdump is absent: ptxas' reports were read, the machine code was not")
    if not kernels:
        lines.append("no kernel was found in any report")
    print("\n".join(lines))
    print(
        f"{len(objects)} objects, {len(kernels)} kernels, "
        f"{seconds:.1f} processor seconds of compilation, {len(lines)} complaints"
    )
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
