"""Scans the tree for breaches of the rules in rules.py: prints file:line and the rule, ends with 1
if there is any.

    python3 tests/style/check.py [ROOT]      check the tree
    python3 tests/style/check.py --rules     print the rules
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from rules import RULES  # noqa: E402
from source import CPP_SUFFIXES, Source  # noqa: E402

SUFFIXES = CPP_SUFFIXES + (".capnp", ".py", ".sh", ".cmake", ".md", ".txt", ".yaml", ".yml", ".in")
SKIPPED_FOLDERS = {".git", "build", "__pycache__", ".pytest_cache"}


def sources(root):
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in SKIPPED_FOLDERS)
        for name in sorted(names):
            path = Path(folder) / name
            if name.endswith(SUFFIXES) and path.is_file():
                yield Source(
                    path.relative_to(root).as_posix(),
                    path.read_text(encoding="utf-8", errors="replace"),
                )


def breaches(source, rules=RULES):
    for rule in rules:
        for line, what in rule.find(source):
            if not source.allows(rule.name, line):
                yield line, rule, what


def main(arguments):
    if arguments == ["--rules"]:
        for rule in RULES:
            print(f"{rule.name:18} {rule.says}")
        return 0
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parents[2]
    files = count = 0
    for source in sources(root):
        files += 1
        # The rules' own examples break the rules.
        if source.path == "tests/style/rules.py":
            continue
        for line, rule, what in breaches(source):
            count += 1
            print(f"{source.path}:{line}: {rule.name}: {what} -- {rule.says}")
    print(f"style: {files} files, {len(RULES)} rules, {count} breaches")
    return 1 if count or not files else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
