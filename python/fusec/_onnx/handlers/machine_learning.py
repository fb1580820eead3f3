"""Ops of ai.onnx.ml on numbers."""

from __future__ import annotations

import numpy as np

from ..node import OnnxNode
from ..registry import handles, require
from ..sizes import product
from ..values import Value, known
from .indexing import from_start

DOMAIN = "ai.onnx.ml"


@handles("Binarizer", domain=DOMAIN)
def binarizer(n: OnnxNode) -> Value:
    e, x = n.emitter, n.tensor(0)
    return e.cast(e.op("gt", x, n.number("threshold")), x.dtype)


@handles("ArrayFeatureExtractor", domain=DOMAIN)
def array_feature_extractor(n: OnnxNode) -> Value:
    """The listed positions of the last dimension."""
    e, x, index = n.emitter, n.tensor(0), n.tensor(1)
    at = e.reshape(from_start(n, index, x.shape[-1]), [product(index.shape)])
    chosen = e.op("index_select", x, at, kind=x.kind, dim=x.rank - 1)
    return e.reshape(chosen, [1, chosen.shape[0]]) if x.rank == 1 else chosen


@handles("Scaler", domain=DOMAIN)
def scaler(n: OnnxNode) -> Value:
    """(x - offset) * scale, along the last dimension"""
    e, x = n.emitter, _real(n)
    offset, scale = (known(np.array(n.attributes[a], np.float32)) for a in ("offset", "scale"))
    return e.op("mul", e.op("sub", x, offset), scale)


@handles("Normalizer", domain=DOMAIN)
def normalizer(n: OnnxNode) -> Value:
    e, x, norm = n.emitter, _real(n), n.text("norm", "MAX")
    if norm == "MAX":
        size = e.op("amax", x, dim=[-1], keepdim=True)
    else:
        size = e.op("vector_norm", x, dim=[-1], keepdim=True, ord=1.0 if norm == "L1" else 2.0)
    return e.op("div", x, size)


@handles("LinearRegressor", domain=DOMAIN)
def linear_regressor(n: OnnxNode) -> Value:
    e, x = n.emitter, _real(n)
    require(n.text("post_transform", "NONE") == "NONE", "a post_transform")
    targets = n.integer("targets", 1)
    matrix = known(np.array(n.attributes["coefficients"], np.float32).reshape(targets, -1))
    bias = known(np.array(n.attributes["intercepts"], np.float32)) if n.has("intercepts") else None
    return e.op("linear", x, matrix, bias)


def _real(n: OnnxNode) -> Value:
    return n.emitter.cast(n.tensor(0), "float32")
