// Numbers and times as text.

import { query, setLook } from "./look.js";

export function number(value, digits = 3) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size >= 10 ** digits) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(digits)));
}

export const count = (value) => (value ?? null) === null ? "–" : Number(value).toLocaleString("en");
// Less than a microsecond is nothing that was measured.
const whole = (value) => Math.round(value * 1000) / 1000;
export const ms = (value) => (value ?? null) === null ? "–" : `${number(whole(value))} ms`;
const signed = (value) => `${value > 0 ? "+" : value < 0 ? "−" : ""}${number(Math.abs(value))}`;
export const signedMs = (value) => (value ?? null) === null ? "–" : `${signed(whole(value))} ms`;
export const signedPct = (value) => (value ?? null) === null ? "–" : `${signed(value)} %`;
export const pct = (value) => (value ?? null) === null ? "–" : `${number(value)} %`;

export function duration(seconds) {
  const s = Math.round(seconds);
  if (s < 60) return `${s} s`;
  if (s < 5400) return `${Math.round(s / 60)} min`;
  if (s < 172800) return `${Math.round(s / 3600)} h`;
  return `${Math.round(s / 86400)} d`;
}

/** The zone that times are shown in, as short as it has a name: "UTC", "CET", "GMT+5:30". */
export function zoneName(atMs) {
  const parts = new Intl.DateTimeFormat("en-GB", { timeZone: zone(), timeZoneName: "short" }).formatToParts(new Date(atMs));
  return parts.find((part) => part.type === "timeZoneName").value;
}

const local = Intl.DateTimeFormat().resolvedOptions().timeZone;
const formats = new Map();

function known(zone) {
  try {
    return Boolean(Intl.DateTimeFormat("en", { timeZone: zone }));
  } catch {
    return false;
  }
}

export function zone() {
  const wanted = query().get("zone") ?? localStorage.getItem("zone") ?? local;
  return known(wanted) ? wanted : "UTC";
}

function format(kind, timeZone) {
  const key = `${kind} ${timeZone}`;
  if (!formats.has(key)) {
    const shapes = {
      whole: { dateStyle: "medium", timeStyle: "medium" },
      second: { hour: "2-digit", minute: "2-digit", second: "2-digit" },
      minute: { hour: "2-digit", minute: "2-digit" },
      day: { day: "2-digit", month: "short" },
    };
    formats.set(key, new Intl.DateTimeFormat("en-GB", { ...shapes[kind], timeZone }));
  }
  return formats.get(key);
}

/** A time, in the zone that is shown; `kind` is "whole", "second", "minute" or "day". */
export const time = (atMs, kind = "whole", timeZone = zone()) => (atMs ?? null) === null ? "–" : format(kind, timeZone).format(new Date(Number(atMs)));
export const iso = (atMs) => new Date(Number(atMs)).toISOString();

/** Fill the choice of zones, and follow it. */
export function setUpZones(select) {
  const first = [...new Set([local, "UTC"])];
  const zones = [...first, ...Intl.supportedValuesOf("timeZone").filter((name) => !first.includes(name))];
  const chosen = zone();
  if (!zones.includes(chosen)) zones.unshift(chosen);
  for (const name of zones) {
    const option = document.createElement("option");
    option.value = name;
    option.textContent = name === local ? `${name} (local)` : name;
    option.selected = name === chosen;
    select.append(option);
  }
  select.addEventListener("change", () => {
    localStorage.setItem("zone", select.value);
    setLook({ zone: select.value });
  });
}
