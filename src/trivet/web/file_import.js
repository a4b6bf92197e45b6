// Imports files, one after another, and shows the progress of each.
// Each line of JSONL is a document; any other file is sent as it is, and the service reads it.

import { query, lines as stream } from "./api.js";
import { button, fill, find, h } from "./dom.js";
import { counted, size } from "./format.js";
import { notice } from "./notices.js";
import { here, mayWrite, state, WHY_NOT } from "./state.js";

const PIECE = 512 * 1024; // bytes sent at a time: each is durable before the next begins
const BATCH = 500; // documents of a JSON file
const SHOWN = 20; // problems of a file
const NDJSON = "application/x-ndjson";
const A_FOLDER = "a folder; drop the files in it, or run “trivet import” with it";
const encoder = new TextEncoder();
const rows = []; // of the list of files
let queue = Promise.resolve();

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

// Adds files to the collection that is shown now. `folders` are the names among them that are not files.
export function bring(files, folders = []) {
  if (!files.length) return;
  if (!mayWrite()) return void notice(WHY_NOT, { kind: "wrong" });
  const path = here("/import");
  if (rows.every((row) => row.ended)) rows.length = 0;
  const added = files.map((file) => new Row(file, folders.includes(file.name)));
  rows.push(...added);
  draw();
  find("imports").hidden = false;
  queue = queue.then(async () => {
    for (const row of added) await row.send(path);
    document.dispatchEvent(new Event("imported"));
  });
}

function draw() {
  const place = find("imports");
  fill(
    place,
    h(
      "header",
      null,
      h("h2", null, `Files for ${state.collection}`),
      button("×", () => (place.hidden = true), { class: "close", "aria-label": "Close the list of files" }),
    ),
    h("p", { class: "sum", role: "status" }),
    h("ul", null, rows.map((row) => row.element)),
  );
  sum();
}

function sum() {
  const refused = rows.filter((row) => row.isRefused);
  const count = (name) => rows.reduce((total, row) => total + (row.isRefused ? 0 : row.counts[name]), 0);
  const others = ["updated", "unchanged", "broken"].map((name) => [count(name), name]).filter(([number]) => number);
  const parts = [`${counted(count("added"), "document")} added`, ...others.map((part) => part.join(" "))];
  if (refused.length) parts.push(`${counted(refused.length, "file")} refused`);
  const ended = rows.filter((row) => row.ended).length;
  find("imports").querySelector(".sum").textContent =
    `${ended} of ${counted(rows.length, "file")}: ${parts.join(", ")}`;
}

// A file in the list: its name, its progress, and what became of it.
class Row {
  constructor(file, isFolder) {
    Object.assign(this, { file, isFolder, ended: false, isRefused: false, problems: [] });
    this.counts = { added: 0, updated: 0, unchanged: 0, broken: 0 };
    this.bar = h("progress", { max: 1, value: 0, "aria-label": `Progress of ${file.name}` });
    this.told = h("span", { class: "told-of" }, "waiting");
    this.element = h(
      "li",
      { data: { state: "waiting" } },
      h("b", { dir: "auto" }, file.name),
      h("small", null, size(file.size)),
      this.bar,
      this.told,
    );
  }

  tell(state, text, part) {
    this.element.dataset.state = state;
    this.told.textContent = text;
    if (part === undefined) this.bar.removeAttribute("value");
    else this.bar.value = part;
    sum();
  }

  async send(path) {
    let failed = this.isFolder ? A_FOLDER : "";
    if (!failed) {
      this.tell("sending", "being read");
      try {
        let sent = 0;
        for await (const piece of pieces(this.file)) {
          await this.sendPiece(path, piece);
          sent += piece.bytes;
          const total = this.file.size;
          if (sent < total) this.tell("sending", `${size(sent)} of ${size(total)}`, sent / total);
        }
      } catch (error) {
        failed = error.message;
      }
    }
    this.end(failed);
  }

  async sendPiece(path, { body, bytes, named = {}, type = NDJSON, before = 0 }) {
    let line = {};
    await stream(`${path}${query(named)}`, { method: "POST", body, type }, (next) => (line = next));
    for (const name of Object.keys(this.counts)) this.counts[name] += line[name] ?? 0;
    for (const { line: place, reason } of line.problems ?? [])
      this.problems.push([placed(place, before), reason].filter((text) => text !== this.file.name).join(": "));
    for (const { note } of line.notes ?? []) this.problems.push(note);
    if (line.error) throw new Error(line.error);
  }

  // A file of which nothing was kept is refused, with the reason.
  end(failed) {
    this.ended = true;
    const kept = ["added", "updated", "unchanged"].filter((name) => this.counts[name]);
    const wrong = [...(failed ? [failed] : []), ...this.problems];
    this.isRefused = !kept.length && wrong.length > 0;
    if (this.isRefused) this.tell("refused", `refused: ${wrong.shift()}`, 1);
    else {
      const text = kept.map((name) => `${this.counts[name]} ${name}`).join(", ");
      this.tell(wrong.length ? "partly" : "done", text || "no document in it", 1);
    }
    if (!wrong.length) return;
    const more = wrong.length > SHOWN && h("li", null, `and ${wrong.length - SHOWN} more`);
    this.element.append(h("ul", { class: "wrong" }, wrong.slice(0, SHOWN).map((each) => h("li", null, each)), more));
  }
}
