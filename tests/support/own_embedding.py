"""An embedding model that somebody has written outside the package: settings, functions, nothing else."""

from dataclasses import dataclass

import numpy as np

from loginfer.settings import setting
from loginfer.systems.embedding.base import DOT, ModelFunctions, ProductSystem


@dataclass(frozen=True, kw_only=True)
class TanhMult(ProductSystem):
    """score(s, r, o) = Σ s·tanh(r)·o."""

    spread: float = setting(0.1, "all numbers start between minus this and this", least=0)

    @property
    def functions(self):
        return ModelFunctions(weigh, backward_weigh, *DOT, derive=squash, backward_derive=backward_squash)


def weigh(side, entity, relation, query):
    for j in range(len(entity)):
        query[j] = entity[j] * relation[j]


def backward_weigh(side, entity, relation, g_query, g_entity, g_relation):
    for j in range(len(entity)):
        g_entity[j] += g_query[j] * relation[j]
        g_relation[j] += g_query[j] * entity[j]


def squash(parameters, derived):
    for j in range(len(parameters)):
        derived[j] = np.tanh(parameters[j])


def backward_squash(derived, g_derived, g_parameters):
    for j in range(len(derived)):
        g_parameters[j] = g_derived[j] * (np.float32(1) - derived[j] * derived[j])
