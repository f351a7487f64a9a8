// The translation page: what is typed is translated, and the status line says what happens. All texts are set as text.

import { readAddress, writeAddress } from "./address.js";
import { closeAlternatives, openAlternatives } from "./alternatives.js";
import { copyFrom } from "./clipboard.js";
import { Documents } from "./documents.js";
import { AUTO, Languages } from "./languages.js";
import { followSource, followTarget, unmark } from "./marks.js";
import { get, hasKey, useKey } from "./requests.js";
import { alternativesOf, detect, entriesOf, forget, numCharacters, translateText, withAlternative } from "./translation.js";
import { lineElement, Sheet } from "./words.js";

const DEBOUNCE_MS = 300, SLOW_MS = 250;
const byId = (id) => document.getElementById(id);
const source = byId("source"), target = byId("target");
let languages, documents, limit = Infinity;
let timer = 0;
let working = new AbortController();

const sourceSheet = new Sheet(byId("backdrop"), (key) =>
  (typeof key === "string" ? lineElement(key, [], null) : lineElement(key.source, key.sourcePlaces, () => document.createElement("span"))));
const targetSheet = new Sheet(target, (entry) => (entry ? lineElement(entry.target, entry.targetPlaces, makeSentence) : pendingLine()));
sourceSheet.isSource = true;

function makeSentence() {
  const sentence = document.createElement("span");
  sentence.className = "sentence";
  sentence.tabIndex = -1;
  sentence.setAttribute("role", "button");
  sentence.setAttribute("aria-haspopup", "listbox");
  sentence.setAttribute("aria-expanded", "false");
  return sentence;
}

function pendingLine() {
  const line = document.createElement("div");
  line.className = "line pending";
  return line;
}

function say(text, kind = "") {
  const status = byId("status");
  status.dataset.kind = kind;
  if (status.textContent !== text) status.textContent = text;
}

const pair = () => ({ source: languages.known, target: languages.target });
const translation = () => targetSheet.keys.map((entry) => entry?.target ?? "").join("\n");

// Both layers of the source must always hold the same text; what is known of a line keeps its marks.
function showSource() {
  const lines = source.value.split("\n"), entries = languages.known ? entriesOf(source.value, pair()) : [];
  sourceSheet.show(source.value ? lines.map((line, index) => entries[index] ?? line) : []);
  const count = numCharacters(source.value), isOver = count > limit;
  byId("count").textContent = Number.isFinite(limit) ? `${count.toLocaleString("en")} / ${limit.toLocaleString("en")}` : count.toLocaleString("en");
  byId("count").classList.toggle("over", isOver);
  byId("clear").disabled = !source.value;
}

function showTarget(entries) {
  closeAlternatives();
  unmark();
  targetSheet.show(entries);
  const first = target.querySelector(".sentence");
  if (first && !target.querySelector('.sentence[tabindex="0"]')) first.tabIndex = 0;
  byId("copy").disabled = !entries.length;
  byId("target-hint").hidden = !first;
}

// Only what is new: to set it restyles every word, even where it stays the same.
function showLanguages() {
  if (target.lang !== languages.target) target.lang = languages.target;
  if (!languages.known) source.removeAttribute("lang");
  else if (source.lang !== languages.known) source.lang = languages.known;
}

function stop() {
  clearTimeout(timer);
  working.abort();
  byId("busy").hidden = true;
}

function textChanged(wait = DEBOUNCE_MS) {
  stop();
  showSource();
  showLanguages();
  writeAddress(languages.source, languages.target, source.value);
  if (!source.value.trim()) {
    languages.showDetected(null);
    showTarget([]);
    say("");
  } else if (numCharacters(source.value) > limit) {
    say(`This is more than the ${limit.toLocaleString("en")} characters that are taken at once: shorten it, or open it as a file.`, "error");
  } else timer = setTimeout(translateNow, wait);
}

async function translateNow() {
  stop();
  if (!source.value.trim()) return;
  if (!byId("key-form").hidden) return say("Enter the API key above; then the text is translated.");
  working = new AbortController();
  const { signal } = working, start = performance.now(), text = source.value;
  const slow = setTimeout(() => { byId("busy").hidden = false; say("Translating…"); }, SLOW_MS);
  try {
    const hasModel = await findLanguage(text, signal);
    if (signal.aborted || !hasModel) return;
    const show = () => { if (!signal.aborted) { showSource(); showTarget(entriesOf(text, pair())); } };
    await translateText(text, pair(), { signal, onWait: sayWait }, show);
    show();
    clearTimeout(slow);
    if (!signal.aborted) sayDone((performance.now() - start) / 1000);
  } catch (error) {
    if (!signal.aborted) refuse(error);
  } finally {
    clearTimeout(slow);
    if (!signal.aborted) byId("busy").hidden = true;
  }
}

// False, and said why, where the text is of a language that nothing translates.
async function findLanguage(text, signal) {
  if (languages.source === AUTO) {
    const code = await detect(text, { signal, onWait: sayWait });
    if (signal.aborted) return false;
    languages.showDetected(code);
    showLanguages();
  }
  const from = languages.known, to = languages.target;
  if (from === to || languages.isServed(from, to)) return true;
  const reason = from ? `This server does not translate ${languages.name(from)} to ${languages.name(to)}.` : "The language cannot be told: choose it.";
  showTarget([]);
  say(reason, "error");
  return false;
}

const sayWait = (seconds, why) => say(`${why}; trying again in ${seconds} s.`);

function sayDone(seconds) {
  if (languages.known === languages.target) say(`The text is ${languages.name(languages.target)} already: choose another language to translate it to.`);
  else say(`Translated in ${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s.`);
}

function refuse(error) {
  say(error.message, "error");
  if (error.status !== 403) return;
  byId("key-form").hidden = false; // without the focus: somebody may be typing
}

function swap() {
  if (languages.whyNotSwapped) return say(languages.whyNotSwapped);
  const text = translation();
  languages.swap();
  if (documents.isOpen) return documents.start();
  source.value = text || source.value;
  textChanged(0);
}

function clear() {
  source.value = "";
  forget();
  textChanged();
  source.focus();
}

function showAlternatives(sentence) {
  const line = targetSheet.numberOf(sentence.closest(".line")), number = Number(sentence.dataset.sentence);
  const entry = targetSheet.keys[line], asked = pair();
  const choose = (text) => {
    withAlternative(entry, number, text, asked);
    showSource();
    showTarget(entriesOf(source.value, asked));
    target.children[line]?.querySelector(`[data-sentence="${number}"]`)?.focus();
    say("The sentence is replaced.");
  };
  openAlternatives(sentence, asked.target, (signal) => alternativesOf(entry, number, asked, { signal, onWait: sayWait }), choose);
}

function listen() {
  source.addEventListener("input", () => textChanged());
  byId("swap").addEventListener("click", swap);
  byId("clear").addEventListener("click", clear);
  byId("copy").addEventListener("click", () => copyFrom(byId("copy"), translation(), say));
  target.addEventListener("click", (event) => {
    const sentence = event.target.closest(".sentence");
    if (sentence && document.getSelection().isCollapsed) showAlternatives(sentence); // who marks text wants to copy it
  });
  target.addEventListener("keydown", (event) => {
    if (!event.target.matches(".sentence") || (event.key !== "Enter" && event.key !== " ") || event.ctrlKey) return;
    event.preventDefault();
    showAlternatives(event.target);
  });
  addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !documents.isOpen) translateNow();
  });
  byId("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    useKey(byId("key").value.trim());
    byId("key-form").hidden = true;
    if (documents.isOpen) documents.start();
    else textChanged(0);
  });
  addEventListener("hashchange", openAddress);
  followSource(source, sourceSheet, targetSheet);
  followTarget(target, targetSheet, sourceSheet, say);
}

function openAddress() {
  const asked = readAddress();
  if (!asked) return;
  languages.choose(asked.source, asked.target);
  source.value = asked.text;
  textChanged(0);
}

async function begin() {
  const [served, settings] = await Promise.all([get("languages"), get("frontend/settings")]);
  if (settings.charLimit > 0) limit = settings.charLimit;
  languages = new Languages(served, () => (documents.isOpen ? documents.start() : textChanged(0)));
  documents = new Documents(languages, limit, say, refuse);
  byId("models").textContent = languages.pairsInWords();
  byId("key-form").hidden = !settings.keyRequired || hasKey();
  listen();
  const isEarly = source.value; // typed, or kept by the browser over a reload, before this script ran
  languages.choose(AUTO, settings.language.target.code);
  openAddress();
  if (isEarly && !source.value) source.value = isEarly;
  textChanged(0);
  if (matchMedia("(pointer: fine)").matches) source.focus();
}

begin().catch(() => say("The server cannot be reached: reload the page to try again.", "error"));
