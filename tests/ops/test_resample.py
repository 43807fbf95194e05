"""Images resized and sampled, and windows and slopes drawn, beyond the sampled calls."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tensorcore as tc

F = tc.nn.functional


def both(torch: Any, call: Any) -> list[np.ndarray]:
    """What a call gives in each of the libraries, from one seed."""
    found = []
    for module in (torch, tc):
        module.manual_seed(8)
        found.append(call(module, module.nn.functional).numpy())
    return found


class TestInterpolate:
    """interpolate."""

    def test_neighbours_are_weighted_by_nearness(self) -> None:
        """Twice the size puts each new element a quarter of a step beside an old one; the corners may stay in place."""
        x = tc.tensor([[[0.0, 4.0]]])
        assert F.interpolate(x, scale_factor=2, mode="linear").tolist() == [[[0.0, 1.0, 3.0, 4.0]]]
        assert F.interpolate(x, size=3, mode="linear", align_corners=True).tolist() == [[[0.0, 2.0, 4.0]]]

    @pytest.mark.oracle
    @pytest.mark.parametrize(
        "mode, antialias",
        [("bilinear", False), ("bilinear", True), ("bicubic", False), ("bicubic", True), ("lanczos", True)],
    )
    @pytest.mark.parametrize("size", [(4, 11), (17, 5)])
    def test_bytes_are_rounded_as_in_pytorch(self, torch: Any, mode: str, antialias: bool, size: Any) -> None:
        """Images of bytes are equal to the last bit: the weights are rounded to the same whole numbers."""
        image = np.random.default_rng(3).integers(0, 256, (2, 3, 9, 8)).astype(np.uint8)
        theirs, ours = both(
            torch, lambda m, f: f.interpolate(m.from_numpy(image), size, mode=mode, antialias=antialias)
        )
        np.testing.assert_array_equal(ours, theirs)

    def test_a_neighbour_that_is_infinite_touches_only_its_neighbours(self) -> None:
        """Elements that the infinite one has no share in stay finite."""
        x = tc.tensor([[[1.0, 2.0, float("inf")]]])
        assert F.interpolate(x, scale_factor=2, mode="linear").isfinite().tolist() == [[[True] * 3 + [False] * 3]]

    @pytest.mark.parametrize(
        "options, error",
        [
            ({}, ValueError),
            ({"size": 2, "scale_factor": 2.0}, ValueError),
            ({"size": (2, 2)}, ValueError),
            ({"size": 2.5}, TypeError),
            ({"size": 0}, RuntimeError),
            ({"size": 2, "mode": "bilinear"}, NotImplementedError),
            ({"size": 2, "align_corners": True}, ValueError),
            ({"size": 2, "mode": "linear", "antialias": True}, ValueError),
        ],
    )
    def test_arguments_that_do_not_fit(self, options: dict[str, Any], error: type[Exception]) -> None:
        """Each raises what PyTorch raises there."""
        with pytest.raises(error):
            F.interpolate(tc.ones(1, 1, 3), **options)

    def test_old_names_say_so(self) -> None:
        """The names from before interpolate work and warn."""
        x = tc.tensor([[[[1.0, 3.0]]]])
        with pytest.warns(FutureWarning, match="deprecated"):
            assert F.upsample_nearest(x, scale_factor=2).shape == (1, 1, 2, 4)
        with pytest.warns(FutureWarning, match="deprecated"):
            assert F.upsample_bilinear(x, size=(1, 3)).tolist() == [[[[1.0, 2.0, 3.0]]]]


class TestGridSample:
    """grid_sample and affine_grid."""

    def test_the_same_map_gives_the_same_image(self) -> None:
        """An image sampled where the map that changes nothing sends its elements is itself."""
        image = tc.arange(12.0).reshape(1, 1, 3, 4)
        for align in (True, False):
            grid = F.affine_grid(tc.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]), (1, 1, 3, 4), align)
            np.testing.assert_allclose(
                F.grid_sample(image, grid, align_corners=align).numpy(), image.numpy(), atol=1e-5
            )

    @pytest.mark.oracle
    @pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
    @pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
    @pytest.mark.parametrize("align", [True, False])
    def test_places_that_are_no_numbers(self, torch: Any, mode: str, padding: str, align: bool) -> None:
        """NaN, infinities, huge places and those at the edges themselves are read as PyTorch reads them."""
        values = [np.nan, np.inf, -np.inf, 1e20, -1.0, 1.0, 0.5, -3.7]
        grid = np.array([[[[x, y] for x in values] for y in values]])
        image = np.random.default_rng(3).uniform(-2, 2, (1, 2, 3, 5))
        theirs, ours = both(
            torch, lambda m, f: f.grid_sample(m.from_numpy(image), m.from_numpy(grid), mode, padding, align)
        )
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)

    def test_the_default_of_align_corners_is_announced(self) -> None:
        """Leaving it out warns, as in PyTorch."""
        with pytest.warns(UserWarning, match="align_corners"):
            F.grid_sample(tc.ones(1, 1, 2, 2), tc.zeros(1, 1, 1, 2))


@pytest.mark.oracle
@pytest.mark.parametrize(
    "call",
    [
        lambda m, f: f.fractional_max_pool2d(m.arange(120.0).reshape(2, 1, 6, 10).cos(), 2, output_size=(3, 4)),
        lambda m, f: f.fractional_max_pool3d(
            m.arange(240.0).reshape(2, 4, 6, 5).cos(), 2, output_ratio=(0.5, 0.4, 0.6)
        ),
        lambda m, f: f.rrelu(m.linspace(-3, 3, 50), training=True),
        lambda m, f: f.rrelu_(m.linspace(-3, 3, 50), 0.2, 0.4, True),
        lambda m, f: f.gumbel_softmax(m.linspace(-3, 3, 50).reshape(5, 10)),
    ],
)
def test_what_is_drawn_is_what_pytorch_draws(torch: Any, call: Any) -> None:
    """Windows, slopes and samples are equal for a seed."""
    theirs, ours = both(torch, call)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


class TestEmbeddingBag:
    """embedding_bag."""

    def test_the_last_offset_ends_the_last_bag(self) -> None:
        """With include_last_offset what lies behind it counts for nothing."""
        table = tc.tensor([[1.0], [2.0], [4.0]])
        made = F.embedding_bag(tc.tensor([0, 1, 2]), table, tc.tensor([0, 1, 2]), mode="sum", include_last_offset=True)
        assert made.tolist() == [[1.0], [2.0]]

    def test_the_first_of_equal_rows_gets_the_gradient(self) -> None:
        """Of several largest elements one is differentiated."""
        table = tc.ones(3, 1, requires_grad=True)
        F.embedding_bag(tc.tensor([[2, 0, 1]]), table, mode="max").backward()
        assert table.grad is not None
        assert table.grad.tolist() == [[0.0], [0.0], [1.0]]

    def test_nan_is_the_largest_element(self) -> None:
        """A bag with NaN has NaN for its largest element, as ``torch.max`` has; it was 0."""
        table = tc.tensor([[1.0], [math.nan], [2.0]])
        made = F.embedding_bag(tc.tensor([0, 1, 0, 2]), table, tc.tensor([0, 2]), mode="max")
        np.testing.assert_array_equal(made.numpy(), [[math.nan], [2.0]])

    def test_offsets_that_decrease_are_refused(self) -> None:
        """A bag that would begin before the one in front of it has no rows of its own."""
        for last in (False, True):
            with pytest.raises(RuntimeError, match=r"must not decrease, got \[0, 2, 1\]"):
                F.embedding_bag(tc.tensor([0, 1, 2]), tc.ones(4, 3), tc.tensor([0, 2, 1]), include_last_offset=last)

    def test_rows_that_are_too_long_are_shortened(self) -> None:
        """max_norm scales the rows asked for in the table itself, and no others."""
        table = tc.tensor([[3.0, 4.0], [6.0, 8.0]])
        made = F.embedding_bag(tc.tensor([[1]]), table, mode="sum", max_norm=1.0)
        np.testing.assert_allclose(made.numpy(), [[0.6, 0.8]], rtol=1e-6)
        np.testing.assert_allclose(table.numpy(), [[3.0, 4.0], [0.6, 0.8]], rtol=1e-6)


def test_forms_with_indices_always_give_them() -> None:
    """The *_with_indices names answer a pair whatever return_indices says."""
    x = tc.tensor([[[1.0, 3.0, 2.0, 0.0]]])
    values, at = F.max_pool1d_with_indices(x, 2)
    assert (values.tolist(), at.tolist()) == ([[[3.0, 2.0]]], [[[1, 2]]])
    assert F.adaptive_max_pool1d_with_indices(x, 1)[1].tolist() == [[[1]]]


def test_in_place_forms_write_their_input() -> None:
    """celu_ and rrelu_ answer with the tensor that they were given."""
    for form in (F.celu_, F.rrelu_):
        x = tc.tensor([-1.0, 2.0])
        assert form(x) is x
        assert x[1].item() == 2.0
        assert -1.0 < x[0].item() < 0.0


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("size", [(1, 1, 28, 33), (1, 1, 5, 64), (1, 2, 3, 28, 7)])
def test_places_that_nothing_moves(torch, size, corners) -> None:
    """The grid of the identity has PyTorch's bits, so that gradients jump at its places where PyTorch's do."""
    n = len(size) - 2
    theta = np.eye(n, n + 1, dtype=np.float32)[None]
    grids = [one.nn.functional.affine_grid(one.tensor(theta), size, align_corners=corners) for one in (tc, torch)]
    assert grids[0].tolist() == grids[1].tolist()
    image = np.random.default_rng(0).standard_normal(size).astype(np.float32)
    slopes = []
    for one, grid in zip((tc, torch), grids, strict=True):
        grid.requires_grad_()
        one.nn.functional.grid_sample(one.tensor(image), grid, align_corners=corners).sum().backward()
        slopes.append(grid.grad.numpy())
    assert np.allclose(*slopes, atol=1e-4)


def test_lines_have_pytorchs_bits(torch) -> None:
    """Numbers of ``linspace`` are rounded once, those of 16 bits at every step, as PyTorch's are."""
    for start, end, steps in ((-1, 1, 7), (0, 1, 100), (0.1, 3.7, 64), (-250.5, 3e4, 33), (5, -2.3, 290), (0.1, 2, 1)):
        for kind in ("float32", "float64", "float16", "bfloat16"):
            found, expected = [
                lib.linspace(start, end, steps, dtype=getattr(lib, kind)).tolist() for lib in (tc, torch)
            ]
            assert found == expected, kind


@pytest.mark.parametrize("dtype", [tc.float16, tc.bfloat16], ids=str)
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_half_types_are_resized_in_single_precision(mode, dtype) -> None:
    """Weights and sums are floats and the result is rounded once, also in the gradient's dtype."""
    x = tc.linspace(-1, 1, 2 * 3 * 7 * 9).reshape(2, 3, 7, 9).to(dtype).requires_grad_()
    made = F.interpolate(x, scale_factor=1.7, mode=mode)
    wide = F.interpolate(x.detach().float(), scale_factor=1.7, mode=mode)
    assert made.dtype is dtype
    assert tc.equal(made, wide.to(dtype))
    made.sum().backward()
    assert x.grad.dtype is dtype
