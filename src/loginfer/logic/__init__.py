"""Rules and patterns: the rule language of the paper, without any data."""

from __future__ import annotations

from loginfer.logic.canonical import canonical, canonical_text, equivalent
from loginfer.logic.dialects import Dialect, detect, dialect_named, dialects, register_dialect
from loginfer.logic.dialects.arrow import parse_rule
from loginfer.logic.dialects.queries import body_to_sparql
from loginfer.logic.entailment import Entailment, entails
from loginfer.logic.patterns import (
    FURTHER_NAMES,
    PATTERN_NAMES,
    all_patterns,
    collapses,
    collapses_onto,
    instantiate,
    parse_pattern,
    pattern_named,
    patterns,
    register_pattern,
    symmetries,
)
from loginfer.logic.rule import (
    Atom,
    Constant,
    Inequality,
    Negation,
    Pattern,
    Rule,
    ScoredRule,
    Template,
    Variable,
    ZeroRule,
)
from loginfer.logic.rule_files import SHIPPED, RuleFile, format_rules, parse_rules, read_rules, write_rules
from loginfer.logic.stratification import stratified
from loginfer.logic.subrules import SubRule, subrules, subrules_of

__all__ = [
    "FURTHER_NAMES",
    "PATTERN_NAMES",
    "SHIPPED",
    "Atom",
    "Constant",
    "Dialect",
    "Entailment",
    "Inequality",
    "Negation",
    "Pattern",
    "Rule",
    "RuleFile",
    "ScoredRule",
    "SubRule",
    "Template",
    "Variable",
    "ZeroRule",
    "all_patterns",
    "body_to_sparql",
    "canonical",
    "canonical_text",
    "collapses",
    "collapses_onto",
    "detect",
    "dialect_named",
    "dialects",
    "entails",
    "equivalent",
    "format_rules",
    "instantiate",
    "parse_pattern",
    "parse_rule",
    "parse_rules",
    "pattern_named",
    "patterns",
    "read_rules",
    "register_dialect",
    "register_pattern",
    "stratified",
    "subrules",
    "subrules_of",
    "symmetries",
    "write_rules",
]
