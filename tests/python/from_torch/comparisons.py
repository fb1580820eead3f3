"""Importing a module, and comparing calls of what it becomes with the module's own."""

import copy
import json
import os
import tempfile
import unittest

import fusec
import torch
from torch.utils import _pytree as pytree

TOLERANCE = {torch.float64: (1e-9, 1e-9), torch.float32: (2e-5, 1e-4), torch.float16: (1e-2, 1e-2),
             torch.bfloat16: (3e-2, 3e-2)}


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
