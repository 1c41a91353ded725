"""N-Triples.

Names of a graph as terms of RDF, and back, without loss.

| name in the graph                         | term in N-Triples            | where              |
|-------------------------------------------|------------------------------|--------------------|
| an absolute IRI, `http://x.org/a`         | `<http://x.org/a>`           | everywhere         |
| a blank node, `_:b`                       | `_:b`                        | subject and object |
| a literal, `"text"@en`, in canonical form | as it stands                 | object             |
| anything else, `/m/027rn`                 | `<urn:loginfer:/m/027rn>`    | everywhere         |

Behind `urn:loginfer:` stands the name's UTF-8 with percent-encoding. A name that itself begins so is
encoded too, hence what was written is read back as it was, whatever it is.

N-Triples: RDF, one statement a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import quote, unquote_to_bytes

import numpy as np
import numpy.typing as npt

from loginfer.kg.formats.base import Format, ReadOptions, Source
from loginfer.kg.formats.tsv import text_chunks, write_lines
from loginfer.kg.graph import TripleKeys
from loginfer.progress import Progress

if TYPE_CHECKING:
    from loginfer.kg.formats.scan import GraphBuilder, NameSpans, NameTable
    from loginfer.kg.graph import KnowledgeGraph
    from loginfer.kg.vocabulary import Vocabulary


PREFIX = "urn:loginfer:"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def texts_of_names(names: Sequence[str], place: str = "o") -> list[str]:
    """Return the N-Triples texts of names as subjects (`s`), relations (`r`) or objects (`o`)."""
    texts = [_candidate(name, place) for name in names]
    asked = [i for i, text in enumerate(texts) if text is not None]
    answers = names_of_texts([(texts[i] or "").encode() for i in asked])
    kept = {i: texts[i] for i, answer in zip(asked, answers, strict=True) if answer == names[i]}
    return [kept.get(i) or f"<{PREFIX}{quote(name, safe='/:@')}>" for i, name in enumerate(names)]


def _candidate(name: str, place: str) -> str | None:
    """Return the text that means this name, if it is a term at all."""
    if "\n" in name or "\r" in name or name.startswith(PREFIX):
        return None
    if name.startswith("_:"):
        return None if place == "r" else name
    if name.startswith('"'):
        return name if place == "o" else None
    return f"<{name}>" if _SCHEME.match(name) else None


def names_of_texts(texts: Sequence[bytes]) -> list[str | SyntaxError]:
    """Return the names that terms in N-Triples mean, or what the parser says against them.

    The texts are without line ends.
    """
    import pyoxigraph

    if not texts:
        return []
    document = b"".join(b"<s:> <p:> %s .\n" % text for text in texts)
    try:
        found = [
            name_of_term(quad.object) for quad in pyoxigraph.parse(document, format=pyoxigraph.RdfFormat.N_TRIPLES)
        ]
        if len(found) == len(texts):
            return list(found)
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
        # Columns would be those of the line made here: what remains is what is wrong.
        reason = str(error).split(": ", 1)[-1].removesuffix(" (line 1)")
        return SyntaxError(reason)
    return SyntaxError("this is not one term")


def name_of_term(term: object) -> str:
    """Return the name in the graph of a term that pyoxigraph read.

    Raises
    ------
    ValueError
        For a triple in the place of a term (RDF-star).
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


def read(sources: Sequence[Source], builder: GraphBuilder, options: ReadOptions, progress: Progress | None) -> None:
    """Read N-Triples: plain lines by the compiled scanner, all others by pyoxigraph."""
    from loginfer.kg.formats.scan import scan_ntriples

    nothing = np.zeros(0, dtype=np.int64)
    for source in sources:
        builder.begin(source.name)
        for data, begin, end in text_chunks(source, progress):
            others: list[tuple[int, bytes]] = []

            def keep(
                bad: npt.NDArray[np.int64], data: npt.NDArray[np.uint8] = data, others: list[tuple[int, bytes]] = others
            ) -> None:
                others.extend((line, data[place:end].tobytes()) for line, _, end, place in bad.tolist())

            builder.scan(scan_ntriples, data, begin, end, nothing, keep)
            for start in range(0, len(others), ASK_AT_ONCE):
                _read_others(others[start : start + ASK_AT_ONCE], builder)


def _read_others(lines: Sequence[tuple[int, bytes]], builder: GraphBuilder) -> None:
    """Read lines of any shape with pyoxigraph, all at once if they are fine, else one by one."""
    try:
        scan_statements(_statements(b"\n".join(text for _, text in lines)), builder)
    except (SyntaxError, ValueError):
        for line, text in lines:
            try:
                scan_statements(_statements(text), builder)
            except (SyntaxError, ValueError) as error:
                builder.bad(_reason(error), line)


def _reason(error: Exception) -> str:
    """Say what the parser said, without the line: it saw one line only."""
    text = str(error).removesuffix(" (line 1)")
    if "Quads must be followed" in text:
        return "expected a full stop after three terms; named graphs (N-Quads) are not supported"
    return text.removeprefix("Parser error at line 1 ").removeprefix("at line 1 ")


def _statements(document: bytes) -> list[bytes]:
    import pyoxigraph

    found = []
    for quad in pyoxigraph.parse(document, format=pyoxigraph.RdfFormat.N_TRIPLES):
        name_of_term(quad.object)  # refuses triples about triples
        found.append(f"{quad.subject} {quad.predicate} {quad.object} .\n".encode())
    return found


def scan_statements(statements: Iterable[bytes], builder: GraphBuilder) -> None:
    """Add statements as pyoxigraph writes them: they are all plain for the compiled scanner."""
    from loginfer.kg.formats.scan import PADDING, scan_ntriples

    text = bytearray().join(statements)
    end = len(text)
    data = np.frombuffer(text + b"\n" * PADDING, dtype=np.uint8)

    def refuse(bad: npt.NDArray[np.int64]) -> None:
        line = data[bad[0, 3] : bad[0, 2]].tobytes().decode(errors="replace")
        raise ValueError(f"expected subject, predicate, object and a full stop, found {line!r}")

    builder.scan(scan_ntriples, data, 0, end, np.zeros(0, dtype=np.int64), refuse, counted=False)


def _meaning(table: NameTable) -> NameSpans:
    """Say which names the terms in a table mean; the doubtful ones are put to pyoxigraph."""
    from loginfer.kg.formats.scan import ASK, BRACKETED, PADDING, NameSpans, joined, plain_terms, shown

    starts, ends = table.starts, table.ends
    kinds = np.empty(table.count, dtype=np.uint8)
    plain_terms(table.data, starts, ends, kinds)
    ours = np.flatnonzero((kinds == BRACKETED) & _starts_with(table, f"<{PREFIX}".encode()))
    asked = np.flatnonzero(kinds == ASK)
    starts[kinds == BRACKETED] += 1
    ends[kinds == BRACKETED] -= 1
    if not len(ours) and not len(asked):
        return NameSpans(table.data, starts, ends)
    names = [decoded(table.name(i)[1:-1].decode()).encode() for i in ours.tolist()]
    problems: dict[int, str] = {}
    for first in range(0, len(asked), ASK_AT_ONCE):
        ids = asked[first : first + ASK_AT_ONCE].tolist()
        texts = [table.name(i) for i in ids]
        for i, text, name in zip(ids, texts, names_of_texts(texts), strict=True):
            if isinstance(name, SyntaxError):
                problems[i] = f"`{shown(text)}` is no RDF term: {name}"
                names.append(b"")
            else:
                names.append(name.encode())
    extra, offsets = joined(names)
    replaced = np.concatenate([ours, asked])
    starts[replaced] = offsets[:-1] + table.used
    ends[replaced] = offsets[1:] + table.used
    data = np.zeros(table.used + len(extra) + PADDING, dtype=np.uint8)
    data[: table.used] = table.data[: table.used]
    data[table.used : table.used + len(extra)] = extra
    return NameSpans(data, starts, ends, problems)


def _starts_with(table: NameTable, prefix: bytes) -> npt.NDArray[np.bool_]:
    starts = table.offsets[: table.count]
    same = np.diff(table.offsets[: table.count + 1]) >= len(prefix)
    for k, byte in enumerate(prefix):
        if not same.any():
            break
        same[same] = table.data[starts[same] + k] == byte
    return np.asarray(same)


def write(graph: KnowledgeGraph, stream: BinaryIO) -> None:
    """Write a graph as canonical N-Triples: statements sorted by their bytes."""
    columns = (_texts(graph.entities, "s"), _texts(graph.relations, "r"), _texts(graph.entities, "o"))
    # Every byte of a term is larger than the space behind it, so lines are in the order of their terms.
    ranks = [_ranks(*column) for column in columns]
    sizes = TripleKeys(len(graph.entities), len(graph.relations))
    ranked = np.stack([rank[graph.triples[:, k]] for k, rank in enumerate(ranks)], axis=1)
    order = np.argsort(sizes.pack(ranked), kind="stable")
    write_lines(stream, graph.triples[order], columns, b" ", b" .\n")


def _texts(vocabulary: Vocabulary, place: str) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return the N-Triples texts of all names in one place of a statement."""
    from loginfer.kg.formats.scan import ASK, BRACKETED, PADDING, padded, wrap_names
    from loginfer.kg.formats.scan import ntriples_plain_names as plain_names

    data = padded(vocabulary.data, len(vocabulary.data))
    starts, ends = vocabulary.offsets[:-1].copy(), vocabulary.offsets[1:].copy()
    kinds = np.empty(len(vocabulary), dtype=np.uint8)
    plain_names(data, starts, ends, kinds)
    first = data[starts] if len(starts) else np.zeros(0, dtype=np.uint8)
    if place != "o":
        kinds[first == ord('"')] = ASK
    if place == "r":
        kinds[first == ord("_")] = ASK
    asked = np.flatnonzero((kinds == ASK) | (first == ord("u")) & _begins_with_prefix(vocabulary))
    kinds[asked] = ASK
    texts = []
    for start in range(0, len(asked), ASK_AT_ONCE):
        names = [vocabulary[i] for i in asked[start : start + ASK_AT_ONCE].tolist()]
        texts += [text.encode() for text in texts_of_names(names, place)]
    extra = b"".join(texts)
    whole = np.zeros(len(vocabulary.data) + len(extra) + PADDING, dtype=np.uint8)
    whole[: len(vocabulary.data)] = vocabulary.data
    whole[len(vocabulary.data) : len(vocabulary.data) + len(extra)] = np.frombuffer(extra, dtype=np.uint8)
    lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    ends[asked] = len(vocabulary.data) + np.cumsum(lengths)
    starts[asked] = ends[asked] - lengths
    offsets = np.zeros(len(vocabulary) + 1, dtype=np.int64)
    np.cumsum(ends - starts + 2 * (kinds == BRACKETED), out=offsets[1:])
    out = np.zeros(int(offsets[-1]) + PADDING, dtype=np.uint8)
    wrap_names(whole, starts, ends, (kinds == BRACKETED).astype(np.uint8), out)
    return out, offsets


def _begins_with_prefix(vocabulary: Vocabulary) -> npt.NDArray[np.bool_]:
    """Say which names begin with `urn:loginfer:`: in a sorted vocabulary, one stretch."""
    low = vocabulary.position(PREFIX)
    high = vocabulary.position(PREFIX[:-1] + ";")  # the byte after the colon
    same = np.zeros(len(vocabulary), dtype=bool)
    same[low:high] = True
    return same


def _ranks(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    from loginfer.kg.formats.scan import name_order

    order = name_order(data, offsets[:-1].copy(), offsets[1:].copy())
    ranks = np.empty(len(order), dtype=np.int32)
    ranks[order] = np.arange(len(order), dtype=np.int32)
    return ranks


NTRIPLES = Format(
    name="ntriples",
    endings=(".nt",),
    description="RDF as N-Triples; written sorted, other names behind urn:loginfer:",
    builder=rdf_builder,
    read=read,
    write=write,
)
