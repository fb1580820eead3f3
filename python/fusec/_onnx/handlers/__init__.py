"""Handlers of ONNX ops, a file for each family. Importing the package fills the registry."""

from . import (  # noqa: F401
    attention,
    control_flow,
    convolution,
    creation,
    elementwise,
    indexing,
    machine_learning,
    matrix,
    movement,
    normalization,
    pooling,
    quantization,
    recurrent,
    reduction,
    resampling,
    sampling,
    sequences,
    signal,
    training,
    types,
)
