"""From PyTorch to the fusec graph format, a file a step:

    program.py     a module or a .pt2 file -> a functional torch.export program whose operators the format has
    rewrites.py      operators without a counterpart, said in terms of those that have one (resampling.py: antialiasing)
    op_rows.py       the operators that have one: a table, and op_handlers.py and layer_handlers.py for irregular ones
    convert.py     that program -> inputs, constants, nodes, outputs, aliases
    model_file.py  those -> the text of a model file; safetensors beside it where it is written
    signature.py   calls of the module <-> inputs and outputs of the model

trace.py does all of it.

complex_pairs.py holds complex tensors as two real ones, dimensions.py prints symbolic sizes, output_names.py names
results, custom_ops.py writes operators of other libraries; example.py writes example inputs and PyTorch's results.
"""
