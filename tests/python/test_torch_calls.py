#!/usr/bin/env python3
"""Calls of imported PyTorch modules: keywords that are the module's own, and gradients. Skipped where PyTorch is missing."""
import sys
import unittest
import warnings

try:
    import torch
except ImportError:
    print(f"skipped: PyTorch is not installed for {sys.executable}")
    sys.exit(77)

import fusec


class OnDevice(torch.nn.Module):
    def forward(self, x, device=None):
        return x.relu() if device is None else x + 1


class Sum(torch.nn.Module):
    def forward(self, x, out):
        return x + out


def compiled(module, args, **kwargs):
    return fusec.compile(fusec.from_torch(module, args, **kwargs), no_nvrtc=True)


class Keywords(unittest.TestCase):
    x = torch.tensor([-1.0, 1.0])

    def test_an_argument_named_device(self):
        traced = compiled(OnDevice(), (self.x,), kwargs={"device": "cpu"})
        torch.testing.assert_close(traced(self.x, device="cpu"), self.x + 1)
        with self.assertRaisesRegex(fusec.InputError, "found 'meta', expected 'cpu'"):
            traced(self.x, device="meta")
        without = compiled(OnDevice(), (self.x,))  # the traced call left it out
        torch.testing.assert_close(without(self.x, device="reference"), self.x.relu())

    def test_an_argument_named_out(self):
        module = compiled(Sum(), (self.x, self.x.clone()))
        torch.testing.assert_close(module(self.x, out=2 * self.x), 3 * self.x)


class Gradients(unittest.TestCase):
    def test_a_call_that_cuts_them_warns(self):
        x = torch.ones(2, requires_grad=True)
        module = compiled(torch.nn.Linear(2, 2), (x,))
        with self.assertWarnsRegex(UserWarning, "no gradient flows through a fusec.Module") as caught:
            self.assertFalse(module(x).requires_grad)
        self.assertEqual(caught.filename, __file__)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            module(x.detach())  # its weights require one: only arguments count
            with torch.no_grad():
                module(x)


if __name__ == "__main__":
    unittest.main()
