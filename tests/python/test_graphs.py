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
        with self.assertRaisesRegex(fusec.UsageError, "an operand: found 1180591620717411303424"):
            b.op("add", x, 2**70)
        with self.assertRaisesRegex(fusec.UsageError, "attribute dim: found"):
            b.op("sum", x, dim=[2**70])
        with self.assertRaisesRegex(TypeError, "a node's name is a str, not 3"):
            b.op("relu", x, name=3)
        with self.assertRaisesRegex(TypeError, "a dtype .* is a str, not <class 'numpy.float32'>"):
            b.input("y", np.float32, [4])

    def test_arrays_are_no_numbers(self):
        b = fusec.ModelBuilder("m")
        x = b.input("x", "float32", [4])
        with self.assertRaisesRegex(TypeError, "an operand is a Value of this builder, a number"):
            b.op("mul", x, np.array([2.0]))

    def test_scalars_of_numpy_are_numbers(self):
        def model(*numbers):
            b = fusec.ModelBuilder("m")
            x = b.input("x", "float32", [4, 4])
            for number in numbers:
                x = b.op("mul", x, number)
            b.output(b.op("clamp", b.op("sum", x, dim=[numbers[0]]), min=numbers[1]))
            return b.build().to_json()

        self.assertEqual(model(np.int64(1), np.float32(2.5), np.bool_(True)), model(1, 2.5, True))
        b = fusec.ModelBuilder("m")
        b.output(b.op("sum", b.input("x", "float32", [4]), dim=[np.float32(0.5)]))
        with self.assertRaisesRegex(fusec.InputError, "attrs/dim"):  # not 0
            b.build()

    def test_integers_of_constants_are_exact(self):
        for dtype, data in (("int64", [2**53 + 1, 2**63 - 1, -(2**63)]), ("uint64", [2**64 - 1]), ("bool", [True, 0])):
            for given in (data, tuple(data), np.array(data, dtype)):
                b = fusec.ModelBuilder("m")
                b.output(b.constant("c", dtype, [len(data)], given))
                found = np.frombuffer(b.build().constant_bytes("c"), dtype)
                self.assertEqual(found.tolist(), data)
        for given in (np.ones((2, 2)), 3, [None], "ab"):
            with self.assertRaisesRegex(TypeError, "a flat sequence of numbers"):
                fusec.ModelBuilder("m").constant("c", "float32", [4], given)

    def test_values_of_another_builder(self):
        b, other = fusec.ModelBuilder("m"), fusec.ModelBuilder("m")
        x, theirs = (builder.input("x", "float32", [4]) for builder in (b, other))
        for take in (lambda: b.output(theirs), lambda: b.op("sub", x, theirs)):
            with self.assertRaisesRegex(fusec.UsageError, 'a value of another builder: found "x"'):
                take()

    def test_what_is_shown(self):
        b = fusec.ModelBuilder("m")
        b.symbol("n")
        b.output(b.op("relu", b.input("x", "float32", ["n", 4])))
        shown = {
            "<fusec.ModelBuilder m>": b,
            "<fusec.ModelTensor x: float32[n, 4]>": b.build().inputs[0],
            "<fusec.TensorInfo int8[]>": fusec.TensorInfo("int8", []),
            f"<fusec.Registry: {len(fusec.Registry().op_names())} ops>": fusec.Registry(),
            "<fusec.Pattern: pattern mine.gated>": fusec.Pattern(Patterns.TEXT),
            "<fusec.KernelImage: 3 bytes of PTX, 2 of cubin>": fusec.KernelImage("ptx", b"12"),
        }
        for text, value in shown.items():
            self.assertEqual(repr(value), text)
        self.assertRegex(repr(fusec.examine()[0]), "<fusec.Finding fusec: good, .*>")


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
            self.assertEqual(repr(match), "<fusec.MatchedPattern mine.gated: act, y>")
            self.assertIn("<fusec.MatchedValue up: up float32[tokens, 16]>", map(repr, match.values))
            found.append((match.pattern, sorted(v.name for v in match.values)))
            return ""

        pattern = fusec.Pattern(self.TEXT, check=check, attributes=lambda match: [("mine", "yes")])
        (group,) = fusec.partition(models.gated(), patterns=[pattern], disable_pattern=["fusec.swiglu"])
        self.assertEqual((group.claimed_by, group.attributes), ("mine.gated", [("mine", "yes")]))
        self.assertEqual(found[0][0], "mine.gated")

    def test_what_a_check_must_return(self):
        said = {
            'the check of a pattern returns "" for yes.*; found NoneType': {"check": lambda match: None},
            'the check of a pattern returns "" for yes.*; found bool': {"check": lambda match: True},
            "a list of pairs of str; found dict": {"attributes": lambda match: {"a": "3"}},
            "a list of pairs of str; found list": {"attributes": lambda match: [("a", 3)]},
        }
        for text, functions in said.items():
            pattern = fusec.Pattern(self.TEXT, **functions)
            with self.assertRaisesRegex(TypeError, text):
                fusec.partition(models.gated(), patterns=[pattern], disable_pattern=["fusec.swiglu"])

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

    def test_scalars_of_numpy_in_a_formula(self):
        x, gate, y = self.run_op(lambda x, gate: np.float64(0.5) * x + np.float32(2) * gate * np.int64(3) - np.float64(-1))
        np.testing.assert_allclose(y, 0.5 * x + 6 * gate + 1, rtol=1e-5)

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
        b = fusec.ModelBuilder("m", fusec.register(registry, "my.op", ["x"], launcher="f", infer=lambda operands: None))
        b.output(b.op("my.op", b.input("x", "float32", [8])))
        with self.assertRaisesRegex(TypeError, "infer returns a fusec.TensorInfo; found NoneType"):
            b.build()
        for make in (
            lambda: fusec.register(None, "my.op", ["x"], "$0"),
            lambda: fusec.compile(models.gated(), registry=3),
            lambda: fusec.read("m.json", registry=0),
        ):
            with self.assertRaisesRegex(TypeError, "registry is a fusec.Registry, not"):
                make()


if __name__ == "__main__":
    unittest.main()
