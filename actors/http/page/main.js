// Asks for /status.json once a second while somebody looks, and draws what came. One request is
// under way at a time; without an answer the figures stay, dimmed, and say how old they are.

import {History, RECENT_MS} from "/page/history.js";
import * as draw from "/page/draw.js";
import {span} from "/page/format.js";

const EVERY_MS = 1000;
const LIMIT_MS = 3000;
const OLD_MS = 4000;

const history = new History();
let showRecent = true;

function drawAll() {
  const {doc, at} = history.newest;
  draw.head(doc);
  draw.tiles(doc, history);
  draw.workers(doc, history);
  drawLoad(doc);
  draw.sessions(doc, history);
  draw.events(doc, performance.now() - at);
}

function drawLoad(doc) {
  if (!doc.load.length) return draw.load(doc, [], "no plan is committed yet");
  const whole = `share of each layer's rows, generation ${doc.generation}`;
  if (!showRecent) return draw.load(doc, doc.load, whole);
  const recent = history.recentLoad();
  const rows = recent?.reduce((sum, l) => sum + l.rows.reduce((a, b) => a + b, 0), 0);
  if (rows) return draw.load(doc, recent, `share of each layer's rows, last ${RECENT_MS / 1000} s`);
  draw.load(doc, doc.load, `${whole} (no rows in the last ${RECENT_MS / 1000} s)`);
}

async function ask(path) {
  const answer = await fetch(path, {signal: AbortSignal.timeout(LIMIT_MS), cache: "no-store"});
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

async function refresh() {
  if (document.visibilityState === "hidden") return;
  try {
    const doc = await ask("/status.json");
    history.add(performance.now(), doc);
    drawAll();
  } catch (e) {
    if (e instanceof TypeError || e.name === "TimeoutError" || e.message.startsWith("/status")) return;
    throw e;  // ours: not a coordinator that does not answer
  }
}

function tellAge() {
  const newest = history.newest;
  if (!newest) return draw.trouble(performance.now() > OLD_MS ? "The coordinator does not answer." : "");
  const age = performance.now() - newest.at;
  draw.fresh(age < OLD_MS ? "live" : `${span(age * 1e6)} old`);
  draw.trouble(age < OLD_MS ? "" : `The coordinator has not answered for ${span(age * 1e6)}: these figures are old.`);
}

async function turn() {
  await refresh();
  tellAge();
  setTimeout(turn, EVERY_MS);
}

for (const [id, recent] of [["load-recent", true], ["load-all", false]]) {
  document.getElementById(id).addEventListener("click", () => {
    showRecent = recent;
    document.getElementById("load-recent").setAttribute("aria-pressed", `${recent}`);
    document.getElementById("load-all").setAttribute("aria-pressed", `${!recent}`);
    if (history.newest) drawLoad(history.newest.doc);
  });
}
ask("/version").then(draw.build, () => {});
turn();
