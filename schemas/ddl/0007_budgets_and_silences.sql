-- What is left of error budgets as time goes, and who does not want to hear of what.
-- Written again a row replaces itself; of a silence the newest version counts. Read with FINAL.
CREATE TABLE IF NOT EXISTS budgets
(
    service LowCardinality(String),
    objective LowCardinality(String) COMMENT 'its alert is called slo: and this name',
    at DateTime64(3, 'UTC') COMMENT 'event time; one row of an objective in 10 s at most',
    total UInt64 COMMENT 'events of the period so far: requests, or slices of time',
    bad UInt64,
    target_pct Float64 COMMENT 'share of events that must be good',
    left_pct Nullable(Float64) COMMENT 'of the budget; below 0 when more was spent',
    corrected_pct Nullable(Float64) COMMENT 'the same without maintenance, where there was any',
    burn_rate Nullable(Float64) COMMENT 'of the newest events; 1 spends the budget in the period',
    exhausted_at Nullable(DateTime64(3, 'UTC')) COMMENT 'when it is spent at this rate',
    status LowCardinality(String) COMMENT 'of its alert: resolved, pending, firing, no_data, muted'
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(at)
ORDER BY (service, objective, at);

CREATE TABLE IF NOT EXISTS silences
(
    id String,
    service LowCardinality(String),
    alert String COMMENT 'name of the one alert that is muted; empty: all of the service',
    begins DateTime64(3, 'UTC') COMMENT 'by the clock on the wall',
    ends DateTime64(3, 'UTC') COMMENT 'by the clock on the wall',
    reason String COMMENT 'why, for a person',
    version UInt64 COMMENT 'grows when it is changed, such as ended early'
)
ENGINE = ReplacingMergeTree(version)
ORDER BY id;
