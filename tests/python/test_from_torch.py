#!/usr/bin/env python3
"""test_from_torch.py [--tier=fast|full] [unittest arguments]: fusec.from_torch against PyTorch.

Imports the models of from_torch/models.py, whole and decomposed, with every type declared, which the library then
verifies, and compares calls of the compiled model with the module's own: on the reference and on the emulator, and at
other sizes where sizes are symbolic. The fast tier tries most models in one form, on the reference. Exit status 77
(skipped) where PyTorch is missing."""

import importlib.util
import json
import os
import sys
import unittest
import warnings
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(HERE, "from_torch")]

try:
    import torch
except ImportError:
    print(f"skipped: PyTorch is not installed for {sys.executable}")
    sys.exit(77)

import fusec
import fusec.__main__
import fusec._torch.trace
import interfaces
import models
import numpy as np
from comparisons import Folder, compiled, imported, saved
from import_errors import Errors  # noqa: F401 (unittest runs it)
from process_state import ProcessState  # noqa: F401

OTHER_SIZES = {  # model -> example arguments of another size, that one model serves as well
    "mobilenet_v3": lambda: (models.rand(3, 3, 17, 15),),
    "llama_block": lambda: (models.rand(1, 12, 32).to(torch.bfloat16), torch.arange(12).repeat(1, 1)),
    "vit": lambda: (models.rand(3, 3, 12, 12),),
    "mixture_of_experts": lambda: (models.rand(9, 8),),
    "corners": lambda: (models.rand(9, 5), torch.tensor([1, 4, 3]), models.randint(20, 4)),
}
EMULATED_IN_FAST_TIER = {"llama_block", "graph_convolution", "corners"}
FULL = False


def setUpModule():
    warnings.filterwarnings("ignore")


class Models(Folder):
    """One test a model, added below."""

    def one_model(self, name, decompose):
        module, args, model = imported(models.ALL[name], types=True, decompose=decompose)
        devices = ["reference"]
        if FULL or (name in EMULATED_IN_FAST_TIER and not decompose):
            devices.append("emulator")
        for device in devices:
            module_of_fusec = compiled(model, device)
            self.run_and_compare(module_of_fusec, module, args, device)
            if name in OTHER_SIZES:
                self.run_and_compare(module_of_fusec, module, OTHER_SIZES[name](), device)


def add_model_tests():
    decomposed_in_fast_tier = {"llama_block", "vit", "unet"}
    for name in models.ALL:
        for decompose in (False, True):
            if FULL or not decompose or name in decomposed_in_fast_tier:

                def test(self, name=name, decompose=decompose):
                    self.one_model(name, decompose)

                setattr(Models, f"test_{name}{'_decomposed' if decompose else ''}", test)


class Format(Folder):
    def test_composites_stay_whole_and_symbols_have_names(self):
        _, _, graph = saved(self.path("m.json"), models.llama_block)
        ops = {node["op"] for node in graph["nodes"]}
        self.assertLessEqual({"linear", "rms_norm", "scaled_dot_product_attention", "silu"}, ops)
        self.assertEqual(graph["symbols"], {"batch": {"min": 1, "max": 8}, "tokens": {"min": 1, "max": 512}})
        self.assertEqual(graph["inputs"][0], {"name": "x", "dtype": "bfloat16", "shape": ["batch", "tokens", 32]})

    def test_decompose_leaves_no_composite(self):
        _, _, graph = saved(self.path("m.json"), models.llama_block, decompose=True)
        ops = {node["op"] for node in graph["nodes"]}
        self.assertFalse({"linear", "rms_norm", "scaled_dot_product_attention", "softmax", "silu"} & ops)

    def test_cache_becomes_aliased_inputs_and_tied_weights_are_stored_once(self):
        _, _, graph = saved(self.path("m.json"), models.gpt2_cached)
        self.assertEqual(
            graph["aliases"], {f"{kind}_cache{i}.updated": f"{kind}_cache{i}" for kind in "kv" for i in range(2)}
        )
        self.assertEqual(
            [x["name"] for x in graph["inputs"]], ["ids", "position", "k_cache0", "v_cache0", "k_cache1", "v_cache1"]
        )
        self.assertEqual(graph["outputs"][0], "logits")
        stored = [c["safetensors"]["tensor"] for c in graph["constants"]]
        self.assertEqual(len({"head.weight", "tokens.weight"} & set(stored)), 1)

    def test_scalars_are_weak_numbers(self):
        class Scale(torch.nn.Module):
            def forward(self, x):
                return (x * 2 + 0.5).masked_fill(x > 0, float("-inf")) / x.shape[0]

        shapes = {"x": {0: torch.export.Dim("n", max=99)}}
        _, _, graph = saved(self.path("m.json"), lambda: (Scale(), (torch.ones(4, 2).half(),), shapes))
        operands = [node["inputs"] for node in graph["nodes"]]
        self.assertEqual(
            operands, [["x", 2], ["mul", 0.5], ["x", 0], ["gt", "minus_infinity", "add"], ["where", {"dim": "n"}]]
        )
        self.assertEqual(
            graph["constants"], [{"name": "minus_infinity", "dtype": "float16", "shape": [], "data": ["-inf"]}]
        )

    def test_same_bytes_every_time(self):
        texts = []
        for name in ("a.json", "b.json"):
            saved(self.path(name), models.dlrm, weights="none")
            with open(self.path(name), "rb") as f:
                texts.append(f.read())
        self.assertEqual(*texts)
        self.assertFalse(os.path.exists(self.path("a.safetensors")))

    def test_meta_modules_have_no_weight_file(self):
        with torch.device("meta"):
            module, x = torch.nn.Linear(4096, 4096), torch.empty(2, 4096)
        _, _, graph = saved(self.path("m.json"), lambda: (module, (x,)))
        self.assertEqual(graph["constants"][0], {"name": "weight", "dtype": "float32", "shape": [4096, 4096]})
        self.assertEqual(os.listdir(self.folder.name), ["m.json"])


class Interfaces(Folder):
    """Arguments, results and buffers: what becomes of them, and that their numbers are PyTorch's."""

    def imported_and_run(self, make, *others, **options):
        """The graph of make()'s module, after its numbers were compared; `others` are further arguments for it."""
        module, args, model = imported(make, **options)
        module_of_fusec = compiled(model)
        for given in (args, *others):
            self.run_and_compare(module_of_fusec, module, given)
        model.save(self.path("m.json"))
        with open(self.path("m.json"), encoding="utf-8") as f:
            return json.load(f)

    def test_classes_of_results(self):
        for kind, (make, names) in interfaces.RESULTS.items():
            with self.subTest(kind):
                self.assertEqual(self.imported_and_run(interfaces.result_of(make))["outputs"], names)

    def test_a_buffer_bears_the_name_of_an_argument(self):
        graph = self.imported_and_run(interfaces.writes_buffer)
        self.assertEqual([row["name"] for row in graph["inputs"]], ["k", "v", "k_1"])
        self.assertEqual(graph["aliases"], {"output": "k_1", "v.updated": "v"})
        self.assertEqual(graph["metadata"]["pytorch_names"], {"k_1": "k", "v_1": "v"})

    def test_attributes_that_are_no_buffers_are_written(self):
        module, x = interfaces.WritesAttributes(), torch.rand(1, 3)
        call, expected = compiled(fusec.from_torch(module, (x,))), interfaces.WritesAttributes()
        for step in range(2):
            self.assert_close(call(x + step), expected(x + step), f"step {step}")
            self.assertEqual(module.cache["length"], expected.cache["length"])

    def test_weights_are_the_modules_own_tensors(self):
        module, x = interfaces.OwnTensors(), torch.arange(4.0)
        model = fusec.from_torch(module, (x,))
        self.assertEqual(set(model.weights), {"scale", "shift", "power", "turn.real", "turn.imag", "order"})
        call = compiled(model)
        self.run_and_compare(call, module, (x,))
        module.change()
        self.run_and_compare(call.bind(model.weights), module, (x,))
        call.bind(scale=torch.tensor(7.0))
        self.assertEqual(call(x)[0].tolist(), ((x * 7 - 1) ** 3 * 0.5).tolist())

    def test_indices_become_negative_where_they_overflow(self):
        self.imported_and_run(lambda: (interfaces.WrappedIndices(), (torch.arange(256.0),)))

    def test_views_of_a_tensor_that_is_written(self):
        self.imported_and_run(interfaces.views_of_written)

    def test_arithmetic_of_complex_tensors(self):
        self.imported_and_run(interfaces.complex_arithmetic, types=True)

    def test_diagonals_of_slices(self):
        self.imported_and_run(interfaces.diagonals, types=True)

    def test_an_integer_argument_is_a_symbol(self):
        graph = self.imported_and_run(
            interfaces.takes_length, interfaces.takes_length(8)[1], interfaces.takes_length(0)[1]
        )
        self.assertEqual(graph["symbols"], {"n": {"min": 0, "max": 8}})
        self.assertEqual(graph["inputs"][1], {"name": "n", "dtype": "uint8", "shape": ["n", 0]})

    def test_arguments_without_names(self):
        for traced, keywords in interfaces.CALLS:
            with self.subTest(traced=len(traced), keywords=list(keywords)):
                module = interfaces.TakesAll()
                call = compiled(fusec.from_torch(module, traced, keywords))
                self.assertEqual(call(*traced, **keywords).tolist(), module(*traced, **keywords).tolist())

    def test_calls_that_do_not_fit(self):
        x = torch.ones(3)
        call = compiled(fusec.from_torch(interfaces.TakesAll(), (x, 2, x), {"scale": x}))
        for args, keywords, text in (
            ((x, 2), {"scale": x}, "found 2 positional arguments, expected 3"),
            ((x, 2, x), {}, "found the keyword arguments [], expected ['scale']"),
            ((x, 2, (x, x)), {"scale": x}, "argument 2: found TreeSpec(tuple, None, [*, *]), expected one tensor"),
            ((x, 2, x), {"scale": x, "other": x}, "found the keyword arguments ['scale', 'other']"),
        ):
            with self.subTest(text), self.assertRaises(TypeError) as caught:
                call(*args, **keywords)
            self.assertIn(text, str(caught.exception))
        call = compiled(fusec.from_torch(interfaces.TakesAll(), (x,)))
        call(x, 2)  # the default
        with self.assertRaisesRegex(TypeError, "found 2 positional arguments, expected 1"):
            call(x, 3)

    def test_arguments_that_compute_something_else(self):
        class Scale(torch.nn.Module):
            def forward(self, x, n, f=0.0):
                return x * n, torch.copysign(x, f)

        x = torch.ones(3, dtype=torch.int64)
        call = compiled(fusec.from_torch(Scale(), (x, 1, 0.0)))
        self.run_and_compare(call, Scale(), (x, 1, 0.0))
        call(x, np.int64(1), np.float64(0))
        for n, f in ((1.0, 0.0), (True, 0.0), (1, -0.0), (1, 0)):
            with self.subTest(n=n, f=f), self.assertRaisesRegex(fusec.InputError, "the module was traced with"):
                call(x, n, f)
        with self.assertRaises(TypeError):  # -0.0 is not the default
            compiled(fusec.from_torch(Scale(), (x, 1)))(x, 1, -0.0)
        call = compiled(fusec.from_torch(interfaces.result_of(lambda x: x + 1)()[0], (torch.ones(2),)))
        self.assertEqual(call(torch.ones(2)).tolist(), [2, 2])

    def test_a_size_of_data_is_named_as_the_cause(self):
        class Chosen(torch.nn.Module):
            def forward(self, x, n):
                return x[: n.item()].exp() * 2

        with self.assertRaises(fusec.InputError) as caught:
            fusec.from_torch(Chosen(), (torch.ones(4), torch.tensor(2)))
        self.assertIn(") that depends on the values of tensors", str(caught.exception))
        self.assertNotIn("as_strided", str(caught.exception))

    def test_resampling(self):
        for size, options in interfaces.RESAMPLED:
            with self.subTest(image=size, **options):
                module = interfaces.Resample(**options)
                self.imported_and_run(lambda: (module, (models.rand(1, 2, *size),)))

    def test_resampling_of_symbolic_sizes(self):
        graph = self.imported_and_run(interfaces.halved, interfaces.halved(12, 5)[1])
        self.assertEqual(list(graph["symbols"]), ["height", "width"])

    def test_tracing_falls_back_to_dynamo(self):
        real, tried = fusec._torch.trace.capture, []

        def capture(module, args, kwargs, shapes, strict):
            tried.append(strict)
            if not strict:
                raise fusec._torch.errors.TraceError("not so")
            return real(module, args, kwargs, shapes, strict)

        with mock.patch.object(fusec._torch.trace, "capture", capture):
            self.imported_and_run(interfaces.result_of(lambda x: x + 1))
        self.assertEqual(tried, [False, True])

    def test_an_unknown_class_of_results_gets_a_hint(self):
        class Result:
            pass

        with self.assertRaises(fusec.InputError) as caught:
            saved(self.path("m.json"), interfaces.result_of(lambda x: Result()))
        self.assertIn("register_pytree_node", str(caught.exception))
        self.assertIn("use_cache=False", str(caught.exception))

    @unittest.skipUnless(importlib.util.find_spec("transformers"), "transformers is not installed")
    def test_decoders_of_transformers(self):
        if not FULL:
            self.skipTest("the full tier has it")
        import transformers_models

        for make, outputs in transformers_models.DECODERS:
            with self.subTest(make.__name__):
                self.assertEqual(self.imported_and_run(make)["outputs"][: len(outputs)], outputs)
        for cache, text in transformers_models.REFUSED_CACHES:
            with self.subTest(text), self.assertRaises(fusec.InputError) as caught:
                fusec.from_torch(transformers_models.Step(), (transformers_models.IDS, cache()))
            self.assertIn(text, str(caught.exception))

    def test_integer_products(self):
        class Product(torch.nn.Module):
            def forward(self, x, w):
                return torch._int_mm(x, w)

        args = torch.randint(-128, 128, (32, 24)).to(torch.int8), torch.randint(-128, 128, (24, 16)).to(torch.int8)
        self.run_and_compare(fusec.compile(fusec.from_torch(Product(), args)), Product(), args, "emulator")

    @unittest.skipUnless(importlib.util.find_spec("torchao"), "torchao is not installed")
    def test_weights_quantized_by_torchao(self):
        from torchao import quantization

        for config in (
            "Int8WeightOnlyConfig",
            "IntxWeightOnlyConfig",
            "Float8WeightOnlyConfig",
            "Int8DynamicActivationInt8WeightConfig",
            "Int8DynamicActivationIntxWeightConfig",
        ):
            with self.subTest(config):
                torch.manual_seed(0)
                module = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.ReLU(), torch.nn.Linear(96, 64))
                module, args = module.to(torch.bfloat16).eval(), (torch.randn(5, 64, dtype=torch.bfloat16),)
                quantization.quantize_(module, getattr(quantization, config)())
                self.run_and_compare(fusec.compile(fusec.from_torch(module, args)), module, args, "emulator")

    def test_custom_ops_have_sources(self):
        with self.assertRaises(fusec.InputError) as caught:
            saved(self.path("m.json"), interfaces.gated)
        self.assertIn("--custom-op NAME=SYMBOL", str(caught.exception))
        graph = self.imported_and_run(
            interfaces.gated, custom_ops={"fusec_test::gate": "$0 * sigmoid($1 * $0) + $2"}
        )
        node = graph["nodes"][0]
        self.assertEqual((node["inputs"], node["pattern"]), (["x", 1.7, "bias"], "broadcast"))
        _, _, graph = saved(self.path("m.json"), interfaces.gated, custom_ops={"fusec_test.gate": "launch_gate"})
        node = graph["nodes"][0]
        self.assertEqual((node["inputs"], node["attrs"]), (["x", "bias"], {"factor": 1.7, "symbol": "launch_gate"}))
        fusec.compile(self.path("m.json"), no_nvrtc=True)
        with self.assertRaises(fusec.InputError) as caught:
            saved(self.path("m.json"), interfaces.gated, custom_ops={"fusec_test.gat": "launch_gate"})
        self.assertIn("found fusec_test.gat, which the program does not call, expected one of its operators: fusec_test.gate", str(caught.exception))

    def test_custom_ops_without_source_can_be_looked_at(self):
        saved(self.path("m.json"), interfaces.gated, custom_ops=True)
        self.assertEqual(len(fusec.partition(self.path("m.json"))), 2)  # the opaque op, relu
        with self.assertRaises(fusec.InputError) as caught:
            fusec.compile(self.path("m.json"), no_nvrtc=True)
        self.assertIn("no source for a custom op", str(caught.exception))


if __name__ == "__main__":
    FULL = "--tier=full" in sys.argv
    add_model_tests()
    unittest.main(argv=[sys.argv[0], *(a for a in sys.argv[1:] if not a.startswith("--tier="))])
