"""Running modules in host memory: on the emulator and the reference, with NumPy arrays and with DLPack."""
import json
import os
import pathlib
import struct
import tempfile
import threading
import unittest
import warnings

import fusec
import models
import numpy as np

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None


def silu(x):
    return x / (1 + np.exp(-x))


class Calls(unittest.TestCase):
    def setUp(self):
        self.random = np.random.default_rng(0)

    def array(self, *shape):
        return self.random.standard_normal(shape).astype(np.float32)

    def test_emulator_and_reference(self):
        gate, up = self.array(5, 16), self.array(5, 16)
        for device in (None, "emulator", "reference"):
            y = models.compiled("gated")(gate, up, device=device)
            self.assertEqual((y.shape, y.dtype), ((5, 16), np.float32))
            np.testing.assert_allclose(y, silu(gate) * up, rtol=1e-5, atol=1e-6)

    def test_by_name_and_other_sizes(self):
        for tokens in (1, 3, 64):
            gate, up = self.array(tokens, 16), self.array(tokens, 16)
            y = models.compiled("gated")(up=up, gate=gate)
            np.testing.assert_allclose(y, silu(gate) * up, rtol=1e-5, atol=1e-6)

    def test_out(self):
        gate, up, y = self.array(4, 16), self.array(4, 16), np.empty((4, 16), np.float32)
        module = models.compiled("gated")
        for out in (y, [y], {"y": y}):
            y[:] = 0
            self.assertIs(module(gate, up, out=out), y)
            np.testing.assert_allclose(y, silu(gate) * up, rtol=1e-5, atol=1e-6)

    def test_what_is_not_dense_is_copied(self):
        gate, up = self.array(16, 8).T, self.array(16, 16)[::2]
        y = models.compiled("gated")(gate, up)
        np.testing.assert_allclose(y, silu(gate) * up, rtol=1e-5, atol=1e-6)

    def test_weights(self):
        x, weight, bias = self.array(4, 16), self.array(8, 16), self.array(8)
        expected = np.maximum(x @ weight.T + bias, 0)
        module = fusec.compile(models.linear(), arch="sm_80", weights={"weight": weight}, cache_dir=models.CACHE)
        self.assertEqual(module.weight_names, ("weight", "bias"))
        with self.assertRaisesRegex(TypeError, "'bias'; bind"):
            module(x)
        for device in ("emulator", "reference"):
            y, total = module.bind(bias=bias)(x, device=device)
            np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(total, expected.sum(1), rtol=1e-4, atol=1e-4)
        with self.assertRaisesRegex(TypeError, "no constant 'wieght'"):
            module.bind(wieght=weight)

    def test_prepared(self):
        x, weight = self.array(4, 4), self.array(4, 4)
        y = models.compiled("prepared")(x, weight=weight)
        expected = x + np.exp(weight) @ np.arange(16, dtype=np.float32).reshape(4, 4)
        np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4)

    def test_aliases(self):
        state, x = np.ones(8, np.float32), np.arange(8, dtype=np.float32)
        self.assertIs(models.compiled("cache")(state, x), state)
        np.testing.assert_array_equal(state, 1 + x)

    @unittest.skipUnless(ml_dtypes, "ml_dtypes is not installed")
    def test_bfloat16(self):
        gate, up = (self.array(4, 16).astype(ml_dtypes.bfloat16) for _ in range(2))
        y = models.compiled("gated_bfloat16")(gate, up)
        self.assertEqual(y.dtype, ml_dtypes.bfloat16)
        expected = silu(gate.astype(np.float32)) * up.astype(np.float32)
        np.testing.assert_allclose(y.astype(np.float32), expected, rtol=2e-2, atol=2e-2)

    def test_dlpack(self):
        class Lent:
            """What speaks DLPack and nothing else."""

            def __init__(self, array):
                self.array = array

            def __dlpack__(self, **options):
                return self.array.__dlpack__(**options)

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

        gate, up = self.array(4, 16), self.array(4, 16)
        y = models.compiled("gated")(Lent(gate), Lent(up))
        np.testing.assert_allclose(y, silu(gate) * up, rtol=1e-5, atol=1e-6)

    def test_inputs_with_the_names_of_keywords(self):
        x, y = np.array([-1, 1], np.float32), np.empty(2, np.float32)
        for name in ("device", "out", "self", "tensors", "named"):
            b = fusec.ModelBuilder("m")
            b.output(b.op("relu", b.input(name, "float32", [2]), name="y"))
            module = fusec.compile(b.build(), no_nvrtc=True)
            np.testing.assert_array_equal(module(**{name: x}), [0, 1])
            np.testing.assert_array_equal(module(x, device="reference"), [0, 1])
            self.assertIs(module(x, out={"y": y}), y)

    def test_save_and_load(self):
        gate, up = self.array(4, 16), self.array(4, 16)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.fusec")
            module = models.compiled("gated")
            module.save(path)
            loaded = fusec.load(path)
            self.assertEqual(os.listdir(folder), ["m.fusec"])
        for product in ("source", "manifest", "partition", "plan", "ledger", "report", "ptx", "cubin"):
            self.assertEqual(getattr(loaded, product), getattr(module, product), product)
        self.assertEqual(repr(loaded), repr(module))
        for device in ("emulator", "reference"):
            np.testing.assert_array_equal(loaded(gate, up, device=device), module(gate, up, device=device))
        with self.assertRaisesRegex(fusec.UsageError, "compile the model again"):
            loaded.explain()
        with self.assertRaisesRegex(fusec.InputError, "test_module.py: this is no module"):
            fusec.load(__file__)


class Saving(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.module = models.compiled("gated")

    def path(self, name):
        return os.path.join(self.folder, name)

    def test_a_damaged_file(self):
        path = pathlib.Path(self.path("m.fusec"))
        self.module.save(path)
        whole, taken = path.read_bytes(), 0
        for place in range(0, len(whole), max(1, len(whole) // 300)):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
            try:
                loaded = fusec.load(path)
            except fusec.InputError as error:
                self.assertEqual(error.file, str(path))
                continue
            taken += 1  # a time stamp or the like
            self.assertEqual((loaded.source, loaded.ptx, loaded.cubin), (self.module.source, self.module.ptx, self.module.cubin))
            self.assertEqual((loaded.manifest, loaded.plan), (self.module.manifest, self.module.plan))
        self.assertLess(taken, 100)
        for length in (0, 10, len(whole) // 2, len(whole) - 5):
            path.write_bytes(whole[:length])
            with self.assertRaises(fusec.InputError):
                fusec.load(path)

    def test_weights_that_were_moved(self):
        bias = struct.pack("<8f", *range(8))
        head = json.dumps({"bias": {"dtype": "F32", "shape": [8], "data_offsets": [0, 32]}}).encode()
        with open(self.path("w.safetensors"), "wb") as file:
            file.write(struct.pack("<Q", len(head)) + head + bias)
        model = json.loads(models.linear().to_json())
        model["constants"][1]["safetensors"] = {"file": "w.safetensors", "tensor": "bias"}
        with open(self.path("m.json"), "w") as file:
            json.dump(model, file)
        fusec.compile(self.path("m.json"), no_nvrtc=True, name="other").save(self.path("m.fusec"))
        self.assertEqual(fusec.load(self.path("m.fusec")).weight_names, ("weight",))
        os.rename(self.path("w.safetensors"), self.path("elsewhere"))
        with self.assertWarnsRegex(UserWarning, "w.safetensors.*bind.. must give weights: 'weight', 'bias'"):
            loaded = fusec.load(self.path("m.fusec"))
        with self.assertRaisesRegex(fusec.UsageError, "weight file is missing.*w.safetensors"):
            loaded.model
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            weights = {"weight": np.ones((8, 16), np.float32), "bias": np.ones(8, np.float32)}
            fusec.load(self.path("m.fusec"), weights=weights)

    def test_where_nothing_can_be_written(self):
        for path in (self.path("nodir/m.fusec"), self.folder):
            with self.assertRaises(fusec.PlatformError) as caught:
                self.module.save(path)
            self.assertTrue(str(caught.exception).startswith(f"{path}: the output cannot be written: "), caught.exception)
            self.assertEqual(caught.exception.file, path)
        self.assertEqual(os.listdir(self.folder), [])

    def test_threads_save_one_file(self):
        path, errors = self.path("m.fusec"), []

        def save():
            try:
                for _ in range(20):
                    self.module.save(path)
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=save) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((errors, os.listdir(self.folder)), ([], ["m.fusec"]))
        self.assertEqual(fusec.load(path).source, self.module.source)

    def test_a_link_is_followed(self):
        os.symlink(self.path("target"), self.path("link"))
        self.module.save(self.path("link"))
        self.assertTrue(os.path.islink(self.path("link")))
        self.assertEqual(fusec.load(self.path("target")).source, self.module.source)


class Errors(unittest.TestCase):
    def setUp(self):
        self.module = models.compiled("gated")
        self.x = np.ones((4, 16), np.float32)

    def refused(self, kind, text, *tensors, **named):
        with self.assertRaises(kind) as caught:
            self.module(*tensors, **named)
        self.assertIn(text, str(caught.exception))

    def test_arguments(self):
        self.refused(TypeError, "no tensor is given for 'up'", self.x)
        self.refused(TypeError, "3 tensors are given", self.x, self.x, self.x)
        self.refused(TypeError, "unexpected tensor 'upp'", self.x, upp=self.x)
        self.refused(TypeError, "given twice", self.x, gate=self.x)
        self.refused(TypeError, "out has 2 tensors", self.x, self.x, out=[self.x, self.x])

    def test_tensors(self):
        x = self.x
        self.refused(fusec.InputError, 'input "up": found float64[4, 16], expected float32[tokens, 16]', x,
                     x.astype(np.float64))
        self.refused(fusec.InputError, "float32[16]", x, x[0])
        self.refused(fusec.InputError, 'dimension 0 of input "up": found 3', x, x[:3])
        self.refused(fusec.InputError, "a list", x, [1.0])
        self.refused(fusec.InputError, "byte order", x, x.astype(">f4"))
        self.refused(fusec.InputError, "tokens from 1 to 64", np.ones((65, 16), np.float32), x)
        self.refused(fusec.InputError, 'result "y"', x, x, out=np.empty((3, 16), np.float32))
        self.refused(fusec.InputError, "a view with strides", x, x, out=np.empty((16, 4), np.float32).T)
        with self.assertRaisesRegex(TypeError, "a node is given by its name, a str, not 1"):
            self.module.explain(1)

    def test_what_dlpack_gives(self):
        class Lent:
            def __init__(self, capsule):
                self.capsule = capsule

            def __dlpack__(self, **options):
                return self.capsule

            def __dlpack_device__(self):
                return 1, 0

        self.refused(fusec.InputError, "'gate': found 3 from __dlpack__, expected a capsule", Lent(3), self.x)
        used = self.x.__dlpack__()
        fusec._core.Borrowed(used)
        self.refused(fusec.InputError, "expected a capsule of DLPack 1, not used before", Lent(used), self.x)

    def test_devices(self):
        self.refused(fusec.UsageError, "'cuda', 'emulator' or 'reference'", self.x, self.x, device="gpu")
        self.refused(fusec.InputError, "move them first", self.x, self.x, device="cuda")
        plain = fusec.compile(models.gated(), no_nvrtc=True)
        np.testing.assert_allclose(plain(self.x, self.x), silu(self.x) * self.x, rtol=1e-5)
        with self.assertRaisesRegex(fusec.PlatformError, "nothing was compiled"):
            plain(self.x, self.x, device="emulator")
        with self.assertRaisesRegex(fusec.UsageError, "expected tensors on a GPU"):
            self.module.capture(self.x, self.x)


if __name__ == "__main__":
    unittest.main()
