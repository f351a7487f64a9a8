// Documents in pieces, cut only where the server sees an end, too: translated one by one they give what the whole would.

const INLINE = new Set(("a abbr b bdi bdo cite data del dfn em font i img ins mark q s small span strong sub sup time u wbr").split(" "));
const UNTOUCHED = new Set("code kbd math pre samp script style svg template textarea var".split(" "));
const TAG = /<!--[^]*?-->|<(\/?)([a-z][^\s>/]*)((?:"[^"]*"|'[^']*'|[^'">])*)>/gi;
const FORMATS = { txt: "text", md: "markdown", markdown: "markdown", html: "html", htm: "html" };

// By the end of the name; undefined for what cannot be translated.
export const formatOf = (name) => FORMATS[/\.([^.]+)$/.exec(name)?.[1].toLowerCase()];

// `report.html` becomes `report.de.html`, and so does `report.en.html`.
export function translatedName(name, source, target) {
  const [, stem, end] = /^(.*)(\.[^.]+)$/.exec(name);
  const bare = stem.endsWith(`.${source}`) ? stem.slice(0, -source.length - 1) : stem;
  return `${bare}.${target}${end}`;
}

export function piecesOf(text, format, size) {
  const cuts = { html: htmlCuts, markdown: markdownCuts, text: textCuts }[format];
  return joined(text, cuts(text, size), size);
}

// As few pieces as fit; one that cannot be cut may be larger.
function joined(text, cuts, size) {
  const pieces = [];
  let start = 0, end = 0;
  for (const cut of [...cuts, text.length]) {
    if (cut - start > size && end > start) {
      pieces.push(text.slice(start, end));
      start = end;
    }
    end = cut;
  }
  pieces.push(text.slice(start));
  return pieces.filter(Boolean);
}

// Behind every line; a line that is too long also behind its sentences.
function* textCuts(text, size) {
  let start = 0;
  for (const { index, 0: ending } of text.matchAll(/\r\n|\n|$/g)) {
    if (index - start > size) for (const { index: at, 0: found } of text.slice(start, index).matchAll(/[.!?。！？]\s*/g)) yield start + at + found.length;
    start = index + ending.length;
    yield start;
  }
}

// Behind lines outside of code; never before a rule, which would begin front matter as the first line of a piece.
function* markdownCuts(text) {
  let fence = "", at = 0, isFirst = true;
  for (const line of text.split(/(?<=\n)/)) {
    if (!fence && at && line.trimEnd() !== "---") yield at;
    const opening = /^\s*(```+|~~~+)/.exec(line)?.[1];
    if (isFirst && line.trimEnd() === "---") fence = "---";
    else if (fence) fence = line.trim().startsWith(fence) ? "" : fence;
    else if (opening) fence = opening;
    at += line.length;
    isFirst = false;
  }
}

// Before tags of blocks, outside of what is left alone.
function* htmlCuts(text) {
  let inside = "", depth = 0;
  for (const { index, 0: tag, 1: slash, 2: given, 3: attributes } of text.matchAll(TAG)) {
    const name = given?.toLowerCase();
    if (!name) continue;
    if (inside) {
      if (name === inside) depth += slash ? -1 : tag.endsWith("/>") ? 0 : 1;
      if (depth === 0) inside = "";
    } else if (!slash && (UNTOUCHED.has(name) || /\btranslate=["']?no\b|\bnotranslate\b/i.test(attributes))) {
      if (index && !INLINE.has(name) && name !== "code") yield index;
      [inside, depth] = [name, 1];
    } else if (!INLINE.has(name) && index) yield index;
  }
}

// A translated page says its language.
export function withLanguage(html, code) {
  return html.replace(/(<html\b[^>]*?\slang=)("[^"]*"|'[^']*'|[^\s>]+)/i, `$1"${code}"`);
}

// What a detector shall look at: without tags, code and addresses.
export function runningText(text, format) {
  if (format === "text") return text;
  const head = text.slice(0, 50_000);
  if (format === "markdown") return head.replace(/```[^]*?```|`[^`]*`|\]\([^)]*\)/g, " ");
  return head.replace(/<(script|style|pre|code)\b[^]*?<\/\1>|<!--[^]*?-->|<[^>]*>/gi, " ").replace(/\s+/g, " ").trim();
}
