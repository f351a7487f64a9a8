// The two languages: what may be chosen, what was detected, and whether they can be swapped.

export const AUTO = "auto";
const sourceSelect = document.getElementById("source-language");
const targetSelect = document.getElementById("target-language");
const swap = document.getElementById("swap");

export class Languages {
  constructor(served, onChange) {
    this.served = served.filter((language) => language.targets.length);
    this.names = new Map(served.map(({ code, name }) => [code, name]));
    this.detected = null;
    sourceSelect.replaceChildren(new Option("Detect language", AUTO), ...this.served.map(({ code, name }) => new Option(name, code)));
    this.fillTargets();
    sourceSelect.addEventListener("change", () => { this.detected = null; this.fillTargets(); onChange(); });
    targetSelect.addEventListener("change", () => { this.showSwap(); onChange(); });
  }

  get source() { return sourceSelect.value; }
  get target() { return targetSelect.value; }
  // Of what is translated: never "auto", but null while nobody knows.
  get known() { return this.source === AUTO ? this.detected : this.source; }

  name(code) { return this.names.get(code) ?? code; }

  isServed(source, target) {
    return this.served.some((language) => language.code === source && language.targets.includes(target));
  }

  choose(source, target) {
    sourceSelect.value = source === AUTO || this.served.some(({ code }) => code === source) ? source : AUTO;
    this.detected = null;
    this.fillTargets(target);
  }

  // Only what there is a model for; the one that was chosen stays where it can.
  fillTargets(wanted = targetSelect.value) {
    const codes = new Set(this.served.filter(({ code }) => this.source === AUTO || this.source === code).flatMap(({ targets }) => targets));
    targetSelect.replaceChildren(...[...codes].map((code) => new Option(this.name(code), code)));
    if (codes.has(wanted)) targetSelect.value = wanted;
    this.showDetected(this.detected);
  }

  showDetected(code) {
    this.detected = this.source === AUTO ? code : null;
    sourceSelect.options[0].textContent = this.detected ? `${this.name(this.detected)} (auto)` : "Detect language";
    this.showSwap();
  }

  // Why they cannot be swapped, or null.
  get whyNotSwapped() {
    if (!this.known) return "The language of the text is not known yet, so there is nothing to swap.";
    if (!this.isServed(this.target, this.known)) return `This server does not translate ${this.name(this.target)} to ${this.name(this.known)}.`;
    return null;
  }

  // It stays reachable, because who reaches it shall learn why it does nothing.
  showSwap() {
    const reason = this.whyNotSwapped;
    swap.setAttribute("aria-disabled", String(reason !== null));
    swap.title = reason ?? "Swap languages and texts";
  }

  swap() {
    this.choose(this.target, this.known);
  }

  pairsInWords() {
    const pairs = this.served.flatMap(({ name, targets }) => targets.map((code) => `${name} → ${this.name(code)}`));
    return pairs.length > 6 ? `${pairs.length} pairs of languages.` : `${pairs.join(", ")}.`;
  }
}
