"""What a run will need, against runs that are known."""

from __future__ import annotations

import pytest

from spark_watch.errors import UsageError
from spark_watch.model import GIB
from spark_watch.preflight.estimate import Workload, estimate

GB = 1e9


def test_70b_by_qlora() -> None:
    """About 40 GB: 35 of weights at half a byte and 4.4 of their scales."""
    assert estimate(70e9, method="qlora").total_bytes == pytest.approx(39.375 * GB)


def test_a_120b_mixture_in_nvfp4_by_lora() -> None:
    """About 68 GB: 60 of weights and 7.5 of scales."""
    found = estimate(120e9, method="lora", dtype="nvfp4")
    assert found.total_bytes == pytest.approx(67.5 * GB)


def test_27b_by_lora_fits_with_short_sequences_alone() -> None:
    """54 GB of weights, 108 while they load: 100.6 of the 121.7 GiB, so little is left then."""
    found = estimate(27e9, method="lora")
    assert found.total_bytes == pytest.approx(54 * GB)
    assert found.load_bytes == pytest.approx(108 * GB)
    assert 100 * GIB < 108 * GB < 110 * GIB


@pytest.mark.parametrize(("optimizer", "total"), [("adamw", 108.0), ("adamw_8bit", 54.0)])
def test_9b_in_full(optimizer: str, total: float) -> None:
    """18 of weights, 18 of gradients and 72 or 18 of states: both fit into 121.7 GiB."""
    found = estimate(9e9, method="full", optimizer=optimizer)
    assert found.total_bytes == pytest.approx(total * GB)
    assert found.total_bytes < 121.7 * GIB


@pytest.mark.parametrize(
    ("dtype", "weights"), [("fp32", 4.0), ("bf16", 2.0), ("int8", 1.0), ("nf4", 0.5625)]
)
def test_weights_by_data_type(dtype: str, weights: float) -> None:
    """Four, two and one byte a parameter, and half a byte with a sixteenth of scale."""
    assert estimate(1e9, dtype=dtype).weights_bytes == pytest.approx(weights * GB)


def test_activations_count_only_where_somebody_says() -> None:
    """Unknown is not nought in the words; checkpointing saves 30 % of what was said."""
    silent = estimate(1e9)
    assert silent.activation_bytes is None
    assert "activations not counted" in silent.terms()
    assert estimate(1e9, activation_gib=10.0).activation_bytes == 10 * GIB
    saved = estimate(1e9, activation_gib=10.0, checkpointing=True)
    assert saved.activation_bytes == pytest.approx(7 * GIB)


def test_a_total_from_outside_is_taken_as_it_is() -> None:
    """Nothing is added to what somebody knows."""
    given = Workload(given_bytes=61.0 * GIB)
    assert given.total_bytes == 61 * GIB
    assert given.terms() == "as given"


@pytest.mark.parametrize("params", [0.0, 70.0, 1e14, float("nan"), float("-inf")])
def test_a_size_that_makes_no_sense(params: float) -> None:
    """70 was meant to be 70e9, and not a number is no size."""
    with pytest.raises(UsageError, match=r"must be 1e6 to 1e13"):
        estimate(params)


def test_four_bits_cannot_be_trained_in_full() -> None:
    """The method and the data type contradict one another."""
    with pytest.raises(UsageError, match="only fp32, bf16 and fp16"):
        estimate(9e9, method="full", dtype="nf4")
