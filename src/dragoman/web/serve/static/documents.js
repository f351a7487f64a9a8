// Files: dropped or chosen, translated in pieces, shown and offered as a download. They never leave this tab but for the server.

import { ask } from "./requests.js";
import { detect } from "./translation.js";
import { formatOf, piecesOf, runningText, translatedName, withLanguage } from "./pieces.js";

const PIECE_CHARACTERS = 5000;
const MAX_BYTES = 20e6;
const KINDS = { text: "text/plain", markdown: "text/markdown", html: "text/html" };
const byId = (id) => document.getElementById(id);
const panel = byId("document"), progress = byId("document-progress"), download = byId("document-download");
const result = byId("document-result");

export class Documents {
  // `languages` as chosen; `say(text, kind)` is the status line; `onRefusal(error)` gets what the server refuses.
  constructor(languages, limit, say, onRefusal) {
    Object.assign(this, { languages, limit, say, onRefusal, file: null, working: null });
    this.listen();
  }

  get isOpen() { return !panel.hidden; }

  listen() {
    byId("choose-file").addEventListener("click", () => byId("file").click());
    byId("file").addEventListener("change", (event) => {
      if (event.target.files.length) this.open(event.target.files[0]);
      event.target.value = ""; // the same file again is news, too
    });
    byId("document-cancel").addEventListener("click", () => { this.close(); this.say("Cancelled; nothing was kept."); });
    byId("document-close").addEventListener("click", () => { this.close(); this.say(""); });
    const hasFile = (event) => event.dataTransfer?.types.includes("Files");
    addEventListener("dragover", (event) => {
      if (!hasFile(event)) return;
      event.preventDefault();
      byId("drop").hidden = false;
    });
    addEventListener("dragleave", (event) => { if (!event.relatedTarget) byId("drop").hidden = true; });
    addEventListener("drop", (event) => {
      byId("drop").hidden = true;
      if (!hasFile(event)) return;
      event.preventDefault();
      if (event.dataTransfer.files.length > 1) this.say("One file at a time, please.", "error");
      else this.open(event.dataTransfer.files[0]);
    });
  }

  async open(file) {
    const format = formatOf(file.name);
    if (!format) return this.say(`${file.name} cannot be translated: only .txt, .md and .html files can.`, "error");
    if (file.size > MAX_BYTES) return this.say(`${file.name} is larger than 20 MB: cut it into parts.`, "error");
    try {
      const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(await file.arrayBuffer());
      this.file = { name: file.name, format, text };
    } catch {
      return this.say(`${file.name} is not text in UTF-8: save it so and try again.`, "error");
    }
    return this.start();
  }

  async start() {
    this.working?.abort();
    const working = this.working = new AbortController();
    this.showStarted();
    try {
      await this.translate(working.signal);
    } catch (error) {
      if (working.signal.aborted) return;
      this.showEnded();
      this.onRefusal(error);
    }
  }

  async translate(signal) {
    const { name, format, text } = this.file;
    const onWait = (seconds, why) => this.say(`${why}; trying again in ${seconds} s.`);
    const options = { signal, onWait };
    const source = this.languages.source === "auto" ? await detect(runningText(text, format), options) : this.languages.source;
    if (!source) throw new Error("The language of this file cannot be told: choose it.");
    this.languages.showDetected(source);
    const target = this.languages.target;
    result.lang = target;
    const pieces = piecesOf(text, format, Math.min(PIECE_CHARACTERS, this.limit));
    let done = 0;
    const translated = [];
    for (const piece of pieces) {
      this.say(`Translating ${name}: ${Math.round((100 * done) / text.length)} %.`);
      const answer = piece.trim() ? await ask("translate", { q: piece.toWellFormed(), source, target, format }, options) : { translatedText: piece };
      translated.push(answer.translatedText);
      result.append(answer.translatedText);
      done += piece.length;
      progress.value = done / Math.max(1, text.length);
    }
    this.showDone(translated.join(""), translatedName(name, source, target), target);
  }

  showStarted() {
    byId("panes").hidden = true;
    panel.hidden = false;
    byId("document-name").textContent = this.file.name;
    progress.value = 0;
    progress.hidden = byId("document-cancel").hidden = false;
    download.hidden = byId("document-close").hidden = true;
    result.replaceChildren();
    byId("document-cancel").focus();
  }

  showEnded() {
    const hadFocus = document.activeElement === byId("document-cancel");
    progress.hidden = byId("document-cancel").hidden = true;
    byId("document-close").hidden = false;
    if (hadFocus) byId("document-close").focus();
  }

  showDone(text, name, target) {
    const { format } = this.file;
    const whole = format === "html" ? withLanguage(text, target) : text;
    result.textContent = whole;
    this.release();
    download.href = URL.createObjectURL(new Blob([whole], { type: `${KINDS[format]};charset=utf-8` }));
    download.download = name;
    download.hidden = false;
    byId("document-name").textContent = name;
    this.showEnded();
    download.focus();
    this.say(`${this.file.name} is translated; the download is called ${name}.`);
  }

  release() {
    if (download.href) URL.revokeObjectURL(download.href);
    download.removeAttribute("href");
  }

  close() {
    this.working?.abort();
    this.release();
    this.file = null;
    panel.hidden = true;
    byId("panes").hidden = false;
    result.replaceChildren();
    byId("choose-file").focus();
  }
}
