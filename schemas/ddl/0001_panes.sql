-- Pane summaries: one row per (service, pane, cohort, stage), and one header row per (service, pane).
--
-- The rows of one (service, pane) are written in one block and carry one version. A newer version
-- replaces the older one whole: rows count only if their version is that of the pane's newest
-- header, so that a cohort which the newer version no longer has does not count either.
-- Read through the views, or with FINAL.
CREATE TABLE IF NOT EXISTS panes
(
    service LowCardinality(String),
    stage LowCardinality(String) COMMENT 'total, failed, unattributed, a stage of the records, or (pane) for the header',
    pane DateTime('UTC') CODEC(Delta(4), ZSTD(1)) COMMENT 'start of the pane, event time',
    cohort String CODEC(ZSTD(1)) COMMENT 'canonical text, such as route=chat,region=eu; empty: all together',
    version UInt64 CODEC(T64, ZSTD(1)),
    pane_s UInt32 CODEC(T64, ZSTD(1)) COMMENT 'length of the pane',
    dims Map(LowCardinality(String), String) COMMENT 'the cohort, by dimension',

    -- The sketch of the stage: weighted counts by bucket, and what is exact.
    n UInt64 CODEC(T64, ZSTD(1)) COMMENT 'values in the sketch, weighted',
    sum_ns Int64 CODEC(T64, ZSTD(1)),
    min_ms Float64 CODEC(ZSTD(1)) COMMENT '+inf where n is 0',
    max_ms Float64 CODEC(ZSTD(1)) COMMENT '-inf where n is 0',
    b Array(Int16) CODEC(Delta(2), ZSTD(1)) COMMENT 'buckets, 64 an octave from 2^-10 ms',
    c Array(UInt64) CODEC(T64, ZSTD(1)) COMMENT 'counts of the buckets',

    -- Co-moments of each covariate with the stage; x, x2, y: 3 means and 6 products a covariate.
    covariates Array(LowCardinality(String)),
    moment_n Array(UInt64) CODEC(T64, ZSTD(1)),
    moment_mean Array(Float64) CODEC(ZSTD(1)),
    moment_product Array(Float64) CODEC(ZSTD(1)),
    log_n Array(UInt64) CODEC(T64, ZSTD(1)),
    log_mean Array(Float64) CODEC(ZSTD(1)),
    log_product Array(Float64) CODEC(ZSTD(1)),

    -- Rows of stage 'total' only.
    requests UInt64 CODEC(T64, ZSTD(1)) COMMENT 'accepted requests with failures, weighted',
    failed UInt64 CODEC(T64, ZSTD(1)),
    thresholds_ms Array(Float64) CODEC(ZSTD(1)),
    over Array(UInt64) CODEC(T64, ZSTD(1)) COMMENT 'requests slower than each threshold, or failed',
    stages Array(LowCardinality(String)) COMMENT 'order of the stages in profile_ns and sample_values',
    profile_b Array(Int16) CODEC(Delta(2), ZSTD(1)) COMMENT 'tail profile: bucket of the total, 8 an octave',
    profile_n Array(UInt64) CODEC(T64, ZSTD(1)),
    profile_ns Array(Int64) CODEC(T64, ZSTD(1)) COMMENT 'sums of the stages, stage by stage within a bucket',
    profile_x Array(Float64) CODEC(ZSTD(1)) COMMENT 'sums of the covariates within a bucket',
    pair_n Array(UInt64) CODEC(T64, ZSTD(1)) COMMENT 'co-moments of covariates with covariates',
    pair_mean Array(Float64) CODEC(ZSTD(1)),
    pair_product Array(Float64) CODEC(ZSTD(1)),
    tau UInt64 CODEC(ZSTD(1)) COMMENT 'the sample holds every request whose hash is below',
    sample_hash Array(UInt64) CODEC(ZSTD(1)),
    sample_id Array(String) CODEC(ZSTD(1)),
    sample_ts_ns Array(Int64) CODEC(ZSTD(1)),
    sample_slowest Array(UInt8) CODEC(ZSTD(1)),
    sample_values Array(Float64) CODEC(ZSTD(1)) COMMENT 'stages, then covariates, of one request after another',

    -- The header row only.
    ledger Map(LowCardinality(String), UInt64) COMMENT 'what became of every record, by reason',
    sources Array(LowCardinality(String)) COMMENT 'topic:partition:incarnation',
    frontiers Array(UInt64) COMMENT 'offset of the source below which all its records are in the pane'
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(pane)
ORDER BY (service, stage, pane, cohort);
