// Text to translated lines. The server takes a line for itself, whatever stands around it: so only lines that are new
// are asked for, a few thousand characters at a time, and a long text that changes in one place costs that place.

import { ask } from "./requests.js";
import { located } from "./words.js";

const PIECE_CHARACTERS = 5000, PIECE_LINES = 200, MAX_KNOWN = 5000;
const DETECTED_CHARACTERS = 500; // enough to tell, and who types on is not asked about again
const NUM_ALTERNATIVES = 4;
const known = new Map();
let detected = { head: "", code: null };

const keyOf = (line, pair) => `${pair.source} ${pair.target} ${line}`;

// Characters as the server counts them, not as UTF-16 does.
export function numCharacters(text) {
  let pairs = 0;
  for (let place = 0; place < text.length; place += 1) {
    const unit = text.charCodeAt(place);
    if (unit >= 0xd800 && unit < 0xdc00) pairs += 1;
  }
  return text.length - pairs;
}

export async function detect(text, options) {
  const head = text.slice(0, DETECTED_CHARACTERS).toWellFormed();
  if (detected.head !== head) detected = { head, code: (await ask("detect", { q: head }, options))[0]?.language ?? null };
  return detected.code;
}

// What is known of each line already: an entry, or null.
export function entriesOf(text, pair) {
  return text.split("\n").map((line) => (line.trim() ? (known.get(keyOf(line, pair)) ?? null) : emptyEntry(line)));
}

const empties = new Map();
function emptyEntry(line) {
  if (!empties.has(line)) empties.set(line, makeEntry(line, line, []));
  return empties.get(line);
}

function makeEntry(line, target, sentences) {
  return { source: line, target, sentences, sourcePlaces: located(line, sentences.map((each) => each.source)),
    targetPlaces: located(target, sentences.map((each) => each.target)) };
}

function keep(line, pair, entry) {
  known.set(keyOf(line, pair), entry);
  if (known.size > MAX_KNOWN) known.delete(known.keys().next().value);
}

export function forget() {
  known.clear();
  empties.clear();
}

// `onPart()` is called whenever more lines are known.
export async function translateText(text, pair, options, onPart) {
  const missing = [...new Set(text.split("\n").filter((line) => line.trim() && !known.has(keyOf(line, pair))))];
  for (const lines of batches(missing)) {
    const body = { q: lines.map((line) => line.toWellFormed()), ...pair, format: "text", alignments: true };
    const answer = await ask("translate", body, options);
    lines.forEach((line, index) => {
      keep(line, pair, makeEntry(line, answer.translatedText[index], answer.alignments?.[index] ?? []));
    });
    onPart();
  }
}

function* batches(lines) {
  let batch = [], size = 0;
  for (const line of lines) {
    if (batch.length && (size + line.length > PIECE_CHARACTERS || batch.length === PIECE_LINES)) {
      yield batch;
      batch = [];
      size = 0;
    }
    batch.push(line);
    size += line.length;
  }
  if (batch.length) yield batch;
}

// The best translations of one sentence, the one that is shown first.
export async function alternativesOf(entry, number, pair, options) {
  const sentence = entry.sentences[number];
  const answer = await ask("translate", { q: sentence.source, ...pair, alternatives: NUM_ALTERNATIVES }, options);
  return [...new Set([sentence.target, answer.translatedText, ...(answer.alternatives ?? [])])];
}

// Nobody said which words the other translation came from: its sentence is marked as a whole from now on.
export function withAlternative(entry, number, text, pair) {
  const { start, end } = entry.targetPlaces[number];
  const sentences = entry.sentences.map((each, other) => (other === number ? { ...each, target: text, pairs: null } : each));
  keep(entry.source, pair, makeEntry(entry.source, entry.target.slice(0, start) + text + entry.target.slice(end), sentences));
}
