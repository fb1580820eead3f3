"""A model of your own, on its way into fusec (needs PyTorch):

    python -m fusec import examples/export_me.py:make -o /tmp/export_me.json
    build/release/bin/fusec /tmp/export_me.json -o /tmp/out.cu
"""
import torch
from torch import nn


class GatedBlock(nn.Module):
    def __init__(self, width=512, hidden=1536):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.gate, self.up = nn.Linear(width, hidden), nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)

    def forward(self, x):
        h = self.norm(x)
        return x + self.down(nn.functional.silu(self.gate(h)) * self.up(h))


def make():
    """The module, example arguments, and which of their dimensions may vary."""
    rows = torch.export.Dim("rows", min=1, max=4096)
    return GatedBlock().to(torch.float16), (torch.randn(8, 512, dtype=torch.float16),), {"x": {0: rows}}
