"""Entailment of a rule by rules: what materialisation on canonical instances decides.

M entails r if every graph that is closed under M satisfies r; in other words, if on no graph the
materialisation of M makes r's body true and leaves its head out.

**Theorem.** M entails r if and only if, for every substitution σ of r's variables that r's inequalities
allow, the materialisation of M on σ(body) contains σ(head). *If:* where σ(body) is part of a materialisation
M(G), so is M(σ(body)), because materialisation is monotone and M(M(G)) = M(G). *Only if:* take σ(body) for G.

**How few σ suffice.** Suppose σ has a derivation of its head, and σ' = h ∘ σ maps elements further
together. The image of the derivation under h derives the head of σ', unless h makes two elements equal
that an inequality *of the derivation* needs to be different: facts and constants are kept by h, and nothing
else can break. So one starts with the σ in which all variables are different and fresh, finds a derivation,
and looks again only where such a pair is identified: two variables, or a variable and a constant. Each of
these is the start of the same search. Without inequalities in M a single instance is enough, whatever
inequalities r has: those only say which instances count, and if the first one is not allowed (x != x),
none is and r says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.errors import InputError, LimitError
from loginfer.logic.entailment_closure import PlainProver
from loginfer.logic.entailment_instances import Instance, Step, undecided, used_inequalities
from loginfer.logic.entailment_paths import BOTH, NONE, PathRules
from loginfer.logic.rule import Atom, Rule

__all__ = ["Entailment", "Instance", "Step", "entails"]

Prove: TypeAlias = Callable[[Sequence[Atom], Atom], "tuple[Step, ...] | None"]

# From so many rules on it pays to load the compiled kernels.
MANY_RULES = 256


class _Prover(Protocol):
    has_inequalities: bool

    def derive(self, facts: Sequence[Atom], goal: Atom) -> tuple[Step, ...] | None: ...

    def holds(self, facts: Sequence[Atom], goals: Sequence[Atom]) -> list[bool | None]: ...

    def one_step(self, facts: Sequence[Atom], goal: Atom) -> Step | None: ...


def entails(rules: Iterable[Rule], rule: Rule) -> bool:
    """Say whether rules entail a rule: on every graph their materialisation satisfies it.

    Parameters
    ----------
    rules
        Datalog rules, with inequalities, constants, types and recursion as they come.
    rule
        The rule in question. One whose body cannot be satisfied is entailed by anything.

    See Also
    --------
    Entailment : for many questions about the same rules, and for derivations.
    """
    return Entailment(rules).entails(rule)


class Entailment:
    """What a set of rules entails.

    Parameters
    ----------
    rules
        The rules.
    compiled
        Whether to use compiled kernels; by default from 256 rules on. The answers are the same.
    """

    def __init__(self, rules: Iterable[Rule], *, compiled: bool | None = None) -> None:
        program = list(rules)
        for rule in program:
            _check(rule)
        self._size = len(program)
        self._prover: _Prover
        if compiled or (compiled is None and len(program) >= MANY_RULES):
            from loginfer.logic.entailment_compiled import CompiledProver

            self._prover = CompiledProver(*PathRules.of(program))
        else:
            self._prover = PlainProver(program)

    @classmethod
    def of_table(
        cls,
        head: npt.ArrayLike,
        body: npt.ArrayLike,
        *,
        relations: Sequence[str],
        constants: Sequence[str] = (),
        variables: npt.ArrayLike | None = None,
        head_constant: npt.ArrayLike | None = None,
        end_constant: npt.ArrayLike | None = None,
        others: Iterable[Rule] = (),
    ) -> Entailment:
        """Return what path rules given as arrays entail, together with rules of other shapes.

        Parameters
        ----------
        head
            int[m], the relation of each head, a place in `relations`.
        body
            int[m, k], directed relations 2·R + d from one end of the path to the other: d = 0 from subject to
            object, d = 1 from object to subject; -1 behind the last. Rows without a body are passed over.
        relations, constants
            The names; `RDF_TYPE` for the relation of type atoms. A vocabulary will do.
        variables
            int[m]: 0 for a head h(X,Y), the path leading from X to Y (the default); 1 for h(X,c) and 2 for
            h(c,X), the path starting at X.
        head_constant, end_constant
            int[m], places in `constants`: c, and the constant at the end of the path; -1 for none.
        others
            Rules of any shape.
        """
        from loginfer.logic.entailment_compiled import CompiledProver

        heads = np.ascontiguousarray(head, dtype=np.int32)
        size = len(heads)

        def column(values: npt.ArrayLike | None, default: int) -> npt.NDArray[np.int32]:
            if values is None:
                return np.full(size, default, dtype=np.int32)
            return np.ascontiguousarray(values, dtype=np.int32)

        kinds = (
            np.full(size, BOTH, dtype=np.int8) if variables is None else np.asarray(variables, dtype=np.int8)
        )
        bodies = np.asarray(body, dtype=np.int32)
        bodies = np.ascontiguousarray(bodies.reshape(size, -1) if size else np.empty((0, 1), dtype=np.int32))
        paths = PathRules(
            heads,
            np.ascontiguousarray(kinds),
            column(head_constant, NONE),
            column(end_constant, NONE),
            bodies,
            relations,
            constants,
        )
        made = cls.__new__(cls)
        rest = list(others)
        for rule in rest:
            _check(rule)
        made._size = size + len(rest)
        made._prover = CompiledProver(paths, rest)
        return made

    def __len__(self) -> int:
        return self._size

    def entails(self, rule: Rule) -> bool:
        """Say whether the rules entail a rule.

        Raises
        ------
        LimitError
            If that depends on too many constants of the rules to be decided.
        """
        if self._prover.has_inequalities:
            return self.counterexample(rule) is None
        (answer,) = self.entails_heads(rule, [rule.head])
        if answer is None:
            raise undecided(rule)
        return answer

    def entails_heads(self, rule: Rule, heads: Sequence[Atom]) -> list[bool | None]:
        """Say for each of several heads whether the rules entail the rule with that head instead of its own.

        Without inequalities in the rules, all heads are looked for in one materialisation. None stands for
        what `entails` would not decide.
        """
        _check(rule)
        variants = [rule if head is rule.head else Rule(rule.body, head) for head in heads]
        if self._prover.has_inequalities:
            return [self._decided(variant) for variant in variants]
        instance = Instance.of(rule)
        if instance is None:
            return [True] * len(heads)
        return self._prover.holds(instance.facts, heads)

    def _decided(self, rule: Rule) -> bool | None:
        try:
            return self.counterexample(rule) is None
        except LimitError:
            return None

    def counterexample(self, rule: Rule) -> Instance | None:
        """Return an instance of a rule's body on which its head does not follow; None if it is entailed."""
        _check(rule)
        return _failing(rule, self._prover.derive)

    def derivation(self, rule: Rule) -> tuple[Step, ...] | None:
        """Return how the head follows from the body, its variables all different; None if it is not entailed.

        There is no step if the head is part of the body or the body cannot be satisfied, and a single one
        where that is enough. Where variables are identified, the derivation may be another one:
        `counterexample` has looked at those too.
        """
        if self._prover.has_inequalities and self.counterexample(rule) is not None:
            return None
        _check(rule)
        instance = Instance.of(rule)
        if instance is None or instance.goal in instance.facts:
            return ()
        step = self._prover.one_step(instance.facts, instance.goal)
        return (step,) if step else self._prover.derive(instance.facts, instance.goal)

    def one_step(self, rule: Rule) -> bool:
        """Say whether the head follows from the body by a single application of a single rule.

        Where inequalities make several instances necessary, each may need another rule. A head that is part
        of the body follows as well.
        """

        def prove(facts: Sequence[Atom], goal: Atom) -> tuple[Step, ...] | None:
            step = self._prover.one_step(facts, goal)
            return None if step is None else (step,)

        _check(rule)
        return _failing(rule, prove) is None


def _failing(rule: Rule, prove: Prove) -> Instance | None:
    """Return the first canonical instance without a derivation; see the top of this file."""
    _check(rule)
    first = Instance.of(rule)
    waiting = [] if first is None else [first]
    seen = {first}
    while waiting:
        instance = waiting.pop()
        facts, goal = instance.facts, instance.goal
        if goal in facts:
            continue
        steps = prove(facts, goal)
        if steps is None:
            return instance
        for left, right in used_inequalities(steps):
            merged = instance.identified(left, right)
            if merged is not None and merged not in seen:
                seen.add(merged)
                waiting.append(merged)
    return None


def _check(rule: Rule) -> None:
    if not isinstance(rule, Rule):
        raise InputError(f"`{rule}` is not a rule", hint="parse_rule makes one from its text")
    if rule.negations:
        raise InputError(
            f"entailment is for rules without negation, not for `{rule}`",
            hint="the test by canonical instances is not complete for negation as failure",
        )
