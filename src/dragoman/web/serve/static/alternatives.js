// Other translations of a sentence, in a listbox below it: by mouse or by keyboard.

const list = document.getElementById("alternatives");
let opened = null; // { sentence, choose, asking }

export function closeAlternatives({ andFocus = false } = {}) {
  if (!opened) return;
  const { sentence, asking } = opened;
  opened = null;
  asking.abort();
  list.hidden = true;
  sentence.setAttribute("aria-expanded", "false");
  if (andFocus) sentence.focus();
}

// `fetchTexts(signal)` gives the texts, the present one first; `choose(text)` is called with another one.
export async function openAlternatives(sentence, lang, fetchTexts, choose) {
  closeAlternatives();
  const asking = new AbortController();
  opened = { sentence, choose, asking };
  sentence.setAttribute("aria-expanded", "true");
  list.lang = lang;
  note("Looking for other translations…");
  place(sentence);
  list.hidden = false;
  list.focus({ preventScroll: true });
  try {
    const texts = await fetchTexts(asking.signal);
    if (!asking.signal.aborted) show(texts);
  } catch (error) {
    if (!asking.signal.aborted) note(error.message);
  }
}

function place(sentence) {
  const pane = list.offsetParent ?? sentence.closest(".pane");
  const boxes = sentence.getClientRects();
  list.style.top = `${boxes[boxes.length - 1].bottom - pane.getBoundingClientRect().top}px`;
}

function note(text) {
  const item = document.createElement("li");
  item.className = "note";
  item.setAttribute("role", "option");
  item.setAttribute("aria-disabled", "true");
  item.textContent = text;
  list.replaceChildren(item);
  list.removeAttribute("aria-activedescendant");
}

function show(texts) {
  if (texts.length < 2) return note("There is no other translation of this sentence.");
  list.replaceChildren(...texts.map((text, index) => {
    const item = document.createElement("li");
    item.id = `alternative-${index}`;
    item.dir = "auto";
    item.setAttribute("role", "option");
    item.setAttribute("aria-selected", String(index === 0));
    item.textContent = text;
    return item;
  }));
  activate(0);
  list.scrollIntoView({ block: "nearest" });
}

const options = () => [...list.querySelectorAll("li:not(.note)")];
const activeNumber = () => options().findIndex((item) => item.classList.contains("active"));

function activate(number) {
  const items = options();
  if (!items.length) return;
  const wanted = items[Math.min(Math.max(number, 0), items.length - 1)];
  for (const item of items) item.classList.toggle("active", item === wanted);
  list.setAttribute("aria-activedescendant", wanted.id);
  wanted.scrollIntoView({ block: "nearest" });
}

function take(item) {
  const { choose } = opened;
  const isOther = item.getAttribute("aria-selected") === "false";
  closeAlternatives({ andFocus: true });
  if (isOther) choose(item.textContent);
}

list.addEventListener("keydown", (event) => {
  const moves = { ArrowDown: activeNumber() + 1, ArrowUp: activeNumber() - 1, Home: 0, End: Infinity };
  if (event.key in moves) activate(moves[event.key]);
  else if (event.key === "Escape") closeAlternatives({ andFocus: true });
  else if (event.key === "Enter" || event.key === " ") { if (activeNumber() >= 0) take(options()[activeNumber()]); }
  else if (event.key === "Tab") return closeAlternatives({ andFocus: true }); // and on from the sentence
  else return;
  event.preventDefault();
});
list.addEventListener("pointermove", (event) => {
  const number = options().indexOf(event.target.closest("li"));
  if (number >= 0 && number !== activeNumber()) activate(number);
});
list.addEventListener("click", (event) => {
  const item = event.target.closest("li:not(.note)");
  if (item) take(item);
});
document.addEventListener("pointerdown", (event) => {
  if (opened && !list.contains(event.target) && !opened.sentence.contains(event.target)) closeAlternatives();
});
document.addEventListener("keydown", (event) => { if (event.key === "Escape") closeAlternatives({ andFocus: true }); });
