// Puts a newer report in place of the one that is read: what is open, focused or in view stays so.

const FOCUSABLE = "a[href], summary, button, input, [tabindex]";

function home(element, root) {
  const found = element.closest("[id]");
  return found && root.contains(found) ? found : root;
}

// An element without an id is known by its place in the nearest one that has an id.
function address(element, root, selector) {
  const parent = home(element, root);
  return { id: parent.id, index: [...parent.querySelectorAll(selector)].indexOf(element), selector };
}

function find(root, { id, index, selector }) {
  const parent = id === root.id ? root : root.querySelector(`#${CSS.escape(id)}`);
  return parent?.querySelectorAll(selector)[index];
}

function firstInView(root, top) {
  return [...root.querySelectorAll("[id]")].find((element) => {
    const box = element.getBoundingClientRect();
    return box.height > 0 && box.bottom > top && !element.closest("svg");
  });
}

let scrolled = 0;
addEventListener("scroll", () => { scrolled = performance.now(); }, { passive: true });

// Somebody marks text there, or the page is still moving to where a link led.
export function isBeingRead(root) {
  if (performance.now() - scrolled < 400) return true;
  const selection = document.getSelection();
  return Boolean(selection && !selection.isCollapsed && root.contains(selection.anchorNode));
}

// Whatever changes above or in the report, what is in view below `top` stays where it is.
export function steady(root, top, change) {
  const anchor = window.scrollY > 0 ? firstInView(root, top) : null;
  const before = anchor?.getBoundingClientRect().top;
  const id = anchor?.id;
  change();
  const same = id && root.querySelector(`#${CSS.escape(id)}`);
  const moved = same ? same.getBoundingClientRect().top - before : 0;
  if (Math.abs(moved) >= 1) window.scrollBy({ top: moved, behavior: "instant" });
}

export function swap(root, html, top) {
  const fresh = new DOMParser().parseFromString(html, "text/html").body;
  const open = [...root.querySelectorAll("details[open]")].map((element) => address(element, root, "details"));
  const shifted = [...root.querySelectorAll(".scroll")].filter((element) => element.scrollLeft)
    .map((element) => [address(element, root, ".scroll"), element.scrollLeft]);
  const active = document.activeElement;
  const focused = active && active !== document.body && root.contains(active) ? address(active, root, FOCUSABLE) : null;
  steady(root, top, () => {
    root.replaceChildren(...fresh.childNodes);
    for (const place of open) find(root, place)?.setAttribute("open", "");
  });
  for (const [place, left] of shifted) { const element = find(root, place); if (element) element.scrollLeft = left; }
  if (focused) find(root, focused)?.focus({ preventScroll: true });
}
