# ruff: noqa: S311  (nothing here is a secret)
"""Write small folders with the kinds of defects that the files released with the paper have.

They have the layout of those files (train.txt, train_neg_pa.txt, …) and nothing of their content, so that the
commands of the page on the released files can be tried without downloading anything.

python examples/released_defects.py FOLDER
"""

import random
import sys
from pathlib import Path

RELATIONS = [f"_relation{i}" for i in range(11)]


def graph(size=900, senses=300, seed=1):
    """Return a random graph with 11 relations, a few of them frequent."""
    draw = random.Random(seed)
    weights = [1 / (i + 1) for i in range(len(RELATIONS))]
    triples = set()
    while len(triples) < size:
        s, o = draw.sample(range(senses), 2)
        triples.add((f"s{s:03d}", draw.choices(RELATIONS, weights)[0], f"s{o:03d}"))
    return triples


def split(conclusions, seed=2):
    """Return train, valid and test, 8 : 1 : 1."""
    order = sorted(conclusions)
    random.Random(seed).shuffle(order)
    a, b = 8 * len(order) // 10, 9 * len(order) // 10
    return {"train": order[:a], "valid": order[a:b], "test": order[b:]}


def corrupted(triples, known, seed):
    """Return as many triples with another object, none of them known; `known` grows by them."""
    draw = random.Random(seed)
    objects = sorted({o for _, _, o in known})
    made = []
    for s, r, _ in triples:
        triple = next(t for t in iter(lambda s=s, r=r: (s, r, draw.choice(objects)), None) if t not in known)
        known.add(triple)
        made.append(triple)
    return made


def benchmark(kg, conclusions, method):
    """Return the six sets of a benchmark without defects beyond those of its conclusions."""
    sets = split(conclusions - kg)
    sets["train"] = sorted(kg) + sets["train"]
    known = {triple for part in sets.values() for triple in part}
    for number, name in enumerate(("train", "valid", "test")):
        sets[f"{name}_neg_{method}"] = corrupted(sets[name], known, seed=number)
    return sets


def write(folder, sets):
    """Write sets of triples as the released files have them: tabs, one triple a line."""
    folder.mkdir(parents=True)
    for name, triples in sets.items():
        (folder / f"{name}.txt").write_text("".join("\t".join(triple) + "\n" for triple in triples))


def inverses(kg, pairs):
    """Return what rules (x, R, y) -> (y, S, x) conclude."""
    return {(o, new, s) for s, r, o in kg for old, new in pairs if r == old}


def sym(kg):
    """Inversions of one relation into others, under the name of symmetry."""
    return benchmark(kg, inverses(kg, [(RELATIONS[0], RELATIONS[3]), (RELATIONS[1], RELATIONS[4])]), "pa")


def comp(kg):
    """(x, R, y), (y, S, z) -> (x, T, y): the conclusion forgets z, and x and y are adjacent already."""
    subjects = {s for s, r, _ in kg if r == RELATIONS[1]}
    found = {(s, RELATIONS[5], o) for s, r, o in kg if r == RELATIONS[0] and o in subjects}
    return benchmark(kg, found, "pa")


def hier(kg):
    """Rules (x, R, y) -> (x, S, y) for all 11 relations where 5 were announced; 7 relations are in heads."""
    heads = {relation: RELATIONS[(i + 3) % 7] for i, relation in enumerate(RELATIONS)}
    return benchmark(kg, {(s, heads[r], o) for s, r, o in kg}, "pa")


def trian(kg):
    """Test triples that training calls false."""
    sets = sym(kg)
    sets = {name.replace("_pa", "_qg"): triples for name, triples in sets.items()}
    wrong = sets["test"][:: len(sets["test"]) // 5]
    sets["train_neg_qg"][: len(wrong)] = wrong
    return sets


def diam(kg):
    """Negatives of test that are positives, or follow from the rules."""
    old, new = RELATIONS[0], RELATIONS[3]
    derived = sorted(inverses(kg, [(old, new)]) - kg)
    sets = benchmark(kg, set(derived[len(derived) // 4 :]), "qg")
    held_back = derived[: len(derived) // 4]
    sets["test_neg_qg"][:5] = [*sets["train"][:2], *held_back[:3]]
    return sets


def lubm(kg):
    """Lines that are there twice, and test triples that are in valid too."""
    sets = sym(kg)
    sets = {name.replace("_pa", "_qg"): triples for name, triples in sets.items()}
    sets["test"] = sets["test"] + sets["test"][:4] + sets["valid"][:6]
    return sets


def main():
    """Write all of them."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    kg = graph()
    makers = {"WN-sym-pa": sym, "WN-comp-pa": comp, "WN-hier-pa": hier}
    makers |= {"WN-trian-qg": trian, "WN-diam-qg": diam, "LUBM-all-qg": lubm}
    for name, make in makers.items():
        write(Path(sys.argv[1]) / name, make(kg))


if __name__ == "__main__":
    main()
