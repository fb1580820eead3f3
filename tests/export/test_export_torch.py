#!/usr/bin/env python3
"""test_export_torch.py [--fusec=PROGRAM] [--fusec-run=PROGRAM] [--tier=fast|full] [unittest arguments]

Exports the models of models.py, whole and decomposed, holds each file against the format's rules, has fusec infer and
verify every type, and compares fusec-run's reference device and the emitted kernels on its emulator with PyTorch, at
other sizes too where sizes are symbolic.
The fast tier tries most models in one form only. Exit status 77 (skipped) where PyTorch is missing."""

import contextlib
import importlib.util
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
import warnings
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "scripts"), os.path.dirname(HERE), HERE]

try:
    import torch
except ImportError:
    print(f"skipped: PyTorch is not installed for {sys.executable} (configure with -DFUSEC_TORCH_PYTHON=PATH)")
    sys.exit(77)

import export_torch
import interfaces
import models
import tensors

TOLERANCE = {"F64": (1e-9, 1e-9), "F32": (2e-5, 1e-4), "F16": (1e-2, 1e-2), "BF16": (3e-2, 3e-2)}
OTHER_SIZES = {  # model -> example arguments of another size, that one exported file serves as well
    "mobilenet_v3": lambda: (models.rand(3, 3, 17, 15),),
    "llama_block": lambda: (models.rand(1, 12, 32).to(torch.bfloat16), torch.arange(12).repeat(1, 1)),
    "vit": lambda: (models.rand(3, 3, 12, 12),),
    "mixture_of_experts": lambda: (models.rand(9, 8),),
    "corners": lambda: (models.rand(9, 5), torch.tensor([1, 4, 3]), models.randint(20, 4)),
}
EMULATED_IN_FAST_TIER = {"llama_block", "graph_convolution", "corners"}
FUSEC = FUSEC_RUN = None
FULL = False


def setUpModule():
    warnings.filterwarnings("ignore")
    if FUSEC_RUN is None:
        print("note: no fusec-run: files are checked, their numbers are not", file=sys.stderr)


def exported(path, make, **options):
    """The module, its arguments and the graph that `make`'s module became."""
    module, args, shapes = (*make(), None)[:3]
    export_torch.export(module, args, path, dynamic_shapes=shapes, **options)
    with open(path, encoding="utf-8") as f:
        return module, args, json.load(f)


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def run_and_compare(self, path, module, args, device="reference"):
        """A device of fusec-run against PyTorch."""
        args, keywords = ((), args) if isinstance(args, dict) else (args, {})
        inputs, expected = export_torch.save_example(module, args, path, keywords)
        outputs = self.path("got.safetensors")
        command = [FUSEC_RUN, path, f"--inputs={inputs}", f"--outputs={outputs}", f"--device={device}"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode == 3:
            self.skipTest(f"{device}: {done.stderr.strip()}")  # no NVRTC
        self.assertEqual(done.returncode, 0, done.stderr)
        want, got = tensors.read(expected), tensors.read(outputs)
        self.assertEqual(set(want), set(got))
        for name in want:
            why = tensors.difference(got[name], want[name], *TOLERANCE.get(want[name][0], (0, 0)))
            self.assertIsNone(why, f"{name}: {why}")


class Models(Folder):
    """One test a model, added below."""

    def one_model(self, name, decompose):
        path = self.path(name + ".json")
        module, args, graph = exported(path, models.ALL[name], types=True, decompose=decompose)
        if FUSEC:
            self.assertIsNone(export_torch.check_with_fusec(path, FUSEC))
        if FUSEC_RUN:
            self.run_and_compare(path, module, args)
            if name in OTHER_SIZES:
                self.assertTrue(graph["symbols"])
                self.run_and_compare(path, module, OTHER_SIZES[name]())
            if FULL or (name in EMULATED_IN_FAST_TIER and not decompose):
                self.run_and_compare(path, module, args, "emulator")


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
        _, _, graph = exported(self.path("m.json"), models.llama_block)
        ops = {node["op"] for node in graph["nodes"]}
        self.assertLessEqual({"linear", "rms_norm", "scaled_dot_product_attention", "silu"}, ops)
        self.assertEqual(graph["symbols"], {"batch": {"min": 1, "max": 8}, "tokens": {"min": 1, "max": 512}})
        self.assertEqual(graph["inputs"][0], {"name": "x", "dtype": "bfloat16", "shape": ["batch", "tokens", 32]})

    def test_decompose_leaves_no_composite(self):
        _, _, graph = exported(self.path("m.json"), models.llama_block, decompose=True)
        ops = {node["op"] for node in graph["nodes"]}
        self.assertFalse({"linear", "rms_norm", "scaled_dot_product_attention", "softmax", "silu"} & ops)

    def test_cache_becomes_aliased_inputs_and_tied_weights_are_stored_once(self):
        _, _, graph = exported(self.path("m.json"), models.gpt2_cached)
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
        _, _, graph = exported(self.path("m.json"), lambda: (Scale(), (torch.ones(4, 2).half(),), shapes))
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
            exported(self.path(name), models.dlrm, weights="none")
            with open(self.path(name), "rb") as f:
                texts.append(f.read())
        self.assertEqual(*texts)
        self.assertFalse(os.path.exists(self.path("a.safetensors")))

    def test_meta_modules_have_no_weight_file(self):
        with torch.device("meta"):
            module, x = torch.nn.Linear(4096, 4096), torch.empty(2, 4096)
        _, _, graph = exported(self.path("m.json"), lambda: (module, (x,)))
        self.assertEqual(graph["constants"][0], {"name": "weight", "dtype": "float32", "shape": [4096, 4096]})
        self.assertEqual(os.listdir(self.folder.name), ["m.json"])


class Interfaces(Folder):
    """Arguments, results and buffers: what becomes of them, and that their numbers are PyTorch's."""

    def exported_and_run(self, make, *others, **options):
        """The graph of make()'s module, after its numbers were compared; `others` are further arguments for it."""
        path = self.path("m.json")
        module, args, graph = exported(path, make, **options)
        if FUSEC:
            self.assertIsNone(export_torch.check_with_fusec(path, FUSEC))
        if FUSEC_RUN:
            for given in (args, *others):
                self.run_and_compare(path, module, given)
        return graph

    def test_classes_of_results(self):
        for kind, (make, names) in interfaces.RESULTS.items():
            with self.subTest(kind):
                self.assertEqual(self.exported_and_run(interfaces.result_of(make))["outputs"], names)

    def test_a_buffer_bears_the_name_of_an_argument(self):
        for weights in ("file", "none"):
            graph = self.exported_and_run(interfaces.writes_buffer, weights=weights)
            self.assertEqual([row["name"] for row in graph["inputs"]], ["k", "v", "k_1"])
            self.assertEqual(graph["aliases"], {"output": "k_1", "v.updated": "v"})
            self.assertEqual(graph["metadata"]["pytorch_names"], {"k_1": "k", "v_1": "v"})

    def test_an_integer_argument_is_a_symbol(self):
        graph = self.exported_and_run(
            interfaces.takes_length, interfaces.takes_length(8)[1], interfaces.takes_length(0)[1]
        )
        self.assertEqual(graph["symbols"], {"n": {"min": 0, "max": 8}})
        self.assertEqual(graph["inputs"][1], {"name": "n", "dtype": "uint8", "shape": ["n", 0]})

    def test_a_size_of_data_is_named_as_the_cause(self):
        class Chosen(torch.nn.Module):
            def forward(self, x, n):
                return x[: n.item()].exp() * 2

        with self.assertRaises(export_torch.ExportError) as caught:
            export_torch.export(Chosen(), (torch.ones(4), torch.tensor(2)), self.path("m.json"))
        self.assertIn(") that depends on the values of tensors", str(caught.exception))
        self.assertNotIn("as_strided", str(caught.exception))

    def test_resampling(self):
        for size, options in interfaces.RESAMPLED:
            with self.subTest(image=size, **options):
                module = interfaces.Resample(**options)
                self.exported_and_run(lambda: (module, (models.rand(1, 2, *size),)))

    def test_resampling_of_symbolic_sizes(self):
        graph = self.exported_and_run(interfaces.halved, interfaces.halved(12, 5)[1])
        self.assertEqual(list(graph["symbols"]), ["height", "width"])

    def test_tracing_falls_back_to_dynamo(self):
        real, tried = export_torch.capture, []

        def capture(module, args, kwargs, shapes, strict):
            tried.append(strict)
            if not strict:
                raise export_torch.TraceError("not so")
            return real(module, args, kwargs, shapes, strict)

        with mock.patch.object(export_torch, "capture", capture):
            self.exported_and_run(interfaces.result_of(lambda x: x + 1))
        self.assertEqual(tried, [False, True])

    def test_an_unknown_class_of_results_gets_a_hint(self):
        class Result:
            pass

        with self.assertRaises(export_torch.ExportError) as caught:
            exported(self.path("m.json"), interfaces.result_of(lambda x: Result()))
        self.assertIn("register_pytree_node", str(caught.exception))
        self.assertIn("use_cache=False", str(caught.exception))

    @unittest.skipUnless(importlib.util.find_spec("transformers"), "transformers is not installed")
    def test_decoders_of_transformers(self):
        if not FULL:
            self.skipTest("the full tier has it")
        import transformers_models

        for make, outputs in transformers_models.DECODERS:
            with self.subTest(make.__name__):
                self.assertEqual(self.exported_and_run(make)["outputs"][: len(outputs)], outputs)

    def test_custom_ops_have_sources(self):
        with self.assertRaises(export_torch.ExportError) as caught:
            exported(self.path("m.json"), interfaces.gated)
        self.assertIn("--custom-op NAME=SYMBOL", str(caught.exception))
        graph = self.exported_and_run(
            interfaces.gated, custom_ops={"fusec_test::gate": "$0 * sigmoid($1 * $0) + $2"}
        )
        node = graph["nodes"][0]
        self.assertEqual((node["inputs"], node["pattern"]), (["x", 1.7, "bias"], "broadcast"))
        _, _, graph = exported(self.path("m.json"), interfaces.gated, custom_ops={"fusec_test.gate": "launch_gate"})
        node = graph["nodes"][0]
        self.assertEqual((node["inputs"], node["attrs"]), (["x", "bias"], {"factor": 1.7, "symbol": "launch_gate"}))
        self.assertEqual(self.compiled().returncode, 0)
        with self.assertRaises(export_torch.ExportError) as caught:
            exported(self.path("m.json"), interfaces.gated, custom_ops={"fusec_test.gat": "launch_gate"})
        self.assertIn("no operator fusec_test.gat; it has fusec_test.gate.default", str(caught.exception))

    def test_custom_ops_without_source_can_be_looked_at(self):
        exported(self.path("m.json"), interfaces.gated, custom_ops=True)
        if FUSEC:
            self.assertEqual(self.compiled("--emit=partition=" + self.path("p.json")).returncode, 0)
            done = self.compiled()
            self.assertEqual(done.returncode, 1)
            self.assertIn("no source for a custom op", done.stderr)

    def compiled(self, *options):
        options = options or ("-o", self.path("out.cu"), "--no-nvrtc")
        command = [FUSEC, self.path("m.json"), *options]
        return subprocess.run(command, capture_output=True, text=True) if FUSEC else mock.Mock(returncode=0)


class Errors(Folder):
    def test_all_unmapped_operators_are_listed_together(self):
        class Unmapped(torch.nn.Module):
            def forward(self, x):
                return torch.linalg.det(x) + torch.fft.rfft(x).abs().sum(), x.cummax(0)[0] + x.cummax(1)[0]

        with self.assertRaises(export_torch.ExportError) as caught:
            export_torch.export(Unmapped(), (torch.eye(3),), self.path("m.json"))
        lines = str(caught.exception).split("\n")
        self.assertEqual(lines[0], "3 operators without a counterpart in the graph format:")
        self.assertEqual(
            [line.split()[:3] for line in lines[1:4]],
            [
                ["aten._fft_r2c.default", "1", "node,"],
                ["aten._linalg_det.default", "1", "node,"],
                ["aten.cummax.default", "2", "nodes,"],
            ],
        )
        self.assertIn('for example "cummax", from test_export_torch.py:', lines[3])
        self.assertTrue(lines[4].startswith("hint: "))
        self.assertEqual(os.listdir(self.folder.name), [])

    def test_custom_ops_are_written_with_their_types(self):
        @torch.library.custom_op("fusec_test::twice", mutates_args=())
        def twice(x: torch.Tensor, times: int) -> torch.Tensor:
            return x * 2 * times

        twice.register_fake(lambda x, times: torch.empty_like(x))

        class Custom(torch.nn.Module):
            def forward(self, x):
                return torch.relu(twice(x, 3))

        with self.assertRaises(export_torch.ExportError):
            export_torch.export(Custom(), (torch.ones(2),), self.path("m.json"))
        _, _, graph = exported(self.path("m.json"), lambda: (Custom(), (torch.ones(2),)), custom_ops=True)
        node = graph["nodes"][0]
        self.assertEqual(
            (node["op"], node["attrs"], node["outputs"][0]["shape"]), ("fusec_test.twice.default", {"times": 3}, [2])
        )

    def command(self, *arguments):
        """Exit status and standard error of the command line."""
        with contextlib.redirect_stderr(io.StringIO()) as text, contextlib.redirect_stdout(io.StringIO()):
            try:
                status = export_torch.main(list(arguments))
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
        self.assertEqual((status, text), (1, f"export_torch.py: {example} has no 'absent'\n"))
        status, text = self.command(self.path("none.py") + ":f", "-o", out)
        self.assertEqual((status, text), (1, f"export_torch.py: {self.path('none.py')} does not exist\n"))
        status, text = self.command(example + ":GatedBlock", "-o", out)
        self.assertEqual(status, 1)
        self.assertIn("--inputs", text)
        self.assertEqual(
            self.command(example + ":GatedBlock", "-o", out, "--inputs", "float32[rows=8:2..64,512]")[0], 0
        )
        with open(out, encoding="utf-8") as f:
            self.assertEqual(json.load(f)["symbols"], {"rows": {"min": 2, "max": 64}})
        self.assertEqual(self.command(example + ":GatedBlock", "-o", out, "--inputs", "float31[4]")[0], 1)

    def test_saved_programs(self):
        module, args, shapes = models.vit()
        with torch.no_grad():
            torch.export.save(torch.export.export(module, args, dynamic_shapes=shapes), self.path("m.pt2"))
        self.assertEqual(self.command(self.path("m.pt2"), "-o", self.path("m.json"))[0], 0)
        with open(self.path("m.json"), encoding="utf-8") as f:
            self.assertEqual(list(json.load(f)["symbols"]), ["images_dim0"])


if __name__ == "__main__":
    ours = ("--fusec=", "--fusec-run=", "--tier=")
    given = dict(a[2:].split("=", 1) for a in sys.argv[1:] if a.startswith(ours))
    FUSEC = export_torch.find_program("fusec", given.get("fusec"))
    FUSEC_RUN = export_torch.find_program("fusec-run", given.get("fusec-run"))
    FULL = given.get("tier") == "full"
    rest = [a for a in sys.argv[1:] if not a.startswith(ours)]
    add_model_tests()
    unittest.main(argv=[sys.argv[0], *rest])
