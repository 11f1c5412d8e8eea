"""The bytes of a `Summary` on the panes topic, and back, equal to the last bit.

Layout: b"TB", version, CRC-32 and length of the body, then the body compressed by zstd. The body
is a list of names followed by packed arrays in the order of `_write` (see `packing`).
"""

from __future__ import annotations

import struct
from math import prod
from typing import Any, Final
from zlib import crc32

import cramjam
import numpy as np
from numpy.typing import NDArray

from tailbudget.schemas.cohorts import Cohort
from tailbudget.schemas.errors import ReleaseError, WireError
from tailbudget.schemas.packing import MOST_VALUES, Reader, Writer
from tailbudget.schemas.summary import FIXED_STAGES, Moments, Profile, Sample, Summary

MAGIC: Final = b"TB"
VERSION: Final = 2
MOST_BYTES: Final = 1 << 28
"""The longest body that is unpacked."""

_HEAD = struct.Struct("<2sBII")
_LEVEL = 1
_BUCKETS = 1920  # of the sketch, see models.sketch
_COARSE = _BUCKETS >> 3


def encode(summary: Summary) -> bytes:
    """Return the bytes of a summary."""
    writer = Writer()
    _write(writer, summary)
    body = writer.finish()
    return _HEAD.pack(MAGIC, VERSION, crc32(body), len(body)) + bytes(
        cramjam.zstd.compress(body, _LEVEL)
    )


def decode(message: bytes) -> Summary:
    """Return the summary that `encode` was given.

    Raises:
        WireError: the bytes are no summary, or damaged.
        ReleaseError: they are of another version.
    """
    reader = Reader(_body(message))
    try:
        summary = _read(reader)
    except (TypeError, ValueError, KeyError, IndexError, OverflowError) as error:
        raise WireError(f"the summary is damaged: {error}") from error
    reader.done()
    return summary


def _body(message: bytes) -> bytearray:
    if len(message) < _HEAD.size or message[:2] != MAGIC:
        raise WireError("not a summary: it does not begin with TB")
    _, version, checksum, length = _HEAD.unpack_from(message)
    if version != VERSION:
        raise ReleaseError(
            f"a summary of version {version}, this program reads version {VERSION}",
            remedy="run the same version of tailbudget on all workers",
        )
    if length > MOST_BYTES:
        raise WireError(f"a body of {length} bytes, at most {MOST_BYTES} are allowed")
    body = bytearray(length)
    try:
        written = cramjam.zstd.decompress_into(message[_HEAD.size :], body)
    except cramjam.DecompressionError as error:
        raise WireError(f"the body does not decompress: {error}") from error
    if written != length or crc32(body) != checksum:
        raise WireError("the body's checksum is wrong")
    return body


def _write(writer: Writer, summary: Summary) -> None:
    number = {cohort: i for i, cohort in enumerate(dict.fromkeys(summary.cohorts))}
    ledger = [[pane, reason, count] for (pane, reason), count in summary.ledger.items()]
    names = [summary.service, summary.stages, summary.covariates, list(number)]
    writer.json([*names, summary.sample.ids, ledger, summary.thresholds_ms, len(summary.pane_ns)])
    writer.integers(np.array([number[cohort] for cohort in summary.cohorts], np.int64))
    for counts in (summary.pane_ns, summary.requests, summary.failed, summary.over):
        writer.integers(counts)
    writer.integers(summary.n)
    writer.integers(summary.sum_ns)
    writer.floats(summary.min_ms)
    writer.floats(summary.max_ms)
    _write_runs(writer, summary.cell, summary.n.size)
    writer.integers(_steps(summary.cell, summary.bucket))
    writer.integers(summary.count)
    _write_profile(writer, summary.profile, len(summary.pane_ns))
    _write_moments(writer, summary.moments)
    _write_sample(writer, summary.sample, len(summary.stages))


def _read(reader: Reader) -> Summary:
    service, stages, covariates, names, ids, ledger, thresholds, groups = reader.json()
    stages, covariates = _strings(stages), _strings(covariates)
    if not isinstance(service, str) or stages[:3] != FIXED_STAGES:
        raise WireError("the summary does not name a service and the stages that it must")
    cohorts = [_cohort(cohort) for cohort in names]
    g, s, c, t = _size(groups), len(stages), len(covariates), len(thresholds)
    of = reader.integers(np.int64, g, below=len(cohorts))
    per_group = [reader.integers(np.int64, size) for size in (g, g, g, g * t, g * s, g * s)]
    extremes = [reader.floats(g * s).reshape(g, s) for _ in range(2)]
    cell = _read_runs(reader, g * s)
    bucket = _walk(cell, reader.integers(np.int64, len(cell)), _BUCKETS)
    return Summary(
        service=service,
        stages=stages,
        covariates=covariates,
        thresholds_ms=tuple(float(threshold) for threshold in thresholds),
        pane_ns=per_group[0],
        cohorts=tuple(cohorts[i] for i in of.tolist()),
        requests=per_group[1],
        failed=per_group[2],
        over=per_group[3].reshape(g, t),
        n=per_group[4].reshape(g, s),
        sum_ns=per_group[5].reshape(g, s),
        min_ms=extremes[0],
        max_ms=extremes[1],
        cell=cell,
        bucket=bucket,
        count=reader.integers(np.int64, len(cell)),
        profile=_read_profile(reader, g, s, c),
        moments=_read_moments(reader, g, c, s),
        sample=_read_sample(reader, _strings(ids), g, s, c),
        ledger={(_whole(pane), _string(reason)): _whole(n) for pane, reason, n in ledger},
    )


def _write_profile(writer: Writer, profile: Profile, groups: int) -> None:
    _write_runs(writer, profile.group, groups)
    writer.integers(_steps(profile.group, profile.bucket))
    writer.integers(profile.n)
    writer.integers(profile.stage_ns.T)
    writer.floats(profile.covariate.T)


def _read_profile(reader: Reader, groups: int, stages: int, covariates: int) -> Profile:
    group = _read_runs(reader, groups)
    rows = len(group)
    bucket = _walk(group, reader.integers(np.int64, rows), _COARSE)
    n = reader.integers(np.int64, rows)
    stage_ns = reader.integers(np.int64, rows * stages).reshape(stages, rows)
    covariate = _read_columns(reader, rows, covariates)
    return Profile(group, bucket, n, np.ascontiguousarray(stage_ns.T), covariate)


def _write_moments(writer: Writer, moments: Moments) -> None:
    for counts, *parts in _moment_arrays(moments):
        writer.integers(counts.transpose(1, 2, 0))
        for part in parts:
            # Where nothing is missing, most (covariate, stage) pairs share most of their moments.
            planes = part.transpose(3, 1, 2, 0)
            writer.planes(planes.reshape(prod(planes.shape[:3]), len(counts)))


def _moment_arrays(moments: Moments) -> list[tuple[NDArray[Any], ...]]:
    return [
        (moments.n, moments.mean, moments.product),
        (moments.log_n, moments.log_mean, moments.log_product),
        (moments.pair_n, moments.pair_mean, moments.pair_product),
    ]


def _read_moments(reader: Reader, groups: int, covariates: int, stages: int) -> Moments:
    arrays: list[NDArray[Any]] = []
    for others, parts in ((stages, (3, 6)), (stages, (2, 3)), (covariates, (2, 3))):
        pairs = covariates * others
        counts = reader.integers(np.int64, groups * pairs)
        arrays.append(_by_group(counts.reshape(covariates, others, groups), (2, 0, 1)))
        for part in parts:
            planes = reader.planes(part * pairs, groups).reshape(part, covariates, others, groups)
            arrays.append(_by_group(planes, (3, 1, 2, 0)))
    return Moments(*arrays)


def _by_group(array: NDArray[Any], axes: tuple[int, ...]) -> NDArray[Any]:
    return np.ascontiguousarray(array.transpose(axes))


def _write_sample(writer: Writer, sample: Sample, stages: int) -> None:
    _write_runs(writer, sample.group, len(sample.tau))
    writer.integers(sample.tau)
    writer.integers(sample.hash)
    writer.integers(sample.ts_ns)
    writer.integers(sample.slowest.view(np.uint8))
    writer.floats(sample.values[:, :stages].T)
    writer.floats(sample.values[:, stages:].T)


def _read_sample(
    reader: Reader, ids: tuple[str, ...], groups: int, stages: int, covariates: int
) -> Sample:
    group = _read_runs(reader, groups)
    if len(group) != len(ids):
        raise WireError(f"{len(ids)} request ids for {len(group)} sampled requests")
    return Sample(
        tau=reader.integers(np.uint64, groups),
        group=group,
        hash=reader.integers(np.uint64, len(ids)),
        ids=ids,
        ts_ns=reader.integers(np.int64, len(ids)),
        slowest=reader.integers(np.uint8, len(ids), below=2).view(np.bool_),
        values=np.concatenate(
            [_read_columns(reader, len(ids), columns) for columns in (stages, covariates)], axis=1
        ),
    )


def _read_columns(reader: Reader, rows: int, columns: int) -> NDArray[np.float64]:
    return np.ascontiguousarray(reader.floats(rows * columns).reshape(columns, rows).T)


def _write_runs(writer: Writer, ascending: NDArray[np.int32], runs: int) -> None:
    """Write an ascending index as how often each number occurs."""
    writer.integers(np.bincount(ascending, minlength=runs))


def _read_runs(reader: Reader, runs: int) -> NDArray[np.int32]:
    lengths = reader.integers(np.int64, runs, below=MOST_VALUES)
    if int(lengths.sum()) > MOST_VALUES:
        raise WireError(f"runs of {int(lengths.sum())} rows, at most {MOST_VALUES} are allowed")
    return np.repeat(np.arange(runs, dtype=np.int32), lengths)


def _steps(run: NDArray[np.int32], bucket: NDArray[np.int16]) -> NDArray[np.int64]:
    """Return the difference of each bucket to the one before it in the run, or to 0."""
    steps = bucket.astype(np.int64)
    steps[1:] -= bucket[:-1]
    first = _first(run)
    steps[first] = bucket[first]
    return steps


def _walk(run: NDArray[np.int32], steps: NDArray[np.int64], below: int) -> NDArray[np.int16]:
    """Return the buckets that `_steps` was given."""
    first = _first(run)
    total = np.cumsum(steps)
    before = (total - steps)[first]
    bucket = total - np.repeat(before, np.diff(first, append=len(run)))
    if len(bucket) and not 0 <= int(bucket.min()) <= int(bucket.max()) < below:
        raise WireError("a bucket that the sketch does not have")
    return bucket.astype(np.int16)


def _first(run: NDArray[np.int32]) -> NDArray[np.intp]:
    """Return where each run of equal neighbours begins."""
    begins = np.ones(len(run), np.bool_)
    np.not_equal(run[1:], run[:-1], out=begins[1:])
    return np.flatnonzero(begins)


def _cohort(pairs: Any) -> Cohort:
    return tuple((_string(name), _string(value)) for name, value in pairs)


def _strings(values: Any) -> tuple[str, ...]:
    if set(map(type, values)) - {str}:
        raise WireError("a name is not text")
    return tuple(values)


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise WireError(f"a name is {value!r}")
    return value


def _whole(value: Any) -> int:
    if not isinstance(value, int):
        raise WireError(f"a count is {value!r}")
    return value


def _size(value: Any) -> int:
    size = _whole(value)
    if not 0 <= size <= MOST_VALUES:
        raise WireError(f"{size} groups")
    return size
