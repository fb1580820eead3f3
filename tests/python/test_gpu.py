"""Running modules through the CUDA driver: on a GPU, else against the stand-in that FUSEC_CUDA_DRIVER names."""
import contextlib
import sys
import threading
import types
import unittest
from unittest import mock

import fusec
import models
import numpy as np
from fusec import _calls, _core

HAS_DEVICE = _core.has_device()
if HAS_DEVICE:
    from device_array import DeviceArray, TorchArray


def silu(x):
    return x / (1 + np.exp(-x))


@contextlib.contextmanager
def freed_memory_is_reused():
    """Uploads give a freed block out again at once, as cuMemAlloc may."""
    freed, new = [], _core.DeviceMemory

    class Reused:
        def __init__(self, device, count):
            try:
                self.memory = freed.pop()
            except IndexError:
                self.memory = new(device, count)
            self.address = self.memory.address
            self.copy_from_host = self.memory.copy_from_host

        def __del__(self):
            freed.append(self.memory)

    with mock.patch.object(_calls, "_core", types.SimpleNamespace(**{**vars(_core), "DeviceMemory": Reused})):
        yield


@unittest.skipUnless(HAS_DEVICE, "there is neither a GPU nor the stand-in of the driver")
class Launches(unittest.TestCase):
    def setUp(self):
        self.random = np.random.default_rng(0)

    def array(self, *shape):
        return self.random.standard_normal(shape).astype(np.float32)

    def prepared(self, x, weight):
        """What models.prepared() computes."""
        return x + np.exp(weight) @ np.arange(16, dtype=np.float32).reshape(4, 4)

    def test_outputs_are_of_the_inputs_package(self):
        module = models.compiled("gated")
        for tokens in (1, 5, 64, 5):
            gate, up = self.array(tokens, 16), self.array(tokens, 16)
            y = module(DeviceArray.of(gate), up=DeviceArray.of(up))
            self.assertIsInstance(y, DeviceArray)
            np.testing.assert_allclose(y.numpy(), silu(gate) * up, rtol=1e-5, atol=1e-6)
        self.assertEqual(set(DeviceArray.streams) - {None}, {1})

    def test_out(self):
        gate, up, out = self.array(4, 16), self.array(4, 16), DeviceArray((4, 16), np.float32)
        self.assertIs(models.compiled("gated")(DeviceArray.of(gate), DeviceArray.of(up), out=out), out)
        np.testing.assert_allclose(out.numpy(), silu(gate) * up, rtol=1e-5, atol=1e-6)

    def test_weights_of_the_host_are_copied_once(self):
        x, weight, bias = self.array(4, 16), self.array(8, 16), self.array(8)
        module = fusec.compile(
            models.linear(), arch="sm_80", cache_dir=models.CACHE, weights={"weight": weight, "bias": bias}
        )
        for shift in (0, 1):
            module.bind(bias=bias + shift)
            y, total = module(DeviceArray.of(x))
            expected = np.maximum(x @ weight.T + bias + shift, 0)
            np.testing.assert_allclose(y.numpy(), expected, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(total.numpy(), expected.sum(1), rtol=1e-4, atol=1e-4)

    def test_what_is_prepared_follows_the_weights(self):
        table = np.arange(16, dtype=np.float32).reshape(4, 4)
        x, weight = self.array(4, 4), self.array(4, 4)
        module = fusec.compile(models.prepared(), arch="sm_80", cache_dir=models.CACHE)
        for _ in range(2):
            on_gpu = DeviceArray.of(weight)
            module.bind(weight=on_gpu)
            for _ in range(2):
                y = module(DeviceArray.of(x))
                np.testing.assert_allclose(y.numpy(), x + np.exp(weight) @ table, rtol=1e-4, atol=1e-4)
            weight = weight + 1
            on_gpu.memory.copy_from_host(weight.ctypes.data, weight.nbytes)
            module.bind(weight=on_gpu)  # it was changed in place
            np.testing.assert_allclose(module(DeviceArray.of(x)).numpy(), x + np.exp(weight) @ table, rtol=1e-4)

    def test_weights_of_one_call_hold_for_that_call(self):
        table = np.arange(16, dtype=np.float32).reshape(4, 4)
        module, x = fusec.compile(models.prepared(), arch="sm_80", cache_dir=models.CACHE), self.array(4, 4)
        module.bind(weight=self.array(4, 4))
        on_gpu = DeviceArray((4, 4), np.float32)
        for _ in range(2):
            weight = self.array(4, 4)
            on_gpu.memory.copy_from_host(weight.ctypes.data, weight.nbytes)
            for given in (weight, on_gpu):
                y = module(DeviceArray.of(x), weight=given)
                np.testing.assert_allclose(y.numpy(), x + np.exp(weight) @ table, rtol=1e-4, atol=1e-4)

    def test_an_upload_to_the_address_of_an_earlier_weight(self):
        x, first, second = (self.array(4, 4) for _ in range(3))
        of_first, of_second = (self.prepared(x, weight) for weight in (first, second))
        on_gpu, results = DeviceArray.of(x), _calls.Calls._results
        module = fusec.compile(models.prepared(), arch="sm_80", cache_dir=models.CACHE)

        def bound_meanwhile(calls, *arguments):  # another thread binds between the views of a call and its launch
            module.bind(weight=second)
            return results(calls, *arguments)

        with freed_memory_is_reused():
            np.testing.assert_allclose(module.bind(weight=first)(on_gpu).numpy(), of_first, rtol=1e-4, atol=1e-4)
            with mock.patch.object(_calls.Calls, "_results", bound_meanwhile):
                np.testing.assert_allclose(module(on_gpu).numpy(), of_first, rtol=1e-4, atol=1e-4)
            np.testing.assert_allclose(module(on_gpu).numpy(), of_second, rtol=1e-4, atol=1e-4)

    def test_an_upload_to_the_address_of_a_weight_of_one_call(self):
        x, bound, own = (self.array(4, 4) for _ in range(3))
        on_gpu = DeviceArray.of(x)
        with freed_memory_is_reused():
            module = fusec.compile(models.prepared(), arch="sm_80", cache_dir=models.CACHE).bind(weight=bound)
            y = module(on_gpu, weight=own)
            np.testing.assert_allclose(y.numpy(), self.prepared(x, own), rtol=1e-4, atol=1e-4)
            np.testing.assert_allclose(module(on_gpu).numpy(), self.prepared(x, bound), rtol=1e-4, atol=1e-4)

    def test_tensors_of_several_packages_on_several_streams(self):
        module, x = models.compiled("gated"), self.array(4, 16)
        waited = []
        side = types.SimpleNamespace(cuda_stream=7, synchronize=lambda: waited.append("torch"))
        current = types.SimpleNamespace(cuda_stream=0, synchronize=lambda: waited.append("torch"))
        torch = types.SimpleNamespace(
            Tensor=TorchArray,
            float32=np.float32,
            is_grad_enabled=lambda: False,
            cuda=types.SimpleNamespace(current_stream=lambda device: torch.now),
            empty=lambda shape, *, dtype, device: TorchArray(shape, dtype),
            now=side,
        )
        of_torch, other, out = TorchArray.of(x), DeviceArray.of(x), DeviceArray((4, 16), np.float32)
        expected = silu(x) * x
        with (
            mock.patch.dict(sys.modules, torch=torch),
            mock.patch.object(_calls, "_core", types.SimpleNamespace(**vars(_core))) as core,
        ):
            core.synchronize = lambda device, stream: waited.append(stream)
            np.testing.assert_allclose(module(other, of_torch).numpy(), expected, rtol=1e-5)
            self.assertEqual(waited, ["torch", 0])  # its stream before the launch, the launch's one after
            torch.now, waited[:] = current, []
            np.testing.assert_allclose(module(of_torch, of_torch).numpy(), expected, rtol=1e-5)
            self.assertEqual(waited, [])
            np.testing.assert_allclose(module(of_torch, of_torch, out=out).numpy(), expected, rtol=1e-5)
            self.assertEqual(waited, [0])
            graph, waited[:] = module.capture(of_torch, of_torch, out=out), []
            graph.replay()
            self.assertEqual(waited, [0])

    def test_memory_that_is_read_and_written(self):
        gate, up = DeviceArray.of(self.array(4, 16)), DeviceArray.of(self.array(4, 16))
        with self.assertRaisesRegex(fusec.InputError, "memory that 'up' has as well"):
            models.compiled("gated")(gate, up, out=up)

    def test_aliases(self):
        state, x = DeviceArray.of(np.ones(8, np.float32)), DeviceArray.of(np.arange(8, dtype=np.float32))
        self.assertIs(models.compiled("cache")(state, x), state)
        np.testing.assert_array_equal(state.numpy(), 1 + np.arange(8))

    def test_binding_while_another_thread_launches(self):
        module, x = fusec.compile(models.prepared(), arch="sm_80", cache_dir=models.CACHE), DeviceArray.of(self.array(4, 4))
        weights = [self.array(4, 4) for _ in range(2)]
        of_each = [module.bind(weight=weight)(x).numpy() for weight in weights]
        self.assertFalse(np.array_equal(*of_each))
        results = []

        def launch():
            while thread.is_alive():
                results.append(module(x).numpy())

        with freed_memory_is_reused():
            for last in range(10):
                thread = threading.Thread(target=lambda: [module.bind(weight=weights[i % 2]) for i in range(20 + last)])
                other = threading.Thread(target=launch)
                thread.start()
                other.start()
                thread.join(60)
                other.join(60)
                self.assertFalse(thread.is_alive() or other.is_alive())
                np.testing.assert_array_equal(module(x).numpy(), of_each[(19 + last) % 2])  # the last one that was bound
        for result in results:
            self.assertTrue(any(np.array_equal(result, expected) for expected in of_each))

    def test_a_graph_replays(self):
        gate, up = self.array(4, 16), self.array(4, 16)
        tensors = DeviceArray.of(gate), DeviceArray.of(up)
        graph = models.compiled("gated").capture(*tensors)
        self.assertIs(graph.replay(), graph.outputs)
        np.testing.assert_allclose(graph.outputs.numpy(), silu(gate) * up, rtol=1e-5, atol=1e-6)
        gate = gate + 1
        tensors[0].memory.copy_from_host(gate.ctypes.data, gate.nbytes)
        np.testing.assert_allclose(graph().numpy(), silu(gate) * up, rtol=1e-5, atol=1e-6)

    def test_a_graph_runs_nothing_when_it_is_captured(self):
        state, x = DeviceArray.of(np.ones(8, np.float32)), DeviceArray.of(np.ones(8, np.float32))
        graph = models.compiled("cache").capture(state, x)
        np.testing.assert_array_equal(state.numpy(), np.ones(8))
        graph.replay()
        graph.replay()
        np.testing.assert_array_equal(state.numpy(), np.full(8, 3))

    def test_devices_are_not_mixed(self):
        module, x = models.compiled("gated"), self.array(4, 16)
        with self.assertRaisesRegex(fusec.InputError, "host memory"):
            module(DeviceArray.of(x), x)
        with self.assertRaisesRegex(fusec.InputError, "CUDA tensors"):
            module(DeviceArray.of(x), DeviceArray.of(x), device="emulator")
        with self.assertRaisesRegex(fusec.InputError, "another device"):
            module(DeviceArray.of(x), DeviceArray.of(x), out=x)

    def test_doctor_finds_the_gpu(self):
        subjects = {f.subject: f.state for f in fusec.examine()}
        self.assertEqual(subjects["CUDA driver"], "good")
        self.assertIn("GPU", subjects)


@unittest.skipIf(HAS_DEVICE, "there is a GPU")
class WithoutGpu(unittest.TestCase):
    def test_native(self):
        with self.assertRaisesRegex(fusec.PlatformError, "no CUDA driver"):
            fusec.compile(models.gated(), arch="native", no_nvrtc=True)


if __name__ == "__main__":
    unittest.main()
