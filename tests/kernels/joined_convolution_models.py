"""Models with several convolutions in one kernel, and with many channels: (inputs, constants, nodes)."""
from kernels.case import tensor, words as node


def residual(pick, dims, dtype):
    """The last convolution of a residual block, and the 1x1 convolution of its input."""
    channels, outputs, stride = pick.choice([12, 33, 40]), pick.choice([24, 65, 72]), pick.choice([1, 2])
    size = [pick.choice({1: [45, 60], 2: [9, 14], 3: [5, 6]}[dims]) for _ in range(dims)]
    places = [(n - 1) // stride + 1 for n in size]
    return ([tensor("x", dtype, 2, channels, *size), tensor("t", dtype, 2, outputs, *places)],
            [tensor("w", dtype, outputs, outputs, *[3] * dims), tensor("v", dtype, outputs, channels, *[1] * dims),
             tensor("b", dtype, outputs)],
            [node("p", f"conv{dims}d", "t w b", padding=[1] * dims),
             node("s", f"conv{dims}d", "x v", stride=[stride] * dims), node("a", "add", "p s"), node("y", "relu", "a")])


def gated(pick, dtype):
    """WaveNet's gate: two dilated convolutions of one image."""
    channels, dilation = pick.choice([24, 40]), pick.choice([1, 2, 4])
    attributes = {"padding": [dilation], "dilation": [dilation]}
    return ([tensor("x", dtype, 2, channels, pick.choice([100, 131]))],
            [tensor("w", dtype, 48, channels, 3), tensor("v", dtype, 48, channels, 3), tensor("b", dtype, 48)],
            [node("p", "conv1d", "x w b", **attributes), node("q", "conv1d", "x v b", **attributes),
             node("u", "tanh", "p"), node("g", "sigmoid", "q"), node("y", "mul", "u g")])


def three(pick, dtype):
    """Windows of three sizes, added up."""
    channels = pick.choice([16, 24])
    return ([tensor("x", dtype, 1, channels, 13, 17)],
            [tensor(f"w{k}", dtype, 40, channels, k, k) for k in (1, 3, 5)],
            [node("p", "conv2d", "x w1"), node("q", "conv2d", "x w3", padding=[1, 1]),
             node("r", "conv2d", "x w5", padding=[2, 2]), node("a", "add", "p q"), node("y", "add", "a r")])


def many_channels(dims, dtype, channels, kernel, stride=1, groups=1):
    """K longer than a table of its offsets can be."""
    size = {1: [33], 2: [7, 8], 3: [3, 4, 3]}[dims]
    return ([tensor("x", dtype, 1, channels * groups, *size)],
            [tensor("w", dtype, 24 * groups, channels, *[kernel] * dims), tensor("b", dtype, 24 * groups)],
            [node("p", f"conv{dims}d", "x w b", padding=[kernel // 2] * dims, stride=[stride] * dims, groups=groups),
             node("y", "relu", "p")])
