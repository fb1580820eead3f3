"""Modules whose arguments, results and buffers are unusual. Each function returns what those of models.py do."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils import _pytree as pytree

Dim = torch.export.Dim


def _registered(name, flatten, unflatten):
    """A class of two tensors that is a pytree without key paths."""

    def __init__(self, first, second):
        self.first, self.second = first, second

    cls = type(name, (), {"__init__": __init__})
    pytree.register_pytree_node(cls, flatten, unflatten(cls), serialized_type_name=f"fusec_test.{name}")
    return cls


def _checked(cls):
    def unflatten(values, context):
        if not all(isinstance(v, torch.Tensor) for v in values):
            raise TypeError("tensors alone")
        return cls(*values)

    return unflatten


# By its attributes; by the keys that it flattens to (as diffusers has it); by positions, where it checks its content.
ByAttribute = _registered("ByAttribute", lambda o: ([o.first, o.second], None), lambda cls: lambda v, _: cls(*v))
ByKey = _registered(
    "ByKey", lambda o: ([o.first, o.second], ["sample", "mask"]), lambda cls: lambda v, _: cls(*v)
)
ByPlace = _registered("ByPlace", lambda o: ([o.first, o.second], None), _checked)


class TakesAll(nn.Module):
    def forward(self, x, times=2, *others, **named):
        return x * times + sum(others, 0) + sum(named.values(), 0)


_X = torch.arange(3.0)
CALLS = [((_X,), {}), ((_X, 3), {}), ((_X, 2, _X + 1, _X + 2), {}), ((_X, 2, _X), {"a": _X, "b": _X * 2})]


class WritesAttributes(nn.Module):
    """Keeps a cache and its length in attributes that are no buffers."""

    def __init__(self):
        super().__init__()
        self.cache = {"rows": torch.zeros(4, 3), "length": torch.tensor(1)}

    def forward(self, x):
        self.cache["rows"].index_copy_(0, self.cache["length"].reshape(1), x)
        self.cache["length"].add_(1)
        return self.cache["rows"] * 2


class OwnTensors(nn.Module):
    """A parameter, a buffer and an attribute of no dimension, a complex parameter, indices, and a number in the code."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(2.0))
        self.register_buffer("shift", torch.tensor(3.0))
        self.power = torch.tensor(2.0)
        self.turn = nn.Parameter(torch.tensor([1 + 2j, 3j]))
        self.register_buffer("order", torch.arange(90) % 4)

    def forward(self, x):
        turned = torch.view_as_real(x[:2] * self.turn)
        return (x * self.scale + self.shift) ** self.power * torch.tensor(0.5), turned, x[self.order]

    def change(self):
        with torch.no_grad():
            self.scale.fill_(5)
            self.shift.fill_(-1)
            self.power.fill_(3)
            self.turn.fill_(2 - 1j)
            self.order.sub_(4)


class ViewsOfWritten(nn.Module):
    """Views of an einsum's result, of which one is written; as FunnelModel of transformers has it."""

    def forward(self, q, r, m):
        p = torch.einsum("binh,tnh->bnit", q, r)
        p = p.reshape(2, 4, 16, 8)[:, :, 1:].reshape(2, 4, 8, 15)[..., :8]
        p *= m
        return p


def views_of_written():
    return ViewsOfWritten(), (torch.randn(2, 8, 4, 8), torch.randn(16, 4, 8), torch.rand(8, 8))


def _without_counterpart(x):
    return torch.linalg.det(x)


class CallsHelper(nn.Module):
    def forward(self, x):
        return _without_counterpart(x)


class Returns(nn.Module):
    def __init__(self, make):
        super().__init__()
        self.make = make

    def forward(self, x):
        return self.make(x)


def breaks(x):
    torch._dynamo.graph_break()
    return torch.relu(x + 1)


def result_of(make):
    return lambda: (Returns(make), (torch.arange(4.0),))


RESULTS = {  # what a module returns -> the names of its outputs
    "by attribute": (lambda x: ByAttribute(x + 1, x + 2), ["first", "second"]),
    "by key": (lambda x: ByKey(x + 1, x + 2), ["sample", "mask"]),
    "by place": (lambda x: ByPlace(x + 1, x + 2), ["output.0", "output.1"]),
    "nested": (lambda x: (x * 2, ByKey(ByAttribute(x + 1, x + 2), [x + 3])),
               ["output.0", "output.1.sample.first", "output.1.sample.second", "output.1.mask.0"]),
    "dictionary": (lambda x: {"logits": x + 1, "past": (x + 2, x + 3)}, ["logits", "past.0", "past.1"]),
}


class WritesBuffer(nn.Module):
    """A buffer bears the name of an argument, as does a parameter."""

    def __init__(self):
        super().__init__()
        self.register_buffer("k", torch.zeros(4))
        self.v = nn.Parameter(torch.ones(4))

    def forward(self, k, v):
        v.add_(1)
        self.k.copy_(k * self.v)
        return self.k


def writes_buffer():
    return WritesBuffer(), (torch.arange(4.0), torch.ones(4))


class TakesLength(nn.Module):
    """An integer that is a bound and a number."""

    def forward(self, x, n, scale):
        return x[:, :n].sum(-1), x[:, n:].exp(), x * n + scale


def takes_length(n=3):
    x = torch.arange(32.0).reshape(4, 8)
    return TakesLength(), (x, n, torch.ones(4, 1)), {"x": None, "n": Dim.DYNAMIC, "scale": None}


class Resample(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.options = options

    def forward(self, x):
        return F.interpolate(x, **self.options)


RESAMPLED = [  # the size of the image, then what F.interpolate is told
    ((14, 14), dict(size=(10, 10), mode="bicubic", antialias=True)),
    ((7, 13), dict(size=(31, 5), mode="bicubic", antialias=True, align_corners=True)),
    ((7, 13), dict(size=(7, 9), mode="bilinear", antialias=True)),
    ((9, 6), dict(scale_factor=(0.47, 1.9), mode="bilinear", antialias=True)),
    ((9, 6), dict(size=(1, 12), mode="bilinear", antialias=True, align_corners=True)),
    ((9, 6), dict(scale_factor=(1.7, 0.7), mode="bicubic")),
    ((9, 6), dict(size=(4, 11), mode="bicubic", align_corners=True)),
    ((9, 6), dict(scale_factor=1.7, mode="bilinear")),
]


class Halved(nn.Module):
    def forward(self, x):
        half = F.interpolate(x, scale_factor=0.5, mode="bicubic", antialias=True)
        larger = F.interpolate(x, size=(x.shape[2] + 3, 2 * x.shape[3]), mode="bilinear", antialias=True)
        return half, larger, F.interpolate(x, scale_factor=1.5, mode="bicubic")


def halved(height=9, width=6):
    sizes = {"x": {2: Dim("height", min=4, max=64), 3: Dim("width", min=4, max=64)}}
    x = torch.randn(1, 2, height, width, generator=torch.Generator().manual_seed(0))
    return Halved(), (x,), sizes


@torch.library.custom_op("fusec_test::gate", mutates_args=())
def gate(x: torch.Tensor, factor: float, bias: torch.Tensor) -> torch.Tensor:
    return x * torch.sigmoid(factor * x) + bias


gate.register_fake(lambda x, factor, bias: torch.empty_like(x))


class Gated(nn.Module):
    def forward(self, x, bias):
        return torch.relu(gate(x, 1.7, bias))


def gated():
    return Gated(), (torch.linspace(-3, 3, 12).reshape(3, 4), torch.ones(4))


class Complex(nn.Module):
    """Arithmetic of complex tensors with complex and real numbers and tensors, which may have other shapes."""

    def forward(self, pairs, r, n):
        z = torch.view_as_complex(pairs)
        results = [z * 1j, (2 + 1j) * z, r * 1j, z + 1j, z + 1, z - r, r - z, 1 - z, n + z, n + 1j, z[0] + r, r - z[0]]
        results += [z / 2, z / (1 + 2j), z / (z + 3), r / (z + 3), 1 / (z[0] + 3), z / (z[0] + 3), z / (r + 3)]
        return [torch.view_as_real(t) for t in results]


def complex_arithmetic():
    return Complex(), (torch.randn(4, 3, 2), torch.rand(4, 3), torch.arange(12).reshape(4, 3))


def diagonals():
    def views(x):
        square = x[:, :3, :3]
        return (square.diagonal(dim1=1, dim2=2) * 2, torch.einsum("bii->b", square), x.mT.diagonal(1, 1, 2) + 1,
                x.diagonal(-1, -1, 0) * 2, torch.diagonal_copy(x[0, 1:], 5), x[:, 1:].diagonal(2, 2, 1) - 1)

    return Returns(views), (torch.randn(3, 4, 5),)


class WrappedIndices(nn.Module):
    """Indices that are negative in a narrower dtype, and by an upper bound below zero."""

    def forward(self, x):
        narrow = torch.arange(100, dtype=torch.int8) * 2
        found = [torch.arange(300).to(torch.int8).long(), narrow.int(), torch.clamp(torch.arange(4), 0, -2)]
        return [x[i] for i in found]


def _higher_order(x):
    """Two operators that take a function, and one on a matrix."""
    from torch._higher_order_ops.while_loop import while_loop

    chosen = torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))
    return chosen, while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2), (torch.tensor(0), x)), torch.linalg.det(x)


def higher_order():
    return Returns(_higher_order), (torch.eye(3),)
