"""Tables of plans that divide words, on real hashes: a word is where the plan put it.

Small numbers as words would not do: only hashes of 62 bits show that all of their bits are kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nearcast.index.posting import UNIVERSAL
from nearcast.kernels.hashing import mix64_array
from nearcast.routing import Sample
from nearcast.routing.arrays import unpack
from nearcast.routing.dkm.dkm_sks import DkmSks
from nearcast.routing.dkm.kop import Kop
from nearcast.routing.dkm.plan import PlannedRouter
from nearcast.routing.dkm.sop import Sop
from nearcast.routing.dkm.survey import Survey
from nearcast.routing.dkm.vocabulary import Vocabulary, numbers_of, vocabulary_of
from nearcast.routing.grid import table as gt
from nearcast.routing.grid.router import GridRouter
from nearcast.routing.grid.survey import RegionSurvey
from nearcast.routing.ps2stream.baseline import TextRouter
from nearcast.routing.ps2stream.grid_t import grid_t
from nearcast.routing.ps2stream.hybrid import Ps2Stream, thresholds
from nearcast.routing.ps2stream.nodes import root
from nearcast.routing.ps2stream.partition_workload import partition_workload
from nearcast.routing.ps2stream.text_frequency import TextFrequency
from nearcast.routing.ps2stream.text_hypergraph import TextHypergraph
from nearcast.routing.ps2stream.text_metric import TextMetric
from nearcast.routing.ps2stream.workload import lay_out
from nearcast.routing.tornado.router import Tornado
from nearcast.routing.tornado.tornado_text import TornadoText
from nearcast.routing.tornado.tornado_uniform import TornadoUniform
from nearcast.wire.words import hash_words

SHARDS = 4
HASHES = hash_words([f"word{i}" for i in range(400)])
KNOWN = {int(word) for word in HASHES} | {int(UNIVERSAL)}


def city(seed: int = 5, n: int = 1500) -> tuple[Sample, RegionSurvey]:
    """Objects with a few words of a power law, and a query for each with one or two words."""
    rng = np.random.default_rng(seed)
    held = [np.unique(HASHES[row]) for row in rng.zipf(1.4, (n, 4)) % 400]
    queried = [np.unique(HASHES[row]) for row in rng.integers(0, 400, (n, 2))]
    low = rng.random((n, 2))
    x, y = rng.random((2, n))
    sample = Sample(x, y, *ragged(held))
    boxes = np.hstack([low, low + 0.01])
    ids = hash_words([f"s{i}" for i in range(n)])
    one = np.arange(n + 1)
    return sample, RegionSurvey(ids, one, boxes, *ragged(queried), rng.random(n) < 0.5)


def ragged(rows: list[Any]) -> tuple[Any, Any]:
    return np.append(0, np.cumsum([len(row) for row in rows])), np.concatenate(rows)


def check_words(table: gt.GridTable) -> None:
    """The words of all maps are hashes of real words, each once a map, in order."""
    assert table.map_words.dtype == np.uint64
    assert {int(word) for word in table.map_words} <= KNOWN
    for first, stop in zip(table.map_offsets[:-1], table.map_offsets[1:]):
        words = table.map_words[first:stop]
        assert (words[1:] > words[:-1]).all()


def check_owner(table: gt.GridTable, cell: int, word: np.uint64, worker: int) -> None:
    assert gt.owner_in(table, cell, word) == worker
    if cell < 0:
        n = -1 - cell
        at = gt.find_word(table.map_words, table.map_offsets[n], table.map_offsets[n + 1], word)
        assert table.map_words[at] == word
        assert table.map_shards[at] == worker


@pytest.mark.parametrize("planner", [TextFrequency, TextHypergraph, TextMetric])
def test_a_divided_lexicon(planner: type[TextRouter]) -> None:
    sample, survey = city()
    router = planner(SHARDS)
    workload = lay_out(sample, survey, router.given({}))
    part = router.deal(workload, root(workload))
    assert len({int(p) for p in part if p >= 0}) == SHARDS
    made = router.partition(workload, router.given({}))
    planned = gt.unpack(router.plan(sample, survey, {}).data)
    for table in (made, planned, gt.unpack(gt.pack(made))):
        check_words(table)
        assert table.cells.tolist() == [[-1]]
        assert np.array_equal(table.map_words, workload.vocabulary[part >= 0])
        for word, worker in zip(workload.vocabulary, part):
            if worker >= 0:
                check_owner(table, -1, word, worker)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_text_nodes_of_a_kd_tree(seed: int) -> None:
    sample, survey = city(seed)
    # With H2, and as dear as objects are, regions are divided by words.
    reported = {"discard": 1.0, "insertions": 0.0, "pairs": 0.0, "side": 16.0}
    parameters = Ps2Stream(SHARDS).given(reported)
    workload = lay_out(sample, survey, parameters)
    made = partition_workload(workload, SHARDS, thresholds(parameters, SHARDS))
    by_text = [i for i, node in enumerate(made.nodes) if node.terms is not None]
    assert len({made.workers[i] for i in by_text}) > 1
    drawn = grid_t(workload, made.nodes, made.workers)
    planned = gt.unpack(Ps2Stream(SHARDS).plan(sample, survey, reported).data)
    for table in (drawn, gt.unpack(gt.pack(drawn)), planned):
        check_words(table)
        assert len(table.map_words)
        step = workload.side // len(table.cells)
        for i in by_text:
            node = made.nodes[i]
            left, low, _, _ = node.region
            cell = int(table.cells[low // step, left // step])
            for term in node.terms.tolist():  # type: ignore[union-attr]
                check_owner(table, cell, workload.vocabulary[term], made.workers[i])


@pytest.mark.parametrize("router", [Tornado, TornadoText, TornadoUniform, TextFrequency, Ps2Stream])
def test_the_words_that_say_which_is_rarest(router: type[GridRouter]) -> None:
    """Every word of the sample is known, with the number of objects that hold it."""
    sample, survey = city()
    table = gt.unpack(router(SHARDS).plan(sample, survey, {}).data)
    words, counts = np.unique(sample.words, return_counts=True)
    counted = [gt.count_of(table, word) for word in words]
    assert counted == counts.tolist()


def test_words_dealt_by_hash() -> None:
    sample, survey = city()
    table = gt.unpack(TornadoText(SHARDS).plan(sample, survey, {}).data)
    dealt = mix64_array(HASHES) % np.uint64(SHARDS)
    for word, worker in zip(HASHES, dealt.tolist()):
        assert gt.owner_in(table, -1, word) == worker


@pytest.mark.parametrize("router", [Kop, Sop, DkmSks])
def test_the_vocabulary_of_a_plan(router: type[PlannedRouter]) -> None:
    """What costs of later subscriptions are made from knows every word with its frequency."""
    sample, ranges = city()
    x, y = ranges.boxes[:, 0].copy(), ranges.boxes[:, 1].copy()
    survey = Survey(ranges.id_hash, x, y, ranges.boxes, ranges.word_offsets, ranges.words)
    data, _, workers, _ = router(SHARDS).plan(sample, survey, {})
    assert set(workers.tolist()) == set(range(SHARDS))
    kept = unpack(data)
    vocabulary = Vocabulary(*(kept[name] for name in Vocabulary._fields))
    words, counts = np.unique(sample.words, return_counts=True)
    assert vocabulary.words.dtype == np.uint64
    at = numbers_of(vocabulary, words)
    assert np.array_equal(vocabulary.words[at], words)
    assert np.array_equal(vocabulary.frequency[at], counts)
    assert (numbers_of(vocabulary, words ^ np.uint64(4)) == -1).all()  # one low bit apart


def test_a_vocabulary_of_floats_is_refused() -> None:
    sample, _ = city(n=10)
    with pytest.raises(TypeError, match="must be uint64"):
        vocabulary_of(sample._replace(words=sample.words.astype(float)))


@pytest.mark.parametrize("field", ["map_words", "words"])
@pytest.mark.parametrize("wrong", [np.float64, np.int64])
def test_words_that_lost_bits_are_refused(field: str, wrong: type) -> None:
    sample, survey = city(n=100)
    table = gt.unpack(TextFrequency(SHARDS).plan(sample, survey, {}).data)
    spoilt = table._replace(**{field: getattr(table, field).astype(wrong)})
    with pytest.raises(TypeError, match=f"{field} of a table must be uint64"):
        gt.sealed(spoilt)
    with pytest.raises(TypeError, match="must be uint64"):
        gt.pack(spoilt)


@pytest.mark.parametrize("field", ["cells", "map_shards", "workers", "counts", "map_offsets"])
def test_fractions_are_refused_for_whole_numbers(field: str) -> None:
    sample, survey = city(n=100)
    table = gt.unpack(TextFrequency(SHARDS).plan(sample, survey, {}).data)
    with pytest.raises(TypeError, match=f"{field} of a table must be int"):
        gt.sealed(table._replace(**{field: getattr(table, field).astype(float)}))
