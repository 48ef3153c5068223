// Bundles the application into one page with places for the title and the data, crates/view/page.html, which
// that crate compiles in: it is there because a package of the crate has the files of its folder only. `--check` compares with the page that is there instead of writing it.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const here = (path) => new URL(path, import.meta.url);
/** Notices of what is bundled; each page carries them. */
const notice = readFileSync(here("NOTICE"), "utf8");
const bundle = async (entry) => {
  const result = await build({
    metafile: true,
    entryPoints: [here(entry).pathname],
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    target: ["es2022"],
    legalComments: "none",
    charset: "utf8",
  });
  for (const input of Object.keys(result.metafile.inputs)) {
    const name = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(input)?.[1];
    const output = Object.values(result.metafile.outputs)[0].inputs[input];
    if (name && output?.bytesInOutput > 0 && !new RegExp(`\\b${name}\\b`).test(notice))
      throw new Error(`${name} is bundled: add its notice to view/NOTICE and THIRD-PARTY.md`);
  }
  return result.outputFiles[0].text.trim();
};
const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

const script = `/*!\n${notice}*/\n${await bundle("src/main.ts")}`.replaceAll("</script", "<\\/script");
const style = await bundle("src/style.css");
const fields = { script, style, "script-hash": hash(script), "style-hash": hash(style) };
const page = readFileSync(here("src/page.html"), "utf8").replace(/\{\{([a-z-]+)\}\}/g, (_, name) => fields[name]);
const out = here("../crates/view/page.html");
if (process.argv.includes("--check")) {
  if (readFileSync(out, "utf8") !== page) {
    console.error("crates/view/page.html is old: run `npm run build` in view/ and commit it");
    process.exit(1);
  }
} else {
  writeFileSync(out, page);
  console.log(`crates/view/page.html: ${page.length} characters`);
}
