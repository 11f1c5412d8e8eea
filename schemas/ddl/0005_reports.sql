-- The full report: what the rolling audits of five minutes, an hour and a day say beyond percentiles.
-- A row belongs to the audit that has its version; those of an earlier drawing may lie beside it.
ALTER TABLE audit_stages ADD COLUMN IF NOT EXISTS role LowCardinality(String) COMMENT 'stage, container, parallel or unattributed';
ALTER TABLE audit_stages ADD COLUMN IF NOT EXISTS p99_share_pct Nullable(Float64) COMMENT 'part of the total in the slow band';
ALTER TABLE audit_stages ADD COLUMN IF NOT EXISTS tail_only Nullable(Bool) COMMENT 'steady median, blown p99';
ALTER TABLE audit_stages ADD COLUMN IF NOT EXISTS delta_low_ms Nullable(Float64) COMMENT '95 % interval of delta_ms';
ALTER TABLE audit_stages ADD COLUMN IF NOT EXISTS delta_high_ms Nullable(Float64);
ALTER TABLE audit_cohorts ADD COLUMN IF NOT EXISTS p99_without_ms Nullable(Float64) COMMENT 'p99 of all requests but these';

CREATE TABLE IF NOT EXISTS audit_shape
(
    service LowCardinality(String),
    window_s UInt32,
    end DateTime64(3, 'UTC'),
    version UInt64,
    stage LowCardinality(String),
    covariate LowCardinality(String),
    n UInt64,
    r2 Nullable(Float64),
    slope_ms_per_unit Nullable(Float64),
    intercept_ms Nullable(Float64),
    quadratic_r2 Nullable(Float64),
    loglog_r2 Nullable(Float64),
    exponent Nullable(Float64)
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(end)
ORDER BY (service, window_s, end, stage, covariate);

CREATE TABLE IF NOT EXISTS audit_causes
(
    service LowCardinality(String),
    window_s UInt32,
    end DateTime64(3, 'UTC'),
    version UInt64,
    cause LowCardinality(String),
    stage LowCardinality(String),
    cohort String COMMENT 'such as route=bulk; empty: all',
    covariate LowCardinality(String),
    score Float64,
    evidence Array(String),
    against Array(String),
    missing Array(String) COMMENT 'what to measure next'
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(end)
ORDER BY (service, window_s, end, cause, stage, cohort, covariate);

CREATE TABLE IF NOT EXISTS audit_optimizations
(
    service LowCardinality(String),
    window_s UInt32,
    end DateTime64(3, 'UTC'),
    version UInt64,
    fix LowCardinality(String) COMMENT 'name in the catalogue',
    text String,
    cause LowCardinality(String),
    p99_saved_ms Nullable(Float64) COMMENT 'an estimate',
    saved_low_ms Nullable(Float64),
    saved_high_ms Nullable(Float64),
    hours Float64,
    ms_per_hour Nullable(Float64),
    quality_risk LowCardinality(String),
    reversible Bool,
    horizon LowCardinality(String)
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(end)
ORDER BY (service, window_s, end, fix, cause);

-- Evidence of longer spans, merged from panes so that a report over months reads few rows.
-- A rollup counts only while its fingerprint is that of the panes and deploys it was merged from;
-- one that is stale or missing is made anew from what is below it. Dropping the table loses nothing.
CREATE TABLE IF NOT EXISTS rollups
(
    service LowCardinality(String),
    span_s UInt32 COMMENT '300, 3600 or 86400',
    start DateTime('UTC') COMMENT 'event time',
    fingerprint UInt64 COMMENT 'of the versions of all panes in the span, and of its deploys',
    made DateTime64(3, 'UTC') COMMENT 'when it was merged; the newest counts',
    payload String CODEC(NONE) COMMENT 'the evidence, compressed by whoever wrote it'
)
ENGINE = ReplacingMergeTree(made)
PARTITION BY toYYYYMM(start)
ORDER BY (service, span_s, start);
