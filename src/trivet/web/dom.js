// Creates elements. Text is always inserted as text; nothing here accepts markup.

const SVG = "http://www.w3.org/2000/svg";

function put(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false || name === "value") continue;
    if (name === "on") for (const [event, handler] of Object.entries(value)) element.addEventListener(event, handler);
    else if (name === "css") for (const [key, given] of Object.entries(value)) element.style.setProperty(key, given);
    else if (name === "data") Object.assign(element.dataset, value);
    else if (name === "checked" || name === "disabled" || name === "hidden" || name === "open")
      element[name] = Boolean(value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  if (props?.value !== undefined && props.value !== null) element.value = props.value; // last: a range knows its ends by then
  element.append(
    ...children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false),
  );
  return element;
}

export const h = (tag, props, ...children) => put(document.createElement(tag), props, children);

export const s = (tag, props, ...children) => put(document.createElementNS(SVG, tag), props, children);

export const fill = (element, ...children) => {
  element.replaceChildren(
    ...children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false),
  );
  return element;
};

export const find = (id) => document.getElementById(id);

let made = 0;
export const fresh = (name) => `${name}-${(made += 1)}`;

// A control with its label and its error, also for screen readers.
export function field(label, control, hint) {
  control.id ||= fresh("field");
  return h("div", { class: "field" }, h("label", { for: control.id }, label), control, hint && h("small", null, hint));
}

// A slider with its value; style.css paints the part before the thumb.
export function range(props) {
  const made = h("input", { type: "range", ...props });
  const paint = () =>
    made.style.setProperty("--part", String((made.valueAsNumber - made.min) / (made.max - made.min || 1)));
  made.addEventListener("input", paint);
  paint();
  return Object.assign(made, { paint });
}

export function select(options, chosen, onChange, label) {
  const made = h("select", { "aria-label": label, on: { change: () => onChange(made.value) } });
  for (const option of options) {
    const [value, text] = Array.isArray(option) ? option : [option, option];
    made.append(h("option", { value, selected: value === chosen }, text));
  }
  return made;
}

export const button = (text, onClick, props) => h("button", { type: "button", ...props, on: { click: onClick } }, text);

// Saves a text as a file. A plain link could not send the key.
export function keep(name, text, type = "text/plain") {
  const url = URL.createObjectURL(new Blob([text], { type }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

export function debounced(wait, work) {
  let timer = 0;
  const later = (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...given), wait);
  };
  later.cancel = () => clearTimeout(timer);
  return later;
}
