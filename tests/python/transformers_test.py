"""What moetier.transformers says without torch or the transformers library; whole models are compared by
tests/scenario/transformers_models.py."""

import pathlib
import re
import subprocess
import sys
import unittest

import moetier.transformers
from moetier.transformers.families import FAMILIES, family_of

SCHEMAS = pathlib.Path(__file__).resolve().parents[2] / "schemas" / "model" / "families"


class TransformersTest(unittest.TestCase):

    def test_importing_loads_neither_torch_nor_transformers(self):
        code = ("import sys, moetier.transformers\n"
                "assert not {'torch', 'transformers'} & set(sys.modules), sorted(sys.modules)")
        subprocess.run([sys.executable, "-c", code], check=True)

    def test_families_are_those_that_the_tier_loads(self):
        loaded = set()
        for path in SCHEMAS.glob("*.hpp"):
            names = re.findall(r'"(\w+)"', re.search(r"model_types = \{(.*?)\}", path.read_text())[1])
            loaded.add(names[0])
        self.assertEqual({family.model_types[0] for family in FAMILIES}, loaded)

    def test_model_types_are_named_once(self):
        names = moetier.transformers.model_types()
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(family_of("qwen3_5_moe_text"), family_of("qwen3_5_moe"))
        self.assertIsNone(family_of("llama"))


if __name__ == "__main__":
    unittest.main()
