#!/usr/bin/env python3
"""test_from_torch.py [--tier=fast|full] [unittest arguments]: fusec.from_torch against PyTorch.

Imports the models of from_torch/models.py, whole and decomposed, with every type declared, which the library then
verifies, and compares calls of the compiled model with the module's own: on the reference and on the emulator, and at
other sizes where sizes are symbolic. The fast tier tries most models in one form, on the reference. Exit status 77
(skipped) where PyTorch is missing."""

import concurrent.futures
import contextlib
import copy
import importlib.util
import io
import json
import os
import sys
import tempfile
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
from torch.utils import _pytree as pytree

import fusec
import fusec.__main__
import fusec._torch.trace
import interfaces
import models

TOLERANCE = {torch.float64: (1e-9, 1e-9), torch.float32: (2e-5, 1e-4), torch.float16: (1e-2, 1e-2),
             torch.bfloat16: (3e-2, 3e-2)}
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


def imported(make, **options):
    """The module, its arguments and what was imported."""
    module, args, shapes = (*make(), None)[:3]
    return module, args, fusec.from_torch(module, args, dynamic_shapes=shapes, **options)


def saved(path, make, weights="file", **options):
    """The module, its arguments and the graph that `make`'s module became."""
    module, args, model = imported(make, **options)
    model.save(path, weights=weights == "file")
    with open(path, encoding="utf-8") as f:
        return module, args, json.load(f)


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def assert_close(self, got, want, what):
        self.assertEqual((got.dtype, tuple(got.shape)), (want.dtype, tuple(want.shape)), what)
        absolute, relative = TOLERANCE.get(want.dtype, (0, 0))
        torch.testing.assert_close(got, want, atol=absolute, rtol=relative, equal_nan=True, msg=lambda m: f"{what}: {m}")

    def run_and_compare(self, compiled, module, args, device="reference"):
        """What the compiled model returns, and leaves in buffers and arguments, against the module."""
        expected_args, expected_module = copy.deepcopy((args, module))
        split = lambda given: ((), given) if isinstance(given, dict) else (given, {})  # noqa: E731
        with torch.no_grad():
            args, keywords = split(args)
            got = compiled(*args, **keywords, device=device)
            expected_args, expected_keywords = split(expected_args)
            want = expected_module(*expected_args, **expected_keywords)
        self.assertEqual(pytree.tree_structure(got), pytree.tree_structure(want))
        for kind, ours, theirs in [
            ("result", got, want),
            ("argument", (args, keywords), (expected_args, expected_keywords)),
            ("buffer", dict(module.named_buffers()), dict(expected_module.named_buffers())),
        ]:
            for i, (mine, other) in enumerate(zip(pytree.tree_leaves(ours), pytree.tree_leaves(theirs))):
                if isinstance(other, torch.Tensor):
                    self.assert_close(mine, other, f"{kind} {i}")
                else:
                    self.assertEqual(mine, other, f"{kind} {i}")


def compiled(model, device="reference"):
    return fusec.compile(model, no_nvrtc=device == "reference")


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


class ProcessState(Folder):
    """What an import leaves as it was."""

    def test_modes_of_submodules(self):
        module = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Dropout(), torch.nn.BatchNorm1d(3)).train()
        module[2].eval()
        call = compiled(fusec.from_torch(module, (torch.ones(2, 3),)))
        self.assertEqual([m.training for m in module.modules()], [True, True, True, False])
        self.run_and_compare(call, module.eval(), (torch.ones(2, 3),))
        with self.assertRaises(fusec.InputError):
            fusec.from_torch(torch.nn.Sequential(interfaces.CallsHelper()).train(), (torch.eye(3),))

    def test_overlapping_imports(self):
        from fusec._torch import program
        from torch.fx.proxy import TracerBase

        def state():
            return torch.backends.mha.get_fastpath_enabled(), vars(TracerBase).get("_filter_traceback_frames")

        before = state()
        changes = program.NO_FUSED_KERNELS, program.LINES_OF_OPERATORS
        for change in changes + changes:  # as two threads enter
            change.__enter__()
        for change in changes:
            change.__exit__()
        self.assertTrue(all(now != then for now, then in zip(state(), before)))
        for change in changes:
            change.__exit__()
        self.assertEqual(state(), before)

    def test_explanations_of_two_threads(self):
        from torch._dynamo.symbolic_convert import InstructionTranslatorBase

        def explained():
            torch._dynamo.reset()
            return fusec.explain(interfaces.result_of(interfaces.breaks)()[0], torch.ones(3), options={"no_nvrtc": True})

        before = InstructionTranslatorBase.log_graph_break
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            alone = explained()
            both = [f.result() for f in [pool.submit(explained) for _ in range(2)]]
        self.assertEqual([len(e.breaks) for e in both], [len(alone.breaks)] * 2)
        self.assertIs(InstructionTranslatorBase.log_graph_break, before)

    def test_a_version_of_pytorch_without_a_private_function(self):
        from fusec._torch import private

        bags = torch.nn.EmbeddingBag(5, 3)
        with mock.patch.dict(private.USED, get_proxy_slot="torch.fx.experimental.proxy_tensor.gone"):
            fusec.from_torch(torch.nn.Linear(3, 3), (torch.ones(2, 3),))
            with self.assertRaisesRegex(fusec.FusecError, r"without torch\.fx\.experimental\.proxy_tensor\.gone"):
                fusec.from_torch(bags, (torch.ones(2, 2, dtype=torch.int64),))


class Errors(Folder):
    def test_what_is_no_module_and_no_arguments(self):
        module, x = torch.nn.Linear(4, 4), torch.ones(1, 4)
        for args, hint in ((x, "(x,)"), (x.numpy(), "(x,)"), ("x", "(x,)"), (3, "(x,)")):
            with self.subTest(type(args).__name__), self.assertRaises(fusec.UsageError) as caught:
                fusec.from_torch(module, args)
            self.assertIn(hint, caught.exception.hint)
        for wrong in (3, lambda x: x, torch.nn.Linear):
            with self.subTest(wrong), self.assertRaises(fusec.UsageError) as caught:
                fusec.from_torch(wrong, (x,))
            self.assertEqual(caught.exception.expected, "a torch.nn.Module or a torch.export.ExportedProgram")

    def test_errors_have_parts(self):
        def untraceable(x):
            raise ValueError("not so")

        def sizes(x):
            return x[: x.sum().int().item()] + 1

        x = torch.ones(3, 3)
        for function, kind, what, found in (
            (torch.linalg.svd, fusec.InputError, "1 operator without", "aten._linalg_svd.default"),
            (sizes, fusec.InputError, "sizes that the graph format cannot", "depends on the values"),
            (untraceable, fusec.TraceError, "torch.export cannot trace Returns", "not so"),
        ):
            with self.subTest(function.__name__), self.assertRaises(kind) as caught:
                fusec.from_torch(interfaces.Returns(function), (x,))
            error = caught.exception
            self.assertIn(what, error.what)
            self.assertIn(found, error.found)
            if kind is fusec.InputError:
                self.assertTrue(error.expected and error.hint in str(error))
        with self.assertRaisesRegex(fusec.TraceError, "dynamic_shapes"):
            fusec.from_torch(interfaces.Returns(torch.relu), (x,), dynamic_shapes={"y": {0: torch.export.Dim("n")}})

    def test_all_unmapped_operators_are_listed_together(self):
        class Unmapped(torch.nn.Module):
            def forward(self, x):
                return torch.linalg.det(x) + torch.linalg.eigvalsh(x).sum(), x.cummax(0)[0] + x.cummax(1)[0]

        with self.assertRaises(fusec.InputError) as caught:
            fusec.from_torch(Unmapped(), (torch.eye(3),))
        lines = str(caught.exception).split("\n")
        self.assertEqual(lines[0], "3 operators without a counterpart in the graph format:")
        self.assertEqual(
            [line.split()[:3] for line in lines[1:4]],
            [
                ["aten._linalg_det.default", "1", "node,"],
                ["aten._linalg_eigh.default", "1", "node,"],
                ["aten.cummax.default", "2", "nodes,"],
            ],
        )
        self.assertIn('for example "cummax", from test_from_torch.py:', lines[3])
        self.assertTrue(lines[4].startswith("hint: "))
        self.assertEqual(os.listdir(self.folder.name), [])

    def test_higher_order_operators_are_listed_with_the_others(self):
        for strict in (False, True):
            with self.subTest(strict=strict), self.assertRaises(fusec.InputError) as caught:
                saved(self.path("m.json"), interfaces.higher_order, strict=strict)
            lines = str(caught.exception).split("\n")
            self.assertEqual([line.split()[0] for line in lines[1:4]], ["aten._linalg_det.default", "cond", "while_loop"])
            self.assertIn("1 node, for example \"cond\", from interfaces.py:", lines[2])

    def test_an_index_that_is_read_from_a_tensor_is_refused(self):
        class Takes(torch.nn.Module):
            def forward(self, x, i):
                return x[i]

        with self.assertRaisesRegex(fusec.InputError, 'an attribute that is computed at run time .from "i"'):
            fusec.from_torch(Takes(), (torch.ones(3), torch.tensor(1)))

    def test_the_line_of_an_operator_is_its_own(self):
        line = interfaces._without_counterpart.__code__.co_firstlineno + 1
        by_another_name = type("Made", (torch.nn.Module,), {"forward": lambda self, x: interfaces._without_counterpart(x)})
        for module in (interfaces.CallsHelper(), by_another_name()):
            for strict in (False, True):
                with self.subTest(type(module).__name__, strict=strict), self.assertRaises(fusec.InputError) as caught:
                    fusec.from_torch(module, (torch.eye(3),), strict=strict)
                self.assertIn(f", from interfaces.py:{line}:", str(caught.exception))

    def test_custom_ops_are_written_with_their_types(self):
        @torch.library.custom_op("fusec_test::twice", mutates_args=())
        def twice(x: torch.Tensor, times: int) -> torch.Tensor:
            return x * 2 * times

        twice.register_fake(lambda x, times: torch.empty_like(x))

        class Custom(torch.nn.Module):
            def forward(self, x):
                return torch.relu(twice(x, 3))

        with self.assertRaises(fusec.InputError):
            fusec.from_torch(Custom(), (torch.ones(2),))
        _, _, graph = saved(self.path("m.json"), lambda: (Custom(), (torch.ones(2),)), custom_ops=True)
        node = graph["nodes"][0]
        self.assertEqual(
            (node["op"], node["attrs"], node["outputs"][0]["shape"]), ("fusec_test.twice.default", {"times": 3}, [2])
        )

    def command(self, *arguments):
        """Exit status and standard error of the command line."""
        with contextlib.redirect_stderr(io.StringIO()) as text, contextlib.redirect_stdout(io.StringIO()):
            try:
                status = fusec.__main__.main(["import", *arguments])
            except SystemExit as stop:
                status = stop.code
        return status, text.getvalue()

    def test_command_line(self):
        example = os.path.join(ROOT, "examples", "export_me.py")
        out = self.path("out.json")
        self.assertEqual(self.command(example + ":make", "-o", out, "--example")[0], 0)
        self.assertEqual(
            sorted(os.listdir(self.folder.name)),
            ["out.in.safetensors", "out.json", "out.out.safetensors", "out.safetensors"],
        )
        status, text = self.command(example + ":absent", "-o", out)
        self.assertEqual((status, text), (1, f"error: {example} has no 'absent'\n"))
        status, text = self.command(self.path("none.py") + ":f", "-o", out)
        self.assertEqual((status, text), (1, f"error: {self.path('none.py')} does not exist\n"))
        status, text = self.command(example + ":GatedBlock", "-o", out)
        self.assertEqual(status, 1)
        self.assertIn("--inputs", text)
        self.assertEqual(
            self.command(example + ":GatedBlock", "-o", out, "--inputs", "float32[rows=8:2..64,512]")[0], 0
        )
        with open(out, encoding="utf-8") as f:
            self.assertEqual(json.load(f)["symbols"], {"rows": {"min": 2, "max": 64}})
        for wrong in (["--inputs", "float31[4]"], ["--inputs", "zz"], ["--inputs", "float32[4] zz"], ["--custom-op", "zz"]):
            self.assertEqual(self.command(example + ":GatedBlock", "-o", out, *wrong)[0], 2, wrong)
        self.assertEqual(self.command(example, "-o", out)[0], 2)
        status, text = self.command("nowhere:make", "-o", out)
        self.assertEqual((status, text), (1, "error: there is no module 'nowhere'\n"))
        with open(self.path("three.py"), "w", encoding="utf-8") as f:
            f.write("def make():\n    return 3\n")
        status, text = self.command(self.path("three.py") + ":make", "-o", out)
        self.assertEqual(status, 1)
        self.assertIn("found a result of type int, expected a torch.nn.Module", text)
        status, text = self.command(example + ":make", "-o", self.path("nodir/out.json"))
        self.assertEqual(status, 3)
        self.assertIn("nodir/out.safetensors: the output cannot be written", text)

    def test_saved_programs(self):
        module, args, shapes = models.vit()
        with torch.no_grad():
            torch.export.save(torch.export.export(module, args, dynamic_shapes=shapes), self.path("m.pt2"))
        self.assertEqual(self.command(self.path("m.pt2"), "-o", self.path("m.json"))[0], 0)
        with open(self.path("m.json"), encoding="utf-8") as f:
            self.assertEqual(list(json.load(f)["symbols"]), ["images_dim0"])


if __name__ == "__main__":
    FULL = "--tier=full" in sys.argv
    add_model_tests()
    unittest.main(argv=[sys.argv[0], *(a for a in sys.argv[1:] if not a.startswith("--tier="))])
