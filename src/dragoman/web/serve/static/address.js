// `#en/de/Good morning`: the address alone keeps languages and a short text, so that a link can be shared.

const MAX_CHARACTERS = 500;
const WAIT_MS = 400; // browsers refuse a page that changes its address too often
let timer = 0;
let wanted = "";

export function readAddress() {
  const match = /^#([\w-]+)\/([\w-]+)(?:\/([^]*))?$/.exec(location.hash);
  if (!match) return null;
  let text = "";
  try { text = decodeURIComponent(match[3] ?? ""); } catch { /* cut off in the middle of a character */ }
  return { source: match[1], target: match[2], text };
}

export function writeAddress(source, target, text) {
  const isShort = text && text.length <= MAX_CHARACTERS;
  wanted = `#${source}/${target}${isShort ? `/${encodeURIComponent(text.toWellFormed())}` : ""}`;
  timer ||= setTimeout(() => {
    timer = 0;
    if (location.hash !== wanted) history.replaceState(null, "", wanted);
  }, WAIT_MS);
}
