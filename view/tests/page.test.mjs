// The page in a real browser: its numbers, clicks, keys, hash and accessibility.
import assert from "node:assert/strict";
import { copyFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import {
  SCHEDULES,
  axeViolations,
  clickAt,
  conset,
  json,
  launch,
  open,
  place,
  rows,
  settled,
  show,
  state,
  summary,
  temporaryFolder,
  writePages,
} from "./support.mjs";

const folder = temporaryFolder();
const file = (name) => join(folder, `${name}.html`);
const NAMES = [...Object.keys(SCHEDULES), "surface"];
const PHASES = ["all-to-all", "halo-32x32", "empty", "hypercube", "torus-3d"];
let browser;

before(async () => {
  writePages(folder);
  browser = await launch();
});
after(() => browser?.close());

/** Opens a page and closes it when the test is done. */
async function opened(t, name, options) {
  const page = await open(browser, file(name), options);
  t.after(() => page.context().close());
  return page;
}

const read = new Map();

/** A page for tests that change nothing of it, which is opened once. */
async function readOnly(name) {
  if (!read.has(name)) read.set(name, await open(browser, file(name)));
  return read.get(name);
}

const title = (page) => page.locator("#details h3").first().innerText();

for (const name of NAMES)
  test(`${name}: opens without an error, in light and dark, and axe finds no violation`, async (t) => {
    for (const colorScheme of ["light", "dark"]) {
      const page = await opened(t, name, { colorScheme });
      assert.deepEqual(page.problems, []);
      assert.equal(await page.evaluate(() => document.documentElement.dataset.state), "ready");
      assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), colorScheme);
      await page.evaluate(() => document.querySelectorAll("details").forEach((part) => (part.open = true)));
      await page.evaluate(() => window.conset.select({ kind: "cell", id: 0 }));
      await settled(page);
      assert.deepEqual(await axeViolations(page), []);
    }
  });

for (const name of NAMES)
  test(`${name}: pictures are not empty`, async () => {
    const page = await readOnly(name);
    const canvases = [
      "machine",
      ...(name === "empty" ? [] : ["timetable", "matrix"]),
      ...(name === "surface" ? ["mesh"] : []),
    ];
    for (const id of canvases) {
      const colours = await page.evaluate((id) => {
        const canvas = document.getElementById(id);
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        return new Set(new Uint32Array(data.buffer)).size;
      }, id);
      assert.ok(colours > 4, `${id} has ${colours} colours`);
    }
  });

for (const name of PHASES)
  test(`${name}: the numbers of phases are those of conset show`, async () => {
    const page = await readOnly(name);
    const expected = show(folder, "phases", `${name}.json`);
    const drawn = await rows(page, "phases", "phase");
    assert.equal(drawn.length, expected.length);
    for (const [i, row] of drawn.entries())
      for (const [key, column] of [
        ["routes", "routes"],
        ["words", "words"],
        ["hops", "hops"],
        ["makespan", "makespan"],
        ["predicted", "predicted_clocks"],
        ["maxSharing", "max_sharing"],
      ])
        assert.equal(Number(row[key]), expected[i][column], `phase ${i}, ${column}`);
  });

for (const name of ["all-to-all", "halo-32x32", "torus-3d", "hypercube"])
  test(`${name}: the numbers of links, cells and streams are those of conset show`, async (t) => {
    const phases = show(folder, "phases", `${name}.json`).length;
    for (const phase of new Set([0, phases - 1])) {
      const page = await opened(t, name, { hash: `#phase=${phase}` });
      const of = (view) => show(folder, view, `${name}.json`, "--phase", String(phase));
      const links = await rows(page, "machine-tables", "link");
      const drawnLinks = links.map((row) => [row.link, row.routes, row.words].map(Number)).sort((a, b) => a[0] - b[0]);
      assert.deepEqual(
        drawnLinks,
        of("links").map((row) => [row.link, row.routes, row.words]),
      );
      await page.selectOption("#choose-cells", "channels");
      await settled(page);
      const cells = await rows(page, "machine-tables", "cell");
      const drawnCells = cells.map((row) => [row.cell, row.channels].map(Number)).sort((a, b) => a[0] - b[0]);
      assert.deepEqual(
        drawnCells,
        of("channels").map((row) => [row.cell, row.used]),
      );
      const streams = await rows(page, "timetable-tables", "stream");
      const order = (a, b) => a[0] - b[0] || a[1] - b[1];
      const drawn = streams.map((row) => [row.connection, row.start, row.end, row.words].map(Number)).sort(order);
      const expected = of("timetable")
        .map((row) => [row.connection, row.start, row.end, row.words])
        .sort(order);
      assert.deepEqual(drawn, expected);
    }
  });

test("the summary is that of conset show", async () => {
  for (const name of [...PHASES, "fat-tree-steps"]) {
    const page = await readOnly(name);
    const expected = summary(folder, `${name}.json`);
    const text = async (what) => (await page.locator(`[data-summary="${what}"]`).innerText()).replace(/\s/g, " ");
    const spaced = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, " ");
    assert.ok(
      (await text("connections")).startsWith(
        `connections ${spaced(expected.connections)}, ${spaced(expected.words)} word`,
      ),
      await text("connections"),
    );
    assert.ok(
      (await text("clocks")).startsWith(
        `clocks ${spaced(expected.predicted_clocks)} predicted, bound ${spaced(expected.bound_clocks)} by ${expected.bound_clocks_by}`,
      ),
    );
    if (name === "fat-tree-steps")
      assert.ok((await text("steps")).startsWith(`steps ${expected.steps}, ${expected.messages} messages`));
    else
      assert.ok(
        (await text("phases")).startsWith(
          `phases ${expected.phases}, bound ${expected.bound_phases} by ${expected.bound_phases_by}`,
        ),
      );
  }
});

test("the steps are those of conset show", async (t) => {
  const page = await opened(t, "fat-tree-steps");
  const expected = show(folder, "steps", "fat-tree-steps.json");
  const streams = await rows(page, "timetable-tables", "stream");
  const words = new Map();
  for (const row of streams) words.set(Number(row.phase), (words.get(Number(row.phase)) ?? 0) + Number(row.words));
  const steps = new Map();
  for (const row of expected) {
    const step = row.step;
    steps.set(step, (steps.get(step) ?? 0) + row.words);
  }
  assert.deepEqual(
    [...words].sort((a, b) => a[0] - b[0]),
    [...steps].sort((a, b) => a[0] - b[0]),
  );
  const end = Math.max(...streams.map((row) => Number(row.end)));
  assert.equal(end, summary(folder, "fat-tree-steps.json").predicted_clocks);
});

test("a click on a link shows its routes", async (t) => {
  const page = await opened(t, "torus-3d", { hash: "#phase=1" });
  const [most] = show(folder, "links", "torus-3d.json", "--phase", "1").sort((a, b) => b.routes - a.routes);
  const link = most.link;
  await clickAt(page, "#machine", await place(page, "machine", { kind: "link", id: link }));
  assert.match(await title(page), new RegExp(`^Link l${link}: `));
  assert.equal(await page.locator('dd[data-fact="words"]').innerText(), String(most.words));
  assert.equal(await page.locator("#details tr[data-stream]").count(), most.routes);
});

test("a click on a cell shows its neighbours, operations and tables", async (t) => {
  const page = await opened(t, "all-to-all", { hash: "#phase=2" });
  await clickAt(page, "#machine", await place(page, "machine", { kind: "cell", id: 45 }));
  assert.equal(await title(page), "Cell c45 (5, 5)");
  const captions = await page.locator("#details caption").allInnerTexts();
  assert.ok(captions.includes("Neighbours") && captions.includes("Forwarding table in phase 2"), captions.join());
  const contexts = show(folder, "cell 45", "all-to-all.json", "--phase", "2");
  const entries = contexts.filter((row) => row.what === "forward" || row.kind === "forward").length;
  const used = show(folder, "channels", "all-to-all.json", "--phase", "2").find((row) => row.cell === 45).used;
  const drawn = await page.locator('#details table:has(caption:text("Forwarding table")) tbody tr').count();
  assert.equal(drawn, used);
  assert.ok(entries === 0 || entries === used);
});

test("a bar of the timetable is a connection", async (t) => {
  const page = await opened(t, "all-to-all", { hash: "#phase=1" });
  const stream = (await rows(page, "timetable-tables", "stream"))[5];
  await page.evaluate(() => (document.getElementById("timetable-tables").open = false));
  await clickAt(page, "#timetable", await place(page, "timetable", Number(stream.stream)));
  assert.match(await title(page), new RegExp(`^Connection x${stream.connection}: `));
});

test("a connection is found by its ends, and its route is that of conset show", async (t) => {
  const page = await opened(t, "all-to-all");
  await page.fill("#find-text", "c45 -> c37");
  await page.press("#find-text", "Enter");
  await settled(page);
  const id = (await state(page)).selection.id;
  assert.equal(await title(page), `Connection x${id}: c45 → c37`);
  const [expected] = show(folder, `connection ${id}`, "all-to-all.json");
  const route = await page.locator("#details ol.route li").allInnerTexts();
  const cells = expected.route.match(/c\d+/g).filter((cell, i, all) => !all[i].startsWith("ch"));
  assert.deepEqual(
    route.map((text) => text.split(" ")[0]),
    cells,
  );
  assert.equal((await page.locator('dd[data-fact="start"]').innerText()).replace(/\D/g, ""), String(expected.start));
  await page.fill("#find-text", "c45 -> c45");
  await page.press("#find-text", "Enter");
  assert.equal(await page.locator("#find-answer").innerText(), "no connection from c45 to c45");
});

test("the clock lights up open streams, and the player moves it", async (t) => {
  const page = await opened(t, "torus-3d");
  const clock = 600;
  await page.evaluate((clock) => window.conset.store.set({ clock }), clock);
  await settled(page);
  const phases = show(folder, "phases", "torus-3d.json");
  const parameters = await page.evaluate(() => window.conset.schedule.head.machine.parameters);
  let [begin, phase] = [0, 0];
  const length = (p) => parameters.t_sync + parameters.t_phase + Math.max(p.predicted_clocks, p.makespan);
  while (begin + length(phases[phase]) <= clock) begin += length(phases[phase++]);
  const at = clock - begin - parameters.t_sync - parameters.t_phase;
  const open = show(folder, "timetable", "torus-3d.json", "--phase", String(phase)).filter(
    (row) => row.start <= at && at < row.end,
  );
  assert.equal(await page.locator("#clock-text").getAttribute("data-open"), String(open.length));
  await page.click("#play");
  await page.waitForFunction((clock) => window.conset.store.state.clock !== clock, clock);
  await page.click("#play");
  assert.equal(await page.locator("#play").innerText(), "Play");
  assert.deepEqual(page.problems, []);
});

test("everything can be reached by the keyboard", async (t) => {
  const page = await opened(t, "all-to-all");
  await page.focus("#machine");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowDown");
  await settled(page);
  assert.deepEqual((await state(page)).selection, { kind: "cell", id: 9 });
  await page.keyboard.press("+");
  await settled(page);
  assert.notEqual((await state(page)).zoom, "");
  await page.keyboard.press("0");
  await page.keyboard.press("Escape");
  await settled(page);
  assert.equal((await state(page)).selection, null);
  await page.focus("#phase");
  await page.keyboard.press("ArrowRight");
  await settled(page);
  assert.equal((await state(page)).phase, 0);
  // Tab goes through all controls, from the first to the last.
  const fresh = await opened(t, "all-to-all");
  const reached = new Set();
  for (let i = 0; i < 200 && !reached.has("matrix-tables"); i++) {
    await fresh.keyboard.press("Tab");
    reached.add(await fresh.evaluate(() => document.activeElement.id || document.activeElement.parentElement?.id));
  }
  for (const id of [
    "choose-theme",
    "phase",
    "clock",
    "play",
    "choose-cells",
    "choose-links",
    "machine",
    "machine-tables",
    "find-text",
    "choose-rows",
    "filter",
    "timetable",
    "timetable-tables",
    "clocks",
    "clocks-tables",
    "matrix-tables",
  ])
    assert.ok(reached.has(id), `Tab does not reach ${id}`);
});

test("a hash restores a view", async (t) => {
  const first = await opened(t, "torus-3d");
  await first.selectOption("#choose-cells", "idle");
  await first.selectOption("#choose-links", "busy");
  await first.selectOption("#choose-rows", "links");
  await first.selectOption("#choose-theme", "dark");
  await first.fill("#filter", "c3 c4");
  await first.fill("#find-text", "x17");
  await first.press("#find-text", "Enter");
  await first.evaluate(() => window.conset.store.set({ phase: 2, clock: 2000, zoom: "12,-30,1.500" }));
  await settled(first);
  await settled(first);
  const hash = await first.evaluate(() => location.hash);
  const second = await opened(t, "torus-3d", { hash });
  assert.deepEqual(await state(second), await state(first));
  assert.equal(await second.locator("#details").innerText(), await first.locator("#details").innerText());
  const picture = (page) => page.evaluate(() => document.getElementById("machine").toDataURL());
  assert.equal(await picture(second), await picture(first));
  assert.deepEqual(second.problems, []);
});

test("a file name that looks like markup is text", async (t) => {
  const name = "<img src=x onerror=document.title=1>&amp;";
  copyFileSync(join(folder, "hypercube.json"), join(folder, `${name}.json`));
  conset(folder, "view", `${name}.json`, "-q", "-o", "markup.html");
  const page = await opened(t, "markup");
  assert.deepEqual(page.problems, []);
  assert.equal(await page.locator("h1").innerText(), `${name}.json`);
  assert.equal(await page.title(), `${name}.json – conset`);
  assert.equal(await page.locator("img").count(), 0);
});

test("a hash of another page is no error", async (t) => {
  const page = await opened(t, "torus-3d", {
    hash: "#schedule=7&set=99&phase=1e9&clock=99999999&select=cell:100000&zoom=a,b&cells=%3Cb%3E",
  });
  assert.deepEqual(page.problems, []);
  assert.equal(await title(page), "Nothing is selected");
});

test("a click on the mesh finds the cell of the part", async (t) => {
  const page = await opened(t, "surface");
  const part = await page.evaluate(() =>
    Array.from({ length: 16 }, (_, part) => part).find((part) => window.conset.mesh.place(part)),
  );
  const cell = await page.evaluate((part) => window.conset.schedule.machine.partCell[part], part);
  await clickAt(page, "#mesh", await place(page, "mesh", part));
  assert.deepEqual((await state(page)).selection, { kind: "cell", id: cell });
  assert.match(await page.locator('dd[data-fact="part"]').innerText(), new RegExp(`\\b${part}\\b`));
  // Turning changes the picture and keeps the selection.
  const before = await page.evaluate(() => document.getElementById("mesh").toDataURL());
  await page.focus("#mesh");
  await page.keyboard.press("ArrowRight");
  await settled(page);
  assert.notEqual(await page.evaluate(() => document.getElementById("mesh").toDataURL()), before);
});

test("two schedules are compared as conset diff does", async (t) => {
  conset(folder, "compile", "pattern:all-to-all", "--words", "64", "--algorithm", "paper", "-q", "-o", "paper.json");
  conset(folder, "view", "all-to-all.json", "paper.json", "-q", "-o", "both.html");
  const page = await opened(t, "both");
  assert.deepEqual(page.problems, []);
  const diff = json(folder, "diff", "all-to-all.json", "paper.json").sets[0];
  const drawn = await rows(page, "compare-text", "diff");
  assert.ok(drawn.length >= 6);
  for (const row of drawn)
    assert.deepEqual([Number(row.a), Number(row.b)], [diff[row.diff].a, diff[row.diff].b], row.diff);
  // The picture of the change has the differences of the words of links.
  const change = await page.evaluate(() => Array.from(window.conset.comparison.views[2].values.links));
  const links = (file) => {
    const words = new Array(change.length).fill(0);
    for (const row of show(folder, "links", file)) words[row.link] += row.words;
    return words;
  };
  const [a, b] = [links("all-to-all.json"), links("paper.json")];
  assert.deepEqual(
    change,
    b.map((words, link) => words - a[link]),
  );
  assert.ok(change.some((words) => words !== 0));
  assert.match(await page.locator("#compare").innerText(), /change of links: less by/);
  await page.locator("#compare-text button.item").nth(3).click();
  await settled(page);
  assert.equal((await state(page)).schedule, 1);
  assert.match(await title(page), /^Connection x/);
  assert.deepEqual(await axeViolations(page), []);
});

test("a large set is drawn by pixels, and nothing of it is left out", async (t) => {
  conset(
    folder,
    "compile",
    "pattern:random:density=0.5",
    "--machine",
    "torus:16x16",
    "--algorithm",
    "paper",
    "-q",
    "-o",
    "large.json",
  );
  const { left_out } = json(folder, "view", "large.json", "-q", "-o", "large.html");
  const { connections } = summary(folder, "large.json");
  assert.deepEqual(left_out, []);
  assert.ok(connections > 30000, `${connections} connections`);
  // A million connections in 20 MB. What comes last is left out first.
  const blocks = readFileSync(file("large"), "utf8").matchAll(/id="block-([^"]+)">([^<]*)</g);
  const needed = [...blocks].filter(([, name]) => !/slack|phase-ports/.test(name));
  const bytes = needed.reduce((sum, [, , text]) => sum + text.length, 0);
  assert.ok(needed.length >= 8 && bytes < 19 * connections, `${bytes} bytes for ${connections} connections`);
  const page = await opened(t, "large");
  const drawn = () =>
    page.evaluate(() => {
      // The middle of the chart, without its scales.
      const chart = document.getElementById("timetable");
      const [width, height] = [chart.width / 2, chart.height / 2];
      const copy = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
      copy.drawImage(chart, -width / 2, -height / 2);
      return copy.getImageData(0, 0, width, height).data.join();
    });
  const whole = await drawn();
  await page.focus("#timetable");
  await page.keyboard.press("+");
  await settled(page);
  assert.notEqual(await drawn(), whole);
  await page.keyboard.press("0");
  await page.selectOption("#choose-rows", "links");
  await settled(page);
  assert.notEqual(await drawn(), whole);
  assert.deepEqual(page.problems, []);
});

test("paper is light", async (t) => {
  const page = await opened(t, "torus-3d", { colorScheme: "dark" });
  const corner = () =>
    page.evaluate(() => [document.documentElement.dataset.theme, getComputedStyle(document.body).backgroundColor]);
  assert.equal((await corner())[0], "dark");
  await page.emulateMedia({ media: "print" });
  await settled(page);
  assert.deepEqual(await corner(), ["light", "rgb(255, 255, 255)"]);
});

test("what is left out is said, and the rest is shown", async (t) => {
  const view = (limit) =>
    json(folder, "view", "all-to-all.json", "--size-limit", String(limit), "-q", "-o", "less.html");
  let limit = json(folder, "view", "all-to-all.json", "-q", "-o", "whole.html").bytes + 40000;
  while (!view(limit).left_out.some((what) => what.includes("routes of"))) limit -= 1000;
  const page = await opened(t, "less", { hash: "#phase=3" });
  assert.deepEqual(page.problems, []);
  assert.match(await page.locator("#left-out").innerText(), /routes of 4032 streams/);
  const links = await rows(page, "machine-tables", "link");
  const expected = show(folder, "links", "all-to-all.json", "--phase", "3").map((row) => [row.link, row.words]);
  assert.deepEqual(
    links.map((row) => [row.link, row.words].map(Number)).sort((a, b) => a[0] - b[0]),
    expected,
  );
  conset(folder, "view", "all-to-all.json", "--size-limit", "0", "-q", "-o", "least.html");
  const least = await opened(t, "least");
  assert.deepEqual(least.problems, []);
  assert.match(await least.locator("#left-out").innerText(), /4032 connections/);
});
