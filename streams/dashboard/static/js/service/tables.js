// The panels that are tables and lists.

import { make, name, table } from "../dom.js";
import { count, iso, ms, number, pct, signedMs, signedPct, time } from "../format.js";
import { addFilters } from "../look.js";

const NOTHING = "No request of this choice in this range.";

const text = (value, length = 400) => make("span", { class: "long" }, name(value, length));
const list = (title, lines) => lines?.length ? make("div", {}, make("h3", {}, title), make("ul", {}, lines.map((line) => make("li", {}, name(line, 600))))) : null;

/** The dimension-value pairs of a row; none where they cannot be told apart. */
function pairs(row) {
  const dimensions = row.dimension.split("+");
  const values = dimensions.length === 1 ? [row.value] : row.value.split("+");
  if (row.dimension === "cohort" || dimensions.length !== values.length) return null;
  return dimensions.map((dimension, at) => [dimension, values[at]]);
}

function filter(row) {
  const wanted = pairs(row);
  if (!wanted) return text(row.value, 120);
  return make("button", { type: "button", class: "plain", "data-key": `${row.dimension}=${row.value}`.slice(0, 300), title: "Look at these requests alone",
    on: { click: () => addFilters(wanted) } }, name(row.value, 60));
}

export function cohorts(panel, analysis) {
  const rows = analysis.cohorts;
  if (!rows.length) return panel.say(analysis.verdict === "no_data" ? NOTHING : "The records name no cohort, such as a route.");
  panel.note("Most over-represented among slow requests first. Choose a value to look at it alone.");
  panel.show(rows, table([
    { name: "Dimension", cell: (row) => make("span", { class: "narrow" }, name(row.dimension, 60)) },
    { name: "Value", cell: filter },
    { name: "Requests", n: true, cell: (row) => count(row.n) },
    { name: "P99", n: true, cell: (row) => ms(row.p99_ms) },
    { name: "Less all", n: true, cell: (row) => make("span", { class: row.delta_ms > 0 && row.slow_share_pct > row.traffic_share_pct ? "over" : null }, signedMs(row.delta_ms)) },
    { name: "P99 without", n: true, cell: (row) => ms(row.p99_without_ms) },
    { name: "Of slow", n: true, cell: (row) => pct(row.slow_share_pct) },
    { name: "Of all", n: true, cell: (row) => pct(row.traffic_share_pct) },
  ], rows.slice(0, 100)));
}

export function diagnosis(panel, analysis) {
  if (analysis.verdict === "no_data") return panel.say(NOTHING);
  const { recommendation, causes, regressions, warnings, refused } = analysis;
  const cause = causes[0];
  panel.note(`Of the whole range: ${count(analysis.provenance.n)} requests, ${count(analysis.provenance.n_failed)} failed. The verdict above is of the last minute.`);
  panel.show([analysis],
    make("p", { class: "headline" }, name(analysis.headline, 1200)),
    make("div", { class: "lists" },
      list("Slower than its inputs explain", regressions.flatMap((one) => [since(one, analysis), ...one.signals])),
      cause ? list(`Cause: ${cause.cause.replaceAll("_", " ")}`, cause.evidence) : null,
      recommendation ? list("What to do", steps(recommendation)) : null,
      refused ? list("Not recommended", [refused]) : null,
      list("Before trusting it", warnings)));
}

function steps({ reason, first_step: first, mitigation }) {
  const meanwhile = mitigation !== first && mitigation;
  return [reason, first && `First: ${first}`, meanwhile && `Until then: ${meanwhile}`].filter(Boolean);
}

export function causes(panel, analysis) {
  const rows = analysis.causes;
  if (!rows.length) return panel.say(analysis.verdict === "no_data" ? NOTHING : analysis.refused || "No cause was looked for.");
  panel.note("The part of the tail that the evidence ties to each.");
  panel.show(rows, make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Causes" }, rows.map((row) => make("div", {},
    make("h3", {}, `${row.cause.replaceAll("_", " ")} `, row.stage ? name(`in ${row.stage}`, 80) : null, " ", make("span", { class: "soft" }, pct(100 * row.score)), " ",
      make("meter", { min: 0, max: 1, value: row.score, "aria-label": `score of ${row.cause}` })),
    row.cohort ? make("p", {}, "Cohort: ", name(row.cohort, 120)) : null,
    list("For it", row.evidence), list("Against it", row.against), list("To be measured", row.missing)))));
}

export function fixes(panel, analysis) {
  const rows = analysis.optimizations;
  if (!rows.length) return panel.say(analysis.verdict === "no_data" ? NOTHING : analysis.refused || "No fix of the catalogue fits a cause that was found.");
  panel.note("By milliseconds of P99 saved for an hour of work. Savings are estimates.");
  panel.show(rows, table([
    { name: "Fix", cell: (row) => text(row.fix) },
    { name: "Cause", cell: (row) => row.cause.replaceAll("_", " ") },
    { name: "P99 saved", n: true, cell: (row) => make("span", {}, row.p99_saved_ms === null ? "not measured" : ms(row.p99_saved_ms), make("br"), make("small", { class: "soft" }, row.interval_ms ? `${number(row.interval_ms[0])} to ${number(row.interval_ms[1])}` : "")) },
    { name: "Hours", n: true, cell: (row) => number(row.hours) },
    { name: "ms an hour", n: true, cell: (row) => number(row.ms_per_hour) },
    { name: "Quality risk", cell: (row) => row.quality_risk },
    { name: "Reversible", cell: (row) => row.reversible ? "yes" : "no" },
    { name: "See that it worked", cell: (row) => text(row.verify) },
  ], rows));
}

export function requests(panel, data) {
  const rows = data.requests;
  if (!rows.length) return panel.say(NOTHING);
  panel.note("Of those that panes keep whole.");
  const flat = rows.map((row) => ({ request: row.id, at: iso(row.at_ms), cohort: row.cohort, total_ms: row.total_ms, ...Object.fromEntries(row.stages_ms.map(([stage, value]) => [`${stage}_ms`, value])) }));
  const slowest = (row) => [...row.stages_ms].sort((a, b) => b[1] - a[1]).slice(0, 3).map(([stage, value]) => make("span", { class: "part" }, name(stage, 40), ` ${ms(value)}`));
  panel.show(flat, table([
    { name: "Request", cell: (row) => make("code", {}, name(row.id, 60)) },
    { name: "At", cell: (row) => time(row.at_ms) },
    { name: "Total", n: true, cell: (row) => ms(row.total_ms) },
    { name: "Most of it", cell: (row) => row.stages_ms.length ? make("span", {}, slowest(row)) : "–" },
    { name: "Cohort", cell: (row) => text(row.cohort || "–", 160) },
  ], rows));
}

export function ledger(panel, analysis) {
  const rows = Object.entries(analysis.ledger).map(([reason, records]) => ({ reason, records }));
  if (!rows.length) return panel.say("No record in this range.");
  rows.sort((a, b) => b.records - a.records);
  panel.note("Of the whole service, whatever cohort is chosen.");
  panel.show(rows, table([
    { name: "Reason", cell: (row) => row.reason.replaceAll("_", " ") },
    { name: "Records", n: true, cell: (row) => count(row.records) },
  ], rows));
}

const STATES = { started: "goes on", spread: "goes on", ended: "ended", accepted: "accepted as normal", lost: "watched no more" };

/** Why a stage regressed: as it was told, else what the report of the range says; never its input. */
function causeOf({ stage, cause }, analysis) {
  const found = cause || analysis?.causes.find((one) => one.stage === stage && one.cause !== "input_shape")?.cause;
  return found ? `cause: ${found.replaceAll("_", " ")}` : "cause: not known";
}

/** What is known of a regression. */
function regressed(one, analysis) {
  const { state, effect_ms: by, effect_pct: share, expected_ms: expected, cohorts: where, deploy } = one;
  return [
    `${STATES[state] ?? state}: ${signedMs(by)} (${signedPct(share)}) against ${ms(expected)} for the same inputs`,
    where.length && `in ${where.join("; ")}`, deploy && `after the deploy of ${deploy}`, causeOf(one, analysis),
  ].filter(Boolean).join(", ");
}

/** The same in short, of a report. */
const since = (one, analysis) => `${one.stage} ${signedPct(one.effect_pct)} since ${time(Date.parse(one.onset))}${one.ended ? ` until ${time(Date.parse(one.ended))}` : ""}; ${causeOf(one, analysis)}`;

export function happenings(panel, data, analysis) {
  const { deploys, cold, cold_min: coldMin, suspected, anomalies, alerts } = data.happenings;
  const NS = 1e6;
  const rows = [
    ...deploys.map((one) => ({ at_ms: one.at_ns / NS, kind: one.kind === "scale_up" ? "scale-up" : "deploy", what: one.version, until_ms: null, more: one.env })),
    ...cold.map((one) => ({ at_ms: one.start_ns / NS, kind: "cold window", what: one.version, until_ms: one.end_ns / NS, more: `${number(coldMin)} min after a ${one.kind.replace("_", "-")}` })),
    ...(suspected ?? []).map((one) => ({ at_ms: one.at_ms, kind: "cold start", what: one.instance, until_ms: null, more: "announced by no deploy" })),
    ...(anomalies ?? []).map((one) => ({ at_ms: one.onset_s * 1000, kind: "regression", what: one.stage, until_ms: one.ended_s ? one.ended_s * 1000 : null,
      more: regressed(one, analysis) })),
    ...alerts.map((one) => ({ at_ms: one.at_ms, kind: `alert ${one.after}`, what: one.alert, until_ms: null, more: one.detail })),
  ].sort((a, b) => b.at_ms - a.at_ms);
  panel.note(anomalies === null ? "Regressions: not measured yet." : "");
  if (!rows.length) return panel.say("Nothing happened in this range.");
  const flat = rows.map(({ at_ms, until_ms, ...rest }) => ({ at: iso(at_ms), until: until_ms ? iso(until_ms) : null, ...rest }));
  panel.show(flat, table([
    { name: "At", cell: (row) => time(row.at_ms) },
    { name: "Until", cell: (row) => time(row.until_ms) },
    { name: "What", cell: (row) => row.kind },
    { name: "Of", cell: (row) => text(row.what, 120) },
    { name: "More", cell: (row) => text(row.more || "–") },
  ], rows));
}
