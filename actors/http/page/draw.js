// From a status document to the page. Every text goes in as text: no name becomes markup.

import {balancedness} from "/page/history.js";
import {count, rate, ratio, span} from "/page/format.js";

const at = (id) => document.getElementById(id);

function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// As many children as items, old ones kept: what a reader has selected or focused stays.
function each(parent, items, make, fill) {
  while (parent.children.length > items.length) parent.lastElementChild.remove();
  items.forEach((item, i) => {
    if (i >= parent.children.length) parent.append(make());
    fill(parent.children[i], item, i);
  });
}

function element(name, className = "") {
  const e = document.createElement(name);
  if (className) e.className = className;
  return e;
}

// A table row of labelled cells; `cells` are [label, text, class].
function row(tr, cells) {
  tr.setAttribute("role", "row");
  each(tr, cells, () => element("td"), (td, [label, text, className]) => {
    td.setAttribute("role", "cell");
    td.dataset.label = label;
    td.className = className ?? "";
    say(td, text);
  });
}

export function head(doc) {
  const state = at("state");
  say(state, doc.ready ? "ready" : "not ready");
  state.className = `pill ${doc.ready ? "good" : "bad"}`;
  document.title = doc.ready ? "moetier" : "moetier: not ready";
  const m = doc.model;
  say(at("model"), m ? `${m.type} · ${m.experts} experts, ${m.top_k} a token · ${m.moe_layers} MoE layers · ` +
    `${m.format === "none" ? "unquantised" : m.format} · ${doc.backend} over ${doc.carrier}` : "");
  const reasons = [...doc.not_ready_reasons];
  if (doc.resolution?.degraded) reasons.push(`degraded: ${doc.resolution.describe}`);
  at("reasons").hidden = reasons.length === 0;
  each(at("reasons"), reasons, () => element("li"), say);
}

export function tiles(doc, history) {
  const serving = doc.workers.filter((w) => w.state === "serving").length;
  say(at("tile-workers"), `${serving} of ${doc.workers.length}`);
  const others = doc.workers.filter((w) => w.state !== "serving").map((w) => `${w.name} ${w.state}`);
  say(at("tile-workers-note"), others.join(", "));
  at("tile-workers").parentElement.classList.toggle("alarm", serving < doc.workers.length);

  const rates = doc.workers.map((w) => history.worker(w, (o) => o.rows_total)).filter((r) => r !== null);
  say(at("tile-rows"), rates.length ? rate(rates.reduce((a, b) => a + b, 0)) : "–");
  curve(history.curve(), history.newest.at);

  const tokens = doc.sessions.map((s) => tokensPerSecond(s, doc, history)).filter((r) => r !== null);
  say(at("tile-tokens"), tokens.length ? rate(tokens.reduce((a, b) => a + b, 0)) : doc.sessions.length ? "–" : "0");
  say(at("tile-tokens-note"), doc.sessions.length === 1 ? "1 session" : `${doc.sessions.length} sessions`);

  const worst = doc.load.filter((l) => l.balancedness).sort((a, b) => a.balancedness - b.balancedness)[0];
  say(at("tile-balance"), worst ? ratio(worst.balancedness) : "–");
  say(at("tile-balance-note"), worst ? `layer ${worst.layer}, hottest expert ${worst.hottest_expert}` : "no rows yet");

  say(at("tile-spare"), count(doc.unreplicated_experts));
  say(at("tile-spare-note"), doc.lost_experts ? `${doc.lost_experts} without any replica` : "every expert is served");
  if (!doc.load.length) say(at("tile-spare-note"), "no plan yet");
  at("tile-spare").parentElement.classList.toggle("alarm", doc.lost_experts > 0);

  say(at("tile-plan"), `${doc.epoch} · ${doc.generation}`);
  say(at("tile-plan-note"), `plan ${doc.plan_hash}`);
  at("tile-plan-note").title = `plan ${doc.plan_hash}, shares ${doc.shares_revision.epoch}.${doc.shares_revision.counter}`;
}

// Sessions tell tokens of all layers' calls; a token counts once it went through every layer.
function tokensPerSecond(session, doc, history) {
  const perLayer = history.session(session, (s) => s.token_layers);
  return perLayer === null || !doc.model ? null : perLayer / doc.model.moe_layers;
}

function curve(points, now) {
  const most = Math.max(1, ...points.map((p) => p.value));
  const shown = Math.max(20_000, points.length ? now - points[0].at : 0);
  const x = (p) => (120 * (1 - (now - p.at) / shown)).toFixed(2);
  const y = (p) => (23 - (p.value / most) * 22).toFixed(2);
  const line = points.map((p) => `${x(p)} ${y(p)}`).join(" L");
  const [area, stroke] = at("spark").children;
  stroke.setAttribute("d", line ? `M${line}` : "");
  area.setAttribute("d", line ? `M${x(points[0])} 24 L${line} L120 24 Z` : "");
}

export function workers(doc, history) {
  each(at("workers"), doc.workers, () => element("tr"), (tr, w) => row(tr, [
    ["worker", w.name, "name"],
    ["state", w.state, `state ${/^[a-z]+$/.test(w.state) ? w.state : ""}`],
    ["device", w.device || "–", "wide"],
    ["backend", w.backend || "–", "wide"],
    ["slots", `${w.slots}`, "n"],
    ["rows/s", rate(w.state === "lost" ? null : history.worker(w, (o) => o.rows_total)), "n"],
    ["calls/s", rate(w.state === "lost" ? null : history.worker(w, (o) => o.calls_total)), "n"],
    ["rows", count(w.rows_total), "n"],
    ["last beat", span(w.heartbeat_age_ns), "n"],
  ]));
}

// Columns are workers, rows layers; a cell's colour is its load over the layer's mean.
export function load(doc, layers, caption) {
  const live = doc.workers.filter((w) => w.state !== "lost").length;
  say(at("load-caption"), caption);
  const many = doc.workers.length > 12;
  at("load").classList.toggle("many", many);
  at("load-columns").closest(".columns").classList.toggle("wide", many);
  at("load").classList.toggle("few", layers.length <= 12);
  const columns = ["layer", ...doc.workers.map((w) => w.name.replace(/^worker@/, "w")), "balance"];
  each(at("load-columns"), columns, () => element("th"), (th, text) => {
    th.scope = "col";
    say(th, text);
  });
  each(at("load-rows"), layers, () => element("tr"), (tr, layer) => {
    const total = layer.rows.reduce((a, b) => a + b, 0);
    const mean = total / Math.max(1, live);
    const cells = [layer.layer, ...layer.rows, null];
    each(tr, cells, () => element(tr.children.length === 0 ? "th" : "td"), (cell, value, i) => {
      if (i === 0) {
        cell.scope = "row";
        say(cell, `${value}`);
      } else if (i < cells.length - 1) {
        const w = doc.workers[i - 1];
        const heat = total === 0 ? 0 : Math.min(6, Math.round((value / mean) * 3));
        cell.className = w.state === "lost" ? "gone" : `h${heat}`;
        cell.title = `${w.name}, layer ${layer.layer}: ${value} rows`;
        say(cell, total === 0 ? "–" : `${Math.round((100 * value) / total)}${many ? "" : "%"}`);
      } else {
        balance(cell, balancedness(layer.rows, doc.workers));
      }
    });
  });
}

function balance(cell, value) {
  cell.className = value !== 0 && value < 0.6 ? "balance low" : "balance";
  cell.title = "";
  if (!cell.firstElementChild) {
    const track = element("span", "track");
    track.append(element("i"));
    cell.textContent = "";
    cell.append(track, element("span"));
  }
  cell.firstElementChild.firstElementChild.style.width = `${Math.round(100 * value)}%`;
  say(cell.lastElementChild, ratio(value));
}

export function sessions(doc, history) {
  at("no-sessions").hidden = doc.sessions.length > 0;
  at("sessions-table").hidden = doc.sessions.length === 0;
  each(at("sessions"), doc.sessions, () => element("tr"), (tr, s) => row(tr, [
    ["session", `${s.session}`, "name"],
    ["tenant", s.tenant, "wide"],
    ["class", s.class],
    ["by", s.thin ? "gateway" : s.attached ? "direct" : "attaching"],
    ["tokens/s", rate(tokensPerSecond(s, doc, history)), "n"],
    ["calls/s", rate(history.session(s, (o) => o.calls)), "n"],
    ["generation", s.generation ? `${s.generation}` : "–", "n"],
    ["open for", span(s.age_ns), "n"],
    ["lease left", span(s.lease_left_ns), "n"],
  ]));
}

export function events(doc, sinceMs) {
  each(at("events"), doc.events, () => {
    const li = element("li"), what = element("div");
    what.append(element("b"), element("span"));
    li.append(element("time"), what);
    return li;
  }, (li, e) => {
    li.className = /^[a-z]+$/.test(e.level) ? e.level : "";
    say(li.firstElementChild, span(e.age_ns + sinceMs * 1e6));
    say(li.lastElementChild.firstElementChild, e.event.replaceAll("_", " "));
    say(li.lastElementChild.lastElementChild, e.detail);
  });
}

export function build(version) {
  say(at("build"), `moetier ${version.version} (${version.commit}) · ${version.compiler} · UCX ${version.ucx}`);
}

export function fresh(text) {
  say(at("fresh"), text);
}

export function trouble(text) {
  at("trouble").hidden = !text;
  say(at("trouble"), text);
  document.body.classList.toggle("stale", Boolean(text));
}
