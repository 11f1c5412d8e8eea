// Questions in SQL, with the answer as a table and as a chart.

import { ask, listen, say } from "./live.js";
import { stageColour } from "./chart.js";
import { make, name } from "./dom.js";
import { count, number, time } from "./format.js";
import { query, setLook, onLook } from "./look.js";
import { Panel } from "./panel.js";

const panel = new Panel("result", "tailbudget-sql");
const field = document.getElementById("sql-text");
const said = document.getElementById("said");
const services = document.getElementById("sql-service");
const run = document.getElementById("run");

const MOST_LINES = 12;
const RANGE_S = 6 * 3600; // of a ready query: minutes of a few stages fit into one answer
const quoted = (text) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
const stamp = (second) => `'${new Date(second * 1000).toISOString().slice(0, 19).replace("T", " ")}'`;

let known = [];

function filled(sql) {
  const row = known.find((one) => one.service === services.value);
  const until = row ? row.newest_s + row.pane_s : Math.floor(Date.now() / 1000);
  return sql.replaceAll("{SERVICE}", quoted(row?.service ?? "chat")).replaceAll("{FROM}", stamp(until - RANGE_S)).replaceAll("{TO}", stamp(until));
}

const isTime = (type) => /DateTime/.test(type);
const isNumber = (type) => /^(Nullable\()?(LowCardinality\()?(U?Int|Float|Decimal)/.test(type);

async function answer() {
  const text = query().get("q") ?? "";
  field.value = text;
  if (!text.trim()) return panel.say("Choose a ready query, or write one.");
  panel.say("Asking ClickHouse", "loading");
  run.disabled = true;
  said.textContent = "asking…";
  const began = performance.now();
  try {
    const found = await ask("/sql", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ query: text }) });
    if (text !== (query().get("q") ?? "")) return;
    const rows = found.rows.map((row) => Object.fromEntries(found.columns.map((column, at) => [column, row[at]])));
    said.textContent = `${count(rows.length)} rows${found.truncated ? ", and there are more: use LIMIT and OFFSET" : ""} in ${Math.round(performance.now() - began)} ms`;
    show(found, rows);
  } catch (error) {
    said.textContent = "";
    panel.say(error.message, "error");
  } finally {
    run.disabled = false;
  }
}

/** What of an answer makes a chart: numbers over time or names, a line each of what else is named. */
function plan(found, rows) {
  const columns = found.columns.map((column, at) => ({ column, type: found.types[at] }));
  const along = columns.find((one) => isTime(one.type)) ?? columns.find((one) => !isNumber(one.type));
  const numbers = columns.filter((one) => isNumber(one.type) && !/^(n|requests|failed|threshold_ms)$/.test(one.column));
  if (!along || !numbers.length || rows.length < 1) return null;
  const split = isTime(along.type) ? columns.find((one) => one !== along && (!isNumber(one.type) || one.column === "threshold_ms")) : null;
  const value = numbers.find((one) => one.column === "p99_ms") ?? numbers[0];
  return { along, split, shown: split ? [value] : numbers.slice(0, 4), time: isTime(along.type) };
}

function show(found, rows) {
  if (!rows.length) return panel.say("The answer has no row.");
  const wanted = plan(found, rows);
  panel.note(wanted ? `The chart shows ${wanted.shown.map((one) => one.column).join(", ")}; the table has all.` : "There is nothing to draw; the table has all.");
  if (wanted) panel.draw(rows, () => option(wanted, rows), `${wanted.shown.map((one) => one.column).join(", ")} by ${wanted.along.column}`);
  panel.list(rows, { chart: Boolean(wanted) });
}

function option({ along, split, shown, time: timed }, rows) {
  const at = (row) => timed ? Date.parse(`${String(row[along.column]).replace(" ", "T")}Z`) : String(row[along.column]);
  const lines = new Map();
  for (const row of rows) {
    for (const one of shown) {
      const key = split ? String(row[split.column]) : one.column;
      if (!lines.has(key)) lines.set(key, []);
      lines.get(key).push([at(row), row[one.column]]);
    }
  }
  const kept = [...lines].slice(0, MOST_LINES);
  const spanMs = timed ? at(rows.at(-1)) - at(rows[0]) : 0;
  const shape = Math.abs(spanMs) < 1_800_000 ? "second" : Math.abs(spanMs) < 172_800_000 ? "minute" : "day";
  return {
    legend: { data: kept.map(([key]) => key), formatter: (text) => text.length > 24 ? `${text.slice(0, 23)}…` : text },
    grid: { left: 8, right: 30, top: 34, bottom: 4, containLabel: true },
    xAxis: timed ? { type: "time", axisLabel: { formatter: (value) => time(value, shape, "UTC") } } : { type: "category", data: rows.map(at), axisLabel: { width: 110, overflow: "truncate" } },
    yAxis: { type: "value" },
    tooltip: { trigger: "axis", formatter: (points) => points.length ? [timed ? `${time(points[0].axisValue, "whole", "UTC")} UTC` : String(points[0].name).slice(0, 60), ...points.slice(0, MOST_LINES).map((point) => `${point.seriesName.slice(0, 40)}  ${number(point.value[1])}`)].join("\n") : "" },
    series: kept.map(([key, points], index) => ({ name: key, type: timed ? "line" : "bar", symbol: points.length > 60 ? "none" : "circle", symbolSize: 4, color: stageColour(index), data: points })),
  };
}

function choose(text) {
  if (text === query().get("q")) answer();
  else setLook({ q: text || null });
}

document.getElementById("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  choose(field.value);
});
field.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) choose(field.value);
});
for (const button of document.querySelectorAll("[data-sql]")) {
  button.addEventListener("click", () => choose(filled(button.dataset.sql)));
}

async function start() {
  try {
    known = (await ask("/data/services")).services;
    services.replaceChildren(...known.map((row) => make("option", { value: row.service }, name(row.service, 60))));
    if (!known.length) say("Nothing was recorded yet: every query of a service has no row.");
  } catch (error) {
    say(error.message);
  }
  onLook(answer);
  listen(() => {}); // an answer stays until it is asked for again
  answer();
}

start();
