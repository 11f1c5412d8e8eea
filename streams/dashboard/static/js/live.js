// Word of changes: the server tells when something was written, and every few seconds that it lives.

import { query, onLook } from "./look.js";
import { setUpZones } from "./format.js";
import { recolour } from "./chart.js";

const CUT_MS = 12_000;
const shown = document.getElementById("live");
const trouble = document.getElementById("trouble");

let heardMs = 0;

function state(name, text) {
  if (shown.dataset.state === name && shown.textContent === text) return;
  shown.dataset.state = name;
  shown.textContent = text;
}

/** Say what is the matter on top of the page; an empty text takes it away. */
export function say(text) {
  trouble.hidden = !text;
  trouble.textContent = text;
}

/** The JSON of an address; an error says what is the matter and what to do. */
export async function ask(path, options = {}) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer. Is it running?", { cause: error });
  }
  const body = await response.json().catch(() => ({}));
  if (response.ok) return body;
  const remedy = body.remedy ? ` Remedy: ${body.remedy}.` : "";
  const said = body.error ?? `the server answers HTTP ${response.status}`;
  throw new Error(`${said.charAt(0).toUpperCase()}${said.slice(1)}.${remedy}`);
}

/** Call each of `refreshes` now, when the address changes, and when something was written. */
export function keepFresh(...refreshes) {
  const all = refreshes.map(oneAtATime);
  const run = () => all.forEach((one) => one());
  onLook(run);
  listen(run);
  run();
}

/** Return a call that, while it runs, is called once more at the end and not beside. */
function oneAtATime(refresh) {
  let running = false;
  let again = false;
  return async () => {
    again = running;
    if (running) return;
    running = true;
    do {
      again = false;
      await refresh();
    } while (again);
    running = false;
  };
}

/** Show whether the server can be heard, and call `run` when something was written. */
export function listen(run) {
  let source = connect(run);
  // A browser has few connections to a server: pages that nobody sees leave theirs to others.
  document.addEventListener("visibilitychange", () => {
    source.close();
    if (document.hidden) return;
    source = connect(run);
    run();
  });
  setInterval(() => {
    if (heardMs && !document.hidden && Date.now() - heardMs > CUT_MS) state("cut", "cut off, trying again");
  }, 1000);
}

function connect(run) {
  const source = new EventSource("/events");
  const alive = () => {
    heardMs = Date.now();
    state("live", "live");
  };
  source.addEventListener("written", () => {
    alive();
    say("");
    run();
  });
  // Also when nothing came: what was asked for may have been kept from just before the last write.
  source.addEventListener("beat", () => {
    alive();
    run();
  });
  source.addEventListener("trouble", (event) => {
    const { error, remedy } = JSON.parse(event.data);
    heardMs = Date.now();
    state("cut", "no data");
    say(`ClickHouse does not answer: ${error}. ${remedy ?? ""}`);
  });
  source.addEventListener("error", () => state("cut", "cut off, trying again"));
  return source;
}

function setUpTheme(select) {
  const apply = () => {
    const chosen = localStorage.getItem("theme") ?? "";
    select.value = chosen;
    if (chosen) document.documentElement.dataset.theme = chosen;
    else delete document.documentElement.dataset.theme;
    recolour();
  };
  select.addEventListener("change", () => {
    localStorage.setItem("theme", select.value);
    apply();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
  apply();
}

setUpTheme(document.getElementById("theme"));
setUpZones(document.getElementById("zone"));

// The links between pages keep the zone that the address names.
for (const link of document.querySelectorAll(".top a")) {
  link.addEventListener("click", () => {
    const wanted = query().get("zone");
    if (wanted) link.search = `?${new URLSearchParams({ zone: wanted })}`;
  });
}
