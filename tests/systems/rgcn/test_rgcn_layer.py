"""R-GCN's layer against PyTorch Geometric's, and against the formula written out."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from loginfer.systems.rgcn.model import MessageGraph, block_weights, propagate, relation_weights, rgcn_layer  # noqa: E402

CPU = torch.device("cpu")
RELATIONS = 3


def random_graph(nodes=9, count=40, seed=0):
    random = np.random.default_rng(seed)
    ends = random.integers(0, nodes, (2, count))
    triples = np.stack([ends[0], random.integers(0, RELATIONS, count), ends[1]], 1)
    return np.unique(triples, axis=0).astype(np.int32)


def random_parameters(nodes=9, d=4, e=5, matrices=2 * RELATIONS, seed=1):
    random = torch.Generator().manual_seed(seed)

    def draw(*size):
        return torch.randn(size, generator=random, dtype=torch.float64).requires_grad_()

    return draw(nodes, d), draw(matrices, d, e), draw(d, e), draw(e)


def by_the_formula(nodes, weight, triples):
    """Σ_r A_r X W_r with dense matrices A_r."""
    total = torch.zeros(len(nodes), weight.shape[2], dtype=nodes.dtype)
    for relation in range(RELATIONS):
        pairs = triples[triples[:, 1] == relation][:, [0, 2]]
        for kind, source, target in ((relation, 0, 1), (relation + RELATIONS, 1, 0)):
            adjacent = torch.zeros(len(nodes), len(nodes), dtype=nodes.dtype)
            adjacent[pairs[:, target], pairs[:, source]] = 1
            means = adjacent / adjacent.sum(1, keepdim=True).clamp(min=1)
            total = total + means @ nodes @ weight[kind]
    return total


def gradients(value, parameters):
    random = torch.Generator().manual_seed(7)
    weights = torch.randn(value.shape, generator=random, dtype=value.dtype)
    return torch.autograd.grad((value * weights).sum(), parameters)


def assert_same(mine, theirs, parameters):
    torch.testing.assert_close(mine, theirs)
    for ours, other in zip(gradients(mine, parameters), gradients(theirs, parameters), strict=True):
        torch.testing.assert_close(ours, other)


def both_directions(triples):
    inverse = triples[:, [2, 1, 0]] + np.array([0, RELATIONS, 0])
    edges = torch.from_numpy(np.vstack([triples, inverse]).astype(np.int64))
    return edges[:, [0, 2]].t().contiguous(), edges[:, 1]


@pytest.mark.parametrize("bases", [0, 2])
def test_the_layer_equals_that_of_pytorch_geometric(bases):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whatever its modules say when they are imported
        from torch_geometric.nn import RGCNConv
    triples = random_graph()
    nodes, weight, root, bias = random_parameters(matrices=bases or 2 * RELATIONS)
    theirs = RGCNConv(4, 5, 2 * RELATIONS, num_bases=bases or None, aggr="mean").double()
    shares = torch.randn(2 * RELATIONS, 2, generator=torch.Generator().manual_seed(3)).double()
    with torch.no_grad():
        theirs.weight.copy_(weight)
        theirs.root.copy_(root)
        theirs.bias.copy_(bias)
        if bases:
            theirs.comp.copy_(shares)
    shares.requires_grad_()
    edges, kinds = both_directions(triples)
    expected = theirs(nodes, edges, kinds)

    graph = MessageGraph(triples, 9, RELATIONS, CPU)
    matrices = relation_weights(weight, shares) if bases else weight
    found = rgcn_layer(nodes, matrices, root, bias, graph, graph.weights(dtype=torch.float64))

    torch.testing.assert_close(found, expected)
    mine = gradients(found, [nodes, weight, root, bias] + [shares] * bool(bases))
    names = ["weight", "root", "bias"] + ["comp"] * bool(bases)
    other = gradients(expected, [nodes, *(getattr(theirs, name) for name in names)])
    for one, two in zip(mine, other, strict=True):
        torch.testing.assert_close(one, two)


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(0, 60), st.integers(1, 12))
def test_messages_are_means_over_neighbours_times_the_relations_matrix(seed, count, size):
    triples = random_graph(size, count, seed)
    nodes, weight, _, _ = random_parameters(size, seed=seed)
    graph = MessageGraph(triples, size, RELATIONS, CPU)
    found = propagate(nodes, weight, graph, graph.weights(dtype=torch.float64))
    assert_same(found, by_the_formula(nodes, weight, triples), [nodes, weight])


@pytest.mark.parametrize("count", [1, 2])
def test_both_orders_of_work_occur_and_agree_with_the_formula(count):
    # Relation 0 has many sources and few targets, relation 1 the other way round: one is aggregated first.
    star = [(i, 0, 20 + i % count) for i in range(10)] + [(20 + i % count, 1, i) for i in range(10)]
    triples = np.array(sorted(star), dtype=np.int32)
    graph = MessageGraph(triples, 23, RELATIONS, CPU)
    assert graph.sizes == [count, count, 0, count, count, 0]
    nodes, weight, _, _ = random_parameters(23)
    found = propagate(nodes, weight, graph, graph.weights(dtype=torch.float64))
    assert_same(found, by_the_formula(nodes, weight, triples), [nodes, weight])


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 40))
def test_triples_left_out_carry_no_message_in_either_direction(seed, count):
    triples = random_graph(8, count, seed)
    left_out = np.random.default_rng(seed).random(len(triples)) < 0.3
    nodes, weight, _, _ = random_parameters(8, seed=seed)
    graph = MessageGraph(triples, 8, RELATIONS, CPU)
    chosen = torch.from_numpy(np.flatnonzero(left_out))
    found = propagate(nodes, weight, graph, graph.weights(chosen, dtype=torch.float64))
    assert_same(found, by_the_formula(nodes, weight, triples[~left_out]), [nodes, weight])


@pytest.mark.parametrize("size", [1, 2, 4])
def test_a_block_diagonal_weight_is_the_full_matrix_with_these_blocks(size):
    triples = random_graph()
    nodes, _, _, _ = random_parameters()
    blocks = torch.randn(2 * RELATIONS, 4 // size, size, size, dtype=torch.float64).requires_grad_()
    full = torch.stack([torch.block_diag(*of_relation) for of_relation in blocks])
    graph = MessageGraph(triples, 9, RELATIONS, CPU)
    found = propagate(nodes, block_weights(blocks), graph, graph.weights(dtype=torch.float64))
    assert_same(found, by_the_formula(nodes, full, triples), [nodes, blocks])
