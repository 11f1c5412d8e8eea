// How alerts stand, how they moved, and what became of their notices.

import { ask, keepFresh, say } from "./live.js";
import { make, name, pill, table } from "./dom.js";
import { ms, number, pct, time } from "./format.js";
import { query, setLook } from "./look.js";
import { Panel } from "./panel.js";

const panels = Object.fromEntries(["standing", "changes", "notices"].map((key) => [key, new Panel(key, "tailbudget-alerts")]));
const summary = document.getElementById("summary");
const ORDER = ["firing", "pending", "no_data", "muted", "resolved"];

const text = (value, length = 400) => make("span", { class: "long" }, name(value || "–", length));
const words = (value) => String(value ?? "").replaceAll("_", " ");

function serviceLink(row) {
  const zone = query().get("zone");
  const search = zone ? `?${new URLSearchParams({ zone })}` : "";
  return make("a", { href: `/services/${encodeURIComponent(row.service)}${search}` }, name(row.service, 60));
}

function measured(row) {
  if ((row.burn_rate ?? null) !== null) return `burn ${number(row.burn_rate)}`;
  return (row.measured_ms ?? null) === null ? "–" : `${ms(row.measured_ms)} of ${ms(row.slo_ms)}`;
}

function why(row) {
  const lines = [row.tail_driver && `Tail driver ${row.tail_driver} (${pct(row.tail_share_pct)})`, row.cause && `Cause: ${words(row.cause)}`, ...(row.evidence ?? []), row.first_step && `First: ${row.first_step}`].filter(Boolean);
  return lines.length ? make("span", { class: "long" }, lines.map((line) => make("span", {}, name(line, 300), make("br")))) : text(row.detail);
}

const STANDING = [
  { name: "State", cell: (row) => pill(row.after) },
  { name: "Service", cell: serviceLink },
  { name: "Alert", cell: (row) => name(row.alert, 80) },
  { name: "Severity", cell: (row) => row.severity || "–" },
  { name: "Since", cell: (row) => time(row.after === "resolved" ? row.at_ms : row.began_ms ?? row.at_ms) },
  { name: "Measured", n: true, cell: measured },
  { name: "Budget left", n: true, cell: (row) => pct(row.budget_left_pct) },
  { name: "Why", cell: why },
];
const CHANGES = [
  { name: "At", cell: (row) => time(row.at_ms) },
  { name: "Service", cell: serviceLink },
  { name: "Alert", cell: (row) => name(row.alert, 80) },
  { name: "From", cell: (row) => words(row.before) },
  { name: "To", cell: (row) => pill(row.after) },
  { name: "Reason", cell: (row) => words(row.reason) },
  { name: "Detail", cell: (row) => text(row.detail) },
  { name: "Budget spent", n: true, cell: (row) => pct(row.budget_cost_pct) },
];
const NOTICES = [
  { name: "At", cell: (row) => time(row.at_ms) },
  { name: "Channel", cell: (row) => name(row.channel, 60) },
  { name: "Service", cell: serviceLink },
  { name: "Alert", cell: (row) => name(row.alert, 80) },
  { name: "Told", cell: (row) => words(row.state) },
  { name: "Outcome", cell: (row) => words(row.outcome) },
  { name: "Attempts", n: true, cell: (row) => row.attempts },
  { name: "Error", cell: (row) => text(row.error) },
];

function filters(found) {
  const place = document.getElementById("filters");
  const services = [...new Set(found.alerts.map((row) => row.service))].sort();
  const chosen = query().get("only") ?? "";
  const state = query().get("state") ?? "";
  const option = (value, label, now) => make("option", { value, selected: value === now }, label);
  const focus = document.activeElement?.id;
  place.replaceChildren(
    make("label", { class: "choice" }, make("span", {}, "Service"), make("select", { id: "only", on: { change: (event) => setLook({ only: event.target.value || null }) } },
      option("", "all", chosen), services.map((one) => option(one, one.length > 60 ? `${one.slice(0, 59)}…` : one, chosen)))),
    make("label", { class: "choice" }, make("span", {}, "State"), make("select", { id: "state", on: { change: (event) => setLook({ state: event.target.value || null }) } },
      option("", "all", state), ORDER.map((one) => option(one, words(one), state)))));
  if (focus) document.getElementById(focus)?.focus();
}

function show(found) {
  const chosen = query().get("only");
  const state = query().get("state");
  const of = (row) => !chosen || row.service === chosen;
  const standing = found.alerts.filter((row) => of(row) && (!state || row.after === state))
    .sort((a, b) => ORDER.indexOf(a.after) - ORDER.indexOf(b.after) || b.at_ms - a.at_ms);
  const changes = found.changes.filter((row) => of(row) && (!state || row.after === state));
  const notices = found.notices.filter((row) => of(row) && (!state || row.state === state));
  const firing = found.alerts.filter((row) => row.after === "firing").length;
  summary.textContent = firing ? `${firing} firing` : "none fires";
  const fill = (panel, rows, columns, empty) => rows.length ? panel.show(rows, table(columns, rows)) : panel.say(empty);
  const none = chosen || state ? "None of this choice." : null;
  fill(panels.standing, standing, STANDING, none ?? "No alert has moved yet: a service needs an SLO, and then a breach.");
  fill(panels.changes, changes, CHANGES, none ?? "No alert has changed yet.");
  fill(panels.notices, notices, NOTICES, none ?? "No notice was sent yet: set chat to have some.");
}

keepFresh(async () => {
  try {
    const found = await ask("/data/alerts");
    filters(found);
    show(found);
    say("");
  } catch (error) {
    say(error.message);
    summary.textContent = "";
    Object.values(panels).forEach((panel) => {
      if (panel.element.getAttribute("aria-busy") === "true") panel.say(error.message, "error");
    });
  }
});
