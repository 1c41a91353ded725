"""One department of LUBM: what it draws and what it states, in the order of the original generator.

The order is the definition: every draw moves the stream of random numbers on, so a draw out of place, or one
left out because its value is not used, changes all that follows.
"""

from __future__ import annotations

from typing import TypeAlias

from loginfer.kg.graph import RDF_TYPE
from loginfer.kg.java_random import JavaRandom

__all__ = ["ONTOLOGY", "UNIVERSITY", "Department", "Statement", "departments_of", "university_iri"]

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
            self.statements += (
                (group, RDF_TYPE, ONTOLOGY + "ResearchGroup"),
                (group, SUB_ORGANIZATION_OF, self.iri),
            )

    def _publications(self) -> None:
        for publication, authors in self.publications:
            name = publication.rsplit("/", 1)[1]
            self.statements.append((publication, RDF_TYPE, ONTOLOGY + "Publication"))
            self.statements.append((publication, NAME, f'"{name}"'))
            self.statements += [(publication, PUBLICATION_AUTHOR, author) for author in authors]

    def _courses(self) -> None:
        for kind, courses in (("Course", self.courses), ("GraduateCourse", self.graduate_courses)):
            for i, course in enumerate(courses):
                self.statements += (
                    (course, RDF_TYPE, ONTOLOGY + kind),
                    (course, NAME, f'"{kind}{i}"'),
                )

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
