// Elements with text: whatever a value holds, it is shown and never read as markup.

export function make(tag, attributes = {}, ...parts) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") {
      Object.entries(value).forEach(([event, listener]) => made.addEventListener(event, listener));
    } else if (value !== null && value !== undefined && value !== false) {
      made.setAttribute(name, value === true ? "" : value);
    }
  }
  made.append(...parts.flat().filter((part) => part !== null && part !== undefined));
  return made;
}

/** A name from the records: isolated, for it may be written from right to left; short, whole on hover. */
export function name(text, length = 200) {
  const whole = String(text);
  const short = whole.length > length ? `${whole.slice(0, length)}…` : whole;
  // A long name of several parts breaks between them.
  const parts = short.split(/(?<=[,+;])(?=\D)/).flatMap((part, at) => at ? [make("wbr"), part] : [part]);
  return make("bdi", short === whole ? {} : { title: whole.slice(0, 2000) }, parts);
}

const WORDS = {
  ok: "ok", at_risk: "at risk", breach: "breach", insufficient: "too few requests",
  no_data: "no data", none: "no verdict yet",
};

export function pill(state) {
  const key = state || "none";
  return make("span", { class: `pill ${key}` }, WORDS[key] ?? key);
}

/** A table; a column is {name, cell(row), n: right-aligned}. */
export function table(columns, rows, { caption = "", stack = true } = {}) {
  const head = columns.map((one) => make("th", { scope: "col", class: one.n ? "n" : null }, one.name));
  const body = rows.map((row) => make("tr", {}, columns.map((one) => {
    const cell = one.cell(row);
    return make("td", { class: one.n ? "n" : null, "data-name": one.name }, cell ?? "–");
  })));
  const made = make("table", { class: stack ? "stack" : null }, caption ? make("caption", {}, caption) : null,
    make("thead", {}, make("tr", {}, head)), make("tbody", {}, body));
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption || "Table" }, made);
}
