"""Any model of PyKEEN as a system: `pykeen:TuckER` is `loginfer.pykeen.system:TuckER`.

Each model's class is made when it is asked for. Its settings are those of training, which all models share, and the
arguments that PyKEEN's own class has.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Union, get_args, get_origin

from class_resolver import BaseResolver, ClassResolver, normalize_string
from class_resolver.contrib.torch import activation_resolver
from pykeen.models import Model, model_resolver
from pykeen.nn import TextRepresentation, VisualRepresentation, node_piece, representation_resolver
from pykeen.nn.init import initializer_resolver
from pykeen.nn.message_passing import decomposition_resolver
from pykeen.nn.modules import interaction_resolver
from pykeen.nn.representation import constrainer_resolver, normalizer_resolver
from pykeen.nn.weighting import edge_weight_resolver
from pykeen.regularizers import regularizer_resolver

from loginfer.benchmark.benchmark import Benchmark
from loginfer.errors import InputError, UnknownNameError
from loginfer.settings import Setting, check_settings, setting, type_hints_of
from loginfer.systems.interface import Arrays, Unwatched, Watch, refuse_unseen
from pykeen import models  # not its classes by name: a name of this module is a system

if TYPE_CHECKING:
    from loginfer.pykeen.scoring import PyKEENScorer


def __getattr__(name: str) -> Any:
    """Return the system of a model of PyKEEN."""
    if name.startswith("_"):
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
    return system_class(name)


# Ours, and PyTorch's.
OPTIMIZERS = (
    "LazyAdam", "ASGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop",
    "Rprop", "SGD",
)  # fmt: skip
# Ours, the one that PyKEEN has for the model, and all that PyKEEN has.
LOSSES = (
    "loginfer", "model", "AdversarialBCEWithLogits", "BCEAfterSigmoid", "BCEWithLogits", "CrossEntropy",
    "DoubleMargin", "Focal", "InfoNCE", "MSE", "MarginRanking", "NSSA", "PairwiseLogistic", "PointwiseHinge",
    "SoftMarginRanking", "SoftPointwiseHinge", "Softplus",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PyKEENSystem:
    """A model of PyKEEN, trained in PyKEEN's own loop (sLCWA) on P_train and N_train.

    What is learned, and from what, is as for our own embeddings where nothing else is said: the loss (see
    `loginfer.pykeen.training`), how many negatives of which kind, lazy Adam with a falling rate, the
    choice of the epoch on valid. The model, with its initialisers, constraints and regularisers, is PyKEEN's.

    A run that was killed goes on where it was, and ends with the same bytes, as long as the device and the
    number of threads stay the same and the device computes reproducibly; CPUs do.
    """

    mode: Literal["explicit", "random", "both"] = setting(
        "both", "negatives: those of N_train, random corruptions, or both"
    )
    num_negatives: int = setting(8, "random corruptions for each positive", least=1, most=1024)
    num_explicit: int = setting(1, "negatives of N_train for each positive", least=1, most=1024)
    match: Literal["any", "relation", "end"] = setting(
        "any",
        "which negatives of N_train a positive gets: any, those with its relation, or where there are some "
        "those that share an end as well",
    )
    loss: str = setting("loginfer", "the loss: `loginfer`, ours; `model`, the model's own; or one of PyKEEN's")
    margin: float = setting(0.0, "what our loss adds to all scores; the margin of PyKEEN's losses", tuned="0:15")
    adversarial: float = setting(1.0, "how much more hard random negatives count; 0: all alike", least=0, tuned="0:2")
    explicit_weight: float = setting(1.0, "weight of the explicit negatives in our loss", least=0, tuned="0.03:2:log")
    regularisation: float = setting(0.0, "λ, the weight of the N3 regularisation of positives", least=0, tuned="0:0.03")
    optimizer: str = setting(
        "LazyAdam", "the optimiser: LazyAdam, which moves what a batch touches, or one of PyTorch's"
    )
    learning_rate: float = setting(0.01, "of the optimiser at the start", least=0, tuned="0.001:0.05:log")
    schedule: Literal["linear", "constant"] = setting(
        "linear", "whether the learning rate falls to 0 in a straight line"
    )
    batch_size: int = setting(1024, "positives in a step", least=1)
    epochs: int = setting(15, "how often all of P_train is seen", least=1)
    patience: int = setting(0, "stop after so many epochs that were not better on valid; 0: never", least=0)
    keep: Literal["best", "last"] = setting("best", "the epoch that is best on valid, or the last one")
    device: Literal["auto", "cpu", "cuda"] = setting("auto", "where to compute")
    threads: int = setting(1, "CPU threads; another number may change the last bits of the result", least=1, most=256)
    seed: int = setting(0, "seed of all that is random", least=0)

    # The model's name in PyKEEN.
    model: ClassVar[str]

    def __post_init__(self) -> None:
        check_settings(self)
        # Names are kept as PyKEEN spells them, however they were given.
        object.__setattr__(self, "loss", _spelt("loss", self.loss, LOSSES))
        object.__setattr__(self, "optimizer", _spelt("optimizer", self.optimizer, OPTIMIZERS))
        self.model_arguments()

    def model_arguments(self) -> dict[str, Any]:
        """Return the arguments of the model."""
        return given_arguments(arguments(find_model(self.model)), vars(self))

    def fit(self, benchmark: Benchmark, watch: Watch | None = None) -> PyKEENScorer:
        """Learn from a benchmark, starting from the watch's last checkpoint if it has one."""
        from loginfer.pykeen.training import train

        refuse_unseen(benchmark, f"PyKEEN's {self.model}")
        return train(self, benchmark, Unwatched() if watch is None else watch)

    def restore(self, benchmark: Benchmark, arrays: Arrays) -> PyKEENScorer:
        """Return the scorer whose `arrays()` these are."""
        from loginfer.pykeen.training import restored

        return restored(self, benchmark, arrays)


def _spelt(what: str, value: str, names: tuple[str, ...]) -> str:
    plain = value.casefold().removesuffix("loss")
    for name in names:
        if name.casefold() == plain:
            return name
    raise UnknownNameError(f"value of `{what}`", value, names, where="--set")


# -- the models ------------------------------------------------------------------------------------

# Models whose score is minus a distance, and so never positive: with our loss they need a margin, the
# distance at which a triple is as likely as not. The value is that of our own models with distances.
_DISTANCES = (
    "BoxE", "KG2E", "MuRE", "PairRE", "RotatE", "SE", "TorusE",
    "TransD", "TransE", "TransF", "TransH", "TransR", "UM",
)  # fmt: skip

# Models that we have as well, whose score is a product. PyKEEN's DistMult keeps the vectors of entities at
# length 1, with which our loss cannot make scores large: on WN18RR it then learns far less. They get our own
# regularisation instead of PyKEEN's constraints and regularisers.
_PRODUCTS: dict[str, dict[str, Any]] = {
    "ComplEx": {"regularizer": None, "regularisation": 0.01},
    "DistMult": {"entity_constrainer": None, "regularizer": None, "regularisation": 0.01},
}

DEFAULTS: dict[str, dict[str, Any]] = {name: {"margin": 6.0} for name in _DISTANCES} | _PRODUCTS


# What some models need that a benchmark does not have.
_UNFIT: tuple[tuple[type[Model], str], ...] = (
    (models.LiteralModel, "it needs numbers that describe entities, and a benchmark has none"),
    (models.InductiveERModel, "it needs a second graph to be asked about: it is for PyKEEN's inductive data sets"),
    (models.CooccurrenceFilteredModel, "it is a filter around another model, which can be evaluated by itself"),
    (models.FixedModel, "it learns nothing: PyKEEN has it for tests"),
)


def find_model(name: str) -> type[Model]:
    """Return a model by name; case, hyphens and underscores do not count.

    Raises
    ------
    UnknownNameError
        With the nearest names.
    InputError
        For a model that needs more than a benchmark.
    """
    if not name:
        hint = f"write pykeen:MODEL; models are {', '.join(model_names())}"
        raise InputError("no model of PyKEEN is named", where="--system", hint=hint)
    models = model_resolver.lookup_dict | dict(model_resolver.synonyms)
    model = models.get(model_resolver.normalize(name))
    if model is None:
        raise _unknown_name("model of PyKEEN", name, model_names(), "--system")
    why = _unfit(model)
    if why is not None:
        message = f"PyKEEN's {model.__name__} cannot be trained on a benchmark: {why}"
        hint = "choose another model, or give a trained one to loginfer.pykeen.scorer"
        raise InputError(message, where="--system", hint=hint)
    return model


def model_names() -> list[str]:
    """Return the names of the models that can learn from a benchmark."""
    names = (model.__name__ for model in model_resolver.lookup_dict.values() if _unfit(model) is None)
    return sorted(names, key=str.casefold)


def needs_inverse(model: type[Model]) -> bool:
    """Say whether a model can be trained with inverse triples only."""
    return issubclass(model, models.CompGCN | models.NodePiece)


def _unfit(model: type[Model]) -> str | None:
    return next((why for kind, why in _UNFIT if issubclass(model, kind)), None)


def system_class(name: str) -> type[PyKEENSystem]:
    """Return the class of a model's system; see `find_model` for what may be wrong with the name."""
    return _class(find_model(name))


@cache
def _class(model: type[Model]) -> type[PyKEENSystem]:
    name = model.__name__
    defaults = DEFAULTS.get(name, {})
    fields: list[tuple[str, object, object]] = [
        (a.name, a.type, setting(defaults.get(a.name, a.default), a.meaning, least=a.least, most=a.most))
        for a in arguments(model)
    ]
    fields += [
        (field.name, field.type, setting(defaults[field.name], **field.metadata))
        for field in dataclasses.fields(PyKEENSystem)
        if field.name in defaults
    ]
    # The module is that of the base class: names in its annotations are looked up there.
    namespace = {"model": name, "__module__": __name__, "__doc__": f"PyKEEN's {name} as a system."}
    return dataclasses.make_dataclass(
        name, fields, bases=(PyKEENSystem,), frozen=True, kw_only=True, namespace=namespace
    )


# -- the arguments of a model as settings ----------------------------------------------------------

# The value of a setting that leaves an argument to PyKEEN.
DEFAULT = "default"

_PLAIN = (bool, int, float, str)

# What an argument whose name ends like this is chosen from.
_CHOICES: dict[str, BaseResolver[Any, Any]] = {
    "initializer": initializer_resolver,
    "constrainer": constrainer_resolver,
    "normalizer": normalizer_resolver,
    "regularizer": regularizer_resolver,
    "interaction": interaction_resolver,
    "activation": activation_resolver,
    "non_linearity": activation_resolver,
    "edge_weighting": edge_weight_resolver,
    "decomposition": decomposition_resolver,
}

_MEANING = re.compile(r"^\s*:param (\w+):(.*?)(?=^\s*:|^\s*\.\.|\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)


def arguments(model: type[Model]) -> list[Setting]:
    """Return the arguments of a model that can be settings.

    Numbers, yes and no, and texts are what they are. Initialisers, constraints, regularisers and the like are
    chosen by PyKEEN's names. Arguments of such parts, whose names end in `kwargs`, are JSON objects. Other
    arguments, such as lists, cannot be set.
    """
    meanings, hints = _meanings(model), type_hints_of(model)
    settings = []
    for name, parameter in inspect.signature(model.__init__).parameters.items():
        if parameter.kind not in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            continue
        if name in ("self", "triples_factory"):
            continue
        kind = _kind(name, parameter.default, hints.get(name, parameter.annotation))
        if kind is not None:
            plain = parameter.default is None or isinstance(parameter.default, _PLAIN)
            default = parameter.default if plain else DEFAULT
            names = partial(_choices, name) if _choices(name) else None
            settings.append(Setting(name, kind, default, meanings.get(name, ""), *_bounds(name, kind), names))
    return settings


def given_arguments(settings: list[Setting], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of settings as a model takes them; without those that are left to PyKEEN."""
    values_given = {}
    for argument in settings:
        name = argument.name
        value = values[name]
        if value == DEFAULT:
            continue
        if value is not None:
            if name.endswith("_kwargs"):
                value = _json_object(name, value)
            if choices := argument.choices:
                choice = normalize_string(str(value))  # case, hyphens and underscores do not count
                if choice not in choices:
                    raise _unknown_name(f"value of `{name}`", str(value), [DEFAULT, "none", *choices], "--set")
                value = choice
        _refuse_parts(name, value)
        values_given[name] = value
    return values_given


def _json_object(name: str, text: Any) -> dict[str, Any]:
    try:
        value = json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError) as error:
        raise InputError(f"`{name}` is no JSON: {error}", where="--set", hint=_EXAMPLE) from error
    if not isinstance(value, dict):
        raise InputError(f"`{name}` must be a JSON object, not `{text}`", where="--set", hint=_EXAMPLE)
    return value


_EXAMPLE = """for example '{"a": -0.1, "b": 0.1}'"""


def _kind(name: str, default: Any, hint: Any) -> Any:
    """Return the type of a setting, None if the argument cannot be one."""
    if name.endswith("_kwargs") or _choices(name):
        return str | None
    kinds = _alternatives(hint)
    optional = default is None or type(None) in kinds
    for plain in _PLAIN:
        if type(default) is plain or (default is None and plain in kinds):
            return plain | None if optional else plain
    return None


def _choices(name: str) -> tuple[str, ...]:
    lookups = (resolver.lookup_dict for ending, resolver in _CHOICES.items() if name.endswith(ending))
    return tuple(sorted(next(lookups, {})))


def _alternatives(hint: Any) -> tuple[Any, ...]:
    if isinstance(hint, str):  # an annotation that was not evaluated
        words = {word.strip() for word in hint.split("|")}
        return tuple(kind for kind in (*_PLAIN, type(None)) if kind.__name__ in words or str(kind) in words)
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _bounds(name: str, kind: Any) -> tuple[float | None, float | None]:
    kinds = _alternatives(kind)
    if "dropout" in name:
        return 0.0, 1.0
    if int in kinds and (name.endswith(("_dim", "_height", "_width", "_channels")) or name.startswith("num_")):
        return 1.0, None
    return None, None


def _meanings(model: type[Model]) -> dict[str, str]:
    """Return what PyKEEN's documentation says about each argument, its first sentence."""
    text = inspect.getdoc(model.__init__) or ""
    meanings = {}
    for match in _MEANING.finditer(text):
        words = re.sub(r"`([^`<]*?)\s*<[^>]*>`_|:\w+:`~?([^`]*)`|``?([^`]*)``?", r"\1\2\3", match[2])
        sentence = re.split(r"(?<=[.;])\s", " ".join(words.replace("$", "").split()))[0]
        meanings[match[1]] = sentence.rstrip(".").removesuffix(", cf")
    return meanings


def _unknown_name(kind: str, name: str, names: Sequence[str], where: str) -> UnknownNameError:
    """Return the complaint about a name: with the nearest ones, or all if none is near.

    PyKEEN has no command that would list them.
    """
    error = UnknownNameError(kind, name, names, where=where)
    if error.hint is None:
        error.hint = "choose one of " + ", ".join(f"`{other}`" for other in names)
    return error


# -- parts of models that a setting must not choose ------------------------------------------------

_SEED = "what it draws does not follow the seed, so no two runs would be alike"
_ELSEWHERE = "it needs texts or pictures, and a benchmark has none"
_PICKLED = "it reads pickled files, which can run any program"

# A run's folder holds settings, and may come from anybody: none of them may make PyKEEN read a pickled file.
_REFUSED: tuple[tuple[ClassResolver[Any], type[Any], str], ...] = (
    (node_piece.tokenizer_resolver, node_piece.PrecomputedPoolTokenizer, _PICKLED),
    (node_piece.anchor_selection_resolver, node_piece.RandomAnchorSelection, _SEED),
    (node_piece.anchor_searcher_resolver, node_piece.ScipySparseAnchorSearcher, _SEED),
    (representation_resolver, TextRepresentation, _ELSEWHERE),
    (representation_resolver, VisualRepresentation, _ELSEWHERE),
)


def _refuse_parts(setting: str, value: Any) -> None:
    """Complain if a value, or anything inside a JSON value, is the name of a part that must not be chosen.

    Raises
    ------
    InputError
        With the reason.
    """
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            _refuse_parts(setting, inner)
    elif isinstance(value, str):
        for resolver, kind, why in _REFUSED:
            part = resolver.lookup_dict.get(resolver.normalize(value))
            if part is not None and issubclass(part, kind):
                others = [name for name, other in resolver.lookup_dict.items() if not issubclass(other, kind)]
                hint = "choose one of " + ", ".join(f"`{name}`" for name in sorted(others))
                raise InputError(f"`{value}` cannot be chosen in `{setting}`: {why}", where="--set", hint=hint)
