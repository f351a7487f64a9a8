// Where sentences and their words stand in a text, and lines of them as elements.

// For every sentence `{ start, end, words: [[start, end], ...] }`, or null where it is not found.
export function located(text, sentences) {
  let from = 0;
  return sentences.map((sentence) => {
    const words = sentence.split(/\s+/).filter(Boolean);
    const found = words.length ? find(text, words, from) : null;
    if (!found) return null;
    from = found.at(-1)[1];
    return { start: found[0][0], end: from, words: found };
  });
}

// Space between words may be of any kind and length: the server's sentences have one blank there.
function find(text, words, from) {
  for (let start = text.indexOf(words[0], from); start >= 0; start = text.indexOf(words[0], start + 1)) {
    const places = follow(text, words, start);
    if (places) return places;
  }
  return null;
}

function follow(text, words, start) {
  const places = [];
  let at = start;
  for (const word of words) {
    while (places.length && at < text.length && !text[at].trim()) at += 1;
    if (!text.startsWith(word, at)) return null;
    places.push([at, at + word.length]);
    at += word.length;
  }
  return places;
}

// One line: sentences of words, and what stands between them as plain text.
export function lineElement(text, places, makeSentence) {
  const line = document.createElement("div");
  line.className = "line";
  let at = 0;
  places.forEach((place, number) => {
    if (!place) return;
    line.append(text.slice(at, place.start), sentenceElement(text, place, number, makeSentence));
    at = place.end;
  });
  line.append(text.slice(at));
  if (!text) line.append(document.createElement("br")); // an empty line is as high as any
  return line;
}

function sentenceElement(text, place, number, makeSentence) {
  const sentence = makeSentence();
  sentence.dataset.sentence = number;
  let at = place.start;
  place.words.forEach(([start, end], index) => {
    const word = document.createElement("span");
    word.className = "word";
    word.dataset.word = index;
    word.textContent = text.slice(start, end);
    sentence.append(text.slice(at, start), word);
    at = end;
  });
  return sentence;
}

// Lines of a text on the page. What has not changed stays the same element, so that long texts stay quick.
export class Sheet {
  constructor(parent, make) {
    this.parent = parent;
    this.make = make;
    this.keys = [];
  }

  show(keys) {
    const old = this.keys, shorter = Math.min(old.length, keys.length);
    let head = 0, tail = 0;
    while (head < shorter && old[head] === keys[head]) head += 1;
    while (tail < shorter - head && old.at(-1 - tail) === keys.at(-1 - tail)) tail += 1;
    const fresh = document.createDocumentFragment();
    fresh.append(...keys.slice(head, keys.length - tail).map(this.make));
    const elements = [...this.parent.children];
    for (const gone of elements.slice(head, old.length - tail)) gone.remove();
    this.parent.insertBefore(fresh, elements[old.length - tail] ?? null);
    this.keys = keys;
  }

  numberOf(line) {
    return Array.prototype.indexOf.call(this.parent.children, line);
  }
}
