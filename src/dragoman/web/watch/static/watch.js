// Asks how the run stands every other second while the page is seen, and shows it. All texts are set as text.

import { drawCharts } from "./chart.js";
import { isBeingRead, steady, swap } from "./swap.js";

const EVERY_MS = 2000, AGAIN_MS = 5000;
const byId = (id) => document.getElementById(id);
let seen = -1;
let reportNumber = 0;

function show(id, text) {
  const element = byId(id);
  if (element.textContent !== text) element.textContent = text;
}

function showState(live) {
  const { kind, word, sentence } = live.state;
  byId("live").dataset.kind = kind;
  show("badge", word);
  show("sentence", sentence ?? "");
  if (live.run === undefined) return;
  show("run", live.run);
  show("step", live.step);
  document.title = `${live.step} · ${live.run} · Dragoman`;
  const percent = live.share === null ? 0 : live.share * 100;
  byId("bar").setAttribute("aria-valuenow", percent.toFixed(0));
  byId("bar").firstElementChild.style.width = `${percent}%`;
}

function makeTile(key) {
  const tile = document.createElement("div");
  tile.className = "tile";
  tile.dataset.key = key;
  for (const [name, kind] of [["dt", "label"], ["dd", "value"], ["dd", "detail"]]) {
    const part = document.createElement(name);
    part.className = kind;
    tile.append(part);
  }
  return tile;
}

function showTiles(tiles) {
  const parent = byId("tiles");
  const known = new Map([...parent.children].map((tile) => [tile.dataset.key, tile]));
  if ([...known.keys()].join() !== tiles.map((tile) => tile.key).join()) {
    parent.replaceChildren(...tiles.map(({ key }) => known.get(key) ?? makeTile(key)));
  }
  tiles.forEach((tile, index) => {
    for (const part of ["label", "value", "detail"]) {
      const element = parent.children[index].querySelector(`.${part}`);
      if (element.textContent !== tile[part]) element.textContent = tile[part];
    }
  });
}

function showFindings(findings) {
  const parent = byId("latest");
  const key = JSON.stringify(findings);
  if (parent.dataset.key === key) return;
  parent.dataset.key = key;
  parent.replaceChildren(...findings.map(({ code, text, step }) => {
    const item = document.createElement("li");
    const link = document.createElement("a");
    link.href = "#findings";
    link.textContent = code;
    const at = document.createElement("span");
    at.className = "at";
    at.textContent = `since step ${step.toLocaleString("en")}`;
    item.append(text, link, at);
    return item;
  }));
}

async function showReport(report) {
  const state = report.number ? `The report below was drawn within the last ${report.age}; it is drawn again as the run goes on.` : "";
  show("drawn", report.problem || state || "The report appears here as soon as the run has begun and it is drawn.");
  if (report.number === reportNumber || isBeingRead(byId("report"))) return;
  const answer = await fetch("report");
  if (!answer.ok) return;
  const { number, html, title } = await answer.json();
  swap(byId("report"), html, byId("live").getBoundingClientRect().bottom);
  // The address may have named a part that was not there when the page was opened.
  if (!reportNumber && location.hash.length > 1) byId(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
  reportNumber = number;
  byId("report").dataset.number = number;
  byId("run").title = title;
}

function showNow(live) {
  showState(live);
  if (live.run === undefined) return;
  showTiles(live.tiles);
  showFindings(live.findings);
  if (live.charts) drawCharts(byId("charts"), live.charts);
}

async function look() {
  const answer = await fetch(`live?seen=${seen}`);
  if (!answer.ok) throw new Error(`${answer.status}`);
  const live = await answer.json();
  steady(byId("report"), byId("live").getBoundingClientRect().bottom, () => showNow(live));
  if (live.run === undefined) return;
  seen = live.seen;
  await showReport(live.report);
}

function showLoss(error) {
  const sentence = error.message === "403"
    ? "This page needs the address with the token that `dragoman watch` printed."
    : "Nothing answers any more: `dragoman watch` was ended, or the connection is lost. Trying again.";
  showState({ state: { kind: "unreachable", word: "No connection", sentence } });
}

async function follow() {
  for (;;) {
    let pause = EVERY_MS;
    try {
      await look();
    } catch (error) {
      showLoss(error);
      pause = AGAIN_MS;
    }
    await new Promise((resume) => setTimeout(resume, pause));
    if (document.hidden) {
      await new Promise((resume) => document.addEventListener("visibilitychange", resume, { once: true }));
    }
  }
}

follow();
