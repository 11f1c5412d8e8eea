-- Views over panes. They merge any panes, cohorts and stages: percentiles are nearest-rank on the
-- merged sketches and equal those of the audits bit for bit; averages of percentiles never happen.
-- Filter on service, stage and start (or pane) outside: the filter reaches the table.
--
-- A bucket i stands for the value whose float64 bits are ((i + 64832) << 46) | (1 << 45), and is
-- clipped to the exact minimum and maximum.

-- Rows of stages whose version is that of the pane's newest header.
CREATE OR REPLACE VIEW current_panes AS
SELECT p.*
FROM (SELECT * FROM panes FINAL WHERE stage != '(pane)') AS p
INNER JOIN (SELECT service, pane, version FROM panes FINAL WHERE stage = '(pane)') AS h
    USING (service, pane, version);

-- latency(window = 60): a row a service, stage and window. Stages hold successes only.
CREATE OR REPLACE VIEW latency AS
SELECT
    service, stage, start, n, requests, failed, mean_ms, min_ms,
    ms[1] AS p50_ms, ms[2] AS p90_ms, ms[3] AS p95_ms, ms[4] AS p99_ms, ms[5] AS p999_ms, max_ms
FROM
(
    SELECT
        p.service AS service,
        p.stage AS stage,
        toStartOfInterval(p.pane, toIntervalSecond({window:UInt32})) AS start,
        sum(p.n) AS n,
        if(stage = 'total', sum(p.requests), NULL) AS requests,
        if(stage = 'total', sum(p.failed), NULL) AS failed,
        sum(p.sum_ns) / 1e6 / nullIf(n, 0) AS mean_ms,
        if(n > 0, min(p.min_ms), NULL) AS min_ms,
        if(n > 0, max(p.max_ms), NULL) AS max_ms,
        arrayMap(
            i -> if(n = 0, NULL, least(greatest(reinterpretAsFloat64(bitOr(bitShiftLeft(toUInt64(i + 64832), 46), bitShiftLeft(toUInt64(1), 45))), min_ms), max_ms)),
            quantilesExactWeightedArray(0.5, 0.9, 0.95, 0.99, 0.999)(p.b, p.c)) AS ms
    FROM current_panes AS p
    GROUP BY service, stage, start
)
WHERE n > 0 OR requests > 0;

-- latency_by_cohort(window = 60): the same for each cohort.
CREATE OR REPLACE VIEW latency_by_cohort AS
SELECT
    service, stage, cohort, dims, start, n, requests, failed, mean_ms, min_ms,
    ms[1] AS p50_ms, ms[2] AS p90_ms, ms[3] AS p95_ms, ms[4] AS p99_ms, ms[5] AS p999_ms, max_ms
FROM
(
    SELECT
        p.service AS service,
        p.stage AS stage,
        p.cohort AS cohort,
        any(p.dims) AS dims,
        toStartOfInterval(p.pane, toIntervalSecond({window:UInt32})) AS start,
        sum(p.n) AS n,
        if(stage = 'total', sum(p.requests), NULL) AS requests,
        if(stage = 'total', sum(p.failed), NULL) AS failed,
        sum(p.sum_ns) / 1e6 / nullIf(n, 0) AS mean_ms,
        if(n > 0, min(p.min_ms), NULL) AS min_ms,
        if(n > 0, max(p.max_ms), NULL) AS max_ms,
        arrayMap(
            i -> if(n = 0, NULL, least(greatest(reinterpretAsFloat64(bitOr(bitShiftLeft(toUInt64(i + 64832), 46), bitShiftLeft(toUInt64(1), 45))), min_ms), max_ms)),
            quantilesExactWeightedArray(0.5, 0.9, 0.95, 0.99, 0.999)(p.b, p.c)) AS ms
    FROM current_panes AS p
    GROUP BY service, stage, cohort, start
)
WHERE n > 0 OR requests > 0;

-- percentile(q = 0.999, window = 60): any percentile.
CREATE OR REPLACE VIEW percentile AS
SELECT service, stage, start, n, ms
FROM
(
    SELECT
        p.service AS service,
        p.stage AS stage,
        toStartOfInterval(p.pane, toIntervalSecond({window:UInt32})) AS start,
        sum(p.n) AS n,
        least(
            greatest(
                reinterpretAsFloat64(bitOr(
                    bitShiftLeft(toUInt64(quantileExactWeightedArray({q:Float64})(p.b, p.c) + 64832), 46),
                    bitShiftLeft(toUInt64(1), 45))),
                min(p.min_ms)),
            max(p.max_ms)) AS ms
    FROM current_panes AS p
    GROUP BY service, stage, start
)
WHERE n > 0;

-- latency_of(service = 'chat', from = '2026-03-02 10:00:00', to = '2026-03-02 11:00:00'): a row a
-- stage, over panes that start in [from, to). Times are UTC, in any usual notation.
CREATE OR REPLACE VIEW latency_of AS
SELECT
    stage, n, requests, failed, mean_ms, min_ms,
    ms[1] AS p50_ms, ms[2] AS p90_ms, ms[3] AS p95_ms, ms[4] AS p99_ms, ms[5] AS p999_ms, max_ms
FROM
(
    SELECT
        p.stage AS stage,
        sum(p.n) AS n,
        if(stage = 'total', sum(p.requests), NULL) AS requests,
        if(stage = 'total', sum(p.failed), NULL) AS failed,
        sum(p.sum_ns) / 1e6 / nullIf(n, 0) AS mean_ms,
        if(n > 0, min(p.min_ms), NULL) AS min_ms,
        if(n > 0, max(p.max_ms), NULL) AS max_ms,
        arrayMap(
            i -> if(n = 0, NULL, least(greatest(reinterpretAsFloat64(bitOr(bitShiftLeft(toUInt64(i + 64832), 46), bitShiftLeft(toUInt64(1), 45))), min_ms), max_ms)),
            quantilesExactWeightedArray(0.5, 0.9, 0.95, 0.99, 0.999)(p.b, p.c)) AS ms
    FROM current_panes AS p
    WHERE p.service = {service:String}
        AND p.pane >= parseDateTimeBestEffort({from:String}, 'UTC')
        AND p.pane < parseDateTimeBestEffort({to:String}, 'UTC')
    GROUP BY stage
)
WHERE n > 0 OR requests > 0;

-- end_to_end(window = 60): percentiles of all requests, a failure being slower than any success.
-- NULL: that percentile is a failure, and `failures_from_pct` says from which percentile on they are.
CREATE OR REPLACE VIEW end_to_end AS
SELECT
    service, start, requests, failed,
    arrayMap(
        i -> if(i = 32767, NULL, least(greatest(reinterpretAsFloat64(bitOr(bitShiftLeft(toUInt64(i + 64832), 46), bitShiftLeft(toUInt64(1), 45))), min_ms), max_ms)),
        buckets) AS ms,
    ms[1] AS p50_ms, ms[2] AS p95_ms, ms[3] AS p99_ms,
    if(failed > 0, 100 * (1 - failed / requests), NULL) AS failures_from_pct
FROM
(
    SELECT
        p.service AS service,
        toStartOfInterval(p.pane, toIntervalSecond({window:UInt32})) AS start,
        sum(p.requests) AS requests,
        sum(p.failed) AS failed,
        min(p.min_ms) AS min_ms,
        max(p.max_ms) AS max_ms,
        quantilesExactWeightedArray(0.5, 0.95, 0.99)(arrayPushBack(p.b, toInt16(32767)), arrayPushBack(p.c, p.failed)) AS buckets
    FROM current_panes AS p
    WHERE p.stage = 'total'
    GROUP BY service, start
)
WHERE requests > 0;

-- slo_compliance(window = 3600, budget_pct = 1): exact counts of requests slower than each promised
-- latency, or failed; burn_rate 1 spends the budget exactly.
CREATE OR REPLACE VIEW slo_compliance AS
SELECT
    service, start, threshold_ms, requests, bad,
    100 * (requests - bad) / requests AS good_pct,
    bad / requests / ({budget_pct:Float64} / 100) AS burn_rate
FROM
(
    SELECT
        p.service AS service,
        toStartOfInterval(p.pane, toIntervalSecond({window:UInt32})) AS start,
        threshold_ms,
        sum(p.requests) AS requests,
        sum(bad_here) AS bad
    FROM current_panes AS p
    ARRAY JOIN p.thresholds_ms AS threshold_ms, p.over AS bad_here
    WHERE p.stage = 'total'
    GROUP BY service, start, threshold_ms
)
WHERE requests > 0;

-- ledger(window = 60): what became of every record, by reason.
CREATE OR REPLACE VIEW ledger AS
SELECT
    p.service AS service,
    toStartOfInterval(p.pane, toIntervalSecond({window:UInt32})) AS start,
    reason,
    sum(count_here) AS records
FROM (SELECT * FROM panes FINAL WHERE stage = '(pane)') AS p
ARRAY JOIN mapKeys(p.ledger) AS reason, mapValues(p.ledger) AS count_here
GROUP BY service, start, reason;

-- alerts_open: the newest change of each alert that has not been resolved.
CREATE OR REPLACE VIEW alerts_open AS
SELECT *
FROM (SELECT * FROM alerts FINAL ORDER BY at DESC, state DESC LIMIT 1 BY service, alert)
WHERE state = 'firing';
