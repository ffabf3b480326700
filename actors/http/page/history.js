// The status documents of the last two minutes, and what follows from two of them: rates and the
// rows of the last seconds. The coordinator counts totals; what is recent is ours to find.

const KEPT_MS = 120_000;
const RATE_MS = 5_000;
export const RECENT_MS = 10_000;

export class History {
  samples = [];  // {at: milliseconds of this page's clock, doc}, oldest first

  add(at, doc) {
    this.samples.push({at, doc});
    while (at - this.samples[0].at > KEPT_MS) this.samples.shift();
  }

  get newest() { return this.samples.at(-1); }

  // The youngest sample that is at least so old, or the oldest there is; null without two.
  before(milliseconds) {
    if (this.samples.length < 2) return null;
    const until = this.newest.at - milliseconds;
    return this.samples.findLast((s) => s.at <= until) ?? this.samples[0];
  }

  // Rise per second of `total(entry)` of the entry that `find` picks out of a document; null when it
  // was not there or began anew.
  #rise(find, total, milliseconds = RATE_MS) {
    const then = this.before(milliseconds);
    const a = then && find(then.doc), b = find(this.newest.doc);
    if (!a || !b) return null;
    const seconds = (this.newest.at - then.at) / 1000;
    const risen = total(b) - total(a);
    return seconds > 0 && risen >= 0 ? risen / seconds : null;
  }

  worker(worker, total) {
    return this.#rise((doc) => doc.workers.find((w) => w.name === worker.name && w.incarnation === worker.incarnation), total);
  }

  session(session, total) {
    return this.#rise((doc) => doc.sessions.find((s) => s.session === session.session), total);
  }

  // Rows per second of all workers between neighbouring samples, for the curve.
  curve() {
    const points = [];
    for (let i = 1; i < this.samples.length; ++i) {
      const a = this.samples[i - 1], b = this.samples[i];
      let risen = 0;
      for (const w of b.doc.workers) {
        const was = a.doc.workers.find((o) => o.name === w.name && o.incarnation === w.incarnation);
        if (was) risen += Math.max(0, w.rows_total - was.rows_total);
      }
      points.push({at: b.at, value: risen / Math.max(0.001, (b.at - a.at) / 1000)});
    }
    return points;
  }

  // Rows by layer and worker of the last seconds; null where the plan or the workers changed since.
  recentLoad() {
    const then = this.before(RECENT_MS), now = this.newest.doc;
    if (!then || then.doc.generation !== now.generation) return null;
    const was = then.doc.load;
    if (was.length !== now.load.length || then.doc.workers.length !== now.workers.length) return null;
    const fresh = now.workers.map((w, i) => w.incarnation !== then.doc.workers[i].incarnation);
    return now.load.map((l, i) => ({
      layer: l.layer,
      rows: l.rows.map((n, w) => Math.max(0, n - (fresh[w] ? 0 : was[i].rows[w]))),
    }));
  }
}

// Mean of the live workers over the largest, of one layer's rows; 0 without rows.
export function balancedness(rows, workers) {
  const live = rows.filter((_, w) => workers[w]?.state !== "lost");
  const most = Math.max(0, ...live);
  return most === 0 ? 0 : live.reduce((a, b) => a + b, 0) / live.length / most;
}
