"""One step of an optimizer (ai.onnx.preview.training): parameters, gradients and state in, parameters and state out."""

from __future__ import annotations

from collections.abc import Callable

from ..node import OnnxNode
from ..registry import handles
from ..values import Value

DOMAIN = "ai.onnx.preview.training"


def _each(n: OnnxNode, states: int, step: Callable[..., list[Value]]) -> list[Value]:
    """R and T come first, then all parameters, all gradients, and each kind of state of all of them."""
    rest = n.tensors()[2:]
    count = len(rest) // (2 + states)
    columns = [step(*(rest[k * count + i] for k in range(2 + states))) for i in range(count)]
    return [column[k] for k in range(1 + states) for column in columns]


@handles("Adagrad", domain=DOMAIN)
def adagrad(n: OnnxNode) -> list[Value]:
    e, rate, t = n.emitter, n.tensor(0), n.tensor(1)
    decayed = e.op("div", rate, e.op("add", e.op("mul", e.cast(t, rate.dtype), n.number("decay_factor")), 1.0))

    def step(x: Value, g: Value, h: Value) -> list[Value]:
        g = e.op("add", e.op("mul", x, n.number("norm_coefficient")), g)
        h = e.op("add", h, e.op("mul", g, g))
        root = e.op("add", e.op("sqrt", h), n.number("epsilon"))
        return [e.op("sub", x, e.op("div", e.op("mul", g, decayed), root)), h]

    return _each(n, 1, step)


@handles("Adam", domain=DOMAIN)
def adam(n: OnnxNode) -> list[Value]:
    e, rate, t = n.emitter, n.tensor(0), n.tensor(1)
    alpha, beta = n.number("alpha"), n.number("beta")
    after = n.number("norm_coefficient_post")
    time = e.cast(t, rate.dtype)
    corrected = e.op(
        "div",
        e.op("mul", rate, e.op("sqrt", e.op("sub", 1.0, e.op("pow", e.scalar(beta, rate.dtype), time)))),
        e.op("sub", 1.0, e.op("pow", e.scalar(alpha, rate.dtype), time)),
    )
    actual = e.op("where", e.op("gt", t, 0), corrected, rate)

    def step(x: Value, g: Value, v: Value, h: Value) -> list[Value]:
        g = e.op("add", e.op("mul", x, n.number("norm_coefficient")), g)
        v = e.op("add", e.op("mul", v, alpha), e.op("mul", g, 1 - alpha))
        h = e.op("add", e.op("mul", h, beta), e.op("mul", e.op("mul", g, g), 1 - beta))
        root = e.op("add", e.op("sqrt", h), n.number("epsilon"))
        new = e.op("sub", x, e.op("div", e.op("mul", v, actual), root))
        return [e.op("mul", new, 1 - after) if after else new, v, h]

    return _each(n, 2, step)


@handles("Momentum", domain=DOMAIN)
def momentum(n: OnnxNode) -> list[Value]:
    e, rate, t = n.emitter, n.tensor(0), n.tensor(1)
    alpha = n.number("alpha")
    share = e.op("where", e.op("gt", t, 0), n.number("beta"), e.scalar(1.0, rate.dtype))

    def step(x: Value, g: Value, v: Value) -> list[Value]:
        g = e.op("add", e.op("mul", x, n.number("norm_coefficient")), g)
        v = e.op("add", e.op("mul", v, alpha), e.op("mul", g, share))
        move = v if n.text("mode") == "standard" else e.op("add", g, e.op("mul", v, alpha))
        return [e.op("sub", x, e.op("mul", move, rate)), v]

    return _each(n, 1, step)
