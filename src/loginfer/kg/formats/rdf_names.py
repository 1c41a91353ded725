"""Names of a graph as terms of RDF, and back, without loss.

| name in the graph                         | term in N-Triples            | where              |
|-------------------------------------------|------------------------------|--------------------|
| an absolute IRI, `http://x.org/a`         | `<http://x.org/a>`           | everywhere         |
| a blank node, `_:b`                       | `_:b`                        | subject and object |
| a literal, `"text"@en`, in canonical form | as it stands                 | object             |
| anything else, `/m/027rn`                 | `<urn:loginfer:/m/027rn>`    | everywhere         |

Behind `urn:loginfer:` stands the name's UTF-8 with percent-encoding. A name that itself begins so is
encoded too, hence what was written is read back as it was, whatever it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import quote, unquote_to_bytes

__all__ = ["PREFIX", "decoded", "name_of_term", "names_of_texts", "texts_of_names"]

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
            name_of_term(quad.object)
            for quad in pyoxigraph.parse(document, format=pyoxigraph.RdfFormat.N_TRIPLES)
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
