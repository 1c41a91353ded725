"""Score files: what is asked, what is answered, and every mistake that an answer can have."""

import gzip
import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.made_up_benchmarks import family

from loginfer.errors import InputError, OutputError
from loginfer.evaluation.predictions import labelled_triples
from loginfer.evaluation.score_files import export_queries, queries, read_scores

BENCHMARK = family()


def triples() -> list[tuple[str, str, str]]:
    """The triples that are asked about, found without the code under test."""
    asked = set()
    for split in ("valid", "test"):
        for part in labelled_triples(BENCHMARK, "pa", split):
            asked |= set(BENCHMARK.graph.names(part))
    return sorted(asked, key=lambda names: [name.encode() for name in names])


TRIPLES = triples()


def lines(scores) -> str:
    return "".join("\t".join((*names, str(score))) + "\n" for names, score in zip(TRIPLES, scores, strict=True))


def read(tmp_path, text: str, name: str = "scores.tsv"):
    (tmp_path / name).write_text(text)
    return read_scores(tmp_path / name, BENCHMARK, "pa")


def refused(tmp_path, text: str) -> str:
    with pytest.raises(InputError) as error:
        read(tmp_path, text)
    return str(error.value)


def by_name(predictions) -> dict[tuple[str, str, str], float]:
    found = {}
    for split in ("valid", "test"):
        scores = getattr(predictions, split)
        parts = labelled_triples(BENCHMARK, "pa", split)
        for part, values in zip(parts, (scores.positive, scores.negative), strict=True):
            found |= dict(zip(BENCHMARK.graph.names(part), values.tolist(), strict=True))
    return found


def test_queries_are_all_labelled_triples_once_in_the_order_of_their_names(tmp_path):
    assert export_queries(BENCHMARK, "pa", tmp_path / "queries.tsv") == len(TRIPLES)
    text = (tmp_path / "queries.tsv").read_text()
    assert text == "".join("\t".join(names) + "\n" for names in TRIPLES)
    export_queries(BENCHMARK, "pa", tmp_path / "queries.parquet")
    table = pq.read_table(tmp_path / "queries.parquet")
    assert table.column_names == ["subject", "relation", "object"]
    rows = [tuple(row.values()) for row in table.to_pylist()]
    assert rows == TRIPLES


def test_a_triple_that_is_positive_in_one_set_and_negative_in_another_is_asked_once():
    import dataclasses

    from loginfer.benchmark.benchmark import NegativeSet, Splits

    test = BENCHMARK.positives.test
    odd = dataclasses.replace(BENCHMARK, negatives={"pa": NegativeSet("pa", Splits(test[:0], test[:0], test))})
    assert len(queries(odd, "pa")) == len(test) + len(BENCHMARK.positives.valid)


def test_queries_are_written_to_files_that_can_hold_them(tmp_path):
    with pytest.raises(OutputError, match=r"\.tsv or \.parquet"):
        export_queries(BENCHMARK, "pa", tmp_path / "queries.json")
    export_queries(BENCHMARK, "pa", tmp_path / "queries.tsv")
    with pytest.raises(OutputError, match="exists already"):
        export_queries(BENCHMARK, "pa", tmp_path / "queries.tsv")


@settings(max_examples=25)
@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=len(TRIPLES), max_size=len(TRIPLES)),
    st.randoms(),
    st.sampled_from(["tsv", "header", "crlf", "blank", "gz", "parquet", "float32"]),
)
def test_scores_come_back_whatever_the_order_and_the_format(tmp_path_factory, scores, random, kind):
    place = tmp_path_factory.mktemp("scores")
    if kind == "float32":
        scores = [float(np.float32(min(max(score, -1e38), 1e38))) for score in scores]
    rows = list(zip(TRIPLES, scores, strict=True))
    random.shuffle(rows)
    if kind in ("parquet", "float32"):
        columns = [[names[k] for names, _ in rows] for k in range(3)]
        number = pa.float32() if kind == "float32" else pa.float64()
        table = pa.table(
            [*columns, pa.array([score for _, score in rows], number)],
            names=["Subject", "predicate", "object", "score"],
        )
        pq.write_table(table, place / "scores.parquet")
        found = read_scores(place / "scores.parquet", BENCHMARK, "pa")
    else:
        text = "".join("\t".join((*names, repr(score))) + "\n" for names, score in rows)
        if kind == "header":
            swapped = "".join("\t".join((repr(score), *names)) + "\n" for names, score in rows)
            text = "score\thead\trelation\ttail\n" + swapped
        elif kind == "crlf":
            text = text.replace("\n", "\r\n")
        elif kind == "blank":
            text = "\n" + text.replace("\n", "\n\n") + "\n"
        data = text.encode()
        name = "scores.tsv.gz" if kind == "gz" else "scores.tsv"
        (place / name).write_bytes(gzip.compress(data) if kind == "gz" else data)
        found = read_scores(place / name, BENCHMARK, "pa")
    assert by_name(found) == dict(rows)


def test_missing_triples_are_counted_and_named(tmp_path):
    text = "".join(lines(range(len(TRIPLES))).splitlines(keepends=True)[2:])
    told = refused(tmp_path, text)
    assert f"2 of {len(TRIPLES)} triples are missing" in told
    assert "\t".join(TRIPLES[0]) in told
    assert "--export-queries" in told


def test_extra_triples_and_unknown_names_are_told_apart(tmp_path):
    text = lines(range(len(TRIPLES))) + "ada\tlikes\tada\t1\nada\tlikes\tnobody\t1\nada\tloathes\tada\t1\n"
    told = refused(tmp_path, text)
    assert "1 triple is not asked for" in told
    assert f"line {len(TRIPLES) + 1}: ada\tlikes\tada\t1" in told
    assert "2 triples have a name that Family & co does not have" in told
    assert "object `nobody`" in told
    assert "relation `loathes`" in told


def test_a_triple_that_is_scored_twice_is_refused_even_with_the_same_score(tmp_path):
    first, second = lines(range(len(TRIPLES))).splitlines(keepends=True)[:2]
    told = refused(tmp_path, lines(range(len(TRIPLES))) + first)
    assert "1 line repeats a triple, 0 of them with another score" in told
    assert f"line {len(TRIPLES) + 1}: {first.strip()}, as in line 1" in told
    told = refused(tmp_path, lines(range(len(TRIPLES))) + first + second.replace("\t1\n", "\t7\n"))
    assert "2 lines repeat a triple, 1 of them with another score" in told


@pytest.mark.parametrize(
    ("score", "said"), [("NaN", "not finite"), ("inf", "not finite"), ("high", "no number"), ("", "no number")]
)
def test_scores_that_are_no_finite_numbers_are_shown_with_their_lines(tmp_path, score, said):
    text = lines([0.5, score, *range(2, len(TRIPLES))])
    told = refused(tmp_path, "\n" + text)
    assert f"1 score is {said}" in told
    assert f"line 3: {chr(9).join(TRIPLES[1])}\t{score}" in told


def test_a_line_with_other_columns_is_named(tmp_path):
    good = lines(range(len(TRIPLES))).splitlines(keepends=True)
    told = refused(tmp_path, good[0] + "\n\nada\tlikes\tBob\n" + "".join(good[1:]) + "a\tb\tc\t1\t2\n")
    assert "scores.tsv:4: 2 lines have 3 or 5 columns instead of 4" in told
    assert "line 4: ada\tlikes\tBob" in told


def test_a_return_without_a_line_feed_ends_a_line(tmp_path):
    good = lines(range(len(TRIPLES))).splitlines(keepends=True)
    told = refused(tmp_path, "".join(good) + "ada\tlikes\tB\rob\t1\n")
    assert f"scores.tsv:{len(good) + 1}: 2 lines have 2 or 3 columns instead of 4" in told


def test_only_the_first_examples_are_shown(tmp_path):
    told = refused(tmp_path, lines(["x"] * len(TRIPLES)))
    assert f"{len(TRIPLES)} scores are no number" in told
    assert f"and {len(TRIPLES) - 3} more" in told


@pytest.mark.parametrize("text", ["", "\n\n", "subject\trelation\tobject\tscore\n"])
def test_a_file_without_scores_is_called_so(tmp_path, text):
    told = refused(tmp_path, text)
    assert "is empty" in told or "holds no scores" in told
    assert "subject, relation, object, score" in told


def test_a_missing_file_a_folder_and_binary_rubbish_are_clear_errors(tmp_path):
    with pytest.raises(InputError, match="no file or folder"):
        read_scores(tmp_path / "none.tsv", BENCHMARK, "pa")
    with pytest.raises(InputError, match="is a folder"):
        read_scores(tmp_path, BENCHMARK, "pa")
    for name, content in (("a.tsv", b"\x00\x01\x02"), ("b.tsv", b"a\xff\tb\tc\t1\n"), ("c.parquet", b"PAR1")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=name):
            read_scores(tmp_path / name, BENCHMARK, "pa")


def parquet(tmp_path, **columns):
    stream = io.BytesIO()
    pq.write_table(pa.table(columns), stream)
    (tmp_path / "scores.parquet").write_bytes(stream.getvalue())
    with pytest.raises(InputError) as error:
        read_scores(tmp_path / "scores.parquet", BENCHMARK, "pa")
    return str(error.value)


def test_what_is_wrong_with_a_parquet_file_is_told_by_column_and_row(tmp_path):
    subjects, relations, objects = ([names[k] for names in TRIPLES] for k in range(3))
    whole = {"subject": subjects, "relation": relations, "object": objects}
    scores = [0.5] * len(TRIPLES)
    assert "no column `score`, only `subject`" in parquet(tmp_path, **whole)
    assert "column `subject` holds int64" in parquet(
        tmp_path, **{**whole, "subject": scores and [1] * len(scores)}, score=scores
    )
    missing = [0.5, None, *scores[2:]]
    assert "column `score` has 1 empty cell (null), the first in row 2" in parquet(tmp_path, **whole, score=missing)
    assert "row 2: " in parquet(tmp_path, **whole, score=[0.5, float("nan"), *scores[2:]])
    assert "no number" in parquet(tmp_path, **whole, score=[[1.0]] * len(scores))


def test_a_benchmark_without_negatives_is_scored_too(tmp_path):
    alone = family(methods=())
    count = export_queries(alone, None, tmp_path / "queries.tsv")
    assert count == len(alone.positives.valid) + len(alone.positives.test)
    text = (tmp_path / "queries.tsv").read_text().replace("\n", "\t1\n")
    (tmp_path / "scores.tsv").write_text(text)
    found = read_scores(tmp_path / "scores.tsv", alone, None)
    assert found.method is None
    assert len(found.test.negative) == 0
    assert found.test.positive.tolist() == [1.0] * len(alone.positives.test)


def test_numbers_that_only_python_would_read_are_refused(tmp_path):
    assert "6 scores are no number" in refused(tmp_path, lines(["1_0"] * 6))
    assert "1 score is no number" in refused(tmp_path, lines(["٣", *"12345"]))


def test_large_whole_numbers_are_scores_too(tmp_path):
    columns = dict(zip(("subject", "relation", "object"), zip(*TRIPLES, strict=True), strict=True))
    large = [2**63 + 4096 * i for i in range(len(TRIPLES))]
    path = tmp_path / "scores.parquet"
    pq.write_table(pa.table({**columns, "score": pa.array(large, pa.uint64())}), path)
    assert sorted(by_name(read_scores(path, BENCHMARK, "pa")).values()) == [float(n) for n in large]
