#!/usr/bin/env python3
"""test_from_onnx.py [--tier=fast|full] [unittest arguments]: fusec.from_onnx.

Models of a few nodes for each mechanism, and the onnx package's own node tests on the emulator: of those in
from_onnx/node_tests.txt 100 in the fast tier, evenly spread, and all in the full tier; 95 % must pass. The full tier
also imports and compiles the package's light models. Exit status 77 (skipped) where the package is missing."""

import contextlib
import glob
import io
import os
import sys
import tempfile
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "from_onnx")]

try:
    import onnx
except ImportError:
    print(f"skipped: the package onnx is not installed for {sys.executable}")
    sys.exit(77)
import fusec
import fusec.__main__
import ml_dtypes
import node_tests
import numpy as np
from import_errors import Errors  # noqa: F401 (unittest runs it)
from models import CACHE
from onnx import TensorProto, helper
from text_models import add_initializer, call, model, ops

SAMPLE = 100
FULL = False


class Weights(unittest.TestCase):
    def linear(self):
        weight = np.arange(12 * 16, dtype=np.float32).reshape(12, 16) / 100
        made = model("g (float[n, 12] x) => (float[n, 16] y) { y = MatMul(x, w) }")
        return add_initializer(made, "w", weight), weight

    def test_initializers_are_weights_by_name(self):
        made, weight = self.linear()
        imported = fusec.from_onnx(made)
        self.assertEqual(list(imported.weights), ["w"])
        self.assertFalse(imported.weights["w"].flags.owndata)  # a view of what the model holds
        x = np.ones((3, 12), np.float32)
        np.testing.assert_allclose(call(imported, x, device="emulator"), x @ weight, rtol=1e-5)

    def test_external_data_are_mapped(self):
        made, weight = self.linear()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.onnx")
            onnx.save(made, path, save_as_external_data=True, location="m.data", size_threshold=0)
            imported = fusec.from_onnx(path)
            mapped = imported.weights["w"]
            while mapped is not None and not isinstance(mapped, np.memmap):
                mapped = mapped.base
            self.assertIsInstance(mapped, np.memmap)
            x = np.ones((2, 12), np.float32)
            np.testing.assert_allclose(call(imported, x), x @ weight, rtol=1e-5)
            os.truncate(os.path.join(folder, "m.data"), 8)
            with self.assertRaisesRegex(fusec.InputError, "bytes at 0 of 'm.data', which has 8"):
                fusec.from_onnx(path)

    def test_external_data_stay_in_the_folder(self):
        made, _ = self.linear()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.onnx")
            onnx.save(made, path, save_as_external_data=True, location="m.data", size_threshold=0)
            loaded = onnx.load(path, load_external_data=False)
            loaded.graph.initializer[0].external_data[0].value = "../m.data"
            with open(path, "wb") as file:
                file.write(loaded.SerializeToString())
            with self.assertRaisesRegex(fusec.InputError, "expected a file in the model's folder"):
                fusec.from_onnx(path)

    def test_saved_model_reads_its_weights(self):
        made, weight = self.linear()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.json")
            fusec.from_onnx(made).save(path)
            x = np.ones((2, 12), np.float32)
            np.testing.assert_allclose(fusec.compile(path, no_nvrtc=True)(x), x @ weight, rtol=1e-5)

    def test_saved_transpose_of_a_square_weight(self):
        """Folded, it is a view of the same memory with the same shape."""
        made = model("""g (float[2, 9] x) => (float[2, 9] y, float[2, 9] z) {
            turned = Constant<value = int64[2] {9, 1}>()
            row = Constant<value = float[1, 9] {0, 1, 2, 3, 4, 5, 6, 7, 8}>()
            a = Tile(row, turned) b = Transpose<perm = [1, 0]>(a) y = MatMul(x, a) z = MatMul(x, b)
        }""")
        x = np.random.rand(2, 9).astype(np.float32)
        weight = np.tile(np.arange(9, dtype=np.float32), (9, 1))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.json")
            fusec.from_onnx(made).save(path)
            y, z = fusec.compile(path, no_nvrtc=True)(x)
        np.testing.assert_allclose(y, x @ weight, rtol=1e-5)
        np.testing.assert_allclose(z, x @ weight.T, rtol=1e-5)

    def test_command_line(self):
        made, weight = self.linear()
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
            source, path = os.path.join(folder, "m.onnx"), os.path.join(folder, "m.json")
            onnx.save(made, source)
            self.assertEqual(fusec.__main__.main(["import", source, "-o", path, "--dim", "n=2", "--types"]), 0)
            self.assertEqual(fusec.read(path).inputs[0].shape, [2, 12])
            self.assertEqual(fusec.__main__.main(["import", source, "-o", path, "--dim", "n=few"]), 2)
            self.assertEqual(fusec.__main__.main(["import", source, "-o", path, "--inputs", "float32[2]"]), 2)
            self.assertEqual(fusec.__main__.main(["import", source, "-o", path, "--elements", "y=[1]"]), 1)


class Sizes(unittest.TestCase):
    FLATTENED = """g (float[batch, tokens, 8] x) => (float[a, b] y) {
        shape = Shape(x)
        zero = Constant<value = int64 {0}>()
        one = Constant<value = int64 {1}>()
        axes = Constant<value = int64[1] {0}>()
        batch = Gather(shape, zero)
        tokens = Gather(shape, one)
        rows = Mul(batch, tokens)
        first = Unsqueeze(rows, axes)
        rest = Constant<value = int64[1] {-1}>()
        target = Concat<axis = 0>(first, rest)
        y = Reshape(x, target)
    }"""

    def test_shape_arithmetic_stays_symbolic(self):
        imported = fusec.from_onnx(model(self.FLATTENED))
        self.assertEqual(ops(imported), ["reshape"])
        self.assertEqual(imported.model.outputs[0].shape, ["batch*tokens", 8])
        x = np.random.rand(3, 5, 8).astype(np.float32)
        np.testing.assert_array_equal(call(imported, x), x.reshape(15, 8))

    def test_dims_fix_sizes_and_bounds(self):
        imported = fusec.from_onnx(model(self.FLATTENED), dims={"batch": 4, "tokens": (2, 64)})
        self.assertEqual(imported.model.inputs[0].shape, [4, "tokens", 8])
        self.assertEqual(imported._file.symbols, {"tokens": {"min": 2, "max": 64}})
        with self.assertRaisesRegex(fusec.InputError, "dims=: found 'rows', expected one of"):
            fusec.from_onnx(model(self.FLATTENED), dims={"rows": 4})

    def test_inputs_give_shapes(self):
        imported = fusec.from_onnx(model(self.FLATTENED), inputs={"x": (2, "words", 8)})
        self.assertEqual(imported.model.inputs[0].shape, [2, "words", 8])

    def test_remaining_size_cancels(self):
        made = model("""g (float[b, t, 12] x) => (float[p, q, r, s] y) {
            shape = Constant<value = int64[4] {0, 0, 3, -1}>() y = Reshape(x, shape)
        }""")
        self.assertEqual(fusec.from_onnx(made).model.outputs[0].shape, ["b", "t", 3, 4])

    def test_sizes_in_32_bits(self):
        made = model("""g (float[n, m] x) => (int32[2] y, int32[n] r) {
            s = Shape(x) i = Cast<to = 6>(s) one = Constant<value = int32[2] {1, 1}>() y = Add(i, one)
            zero = Constant<value = int32 {0}>() step = Constant<value = int32 {1}>() at = Constant<value = int64 {0}>()
            n = Gather(i, at) r = Range(zero, n, step)
        }""")
        y, r = call(made, np.zeros((3, 5), np.float32))
        self.assertEqual((y.dtype, y.tolist(), r.dtype, r.tolist()), (np.int32, [4, 6], np.int32, [0, 1, 2]))

    def test_bounds_decide_comparisons(self):
        """torch.Tensor.expand(b, -1, -1) as PyTorch exports it: sizes of -1 are replaced by 1."""
        made = model("""g (float[b, 3] x, float[1, 1, 4] token) => (float[b, 1, 4] y) {
            shape = Shape<start = 0, end = 1>(x) keep = Constant<value = int64[2] {-1, -1}>()
            wanted = Concat<axis = 0>(shape, keep) rank = Shape(wanted)
            ones = ConstantOfShape<value = int64[1] {1}>(rank) minus = Constant<value = int64 {-1}>()
            kept = Mul(ones, minus) is = Equal(wanted, kept) final = Where(is, ones, wanted) y = Expand(token, final)
        }""")
        self.assertEqual(fusec.from_onnx(made).model.outputs[0].shape, ["b", 1, 4])
        self.assertEqual(fusec.from_onnx(made, dims={"b": (0, 8)}).model.outputs[0].shape, ["b", 1, 4])

    def test_sizes_as_values(self):
        made = model("""g (float[n] x) => (float[1] y) {
            s = Size(x) f = Cast<to = 1>(s) m = ReduceSum(x) y = Div(m, f)
        }""")
        np.testing.assert_allclose(call(made, np.arange(5, dtype=np.float32)), [2.0])

    def test_dimension_expressions(self):
        made = model("""g (float[past, 2] p, float[new, 2] x, float[t, 2] z) => (float[s, 2] y) {
            y = Concat<axis = 0>(p, x)
        }""")
        made.graph.input[2].type.tensor_type.shape.dim[0].dim_param = "past + new"
        imported = fusec.from_onnx(made)
        self.assertEqual(imported.model.outputs[0].shape, ["past+new", 2])
        self.assertEqual(imported.model.inputs[2].shape, ["past+new", 2])
        self.assertEqual(set(imported._file.symbols), {"past", "new"})


class ElementsThatDecideShapes(unittest.TestCase):
    MODEL = "g (float[2, 6] x, int64[2] shape) => (float[a, b] y) { z = Reshape(x, shape) y = Relu(z) }"

    def test_example_arrays_are_fixed(self):
        shape = np.array([3, 4])
        imported = fusec.from_onnx(model(self.MODEL), inputs={"shape": shape})
        x = np.random.rand(2, 6).astype(np.float32)
        compiled = fusec.compile(imported, no_nvrtc=True)
        self.assertEqual(compiled(x, shape).shape, (3, 4))
        with self.assertRaisesRegex(fusec.InputError, "whose elements decide a shape"):
            compiled(x, np.array([4, 3]))

    def test_without_them_each_set_is_compiled(self):
        imported = fusec.from_onnx(model(self.MODEL))
        compiled = fusec.compile(imported, no_nvrtc=True)
        x = np.random.rand(2, 6).astype(np.float32)
        with self.assertRaisesRegex(fusec.UsageError, "nothing has been compiled"):
            compiled.source
        for shape in ([3, 4], [12, 1], [3, 4]):
            np.testing.assert_array_equal(compiled(x, np.array(shape)), x.reshape(shape))
            self.assertEqual([int(n) for n in compiled.manifest["results"][0]["shape"]], shape)
        self.assertEqual(len(compiled._modules), 2)
        self.assertIn("__global__", compiled.source)
        with self.assertRaisesRegex(fusec.InputError, r"inputs=\{name: array\}"):
            imported.save("never.json")

    def test_weights_of_each_set(self):
        made = model("g (float[2, 6] x, int64[2] shape) => (float[a, b] y) { z = Reshape(x, shape) y = Mul(z, w) }")
        made.graph.initializer.append(onnx.numpy_helper.from_array(np.full((3, 4), 2, np.float32), "w"))
        x, shape, three = np.random.rand(2, 6).astype(np.float32), np.array([3, 4]), np.full((3, 4), 3, np.float32)
        compiled = fusec.compile(fusec.from_onnx(made), no_nvrtc=True)
        np.testing.assert_array_equal(compiled(x, shape), 2 * x.reshape(3, 4))
        with self.assertRaisesRegex(TypeError, "no constant 'wrong'"):
            compiled.bind(w=three, wrong=three)
        np.testing.assert_array_equal(compiled(x, shape), 2 * x.reshape(3, 4))
        np.testing.assert_array_equal(compiled.bind(w=three)(x, shape), 3 * x.reshape(3, 4))
        later = fusec.compile(fusec.from_onnx(made), no_nvrtc=True, weights={"w": three})
        np.testing.assert_array_equal(later(x, shape), 3 * x.reshape(3, 4))
        with self.assertRaisesRegex(TypeError, "no constant 'wrong'"):
            fusec.compile(fusec.from_onnx(made), no_nvrtc=True).bind(wrong=three)

    def test_weights_of_a_branch_that_is_not_taken(self):
        made = model("""g (float[3] x, bool c) => (float[n] y) {
            y = If(c) <then_branch = a () => (float[3] u) { u = Add(x, w_then) },
                       else_branch = b () => (float[k] v) { v = c.One(x, w_else) }>
        }""", domains=', "c" : 1')
        for name, elements in (("w_then", np.full(3, 2, np.float32)), ("w_else", np.ones(3, bool))):
            made.graph.initializer.append(onnx.numpy_helper.from_array(elements, name))
        x, three = np.random.rand(3).astype(np.float32), np.full(3, 3, np.float32)
        weights = {"w_then": three, "w_else": np.zeros(3, bool)}
        compiled = fusec.compile(fusec.from_onnx(made), no_nvrtc=True, weights=weights)
        for _ in range(2):
            np.testing.assert_array_equal(compiled(x, np.array(True)), x + 3)

    def test_the_least_recently_used_set_goes(self):
        compiled = fusec.compile(fusec.from_onnx(model(self.MODEL)), no_nvrtc=True)
        x = np.random.rand(2, 6).astype(np.float32)
        shapes = [[1, 12], [2, 6], [3, 4], [4, 3]]
        with mock.patch("fusec._shape_tensors.MOST_MODULES", 2):
            made = []
            for shape in (0, 1, 0, 2, 0, 1):  # the 2 takes the place of the 1
                compiled(x, np.array(shapes[shape]))
                made.append(compiled._last)
        self.assertEqual(len(compiled._modules), 2)
        self.assertIs(made[4], made[0])
        self.assertIsNot(made[5], made[1])


class ControlFlow(unittest.TestCase):
    def test_constant_condition(self):
        made = model("""g (float[n] x) => (float[n] y) {
            s = Shape(x) r = Size(s) one = Constant<value = int64 {1}>() c = Equal(r, one)
            y = If(c) <
                then_branch = t () => (float[n] a) { a = Relu(x) }, else_branch = e () => (float[n] b) { b = Neg(x) }>
        }""")
        self.assertEqual(ops(fusec.from_onnx(made)), ["relu"])

    def test_condition_at_run_time_chooses(self):
        made = model("""g (bool c, float[n] x) => (float[n] y) {
            y = If(c) <
                then_branch = t () => (float[n] a) { a = Exp(x) }, else_branch = e () => (float[n] b) { b = Neg(x) }>
        }""")
        x = np.ones(3, np.float32)
        np.testing.assert_allclose(call(made, np.array(False), x), -x)
        np.testing.assert_allclose(call(made, np.array(True), x), np.exp(x), rtol=1e-6)

    def test_loop_is_unrolled(self):
        made = model("""g (float[4] x) => (float[4] y, float[3, 4] each) {
            trips = Constant<value = int64 {3}>() go = Constant<value = bool {1}>()
            y, each = Loop(trips, go, x) <body = b (int64 i, bool c, float[4] s) => (bool d, float[4] t, float[4] u) {
                d = Identity(c) f = Cast<to = 1>(i) t = Add(s, f) u = Mul(t, t)
            }>
        }""")
        x = np.arange(4, dtype=np.float32)
        y, each = call(made, x)
        np.testing.assert_allclose(y, x + 3)
        np.testing.assert_allclose(each, np.stack([x, x + 1, x + 3]) ** 2)

    IMPOSSIBLE = """g (bool c, float[4] x) => (float[4] y) {
        y = If(c) <
            then_branch = t () => (float[4] a) { a = Relu(x) },
            else_branch = e () => (float[k] b) { n = NonZero(x) b = Cast<to = 1>(n) }>
    }"""

    def test_example_takes_a_branch_where_the_other_is_impossible(self):
        made = model(self.IMPOSSIBLE)
        self.assertEqual(ops(fusec.from_onnx(made, inputs={"c": np.array(True)})), ["relu"])
        compiled = fusec.compile(fusec.from_onnx(made), no_nvrtc=True)
        x = np.array([-1, 0, 1, 2], np.float32)
        np.testing.assert_array_equal(compiled(np.array(True), x), np.maximum(x, 0))
        with self.assertRaisesRegex(fusec.InputError, r"1 operator .*\n  ai\.onnx\.NonZero"):
            fusec.from_onnx(made, inputs={"c": np.array(False)})

    def test_loop_of_symbolic_length(self):
        made = model("""g (float[k, 3] x, float[3] s) => (float[3] y) {
            shape = Shape(x) zero = Constant<value = int64 {0}>() trips = Gather(shape, zero)
            go = Constant<value = bool {1}>()
            y = Loop(trips, go, s) <body = b (int64 i, bool c, float[3] v) => (bool d, float[3] w) {
                d = Identity(c) r = Gather(x, i) w = Add(v, r)
            }>
        }""")
        with self.assertRaisesRegex(fusec.InputError, r"trips has symbolic sizes \[k\]: fix them with dims="):
            fusec.from_onnx(made)
        self.assertEqual(ops(fusec.from_onnx(made, dims={"k": 2})), ["select", "add", "select", "add"])

    def test_scan(self):
        made = model("""g (float[2] s, float[3, 2] x) => (float[2] t, float[3, 2] y) {
            t, y = Scan <num_scan_inputs = 1, body = b (float[2] s0, float[2] x0) => (float[2] s1, float[2] y0) {
                s1 = Add(s0, x0) y0 = Identity(s1)
            }> (s, x)
        }""")
        x = np.random.rand(3, 2).astype(np.float32)
        total, running = call(made, np.zeros(2, np.float32), x)
        np.testing.assert_allclose(running, np.cumsum(x, 0), rtol=1e-6)
        np.testing.assert_allclose(total, x.sum(0), rtol=1e-6)


class Functions(unittest.TestCase):
    def test_functions_of_the_model_are_inlined(self):
        made = model(
            "g (float[n] x) => (float[n] y) { y = mine.scaled<factor = 3.0>(x) }",
            domains=', "mine" : 1',
            functions="""<domain: "mine", opset_import: ["" : 18]>
            scaled <factor> (a) => (b) { f = Constant<value_float: float = @factor>() s = Mul(a, f) b = Relu(s) }""",
        )
        imported = fusec.from_onnx(made)
        self.assertEqual(ops(imported), ["mul", "relu"])
        np.testing.assert_allclose(call(imported, np.array([-1, 2], np.float32)), [0, 6])

    def test_function_that_calls_itself(self):
        made = model(
            "g (float[n] x) => (float[n] y) { y = mine.again(x) }",
            domains=', "mine" : 1',
            functions='<domain: "mine", opset_import: ["" : 18, "mine" : 1]> again (a) => (b) { b = mine.again(a) }',
        )
        with self.assertRaisesRegex(fusec.InputError, "1 error .*\n.*the function calls itself"):
            fusec.from_onnx(made)

    def test_bodies_that_onnx_defines(self):
        made = model("g (float[n] x) => (float[n] y) { y = Shrink<lambd = 0.5, bias = 0.1>(x) }")
        np.testing.assert_allclose(call(made, np.array([-1, 0.2, 2], np.float32)), [-0.9, 0, 1.9], rtol=1e-6)


class Quantization(unittest.TestCase):
    def test_quantized_and_back(self):
        made = model("""g (float[n, 8] x) => (float[n, 8] y) {
            s = Constant<value = float {0.1}>() z = Constant<value = int8 {3}>()
            q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z)
        }""")
        self.assertEqual(ops(fusec.from_onnx(made)), ["quantize", "dequantize"])
        x = np.random.rand(4, 8).astype(np.float32)
        np.testing.assert_allclose(call(made, x, device="emulator"), np.round(x / 0.1) * 0.1, atol=1e-5)

    def test_packed_weights_in_blocks(self):
        text = """g (float[n, 32] x) => (float[n, 16] y) {
            w = DequantizeLinear<axis = 0, block_size = 16>(q, s) y = MatMul(x, w)
        }"""
        made = model(text, 21)
        q = np.random.randint(-8, 8, (32, 16)).astype(ml_dtypes.int4)
        scale = np.random.rand(2, 16).astype(np.float32)
        imported = fusec.from_onnx(add_initializer(add_initializer(made, "q", q), "s", scale))
        self.assertEqual(imported.weights["q"].nbytes, 32 * 16 // 2)
        x = np.random.rand(3, 32).astype(np.float32)
        wanted = x @ (q.astype(np.float32) * np.repeat(scale, 16, 0))
        np.testing.assert_allclose(call(imported, x, device="emulator"), wanted, rtol=1e-4)
        with tempfile.TemporaryDirectory() as folder:
            imported.save(os.path.join(folder, "m.json"))
            saved = fusec.compile(os.path.join(folder, "m.json"), no_nvrtc=True)
            np.testing.assert_allclose(saved(x), wanted, rtol=1e-4)

    def test_narrow_inputs_and_outputs(self):
        """4-bit tensors come as ml_dtypes has them, also with an odd last dimension."""
        made = helper.make_model(
            helper.make_graph(
                [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.UINT4)],
                "g",
                [helper.make_tensor_value_info("x", TensorProto.INT4, [3, 3])],
                [helper.make_tensor_value_info("y", TensorProto.UINT4, [3, 3])],
            ),
            opset_imports=[helper.make_opsetid("", 21)],
        )
        x = np.arange(9).reshape(3, 3).clip(0, 7).astype(ml_dtypes.int4)
        y = call(made, x)
        self.assertEqual(y.dtype, ml_dtypes.uint4)
        np.testing.assert_array_equal(y.astype(int), x.astype(int))


class Dtypes(unittest.TestCase):
    def test_halves(self):
        for name, dtype in (("float16", np.float16), ("bfloat16", ml_dtypes.bfloat16)):
            made = model(f"g ({name}[n] x) => ({name}[n] y) {{ z = Exp(x) y = Add(z, x) }}")
            x = np.array([0.5, 1, 2], dtype)
            y = call(made, x, device="emulator")
            self.assertEqual(y.dtype, dtype)
            wide = x.astype(np.float32)
            np.testing.assert_allclose(y.astype(np.float32), np.exp(wide) + wide, rtol=1e-2)

    def test_sequences(self):
        made = model("""g (seq(float[n]) s) => (float[m] y, seq(float[n]) t) {
            y = ConcatFromSequence<axis = 0>(s) t = SequenceInsert(s, y)
        }""")
        a, b = np.ones(2, np.float32), np.zeros(3, np.float32)
        joined, extended = call(made, [a, b])
        np.testing.assert_array_equal(joined, [1, 1, 0, 0, 0])
        self.assertEqual([x.shape for x in extended], [(2,), (3,), (5,)])


class NodeTests(unittest.TestCase):
    """The package's tests. Those that the importer cannot pass are listed in docs/onnx.md."""

    def test_node_tests(self):
        names = node_tests.names()
        chosen = names if FULL else names[:: len(names) // SAMPLE][:SAMPLE]
        failed = {}
        for name in chosen:
            try:
                node_tests.run(node_tests.tests()[name], CACHE)
            except Exception as error:
                failed[name] = str(error)[:300]
        self.assertLessEqual(len(failed), 0.05 * len(chosen), "\n".join(f"{n}: {e}" for n, e in failed.items()))


class LightModels(unittest.TestCase):
    def test_light_models(self):
        if not FULL:
            self.skipTest("the full tier alone")
        folder = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data", "light")
        paths = sorted(glob.glob(os.path.join(folder, "*.onnx")))
        self.assertTrue(paths)
        for path in paths:
            with self.subTest(os.path.basename(path)):
                compiled = fusec.compile(fusec.from_onnx(path), no_nvrtc=True)
                self.assertGreater(len(compiled.groups), 3)


if __name__ == "__main__":
    FULL = "--tier=full" in sys.argv
    unittest.main(argv=[a for a in sys.argv if not a.startswith("--tier=")])
