"""RNN, GRU and LSTM, unrolled: all inputs' products at once, then a step after the other."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import Refused
from ..node import OnnxNode
from ..registry import handles
from ..sizes import constant_shape
from ..values import Value
from .control_flow import stack

Function = Callable[[Value], Value]
DEFAULTS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


class Direction:
    """One direction of a layer: weights and activations."""

    def __init__(self, n: OnnxNode, place: int) -> None:
        e = n.emitter
        self.n = n
        self.op = n.op
        self.hidden = constant_shape([n.tensor(2).shape[2]], "the hidden size")[0]
        self.w, self.r = (e.op("select", n.tensor(i), dim=0, index=place) for i in (1, 2))
        self.bias = e.op("select", n.tensor(3), dim=0, index=place) if n.get(3) is not None else None
        self.activations = _activations(n, place)
        peepholes = n.get(7) if n.op == "LSTM" else None
        self.peepholes = e.op("select", peepholes, dim=0, index=place) if peepholes is not None else None

    def part(self, value: Value, i: int) -> Value:
        return self.n.emitter.slice(value, value.rank - 1, i * self.hidden, (i + 1) * self.hidden)

    def bias_of(self, recurrent: bool) -> Value | None:
        if self.bias is None:
            return None
        size = GATES[self.op] * self.hidden
        return self.n.emitter.slice(self.bias, 0, size if recurrent else 0, 2 * size if recurrent else size)

    def step(self, gx: Value, h: Value, c: Value | None) -> tuple[Value, Value | None]:
        """One step: ``gx`` is x W' + its bias, [batch, gates * hidden]."""
        e, n = self.n.emitter, self.n
        if self.op == "GRU":
            return self._gru(gx, h), None
        gates = e.op("add", gx, e.op("linear", h, self.r, self.bias_of(True)))
        if self.op == "RNN":
            return self.activations[0](gates), None
        assert c is not None
        f, g, out = self.activations
        i_, o_, f_, c_ = (self.part(gates, i) for i in range(4))
        if self.peepholes is not None:
            i_ = e.op("add", i_, e.op("mul", self.part(self.peepholes, 0), c))
            f_ = e.op("add", f_, e.op("mul", self.part(self.peepholes, 2), c))
        inward = f(i_)
        kept = e.op("sub", 1.0, inward) if n.integer("input_forget") else f(f_)
        new = e.op("add", e.op("mul", kept, c), e.op("mul", inward, g(c_)))
        if self.peepholes is not None:
            o_ = e.op("add", o_, e.op("mul", self.part(self.peepholes, 1), new))
        return e.op("mul", f(o_), out(new)), new

    def _gru(self, gx: Value, h: Value) -> Value:
        e, size = self.n.emitter, self.hidden
        f, g = self.activations
        bias = self.bias_of(True)
        rows = [e.slice(self.r, 0, i * size, (i + 1) * size) for i in range(3)]
        parts = [None if bias is None else e.slice(bias, 0, i * size, (i + 1) * size) for i in range(3)]
        z = f(e.op("add", self.part(gx, 0), e.op("linear", h, rows[0], parts[0])))
        r = f(e.op("add", self.part(gx, 1), e.op("linear", h, rows[1], parts[1])))
        if self.n.integer("linear_before_reset"):
            inner = e.op("mul", r, e.op("linear", h, rows[2], parts[2]))
        else:
            inner = e.op("linear", e.op("mul", r, h), rows[2], parts[2])
        new = g(e.op("add", self.part(gx, 2), inner))
        return e.op("add", e.op("mul", e.op("sub", 1.0, z), new), e.op("mul", z, h))


@handles("RNN", "GRU", "LSTM")
def recurrent(n: OnnxNode) -> list[Value]:
    """Y [steps, directions, batch, hidden], Y_h and Y_c [directions, batch, hidden]; in layout 1 batch is first."""
    e, x, lengths = n.emitter, n.tensor(0), n.get(4)
    batch_first = bool(n.integer("layout"))
    if batch_first:
        x = e.permute(x, [1, 0, 2])
    steps = constant_shape([x.shape[0]], "the number of steps")[0]
    direction = n.text("direction", "forward")
    count = 2 if direction == "bidirectional" else 1
    ys, hs, cs = [], [], []
    for place in range(count):
        y, h, c = _run(
            n, Direction(n, place), x, steps, place, direction == "reverse" or place == 1, lengths, batch_first
        )
        ys.append(y)
        hs.append(h)
        cs += [] if c is None else [c]
    results = [stack(n, ys, 1), stack(n, hs, 0), *([stack(n, cs, 0)] if cs else [])]
    if batch_first:
        results = [e.permute(results[0], [2, 0, 1, 3]), *(e.permute(v, [1, 0, 2]) for v in results[1:])]
    return results


def _run(
    n: OnnxNode,
    cell: Direction,
    x: Value,
    steps: int,
    place: int,
    backwards: bool,
    lengths: Value | None,
    batch_first: bool,
) -> tuple[Value, Value, Value | None]:
    """x [steps, batch, input] -> all outputs [steps, batch, hidden], the final h and c [batch, hidden]."""
    e = n.emitter
    batch = x.shape[1]
    h = _initial(n, 5, place, batch_first) or e.full([batch, cell.hidden], 0.0, x.dtype)
    c = (_initial(n, 6, place, batch_first) or e.full([batch, cell.hidden], 0.0, x.dtype)) if n.op == "LSTM" else None
    gates = e.op("linear", x, cell.w, cell.bias_of(False))
    zero = e.full([batch, cell.hidden], 0.0, x.dtype) if lengths is not None else None
    made: list[Value] = []
    for i in range(steps):
        at = steps - 1 - i if backwards else i
        new, cell_state = cell.step(e.op("select", gates, dim=0, index=at), h, c)
        if lengths is not None and zero is not None:  # rows that have ended keep their state, and give zeros
            running = e.reshape(e.op("gt", lengths, at), [batch, 1])
            h = e.op("where", running, new, h)
            c = None if c is None or cell_state is None else e.op("where", running, cell_state, c)
            made.append(e.op("where", running, new, zero))
        else:
            h, c = new, cell_state
            made.append(new)
    return stack(n, made[::-1] if backwards else made, 0), h, c


def _initial(n: OnnxNode, index: int, place: int, batch_first: bool) -> Value | None:
    """The state [batch, hidden] that one direction starts from."""
    given = n.get(index)
    if given is None:
        return None
    return n.emitter.op("select", given, dim=1 if batch_first else 0, index=place)


def _activations(n: OnnxNode, place: int) -> list[Function]:
    e = n.emitter
    count = len(DEFAULTS[n.op])
    names = n.attributes.get("activations") or DEFAULTS[n.op] * 2
    alphas, betas = list(n.attributes.get("activation_alpha", [])), list(n.attributes.get("activation_beta", []))
    clip = n.attributes.get("clip")

    def function(name: str, alpha: float | None, beta: float | None) -> Function:
        def run(v: Value) -> Value:
            v = e.op("clamp", v, min=-clip, max=clip) if clip else v
            lower = name.lower()
            if lower in ("sigmoid", "tanh", "relu", "softplus"):
                return e.op(lower, v)
            if lower == "leakyrelu":
                return e.op("leaky_relu", v, negative_slope=0.01 if alpha is None else alpha)
            if lower == "elu":
                return e.op("elu", v, alpha=1.0 if alpha is None else alpha)
            if lower == "softsign":
                return e.op("div", v, e.op("add", e.op("abs", v), 1.0))
            if lower == "affine":
                return e.op("add", e.op("mul", v, 1.0 if alpha is None else alpha), beta or 0.0)
            if lower == "scaledtanh":
                inner = e.op("tanh", e.op("mul", v, 1.0 if beta is None else beta))
                return e.op("mul", inner, 1.0 if alpha is None else alpha)
            if lower == "hardsigmoid":
                line = e.op("add", e.op("mul", v, 0.2 if alpha is None else alpha), 0.5 if beta is None else beta)
                return e.op("clamp", line, min=0.0, max=1.0)
            if lower == "thresholdedrelu":
                return e.op("where", e.op("gt", v, 1.0 if alpha is None else alpha), v, e.scalar(0, v.dtype))
            raise Refused(f"the activation {name}")

        return run

    takes_alpha = {"leakyrelu", "elu", "affine", "scaledtanh", "hardsigmoid", "thresholdedrelu"}
    takes_beta = {"affine", "scaledtanh", "hardsigmoid"}
    found = []
    for name in names:
        alpha = alphas.pop(0) if name.lower() in takes_alpha and alphas else None
        beta = betas.pop(0) if name.lower() in takes_beta and betas else None
        found.append(function(name, alpha, beta))
    return found[place * count : (place + 1) * count] if len(found) >= 2 * count else found[:count]
