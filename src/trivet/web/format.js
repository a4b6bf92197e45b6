// Formats numbers, times and sizes.

const WHOLE = new Intl.NumberFormat("en");
const DATE = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });
const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

export const whole = (value) => WHOLE.format(value);

// Three significant digits: 0.0163 and 14.2.
export function score(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size === 0) return "0";
  return size >= 100
    ? value.toFixed(0)
    : size >= 10
      ? value.toFixed(1)
      : size >= 0.1
        ? value.toFixed(3)
        : size >= 0.001
          ? value.toFixed(4)
          : value.toExponential(1);
}

export const short = (value) => String(Number(value.toFixed(3)));
export const signed = (value, places = 3) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(places)}`;
export const percent = (value) => `${Math.round(value * 100)} %`;

export const ms = (value) =>
  value >= 1000
    ? `${(value / 1000).toFixed(1)} s`
    : value >= 10
      ? `${value.toFixed(0)} ms`
      : value >= 1
        ? `${value.toFixed(1)} ms`
        : `${value.toFixed(2)} ms`;

export function size(bytes) {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) [value, unit] = [value / 1000, unit + 1];
  return `${unit && value < 100 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

export const date = (iso) => (iso ? DATE.format(new Date(iso)) : "");
export const clock = (iso) => CLOCK.format(new Date(iso));

export function ago(iso) {
  const seconds = (Date.now() - new Date(iso)) / 1000;
  if (seconds < 60) return "just now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return date(iso);
}

// A metadata value as text.
export const plain = (value) =>
  Array.isArray(value)
    ? value.map(plain).join(", ")
    : value && typeof value === "object"
      ? JSON.stringify(value)
      : String(value);

export const counted = (number, one, many = `${one}s`) => `${whole(number)} ${number === 1 ? one : many}`;
