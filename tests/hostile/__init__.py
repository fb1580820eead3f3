"""Families of hostile models of growing sizes; see tests/check_hostile.py and tests/check_growth.py."""
from hostile import chains, shapes, texts, wide_nodes
from hostile.model import FAMILIES, Case, make
