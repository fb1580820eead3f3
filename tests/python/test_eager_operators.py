#!/usr/bin/env python3
"""Operators of eager beside the regions of a graph: their order, those that take graphs, and the memory of arguments.
Exit status 77 (skipped) where PyTorch is missing."""

import sys
import unittest
import unittest.mock
import warnings

try:
    import torch
except ImportError:
    print(f"skipped: PyTorch is not installed for {sys.executable}")
    sys.exit(77)
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn import functional as F
from torch.nn.attention.flex_attention import flex_attention

from fusec._torch.backend import recorded


def setUpModule():
    warnings.filterwarnings("ignore")


noted = []


@torch.library.custom_op("test_eager_operators::note", mutates_args=())
def note(x: torch.Tensor, number: int) -> torch.Tensor:
    """Notes the number; its gradient does so again."""
    noted.append(number)
    return x.clone()


note.register_fake(lambda x, number: torch.empty_like(x))
note.register_autograd(lambda context, gradient: (note(gradient, 0), None))


class EagerOperators(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()

    def tearDown(self):
        torch._dynamo.reset()  # else its cache holds modules of the library at the end of the process

    def test_random_operators_keep_their_order(self):
        def drawn(x):
            made = torch.cat([torch.bernoulli(x.sigmoid()), torch.rand(3), torch.bernoulli(torch.full((6,), 0.5))])
            return made, F.dropout(F.dropout(x.exp(), 0.3).sin() + torch.randn(4), 0.5)

        x, results = torch.zeros(4), []
        for function in (drawn, torch.compile(drawn, backend="fusec")):
            torch.manual_seed(5)
            results.append(function(x))
        torch.testing.assert_close(*results)

    def test_custom_operators_keep_their_order(self):
        noted.clear()
        torch.compile(lambda x: (note(x.exp(), 1), note(x, 2), note(x.sin(), 3)), backend="fusec")(torch.zeros(3))
        self.assertEqual(noted, [1, 2, 3])

    def test_operators_that_take_graphs(self):
        def branches(x):
            return torch.cond(x.sum() > 0, lambda x: x.exp() + 1, lambda x: x - 1, (x * 2,)) * 3

        def repeated(x):
            start = (torch.tensor(0), x + 1)
            return torch.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), start)[1] * 2

        @torch.compiler.nested_compile_region
        def inner(x):
            return x.sin() * 2

        def scored(x):
            queries = x.expand(1, 2, 3, 3)
            return flex_attention(queries * 2, queries, queries, score_mod=lambda s, b, h, i, j: s + i - j) + x.sum()

        functions = (branches, repeated, lambda x: inner(x + 1) + inner(x * 2), scored)
        names = (["cond"], ["while_loop"], ["invoke_subgraph"] * 2, ["flex_attention"])
        for function, left in zip(functions, names):
            with self.subTest(left[0]), torch.no_grad():
                x = torch.randn(3, 3).abs()
                with recorded() as graphs:
                    got = torch.compile(function, backend="fusec")(x)
                torch.testing.assert_close(got, function(x), atol=1e-4, rtol=1e-4)
                (graph,) = graphs
                self.assertEqual([n.operator for n in graph.eager], left)
                self.assertEqual({n.reason for n in graph.eager}, {"a higher-order operator"})

    def test_arguments_are_freed_after_their_last_use(self):
        made = torch.compile(lambda x: note(x * 2, 0).exp().sin(), backend="fusec")(torch.randn(3, requires_grad=True))
        saved = [StorageWeakRef(t.untyped_storage()) for t in made.grad_fn.saved_tensors]
        alive = []
        with unittest.mock.patch(f"{__name__}.noted", unittest.mock.Mock()) as watched:
            watched.append = lambda number: alive.extend(not memory.expired() for memory in saved)
            made.sum().backward()
        self.assertIn(False, alive)
        self.assertNotIn(True, alive)


if __name__ == "__main__":
    unittest.main()
