// A panel: a chart or a table, the same figures to take away, and a word when there are none.

import { draw } from "./chart.js";
import { make, table } from "./dom.js";
import { pictureOf } from "./picture.js";

function save(name, kind, href) {
  make("a", { href, download: `${name}.${kind}` }).click();
}

function saveText(name, kind, type, text) {
  const href = URL.createObjectURL(new Blob([text], { type }));
  save(name, kind, href);
  setTimeout(() => URL.revokeObjectURL(href), 10_000);
}

/** A cell of CSV; what a spreadsheet would take for a formula is marked as text. */
function csvCell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  const text = typeof value === "object" ? JSON.stringify(value) : String(value);
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function csv(rows) {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  return [columns, ...rows.map((row) => columns.map((name) => row[name]))]
    .map((cells) => cells.map(csvCell).join(",")).join("\r\n") + "\r\n";
}

// A menu closes when something else is touched, and by Escape, as menus do.
document.addEventListener("pointerdown", ({ target }) => {
  for (const menu of document.querySelectorAll(".menu[open]")) menu.open = menu.contains(target);
});
document.addEventListener("keydown", ({ key }) => {
  const menu = key === "Escape" && document.querySelector(".menu[open]");
  if (!menu) return;
  menu.open = false;
  menu.querySelector("summary").focus();
});

export class Panel {
  #rows = [];
  #asTable = false;

  constructor(key, prefix = "tailbudget") {
    this.element = document.getElementById(key);
    this.chart = this.element.querySelector(".chart");
    this.body = this.element.querySelector(".body");
    this.key = this.element.querySelector(".key");
    this.state = this.element.querySelector(".state");
    this.actions = this.element.querySelector(".actions");
    const name = () => `${prefix}-${key}`.replace(/[^\w.-]+/g, "_").slice(0, 80);
    this.actions.addEventListener("click", (event) => {
      const does = event.target.dataset.do;
      if (does === "table") this.#flip(event.target);
      if (does === "png") pictureOf(this.element).then((href) => save(name(), "png", href), (error) => this.note(error.message));
      if (does === "csv") saveText(name(), "csv", "text/csv", csv(this.#rows));
      if (does === "json") saveText(name(), "json", "application/json", JSON.stringify(this.#rows, null, 2));
      if (does) this.element.querySelector(".menu")?.removeAttribute("open");
    });
  }

  note(text) {
    this.element.querySelector(".note-line").textContent = text;
  }

  /** Say why there is nothing to see. */
  say(text, kind = "empty") {
    this.element.setAttribute("aria-busy", String(kind === "loading"));
    this.state.textContent = text;
    this.state.className = kind === "error" ? "state bad" : "state";
    this.state.hidden = false;
    this.actions.hidden = true;
    this.body.hidden = true;
    if (this.chart) this.chart.hidden = this.key.hidden = true;
  }

  /** Say what colours of a chart mean: pairs of a class and its words. */
  explain(pairs) {
    this.key.hidden = this.chart.hidden || !pairs.length;
    this.key.replaceChildren(...pairs.map(([kind, words]) => make("span", { class: kind }, words)));
  }

  /** Draw a chart of `rows`; `build` makes its option for a width, `label` says it in words. */
  draw(rows, build, label) {
    this.#ready(rows);
    this.chart.hidden = this.#asTable;
    this.#fill();
    return draw(this.chart, build, label);
  }

  /** Show elements, of which `rows` are the figures. */
  show(rows, ...elements) {
    this.#ready(rows);
    // What has the focus, and how far it was scrolled, stays when figures change.
    const scrolled = this.body.querySelector(".scroll")?.scrollTop ?? 0;
    const focus = this.body.contains(document.activeElement) ? document.activeElement.dataset?.key : null;
    this.body.replaceChildren(...elements);
    this.body.hidden = false;
    const scroll = this.body.querySelector(".scroll");
    if (scroll) scroll.scrollTop = scrolled;
    if (focus) this.body.querySelector(`[data-key="${CSS.escape(focus)}"]`)?.focus();
  }

  /** Show the figures as a table below the chart, or alone where there is none. */
  list(rows, { chart }) {
    this.#ready(rows);
    this.chart.hidden = !chart;
    this.#asTable = true;
    this.#fill();
    this.actions.querySelector('[data-do="table"]').hidden = true;
  }

  #ready(rows) {
    this.#rows = rows;
    this.element.setAttribute("aria-busy", "false");
    this.state.hidden = true;
    this.actions.hidden = false;
  }

  #flip(button) {
    this.#asTable = !this.#asTable;
    button.setAttribute("aria-pressed", String(this.#asTable));
    this.chart.hidden = this.key.hidden = this.#asTable;
    this.#fill();
  }

  #fill() {
    this.body.hidden = !this.#asTable;
    if (!this.#asTable) return;
    const names = [...new Set(this.#rows.flatMap((row) => Object.keys(row)))];
    const columns = names.map((key) => ({
      name: key, n: typeof this.#rows[0]?.[key] === "number",
      cell: (row) => row[key] === null || row[key] === undefined ? null : String(row[key]),
    }));
    const label = this.element.querySelector("h2").textContent;
    this.body.replaceChildren(table(columns, this.#rows.slice(0, 2000), { stack: false }));
    this.body.firstChild.setAttribute("aria-label", label);
  }
}
