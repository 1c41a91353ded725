"""What simple shortcuts reach alone, with the cut that is best on valid."""

from loginfer.benchmark.learned_shortcut import shortcut_results
from loginfer.benchmark.shortcuts import Adjacent, OtherRelation, Popularity, SimpBLScorer, fit_cut


def single_accuracies(benchmark, method):
    """Return the accuracy on test of each shortcut."""
    positives, negatives = benchmark.positives, benchmark.negatives[method].splits
    scorers = {
        "subject-popularity": Popularity(benchmark.seen, 0),
        "object-popularity": Popularity(benchmark.seen, 2),
        "adjacent": Adjacent(benchmark.kg),
        "other-relation": OtherRelation(benchmark.kg),
        "simpbl": SimpBLScorer(benchmark.seen.triples, len(benchmark.graph.relations)),
    }
    accuracies = {"relation-name": shortcut_results(benchmark, method)["relation-name"].decisions.accuracy}
    for name, scorer in scorers.items():
        cut = fit_cut(scorer.score(positives.valid), scorer.score(negatives.valid))
        true, false = (cut.predict(scorer.score(triples)) for triples in (positives.test, negatives.test))
        accuracies[name] = (true.sum() + (~false).sum()) / (len(true) + len(false))
    return accuracies
