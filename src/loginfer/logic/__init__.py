"""Rules and patterns: the rule language of the paper, without any data."""

from loginfer.logic.rule import Atom, Inequality, Pattern, Rule
from loginfer.logic.terms import Constant, Template, Variable

__all__ = ["Atom", "Constant", "Inequality", "Pattern", "Rule", "Template", "Variable"]
