"""Mined rules as text: by name, as lines of a file, and back."""

from loginfer.systems.rules.texts_names import Skipped, mined_from, path_rule, scored_rules
from loginfer.systems.rules.texts_reading import parse_path_rules, read_path_rules
from loginfer.systems.rules.texts_writing import rule_lines

__all__ = [
    "Skipped",
    "mined_from",
    "parse_path_rules",
    "path_rule",
    "read_path_rules",
    "rule_lines",
    "scored_rules",
]
