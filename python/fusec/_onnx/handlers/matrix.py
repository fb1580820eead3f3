"""Products of matrices: MatMul, Gemm, Einsum."""

from __future__ import annotations

from ..errors import Refused
from ..node import OnnxNode
from ..registry import handles, require
from ..sizes import Dim, product
from ..values import Value, is_float


@handles("MatMul")
def matmul(n: OnnxNode) -> Value:
    """[batch.., M, K] by [batch.., K, N]; operands of rank 1 as in NumPy."""
    return n.emitter.op("matmul", n.tensor(0), n.tensor(1))


@handles("Gemm")
def gemm(n: OnnxNode) -> Value:
    """alpha * A' B' + beta * C"""
    e, a, b, c = n.emitter, n.tensor(0), n.tensor(1), n.get(2)
    alpha, beta = n.number("alpha", 1.0), n.number("beta", 1.0)
    if n.integer("transA"):
        a = e.permute(a, [1, 0])
    scaled = alpha != 1.0 or (beta != 1.0 and c is not None)
    whole = not is_float(a.dtype)
    require(not (whole and scaled), "alpha or beta with integers")
    if n.integer("transB") and not scaled and not whole and (c is None or (c.rank == 1 and c.shape[0] == b.shape[0])):
        return e.op("linear", a, b, c)
    if n.integer("transB"):
        b = e.permute(b, [1, 0])
    if c is not None and not whole:
        return e.op("addmm", c, a, b, alpha=alpha, beta=beta) if c.rank <= 2 else _plain(n, a, b, c, alpha, beta)
    return _plain(n, a, b, c, alpha, beta)


def _plain(n: OnnxNode, a: Value, b: Value, c: Value | None, alpha: float, beta: float) -> Value:
    """alpha * a b + beta * c: a [M, K], b [K, N], c broadcasts to [M, N]."""
    e = n.emitter
    y = e.op("matmul", a, b)
    y = e.op("mul", y, alpha) if alpha != 1.0 else y
    if c is None:
        return y
    return e.op("add", y, e.op("mul", c, beta) if beta != 1.0 else c)


@handles("Einsum")
def einsum(n: OnnxNode) -> Value:
    """Operands are joined one by one: shared labels that nothing later needs are summed by a batched product."""
    equation = n.text("equation").replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    values = n.tensors()
    require(len(terms) == len(values), "an equation of another number of operands")
    extra = max((v.rank - len(t.replace("...", "")) for t, v in zip(terms, values) if "..." in t), default=0)
    free = "".join(chr(ord("①") + i) for i in range(extra))  # labels of the ellipsis, right-aligned
    labels = []
    for term, value in zip(terms, values):
        named = len(term.replace("...", ""))
        labels.append(list(term.replace("...", free[extra - (value.rank - named) :] if value.rank > named else "")))
    if arrow:
        result = list(right.replace("...", free))
    else:
        every = "".join(terms).replace("...", "")
        result = [*free, *sorted(c for c in set(every) if every.count(c) == 1)]
    operands = [_diagonal(n, v, t) for v, t in zip(values, labels)]
    value, at = operands[0]
    for i, (other, its) in enumerate(operands[1:], 1):
        later = set(result).union(*(set(t) for _, t in operands[i + 1 :]))
        value, at = _joined(n, (value, at), (other, its), later)
    value, at = _summed(n, value, at, set(result))
    require(len(set(result)) == len(result) and set(result) <= set(at), "a label of the result that no operand has")
    return n.emitter.permute(value, [at.index(c) for c in result])


Labelled = tuple[Value, list[str]]


def _diagonal(n: OnnxNode, x: Value, labels: list[str]) -> Labelled:
    """A label that stands twice: elements off the diagonal are masked out, and the second dimension is summed."""
    e = n.emitter
    while len(set(labels)) < len(labels):
        second = next(i for i, c in enumerate(labels) if c in labels[:i])
        first = labels.index(labels[second])
        mask = e.op("eq", e.iota(x.shape, first), e.iota(x.shape, second))
        x = e.cast(e.op("sum", e.op("where", mask, x, e.scalar(0, x.dtype)), dim=[second]), x.dtype)
        labels = labels[:second] + labels[second + 1 :]
    return x, labels


def _summed(n: OnnxNode, x: Value, labels: list[str], kept: set[str]) -> Labelled:
    """x with one label a dimension, summed over those that are not kept."""
    dims = [i for i, c in enumerate(labels) if c not in kept]
    if not dims:
        return x, labels
    return n.emitter.cast(n.emitter.op("sum", x, dim=dims), x.dtype), [c for c in labels if c in kept]


def _joined(n: OnnxNode, a: Labelled, b: Labelled, later: set[str]) -> Labelled:
    """The product of two operands, [batch.., rows.., columns..] by label; it sums shared labels that `later` lacks."""
    e = n.emitter
    (x, xs), (y, ys) = _summed(n, *a, later | set(b[1])), _summed(n, *b, later | set(a[1]))
    sizes = {c: d for v, t in ((y, ys), (x, xs)) for c, d in zip(t, v.shape)}
    for v, t in ((y, ys), (x, xs)):
        sizes.update({c: d for c, d in zip(t, v.shape) if not (isinstance(d, int) and d == 1)})
    batch = [c for c in xs if c in ys and c in later]
    inner = [c for c in xs if c in ys and c not in later]
    rows, columns = [c for c in xs if c not in ys], [c for c in ys if c not in xs]

    def matrix(v: Value, t: list[str], order: list[list[str]]) -> Value:
        flat = [c for group in order for c in group]
        v = e.permute(v, [t.index(c) for c in flat])
        v = e.expand(v, [sizes[c] for c in flat])
        return e.reshape(v, [product(sizes[c] for c in group) for group in order])

    if not inner:
        shape_x: list[Dim] = [sizes[c] if c in xs else 1 for c in batch + rows + columns]
        shape_y: list[Dim] = [sizes[c] if c in ys else 1 for c in batch + rows + columns]
        left = e.reshape(matrix(x, xs, [batch, rows]), shape_x)
        right = e.reshape(matrix(y, ys, [batch, columns]), shape_y)
        return e.op("mul", left, right), batch + rows + columns
    made = e.op("matmul", matrix(x, xs, [batch, rows, inner]), matrix(y, ys, [batch, inner, columns]))
    return e.reshape(made, [sizes[c] for c in batch + rows + columns]), batch + rows + columns


@handles("Det")
def determinant(n: OnnxNode) -> Value:
    """By cofactors, of small matrices."""
    e, x = n.emitter, n.tensor(0)
    size = x.shape[-1]
    if not isinstance(size, int) or size > 4:
        raise Refused("a determinant of a matrix larger than 4 x 4")

    def entry(i: int, j: int) -> Value:
        return e.op("select", e.op("select", x, dim=x.rank - 2, index=i), dim=x.rank - 2, index=j)

    def minor(row: int, columns: list[int]) -> Value:
        if len(columns) == 1:
            return entry(row, columns[0])
        total: Value | None = None
        for k, column in enumerate(columns):
            term = e.op("mul", entry(row, column), minor(row + 1, columns[:k] + columns[k + 1 :]))
            total = term if total is None else e.op("sub" if k % 2 else "add", total, term)
        assert total is not None
        return total

    return minor(0, list(range(size)))
