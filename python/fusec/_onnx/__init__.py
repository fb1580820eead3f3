"""From ONNX to the fusec graph format, a file a step:

    load.py          a model file -> a ModelProto; the loop around a conversion
    convert.py       walks graph, subgraphs and function bodies (scope.py: their names; node.py: one node)
    fold.py            nodes whose operands are known, and arithmetic with sizes (sizes.py), are computed here
    rows.py            ops that have one counterpart: a table; handlers/ for irregular ones
    function_body.py   what ONNX says that an op without one is made of
    custom_ops.py      what has neither, with allow_custom
    emitter.py       the nodes that these make; the library infers their types; then the file (file.py)
    signature.py     calls of the model <-> inputs and outputs of the graph

values.py has the values and dtypes, initializers.py weights as NumPy arrays, errors.py the list of what is unmapped.
"""
