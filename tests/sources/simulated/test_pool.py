"""The simulated pool gives way in the kernel's order and counts what the kernel counts."""

import random
from collections.abc import Callable

import pytest

from spark_watch.model import GIB
from spark_watch.sources.simulated.pool import Pool
from spark_watch.sources.simulated.processes import SimulatedProcess


@pytest.fixture
def pool() -> Pool:
    """A fresh pool without the unrest of its system processes."""
    return Pool(random.Random(1), jitter_bytes=0.0)  # noqa: S311 - noise, not a secret


@pytest.fixture
def tenant(pool: Pool) -> SimulatedProcess:
    """A GPU process in the pool that holds nothing yet."""
    process = SimulatedProcess(pid=100, name="python3", cold_ratio=0.25)
    pool.tenants.append(process)
    return process


def run(pool: Pool, seconds: int, each: Callable[[], None] = lambda: None) -> None:
    """Let the pool live that long in steps of a second."""
    for _ in range(seconds):
        pool.advance(1.0)
        each()


def test_driver_memory_is_what_no_line_accounts_for(pool: Pool, tenant: SimulatedProcess) -> None:
    """The residual of meminfo is the driver's own 0.9 GiB plus what its process holds."""
    tenant.hold(gpu_gib=60.0)
    residual = pool.memory().driver_residual_bytes
    assert residual is not None
    assert residual / GIB == pytest.approx(60.9, abs=0.001)


def test_a_file_copy_moves_free_to_cached_and_leaves_available(pool: Pool) -> None:
    """Sixty gibibytes written: MemFree falls by about that, Cached rises by it, MemAvailable stays.

    The numbers of unslothai/unsloth#10704: 103.25 to 41.52, 12.64 to 72.64, 115.85 to 115.65.
    """
    before = pool.memory()
    pool.writing_bytes_per_second = 2.0 * GIB
    run(pool, 30)
    after = pool.memory()
    assert before.free_bytes is not None
    assert after.free_bytes is not None
    assert before.cached_bytes is not None
    assert after.cached_bytes is not None
    assert before.available_bytes is not None
    assert after.available_bytes is not None
    assert (after.cached_bytes - before.cached_bytes) / GIB == pytest.approx(60.0, abs=0.01)
    assert 60.0 <= (before.free_bytes - after.free_bytes) / GIB <= 62.0
    assert abs(after.available_bytes - before.available_bytes) / GIB < 0.3


def test_cache_gives_way_before_anything_is_swapped(pool: Pool, tenant: SimulatedProcess) -> None:
    """A driver that wants what the page cache holds gets it at the cache's expense."""
    pool.cache_bytes = 60.0 * GIB
    tenant.hold(anonymous_gib=4.0)
    tenant.grow(gpu_gib=70.0, gib_per_second=2.0)
    run(pool, 36)
    assert tenant.gpu_bytes == pytest.approx(70.0 * GIB)
    assert pool.cache_bytes < 50.0 * GIB
    assert tenant.anonymous_bytes + tenant.swapped_bytes == pytest.approx(4.0 * GIB)
    assert pool.swapped_in_bytes == pytest.approx(3.0e6)


def test_slab_goes_with_the_cache_it_serves(pool: Pool, tenant: SimulatedProcess) -> None:
    """What sixty gibibytes of cache added to the slab is given back when the cache is evicted."""
    before = pool.reclaimable_slab_bytes
    pool.reading_bytes_per_second = 2.0 * GIB
    run(pool, 30)
    assert pool.reclaimable_slab_bytes - before == pytest.approx(0.02 * 60 * GIB)
    pool.reading_bytes_per_second = 0.0
    tenant.grow(gpu_gib=112.0, gib_per_second=2.0)
    run(pool, 60)
    assert pool.cache_bytes < 5.0 * GIB
    assert pool.reclaimable_slab_bytes == pytest.approx(before, abs=0.1 * GIB)


def test_cold_pages_leave_and_stay_out(pool: Pool, tenant: SimulatedProcess) -> None:
    """Just short of the end only cold pages are parked: swap is used, nothing comes back."""
    tenant.hold(gpu_gib=100.0, anonymous_gib=8.0)
    tenant.grow(gpu_gib=110.0, gib_per_second=0.5)
    run(pool, 120)
    assert pool.swap_used_bytes > 1.0 * GIB
    assert pool.swapped_in_bytes == pytest.approx(3.0e6)
    assert pool.pressure().full_avg10_ratio == 0.0


def test_hot_pages_thrash_and_pressure_rises(pool: Pool, tenant: SimulatedProcess) -> None:
    """Beyond the cold pages the box swaps both ways, faults and stalls; then the driver is refused.

    The driver logs its failures, and none of them before memory was short.
    """
    tenant.hold(gpu_gib=100.0, anonymous_gib=8.0)
    run(pool, 5)
    assert pool.driver_lines == 0
    tenant.grow(gpu_gib=121.0, gib_per_second=2.0)
    run(pool, 60)
    vm, pressure = pool.vm(), pool.pressure()
    assert vm.swapped_in_bytes is not None
    assert vm.swapped_in_bytes > 1.0 * GIB
    assert vm.swapped_out_bytes is not None
    assert vm.swapped_out_bytes > 4.0 * GIB
    assert vm.major_faults is not None
    assert vm.major_faults > 100_000
    assert pressure.full_avg10_ratio is not None
    assert pressure.full_avg10_ratio > 0.5
    assert pool.driver_lines > 20
    assert tenant.gpu_bytes < 121.0 * GIB


def test_memory_given_back_is_free_at_once(pool: Pool, tenant: SimulatedProcess) -> None:
    """An engine that lets go of 80 GiB leaves that much more free after one step."""
    tenant.hold(gpu_gib=80.0)
    before = pool.free_bytes
    tenant.gpu_goal = 0.0
    pool.advance(1.0)
    assert (pool.free_bytes - before) / GIB == pytest.approx(80.0, abs=0.05)


def test_free_blocks_hold_the_free_memory(pool: Pool) -> None:
    """The blocks add up to MemFree but for rounding; sizes run from a page to 32 MiB."""
    blocks = pool.free_blocks()
    assert list(blocks) == [4096 * 2**order for order in range(14)]
    held = sum(size * number for size, number in blocks.items())
    assert 0 <= pool.free_bytes - held < 2 * 32 * 1024**2


def test_wear_breaks_up_the_large_blocks(pool: Pool) -> None:
    """A week of use leaves fewer than 50 blocks of 16 MiB or more where a fresh box has thousands.

    FujitsuPolycom/sparkring#173: 27 and 5 such blocks with 118 GiB available, 1,417 after a reboot.
    """
    large = 16 * 1024**2
    fresh = sum(number for size, number in pool.free_blocks().items() if size >= large)
    pool.wear = 1.0
    worn = sum(number for size, number in pool.free_blocks().items() if size >= large)
    assert fresh > 1_000
    assert worn < 50


def test_counters_never_go_back(pool: Pool, tenant: SimulatedProcess) -> None:
    """Every cumulative counter only grows, through growth, thrash and release."""
    seen = [pool.vm()]
    tenant.hold(gpu_gib=100.0, anonymous_gib=8.0)
    tenant.grow(gpu_gib=118.0, gib_per_second=1.0)
    run(pool, 40, lambda: seen.append(pool.vm()))
    tenant.gpu_goal = 20.0 * GIB
    run(pool, 20, lambda: seen.append(pool.vm()))
    for name in ("swapped_in_bytes", "swapped_out_bytes", "major_faults", "refaults"):
        values = [getattr(vm, name) for vm in seen]
        assert values == sorted(values), name
