// Every service on a line.

import { ask, keepFresh, say } from "./live.js";
import { spark } from "./chart.js";
import { make, name, pill, table } from "./dom.js";
import { count, duration, ms, pct, time } from "./format.js";
import { query } from "./look.js";

const body = document.querySelector("#services .body");
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
  const search = zone ? `?${new URLSearchParams({ zone })}` : "";
  const link = make("a", { href: `/services/${encodeURIComponent(row.service)}${search}`, "data-key": row.service }, name(row.service, 60));
  const firing = row.firing ? make("a", { href: "/alerts", class: "over" }, ` ${row.firing} firing`) : null;
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

function show({ services }) {
  if (!services.length) {
    summary.textContent = "No service yet.";
    body.replaceChildren(make("p", { class: "state" }, "Nothing was recorded yet. Send records to the request topic; the page shows them as they come."));
    return;
  }
  services.sort((a, b) => ORDER.indexOf(a.verdict ?? null) - ORDER.indexOf(b.verdict ?? null) || a.service.localeCompare(b.service));
  const bad = services.filter((row) => row.verdict === "breach").length;
  summary.textContent = `${services.length} ${services.length === 1 ? "service" : "services"}, ${bad ? `${bad} in breach` : "none in breach"}`;
  const focus = document.activeElement?.dataset?.key;
  body.replaceChildren(table(COLUMNS, services));
  body.firstChild.setAttribute("aria-label", "Services");
  for (const row of services) spark(lines.get(row.service), row.spark, row.slo_p99_ms);
  if (focus) body.querySelector(`[data-key="${CSS.escape(focus)}"]`)?.focus();
}

keepFresh(async () => {
  try {
    show(await ask("/data/services"));
    say("");
  } catch (error) {
    say(error.message);
    if (summary.textContent === "Loading…") summary.textContent = "";
  }
});
