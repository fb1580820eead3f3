"""The PyTorch importer: from a module to the fusec graph format. Each step has its file; trace.py runs them in order.

    program.py     a module or a .pt2 file -> a functional torch.export program of operators that the format has
    rewrites.py      decompositions of operators that the format lacks; more in index_rewrites.py, resampling.py,
                   fused_layers.py, fourier.py
    op_rows.py       the table of operators that the format has; irregular ones: op_handlers.py, layer_handlers.py
    convert.py     that program -> inputs, constants, nodes (node_writer.py), outputs, aliases
    model_file.py  those -> the text of a model file, and a safetensors file for the weights
    signature.py   calls of the module <-> inputs and outputs of the model

torch.compile: backend.py compiles the regions (region.py) into which partition.py splits a graph (aten_program.py).
complex_ends.py gives them real tensors at their ends, output_views.py puts back the views that a graph returns.
outside.py notes for fusec.explain what runs outside the graphs.

Helpers: complex_pairs.py holds a complex tensor as two real ones; complex_operators.py and complex_arithmetic.py
write what computes with them. dimensions.py prints symbolic sizes. literals.py tells numbers in the code from weights.
negative_indices.py drops corrections of indices that cannot be negative. output_names.py names results. source_lines.py
finds the line of an operator. caches.py takes caches of transformers. custom_ops.py writes operators of other libraries.
example.py writes example inputs and PyTorch's results. private.py names what is used of PyTorch's private API, and
shared_state.py changes its process-wide state. command_line.py serves `python -m fusec import`.
"""
