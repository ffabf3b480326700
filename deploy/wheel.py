"""Packs the Python package of a bundle (deploy/bundle.sh) as a wheel: wheel.py BUNDLE OUTDIR prints its path.

Of the bundle's libraries it takes the client library, UCX with its modules, and what these name. In a Python that loads
them nobody's search path leads there, so each is told to look beside itself first (patchelf). The tag says which C
library they need: manylinux, as far back as their symbols go. The same input makes the same bytes."""
import base64
import hashlib
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

SOURCE = pathlib.Path(__file__).resolve().parents[1]
ROOTS = ("libmoetier.so.1", "libmoetier_ucx.so")
# Every system with Python has these; a second C++ library in one process would be a danger.
OF_THE_SYSTEM = re.compile(r"^(ld-linux-x86-64|lib(c|m|dl|pthread|rt|resolv|util|anl|nsl|stdc\+\+|gcc_s))\.so")
OF_THE_DRIVER = re.compile(r"^lib(cuda|nvidia-[a-z-]+)\.so")
SUMMARY = "Calls the MoE layers of a model on a moetier tier."


def fail(text):
    sys.exit(f"wheel: {text}")


def read_elf(flag, path):
    return subprocess.run(["readelf", flag, "-W", str(path)], check=True, capture_output=True, text=True).stdout


def closure(lib):
    """The libraries of `lib` that a client needs."""
    found = [lib / name for name in ROOTS] + sorted((lib / "ucx").iterdir())
    for path in found:
        for name in re.findall(r"\(NEEDED\).*\[(.+)\]", read_elf("-d", path)):
            beside = next((place / name for place in (lib / "ucx", lib) if (place / name).exists()), None)
            if beside:
                found += [beside] if beside not in found else []
            elif not OF_THE_SYSTEM.match(name) and not OF_THE_DRIVER.match(name):
                fail(f"{path.name} needs {name}, which is not in {lib}")
    return found


def beside_itself(path, lib):
    """The bytes of a library that looks for others in its own folder and in UCX's or the one above, then in the
    system."""
    other = "$ORIGIN/ucx" if path.parent == lib else "$ORIGIN/.."
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copy(path, folder)
        subprocess.run(["patchelf", "--force-rpath", "--set-rpath", "$ORIGIN:" + other, copy], check=True)
        return pathlib.Path(copy).read_bytes()


def newest(prefix, libraries):
    """The newest version of a C or C++ library's symbols that any of `libraries` asks for."""
    versions = {tuple(int(n) for n in version.split(".")) for path in libraries
                for version in re.findall(rf"Name: {prefix}_([\d.]+)", read_elf("-V", path))}
    return max(versions)


def version():
    return re.search(r"project\(moetier VERSION ([\d.]+)", (SOURCE / "CMakeLists.txt").read_text())[1]


def main(bundle, out):
    lib = bundle / "lib"
    libraries = closure(lib)
    files = {f"moetier/_lib/{path.relative_to(lib)}": beside_itself(path, lib) for path in libraries}
    package = lib / "python" / "moetier"
    for path in package.rglob("*.py"):
        files[f"moetier/{path.relative_to(package)}"] = path.read_bytes()
    tag = "py3-none-manylinux_%d_%d_%s" % (*newest("GLIBC", libraries), platform.machine())
    info = f"moetier-{version()}.dist-info"
    cxx = ".".join(str(n) for n in newest("GLIBCXX", libraries))
    files[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: moetier\nVersion: {version()}\nSummary: {SUMMARY}\nRequires-Python: >=3.9\n"
        f"Requires-Dist: numpy\nRequires-External: libstdc++ with GLIBCXX_{cxx}\n\n"
        + (SOURCE / "transport" / "client" / "README.md").read_text()).encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: moetier\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    files[f"{info}/LICENSE"] = (SOURCE / "LICENSE").read_bytes()
    rows = [f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}"
            for name, data in sorted(files.items())]
    files[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,", ""]).encode()

    wheel = out / f"moetier-{version()}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted(files.items(), key=lambda file: (file[0].startswith(info), file[0])):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data)
    print(wheel)


if __name__ == "__main__":
    main(*(pathlib.Path(argument) for argument in sys.argv[1:]))
