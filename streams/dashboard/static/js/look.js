// What the page looks at: kept in its address, so that it can be shared and gone back from.

const listeners = new Set();

export const query = () => new URLSearchParams(location.search);

export function onLook(listener) {
  listeners.add(listener);
}

/** Change the address; `null` takes a key away, an array repeats it. */
export function setLook(changes) {
  const next = query();
  for (const [key, value] of Object.entries(changes)) {
    next.delete(key);
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== null) next.append(key, one);
    }
  }
  const text = next.toString();
  history.pushState(null, "", text ? `?${text}` : location.pathname);
  listeners.forEach((listener) => listener());
}

addEventListener("popstate", () => listeners.forEach((listener) => listener()));

export const cohort = () => query().getAll("where").map((text) => {
  const at = text.indexOf("=");
  return { dimension: text.slice(0, at), value: text.slice(at + 1), text };
});

export function addFilters(pairs) {
  const names = new Set(pairs.map(([dimension]) => dimension));
  const kept = cohort().filter((one) => !names.has(one.dimension)).map((one) => one.text);
  setLook({ where: [...kept, ...pairs.map(([dimension, value]) => `${dimension}=${value}`)] });
}

/** The part of the address that the data are asked for with. */
export function asked(service) {
  const now = query();
  const wanted = new URLSearchParams({ service });
  for (const key of ["last", "from", "to", "where"]) {
    now.getAll(key).forEach((value) => wanted.append(key, value));
  }
  return wanted.toString();
}
