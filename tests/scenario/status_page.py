"""The status page as a reader sees it: in a headless browser, at a desk's and a phone's width, in light and dark, while
sessions run, a worker dies and comes back, and the coordinator goes. Pictures lie in MOETIER_PICTURES or beside the
build.
"""
import os
import pathlib
import sys
import time
import unittest
import urllib.parse

import browser
from process_tier import BIN, ProcessTier, wait_until
from lost_worker import cases_of
from traffic import Traffic
import vectors

PICTURES = pathlib.Path(os.environ.get("MOETIER_PICTURES", BIN.parent / "pictures"))
SKIPPED = 77  # what ctest takes for "not run here"

# What is wider than the window, unless it scrolls inside of a part that is meant to.
OVERFLOWING = """(() => {
  const wide = document.documentElement.clientWidth;
  const inside = (e) => e.closest('.scroll') && !e.matches('.scroll');
  return [...document.querySelectorAll('body *')]
    .filter((e) => !inside(e) && e.getBoundingClientRect().right > wide + 1)
    .map((e) => e.tagName + '#' + e.id + '.' + e.className).slice(0, 5)
    .concat(document.documentElement.scrollWidth > wide ? ['page ' + document.documentElement.scrollWidth] : []);
})()"""

# Text whose colour is too near to its ground: WCAG's 4.5, over what really lies beneath it.
FAINT = """(() => {
  const rgb = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const c = rgb(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] === 1) return c;
    }
    return [255, 255, 255];
  };
  const faint = [];
  for (const e of document.querySelectorAll('body *')) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.getClientRects().length || e.closest('noscript') || e.matches('.gone')) continue;
    const a = light(rgb(getComputedStyle(e).color)), b = light(ground(e));
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < 4.5) faint.push(`${e.tagName}.${e.className} "${e.textContent.slice(0, 20)}" ${ratio.toFixed(2)}`);
  }
  return faint.slice(0, 8);
})()"""

WORKER = "[...document.querySelectorAll('#workers tr')].find((r) => r.innerText.includes('%s'))"


class StatusPage(unittest.TestCase):
    def picture(self, page, name):
        PICTURES.mkdir(parents=True, exist_ok=True)
        page.screenshot(PICTURES / f"{name}.png")
        print(f"picture {PICTURES / name}.png")

    def check_looks(self, page, name):
        for width, height, phone in ((1280, 800, False), (390, 844, True), (320, 640, True)):
            for scheme in ("light", "dark"):
                page.look(width, height, scheme, phone)
                with self.subTest(width=width, scheme=scheme):
                    self.assertEqual([], page.evaluate(OVERFLOWING))
                    # Colours fade in; nothing is judged half way.
                    page.wait_for(f"{FAINT}.length === 0", 2, f"contrast: {page.evaluate(FAINT)}")
                if width != 320:
                    self.picture(page, f"{name}_{width}_{scheme}")

    def test_it_shows_the_tier_refreshes_itself_and_asks_nobody_else(self):
        with ProcessTier(workers=3, slots=22) as tier, browser.Browser() as page:
            traffic = [Traffic(tier.address, cases_of(vectors.load()), return_mode="exact") for _ in range(2)]
            for t in traffic:
                t.start()
            origin = f"http://{tier.coordinator.listening['http']}"
            page.look(1280, 800)
            page.open(origin + "/")
            page.wait_for("document.getElementById('state')?.textContent === 'ready'", 10, "ready")
            page.wait_for("document.querySelectorAll('#workers tr').length === 3", 5, "three workers")
            page.wait_for("document.querySelectorAll('#sessions tr').length === 2", 5, "two sessions")
            page.wait_for("document.querySelectorAll('#load-rows tr').length === 4", 5, "four layers")
            page.wait_for(f"/\\d/.test({WORKER % 'worker@2'}.children[5].textContent)", 10, "rows a second")
            page.wait_for("/^[1-9]/.test(document.getElementById('tile-tokens').textContent)", 10, "tokens a second")
            page.wait_for("document.querySelectorAll('#load-rows td.h3').length > 0", 15, "load near the mean")
            self.assertEqual(5, page.evaluate("document.querySelector('#load-rows tr').children.length"))
            time.sleep(6)  # a curve worth a picture, and eleven more seconds of load
            # One navigation, then documents alone: it refreshes without being loaded again.
            page.evaluate("window.stays = 1")
            self.check_looks(page, "ready")

            page.look(1280, 800)
            tier.workers["worker@2"].kill()
            seen = page.wait_for(f"{WORKER % 'worker@2'}.innerText.includes('lost')", 5, "the loss on the page")
            page.wait_for("document.getElementById('events').innerText.includes('worker lost')", 3, "its event")
            self.check_looks(page, "worker_lost")
            tier.workers["worker@2"].start()
            page.look(1280, 800)
            page.wait_for(f"{WORKER % 'worker@2'}.innerText.includes('serving')", 20, "its return")
            for t in traffic:
                t.stop()
            self.assertEqual(1, page.evaluate("window.stays"))
            self.assertEqual([], page.console)
            self.assertEqual([], page.failures)
            own = urllib.parse.urlsplit(origin).netloc
            self.assertEqual([], [u for u in page.requests if urllib.parse.urlsplit(u).netloc != own])
            self.assertGreater(sum(u.endswith("/status.json") for u in page.requests), 5)
            print(f"a killed worker is on the page after {seen:.2f} s; {len(page.requests)} requests, all of {own}")

            # The choice between the last seconds and the whole generation works by keyboard too.
            page.evaluate("document.getElementById('load-all').focus()")
            page.call("Input.dispatchKeyEvent", type="keyDown", key="Enter", code="Enter", windowsVirtualKeyCode=13,
                      text="\r")
            page.wait_for("document.getElementById('load-caption').textContent.includes('generation')", 3, "all rows")

            tier.coordinator.kill()
            page.wait_for("document.getElementById('trouble').innerText.includes('has not answered')", 10,
                          "the silence")
            self.assertEqual(3, page.evaluate("document.querySelectorAll('#workers tr').length"))
            tier.coordinator.start()
            page.wait_for("document.getElementById('trouble').hidden", 15, "the answer of the new coordinator")
            self.assertEqual([], traffic[0].wrong() + traffic[1].wrong())

    def test_no_name_becomes_markup(self):
        name = '<img src=x onerror="document.title=1">'
        with ProcessTier(workers=1) as tier, browser.Browser() as page:
            import moetier
            connection = moetier.connect(tier.address, tenant=name)
            session = connection.session(max_tokens=4)
            page.open(f"http://{tier.coordinator.listening['http']}/")
            page.wait_for("document.querySelectorAll('#sessions tr').length === 1", 10, "the session")
            self.assertIn(name, page.text())
            self.assertEqual(0, page.evaluate("document.querySelectorAll('main img').length"))
            self.assertNotEqual("1", page.evaluate("document.title"))
            self.assertEqual([], page.console)
            session.close()
            connection.close()

    def test_a_workers_own_page_is_whole_without_a_script(self):
        with ProcessTier(workers=1) as tier, browser.Browser() as page:
            page.look(390, 844, phone=True)
            page.open(f"http://{tier.workers['worker@1'].listening['http']}/")
            page.wait_for("document.body?.innerText.includes('serving')", 10, "the worker's page")
            self.assertEqual([], page.evaluate(OVERFLOWING))
            self.assertEqual([], page.evaluate(FAINT))
            self.assertEqual([], page.console)


if __name__ == "__main__":
    if browser.find() is None:
        print("no chromium on this machine (deploy/setup.sh tests installs it): not run")
        sys.exit(SKIPPED)
    unittest.main()
