"""The data of the Lehigh University Benchmark, bit for bit as its generator (UBA 1.7) makes them.

A university is one stream of random numbers, those of `java.util.Random`; its departments follow each other in that
stream. So a department is what a stream in a given state makes, and nothing else needs to be kept in memory:

    statements      every statement in the order of the original, repeated ones included
    generate_lubm   the graph
    write_lubm      a file of sorted, distinct N-Triples, the same bytes as writing the graph, but with one
                    department in memory at a time, for any number of universities

The order of draws is the definition: every draw moves the stream on, so a draw out of place, or one left out because
its value is not used, changes all that follows. The only statements that repeat are (university, type, University):
one follows each mention of a university. The ontology's own two header statements are not part of the graph.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import BinaryIO, TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.errors import InputError, OutputError
from loginfer.files import atomic_path
from loginfer.kg.formats.base import compressed, split_compression
from loginfer.kg.graph import RDF_TYPE, KnowledgeGraph
from loginfer.kg.vocabulary import Vocabulary, offsets_of
from loginfer.progress import Progress, report_progress

MULTIPLIER = 0x5DEECE66D
INCREMENT = 11
MASK = 2**48 - 1


class JavaRandom:
    """A linear congruential generator with 48 bits of state, drawing as `nextInt(n)` does.

    Parameters
    ----------
    seed
        Any signed 64-bit integer.
    """

    __slots__ = ("state",)

    def __init__(self, seed: int) -> None:
        self.state = (seed ^ MULTIPLIER) & MASK

    @classmethod
    def at(cls, state: int) -> JavaRandom:
        """Return a generator that continues from a state seen before."""
        random = cls(0)
        random.state = state
        return random

    def below(self, n: int) -> int:
        """Draw one of 0 … n - 1. Also `below(1)`, which is always 0, takes a step."""
        state = (self.state * MULTIPLIER + INCREMENT) & MASK
        if n & (n - 1) == 0:
            self.state = state
            return (n * (state >> 17)) >> 31
        output = state >> 17
        value = output % n
        # The last, incomplete run of n outputs below 2^31 would favour small values: draw again.
        while output - value + n > 2**31:
            state = (state * MULTIPLIER + INCREMENT) & MASK
            output = state >> 17
            value = output % n
        self.state = state
        return value

    def between(self, low: int, high: int) -> int:
        """Draw one of low … high, both included."""
        return low + self.below(high - low + 1)

    def distinct(self, count: int, n: int) -> list[int]:
        """Draw `count` different ones of 0 … n - 1, in drawing order."""
        remaining = list(range(n))
        return [remaining.pop(self.below(size)) for size in range(n, n - count, -1)]


ONTOLOGY = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#"

# Names of subject, predicate, object: IRIs as they are, literals in quotes as in N-Triples.
Statement: TypeAlias = tuple[str, str, str]

ADVISOR = ONTOLOGY + "advisor"
EMAIL_ADDRESS = ONTOLOGY + "emailAddress"
HEAD_OF = ONTOLOGY + "headOf"
MEMBER_OF = ONTOLOGY + "memberOf"
NAME = ONTOLOGY + "name"
PUBLICATION_AUTHOR = ONTOLOGY + "publicationAuthor"
RESEARCH_INTEREST = ONTOLOGY + "researchInterest"
SUB_ORGANIZATION_OF = ONTOLOGY + "subOrganizationOf"
TAKES_COURSE = ONTOLOGY + "takesCourse"
TEACHER_OF = ONTOLOGY + "teacherOf"
TEACHING_ASSISTANT_OF = ONTOLOGY + "teachingAssistantOf"
TELEPHONE = ONTOLOGY + "telephone"
WORKS_FOR = ONTOLOGY + "worksFor"
UNDERGRADUATE_DEGREE_FROM = ONTOLOGY + "undergraduateDegreeFrom"
MASTERS_DEGREE_FROM = ONTOLOGY + "mastersDegreeFrom"
DOCTORAL_DEGREE_FROM = ONTOLOGY + "doctoralDegreeFrom"

UNIVERSITY = ONTOLOGY + "University"

# Faculty in the order of generation: how many a department has, and how many publications each of them.
FACULTY = ("FullProfessor", "AssociateProfessor", "AssistantProfessor", "Lecturer")
FACULTY_SIZES = ((7, 10), (10, 14), (8, 11), (5, 7))
FACULTY_PUBLICATIONS = ((15, 20), (10, 18), (5, 10), (0, 5))

COURSE_POOL = 100
RESEARCH_AREAS = 30
TELEPHONE_NUMBER = '"xxx-xxx-xxxx"'


def university_iri(index: int) -> str:
    """Return the IRI of a university."""
    return f"http://www.University{index}.edu"


# Where degrees come from, however many universities are generated.
UNIVERSITY_POOL = tuple(university_iri(index) for index in range(1000))


def departments_of(university: int, seed: int) -> tuple[JavaRandom, int]:
    """Return the stream of a university's random numbers and how many departments it has.

    The factor of the seed is negative because the original computes it in 32 bits, where it overflows.
    """
    random = JavaRandom(university - seed * 2**31)
    return random, random.between(15, 25)


class Department:
    """A department as it is being made: its sizes, drawn first, and its growing list of statements.

    Parameters
    ----------
    random
        The stream of the university's random numbers; making the department moves it on.
    university, index
        Which department of which university.
    """

    def __init__(self, random: JavaRandom, university: int, index: int) -> None:
        self.random = random
        self.university = university
        self.index = index
        host = f"Department{index}.University{university}.edu"
        self.iri = f"http://www.{host}"
        self.mail = f'@{host}"'
        self.statements: list[Statement] = []
        between = random.between
        self.sizes = [between(low, high) for low, high in FACULTY_SIZES]
        people = sum(self.sizes)
        self.undergraduates = between(8 * people, 14 * people)
        self.graduates = between(3 * people, 4 * people)
        self.teaching_assistants = between(self.graduates // 5, self.graduates // 4)
        self.research_assistants = between(self.graduates // 4, self.graduates // 3)
        self.research_groups = between(10, 20)
        self.chair = random.below(self.sizes[0])
        # IRIs; those of the faculty by rank.
        self.faculty: list[list[str]] = [[] for _ in FACULTY]
        self.courses: list[str] = []
        self.graduate_courses: list[str] = []
        # Publications with their authors: stated after the students, who may become authors.
        self.publications: list[tuple[str, list[str]]] = []

    def make(self) -> list[Statement]:
        """Make the department and return its statements."""
        self._organisation()
        for rank in range(len(FACULTY)):
            for i in range(self.sizes[rank]):
                self._faculty_member(rank, i)
        for i in range(self.undergraduates):
            self._undergraduate(i)
        for i in range(self.graduates):
            self._graduate(i)
        self._research_groups()
        self._publications()
        self._courses()
        self._assistants()
        return self.statements

    def _organisation(self) -> None:
        university = university_iri(self.university)
        if self.index == 0:
            self.statements += (
                (university, RDF_TYPE, UNIVERSITY),
                (university, NAME, f'"University{self.university}"'),
            )
        self.statements += (
            (self.iri, RDF_TYPE, ONTOLOGY + "Department"),
            (self.iri, NAME, f'"Department{self.index}"'),
            (self.iri, SUB_ORGANIZATION_OF, university),
            (university, RDF_TYPE, UNIVERSITY),
        )

    def _faculty_member(self, rank: int, i: int) -> None:
        random = self.random
        name = f"{FACULTY[rank]}{i}"
        person = f"{self.iri}/{name}"
        self.faculty[rank].append(person)
        state = self.statements.append
        state((person, RDF_TYPE, ONTOLOGY + FACULTY[rank]))
        state((person, NAME, f'"{name}"'))
        self._teach(person, "Course", self.courses)
        self._teach(person, "GraduateCourse", self.graduate_courses)
        self._degree(person, UNDERGRADUATE_DEGREE_FROM)
        self._degree(person, MASTERS_DEGREE_FROM)
        self._degree(person, DOCTORAL_DEGREE_FROM)
        state((person, WORKS_FOR, self.iri))
        state((person, EMAIL_ADDRESS, f'"{name}{self.mail}'))
        state((person, TELEPHONE, TELEPHONE_NUMBER))
        if FACULTY[rank] != "Lecturer":
            state((person, RESEARCH_INTEREST, f'"Research{random.below(RESEARCH_AREAS)}"'))
        if rank == 0 and i == self.chair:
            state((person, HEAD_OF, self.iri))
        for j in range(random.between(*FACULTY_PUBLICATIONS[rank])):
            self.publications.append((f"{person}/Publication{j}", [person]))

    def _teach(self, person: str, kind: str, courses: list[str]) -> None:
        """Hand out the next courses; which free course the original draws has no effect."""
        for _ in range(self.random.between(1, 2)):
            self.random.below(COURSE_POOL - len(courses))
            course = f"{self.iri}/{kind}{len(courses)}"
            self.statements.append((person, TEACHER_OF, course))
            courses.append(course)

    def _degree(self, person: str, relation: str) -> None:
        university = UNIVERSITY_POOL[self.random.below(len(UNIVERSITY_POOL))]
        self.statements += ((person, relation, university), (university, RDF_TYPE, UNIVERSITY))

    def _student(self, kind: str, i: int) -> str:
        name = f"{kind}{i}"
        student = f"{self.iri}/{name}"
        self.statements += (
            (student, RDF_TYPE, ONTOLOGY + kind),
            (student, NAME, f'"{name}"'),
            (student, MEMBER_OF, self.iri),
            (student, EMAIL_ADDRESS, f'"{name}{self.mail}'),
            (student, TELEPHONE, TELEPHONE_NUMBER),
        )
        return student

    def _undergraduate(self, i: int) -> None:
        random = self.random
        student = self._student("UndergraduateStudent", i)
        for c in random.distinct(random.between(2, 4), len(self.courses)):
            self.statements.append((student, TAKES_COURSE, self.courses[c]))
        if random.below(5) == 0:
            self._advisor(student)

    def _graduate(self, i: int) -> None:
        random = self.random
        student = self._student("GraduateStudent", i)
        for c in random.distinct(random.between(1, 3), len(self.graduate_courses)):
            self.statements.append((student, TAKES_COURSE, self.graduate_courses[c]))
        self._degree(student, UNDERGRADUATE_DEGREE_FROM)
        random.below(1)  # every graduate has an advisor: the original still draws one out of one
        self._advisor(student)
        for p in random.distinct(random.between(0, 5), len(self.publications)):
            self.publications[p][1].append(student)

    def _advisor(self, student: str) -> None:
        professors = self.faculty[self.random.between(0, 2)]
        self.statements.append((student, ADVISOR, professors[self.random.below(len(professors))]))

    def _research_groups(self) -> None:
        for i in range(self.research_groups):
            group = f"{self.iri}/ResearchGroup{i}"
            self.statements += ((group, RDF_TYPE, ONTOLOGY + "ResearchGroup"), (group, SUB_ORGANIZATION_OF, self.iri))

    def _publications(self) -> None:
        for publication, authors in self.publications:
            name = publication.rsplit("/", 1)[1]
            self.statements.append((publication, RDF_TYPE, ONTOLOGY + "Publication"))
            self.statements.append((publication, NAME, f'"{name}"'))
            self.statements += [(publication, PUBLICATION_AUTHOR, author) for author in authors]

    def _courses(self) -> None:
        for kind, courses in (("Course", self.courses), ("GraduateCourse", self.graduate_courses)):
            for i, course in enumerate(courses):
                self.statements += ((course, RDF_TYPE, ONTOLOGY + kind), (course, NAME, f'"{kind}{i}"'))

    def _assistants(self) -> None:
        teaching = self.teaching_assistants
        students = self.random.distinct(teaching + self.research_assistants, self.graduates)
        courses = self.random.distinct(teaching, len(self.courses))
        for s, c in zip(students[:teaching], courses, strict=True):
            student = f"{self.iri}/GraduateStudent{s}"
            self.statements += (
                (student, RDF_TYPE, ONTOLOGY + "TeachingAssistant"),
                (student, TEACHING_ASSISTANT_OF, self.courses[c]),
            )
        for s in students[teaching:]:
            student = f"{self.iri}/GraduateStudent{s}"
            self.statements.append((student, RDF_TYPE, ONTOLOGY + "ResearchAssistant"))


LIMIT = 2**31  # seeds and indices of universities are non-negative 32-bit integers in the original


@dataclass(frozen=True, slots=True)
class LubmCounts:
    """What was written.

    Parameters
    ----------
    universities, departments
        How many were generated.
    statements
        How many statements the original generator makes, repeated ones included.
    triples
        How many of them are distinct.
    """

    universities: int
    departments: int
    statements: int
    triples: int


def statements(universities: int = 1, start: int = 0, seed: int = 0) -> Iterator[Statement]:
    """Yield the statements of LUBM in the order of the original generator, repeated ones included.

    Parameters
    ----------
    universities
        How many universities, at least 1.
    start
        Index of the first one.
    seed
        0 … 2^31 - 1.

    Yields
    ------
    tuple
        Names of subject, predicate and object: IRIs as they are, literals in quotes as in N-Triples.
    """
    _check(universities, start, seed)
    indices = range(start, start + universities)
    return chain.from_iterable(chain.from_iterable(_departments(u, seed) for u in indices))


def generate_lubm(
    universities: int = 1, start: int = 0, seed: int = 0, progress: Progress | None = None
) -> KnowledgeGraph:
    """Make the graph LUBM(universities, seed).

    Parameters
    ----------
    universities, start, seed
        As for `statements`.
    progress
        Called with the number of universities done, and of all.
    """
    _check(universities, start, seed)
    entities: defaultdict[str, int] = defaultdict(count().__next__)
    relations: defaultdict[str, int] = defaultdict(count().__next__)
    subjects, predicates, objects = array("i"), array("i"), array("i")
    for done in range(universities):
        report_progress(progress, "universities", done, universities)
        for department in _departments(start + done, seed):
            s, r, o = zip(*department, strict=True)
            subjects.extend(map(entities.__getitem__, s))
            predicates.extend(map(relations.__getitem__, r))
            objects.extend(map(entities.__getitem__, o))
    entity_names, entity_ids = _vocabulary(entities)
    relation_names, relation_ids = _vocabulary(relations)
    triples = np.empty((len(subjects), 3), dtype=np.int32)
    triples[:, 0] = entity_ids[np.frombuffer(subjects, dtype=np.int32)]
    triples[:, 1] = relation_ids[np.frombuffer(predicates, dtype=np.int32)]
    triples[:, 2] = entity_ids[np.frombuffer(objects, dtype=np.int32)]
    report_progress(progress, "universities", universities, universities)
    return KnowledgeGraph(entity_names, relation_names, triples, type_predicate=RDF_TYPE)


def write_lubm(
    path: str | Path,
    universities: int = 1,
    start: int = 0,
    seed: int = 0,
    *,
    force: bool = False,
    progress: Progress | None = None,
) -> LubmCounts:
    """Write LUBM(universities, seed) as sorted, distinct N-Triples, one department in memory at a time.

    Parameters
    ----------
    path
        Where to write: a name that ends in `.nt`, `.nt.gz` or `.nt.zst`.
    universities, start, seed
        As for `statements`.
    force
        Replace an existing file.
    progress
        Called with the number of departments done, and of all.
    """
    _check(universities, start, seed)
    target = Path(path)
    if not split_compression(target.name)[0].endswith(".nt"):
        hint = "choose a name that ends in .nt, .nt.gz or .nt.zst"
        raise OutputError(f"cannot write LUBM department by department to `{target}`", hint=hint)
    with (
        atomic_path(target, force=force) as temporary,
        temporary.open("wb") as raw,
        compressed(raw, target.name) as stream,
    ):
        return _write_sorted(stream, universities, start, seed, progress)


def _write_sorted(stream: BinaryIO, universities: int, start: int, seed: int, progress: Progress | None) -> LubmCounts:
    """Write the departments in the order of their names, the lines of each in order, then the universities.

    Every line about a department or its members begins with the department's IRI, and `Department…` comes
    before `University…`, so the file as a whole is sorted. A first pass notes in which state of the
    stream of random numbers each department begins.
    """
    beginnings = sorted(beginning for u in range(start, start + universities) for beginning in _beginnings(u, seed))
    generated = triples = 0
    about_universities: set[str] = set()
    for done, (_, state, university, index) in enumerate(beginnings):
        report_progress(progress, "departments", done, len(beginnings))
        department = Department(JavaRandom.at(state), university, index)
        lines = []
        for s, r, o in department.make():
            line = f"<{s}> <{r}> {o} .\n" if o[0] == '"' else f"<{s}> <{r}> <{o}> .\n"
            if s.startswith(department.iri):
                lines.append(line)
            else:
                about_universities.add(line)
        lines.sort()
        stream.write("".join(lines).encode())
        generated += len(department.statements)
        triples += len(lines)
    stream.write("".join(sorted(about_universities)).encode())
    report_progress(progress, "departments", len(beginnings), len(beginnings))
    return LubmCounts(universities, len(beginnings), generated, triples + len(about_universities))


def _beginnings(university: int, seed: int) -> Iterator[tuple[str, int, int, int]]:
    """Yield the IRI, the state at its beginning, and the indices of each department."""
    random, number = departments_of(university, seed)
    for index in range(number):
        state = random.state
        department = Department(random, university, index)
        yield department.iri, state, university, index
        department.make()


def _departments(university: int, seed: int) -> Iterator[list[Statement]]:
    random, number = departments_of(university, seed)
    for index in range(number):
        yield Department(random, university, index).make()


def _vocabulary(names: Iterable[str]) -> tuple[Vocabulary, npt.NDArray[np.int32]]:
    """Return the vocabulary of distinct names, and the id in it of each name."""
    encoded = [name.encode() for name in names]
    order = sorted(range(len(encoded)), key=encoded.__getitem__)
    ids = np.empty(len(encoded), dtype=np.int32)
    ids[order] = np.arange(len(encoded), dtype=np.int32)
    ordered = [encoded[i] for i in order]
    return Vocabulary(np.frombuffer(b"".join(ordered), dtype=np.uint8), offsets_of(list(map(len, ordered)))), ids


def _check(universities: int, start: int, seed: int) -> None:
    if universities < 1:
        raise InputError(f"LUBM cannot have {universities} universities", hint="give at least 1")
    if start < 0 or start + universities > LIMIT:
        hint = "the indices of universities are 0 to 2147483647"
        raise InputError(f"LUBM cannot have universities {start} to {start + universities - 1}", hint=hint)
    if not 0 <= seed < LIMIT:
        raise InputError(f"LUBM cannot have the seed {seed}", hint="seeds are 0 to 2147483647")
