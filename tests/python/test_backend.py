#!/usr/bin/env python3
"""test_backend.py [unittest arguments]: torch.compile(model, backend="fusec") against eager. Exit status 77 (skipped)
where PyTorch is missing."""

import copy
import os
import subprocess
import sys
import unittest
import unittest.mock
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "from_torch")]

try:
    import torch
except ImportError:
    print(f"skipped: PyTorch is not installed for {sys.executable}")
    sys.exit(77)
from torch import nn
from torch.nn import functional as F
from torch.utils import _pytree as pytree

import fusec
import models
from fusec._torch.backend import recorded
from fusec._torch.rewrites import REWRITES

MODELS = ("llama_block", "gpt2_cached", "mixture_of_experts", "complex_rotary", "corners")


def setUpModule():
    warnings.filterwarnings("ignore")


class Attention(nn.Module):
    """Causal attention with a key cache that it writes at `position`."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(16, 48)
        self.register_buffer("keys", torch.zeros(1, 2, 12, 8))

    def forward(self, x, position):
        q, k, v = (t.view(1, -1, 2, 8).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        self.keys[:, :, position] = k
        return F.scaled_dot_product_attention(q, self.keys[:, :, : x.shape[1]], v, is_causal=True).transpose(1, 2)


class BasicBlock(nn.Module):
    """Of a residual network."""

    def __init__(self, channels):
        super().__init__()
        self.first, self.second = (nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(2))
        self.first_norm, self.second_norm = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)

    def forward(self, x):
        return F.relu(x + self.second_norm(self.second(F.relu(self.first_norm(self.first(x))))))


class Backend(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        torch.manual_seed(0)

    def tearDown(self):
        torch._dynamo.reset()  # else its cache holds modules of the library at the end of the process

    def assert_like_eager(self, module, *args, options=None, **how):
        """Results, strides, what the module and its arguments hold afterwards. Returns what became of the graphs."""
        other, other_args = copy.deepcopy((module, args))
        with recorded() as graphs:
            got = torch.compile(module, backend="fusec", options=options, **how)(*args)
        want = other(*other_args)
        for mine, theirs in zip(
            pytree.tree_leaves((got, args, module.state_dict())),
            pytree.tree_leaves((want, other_args, other.state_dict())),
        ):
            if isinstance(theirs, torch.Tensor):
                tolerance = 3e-2 if theirs.dtype == torch.bfloat16 else 1e-4
                torch.testing.assert_close(mine, theirs, atol=tolerance, rtol=tolerance)
                self.assertEqual(mine.stride(), theirs.stride())
            else:
                self.assertEqual(mine, theirs)
        return graphs

    def test_models(self):
        for name in MODELS:
            with self.subTest(name), torch.no_grad():
                module, args = models.ALL[name]()[:2]
                self.assert_like_eager(module.eval(), *args)

    def test_nothing_is_left_to_eager(self):
        module = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 8))
        with torch.no_grad():
            (graph,) = self.assert_like_eager(module, torch.randn(5, 8))
        self.assertEqual((len(graph.regions), graph.eager), (1, []))

    def test_sizes_vary_without_compiling_again(self):
        module = nn.Sequential(nn.Linear(8, 8), nn.Softmax(-1))
        compiled = torch.compile(module, backend="fusec", dynamic=True)
        with torch.no_grad(), recorded() as graphs:
            for rows in (5, 9, 2, 300):
                x = torch.randn(rows, 8)
                torch.testing.assert_close(compiled(x), module(x))
        self.assertEqual(len(graphs), 1)

    def test_a_size_that_no_tensor_has(self):
        def scaled(x, n):
            return x * n + torch.arange(n)[:, None]

        compiled = torch.compile(scaled, backend="fusec", dynamic=True)
        for n in (4, 7):
            x = torch.randn(3)
            torch.testing.assert_close(compiled(x, n), scaled(x, n))

    def test_a_cache_is_written_in_place(self):
        with torch.no_grad():
            (graph,) = self.assert_like_eager(Attention(), torch.randn(1, 5, 16), torch.arange(2, 7))
        self.assertEqual(graph.eager, [])

    def test_an_input_read_after_it_is_written(self):
        def both(x):
            before = torch.linalg.det(x)
            x.mul_(2)
            return before + x.sum()

        module = nn.Module()
        module.forward = both
        with torch.no_grad():
            self.assert_like_eager(module, torch.randn(3, 3))

    def test_strides_of_inputs_and_results(self):
        x = torch.randn(4, 6, 5)
        for seen in (x.transpose(0, 2), x[:, ::2], x[:1].expand(3, 6, 5), x.permute(1, 0, 2)):
            with self.subTest(strides=seen.stride()), torch.no_grad():
                module = nn.Module()
                module.forward = lambda t: (torch.exp(t), t.sum(0), t.transpose(0, 1))
                self.assert_like_eager(module, seen)

    def test_a_graph_without_inputs(self):
        module = nn.Module()
        module.forward = lambda: torch.arange(4) * 2
        with torch.no_grad():
            (graph,) = self.assert_like_eager(module)
        self.assertEqual(graph.eager, [])

    def test_results_with_gaps_in_memory(self):
        """A view of a sum that is read in the region and returned; a piece of a split beside one that is read."""

        def views(x):
            total = x + 1
            column = total.narrow(1, 0, 1)
            pieces = total.split(2, 1)
            return column, column * 3, pieces[1], pieces[0] * 2

        module = nn.Module()
        module.forward = views
        with torch.no_grad():
            (graph,) = self.assert_like_eager(module, torch.randn(4, 5))
        self.assertEqual(graph.eager, [])

    def test_results_share_memory_as_they_do_in_eager(self):
        """total and its views are one result of the region; so they are where a decomposition has other strides."""

        def views(x, y):
            total = x + 1
            rows = total.reshape(-1)
            made = torch.diagonal_scatter(x, y, 0, 1, 0)
            return total, rows, rows * 2, made, made[0]

        with torch.no_grad():
            got = torch.compile(views, backend="fusec")(torch.randn(4, 4), torch.randn(4))
        pointers = [t.untyped_storage().data_ptr() for t in got]
        self.assertEqual(pointers[0], pointers[1])
        self.assertEqual(pointers[3], pointers[4])
        self.assertEqual(len(set(pointers)), 3)

    def test_strides_with_gaps_of_an_operator(self):
        module = nn.Module()
        module.forward = lambda x: torch.empty_strided((2, 3), (7, 2)).fill_(1) + x
        with torch.no_grad():
            self.assert_like_eager(module, torch.randn(3))

    def test_a_decomposition_keeps_the_strides_of_results(self):
        module = nn.Module()
        module.forward = lambda x, y: torch.diagonal_scatter(x, y, 0, 2, 0)
        with torch.no_grad():
            (graph,) = self.assert_like_eager(module, torch.randn(5, 4, 5), torch.randn(4, 5))
        self.assertEqual(graph.eager, [])

    def test_decompositions_that_write_in_place_or_fail_are_left_out(self):
        def in_place(x):
            made = x.clone()
            made.select(0, 0).add_(1)
            return made

        def failing(x):
            raise ValueError("no")

        module = nn.Module()
        module.forward = lambda x: torch.sinc(torch.logit(x)) + 1
        table = {torch.ops.aten.logit.default: lambda x, eps=None: in_place(x), torch.ops.aten.sinc.default: failing}
        with torch.no_grad(), unittest.mock.patch.dict(REWRITES, table):
            (graph,) = self.assert_like_eager(module, torch.rand(3, 3))
        self.assertEqual({n.operator for n in graph.eager}, {"aten.logit.default", "aten.sinc.default"})

    def test_a_region_that_does_not_compile_stays_with_eager(self):
        def refused(*args, **kwargs):
            raise fusec.InputError(what="the region", found="a test")

        module, x = nn.Sequential(nn.ReLU(), nn.Linear(8, 8)), torch.randn(2, 8)
        with torch.no_grad(), unittest.mock.patch("fusec._torch.region.compile_model", refused):
            (graph,) = self.assert_like_eager(module, x)
        self.assertEqual(graph.regions, [])
        self.assertEqual({n.operator for n in graph.eager}, {"aten.relu.default", "aten.addmm.default"})
        self.assertIn("found a test", graph.eager[0].reason)

    def test_options_for_which_a_region_does_not_compile_are_told(self):
        wrong = ({"target": "/no/such"}, {"tuning_db": "/no/such"}, {"plan": {"nonsense": 1}}, {"no_fuse": ["bogus"]},
                 {"timeout": 1e-9}, {"limit": {"nodes": 0}}, {3: 4})
        for options in wrong:
            with self.subTest(options), self.assertRaises(torch._dynamo.exc.BackendCompilerFailed):
                torch.compile(lambda x: x.exp() + 1, backend="fusec", options=options)(torch.ones(3))

    def test_a_missing_nvrtc_is_told(self):
        def refused(*args, **kwargs):
            raise fusec.PlatformError(what="NVRTC is missing")

        with torch.no_grad(), unittest.mock.patch("fusec._torch.region.compile_model", refused):
            with self.assertRaisesRegex(torch._dynamo.exc.BackendCompilerFailed, "NVRTC is missing"):
                torch.compile(nn.ReLU(), backend="fusec")(torch.randn(2, 8))

    def test_tensors_that_a_module_does_not_take(self):
        module = fusec.compile(fusec.from_torch(nn.ReLU(), (torch.ones(3, 3),)))
        for tensor, text in ((torch.eye(3).to_sparse(), "sparse"), (torch.ones(3, 3, device="meta"), "device meta")):
            with self.assertRaisesRegex(fusec.InputError, text):
                module(tensor)

    def test_signs_of_zeros(self):
        module, x = nn.Module(), torch.tensor([0.0, -0.0, 1.0, -1.0, float("inf"), -float("inf")])
        module.forward = lambda x, y: (torch.signbit(x), torch.copysign(y, x))
        with torch.no_grad():
            self.assert_like_eager(module, x, torch.arange(6.0) - 3)

    def test_the_end_of_a_process_is_silent(self):
        """In a release build, although TorchDynamo's caches keep what was compiled of a user's own function."""
        code = """import torch; torch.compile(lambda x: x * 2, backend="fusec", options={"no_nvrtc": True})(torch.ones(3))"""
        ran = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
        self.assertNotIn("nanobind", ran.stderr)

    def test_a_missing_pattern_file_is_told(self):
        with self.assertRaisesRegex(torch._dynamo.exc.BackendCompilerFailed, "missing.patterns"):
            torch.compile(nn.ReLU(), backend="fusec", options={"patterns": ["missing.patterns"]})(torch.randn(3))

    def test_shifts(self):
        module = nn.Module()
        module.forward = lambda x, k: (x << k, x >> k, x >> 4, x << 4)
        for dtype in (torch.uint8, torch.int32, torch.int64):
            with self.subTest(dtype), torch.no_grad():
                bits = torch.iinfo(dtype).bits
                x, k = torch.tensor([0, 1, 100, 127]), torch.tensor([1, bits - 1, bits - 2, bits])
                (graph,) = self.assert_like_eager(module, x.to(dtype), k.to(dtype))
                self.assertEqual(graph.eager, [])

    def test_which_results_share_memory(self):
        def views(x):
            total = x + 1
            return total, total.flatten(), total.clone()

        def cleared(x):
            x.zero_()
            return x, x.clone()

        compiled = torch.compile(views, backend="fusec", dynamic=True)
        for rows in (3, 5):
            with torch.no_grad():
                total, flat, copied = (t.untyped_storage().data_ptr() for t in compiled(torch.randn(rows, 4)))
            self.assertEqual(total, flat)
            self.assertNotEqual(total, copied)
        with torch.no_grad():
            written, copied = torch.compile(cleared, backend="fusec")(torch.randn(3))
        self.assertNotEqual(written.data_ptr(), copied.data_ptr())

    def test_dtypes_of_results(self):
        module = nn.Module()
        module.forward = lambda x, m: (torch.all(x), torch.any(x, 0), m.masked_fill(x > 1, 1), x.masked_fill(m, 2.0))
        with torch.no_grad():
            bytes = torch.tensor([1, 0, 2], dtype=torch.uint8)
            self.assert_like_eager(module, bytes, torch.tensor([True, False, True]))

    def test_a_written_input_is_returned(self):
        def filled(x):
            x.fill_(2)
            return x, x + 1

        module = nn.Module()
        module.forward = filled
        x = torch.zeros(3)
        with torch.no_grad():
            (graph,) = self.assert_like_eager(module, x)
        self.assertEqual(graph.eager, [])

    def assert_trains_like_eager(self, module, args, loss, steps=1):
        """Gradients, parameters and buffers after steps of AdamW, all compiled. Returns what became of the graphs."""
        other, graphs = copy.deepcopy(module), []
        gradients = []
        for network, compiled in ((module, True), (other, False)):
            torch.manual_seed(1)  # dropout draws in eager: the same numbers
            optimizer = torch.optim.AdamW(network.parameters(), lr=0.1)
            forward, update = network, optimizer.step
            if compiled:
                forward, update = torch.compile(network, backend="fusec"), torch.compile(update, backend="fusec")
            with recorded() as found:
                for _ in range(steps):
                    optimizer.zero_grad()
                    loss(forward(*args)).backward()
                    update()
            graphs += found
            gradients.append([p.grad for p in network.parameters()])
        mine, theirs = (pytree.tree_leaves((g, n.state_dict())) for g, n in zip(gradients, (module, other)))
        for got, want in zip(mine, theirs, strict=True):
            torch.testing.assert_close(got, want, atol=1e-4, rtol=1e-4)
        return graphs

    def test_training_steps(self):
        mlp = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Dropout(0.25), nn.Linear(16, 4))
        block, inputs = models.ALL["llama_block"]()[:2]
        cases = {
            "mlp": (mlp, (torch.randn(6, 8),), lambda y: F.cross_entropy(y, torch.arange(6) % 4), 2),
            "llama": (block.float(), (inputs[0].float(), inputs[1]), lambda y: y.square().mean(), 1),
            "resnet": (BasicBlock(6), (torch.randn(2, 6, 7, 7),), lambda y: y.square().mean(), 2),
        }
        for name, (module, args, loss, steps) in cases.items():
            with self.subTest(name):
                torch._dynamo.reset()
                graphs = self.assert_trains_like_eager(module.train(), args, loss, steps)
                self.assertEqual(graphs[-1].eager, [], "of the optimizer's step")

    def test_integers_that_are_no_sizes(self):
        def moved(x, n):
            return x.mul_(n) + n, x.clamp(n, n + 3), x[:n], (x.view(2, 5) + n).t(), torch.full((3,), n)

        for dynamic in (True, None):
            torch._dynamo.reset()
            compiled = torch.compile(moved, backend="fusec", dynamic=dynamic)
            for n in (2, 3, -1, -4, 7, 2**33):
                with self.subTest(n=n, dynamic=dynamic), torch.no_grad():
                    got, want = (function(torch.arange(10), n) for function in (compiled, moved))
                    torch.testing.assert_close(got, want)
                    self.assertEqual([t.stride() for t in got], [t.stride() for t in want])

    def test_numbers_computed_of_sizes(self):
        def scaled(x, n):
            return x * (x.shape[0] / 3) + 1, x * n ** 0.5, x.sin() * (n > 3), torch.full((2,), n / 4) + x[0].exp()

        compiled = torch.compile(scaled, backend="fusec", dynamic=True)
        for rows, n in ((4, 3), (7, 5)):
            x = torch.randn(rows)
            torch.testing.assert_close(compiled(x, n), scaled(x, n))

    def test_complex_tensors(self):
        """Regions hold them as pairs of real tensors; at the ends of regions are views of them."""
        x, turns = torch.randn(2, 5, 8), torch.randn(5, 4, dtype=torch.complex64)

        def rotated(x, turns):
            pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2))) * turns
            return torch.view_as_real(pairs).flatten(2), pairs, (turns @ turns.mT).abs()

        def spectrum(x):
            return torch.fft.fftn(x, dim=(1, 2)).real + torch.fft.irfft(torch.fft.rfft(x, norm="ortho") * 2, n=8)

        def mixed(x):
            values, vectors = torch.linalg.eig(x)
            return (values * 2).abs(), vectors.imag + x

        def turned(x, turns):
            return torch.view_as_real(turns * 1j + 1), turns / (1 + 2j), x[:, :, :4] * 2j

        for function, args, left in ((rotated, (x, turns), []), (spectrum, (x,), []), (turned, (x, turns), []),
                                     (mixed, (torch.randn(3, 3),), ["aten.linalg_eig.default"])):
            with self.subTest(function.__name__), torch.no_grad():
                module = nn.Module()
                module.forward = function
                (graph,) = self.assert_like_eager(module, *args)
                self.assertEqual([n.operator for n in graph.eager], left)

    def test_layers_that_eager_computes_by_one_kernel(self):
        padding, causal = torch.arange(5) > torch.tensor([[2], [4]]), torch.ones(5, 5).triu(1).bool()
        for first, act in ((False, "relu"), (True, "gelu")):
            layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, norm_first=first, activation=act).eval()
            attention = layer.self_attn
            for masks in ((None, None), (causal, None), (None, padding), (causal, padding)):
                functions = (lambda x: layer(x, *masks), lambda x: attention(x, x, x, masks[1], attn_mask=masks[0]))
                for function in functions:
                    with self.subTest(first=first, masks=[m is not None for m in masks]), torch.no_grad():
                        torch._dynamo.reset()
                        module = nn.Module()
                        module.forward = function
                        (graph,) = self.assert_like_eager(module, torch.randn(2, 5, 16), options={"no_nvrtc": True})
                        self.assertEqual(graph.eager, [])

    def test_operators_said_in_others(self):
        a, b = torch.randn(2, 9, 9) / 3 + 2 * torch.eye(9), torch.randn(2, 9, 9)
        functions = {
            "solve_triangular": lambda: [
                torch.linalg.solve_triangular(a, b, upper=upper, left=left, unitriangular=unit).sum(-1)
                for upper in (False, True) for left in (False, True) for unit in (False, True)
            ],
            "masked_scatter": lambda: a.masked_scatter(b[:1] > 0.3, b),
            "diagonal": lambda: torch.einsum("bii->b", a[:, :5, 2:7]) + b[:, :3].diagonal(1, 1, 2).sum(-1),
        }
        for name, function in functions.items():
            with self.subTest(name), torch.no_grad():
                torch._dynamo.reset()
                module = nn.Module()
                module.forward = lambda _: function()
                (graph,) = self.assert_like_eager(module, a, options={"no_nvrtc": True})
                self.assertEqual(graph.eager, [])

    def test_options(self):
        module, x = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU()), torch.randn(4, 8)
        launches = []
        for strategy in ("none", "full"):
            torch._dynamo.reset()
            with torch.no_grad():
                (graph,) = self.assert_like_eager(module, x, options={"strategy": strategy})
            launches.append(graph.launches)
        self.assertGreater(launches[0], launches[1])
        with self.assertRaisesRegex(torch._dynamo.exc.BackendCompilerFailed, "did you mean 'strategy'"):
            torch.compile(module, backend="fusec", options={"strategie": "full"})(torch.randn(2, 8))


if __name__ == "__main__":
    unittest.main()
