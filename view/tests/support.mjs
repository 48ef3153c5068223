// What the tests and the script of pictures share: schedules, pages, and a browser.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const root = fileURLToPath(new URL("../..", import.meta.url));
const command = process.env.CONSET_COMMAND ?? join(root, "target/release/conset");

/** Runs conset in a folder; returns its standard output. */
export function conset(folder, ...args) {
  return execFileSync(command, args, {
    cwd: folder,
    encoding: "utf8",
    maxBuffer: 1 << 28,
    stdio: ["ignore", "pipe", "pipe"],
  });
}

/** What conset prints as JSON. */
export function json(folder, ...args) {
  return JSON.parse(conset(folder, ...args, "--json"));
}

/** What conset prints as JSON of a file that the checker refuses. */
export function refusedBy(folder, ...args) {
  try {
    conset(folder, ...args, "--json");
  } catch (error) {
    if (error.status === 1) return JSON.parse(error.stdout);
    throw error;
  }
  throw new Error(`conset ${args.join(" ")} should have been refused`);
}

/** The rows of `conset show VIEW FILE --json`. */
export function show(folder, view, file, ...options) {
  return json(folder, "show", file, ...view.split(" "), ...options).rows;
}

/** The summary of the first set. */
export function summary(folder, file) {
  return json(folder, "show", file).sets[0];
}

/** A folder for the time of the tests. */
export function temporaryFolder() {
  const folder = mkdtempSync(join(tmpdir(), "conset-view-"));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** The schedules that are looked at: name, and how they are compiled. */
export const SCHEDULES = {
  "all-to-all": ["pattern:all-to-all", "--words", "64"],
  "halo-32x32": ["plate.msh", "--machine", "torus:32x32", "--max-partitions", "1", "--max-plans", "1"],
  empty: ["empty.cset"],
  "fat-tree-steps": ["pattern:all-to-all", "--machine", "fat-tree:32", "--by", "steps"],
  hypercube: ["pattern:hypercube", "--machine", "hypercube:6"],
  "torus-3d": ["pattern:random", "--machine", "torus:4x4x4"],
};

/** Compiles the schedules and writes their pages; `surface.html` is a mesh of three dimensions, compiled by `view`. */
export function writePages(folder) {
  writeFileSync(join(folder, "empty.cset"), "conset set 1\nset nothing\n");
  conset(folder, "generate", "plate:120x120", "-o", "plate.msh");
  conset(folder, "generate", "bricks:8x6x5", "-o", "bricks.msh");
  for (const [name, args] of Object.entries(SCHEDULES)) {
    conset(folder, "compile", ...args, "-q", "-o", `${name}.json`);
    conset(folder, "view", `${name}.json`, "-q", "-o", `${name}.html`);
  }
  conset(folder, "view", "bricks.msh", "--machine", "torus:4x4", "--seed", "1", "-q", "-o", "surface.html");
}

/** Milliseconds after which something that a test waits for will not come: other programs may have the processor. */
const PATIENCE = 180_000;

/** Chromium without windows takes half the time of the processor. */
const BROWSERS = ["chromium-headless-shell", "chromium", "chromium-browser"].map((name) => `/usr/bin/${name}`);

export async function launch() {
  const executablePath = process.env.CHROMIUM ?? BROWSERS.find(existsSync);
  // Containers run as root, where Chromium's own sandbox is not available.
  const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  return chromium.launch({ executablePath, args, timeout: PATIENCE });
}

/** Opens a page from disk and waits until it is loaded; `page.problems` has errors and requests. */
export async function open(browser, file, { hash = "", width = 1300, height = 900, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, ...options });
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  page.problems = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) page.problems.push(message.text());
  });
  page.on("pageerror", (error) => page.problems.push(String(error)));
  page.on("request", (request) => {
    if (!/^(file|blob|data):/.test(request.url())) page.problems.push(`request: ${request.url()}`);
  });
  await page.goto(pathToFileURL(file).href + hash);
  await ready(page);
  return page;
}

export async function ready(page) {
  await page.waitForFunction(() => ["ready", "failed"].includes(document.documentElement.dataset.state));
  // Pictures are drawn in the next frames.
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

/** Waits until the page has drawn the state of its last change. */
export async function settled(page) {
  await page.evaluate(
    () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 200)))),
  );
}

/** Opens the tables below a picture and returns the attributes `data-*` of all rows. */
export async function rows(page, id, attribute) {
  return page.evaluate(
    async ([id, attribute]) => {
      const part = document.getElementById(id);
      if (part instanceof HTMLDetailsElement) part.open = true;
      await new Promise((done) => setTimeout(done, 50));
      for (const more of part.querySelectorAll("button.more")) while (!more.hidden) more.click();
      return [...part.querySelectorAll(`tr[data-${attribute}]`)].map((row) => ({ ...row.dataset }));
    },
    [id, attribute],
  );
}

/** Where something is in a picture of the page, in pixels of the canvas. */
export const place = (page, view, selection) =>
  page.evaluate(([view, selection]) => window.conset[view].place(selection), [view, selection]);

/** The state of the page. */
export const state = (page) => page.evaluate(() => window.conset.store.state);

export async function clickAt(page, canvas, position) {
  assert.ok(position, `${canvas} has a place to click`);
  await page.locator(canvas).click({ position: { x: position[0], y: position[1] } });
  await settled(page);
}

const axeSource = readFileSync(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

/** What axe finds wrong in a page: rules, and the first elements that break them. */
export async function axeViolations(page) {
  await page.evaluate(axeSource);
  const found = await page.evaluate(() => window.axe.run({ resultTypes: ["violations"] }));
  return found.violations.map(({ id, nodes }) => {
    const elements = nodes.slice(0, 3).map((node) => node.html.slice(0, 160));
    return `${id}: ${elements.join(" | ")}`;
  });
}
