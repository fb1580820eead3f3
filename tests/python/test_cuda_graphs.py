#!/usr/bin/env python3
"""The backend's option cuda_graphs, and with a stand-in for a module what it does on a GPU.
Exit status 77 (skipped) where PyTorch is missing."""

import sys
import threading
import unittest
import unittest.mock
import warnings

try:
    import torch
except ImportError:
    print(f"skipped: PyTorch is not installed for {sys.executable}")
    sys.exit(77)
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef

from fusec._torch.cuda_graphs import MOST_GRAPHS, GraphedCalls


def setUpModule():
    warnings.filterwarnings("ignore")


class Option(unittest.TestCase):
    def test_without_a_gpu_it_changes_nothing(self):
        module, x = nn.Linear(8, 8), torch.randn(4, 8)
        with torch.no_grad():
            compiled = torch.compile(module, backend="fusec", options={"cuda_graphs": True})
            torch.testing.assert_close(compiled(x), module(x), atol=1e-4, rtol=1e-4)

    def test_another_value_is_refused(self):
        with self.assertRaisesRegex(torch._dynamo.exc.BackendCompilerFailed, "expected True or False"):
            torch.compile(nn.Linear(8, 8), backend="fusec", options={"cuda_graphs": 1})(torch.randn(4, 8))

    def tearDown(self):
        torch._dynamo.reset()  # else its cache holds modules of the library at the end of the process


class Accumulator:
    """Stands in for a fusec.Module on a GPU: total += x @ weight, in place; returns (total, 2 * total)."""

    def __init__(self):
        self.calls = self.captures = 0

    def __call__(self, x, weight, total):
        self.calls += 1
        total += x @ weight
        return total, 2 * total

    def capture(self, x, weight, total):
        self.captures += 1
        double = torch.empty_like(total)

        def replay():
            total.add_(x @ weight)
            double.copy_(2 * total)
            return total, double

        return unittest.mock.Mock(replay=replay)


class Doubled:
    """Likewise: 2 * x."""

    def __call__(self, x):
        return 2 * x

    def capture(self, x):
        made = torch.empty_like(x)
        return unittest.mock.Mock(replay=lambda: made.copy_(2 * x))


class GraphedCallsTest(unittest.TestCase):
    def setUp(self):
        self.module = Accumulator()
        self.graphed = GraphedCalls(self.module, written={2})
        self.weight, self.total = torch.randn(4, 4), torch.zeros(2, 4)
        self.expected = torch.zeros(2, 4)
        self.doubles = []

    def assert_step(self, weight=None, total=None, x=None):
        weight, total = self.weight if weight is None else weight, self.total if total is None else total
        x = torch.randn(2, 4) if x is None else x
        self.expected = self.expected + x @ weight
        returned, double = self.graphed(x, weight, total)
        self.assertIs(returned, total)
        torch.testing.assert_close(total, self.expected)
        self.doubles.append((double, 2 * self.expected))
        for got, want in self.doubles:  # those of earlier calls too
            torch.testing.assert_close(got, want)

    def test_one_capture_serves_all_calls(self):
        for _ in range(5):
            self.assert_step()
        self.assertEqual((self.module.calls, self.module.captures), (1, 1))

    def test_an_input_that_moves_is_copied_from_then_on(self):
        for _ in range(3):
            self.assert_step()
        for _ in range(3):
            self.total = self.total.clone()
            self.assert_step(weight=torch.randn(4, 4))
        self.assertEqual(self.module.captures, 2)

    def test_inputs_that_a_graph_cannot_read_in_place(self):
        wide, shifted = torch.randn(4, 8), torch.randn(17)
        for _ in range(3):
            self.assert_step(weight=wide[:, ::2])
            self.assert_step(weight=shifted[1:].view(4, 4))
        self.assertLessEqual(self.module.captures, 2)

    def test_sizes_beyond_the_most_are_called_without_a_graph(self):
        for rows in range(1, MOST_GRAPHS + 3):
            self.total = self.expected = torch.zeros(rows, 4)
            self.total = self.total.clone()
            for _ in range(3):
                self.assert_step(x=torch.randn(rows, 4))
        self.assertEqual(self.module.captures, MOST_GRAPHS)
        self.assertEqual(self.module.calls, MOST_GRAPHS + 2 * 3)

    def test_inputs_are_not_kept_before_a_graph_reads_them(self):
        x = torch.randn(2, 4)
        memory = StorageWeakRef(x.untyped_storage())
        self.assert_step(x=x)
        del x
        self.assertTrue(memory.expired())

    def test_memory_that_another_input_had_is_no_place_of_an_input(self):
        """Each x lies where the one before it, which is gone, did."""
        memory = torch.empty(8).numpy()
        for _ in range(4):
            self.assert_step(x=torch.from_numpy(memory).view(2, 4).normal_())
        self.assertEqual(self.module.captures, 1)

    def test_inputs_of_inference_mode_and_others(self):
        with torch.inference_mode():
            for _ in range(2):
                self.assert_step()
        with torch.no_grad():
            for _ in range(2):
                self.assert_step()

    def test_calls_of_several_threads_take_turns(self):
        graphed, wrong = GraphedCalls(Doubled(), written=set()), []

        def run(number):
            x = torch.full((4,), float(number))
            wrong.extend(made for _ in range(2000) if not torch.equal(made := graphed(x)[0], 2 * x))

        for _ in range(2):
            graphed(torch.randn(4))
        threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            sys.setswitchinterval(interval)
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()
