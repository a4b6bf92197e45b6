// Imports dropped files: each line of JSONL is a document; any other file is sent as it is, and the service reads it.

import { query, lines as stream } from "./api.js";
import { fill, h } from "./dom.js";
import { counted, size } from "./format.js";
import { here } from "./state.js";

const PIECE = 512 * 1024; // bytes sent at a time: each is durable before the next begins
const BATCH = 500; // documents of a JSON file
const NDJSON = "application/x-ndjson";
const encoder = new TextEncoder();

async function* pieces(file) {
  const name = file.name.toLowerCase();
  if (/\.(jsonl|ndjson)$/.test(name)) {
    yield* chunks(file);
    return;
  }
  if (name.endsWith(".json")) {
    const found = JSON.parse(await file.text());
    const all = Array.isArray(found) ? found : (found.documents ?? [found]);
    for (let at = 0; at < all.length; at += BATCH) {
      const some = all.slice(at, at + BATCH).map((item) => `${JSON.stringify(item)}\n`);
      yield { body: some.join(""), bytes: (file.size * some.length) / all.length, before: at };
    }
    return;
  }
  const modified = new Date(file.lastModified).toISOString();
  yield { body: file, bytes: file.size, type: "application/octet-stream", named: { filename: file.name, modified } };
}

// Splits the file at line ends into pieces; the header of an export goes before each.
async function* chunks(file) {
  let header = "";
  let rest = "";
  let first = true;
  let before = 0; // lines of the file that went before
  const reader = file.stream().pipeThrough(new TextDecoderStream()).getReader();
  let kept = "";
  for (;;) {
    const { value, done } = await reader.read();
    rest += value ?? "";
    const end = done ? rest.length : rest.lastIndexOf("\n") + 1;
    kept += rest.slice(0, end);
    rest = rest.slice(end);
    if (first && kept) {
      const line = kept.slice(0, kept.indexOf("\n") + 1);
      if (/^\s*\{\s*"trivet"\s*:/.test(line)) header = line;
      first = false;
    }
    if (kept && (done || kept.length >= PIECE)) {
      const whole = kept.startsWith(header);
      yield {
        body: whole ? kept : header + kept,
        bytes: encoder.encode(kept).length,
        before: whole ? before : before - 1,
      };
      before += kept.split("\n").length - 1;
      kept = "";
    }
    if (done) return;
  }
}

// Converts the line number in a piece to that in the file.
const placed = (place, before) =>
  place.replace(/^body /, "").replace(/^line (\d+)$/, (_, number) => `line ${before + Number(number)}`);

export async function take(files, place, done) {
  const total = [...files].reduce((sum, file) => sum + file.size, 0);
  const bar = h("progress", { max: Math.max(1, total), "aria-label": "Import" });
  bar.value = 0;
  const told = h("p", { role: "status" });
  fill(place, h("div", { class: "importing" }, h("b", null, counted(files.length, "file")), bar, told));
  const counts = { added: 0, updated: 0, unchanged: 0, broken: 0 };
  const problems = [];
  let sent = 0;
  const tell = (line) =>
    fill(
      told,
      `${counted(counts.added + (line?.added ?? 0), "document")} added, ${counts.updated + (line?.updated ?? 0)} updated, ${counts.unchanged + (line?.unchanged ?? 0)} unchanged, ${counts.broken + (line?.broken ?? 0)} broken · ${size(sent)} of ${size(total)}`,
    );
  for (const file of files) {
    const begun = sent;
    try {
      for await (const { body, bytes, named = {}, type = NDJSON, before = 0 } of pieces(file)) {
        let last = {};
        await stream(here(`/import${query(named)}`), { method: "POST", body, type }, (line) => {
          last = line;
          tell(line);
        });
        for (const name of Object.keys(counts)) counts[name] += last[name] ?? 0;
        for (const each of last.problems ?? [])
          problems.push([...new Set([file.name, placed(each.line, before)]), each.reason].join(": "));
        for (const each of last.notes ?? []) problems.push(`${file.name}: ${each.note}`);
        if (last.error) throw new Error(last.error);
        sent += bytes;
        bar.value = sent;
        tell();
      }
    } catch (error) {
      problems.push(`${file.name}: ${error.message}`);
    }
    sent = begun + file.size;
    bar.value = sent;
    tell();
  }
  if (problems.length)
    told.after(
      h(
        "ul",
        { class: "wrong" },
        problems.slice(0, 20).map((text) => h("li", null, text)),
      ),
    );
  done(counts);
}
