"""A graph as companies have them: people, teams, projects, customers, skills.

`python examples/company.py company.nt` writes N-Triples with labels, literals and types, one line of them broken;
`python examples/company.py company.csv` the links alone, as a table with a header and a fourth column.
"""

from __future__ import annotations

import argparse
import csv
import random
from collections.abc import Iterator
from pathlib import Path

BASE = "http://company.example/"
RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
FIRST = [
    "Ada",
    "Ben",
    "Cleo",
    "Dan",
    "Eva",
    "Finn",
    "Gita",
    "Hugo",
    "Ines",
    "Jon",
    "Kira",
    "Leo",
    "Mona",
    "Nils",
    "Olga",
    "Paul",
    "Rosa",
    "Sven",
    "Tara",
    "Uwe",
]
LAST = [
    "Abel",
    "Brandt",
    "Costa",
    "Dietz",
    "Engel",
    "Fuchs",
    "Greco",
    "Haas",
    "Imhof",
    "Jung",
    "Klein",
    "Lenz",
    "Moser",
    "Nagy",
    "Ortiz",
    "Perez",
    "Roth",
    "Stern",
]

Link = tuple[str, str, str]


def links(people: int, seed: int) -> Iterator[Link]:
    """Yield who works where, with whom, on what; some links that others imply are missing, as in real life."""
    draw = random.Random(seed)  # noqa: S311 - a made-up company needs no secrets
    teams, projects, customers, skills = people // 12, people // 8, people // 15, 60
    team_of = {person: draw.randrange(teams) for person in range(people)}
    lead = {team: draw.randrange(people) for team in range(teams)}
    customer_of = {project: draw.randrange(customers) for project in range(projects)}
    needed = {project: draw.sample(range(skills), 3) for project in range(projects)}
    for team in range(teams):
        yield f"team/{team}", "partOf", f"division/{team % 7}"
        yield f"team/{team}", "locatedIn", f"office/{team % 11}"
    for project, customer in customer_of.items():
        yield f"project/{project}", "orderedBy", f"customer/{customer}"
        yield from ((f"project/{project}", "requires", f"skill/{skill}") for skill in needed[project])
    for person, team in team_of.items():
        me, boss = f"person/{person}", f"person/{lead[team]}"
        yield me, "memberOf", f"team/{team}"
        if person != lead[team]:
            yield me, "reportsTo", boss
            if draw.random() < 0.7:
                yield boss, "manages", me
        if draw.random() < 0.4:
            yield me, "sitsIn", f"office/{team % 11}"
        for project in draw.sample(range(projects), 2):
            yield me, "worksOn", f"project/{project}"
            if draw.random() < 0.5:
                yield me, "serves", f"customer/{customer_of[project]}"
        for skill in {draw.choice(needed[draw.randrange(projects)]), draw.randrange(skills)}:
            yield me, "hasSkill", f"skill/{skill}"
        for colleague in draw.sample(range(people), 2):
            yield me, "knows", f"person/{colleague}"
            if draw.random() < 0.6:
                yield f"person/{colleague}", "knows", me


def statements(people: int, seed: int) -> Iterator[str]:
    """Yield the lines of N-Triples: types and labels of everything, literals of people, and the links."""
    draw = random.Random(seed + 1)  # noqa: S311
    all_links = list(links(people, seed))
    for name in sorted({name for s, _, o in all_links for name in (s, o)}):
        kind, number = name.split("/")
        label = f"{draw.choice(FIRST)} {draw.choice(LAST)}" if kind == "person" else f"{kind.title()} {number}"
        yield f"<{BASE}{name}> <{RDF_TYPE}> <{BASE}class/{kind.title()}> ."
        yield f'<{BASE}{name}> <{LABEL}> "{label}"@en .'
        if kind == "person":
            yield f'<{BASE}{name}> <{BASE}birthDate> "{draw.randrange(1960, 2005)}-0{draw.randrange(1, 10)}-11" .'
            yield f'<{BASE}{name}> <{BASE}email> "{label.replace(" ", ".").lower()}{number}@company.example" .'
    yield f"<{BASE}person/1> <{BASE}knows> person two, as far as we know ."
    yield from (f"<{BASE}{s}> <{BASE}{r}> <{BASE}{o}> ." for s, r, o in all_links)


def main() -> None:
    """Write the graph."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--people", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with options.out.open("w", encoding="utf-8", newline="") as stream:
        if options.out.suffix == ".csv":
            table = csv.writer(stream)
            table.writerow(["source", "relation", "target", "since"])
            table.writerows((s, r, o, 2000 + len(s + o) % 25) for s, r, o in links(options.people, options.seed))
        else:
            stream.writelines(f"{line}\n" for line in statements(options.people, options.seed))


if __name__ == "__main__":
    main()
