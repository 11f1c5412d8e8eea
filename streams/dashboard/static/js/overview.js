// Every service on a line.

import { ask, keepFresh, say } from "./live.js";
import { spark } from "./chart.js";
import { make, name, pill, table } from "./dom.js";
import { count, duration, iso, ms, pct, time } from "./format.js";
import { query } from "./look.js";
import { Panel } from "./panel.js";

const panel = new Panel("services");
const summary = document.getElementById("summary");
const ORDER = ["breach", "at_risk", "no_data", "insufficient", null, "ok"];

function percentile(row, key) {
  const value = row[`${key}_ms`];
  const target = row[`slo_${key}_ms`];
  const over = value !== null && target !== null && value > target;
  return make("span", {}, make("span", { class: over ? "over" : null }, over ? `▲ ${ms(value)}` : ms(value)),
    make("br"), make("small", { class: "soft" }, target === null || target === undefined ? "no SLO" : `SLO ${ms(target)}`));
}

function budget(row) {
  if (!row.budget) return make("span", { class: "soft" }, "not measured");
  const left = row.budget.left_pct;
  return make("span", {}, make("span", { class: left <= 0 ? "over" : null }, pct(left)), make("br"),
    make("small", { class: "soft" }, name(row.budget.objective, 30)));
}

function service(row) {
  const zone = query().get("zone");
  const kept = zone ? { zone } : {};
  const search = zone ? `?${new URLSearchParams(kept)}` : "";
  const link = make("a", { href: `/services/${encodeURIComponent(row.service)}${search}`, "data-key": row.service }, name(row.service, 60));
  const firing = row.firing ? make("a", { href: `/alerts?${new URLSearchParams({ ...kept, only: row.service, state: "firing" })}`, class: "over" }, ` ${row.firing} firing`) : null;
  return make("span", {}, link, firing);
}

function status(row) {
  const oldS = Date.now() / 1000 - row.newest_s - row.pane_s;
  const stale = oldS > 60 + 2 * row.pane_s;
  return make("span", {}, pill(row.verdict), stale ? make("small", { class: "soft" }, make("br"), `${duration(oldS)} old`) : null);
}

// A chart stays with its service, for each holds a canvas.
const lines = new Map();

function line(row) {
  if (!lines.has(row.service)) lines.set(row.service, make("div", { class: "spark" }));
  return lines.get(row.service);
}

const COLUMNS = [
  { name: "Service", cell: service },
  { name: "Status", cell: status },
  { name: "Budget left", cell: budget },
  { name: "P50", n: true, cell: (row) => percentile(row, "p50") },
  { name: "P95", n: true, cell: (row) => percentile(row, "p95") },
  { name: "P99", n: true, cell: (row) => percentile(row, "p99") },
  { name: "Last ten minutes", cell: line },
  { name: "Tail driver", cell: (row) => row.tail_driver ? name(row.tail_driver, 60) : make("span", { class: "soft" }, "none") },
  { name: "Requests", n: true, cell: (row) => make("span", {}, count(row.requests), make("br"), make("small", { class: "soft" }, `${count(row.failed)} failed`)) },
  { name: "Newest record", cell: (row) => time((row.newest_s + row.pane_s) * 1000) },
];

/** What is exported of a service. */
function figures({ service: name_, verdict, firing, budget: left, newest_s: newest, pane_s: pane, ...row }) {
  const kept = ["p50_ms", "p95_ms", "p99_ms", "slo_p50_ms", "slo_p95_ms", "slo_p99_ms", "requests", "failed", "tail_driver"];
  return { service: name_, verdict: verdict ?? null, firing, budget_left_pct: left?.left_pct ?? null,
    ...Object.fromEntries(kept.map((key) => [key, row[key] ?? null])), newest_record: iso((newest + pane) * 1000) };
}

function show({ services }) {
  if (!services.length) {
    summary.textContent = "No service yet.";
    panel.say("Nothing was recorded yet. Send records to the request topic; the page shows them as they come.");
    return;
  }
  services.sort((a, b) => ORDER.indexOf(a.verdict ?? null) - ORDER.indexOf(b.verdict ?? null) || a.service.localeCompare(b.service));
  const bad = services.filter((row) => row.verdict === "breach").length;
  summary.textContent = `${services.length} ${services.length === 1 ? "service" : "services"}, ${bad ? `${bad} in breach` : "none in breach"}`;
  panel.note("By the audits of the last minute; the worst first.");
  panel.show(services.map(figures), table(COLUMNS, services, { caption: "Services" }));
  for (const row of services) spark(lines.get(row.service), row.spark, row.slo_p99_ms);
}

keepFresh(async () => {
  try {
    show(await ask("/data/services"));
    say("");
  } catch (error) {
    say(error.message);
    if (summary.textContent === "Loading…") summary.textContent = "";
    if (panel.element.getAttribute("aria-busy") === "true") panel.say(error.message, "error");
  }
});
