"""What fusec.from_onnx refuses, and how it says so."""

import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import fusec
import numpy as np
import onnx
from onnx import TensorProto, helper
from text_models import call, model, ops


class Errors(unittest.TestCase):
    TWO = """g (float[4] x) => (int64[r, c] y, float[4] u, float[4] v) {
        y = NonZero(x) u = other.Strange(x) w = other.Strange(u) v = Relu(w)
    }"""

    def test_all_unmapped_nodes_at_once(self):
        with self.assertRaises(fusec.InputError) as caught:
            fusec.from_onnx(model(self.TWO, domains=', "other" : 2'))
        text = str(caught.exception)
        self.assertIn("2 operators of the ONNX model without a counterpart", text)
        self.assertRegex(text, r'ai\.onnx\.NonZero \(version 13\)  1 node, for example "y": no such operator')
        self.assertRegex(text, r"other\.Strange \(version 2\) +2 nodes")
        self.assertIn("allow_custom=True", text)

    def test_unmapped_nodes_behind_unmapped_ones(self):
        made = model(
            "g (float[4] x) => (float[4] y) { a = c.One(x) b = c.Two(a) r = Relu(b) d = c.One(r) y = c.Three(d) }",
            domains=', "c" : 1',
        )
        for options in ({}, {"allow_custom": True}):  # but c.Three is typed: it is the output
            with self.assertRaises(fusec.InputError) as caught:
                fusec.from_onnx(made, **options)
            for line in (r"c\.One \(version 1\) +2 nodes", r"c\.Two \(version 1\) +1 node"):
                self.assertRegex(str(caught.exception), line)
            self.assertEqual("c.Three" in str(caught.exception), not options)

    def test_elements_that_are_needed_hide_what_is_behind_them(self):
        """NonZero is folded once they are known."""
        made = model("""g (float[2, 6] x, int64[1] s) => (float[2, 6] y) {
            ones = ConstantOfShape<value = int64[1] {1}>(s) at = NonZero(ones) flat = Squeeze(at) y = Gather(x, flat)
        }""")
        compiled = fusec.compile(fusec.from_onnx(made), no_nvrtc=True)
        x = np.random.rand(2, 6).astype(np.float32)
        np.testing.assert_array_equal(compiled(x, np.array([2])), x)

    def test_allow_custom(self):
        made = model(self.TWO, domains=', "other" : 2')
        made.graph.value_info.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [4]))
        imported = fusec.from_onnx(made, allow_custom=True, inputs={"x": [4]})
        self.assertIn("other.Strange", ops(imported))
        self.assertGreaterEqual(len(fusec.partition(imported.model)), 2)

    def test_shapes_by_elements_as_custom_ops(self):
        made = model("g (float[2, 6] x, int64[2] s) => (float[3, 4] y) { z = Reshape(x, s) y = Relu(z) }")
        made.graph.value_info.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, [3, 4]))
        self.assertEqual(ops(fusec.from_onnx(made, allow_custom=True)), ["onnx.Reshape", "relu"])

    def test_sizes_of_custom_ops_that_depend_on_elements(self):
        made = model("""g (float[3, 4] x) => (float[2, k] y, float[u] w) {
            z = NonZero(x) y = Cast<to = 1>(z) v, at = Unique(x) w = Relu(v)
        }""")
        imported = fusec.from_onnx(made, allow_custom=True)
        self.assertEqual(ops(imported), ["onnx.NonZero", "cast", "onnx.Unique", "relu"])
        self.assertEqual(imported.model.outputs[0].shape, [2, "z_dim1"])

    def test_unknown_types_of_custom_ops(self):
        made = model("g (float[4] x) => (float[4] y) { t = other.Strange(x) y = Relu(t) }", domains=', "other" : 1')
        with self.assertRaisesRegex(fusec.InputError, "declare it in the graph's value_info"):
            fusec.from_onnx(made, allow_custom=True)

    def test_invalid_models(self):
        for node, reason in (
            ("y = Softmax<axis = 7>(x)", "'axis' must be in"),
            ("y = LogSoftmax<axis = -3>(x)", "'axis' must be in"),
            ("y = Hardmax<axis = 4>(x)", "'axis' must be in"),
            ('y = Softmax<axis = "a">(x)', "attribute type"),
            ("y = Gather<axis = 5>(x, seven)", "axis must be in"),
            ("y = Gather(x, seven)", "the index 7 of a dimension of 3"),
            ("y = GatherND(x, seven)", "the index 7 of a dimension of 3"),
            ("y = ReduceSum(x, seven)", "axis must be in"),
            ("y = ArgMax<axis = 4>(x)", "'axis' must be in"),
            ("y = CumSum(x, seven)", "the axis 7 of a tensor of rank 2"),
            ("y = LayerNormalization<axis = 4>(x, x)", "the axis 4 of a tensor of rank 2"),
            ("y = Unsqueeze(x, seven)", "Unexpected axis value"),
            ("y = Flatten<axis = 5>(x)", "Invalid value"),
            ("y = Expand(x, seven)", "Incompatible dimensions"),
            ("y = Reshape(x, seven)", r"the shape \[3, 4\] has 12 elements, \[7\] has not"),
            ("y = Add(x, seven)", "inconsistent type"),
            ("y = MatMul(x, x)", "Incompatible dimensions"),
            ("y = Relu(x, x)", "input size 2 not in range"),
            ("y = Relu<foo = 1>(x)", "Unrecognized attribute"),
            ("y = Relu(gone)", "no value of the name 'gone'"),
        ):
            with self.subTest(node), self.assertRaises(fusec.InputError) as caught:
                fusec.from_onnx(model(f"g (float[3, 4] x) => (y) <int64[1] seven = {{7}}> {{ {node} }}", opset=21))
            text = f'^1 error in the ONNX model:\n.* 1 node, for example "y": .*{reason}'
            self.assertRegex(str(caught.exception), text)
            self.assertNotIn("hint", str(caught.exception))

    def test_output_of_another_type(self):
        with self.assertRaisesRegex(fusec.InputError, "declared as INT64, and computed as FLOAT"):
            fusec.from_onnx(model("g (float[4] x) => (int64[4] y) { y = Relu(x) }"))

    def test_axis_as_a_list_of_one(self):
        made = model("g (float[4] x) => (float[4] y) <int64[1] axis = {0}> { y = CumSum(x, axis) }")
        np.testing.assert_array_equal(call(made, np.ones(4, np.float32)), [1, 2, 3, 4])

    def test_models_without_a_tensor_as_output(self):
        with self.assertRaisesRegex(fusec.InputError, "found a graph without outputs"):
            fusec.from_onnx(onnx.ModelProto())  # as an empty file is read
        made = model("g (float[4] x) => (seq(float[4]) y) { y = SequenceEmpty<dtype = 1>() }")
        with self.assertRaisesRegex(fusec.InputError, "only empty sequences"):
            fusec.from_onnx(made)

    def test_shapes_that_do_not_fit(self):
        made = model("g (float[n, 4] x, float[4, m] w) => (float[n, m] y) { y = MatMul(x, w) }")
        with self.assertRaisesRegex(fusec.InputError, r"^inputs\['x'\]: found the shape \[2\], expected 2 dimensions"):
            fusec.from_onnx(made, inputs={"x": [2]})
        with self.assertRaisesRegex(fusec.InputError, r"^1 error .*(\n.*)+inputs= and dims=, which may be wrong"):
            fusec.from_onnx(made, inputs={"w": (5, 4)})
        with self.assertRaisesRegex(fusec.InputError, "^dims=: found 3, expected a dict"):
            fusec.from_onnx(made, dims=3)

    def test_calls_that_do_not_fit(self):
        made = model("g (float[4] x) => (float[4] y) { y = Relu(x) }")
        compiled = fusec.compile(fusec.from_onnx(made), no_nvrtc=True)
        x = np.ones(4, np.float32)
        for arguments, named in (((), {}), ((x, x), {}), ((x,), {"x": x}), ((), {"z": x})):
            with self.assertRaises(TypeError):
                compiled(*arguments, **named)
        with self.assertRaisesRegex(fusec.InputError, "found 'z', expected one of"):
            fusec.from_onnx(made, inputs={"z": x})

    def test_files(self):
        with self.assertRaisesRegex(fusec.InputError, "no such file"):
            fusec.from_onnx("/nowhere/m.onnx")
        with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
            file.write(b"no model at all")
            file.flush()
            with self.assertRaisesRegex(fusec.InputError, "cannot be read as an ONNX model"):
                fusec.from_onnx(file.name)

    def test_without_the_package(self):
        program = "import fusec, sys; assert 'onnx' not in sys.modules"
        subprocess.run([sys.executable, "-c", program], check=True)
        hidden = {name: None for name in sys.modules if name == "onnx" or name.startswith(("onnx.", "fusec._onnx"))}
        with mock.patch.dict(sys.modules, hidden), self.assertRaisesRegex(fusec.PlatformError, r"fusec\[onnx\]"):
            for name in [n for n in sys.modules if n.startswith("fusec._onnx")]:
                del sys.modules[name]
            fusec.from_onnx("m.onnx")
