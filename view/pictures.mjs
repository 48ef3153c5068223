// The pictures of docs/guide.md: parts of pages, at the views that hashes restore.
import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { conset, launch, open, settled, temporaryFolder } from "./tests/support.mjs";

/** Greatest size of a picture in bytes. */
const MOST = 150_000;
const out = fileURLToPath(new URL("../docs/pictures/", import.meta.url));
const folder = temporaryFolder();
mkdirSync(out, { recursive: true });
conset(folder, "generate", "cracked:nodes=1000", "-o", "crack.msh");
const crack = "crack.msh --machine torus:4x4 --words-per-node 16 --seed 1";
conset(folder, "view", ...crack.split(" "), "-q", "-o", "crack.html");
const random = "pattern:random:density=0.2 --words 64 --machine torus:8x8";
for (const [name, ...options] of [["random"], ["paper", "--algorithm", "paper"]])
  conset(folder, "compile", ...random.split(" "), ...options, "-q", "-o", `${name}.json`);
conset(folder, "view", "random.json", "-q", "-o", "random.html");
conset(folder, "view", "random.json", "paper.json", "-q", "-o", "both.html");

const browser = await launch();
const pictures = [
  ["machine", "random", "#phase=2&links=routes&cells=channels&select=connection:40", ".columns", 1250],
  ["timetable", "random", "#select=connection:40", "#timetable-section", 1100],
  ["clocks", "random", "", "#clocks-section", 1000],
  ["mesh", "crack", "#select=cell:5", "#mesh-section", 560],
  ["compare", "both", "#links=words", "#compare-pictures", 1000],
];
for (const [name, page, hash, part, width] of pictures) {
  const opened = await open(browser, join(folder, `${page}.html`), { hash, width, height: 800 });
  // The player stays at the top of the window, where it would hide what is photographed.
  await opened.evaluate(() => {
    document.getElementById("player").style.position = "static";
    document.getElementById("mesh").style.height = "300px";
  });
  await settled(opened);
  const path = join(out, `${name}.png`);
  await opened.locator(part).first().screenshot({ path });
  const { size } = statSync(path);
  console.log(`docs/pictures/${name}.png: ${size} bytes`);
  if (size > MOST) throw new Error(`${name}.png is greater than ${MOST} bytes: make the part smaller`);
  await opened.context().close();
}
await browser.close();
