"""Builds a model, compiles it and runs it on the CPU: python examples/compile_in_python.py

The kernels run on the PTX emulator, and are compared with the same model evaluated op by op."""

import numpy as np

import fusec


def build() -> fusec.Model:
    """silu(gate) * up, for any number of tokens."""
    b = fusec.ModelBuilder("gated")
    b.symbol("tokens", max=8192)
    gate = b.input("gate", "float32", ["tokens", 256])
    up = b.input("up", "float32", ["tokens", 256])
    b.output(b.op("mul", b.op("silu", gate), up, name="y"))
    return b.build()


def main() -> None:
    module = fusec.compile(build(), arch="sm_80")
    print(module)
    print(module.explain())
    random = np.random.default_rng(0)
    gate, up = (random.standard_normal((3, 256)).astype(np.float32) for _ in range(2))
    y = module(gate, up)
    expected = module(gate, up, device="reference")
    print(f"largest difference from the reference: {np.abs(y - expected).max():.1e}")


if __name__ == "__main__":
    main()
