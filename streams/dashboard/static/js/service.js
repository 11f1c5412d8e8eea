// One service: is it fine, if not what is it, since when, what to do.

import { ask, keepFresh, say } from "./live.js";
import { make, name, pill } from "./dom.js";
import { count, duration, ms, time, zoneName } from "./format.js";
import { asked, cohort, onLook, query, setLook } from "./look.js";
import { Panel } from "./panel.js";
import { burn } from "./service/burn.js";
import { heat } from "./service/heat.js";
import { latency } from "./service/latency.js";
import { shape } from "./service/shape.js";
import { stages } from "./service/stages.js";
import { causes, cohorts, diagnosis, fixes, happenings, ledger, requests } from "./service/tables.js";
import { waterfall } from "./service/waterfall.js";

const service = document.getElementById("service").dataset.service;
const FROM_SERIES = { latency, burn, heat, requests };
const FROM_ANALYSIS = { diagnosis, waterfall, cohorts, causes, fixes, ledger };
const panels = Object.fromEntries([...Object.keys(FROM_SERIES), "stages", "happenings", ...Object.keys(FROM_ANALYSIS), "shape"]
  .map((key) => [key, new Panel(key, service)]));

let series = null;
let analysis = null;

function ranges() {
  const now = query();
  const fixed = now.has("from");
  const last = fixed ? null : now.get("last") ?? "15m";
  for (const button of document.querySelectorAll("[data-last]")) {
    button.setAttribute("aria-pressed", String(button.dataset.last === last));
  }
  const shown = document.getElementById("range");
  if (!series) return;
  const { since_s: from, until_s: to, newest_s: newest, pane_s: pane } = series;
  const [begin, end] = [from, to].map((at) => time(at * 1000));
  const [day, clock] = end.split(", ");
  shown.textContent = `${begin} to ${begin.startsWith(`${day},`) ? clock : end} ${zoneName(to * 1000)}`;
  const steps = document.getElementById("steps");
  steps.hidden = false;
  steps.querySelector("[data-step='-1']").disabled = to <= series.oldest_s;
  steps.querySelector("[data-step='1']").disabled = to >= newest + pane;
  steps.querySelector("[data-step='0']").disabled = !fixed;
}

/** Look half a range earlier (-1) or later (1), or at the newest again (0). */
function move(step) {
  if (!series) return;
  const { since_s: from, until_s: to } = series;
  const by = step * Math.max(Math.round((to - from) / 2), 1);
  setLook(step ? { last: null, from: from + by, to: to + by } : { from: null, to: null });
}

function filters() {
  const chosen = cohort();
  const place = document.getElementById("filters");
  place.replaceChildren(...chosen.map((one) => make("span", { class: "chip" },
    make("span", {}, name(`${one.dimension} = ${one.value}`, 120)),
    make("button", { type: "button", "aria-label": `Remove the filter ${one.dimension}`.slice(0, 120),
      on: { click: () => setLook({ where: chosen.filter((other) => other !== one).map((other) => other.text) }) } }, "✕"))));
}

/** Show a verdict; one that is shown already is not told again to who listens to the page. */
function verdict(shown) {
  const place = document.getElementById("verdict");
  if (place.className === shown.className && place.textContent === shown.textContent) return;
  place.className = shown.className;
  place.textContent = shown.textContent;
}

/** Since when the verdict holds. */
function held({ verdict_since_ms: since, end_ms: end }) {
  const heldS = (end - since) / 1000;
  return heldS > 86_000 ? "for a day or longer" : `since ${time(since)} ${zoneName(since)} (${duration(heldS)})`;
}

function standing() {
  const { latest } = series;
  verdict(pill(latest?.verdict));
  const parts = latest
    ? [held(latest), `Last minute: P50 ${ms(latest.p50_ms)}, P95 ${ms(latest.p95_ms)}, P99 ${ms(latest.p99_ms)}`, `${count(latest.requests)} requests, ${count(latest.failed)} failed`, latest.tail_driver ? `tail driver ${latest.tail_driver.slice(0, 60)}` : "no tail driver"]
    : ["No audit yet; the first comes when a pane ends."];
  document.getElementById("now").textContent = parts.join(" · ");
  const oldS = Date.now() / 1000 - series.newest_s - series.pane_s;
  const stale = document.getElementById("stale");
  stale.hidden = oldS < 60 + 2 * series.pane_s;
  stale.textContent = `The newest record is ${duration(oldS)} old (${time((series.newest_s + series.pane_s) * 1000)}). The range ends there. Are records being sent, and is a worker running?`;
}

function paint(drawn, data) {
  for (const [key, show] of Object.entries(drawn)) show(panels[key], data);
}

function failed(keys, error) {
  say(error.message);
  if (!series) verdict(pill("no_data"));
  for (const key of keys) {
    if (panels[key].element.getAttribute("aria-busy") === "true") panels[key].say(error.message, "error");
  }
}

function loading() {
  Object.values(panels).forEach((panel) => panel.say("Loading", "loading"));
}

/** Draw what is made of both answers, whichever comes first. */
function both() {
  if (series) {
    stages(panels.stages, series, analysis);
    happenings(panels.happenings, series, analysis);
  }
  if (analysis) shape(panels.shape, analysis, series?.happenings);
}

async function refreshSeries(wanted) {
  try {
    const found = await ask(`/data/series?${wanted}`);
    if (wanted !== asked(service)) return;
    series = found;
    say("");
    standing();
    ranges();
    paint(FROM_SERIES, series);
    both();
  } catch (error) {
    failed([...Object.keys(FROM_SERIES), "stages", "happenings"], error);
  }
}

async function refreshAnalysis(wanted) {
  try {
    const found = await ask(`/data/analysis?${wanted}`);
    if (wanted !== asked(service)) return;
    analysis = found;
    paint(FROM_ANALYSIS, analysis);
    both();
  } catch (error) {
    failed([...Object.keys(FROM_ANALYSIS), "shape"], error);
  }
}

for (const button of document.querySelectorAll("[data-step]")) {
  button.addEventListener("click", () => move(Number(button.dataset.step)));
}
for (const button of document.querySelectorAll("[data-last]")) {
  button.addEventListener("click", () => setLook({ last: button.dataset.last, from: null, to: null }));
}

let before = null;

/** What is asked for now; panels say that they load when it is something new. */
function begin() {
  const wanted = asked(service);
  if (before === wanted) return wanted;
  before = wanted;
  analysis = null;
  loading();
  filters();
  ranges();
  return wanted;
}

// The zone, and what a chart shows of what is here already, change without asking again.
onLook(() => {
  ranges();
  if (series) paint(FROM_SERIES, series);
  if (analysis) paint(FROM_ANALYSIS, analysis);
  both();
});
keepFresh(() => refreshSeries(begin()), () => refreshAnalysis(begin()));
