"""libmoetier exports the functions of moetier.h and nothing else."""
import pathlib
import re
import subprocess
import sys

library = sys.argv[1]
root = pathlib.Path(__file__).resolve().parents[3]
header = (root / "transport/client/abi/moetier.h").read_text()
declared = set(re.findall(r"\b(moetier_\w+)\(", header))
listing = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
exported = {line.split()[-1].split("@")[0] for line in listing.splitlines() if line.split()[-2] != "A"}
if exported != declared:
    sys.exit(f"exported but not declared: {sorted(exported - declared)}; "
             f"declared but not exported: {sorted(declared - exported)}")
