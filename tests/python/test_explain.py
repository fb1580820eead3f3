#!/usr/bin/env python3
"""fusec.explain: what torch.compile(model, backend="fusec") makes of a model.
Exit status 77 (skipped) where PyTorch is missing."""

import sys
import unittest
import warnings

try:
    import torch
except ImportError:
    print(f"skipped: PyTorch is not installed for {sys.executable}")
    sys.exit(77)
from torch import nn

import fusec
from fusec._torch.backend import recorded


def setUpModule():
    warnings.filterwarnings("ignore")


@torch.library.custom_op("test_explain::double_", mutates_args=("x",))
def double_(x: torch.Tensor) -> None:
    x.mul_(2)


class Explain(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()

    def tearDown(self):
        torch._dynamo.reset()  # else its cache holds modules of the library at the end of the process

    def test_what_stays_with_eager_is_explained(self):
        def mixed(x):
            return torch.relu(torch.linalg.det(x @ x)) + torch.rand(())

        explanation = fusec.explain(mixed, torch.randn(3, 3))
        self.assertEqual(
            [(n.operator, n.reason) for n in explanation.eager],
            [
                ("aten._linalg_det.default", "no such operator in the format"),
                ("aten.rand.default", "no such operator in the format"),
            ],
        )
        self.assertIn("test_explain.py:", str(explanation))
        self.assertEqual(explanation.launches, 2)

    def test_what_runs_outside_of_graphs_is_explained(self):
        def between(x):
            return (torch.nonzero(x.relu()) * 2).float().sum()

        def looped(x):
            for _ in range(2):
                x = x.exp() + 1
                torch._dynamo.graph_break()
            return x

        shape = "output shape depends on input Tensor data"
        for model, args, graphs, names, reason in (
            (nn.LSTM(4, 6), (torch.randn(3, 2, 4),), 0, {"aten.zeros.default", "aten.stack.default"}, "support RNN"),
            (torch.bincount, (torch.tensor([1, 2]),), 0, {"aten.bincount.default"}, shape),
            (between, (torch.randn(3),), 2, {"aten.nonzero.default"}, shape),
            (looped, (torch.randn(3),), 0, {"aten.exp.default", "aten.add.Tensor"}, "User-inserted graph break"),
        ):
            with self.subTest(str(model)), torch.no_grad():
                explanation = fusec.explain(model, *args, options={"no_nvrtc": True})
                self.assertEqual(len(explanation.graphs), graphs)
                self.assertLessEqual(names, {n.operator for n in explanation.eager})
                self.assertTrue(all(reason in n.reason for n in explanation.eager), str(explanation))
                self.assertIn(f"left to eager: {len(explanation.eager)} operators", str(explanation))
                self.assertIn("graph breaks: 1", str(explanation))
        line = between.__code__.co_firstlineno + 1
        self.assertIn(f"aten.nonzero.default, from test_explain.py:{line}: ", str(fusec.explain(between, torch.ones(3))))
        trained = fusec.explain(nn.Linear(3, 3), torch.randn(2, 3))
        self.assertEqual((trained.eager, trained.breaks), ([], []))

    def test_an_operator_that_writes_its_argument_is_explained(self):
        def doubled(x):
            made = x + 1
            double_(made)
            return made * 3

        explanation = fusec.explain(doubled, torch.randn(3), options={"no_nvrtc": True})
        (left,) = explanation.eager
        line = doubled.__code__.co_firstlineno + 2
        self.assertEqual(
            (left.operator, left.source, left.reason),
            ("test_explain.double_.default", f"test_explain.py:{line}", "an operator with effects"),
        )

    def test_many_explanations(self):
        """TorchDynamo compiles a function eight times at most. An explanation does not count."""

        def function(x):
            return x.exp() + 1

        def broken(x):
            made = x.exp()
            torch._dynamo.graph_break()
            return made + 1

        for model in (function, broken, nn.Sequential(nn.Linear(3, 3), nn.ReLU())):
            x = torch.randn(2, 3)
            first = str(fusec.explain(model, x, options={"no_nvrtc": True}))
            for _ in range(9):
                self.assertEqual(str(fusec.explain(model, x, options={"no_nvrtc": True})), first)
            with recorded() as graphs:
                torch.compile(model, backend="fusec", options={"no_nvrtc": True})(x)
            self.assertGreater(len(graphs), 0)
            self.assertEqual(str(fusec.explain(model, x, options={"no_nvrtc": True})), first)

    def test_what_is_no_model(self):
        with self.assertRaisesRegex(fusec.UsageError, "found 3, expected a module or a function"):
            fusec.explain(3)


if __name__ == "__main__":
    unittest.main()
