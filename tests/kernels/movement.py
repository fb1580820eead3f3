"""Transposes, permutes, gathers, pads and concats, with elementwise neighbours: few more sectors than a copy of the same
bytes, and 16-byte accesses of global memory if extents and alignment allow them. recorded.json has the measured sectors
and instructions of each case, which must not get worse. Random chains of these ops are only compared with the
reference."""
import re

from kernels import movement_cases, movement_chains as chains
from kernels.case import TARGETS, Case, element_count, model, tensors
from kernels.figures import local_bytes

CHAINS = ((chains.any_movement, 60), (chains.any_turned, 100), (chains.any_picks, 60), (chains.any_windows, 100),
          (chains.any_planes, 60), (chains.joined_and_permuted, 40), (chains.any_half_bytes, 60), (chains.any_permute, 80),
          (chains.any_permute_of_sizes, 60))
RECORDED = {"sectors / moved": 1.02, "instructions / 16 distinct bytes": 1.05, "has narrow accesses": 1}  # compilers differ


def first_element_count(case):
    shape = next(iter(case.inputs.values()))[1]
    return element_count(extent if isinstance(extent, int) else case.symbols.get(extent, {"hint": 1})["hint"] for extent in shape)


def first_local_bytes(run):
    return local_bytes(run.kernels[0]) if run.kernels else 0


def of(case, group, targets=TARGETS):
    """A row of movement_cases.py or movement_chains.py. Sectors are relative to those of the bytes; instructions are of
    a warp, for 16 bytes of each thread, without edges."""
    bounds = {"launches": case.kernels, "conflicts": case.conflicts + case.conflicts_each * first_element_count(case) / 32}
    if case.sectors < 1e9:
        moved = (lambda run: case.moved) if case.moved else (lambda run: run["distinct bytes"])
        bounds["sector bytes"] = lambda run: case.sectors * moved(run)
    if case.kernels > 1:  # a chain, of which only the first kernel must have registers enough
        bounds |= {"local bytes": None, first_local_bytes: 0}
    if case.instructions < 1e9:
        bounds["instructions"] = lambda run: 2000 + case.instructions * run["distinct bytes"] / 512
    return Case(case.name, model(tensors(case.inputs), case.nodes, case.outputs, symbols=case.symbols), targets=targets,
                group=group, most=bounds | ({"has narrow accesses": False} if case.counted and case.wide else {}),
                recorded=RECORDED if case.counted else {}, moved=case.moved, sizes=case.sizes)


def in_turn(cases, group):
    return [of(case, group, (TARGETS[i % 2],)) for i, case in enumerate(cases)]


def cases():
    alone = movement_cases.results_alone
    return ([of(case, re.split("[ :[]", case.name)[0]) for case in movement_cases.counted()]
            + in_turn(alone(movement_cases.stretches()), "stretches")
            + [of(case, "runs") for case in alone(movement_cases.runs())]
            + in_turn(movement_cases.rows_backwards(), "rows backwards")
            + [row for chain, count in CHAINS for row in in_turn(map(chain, range(count)), chain.__name__)])
