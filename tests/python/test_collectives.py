#!/usr/bin/env python3
"""Tensor-parallel models in two processes with gloo, on the emulator: equal to the unsharded model.

The processes run this file with --rank; what one of them finds wrong ends its process with another status than 0. Skipped
where PyTorch is missing.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import torch
    import torch.distributed as dist
    from torch import nn
except ImportError:
    print(f"skipped: PyTorch is not installed for {sys.executable}")
    sys.exit(77)

import fusec
from fusec._torch.backend import recorded

PROCESSES = 2


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.up = nn.Linear(16, 32, bias=False), nn.Linear(16, 32, bias=False)
        self.down = nn.Linear(32, 16, bias=False)

    def forward(self, x):
        return self.down(nn.functional.silu(self.gate(x)) * self.up(x))


class Attention(nn.Module):
    HEADS, SIZE = 4, 8

    def __init__(self):
        super().__init__()
        width = self.HEADS * self.SIZE
        self.norm = nn.LayerNorm(width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))

    def forward(self, x):
        batch, tokens, _ = x.shape
        h = self.norm(x)
        q, k, v = (p(h).view(batch, tokens, -1, self.SIZE).transpose(1, 2) for p in (self.q, self.k, self.v))
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.o(mixed.transpose(1, 2).reshape(batch, tokens, -1))


def parallel(module, plan):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import parallelize_module

    return parallelize_module(module, init_device_mesh("cpu", (PROCESSES,)), plan)


def compiled_equals_unsharded(module, columns, rows, x):
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel

    with torch.no_grad():
        want = module(x)
        sharded = parallel(module, {n: ColwiseParallel() for n in columns} | {n: RowwiseParallel() for n in rows})
        torch.testing.assert_close(torch.compile(sharded, backend="fusec")(x), want, atol=1e-5, rtol=1e-5)
        report = fusec.explain(sharded, x)
        assert not any(g.eager for g in report.graphs), str(report)


def mlp(rank):
    compiled_equals_unsharded(Mlp(), ["gate", "up"], ["down"], torch.randn(8, 16))


def attention(rank):
    compiled_equals_unsharded(Attention(), ["q", "k", "v"], ["o"], torch.randn(2, 5, 32))


def each_collective(x):
    ops = torch.ops._c10d_functional
    name = dist.group.WORLD.group_name
    wait = ops.wait_tensor
    gathered = wait(ops.all_gather_into_tensor(x * 2, PROCESSES, name))
    part = wait(ops.reduce_scatter_tensor(gathered + 1, "sum", PROCESSES, name))
    greatest = wait(ops.all_reduce(part.relu(), "max", name)) + 1
    a, b = ops.all_reduce_coalesced([part * 3, greatest.sum(0)], "sum", name)
    return greatest, wait(a).exp(), wait(b) - 1, gathered.int()


def collectives(rank):
    x = torch.randn(4, 6) + rank
    compiled = torch.compile(each_collective, backend="fusec", dynamic=True)
    for rows in (4, 2, 0):
        for got, want in zip(compiled(x[:rows]), each_collective(x[:rows]), strict=True):
            torch.testing.assert_close(got, want)


def of_eager(rank):
    """Collectives that stay with eager are waited for before their results are read."""
    import torch.distributed._functional_collectives as functional

    group, x = dist.group.WORLD, torch.arange(8.0).view(4, 2) + 10 * rank
    for collective in (
        lambda x: functional.broadcast(x, 1, group),
        lambda x: functional.all_to_all_single(x, None, None, group),
        lambda x: functional.all_reduce(x.int(), "band", group),
        lambda x: functional.all_reduce(x.to(torch.complex64), "sum", group),
        lambda x: functional.all_gather_tensor(x * 1j, 0, group),
    ):
        torch._dynamo.reset()
        with recorded() as graphs:
            got = torch.compile(lambda x: collective(x * 2) + 1, backend="fusec")(x)
        torch.testing.assert_close(got, collective(x * 2) + 1)
        assert "_c10d_functional.wait_tensor.default" in [n.operator for n in graphs[0].eager], graphs[0].eager


class SumOfGroup(nn.Module):
    def forward(self, x):
        summed = torch.ops._c10d_functional.all_reduce(x + 1, "sum", dist.group.WORLD.group_name)
        return torch.ops._c10d_functional.wait_tensor(summed) * 2


def imported(rank):
    x = torch.arange(6.0).reshape(2, 3) * (rank + 1)
    module = fusec.compile(fusec.from_torch(SumOfGroup(), (x,)))
    want = SumOfGroup()(x)
    torch.testing.assert_close(module(x), want)
    with tempfile.TemporaryDirectory() as folder:
        module.save(f"{folder}/model.fusec")
        torch.testing.assert_close(fusec.load(f"{folder}/model.fusec")(x), want)


def groups_of_a_file(rank):
    """Along the last dimension, in slices, with a group that the caller names."""
    gathered = {"name": "y", "op": "all_gather", "inputs": ["x"], "attrs": {"group": "tp", "dim": 1}}
    gathered["outputs"] = [{"name": "y", "dtype": "float32", "shape": [3, 2 * PROCESSES]}]
    model = {"fusec": 1, "inputs": [{"name": "x", "dtype": "float32", "shape": [3, 2]}], "nodes": [gathered]}
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "model.json").write_text(json.dumps({**model, "outputs": ["y"]}))
        module = fusec.compile(f"{folder}/model.json")
    part = torch.full((3, 2), float(rank))
    try:
        module(part)
        raise AssertionError("a group that nobody knows was found")
    except fusec.InputError as error:
        assert error.hint == "module.use_groups({'tp': group})", error
    module.use_groups({"tp": dist.group.WORLD})
    expected = torch.arange(float(PROCESSES)).repeat_interleave(2).expand(3, -1)
    torch.testing.assert_close(module(part), expected)


def run_rank(rank, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=PROCESSES)
    for case in (mlp, attention, collectives, of_eager, imported, groups_of_a_file):
        torch.manual_seed(0)
        torch._dynamo.reset()
        case(rank)
        dist.barrier()
    dist.destroy_process_group()


class TwoProcesses(unittest.TestCase):
    def test_all_cases(self):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, os.path.abspath(__file__), "--rank"]
            running = [
                subprocess.Popen([*command, str(rank), f"{folder}/store"], stderr=subprocess.PIPE, text=True)
                for rank in range(PROCESSES)
            ]
            try:
                for process in running:
                    told = process.communicate(timeout=240)[1]
                    self.assertEqual(process.returncode, 0, told[-3000:])
            finally:
                for process in running:
                    process.kill()
                    process.wait()

    def test_a_model_with_collectives_needs_a_way_to_communicate(self):
        b = fusec.ModelBuilder("summed")
        b.output(b.op("all_reduce", b.input("x", "float32", [3]), group="tp", reduce_op="sum"))
        with self.assertRaisesRegex(fusec.InputError, "all_reduce of the group \"tp\".*torch.distributed"):
            fusec.compile(b.build())(torch.ones(3))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--rank"]:
        run_rank(int(sys.argv[2]), sys.argv[3])
    else:
        unittest.main()
