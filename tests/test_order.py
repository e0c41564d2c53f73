# SPDX-License-Identifier: MIT
"""The order: frozen vectors, the NumPy model of docs/order.md, the split into ranks and batches,
resume, and the statistics of a random permutation (seeds are fixed, so results are too)."""

import itertools
import math

import numpy as np
import pytest

import order_golden
import order_model

pytestmark = pytest.mark.parallel

_core = pytest.importorskip("feedline._core", reason="the extension is not built")

SEEDS = range(20)
WORLDS = (1, 2, 3, 8)
UNEVEN = ("pad", "drop", "mask")
LARGE = (65537, 1 << 18, 1_000_003)


def order(count, seed=0, epoch=0):
    return _core.permutation(count, seed, epoch, 0, count)


def cursor(count, **changes):
    options = {
        "shuffle": True,
        "seed": 5,
        "epoch": 6,
        "start": 0,
        "batch_size": 4,
        "rank": 0,
        "world_size": 1,
        "uneven": "pad",
        "drop_last": False,
    }
    return _core.Cursor(count=count, **(options | changes))


# ---- Philox


def test_philox_known_answers():
    """The vectors that Random123 ships (kat_vectors, philox4x32 10)."""
    ones = 0xFFFFFFFF
    vectors = {
        ((0, 0, 0, 0), (0, 0)): (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8),
        ((ones,) * 4, (ones,) * 2): (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
        ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0)): (
            0xD16CFE09,
            0x94FDCCEB,
            0x5001E420,
            0x24126EA1,
        ),
    }
    for (counter, key), want in vectors.items():
        assert order_model.philox(counter, key) == want
        assert _core.philox(counter, key) == want


def test_philox_of_numpy():
    """NumPy has the form with 64-bit words: it checks the transcription, and that the core."""
    words = np.random.default_rng(1).integers(0, 1 << 64, (20, 6), np.uint64).tolist()
    for *counter, k0, k1 in words:
        # NumPy counts up before it makes a block.
        value = sum(word << 64 * i for i, word in enumerate(counter))
        theirs = np.random.Philox(key=k0 | k1 << 64, counter=(value - 1) % (1 << 256))
        ours = order_model.philox(counter, (k0, k1), bits=64)
        assert ours == tuple(theirs.random_raw(4).tolist())


def test_philox_of_the_model():
    words = np.random.default_rng(2).integers(0, 1 << 32, (200, 6)).tolist()
    for *counter, k0, k1 in words:
        want = order_model.philox(counter, (k0, k1))
        assert _core.philox(tuple(counter), (k0, k1)) == want


# ---- Vectors and model


def test_frozen_vectors_of_the_core():
    frozen = order_golden.read()
    assert len(frozen) == len(order_golden.COUNTS) * len(order_golden.KEYS)
    for key, want in frozen.items():
        assert order_golden.vector(_core.permutation, *key) == want, key


def test_frozen_vectors_of_the_model():
    for (count, seed, epoch), want in order_golden.read().items():
        if count not in (65535, 65536):  # slow, and no other code than below
            got = order_golden.vector(order_golden.model, count, seed, epoch)
            assert got == want, (count, seed, epoch)


@pytest.mark.parametrize("count", [*range(40), 300, 65537, 300 * 300, 300 * 300 + 1])
def test_model_and_core_agree(count):
    for seed, epoch in [(0, 1), (1, 0), ((1 << 64) - 1, (1 << 64) - 1)]:
        want = order_model.order(count, seed, epoch, np.arange(count))
        assert np.array_equal(order(count, seed, epoch), want)


@pytest.mark.parametrize("count", [(1 << 40) + 7, (1 << 63) - 1])
def test_model_and_core_agree_far_out(count):
    start = count - 1000
    want = order_model.order(count, 3, 4, np.arange(start, count))
    assert np.array_equal(_core.permutation(count, 3, 4, start, count), want)


# ---- Ranks and batches


def all_batches(run):
    return [run.batch(number) for number in range(run.batches)]


@pytest.mark.parametrize(
    ("uneven", "drop_last"),
    [("pad", False), ("pad", True), ("drop", False), ("drop", True), ("mask", False)],
)
@pytest.mark.parametrize("count", [1, 2, 7, 24])
def test_split_is_the_models(count, uneven, drop_last):
    samples = order_model.order(count, 5, 6, np.arange(count))
    cases = itertools.product(range(count + 1), (1, 3, 4, 30), WORLDS)
    for start, batch_size, world in cases:
        for rank in range(world):
            run = cursor(
                count,
                start=start,
                batch_size=batch_size,
                rank=rank,
                world_size=world,
                uneven=uneven,
                drop_last=drop_last,
            )
            want = order_model.split(count, start, batch_size, rank, world, uneven, drop_last)
            assert [run.rows(number) for number in range(run.batches)] == [*map(len, want)]
            for number, positions in enumerate(want):
                columns = run.batch(number).T
                assert np.array_equal(columns[0], positions)
                assert np.array_equal(columns[1], positions)
                assert np.array_equal(columns[2], samples[positions % count])
                assert np.array_equal(columns[3], positions < count)


@pytest.mark.parametrize("drop_last", [False, True])
def test_split_is_torchs(drop_last):
    """DistributedSampler's rule by hand: pad with the first indices, repeated, or cut; stride."""
    for count, world in itertools.product((1, 3, 5, 8, 29), WORLDS):
        indices = order(count, 5, 6).tolist()
        if drop_last:
            total = count // world * world
            indices = indices[:total]
        else:
            total = math.ceil(count / world) * world
            indices = (indices * total)[:total]
        for rank in range(world):
            uneven = "drop" if drop_last else "pad"
            run = cursor(count, rank=rank, world_size=world, uneven=uneven)
            got = [row[2] for batch in all_batches(run) for row in batch.tolist()]
            assert got == indices[rank:total:world]


def test_mask_shows_each_sample_exactly_once_in_full_batches():
    for count, world, batch_size in itertools.product((1, 7, 24, 65), WORLDS, (1, 4, 10)):
        seen, steps = [], set()
        for rank in range(world):
            run = cursor(count, rank=rank, world_size=world, batch_size=batch_size, uneven="mask")
            steps.add(run.batches)
            for batch in all_batches(run):
                assert len(batch) == batch_size
                seen += batch[batch[:, 3] == 1, 2].tolist()
        assert sorted(seen) == list(range(count))
        assert len(steps) == 1


def received(count, start, batch_size, world, uneven, limit):
    """What all ranks get from `start` on in `limit` batches, in order of position; the state."""
    rows, position = [], start
    for rank in range(world):
        run = cursor(
            count,
            start=start,
            batch_size=batch_size,
            rank=rank,
            world_size=world,
            uneven=uneven,
        )
        taken = min(limit, run.batches)
        for number in range(taken):
            rows += run.batch(number).tolist()
        position = run.position(taken)
    return sorted(rows), position


@pytest.mark.parametrize("uneven", ["pad", "mask"])
def test_resume_with_another_world_and_batch_size(uneven):
    count = 41
    whole = order(count, 5, 6).tolist()
    settings = [(1, 1), (4, 1), (2, 3), (5, 2), (3, 8)]
    for before, after in itertools.product(settings, repeat=2):
        for stop in range(12):
            head, position = received(count, 0, *before, uneven, stop)
            tail, end = received(count, position, *after, uneven, count)
            valid = [row for row in head + tail if row[3]]
            assert [row[0] for row in valid] == list(range(count))
            assert [row[2] for row in valid] == whole
            assert end == count


def test_sequential():
    assert np.concatenate(all_batches(cursor(10, shuffle=False)))[:, 2].tolist() == list(range(10))


def test_empty():
    for uneven in UNEVEN:
        run = cursor(0, world_size=3, uneven=uneven)
        assert run.batches == 0
        assert run.position(0) == 0
    assert order(0).tolist() == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch_size": 0}, "batch_size must be at least 1, it is 0"),
        ({"world_size": 0}, "world_size must be at least 1, it is 0"),
        ({"rank": 2, "world_size": 2}, r"rank must be in \[0, 1\], it is 2 \(world_size is 2\)"),
        ({"rank": -1}, r"rank must be in \[0, 0\], it is -1"),
        ({"start": 11}, r"start position must be in \[0, 10\].* it is 11"),
        ({"start": -1}, "it is -1"),
        ({"uneven": "mask", "drop_last": True}, "drop_last=True contradicts it"),
        ({"uneven": "wrap"}, 'uneven must be "pad", "drop" or "mask", not \'wrap\''),
        ({"batch_size": 1 << 62, "world_size": 4}, r"batch_size \* world_size is too large"),
        ({"seed": -1}, r"seed and epoch must be in \[0, 2\*\*64 - 1\], not -1"),
        ({"epoch": 1 << 64}, "seed and epoch must be in"),
    ],
)
def test_bad_arguments(changes, message):
    with pytest.raises(ValueError, match=message):
        cursor(10, **changes)


def test_bad_numbers():
    run = cursor(10)
    for call in (run.rows, run.batch):
        with pytest.raises(IndexError, match="batch 3 is out of range: the run has 3 batches"):
            call(3)
        with pytest.raises(IndexError, match="batch -1"):
            call(-1)
    with pytest.raises(IndexError, match="a count of 4"):
        run.position(4)
    with pytest.raises(ValueError, match="not 2 and 6 for a count of 5"):
        _core.permutation(5, 0, 0, 2, 6)
    with pytest.raises(ValueError, match="a word must be in"):
        _core.philox((0, 0, 0, 1 << 32), (0, 0))


# ---- Statistics: laws of a uniform permutation


def limit(tests):
    """|z| that chance exceeds once in 10,000 runs of so many tests (Bonferroni)."""
    tail, low, high = 1e-4 / tests / 2, 0.0, 20.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if math.erfc(middle / math.sqrt(2)) / 2 > tail else (low, middle)
        )
    return high


def assert_normal(z):
    """Standard normal values: none too far out, and their mean square near 1, as sum/k says."""
    z = np.asarray(z, float).ravel()
    assert np.abs(z).max() < limit(z.size)
    assert abs((z**2).mean() - 1) < 5 * math.sqrt(2 / z.size)


def chi_square_z(statistic, degrees):
    """Wilson and Hilferty's normal value."""
    spread = 2 / (9 * degrees)
    return ((statistic / degrees) ** (1 / 3) - (1 - spread)) / math.sqrt(spread)


def correlation(x, y):
    """z of the correlation of two orders of one set."""
    count = len(x)
    middle, variance = (count - 1) / 2, (count * count - 1) / 12
    return float(np.dot(x - middle, y - middle)) / count / variance * math.sqrt(count - 1)


@pytest.fixture(scope="module", params=LARGE)
def orders(request):
    # NumPy's BLAS starts threads of its own at the first large product: now, and not inside of a
    # test, where they would count as left behind.
    np.dot(np.ones(1 << 17), np.ones(1 << 17))
    return [order(request.param, seed) for seed in SEEDS]


def test_bijection():
    edges = [(1 << k) + beside for k in range(9, 19) for beside in (-1, 0, 1, 2)]
    for count in [*range(1, 301), *edges, 257 * 257, 257 * 257 + 1, 1 << 20]:
        assert np.bincount(order(count, 7, 1), minlength=count).tolist() == [1] * count


def test_positions_and_samples_are_not_correlated(orders):
    count = len(orders[0])
    positions = np.arange(count)
    assert_normal([correlation(positions, p) for p in orders])
    distances = np.array([np.abs(p - positions).mean() / count for p in orders])
    spread = math.sqrt(2 / 45 / count)
    assert_normal((distances - (1 - 1 / count**2) / 3) / spread)


def test_serial_correlation(orders):
    """The decisive test for Feistel networks: all powers of two, and the network's own period."""
    count = len(orders[0])
    root = math.isqrt(count - 1) + 1
    lags = {1 << k for k in range(count.bit_length() - 2)} | {100, 1000}
    lags |= {root - 1, root, root + 1, 2 * root, 3 * root}
    middle, variance = (count - 1) / 2, (count * count - 1) / 12
    z = []
    for p in orders:
        x = p - middle
        # Circular; the mean of a random order's correlation is -1 / (n - 1).
        z += [
            (np.dot(x[:-lag], x[lag:]) + np.dot(x[-lag:], x[:lag])) / count / variance
            + 1 / (count - 1)
            for lag in sorted(lags)
        ]
    assert_normal(np.array(z) * math.sqrt(count))


def test_successions_and_fixed_points(orders):
    positions = np.arange(len(orders[0]))
    successions = sum(int((np.diff(p) == 1).sum()) for p in orders)
    fixed = sum(int((p == positions).sum()) for p in orders)
    # Poisson with mean 20 over 20 seeds: outside of [4, 44] once in 10^5.
    assert 4 <= successions <= 44
    assert 4 <= fixed <= 44


def test_ascents_and_parity(orders):
    count = len(orders[0])
    ascents = np.array([(np.diff(p) > 0).sum() for p in orders])
    assert_normal((ascents - (count - 1) / 2) / math.sqrt((count + 1) / 12))
    # Runs test on the lowest bit.
    z = []
    for p in orders:
        bits = p & 1
        ones = int(bits.sum())
        zeros = count - ones
        mean = 1 + 2 * ones * zeros / count
        spread = math.sqrt((mean - 1) * (mean - 2) / (count - 1))
        z.append(((np.diff(bits) != 0).sum() + 1 - mean) / spread)
    assert_normal(z)


def test_blocks_of_positions_against_blocks_of_samples(orders):
    """K x K table; too even is a failure too."""
    count, blocks = len(orders[0]), 64
    rows = np.arange(count) * blocks // count
    sizes = np.bincount(rows, minlength=blocks)
    expected = np.outer(sizes, sizes) / count
    z = []
    for p in orders:
        table = np.bincount(rows * blocks + rows[p], minlength=blocks**2).reshape(blocks, blocks)
        # Both margins are fixed: the statistic's mean is (K-1)^2 * n / (n-1).
        statistic = ((table - expected) ** 2 / expected).sum() * (count - 1) / count
        z.append(chi_square_z(statistic, (blocks - 1) ** 2))
    assert_normal(z)


def test_shards_per_batch(orders):
    """Distinct shards (64 samples in a row each) in batches of 256 against the expected number."""
    count, batch = len(orders[0]), 256
    shards = -(-count // 64)
    expected = shards * (1 - (1 - 1 / shards) ** batch)
    for p in orders[:5]:
        batches = np.sort(p[: count // batch * batch].reshape(-1, batch) // 64, axis=1)
        distinct = (np.diff(batches, axis=1) != 0).sum(axis=1) + 1
        assert abs(distinct.mean() - expected) < 6 * max(distinct.std(), 1) / math.sqrt(
            len(distinct)
        )


def test_epochs_and_seeds_are_independent():
    for count in (1000, *LARGE[:2]):
        z = []
        for seed in SEEDS:
            z.append(correlation(order(count, seed, 0), order(count, seed, 1)))
            z.append(correlation(order(count, seed, 0), order(count, seed + 1, 0)))
            assert not np.array_equal(order(count, seed, 1), order(count, seed + 1, 0))
        assert_normal(z)


def test_ranks_change_their_samples():
    """A rank's sets of two epochs share 1 / world of their samples (hypergeometric)."""
    count, world = 100_000, 8
    size = count // world
    spread = math.sqrt(size / world * (1 - 1 / world) * (count - size) / (count - 1))
    z = []
    for seed in SEEDS:
        now, then = (order(count, seed, epoch)[::world] for epoch in (0, 1))
        z.append((len(np.intersect1d(now, then)) - size / world) / spread)
    assert_normal(z)


def test_drift_of_a_rank():
    """The mean sample number of a rank's first 1000."""
    count, first = 1_000_003, 1000
    z = []
    for seed, rank in itertools.product(SEEDS, (0, 3)):
        part = _core.permutation(count, seed, 9, 0, 8 * first)[rank::8]
        z.append((part.mean() - (count - 1) / 2) / (count / math.sqrt(12 * first)))
    assert_normal(z)


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_all_orders_of_few_samples(count):
    kinds = {kind: i for i, kind in enumerate(itertools.permutations(range(count)))}
    tries = 100 * len(kinds)
    found = np.bincount(
        [kinds[tuple(order(count, seed, 2).tolist())] for seed in range(tries)],
        minlength=len(kinds),
    )
    statistic = ((found - 100) ** 2 / 100).sum()
    assert abs(chi_square_z(statistic, len(kinds) - 1)) < 4


@pytest.mark.parametrize("count", [7, 16, 64])
def test_samples_against_positions_over_seeds(count):
    tries = 4000
    table = np.zeros((count, count))
    positions = np.arange(count)
    before = np.zeros((count, count))
    for seed in range(tries):
        p = order(count, seed, 3)
        table[positions, p] += 1
        where = np.argsort(p)
        before += where[:, None] < where
    statistic = ((table - tries / count) ** 2 / (tries / count)).sum() * (count - 1) / count
    assert abs(chi_square_z(statistic, (count - 1) ** 2)) < 4
    # Each pair comes in either order half of the time.
    z = (before[np.triu_indices(count, 1)] - tries / 2) / math.sqrt(tries / 4)
    assert np.abs(z).max() < limit(z.size)
    # Pairs that share a sample correlate by 1/3.
    spread = math.sqrt(2 / z.size * (1 + 2 * (count - 2) / 9))
    assert abs((z**2).mean() - 1) < 5 * spread
