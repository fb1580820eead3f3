"""What fusec.from_torch and `python -m fusec import` refuse, and how they say so."""

import contextlib
import io
import json
import os

import fusec
import fusec.__main__
import interfaces
import models
import torch
from comparisons import Folder, saved

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))



class Errors(Folder):
    def test_what_is_no_module_and_no_arguments(self):
        module, x = torch.nn.Linear(4, 4), torch.ones(1, 4)
        for args, hint in ((x, "(x,)"), (x.numpy(), "(x,)"), ("x", "(x,)"), (3, "(x,)")):
            with self.subTest(type(args).__name__), self.assertRaises(fusec.UsageError) as caught:
                fusec.from_torch(module, args)
            self.assertIn(hint, caught.exception.hint)
        with self.assertRaisesRegex(fusec.UsageError, "do not fit Linear.forward: found too many positional"):
            fusec.from_torch(module, (x, x))
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
        self.assertIn('for example "cummax", from import_errors.py:', lines[3])
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
        for wrong in (["--inputs", "float32[4] float32[4] float32[4]"], ["--inputs", "float31[4]"], ["--inputs", "zz"], ["--inputs", "float32[4] zz"], ["--custom-op", "zz"]):
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
