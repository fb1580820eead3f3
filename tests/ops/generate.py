#!/usr/bin/env python3
"""generate.py [FAMILY...]: writes FAMILY.json, FAMILY.in.safetensors and FAMILY.out.safetensors beside itself.

Each model is one family of the op table: many nodes, each an op with operands of some dtypes and some attributes, and
what PyTorch (2.15, on the CPU) computes for it. Operands hold the awkward values: zeros of both signs, infinities, NaN,
halves to be rounded, the limits of the integers. The declared outputs are PyTorch's types, so reading a model tests type
inference. Where PyTorch refuses a combination there is no node. Composites are float64 results, rounded once."""
import os, sys

import torch

import elementwise, quantized, rows, structure

FAMILIES = [elementwise.unary, elementwise.binary, elementwise.ternary, elementwise.creation, rows.reduction,
            rows.composite, rows.gated, rows.rotary, rows.quantize, structure.movement, structure.indexing,
            structure.matrix, structure.convolution, structure.attention, structure.pooling,
            quantized.quantized]


def main():
    for family in FAMILIES:
        if not sys.argv[1:] or family.__name__ in sys.argv[1:]:
            torch.manual_seed(11)
            m = family()
            m.write(os.path.dirname(os.path.abspath(__file__)))
            print(f"{m.name}: {len(m.nodes)} nodes")


if __name__ == "__main__":
    main()
