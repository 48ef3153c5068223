// Where every clock went, the critical path, and schedules that the checker refuses, in a real browser.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import {
  axeViolations,
  clickAt,
  conset,
  json,
  launch,
  open,
  place,
  refusedBy,
  rows,
  settled,
  show,
  state,
  temporaryFolder,
} from "./support.mjs";

const PARTS = ["switch", "setup", "software", "copying", "sending", "receiving", "partner", "link", "start", "end"];
const SCHEDULES = {
  phases: ["pattern:random:density=0.3", "--words", "40", "--machine", "iwarp-fem:4x4", "--param", "duplex=full"],
  half: ["pattern:all-to-all", "--words", "12", "--machine", "torus:3x3", "--param", "duplex=half"],
  timed: ["pattern:transpose", "--machine", "iwarp-timed:4x4", "--words", "33"],
  steps: ["pattern:all-to-all", "--machine", "cm5:16", "--by", "steps", "--words", "16"],
};
const folder = temporaryFolder();
let browser;

before(async () => {
  for (const [name, args] of Object.entries(SCHEDULES)) {
    conset(folder, "compile", ...args, "-q", "-o", `${name}.json`);
    conset(folder, "view", `${name}.json`, "-q", "-o", `${name}.html`);
  }
  browser = await launch();
});
after(() => browser?.close());

async function opened(t, name, options) {
  const page = await open(browser, join(folder, `${name}.html`), options);
  t.after(() => page.context().close());
  return page;
}

const profile = (name) => json(folder, "show", `${name}.json`, "profile").sets[0];
const inOrder = (clocks) => PARTS.map((part) => clocks[part]);
const numbers = (text) => text.split(",").map(Number);

for (const name of Object.keys(SCHEDULES)) {
  test(`${name}: the clocks of ports are those of conset show profile`, async (t) => {
    const page = await opened(t, name, { hash: "#clocks=cells" });
    assert.deepEqual(page.problems, []);
    const expected = profile(name);
    const drawn = await rows(page, "clocks-tables", "column");
    assert.deepEqual(
      drawn.map((row) => [Number(row.column), row.side, numbers(row.clocks)]),
      expected.ports.map((port) => [port.cell, port.side, inOrder(port.clocks)]),
    );
    // The sums are printed for the parts that any port has, and add up to all clocks.
    const sums = await page.evaluate(() =>
      [...document.querySelectorAll("#clocks-sums tr[data-part]")].map((row) => ({ ...row.dataset })),
    );
    for (const { part, sums: text } of sums) {
      const all = expected.sides.map(({ clocks, ports }) =>
        part === "total" ? expected.clocks * ports : clocks[part],
      );
      assert.deepEqual(numbers(text), all, part);
    }
    assert.equal(sums.at(-1).part, "total");
    const used = PARTS.filter((part) => expected.sides.some(({ clocks }) => clocks[part] > 0));
    assert.deepEqual(
      sums.slice(0, -1).map((row) => row.part),
      used,
    );
    assert.equal(await page.locator("#clocks-legend .legend").count(), used.length);
  });

  test(`${name}: the clocks of phases are those of conset show profile`, async (t) => {
    const expected = profile(name);
    const page = await opened(t, name, { hash: "#clocks=phases" });
    const mean = ({ clocks, ports }) => inOrder(clocks).map((value) => value / ports);
    assert.deepEqual(
      (await rows(page, "clocks-tables", "column")).map((row) => [Number(row.column), row.side, numbers(row.clocks)]),
      expected.phases.flatMap((phase) => phase.sides.map((side) => [phase.phase, side.side, mean(side)])),
    );
    if (name === "steps") return;
    const last = expected.phases.length - 1;
    await page.evaluate((phase) => window.conset.store.set({ phase, clocks: "cells" }), last);
    await settled(page);
    assert.deepEqual(
      (await rows(page, "clocks-tables", "column")).map((row) => numbers(row.clocks)),
      expected.phases[last].ports.map((port) => inOrder(port.clocks)),
    );
  });

  test(`${name}: idle clocks colour the machine as conset show cells says`, async (t) => {
    const page = await opened(t, name, { hash: "#cells=idle" });
    const drawn = await page.evaluate(() => Array.from(window.conset.machine.values.cells));
    const expected = new Array(drawn.length).fill(0);
    for (const row of show(folder, "cells", `${name}.json`)) expected[row.cell] = row.idle;
    assert.deepEqual(drawn, expected);
    assert.match(await page.locator("#machine-legend").innerText(), /cells: idle clocks of the ports/);
  });

  test(`${name}: the critical path is that of conset show profile, and can be clicked`, async (t) => {
    const page = await opened(t, name);
    const { critical_path: path } = profile(name);
    const drawn = await rows(page, "path", "segment");
    const number = (row, key) => Number(row[key]);
    assert.deepEqual(
      drawn.map((row) => ["connection", "phase", "from", "to", "waited"].map((key) => number(row, key))),
      path.segments.map((row) => [row.connection, row.phase, row.from, row.to, row.waited]),
    );
    const text = (await page.locator("#path p").innerText()).replace(/\D+/g, " ");
    assert.ok(text.includes(String(path.slack.greatest)), text);
    await page.locator("#path tr[data-segment] button.item").last().click();
    await settled(page);
    const { selection } = await state(page);
    const last = path.segments.at(-1);
    assert.deepEqual(selection, { kind: name === "steps" ? "stream" : "connection", id: last.connection });
    assert.match(await page.locator('dd[data-fact="slack"]').first().innerText(), /on the critical path/);
    // The frames are drawn, unless they are switched off.
    const picture = () => page.evaluate(() => document.getElementById("timetable").toDataURL());
    const framed = await picture();
    await page.selectOption("#choose-path", "off");
    await settled(page);
    assert.notEqual(await picture(), framed);
  });
}

test("a click on a column selects its phase or cell, and arrows go on", async (t) => {
  const page = await opened(t, "phases", { hash: "#clocks=phases" });
  await clickAt(page, "#clocks", await place(page, "clocks", 1));
  assert.equal((await state(page)).phase, 1);
  await page.focus("#clocks");
  await page.keyboard.press("ArrowLeft");
  await settled(page);
  assert.equal((await state(page)).phase, 0);
  await page.selectOption("#choose-clocks", "cells");
  await settled(page);
  await clickAt(page, "#clocks", await place(page, "clocks", 7));
  assert.deepEqual((await state(page)).selection, { kind: "cell", id: 7 });
  assert.equal(await page.locator("#details tr[data-port]").count(), 2);
  await page.selectOption("#choose-order", "idle");
  await settled(page);
  const idle = (await rows(page, "clocks-tables", "column")).map((row) =>
    numbers(row.clocks)
      .slice(6)
      .reduce((a, b) => a + b),
  );
  const both = Array.from({ length: idle.length / 2 }, (_, i) => idle[2 * i] + idle[2 * i + 1]);
  assert.deepEqual(
    both,
    [...both].sort((a, b) => b - a),
  );
});

test("texts follow the pointer", async (t) => {
  const page = await opened(t, "phases", { hash: "#clocks=cells" });
  const hover = async (canvas, position) => {
    await page.locator(canvas).hover({ position: { x: position[0], y: position[1] } });
    return page.locator(".tip").innerText();
  };
  assert.match(await hover("#machine", await place(page, "machine", { kind: "cell", id: 5 })), /^c5 \(1, 1\)\nwords/);
  assert.match(await hover("#timetable", await place(page, "timetable", 0)), /words, clocks .* slack/);
  assert.match(await hover("#clocks", await place(page, "clocks", 3)), /^c3, send\n[^]*total: /);
  assert.equal(await hover("#matrix", [18, 18]), "c0 → c0: 0 words");
  await page.mouse.move(2, 2);
  await settled(page);
  assert.ok(await page.locator(".tip").isHidden());
});

test("a page without the clocks of single cells says so", async (t) => {
  let limit = json(folder, "view", "phases.json", "-q", "-o", "whole.html").bytes + 40000;
  const view = (limit) => json(folder, "view", "phases.json", "--size-limit", String(limit), "-q", "-o", "less.html");
  while (!view(limit).left_out.some((what) => what.includes("the clocks of each port"))) limit -= 500;
  const page = await opened(t, "less", { hash: "#clocks=cells&phase=1" });
  assert.deepEqual(page.problems, []);
  assert.match(await page.locator("#left-out").innerText(), /the clocks of each port in each phase/);
  assert.match(await page.locator("#clocks-note").innerText(), /does not have the clocks of single cells/);
  await page.selectOption("#choose-clocks", "phases");
  await settled(page);
  assert.ok(await page.locator("#clocks").isVisible());
});

for (const [name, spoil] of [
  ["phases", (schedule) => (schedule.sets[0].phases[1].routes[0].channels[0] = 4000)],
  ["steps", (schedule) => schedule.sets[0].steps.pop()],
])
  test(`${name}: a refused schedule has a page, with the violations first`, async (t) => {
    const schedule = JSON.parse(readFileSync(join(folder, `${name}.json`), "utf8"));
    spoil(schedule);
    writeFileSync(join(folder, `wrong-${name}.json`), JSON.stringify(schedule));
    const violations = refusedBy(folder, "verify", `wrong-${name}.json`).violations;
    const report = refusedBy(folder, "view", `wrong-${name}.json`, "-q", "-o", `wrong-${name}.html`);
    assert.deepEqual(report.violations, violations);
    const page = await opened(t, `wrong-${name}`);
    assert.deepEqual(page.problems, []);
    const banner = await page.locator("#refused").innerText();
    assert.ok(banner.includes(violations[0].message) && banner.includes(violations[0].rule), banner);
    assert.match(await page.locator("#clocks-note").innerText(), /nothing is predicted/);
    assert.ok((await rows(page, "timetable-tables", "stream")).length > 0);
    await page.locator("#refused button.item").first().click();
    await settled(page);
    const { phase, selection } = await state(page);
    const [first] = violations;
    assert.equal(phase, first.phase ?? first.step ?? -1);
    assert.equal(selection?.id, first.connection ?? first.cell);
    assert.deepEqual(await axeViolations(page), []);
  });
