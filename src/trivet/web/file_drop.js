// Takes files that are dropped anywhere on the page.

import { bring } from "./file_import.js";

const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
const mark = (on) => document.body.classList.toggle("dropping", on);

// Until the page is `ready`, a file is only kept from replacing it.
export function acceptFiles(ready) {
  addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    mark(ready());
  });
  addEventListener("dragleave", (event) => event.relatedTarget === null && mark(false));
  addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    mark(false);
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.());
    const folders = entries.filter((entry) => entry?.isDirectory).map((entry) => entry.name);
    if (ready()) bring([...event.dataTransfer.files], folders);
  });
}
