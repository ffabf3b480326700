"""Whole models of the transformers library whose experts are on a tier: made at random, saved as their family's files,
served by two workers, and compared with the library's own computation, logits and generated tokens.

It needs torch and transformers, which tests/transformers_venv.sh installs outside the repository, and runs where
MOETIER_FULL=1 or MOETIER_TRANSFORMERS (the interpreter to use) is set; elsewhere it says so and is skipped.
MOETIER_MODELS picks families by name."""
import os
import pathlib
import subprocess
import sys

SKIPPED = 77
VENV = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache", "moetier", "transformers")


def ensure_interpreter():
    """Goes on in the interpreter that has the libraries, or ends this one as skipped."""
    wished = os.environ.get("MOETIER_TRANSFORMERS")
    if not wished and os.environ.get("MOETIER_FULL") != "1":
        print("skipped: set MOETIER_FULL=1 or MOETIER_TRANSFORMERS=PYTHON to compare with the transformers library")
        sys.exit(SKIPPED)
    python = pathlib.Path(wished or VENV / "bin" / "python")
    if not python.exists():
        print(f"skipped: there is no {python}; tests/transformers_venv.sh makes it")
        sys.exit(SKIPPED)
    os.execv(python, [str(python), __file__, "--here", *sys.argv[1:]])


if "--here" not in sys.argv:
    ensure_interpreter()
sys.argv.remove("--here")

import tempfile  # noqa: E402
import unittest  # noqa: E402
import warnings  # noqa: E402

import torch  # noqa: E402
import transformers  # noqa: E402

import moetier  # noqa: E402
import moetier.transformers  # noqa: E402
from moetier.transformers.families import FAMILIES  # noqa: E402
from process_tier import SOURCE, ProcessTier  # noqa: E402

CONFIGS = SOURCE / "tests" / "data" / "oracles"  # tiny configurations of all families
TOLERANCE = 2e-5  # of the logits' scale
NEW_TOKENS = 8
# What these configurations, which were made for single layers, lack for a whole model.
MENDED = {"longcat_flash": {"head_dim": 4}, "step3p7": {"text_config": {"sliding_window": 64}}}
NAMES = [family.model_types[0] for family in FAMILIES]
if os.environ.get("MOETIER_MODELS"):
    NAMES = os.environ["MOETIER_MODELS"].split(",")

torch.set_num_threads(1)
transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()


def configuration(name):
    config = transformers.AutoConfig.from_pretrained(CONFIGS / name)
    for key, value in MENDED.get(name, {}).items():
        if key == "text_config":
            for inner, told in value.items():
                setattr(config.get_text_config(), inner, told)
        else:
            setattr(config, key, value)
    return config


def make(name, folder, seed=1):
    """A random model, saved in `folder` and loaded from there again."""
    config = configuration(name)
    kind = getattr(transformers, config.architectures[0])
    torch.manual_seed(seed)
    made = kind._from_config(config, dtype=torch.float32)
    for key, table in made.state_dict().items():
        if key.endswith(".tid2eid"):  # the library makes it of zeros
            for row in table:
                row.copy_(torch.randperm(made.config.n_routed_experts)[:len(row)])
    made.save_pretrained(folder)
    return kind.from_pretrained(folder, dtype=torch.float32).eval()


def inputs_of(model):
    vocabulary = model.config.get_text_config().vocab_size
    random = torch.Generator().manual_seed(7)
    return [torch.randint(3, vocabulary, shape, generator=random) for shape in ((1, 1), (2, 7), (1, 33))]


@torch.no_grad()
def logits_of(model, inputs):
    return [model(tokens).logits for tokens in inputs]


def generated(model, tokens):
    return model.generate(tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=NEW_TOKENS,
                          min_new_tokens=NEW_TOKENS, do_sample=False, pad_token_id=0)


def error_of(given, wanted):
    return max(float((a - b).abs().max() / b.abs().max()) for a, b in zip(given, wanted))


def parameters_of(model):
    return sum(p.numel() for p in model.parameters() if p.device.type != "meta")


def routed_parameters(model, name):
    kind = next(family.experts for family in FAMILIES if family.model_types[0] == name)
    return [p for module in model.modules() if type(module).__name__ == kind for p in module.parameters()]


class ModelsTest(unittest.TestCase):

    def test_every_family_computes_what_the_library_does(self):
        print(f"torch {torch.__version__}, transformers {transformers.__version__}")
        for name in NAMES:
            with self.subTest(name), tempfile.TemporaryDirectory(prefix="moetier-model-") as folder:
                print(f"{name}: {self.compare(name, folder)}", flush=True)

    def compare(self, name, folder):
        model = make(name, folder)
        inputs = inputs_of(model)
        wanted, tokens = logits_of(model, inputs), generated(model, inputs[1])
        routed = sum(p.numel() for p in routed_parameters(model, name))
        whole = parameters_of(model)
        figures = {}
        with ProcessTier(workers=2, model=folder) as processes, moetier.connect(processes.address) as tier:
            with tier.session(max_tokens=16, micro_batches=2) as session:
                with moetier.transformers.attach(model, session) as attached:
                    self.assertEqual(attached.layers, tier.model.moe_layers)
                    self.assertEqual(parameters_of(model), whole - routed)
                    figures["attached"] = error_of(logits_of(model, inputs), wanted)
                    self.assertTrue(torch.equal(generated(model, inputs[1]), tokens))
                    self.assertGreater(session.stats.calls, 0)
                # Put back, it is the library's own again, to the bit.
                self.assertEqual(parameters_of(model), whole)
                for again, once in zip(logits_of(model, inputs), wanted):
                    self.assertTrue(torch.equal(again, once))
                never_read = moetier.transformers.load(folder, session, dtype=torch.float32)
                self.assertEqual(parameters_of(never_read), whole - routed)
                figures["loaded"] = error_of(logits_of(never_read, inputs), wanted)
                self.assertTrue(torch.equal(generated(never_read, inputs[1]), tokens))
            if next(f.gate for f in FAMILIES if f.model_types[0] == name):
                with tier.session(max_tokens=64, gate="tier") as session, \
                        moetier.transformers.attach(model, session, gate="tier"):
                    figures["gate"] = error_of(logits_of(model, inputs), wanted)
                    self.assertTrue(torch.equal(generated(model, inputs[1]), tokens))
        for how, figure in figures.items():
            self.assertLess(figure, TOLERANCE, how)
        # The comparison can fail: experts that are one percent larger are seen.
        for p in routed_parameters(model, name):
            p.data.mul_(1.01)
        seen = error_of(logits_of(model, inputs), wanted)
        self.assertGreater(seen, 2 * TOLERANCE)
        figures["1 % off"] = seen
        return ", ".join(f"{how} {figure:.1e}" for how, figure in figures.items())


class UseTest(unittest.TestCase):
    """What a program meets besides right numbers; on a tiny Mixtral."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="moetier-model-")
        cls.model = make("mixtral", cls.folder.name)
        cls.inputs = inputs_of(cls.model)
        cls.wanted = logits_of(cls.model, cls.inputs)
        cls.processes = ProcessTier(workers=2, model=cls.folder.name)
        cls.processes.__enter__()
        cls.tier = moetier.connect(cls.processes.address)
        cls.session = cls.tier.session(max_tokens=16)

    @classmethod
    def tearDownClass(cls):
        cls.tier.close()
        cls.processes.__exit__(None, None, None)
        cls.folder.cleanup()

    def assert_refused(self, error, text, function, *arguments, **options):
        with self.assertRaises(error) as caught:
            function(*arguments, **options)
        self.assertIn(text, str(caught.exception))

    def test_importing_patches_and_loads_nothing(self):
        code = ("import sys, moetier.transformers as t; assert not {'torch', 'transformers'} & set(sys.modules); "
                "assert 'mixtral' in t.model_types()")
        subprocess.run([sys.executable, "-c", code], check=True)

    def test_a_pass_is_one_step(self):
        with moetier.transformers.attach(self.model, self.session, keep_experts=True):
            before = self.session.stats
            logits_of(self.model, self.inputs[1:2])
            after = self.session.stats
        self.assertEqual((after.steps - before.steps, after.tokens - before.tokens), (1, 2 * 14))

    def test_a_pass_longer_than_the_session_takes_is_further_steps(self):
        with moetier.transformers.attach(self.model, self.session, keep_experts=True):
            before = self.session.stats
            self.assertLess(error_of(logits_of(self.model, self.inputs[2:]), self.wanted[2:]), TOLERANCE)
            after = self.session.stats
        # 33 rows in pieces of 16: three a layer, of which a step takes one.
        self.assertEqual((after.calls - before.calls, after.steps - before.steps), (6, 5))

    def test_no_tokens(self):
        with moetier.transformers.attach(self.model, self.session, keep_experts=True):
            experts = self.model.model.layers[0].mlp.experts
            out = experts(torch.empty(0, 64), torch.empty(0, 2, dtype=torch.int64), torch.empty(0, 2))
            self.assertEqual(tuple(out.shape), (0, 64))
            self.assertLess(error_of(logits_of(self.model, self.inputs), self.wanted), TOLERANCE)

    def test_bfloat16_models(self):
        with tempfile.TemporaryDirectory() as folder:
            self.model.save_pretrained(folder)
            narrow = type(self.model).from_pretrained(folder, dtype=torch.bfloat16).eval()
        own = logits_of(narrow, self.inputs)
        with moetier.transformers.attach(narrow, self.session, keep_experts=True):
            there = logits_of(narrow, self.inputs)
        self.assertEqual(there[0].dtype, torch.bfloat16)
        # The tier's experts are f32 here: nearer to the f32 model than bfloat16's own steps.
        self.assertLess(error_of(there, self.wanted), 2 * error_of(own, self.wanted))

    def test_kept_experts_come_back_as_the_same_modules(self):
        experts = self.model.model.layers[1].mlp.experts
        with moetier.transformers.attach(self.model, self.session, keep_experts=True):
            self.assertIsNot(self.model.model.layers[1].mlp.experts, experts)
        self.assertIs(self.model.model.layers[1].mlp.experts, experts)

    def test_an_unknown_model_type_is_refused_by_name(self):
        config = transformers.LlamaConfig(hidden_size=32, intermediate_size=32, num_hidden_layers=1,
                                          num_attention_heads=2, vocab_size=32)
        dense = transformers.LlamaForCausalLM(config)
        self.assert_refused(moetier.Unsupported, "model_type llama cannot be attached; allowed: bailing_hybrid, dbrx, ",
                            moetier.transformers.attach, dense, self.session)
        self.assert_refused(moetier.Invalid, "model is a dict; allowed: a transformers model",
                            moetier.transformers.attach, {}, self.session)

    def test_another_model_than_the_tier_serves_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            other = make("qwen3_moe", folder)
        self.assert_refused(moetier.ModelMismatch,
                            "the tier serves a model of the type mixtral; this model is of the type qwen3_moe",
                            moetier.transformers.attach, other, self.session)
        config = configuration("mixtral")
        config.num_hidden_layers = 1
        config.num_local_experts = 6
        smaller = transformers.MixtralForCausalLM(config)
        self.assert_refused(moetier.ModelMismatch, "the tier serves a number of experts of 8; this model has 6",
                            moetier.transformers.attach, smaller, self.session)

    def test_sessions_that_do_not_fit_are_refused_and_change_nothing(self):
        self.assert_refused(moetier.Invalid, "gate is 'tier' in a session whose gate is the client's",
                            moetier.transformers.attach, self.model, self.session, gate="tier")
        self.assert_refused(moetier.Invalid, "gate is 'both'; allowed: client, tier",
                            moetier.transformers.attach, self.model, self.session, gate="both")
        self.assertIsNone(moetier.transformers.attachment_of(self.model))
        with moetier.transformers.attach(self.model, self.session, keep_experts=True):
            self.assert_refused(moetier.BadState, "this model is attached already",
                                moetier.transformers.attach, self.model, self.session)
        self.assert_refused(moetier.BadState, "this model is not attached", moetier.transformers.detach, self.model)
        for again, once in zip(logits_of(self.model, self.inputs), self.wanted):
            self.assertTrue(torch.equal(again, once))

    def test_freed_experts_need_their_checkpoint(self):
        with tempfile.TemporaryDirectory() as folder:
            self.model.save_pretrained(folder)
            model = type(self.model).from_pretrained(folder, dtype=torch.float32).eval()
            attached = moetier.transformers.attach(model, self.session)
        self.assert_refused(moetier.Invalid, "allowed: the directory that the model was loaded from", attached.detach)
        self.assertLess(error_of(logits_of(model, self.inputs), self.wanted), TOLERANCE)  # still attached
        attached.detach(self.folder.name)
        for again, once in zip(logits_of(model, self.inputs), self.wanted):
            self.assertTrue(torch.equal(again, once))

    def test_going_back_through_the_tier_is_a_named_error(self):
        with moetier.transformers.attach(self.model, self.session, keep_experts=True):
            loss = self.model(self.inputs[1]).logits.sum()
            self.assert_refused(moetier.Unsupported, "the tier computes no gradients", loss.backward)

    def test_a_state_dict_says_what_it_lacks(self):
        with moetier.transformers.attach(self.model, self.session, keep_experts=True):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                self.model.state_dict()
        self.assertIn("lacks the routed experts", str(caught[0].message))

    def test_a_failed_pass_is_a_typed_error_and_the_next_one_works(self):
        with self.tier.session(max_tokens=16) as session, \
                moetier.transformers.attach(self.model, session, keep_experts=True):
            hook = self.model.model.layers[1].mlp.experts.register_forward_pre_hook(self.torn)
            with self.assertRaises(KeyError):
                logits_of(self.model, self.inputs)
            hook.remove()
            self.assertLess(error_of(logits_of(self.model, self.inputs), self.wanted), TOLERANCE)
            session.close()
            with self.assertRaises(moetier.BadState):
                logits_of(self.model, self.inputs)
        for again, once in zip(logits_of(self.model, self.inputs), self.wanted):
            self.assertTrue(torch.equal(again, once))

    def torn(self, *_):
        raise KeyError("mine")


if __name__ == "__main__":
    unittest.main()
