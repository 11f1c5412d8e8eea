-- What the audit agent says: rolling audits, alerts, deploys; and the lives of source topics.
-- Writing the same row again replaces it; read with FINAL, or through the views.
CREATE TABLE IF NOT EXISTS audits
(
    service LowCardinality(String),
    window_s UInt32 COMMENT 'length of the window',
    end DateTime64(3, 'UTC') COMMENT 'end of the window, event time',
    version UInt64,
    verdict LowCardinality(String) COMMENT 'ok, at_risk, breach, insufficient, no_data',
    requests UInt64,
    failed UInt64,
    p50_ms Nullable(Float64),
    p95_ms Nullable(Float64),
    p99_ms Nullable(Float64),
    max_ms Nullable(Float64),
    slo_p50_ms Nullable(Float64),
    slo_p95_ms Nullable(Float64),
    slo_p99_ms Nullable(Float64),
    tail_driver LowCardinality(String),
    payload String CODEC(ZSTD(3)) COMMENT 'the whole audit as JSON'
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(end)
ORDER BY (service, window_s, end);

CREATE TABLE IF NOT EXISTS audit_stages
(
    service LowCardinality(String),
    window_s UInt32,
    end DateTime64(3, 'UTC'),
    version UInt64,
    stage LowCardinality(String),
    n UInt64,
    p50_ms Nullable(Float64),
    p95_ms Nullable(Float64),
    p99_ms Nullable(Float64),
    mean_fast_ms Nullable(Float64) COMMENT 'mean of the stage in requests of the fast band',
    mean_slow_ms Nullable(Float64) COMMENT 'mean of the stage in requests of the slow band',
    delta_ms Nullable(Float64),
    tail_share_pct Nullable(Float64)
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(end)
ORDER BY (service, window_s, end, stage);

CREATE TABLE IF NOT EXISTS audit_cohorts
(
    service LowCardinality(String),
    window_s UInt32,
    end DateTime64(3, 'UTC'),
    version UInt64,
    dimension LowCardinality(String),
    value String,
    n UInt64,
    p99_ms Nullable(Float64),
    delta_ms Nullable(Float64),
    slow_share_pct Nullable(Float64),
    traffic_share_pct Nullable(Float64)
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(end)
ORDER BY (service, window_s, end, dimension, value);

CREATE TABLE IF NOT EXISTS alerts
(
    service LowCardinality(String),
    at DateTime64(9, 'UTC') COMMENT 'event time of the change',
    alert LowCardinality(String) COMMENT 'such as p99',
    state LowCardinality(String) COMMENT 'firing or resolved',
    reason String,
    measured_ms Nullable(Float64),
    slo_ms Nullable(Float64),
    tail_driver LowCardinality(String),
    alert_id String COMMENT 'the same for the firing and the resolution of one breach',
    payload String CODEC(ZSTD(3)) COMMENT 'the whole message as JSON'
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(at)
ORDER BY (service, alert, at, state, alert_id);

CREATE TABLE IF NOT EXISTS deploys
(
    service LowCardinality(String),
    env LowCardinality(String),
    version String COMMENT 'what was deployed',
    at DateTime64(9, 'UTC') COMMENT 'when it was first announced',
    last DateTime64(9, 'UTC') COMMENT 'when it was last announced',
    kind LowCardinality(String) COMMENT 'deploy or scale_up'
)
ENGINE = ReplacingMergeTree(last)
ORDER BY (service, env, version, at);

CREATE TABLE IF NOT EXISTS topics
(
    topic String,
    topic_id String COMMENT 'the id that the broker gave this life of the topic',
    incarnation UInt32
)
ENGINE = ReplacingMergeTree
ORDER BY (topic, topic_id);
