"""Names as RDF languages write them: IRIs in angle brackets, prefixed names, literals, numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping

from loginfer.errors import InputError
from loginfer.logic.dialects.scanner import Scanner, unescape
from loginfer.logic.terms import WORD, is_literal

__all__ = ["VARIABLE", "read_name", "read_variable", "write_iri", "write_name"]

VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_XSD = "http://www.w3.org/2001/XMLSchema#"
# What RDFox and most tools know without being told.
_KNOWN = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "xsd": _XSD,
}
_QUESTION = re.compile(r"\?([A-Za-z_][A-Za-z0-9_]*)")
_IRI = re.compile(r"<((?:[^<>\\\n\r]|\\[^\n\r])*)>")
_STRING = re.compile(r'"(?:[^"\\\n\r]|\\[^\n\r])*"')
_LANGUAGE = re.compile(r"@[A-Za-z]+(?:-[A-Za-z0-9]+)*")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?(?![^\s,()\[\].])")
# Characters that an IRI cannot hold; they are written as \uXXXX.
_FORBIDDEN = re.compile(r'[\s\x00-\x20<>"{}|^`\\\x7f-\xa0\ud800-\udfff]')


def read_variable(scanner: Scanner) -> str | None:
    """Step over `?name` and return the name."""
    match = scanner.match(_QUESTION)
    if match:
        return match.group(1)
    if scanner.at("?"):
        scanner.fail("a variable like `?x`")
    return None


def read_name(scanner: Scanner, prefixes: Mapping[str, str], *, predicate: bool = False) -> str | None:
    """Step over a name of any kind and return it as graphs have it.

    Parameters
    ----------
    scanner
        Where to read.
    prefixes
        What `p:` stands for; an unknown prefix is part of the name.
    predicate
        Whether numbers and truth values are plain names here, because no literal can stand here.
    """
    start = scanner.position
    iri = scanner.match(_IRI)
    if iri:
        try:
            return unescape(iri.group(1))
        except InputError as error:
            scanner.fail("an IRI", at=start, hint=error.message)
    if scanner.at("<"):
        scanner.fail("an IRI in angle brackets")
    if scanner.at('"'):
        return _literal(scanner, prefixes)
    number = None if predicate else scanner.match(_NUMBER)
    if number:
        kind = "double" if number.group(2) else "decimal" if number.group(1) else "integer"
        return f'"{number.group()}"^^<{_XSD}{kind}>'
    match = scanner.match(WORD)
    if not match:
        return None
    word = match.group().rstrip(".")
    scanner.position -= len(match.group()) - len(word)
    if not word:
        return None
    if word in ("true", "false") and not predicate:
        return f'"{word}"^^<{_XSD}boolean>'
    return _expand(word, prefixes)


def _expand(word: str, prefixes: Mapping[str, str]) -> str:
    prefix, colon, local = word.partition(":")
    if colon and not local.startswith("//"):
        iri = prefixes.get(prefix, _KNOWN.get(prefix))
        if iri is not None:
            return iri + local
    return word


def _literal(scanner: Scanner, prefixes: Mapping[str, str]) -> str:
    string = scanner.match(_STRING)
    if not string:
        scanner.fail('a literal like "text", "text"@en or "1"^^<datatype>')
    text = string.group()
    follows = scanner.text[scanner.position : scanner.position + 2]
    if follows.startswith("@"):
        language = scanner.match(_LANGUAGE)
        if not language:
            scanner.fail("a language like `@en`")
        return text + language.group()
    if follows == "^^":
        scanner.position += 2
        iri = _IRI.match(scanner.text, scanner.position)
        if iri:
            scanner.position = iri.end()
            return f"{text}^^{iri.group()}"
        word = WORD.match(scanner.text, scanner.position)
        if not word:
            scanner.fail("a datatype")
        scanner.position = word.end()
        return f"{text}^^<{_expand(word.group(), prefixes)}>"
    return text


def write_iri(name: str) -> str:
    r"""Write a name as an IRI in angle brackets; what an IRI cannot hold becomes a `\uXXXX` escape."""

    def escape(match: re.Match[str]) -> str:
        return f"\\u{ord(match.group()):04X}"

    return "<" + _FORBIDDEN.sub(escape, name) + ">"


def write_name(name: str) -> str:
    """Write a name as a literal if it is one, else as an IRI."""
    return name if is_literal(name) else write_iri(name)
