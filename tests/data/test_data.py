"""Data sets, samplers, collating and loading; the order of samples is PyTorch's for the same seed."""

from collections import OrderedDict, namedtuple
from types import MappingProxyType

import numpy as np
import pytest

import tensorcore as tc
from tensorcore.utils import data

Pair = namedtuple("Pair", "x y")


def numbers(count):
    return data.TensorDataset(tc.arange(count), tc.arange(count) * 10)


class Words(data.Dataset):
    """Samples of everything that can be collated."""

    def __getitem__(self, index):
        return {
            "word": f"w{index}",
            "pair": Pair(index, index / 2),
            "list": [tc.tensor([index])],
            "array": np.ones(2) * index,
        }

    def __len__(self):
        return 3


class Stream(data.IterableDataset):
    def __iter__(self):
        return iter(range(5))

    def __len__(self):
        return 5


# Literal behaviour


def test_batches_come_in_order():
    """Without shuffling the batches follow the data set, the last one smaller."""
    batches = [x.tolist() for x, _ in data.DataLoader(numbers(5), batch_size=2)]
    assert batches == [[0, 1], [2, 3], [4]]


def test_the_smaller_last_batch_can_be_dropped():
    """``drop_last`` leaves it out, and ``len`` knows."""
    loader = data.DataLoader(numbers(5), batch_size=2, drop_last=True)
    assert len(loader) == len(list(loader)) == 2


def test_shuffling_draws_every_sample_once():
    """A shuffled pass is a permutation, another one in each pass."""
    loader = data.DataLoader(numbers(50), batch_size=7, shuffle=True)
    passes = [[i for x, _ in loader for i in x.tolist()] for _ in range(2)]
    assert sorted(passes[0]) == sorted(passes[1]) == list(range(50))
    assert passes[0] != passes[1]


def test_a_generator_decides_the_order():
    """Loaders with generators of one seed give one order."""
    orders = []
    for _ in range(2):
        loader = data.DataLoader(numbers(9), shuffle=True, generator=tc.Generator().manual_seed(3))
        orders.append([x.item() for x, _ in loader])
    assert orders[0] == orders[1]


def test_the_gathered_batch_is_the_stacked_one():
    """Batches of a TensorDataset, also behind Subsets, equal those that are stacked sample by sample."""
    subset = data.Subset(data.Subset(numbers(8), [7, 6, 5, 4]), [3, 0, 1])
    quick = next(iter(data.DataLoader(subset, batch_size=3)))
    stacked = data.default_collate([subset[i] for i in range(3)])
    assert [one.tolist() for one in quick] == [one.tolist() for one in stacked] == [[4, 7, 6], [40, 70, 60]]


def test_collating_with_a_map():
    """A map adds types to those that are known, inside of structures too, and its functions get the map."""

    class Box:
        def __init__(self, value):
            self.value = value

    def boxes(batch, *, collate_fn_map=None):
        return Box(data._utils.collate.collate([one.value for one in batch], collate_fn_map=collate_fn_map))

    known = {Box: boxes, **data.default_collate_fn_map}
    made = data._utils.collate.collate([{"a": Box(1), "b": "x"}, {"a": Box(2), "b": "y"}], collate_fn_map=known)
    assert made["a"].value.tolist() == [1, 2]
    assert made["b"] == ["x", "y"]
    assert data._utils.collate.collate_tensor_fn([tc.zeros(2), tc.ones(2)]).tolist() == [[0.0, 0.0], [1.0, 1.0]]


def test_structures_are_collated():
    """Dicts, namedtuples and lists keep their form; numbers become float64 and int64 tensors, strings stay."""
    batch = next(iter(data.DataLoader(Words(), batch_size=3)))
    assert batch["word"] == ["w0", "w1", "w2"]
    assert isinstance(batch["pair"], Pair)
    assert batch["pair"].x.dtype is tc.int64
    assert batch["pair"].y.dtype is tc.float64
    assert batch["list"][0].tolist() == [[0], [1], [2]]
    assert batch["array"].tolist() == [[0, 0], [1, 1], [2, 2]]


def test_without_batches_samples_come_single():
    """``batch_size=None`` gives each sample, with its arrays as tensors."""
    samples = list(data.DataLoader(Words(), batch_size=None))
    assert samples[2]["word"] == "w2"
    assert samples[2]["array"].tolist() == [2, 2]


def test_a_stream_is_batched():
    """An IterableDataset comes in batches, in its own order."""
    assert [x.tolist() for x in data.DataLoader(Stream(), batch_size=2)] == [[0, 1], [2, 3], [4]]
    assert len(data.DataLoader(Stream(), batch_size=2, drop_last=True)) == 2


def test_data_sets_add_up():
    """Concatenated data sets are one after the other, counted from either end."""
    both = numbers(2) + numbers(3)
    assert len(both) == 5
    assert [both[i][0].item() for i in (1, 2, -1)] == [1, 0, 2]
    assert list(Stream() + Stream()) == [0, 1, 2, 3, 4] * 2
    with pytest.raises(IndexError):
        both[5]


def test_data_sets_side_by_side():
    """StackDataset gives tuples, or dicts by name."""
    assert data.StackDataset([1, 2], [3, 4])[1] == (2, 4)
    assert data.StackDataset(a=[1, 2], b=[3, 4])[0] == {"a": 1, "b": 3}
    assert data.StackDataset([1, 2], [3, 4]).__getitems__([1, 0]) == [(2, 4), (1, 3)]


def test_stacked_sets_are_asked_once_for_a_batch():
    """A part that can give a whole batch is asked for it, and must give as many samples."""

    class Batches(data.Dataset):
        def __len__(self):
            return 4

        def __getitems__(self, indices):
            return [10 * i for i in indices if i < 3]

    stacked = data.StackDataset(a=Batches(), b=list(range(4)))
    assert stacked.__getitems__([2, 1]) == [{"a": 20, "b": 2}, {"a": 10, "b": 1}]
    with pytest.raises(ValueError, match=r"size mismatch\. Expected 2, got 1"):
        stacked.__getitems__([0, 3])


def test_splits_do_not_overlap():
    """``random_split`` takes lengths or fractions; what rounding leaves goes to the first parts."""
    parts = data.random_split(range(10), [0.25, 0.25, 0.5])
    assert [len(part) for part in parts] == [3, 2, 5]
    assert sorted(i for part in parts for i in part) == list(range(10))


@pytest.mark.parametrize(
    "make, error, text",
    [
        (
            lambda: data.DataLoader(numbers(0), shuffle=True),
            ValueError,
            "num_samples should be a positive integer value",
        ),
        (
            lambda: data.DataLoader(numbers(3), batch_size=0),
            ValueError,
            "batch_size should be a positive integer value",
        ),
        (lambda: data.DataLoader(numbers(3), sampler=[1], shuffle=True), ValueError, "mutually exclusive with shuffle"),
        (lambda: data.DataLoader(numbers(3), batch_sampler=[[1]], batch_size=2), ValueError, "mutually exclusive"),
        (lambda: data.DataLoader(numbers(3), batch_size=None, drop_last=True), ValueError, "disables auto-batching"),
        (lambda: data.DataLoader(Stream(), shuffle=True), ValueError, "expected unspecified shuffle option"),
        (lambda: data.DataLoader(numbers(3), num_workers=-1), ValueError, "num_workers option should be non-negative"),
        (lambda: data.DataLoader(numbers(3), prefetch_factor=2), ValueError, "only be specified in multiprocessing"),
        (lambda: data.TensorDataset(tc.ones(2), tc.ones(3)), AssertionError, "Size mismatch between tensors"),
        (lambda: data.ConcatDataset([]), AssertionError, "should not be an empty iterable"),
        (lambda: data.random_split(range(3), [1, 1]), ValueError, "Sum of input lengths does not equal"),
        (lambda: data.default_collate([object()]), TypeError, "batch must contain"),
        (lambda: data.default_collate([[1], [1, 2]]), RuntimeError, "should be of equal size"),
        (
            lambda: data.default_collate([tc.ones(1), tc.ones(2)]),
            RuntimeError,
            "stack expects each tensor to be equal size",
        ),
        (lambda: data.WeightedRandomSampler([[1.0]], 1), ValueError, "should be a 1d sequence"),
        (lambda: data.Dataset()[0], NotImplementedError, "implement __getitem__"),
    ],
)
def test_bad_arguments_are_refused(make, error, text):
    """Each raises PyTorch's exception with PyTorch's words."""
    with pytest.raises(error) as caught:
        make()
    assert text in str(caught.value)


def test_a_loader_without_samples_is_empty():
    """A data set of no samples gives no batches when it is not shuffled."""
    assert list(data.DataLoader(numbers(0))) == []


# The order of PyTorch

SAMPLERS = {
    "random": lambda d, g: d.RandomSampler(range(11), generator=g),
    "random, twice through": lambda d, g: d.RandomSampler(range(11), num_samples=25, generator=g),
    "replacement": lambda d, g: d.RandomSampler(range(11), replacement=True, num_samples=70, generator=g),
    "subset": lambda d, g: d.SubsetRandomSampler([3, 5, 7, 9, 11], generator=g),
    "weighted": lambda d, g: d.WeightedRandomSampler([0.1, 0.5, 3.0, 0.2], 20, generator=g),
    "weighted, once each": lambda d, g: d.WeightedRandomSampler(
        [0.1, 0.5, 3.0, 0.2], 4, replacement=False, generator=g
    ),
    "batches": lambda d, g: d.BatchSampler(d.RandomSampler(range(11), generator=g), 4, True),
}


@pytest.mark.oracle
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers_draw_pytorchs_order(name, own, torch):
    """Two passes from one seed give PyTorch's indices, and leave the generators in the same state."""
    found = []
    for library in (tc, torch):
        library.manual_seed(7)
        generator = library.Generator().manual_seed(9) if own else None
        sampler = SAMPLERS[name](library.utils.data, generator)
        passes = [list(sampler), list(sampler)]
        state = (generator.get_state() if own else library.get_rng_state()).tolist()
        found.append((passes, len(sampler), state))
    assert found[0] == found[1]


@pytest.mark.oracle
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("workers_seed_only", [False, True])
def test_loaders_draw_pytorchs_batches(own, workers_seed_only, torch):
    """Two passes of a loader give PyTorch's batches and leave the generators in the same state."""
    found = []
    for library in (tc, torch):
        library.manual_seed(7)
        generator = library.Generator().manual_seed(9) if own else None
        dataset = library.utils.data.TensorDataset(library.arange(23), library.arange(23))
        loader = library.utils.data.DataLoader(dataset, 4, shuffle=not workers_seed_only, generator=generator)
        passes = [[x.tolist() for x, _ in loader] for _ in range(2)]
        found.append((passes, library.rand(3).tolist(), generator.get_state().tolist() if own else None))
    assert found[0] == found[1]


@pytest.mark.oracle
def test_splits_equal_pytorchs(torch):
    """The same seed splits alike."""
    found = []
    for library in (tc, torch):
        parts = library.utils.data.random_split(
            range(30), [0.3, 0.3, 0.4], generator=library.Generator().manual_seed(42)
        )
        found.append([list(part) for part in parts])
    assert found[0] == found[1]


@pytest.mark.oracle
@pytest.mark.parametrize(
    "batch",
    [
        [1, 2],
        [1.5, 2.5],
        [True, False],
        ["a", "b"],
        [b"a", b"b"],
        [(1, "a"), (2, "b")],
        [[1, 2.0], [3, 4.0]],
        [np.float32(1), np.float32(2)],
        [np.ones((2, 2), np.int16)] * 2,
        [{"a": 1, "b": [2, 3]}, {"a": 4, "b": [5, 6]}],
        [OrderedDict(a=1), OrderedDict(a=2)],
        [MappingProxyType({"a": 1}), MappingProxyType({"a": 2})],
        [range(2), range(2)],
        [Pair(1, 2.0), Pair(3, 4.0)],
    ],
)
def test_collated_as_pytorch_collates(batch, torch):
    """Structure, dtypes and values are PyTorch's."""
    assert repr(data.default_collate(batch)) == repr(torch.utils.data.default_collate(batch))
    assert repr(data.default_convert(batch[0])) == repr(torch.utils.data.default_convert(batch[0]))


class Foreign:
    """A loader with what PyTorch's iterators read, and no more."""

    collate_fn, drop_last, pin_memory, generator, worker_init_fn = staticmethod(list), False, False, None, None
    prefetch_factor, timeout, persistent_workers, multiprocessing_context = 2, 0, False, None

    def __init__(self, library, dataset, workers):
        self._dataset_kind = library.utils.data.dataloader._DatasetKind.Map
        self.dataset, self.num_workers = dataset, workers
        self._auto_collation, self._index_sampler = True, [[0, 2], [1]]
        self.in_order, self._IterableDataset_len_called, self.pin_memory_device = True, None, ""

    def _get_shared_seed(self):
        return None


@pytest.mark.oracle
@pytest.mark.parametrize("workers", [0, 1])
def test_iterators_take_loaders_of_other_libraries(workers, torch):
    """What PyTorch's iterators make of such a loader, those of the same names make of it, and a loader says its kind."""
    found = []
    for library in (tc, torch):
        room = library.utils.data.dataloader
        kind = room._MultiProcessingDataLoaderIter if workers else room._SingleProcessDataLoaderIter
        found.append(list(kind(Foreign(library, [5, 6, 7], workers))))
        loader = library.utils.data.DataLoader([1])
        assert (loader._auto_collation, loader._dataset_kind) == (True, room._DatasetKind.Map)
    assert found[0] == found[1] == [[5, 7], [6]]


def test_a_foreign_loader_of_an_iterable():
    """Without batches, each sample comes through ``collate_fn`` as it is, until there are no more."""
    loader = Foreign(tc, None, 0)
    loader._dataset_kind, loader._auto_collation = data.dataloader._DatasetKind.Iterable, False
    loader.dataset, loader._index_sampler = [[1], [2]], range(9)
    assert list(data.dataloader._SingleProcessDataLoaderIter(loader)) == [[1], [2]]
