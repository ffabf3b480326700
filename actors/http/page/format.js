// Numbers and times as people read them. Everything here gives text, never markup.

const UNITS = ["", "k", "M", "G", "T"];

// 12345 -> "12.3k"
export function count(n) {
  if (!Number.isFinite(n)) return "–";
  let unit = 0;
  while (Math.abs(n) >= 999.5 && unit < UNITS.length - 1) { n /= 1000; ++unit; }
  const digits = unit === 0 ? (Number.isInteger(n) || n >= 10 ? 0 : 1) : n < 10 ? 2 : n < 100 ? 1 : 0;
  return n.toFixed(digits) + UNITS[unit];
}

export function rate(perSecond) {
  return perSecond === null ? "–" : count(perSecond < 10 ? Math.round(perSecond * 10) / 10 : Math.round(perSecond));
}

// Nanoseconds -> "35 ms", "4 s", "3 min", "2 h", "5 d"
export function span(ns) {
  const ms = ns / 1e6;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 120) return `${Math.floor(s)} s`;
  if (s < 7200) return `${Math.floor(s / 60)} min`;
  return s < 172800 ? `${Math.floor(s / 3600)} h` : `${Math.floor(s / 86400)} d`;
}

export function ratio(r) {
  return r ? r.toFixed(2) : "–";
}
