"""N-Triples: RDF, one statement a line, and how names of a graph become terms of RDF and back without loss.

| name in the graph                         | term in N-Triples            | where              |
|-------------------------------------------|------------------------------|--------------------|
| an absolute IRI, `http://x.org/a`         | `<http://x.org/a>`           | everywhere         |
| a blank node, `_:b`                       | `_:b`                        | subject and object |
| a literal, `"text"@en`, in canonical form | as it stands                 | object             |
| anything else, `/m/027rn`                 | `<urn:loginfer:/m/027rn>`    | everywhere         |

The name follows `urn:loginfer:` as percent-encoded UTF-8. A name that itself begins so is encoded too, so every
name is read back as it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import quote, unquote_to_bytes

import numpy as np
import numpy.typing as npt

from loginfer.kg.formats.base import Format, ReadOptions, Source, register_format
from loginfer.kg.formats.tsv import text_chunks, write_lines
from loginfer.progress import Progress

if TYPE_CHECKING:
    from loginfer.kg.formats.scan import GraphBuilder
    from loginfer.kg.graph import KnowledgeGraph
    from loginfer.kg.name_table import NameTable
    from loginfer.kg.vocabulary import Vocabulary


PREFIX = "urn:loginfer:"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def texts_of_names(names: Sequence[str], position: str = "o") -> list[str]:
    """Return the N-Triples texts of names as subjects (`s`), relations (`r`) or objects (`o`)."""
    texts = [_candidate(name, position) for name in names]
    doubtful = [i for i, text in enumerate(texts) if text is not None]
    answers = names_of_texts([(texts[i] or "").encode() for i in doubtful])
    confirmed = {i: texts[i] for i, answer in zip(doubtful, answers, strict=True) if answer == names[i]}
    return [confirmed.get(i) or f"<{PREFIX}{quote(name, safe='/:@')}>" for i, name in enumerate(names)]


def _candidate(name: str, position: str) -> str | None:
    """Return the text that means this name, if it is a term at all."""
    if "\n" in name or "\r" in name or name.startswith(PREFIX):
        return None
    if name.startswith("_:"):
        return None if position == "r" else name
    if name.startswith('"'):
        return name if position == "o" else None
    return f"<{name}>" if _SCHEME.match(name) else None


def names_of_texts(texts: Sequence[bytes]) -> list[str | SyntaxError]:
    """Return the names that terms in N-Triples mean, or the parser's error.

    The texts are without line ends.
    """
    import pyoxigraph

    if not texts:
        return []
    document = b"".join(b"<s:> <p:> %s .\n" % text for text in texts)
    try:
        names = [
            name_of_term(quad.object) for quad in pyoxigraph.parse(document, format=pyoxigraph.RdfFormat.N_TRIPLES)
        ]
        if len(names) == len(texts):
            return list(names)
    except (SyntaxError, ValueError):
        pass
    if len(texts) == 1:
        return [_explain(texts[0])]
    half = len(texts) // 2
    return [*names_of_texts(texts[:half]), *names_of_texts(texts[half:])]


def _explain(text: bytes) -> SyntaxError:
    import pyoxigraph

    try:
        list(pyoxigraph.parse(b"<s:> <p:> %s .\n" % text, format=pyoxigraph.RdfFormat.N_TRIPLES))
    except (SyntaxError, ValueError) as error:
        # Columns would be those of the line made here, so only the reason is kept.
        reason = str(error).split(": ", 1)[-1].removesuffix(" (line 1)")
        return SyntaxError(reason)
    return SyntaxError("this is not one term")


def name_of_term(term: object) -> str:
    """Return the name in the graph of a term that pyoxigraph read.

    Raises
    ------
    ValueError
        For a triple instead of a term (RDF-star).
    """
    import pyoxigraph

    if isinstance(term, pyoxigraph.NamedNode):
        return decoded(term.value)
    if isinstance(term, pyoxigraph.BlankNode | pyoxigraph.Literal):
        return str(term)
    raise ValueError("triples about triples (RDF-star) are not supported")


def decoded(iri: str) -> str:
    """Return the name behind `urn:loginfer:`; any other IRI stands for itself."""
    if iri.startswith(PREFIX):
        try:
            return unquote_to_bytes(iri[len(PREFIX) :]).decode()
        except UnicodeDecodeError:
            pass  # not written by us
    return iri


ASK_AT_ONCE = 4096


def rdf_builder(skip: bool) -> GraphBuilder:
    """Make a builder whose tables hold terms as N-Triples writes them."""
    from loginfer.kg.formats.scan import GraphBuilder

    return GraphBuilder(skip=skip, meaning=_meaning)


def read(
    sources: Sequence[Source],
    builder: GraphBuilder,
    options: ReadOptions,
    progress: Progress | None,
    form: str = "N_TRIPLES",
) -> None:
    """Read N-Triples or N-Quads: plain lines by the compiled scanner, all others by pyoxigraph."""
    from loginfer.kg.formats.scan import scan_ntriples

    for source in sources:
        builder.begin(source.name)
        for data, begin, end in text_chunks(source, progress):
            other_lines: list[tuple[int, bytes]] = []

            def keep(
                bad: npt.NDArray[np.int64],
                data: npt.NDArray[np.uint8] = data,
                other_lines: list[tuple[int, bytes]] = other_lines,
            ) -> None:
                other_lines.extend((line, data[start:end].tobytes()) for line, _, end, start in bad.tolist())

            builder.scan(scan_ntriples, data, begin, end, keep)
            for start in range(0, len(other_lines), ASK_AT_ONCE):
                _read_others(other_lines[start : start + ASK_AT_ONCE], builder, form)


def _read_others(lines: Sequence[tuple[int, bytes]], builder: GraphBuilder, form: str) -> None:
    """Read lines of any shape with pyoxigraph, all at once if they are fine, else one by one."""
    try:
        scan_statements(_statements(b"\n".join(text for _, text in lines), form, builder), builder)
    except (SyntaxError, ValueError):
        for line, text in lines:
            try:
                scan_statements(_statements(text, form, builder), builder)
            except (SyntaxError, ValueError) as error:
                builder.bad(_reason(error), line)


def _reason(error: Exception) -> str:
    """Return the parser's message without the line number: it saw one line only."""
    text = str(error).removesuffix(" (line 1)")
    if "Quads must be followed" in text:
        return "expected a full stop after three terms; with named graphs this is --format nquads"
    return text.removeprefix("Parser error at line 1 ").removeprefix("at line 1 ")


def _statements(document: bytes, form: str, builder: GraphBuilder) -> list[bytes]:
    import pyoxigraph

    statements, named = [], 0
    for quad in pyoxigraph.parse(document, format=getattr(pyoxigraph.RdfFormat, form)):
        name_of_term(quad.object)  # refuses triples about triples
        named += not isinstance(quad.graph_name, pyoxigraph.DefaultGraph)
        statements.append(f"{quad.subject} {quad.predicate} {quad.object} .\n".encode())
    builder.quads += named
    return statements


def scan_statements(statements: Iterable[bytes], builder: GraphBuilder) -> None:
    """Add statements as pyoxigraph writes them: they are all plain for the compiled scanner."""
    from loginfer.kg.formats.scan import scan_ntriples
    from loginfer.kg.name_table import PADDING

    text = bytearray().join(statements)
    end = len(text)
    data = np.frombuffer(text + b"\n" * PADDING, dtype=np.uint8)

    def refuse(bad: npt.NDArray[np.int64]) -> None:
        line = data[bad[0, 3] : bad[0, 2]].tobytes().decode(errors="replace")
        raise ValueError(f"expected subject, predicate, object and a full stop, found {line!r}")

    builder.scan(scan_ntriples, data, 0, end, refuse, counted=False)


def _meaning(table: NameTable) -> tuple[Any, dict[int, str]]:
    """Return the names that the terms in a table mean; pyoxigraph parses the doubtful ones."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from loginfer.kg.formats.scan import ASK, BRACKETED, shown, term_kinds

    terms: Any = table.names
    kinds = np.empty(table.count, dtype=np.uint8)
    term_kinds(table.data, table.offsets, True, kinds)
    # `pa.array` would import pandas where that is installed.
    others = pa.Array.from_buffers(pa.uint8(), len(kinds), [None, pa.py_buffer(kinds != BRACKETED)]).cast(pa.bool_())
    names: Any = pc.if_else(others, terms, pc.binary_slice(terms, 1, -1))
    is_ours = np.from_dlpack(pc.starts_with(names, PREFIX).cast(pa.int8())) > 0
    ours = np.flatnonzero((kinds == BRACKETED) & is_ours).tolist()
    replacements = {i: decoded(table.name(i)[1:-1].decode()).encode() for i in ours}
    problems: dict[int, str] = {}
    doubtful = np.flatnonzero(kinds == ASK).tolist()
    for first in range(0, len(doubtful), ASK_AT_ONCE):
        ids = doubtful[first : first + ASK_AT_ONCE]
        texts = [table.name(i) for i in ids]
        for i, text, name in zip(ids, texts, names_of_texts(texts), strict=True):
            if isinstance(name, SyntaxError):
                problems[i] = f"`{shown(text)}` is no RDF term: {name}"
            replacements[i] = b"" if isinstance(name, SyntaxError) else name.encode()
    return _replaced(names, replacements), problems


def _replaced(texts: Any, replacements: dict[int, bytes]) -> Any:
    """Return an Arrow array with some texts replaced, by index."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not replacements:
        return texts
    mask = np.zeros(len(texts), dtype=bool)
    mask[list(replacements)] = True
    values = pa.array([replacements[i] for i in sorted(replacements)], pa.large_binary())
    return pc.replace_with_mask(texts, pa.array(mask), values)


def write(graph: KnowledgeGraph, stream: BinaryIO) -> None:
    """Write a graph as canonical N-Triples: statements sorted by their bytes."""
    columns = (_texts(graph.entities, "s"), _texts(graph.relations, "r"), _texts(graph.entities, "o"))
    # Every byte of a term is larger than the space behind it, so lines are in the order of their terms.
    ranked = np.stack([_ranks(texts)[graph.triples[:, k]] for k, texts in enumerate(columns)], axis=1)
    order = np.argsort(graph.keys.pack(ranked), kind="stable")
    write_lines(stream, graph.triples[order], columns, b" ", b" .\n")


def _ranks(texts: Any) -> npt.NDArray[np.int32]:
    """Return the rank of each text of an Arrow array in the order of their bytes."""
    import pyarrow.compute as pc

    ranks = np.empty(len(texts), dtype=np.int32)
    ranks[pc.array_sort_indices(texts).to_numpy()] = np.arange(len(texts), dtype=np.int32)
    return ranks


def _texts(vocabulary: Vocabulary, position: str) -> Any:
    """Return the N-Triples texts of all names in one position of a statement, as an Arrow array."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from loginfer.kg.formats.scan import ASK, BRACKETED, term_kinds
    from loginfer.kg.name_table import padded

    data = padded(vocabulary.data, len(vocabulary.data))
    kinds = np.empty(len(vocabulary), dtype=np.uint8)
    term_kinds(data, vocabulary.offsets.copy(), False, kinds)
    first = data[vocabulary.offsets[:-1]]
    if position != "o":
        kinds[first == ord('"')] = ASK
    if position == "r":
        kinds[first == ord("_")] = ASK
    # Names with our prefix are encoded: in a sorted vocabulary they are one range, up to the byte after the colon.
    kinds[vocabulary.position(PREFIX) : vocabulary.position(PREFIX[:-1] + ";")] = ASK
    less, greater, nothing = (pa.scalar(text, pa.large_binary()) for text in (b"<", b">", b""))
    names = vocabulary.to_arrow()
    bracketed = pc.binary_join_element_wise(less, names, greater, nothing)
    doubtful = np.flatnonzero(kinds == ASK).tolist()
    replacements: dict[int, bytes] = {}
    for start in range(0, len(doubtful), ASK_AT_ONCE):
        ids = doubtful[start : start + ASK_AT_ONCE]
        texts = texts_of_names([vocabulary[i] for i in ids], position)
        replacements.update((i, text.encode()) for i, text in zip(ids, texts, strict=True))
    return _replaced(pc.if_else(pa.array(kinds == BRACKETED), bracketed, names), replacements)


FORMAT = Format(
    name="ntriples",
    endings=(".nt",),
    description="RDF as N-Triples; written sorted, other names behind urn:loginfer:",
    builder=rdf_builder,
    read=read,
    write=write,
    looks_like=lambda head, line: line.strip().startswith(("<", "_:")) and line.strip().endswith("."),
    rank=2,
)
register_format(FORMAT)
