// Marks a word and those it came from or became, in both panes: under the mouse, at the caret, or by arrow keys.

let marked = [];

export function unmark() {
  for (const word of marked) word.classList.remove("marked");
  marked = [];
}

const wordsOf = (sheet, line, sentence) =>
  [...(sheet.parent.children[line]?.querySelectorAll(`[data-sentence="${sentence}"] .word`) ?? [])];

// Word number `index` of one side; without pairs the whole sentence goes with the whole sentence.
function partners(pairs, isSource, index) {
  const [own, other] = isSource ? [0, 1] : [1, 0];
  return new Set(pairs.filter((pair) => pair[own] === index).map((pair) => pair[other]));
}

export function mark(word, here, there) {
  unmark();
  const sentenceElement = word?.closest("[data-sentence]");
  if (!sentenceElement) return [];
  const line = here.numberOf(word.closest(".line")), sentence = Number(sentenceElement.dataset.sentence);
  const entry = here.keys[line];
  const isSame = entry === there.keys[line]; // the other pane may still show an older text
  const pairs = entry.sentences[sentence].pairs;
  const others = isSame ? wordsOf(there, line, sentence) : [];
  const wanted = pairs && partners(pairs, here.isSource, Number(word.dataset.word));
  const found = wanted ? others.filter((_, index) => wanted.has(index)) : others;
  marked = [...(pairs ? [word] : wordsOf(here, line, sentence)), ...found];
  for (const each of marked) each.classList.add("marked");
  return found;
}

// The textarea lies above the words of its text: what is under the mouse is looked up below it.
const wordAt = (x, y, parent) => document.elementsFromPoint(x, y).find((element) => element.matches(".word") && parent.contains(element));

function followMouse(pane, here, there) {
  let last = null, isWaiting = false;
  pane.addEventListener("pointermove", (event) => {
    last = event;
    if (isWaiting || event.pointerType === "touch") return;
    isWaiting = true;
    requestAnimationFrame(() => {
      isWaiting = false;
      mark(wordAt(last.clientX, last.clientY, here.parent), here, there);
    });
  });
  pane.addEventListener("pointerleave", () => requestAnimationFrame(unmark));
}

// The word that the caret of the source stands in or behind.
function wordAtCaret(source, sheet) {
  const before = source.value.slice(0, source.selectionStart);
  const line = before.split("\n").length - 1, column = before.length - before.lastIndexOf("\n") - 1;
  const places = sheet.keys[line]?.sourcePlaces ?? [];
  for (const [sentence, place] of places.entries()) {
    const index = place?.words.findIndex(([start, end]) => start <= column && column <= end) ?? -1;
    if (index >= 0) return wordsOf(sheet, line, sentence)[index];
  }
  return null;
}

const MOVES = new Set(["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End", "PageUp", "PageDown"]);

export function followSource(source, here, there) {
  followMouse(source.closest(".sheet"), here, there);
  source.addEventListener("keyup", (event) => { if (MOVES.has(event.key)) mark(wordAtCaret(source, here), here, there); });
  source.addEventListener("blur", unmark);
}

// One stop of the Tab key for the whole translation: up and down go by sentence, left and right by word.
export function followTarget(target, here, there, say) {
  followMouse(target, here, there);
  const sentences = () => [...target.querySelectorAll(".sentence")];
  let word = -1;

  function goTo(sentence) {
    if (!sentence) return;
    for (const each of target.querySelectorAll('.sentence[tabindex="0"]')) each.tabIndex = -1;
    sentence.tabIndex = 0;
    sentence.focus();
  }

  function stepWord(sentence, by) {
    const words = sentence.querySelectorAll(".word");
    word = Math.min(Math.max(word + by, 0), words.length - 1);
    const found = mark(words[word], here, there);
    if (found.length) say(`“${words[word].textContent}” comes from “${found.map((each) => each.textContent).join(" ")}”.`);
  }

  target.addEventListener("focusin", () => { word = -1; });
  target.addEventListener("focusout", unmark);
  target.addEventListener("keydown", (event) => {
    const sentence = event.target.closest(".sentence");
    if (!sentence || event.ctrlKey || event.altKey || event.metaKey) return;
    const all = sentences(), at = all.indexOf(sentence);
    const moves = { ArrowUp: all[at - 1], ArrowDown: all[at + 1], Home: all[0], End: all.at(-1) };
    if (event.key in moves) goTo(moves[event.key]);
    else if (event.key === "ArrowRight" || event.key === "ArrowLeft") stepWord(sentence, event.key === "ArrowRight" ? 1 : -1);
    else return;
    event.preventDefault();
  });
}
