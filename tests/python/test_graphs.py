"""Graphs built and edited in Python: the builder, passes one by one, patterns and ops of one's own."""
import tempfile
import unittest

import fusec
import models
import numpy as np


class Builder(unittest.TestCase):
    def test_a_model_is_what_was_said(self):
        b = fusec.ModelBuilder("m")
        b.symbol("n", min=2, max=10, multiple_of=2, hint=4)
        x = b.input("x", "float32", ["n", 4])
        parts = b.op_several("split", 2, x, split_sizes=[2, 2], dim=1)
        flat = b.op("reshape", b.op("concat", *reversed(parts), dim=1), shape=["4*n"])
        b.output(b.op("clamp", flat, min=0.5, name="y"))
        model = b.build()
        self.assertEqual([(t.name, t.dtype, t.shape) for t in model.inputs], [("x", "float32", ["n", 4])])
        self.assertEqual([(t.name, t.shape) for t in model.outputs], [("y", ["4*n"])])
        self.assertEqual(fusec.Model.parse(model.to_json()).to_text(), model.to_text())

    def test_operands(self):
        b = fusec.ModelBuilder("m")
        x = b.input("x", "float32", [4])
        self.assertEqual(repr(x), "<fusec.Value x>")
        y = b.op("add", x, 2, name="y")
        b.output(b.op("where", b.op("gt", y, 0.5), y, True))
        self.assertEqual(len(b.build().node_names), 3)
        with self.assertRaisesRegex(TypeError, "an operand is a Value"):
            b.op("add", x, "y")
        with self.assertRaisesRegex(TypeError, "attribute dim"):
            b.op("sum", x, dim=object())


class Passes(unittest.TestCase):
    def test_one_by_one(self):
        b = fusec.ModelBuilder("m")
        x = b.input("x", "float32", [4])
        b.output(b.op("exp", b.op("mul", x, 1.0, name="nothing"), name="y"))
        model = b.build()
        names = [p.name for p in fusec.passes()]
        self.assertIn("simplify-algebra", names)
        self.assertEqual(fusec.run_pass(model, "simplify-algebra").node_names, ["y"])
        self.assertEqual(model.node_names, ["nothing", "y"])
        for name in ("simplify", "fuse"):
            with self.assertRaisesRegex(fusec.UsageError, "no such pass .*one of keep-apart, .*simplify-algebra"):
                fusec.run_pass(model, name)
        self.assertEqual(fusec.annotate(model), {"nothing": "elemwise", "y": "elemwise"})

    def test_what_is_taken_as_a_model(self):
        calls = (fusec.partition, fusec.annotate, lambda model: fusec.run_pass(model, "fold-constants"))
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write(models.gated().to_json())
            file.flush()
            for call in calls:
                self.assertTrue(call(file.name))
        for call in calls:
            with self.assertRaisesRegex(fusec.InputError, "nothere.json"):
                call("nothere.json")
            with self.assertRaisesRegex(TypeError, "int is neither a fusec.Model nor the path"):
                call(1)


class Patterns(unittest.TestCase):
    TEXT = """
pattern mine.gated
  "a gate of mine"
  match   mul(silu(gate), up)
  becomes group
"""

    def test_the_built_in_ones_are_listed(self):
        self.assertIn("fusec.dual_gemm_swiglu", [p.name for p in fusec.patterns()])

    def test_one_of_ones_own(self):
        found = []

        def check(match):
            found.append((match.pattern, sorted(v.name for v in match.values)))
            return ""

        pattern = fusec.Pattern(self.TEXT, check=check, attributes=lambda match: [("mine", "yes")])
        (group,) = fusec.partition(models.gated(), patterns=[pattern], disable_pattern=["fusec.swiglu"])
        self.assertEqual((group.claimed_by, group.attributes), ("mine.gated", [("mine", "yes")]))
        self.assertEqual(found[0][0], "mine.gated")

    def test_what_a_check_raises_reaches_the_caller(self):
        def check(match):
            raise LookupError("mine")

        with self.assertRaisesRegex(LookupError, "mine"):
            fusec.partition(
                models.gated(), patterns=[fusec.Pattern(self.TEXT, check=check)], disable_pattern=["fusec.swiglu"]
            )


class Ops(unittest.TestCase):
    def run_op(self, formula):
        registry = fusec.register(fusec.Registry(), "my.gate", ["x", "gate"], formula)
        b = fusec.ModelBuilder("m", registry)
        x, gate = b.input("x", "float32", [8]), b.input("gate", "float32", [8])
        b.output(b.op("my.gate", x, gate, name="y"))
        module = fusec.compile(b.build(), arch="sm_80", cache_dir=models.CACHE)
        x, gate = np.linspace(-2, 2, 8, dtype=np.float32), np.linspace(3, -3, 8, dtype=np.float32)
        return x, gate, module(x, gate)

    def test_a_formula_as_text(self):
        x, gate, y = self.run_op("$0 * sigmoid($1)")
        np.testing.assert_allclose(y, x / (1 + np.exp(-gate)), rtol=1e-5)

    def test_a_formula_as_a_function(self):
        f = fusec.function
        x, gate, y = self.run_op(lambda x, gate: f.select(gate < 0, -x, 2 * x**2 + abs(gate)))
        np.testing.assert_allclose(y, np.where(gate < 0, -x, 2 * x**2 + abs(gate)), rtol=1e-5)

    def test_comparisons_of_a_formula(self):
        f = fusec.function
        x, gate, y = self.run_op(lambda x, gate: f.select(x == -2, 7, f.select(gate != 3, x, gate)))
        np.testing.assert_allclose(y, np.where(x == -2, 7, np.where(gate != 3, x, gate)), rtol=1e-5)

    def test_infer(self):
        def infer(operands):
            return fusec.TensorInfo("float32", [*operands[0].shape, 2])

        registry = fusec.register(fusec.Registry(), "my.pair", ["x"], launcher="my_pair", infer=infer)
        b = fusec.ModelBuilder("m", registry)
        b.output(b.op("my.pair", b.input("x", "bfloat16", [8])))
        self.assertEqual(b.build().outputs[0].shape, [8, 2])
        module = fusec.compile(b.build(), arch="sm_80", no_nvrtc=True)
        self.assertIn("my_pair", module.source)
        with self.assertRaisesRegex(fusec.InputError, "launcher of one's own"):
            module(np.zeros(8, np.float32))

    def test_errors(self):
        registry = fusec.Registry()
        with self.assertRaisesRegex(fusec.UsageError, "relu"):
            fusec.register(registry, "relu", ["x"], "$0")
        with self.assertRaisesRegex(fusec.InputError, "sigmiod"):
            fusec.register(registry, "my.op", ["x"], "sigmiod($0)")
        with self.assertRaisesRegex(TypeError, "no branches"):
            fusec.register(registry, "my.op", ["x"], lambda x: x if x > 0 else -x)

        def infer(operands):
            raise LookupError("mine")

        b = fusec.ModelBuilder("m", fusec.register(registry, "my.op", ["x"], launcher="f", infer=infer))
        b.output(b.op("my.op", b.input("x", "float32", [8])))
        with self.assertRaisesRegex(LookupError, "mine"):
            b.build()


if __name__ == "__main__":
    unittest.main()
