"""Every rule catches its examples, lets its near misses pass, and can be waived at the place; the
blanking keeps lines in place."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from check import breaches  # noqa: E402
from rules import RULES  # noqa: E402
from source import Source  # noqa: E402


class StyleRules(unittest.TestCase):
    def test_every_rule_catches_its_examples(self):
        for rule in RULES:
            self.assertTrue(rule.catches, rule.name)
            for path, text in rule.catches:
                with self.subTest(rule=rule.name, path=path, text=text):
                    self.assertTrue(list(breaches(Source(path, text), [rule])))

    def test_every_rule_lets_its_near_misses_pass(self):
        for rule in RULES:
            for path, text in rule.passes:
                with self.subTest(rule=rule.name, path=path, text=text):
                    self.assertEqual(
                        [], [what for _, _, what in breaches(Source(path, text), [rule])]
                    )

    def test_names_are_unique(self):
        names = [rule.name for rule in RULES]
        self.assertEqual(len(names), len(set(names)))

    def test_a_waiver_needs_its_rule_and_a_reason(self):
        rule = next(rule for rule in RULES if rule.name == "rand")
        for comment, found in (
            ("// style: allow rand: compared with the C library's", 0),
            ("// style: allow rand:", 1),
            ("// style: allow sleep: wrong rule", 1),
        ):
            with self.subTest(comment=comment):
                self.assertEqual(
                    found, len(list(breaches(Source("tests/a.cpp", f"{comment}\nrand();"), [rule])))
                )

    def test_blanking_keeps_lines_and_code(self):
        text = 'a(R"(x\n"new)"); /* new\n new */ b(\'"\', 1\'000); // new\nc("//", d);'
        code = Source("a.cpp", text).code_lines
        self.assertEqual(len(text.split("\n")), len(code))
        self.assertNotIn("new", " ".join(code))
        for kept in ("a(", "b(", "1'000", "c(", "d)"):
            self.assertIn(kept, " ".join(code))


if __name__ == "__main__":
    unittest.main()
