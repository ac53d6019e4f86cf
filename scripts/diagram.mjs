/**
 * Draws docs/overview.svg from docs/overview.txt: boxes on a grid, and arrows between neighbors. The drawing has its own background and
 * both color schemes, so that it can be read wherever it is shown. --check reports a drawing that is not that of its source.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const SOURCE = fileURLToPath(new URL("../docs/overview.txt", import.meta.url));
const DRAWING = SOURCE.replace(/\.txt$/, ".svg");
const BOX = { width: 208, height: 96 };
const GAP = { x: 148, y: 78 };
const MARGIN = 28;
const LINE_HEIGHT = 21;
/** Between the end of an arrow and its box. */
const SPACE = 6;
const STACKED = 7;
const STYLE = `
  .ground { fill: #ffffff; }
  .box { fill: #f4f6f8; stroke: #8a94a0; }
  .strong { fill: #dcebfa; stroke: #2a6cb0; }
  .arrow { stroke: #4d5864; stroke-width: 1.6; fill: none; }
  .head { fill: #4d5864; }
  text { font: 15px system-ui, -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif; fill: #1d242b; text-anchor: middle; }
  .name { font-weight: 600; font-size: 17px; }
  .label { fill: #4a545e; font-size: 14px; }
  .start { text-anchor: start; }
  .code { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: 13px; }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #0d1117; }
    .box { fill: #1b222b; stroke: #6f7b88; }
    .strong { fill: #12314f; stroke: #5ea3e6; }
    .arrow { stroke: #a9b4bf; }
    .head { fill: #a9b4bf; }
    text { fill: #e8edf2; }
    .label { fill: #b6c0ca; }
  }
`;

const drawing = draw(readFileSync(SOURCE, "utf8"));
if (!process.argv.includes("--check")) writeFileSync(DRAWING, drawing);
else if (readFileSync(DRAWING, "utf8") !== drawing) {
  console.log("docs/overview.svg is not the drawing of docs/overview.txt: run node scripts/diagram.mjs");
  process.exitCode = 1;
}

function draw(source) {
  const boxes = new Map();
  const arrows = [];
  let title = "";
  for (const [index, line] of source.split("\n").entries()) {
    const [word = "", ...words] = line.split(/\s+/);
    const linesFrom = (position) => words.slice(position).join(" ").split(" | ");
    if (word === "title") title = words.join(" ");
    else if (word === "box") boxes.set(words[0], boxAt(Number(words[1]), Number(words[2]), words[3], linesFrom(4)));
    else if (word === "arrow") arrows.push(arrowBetween(boxes.get(words[0]), boxes.get(words[1]), linesFrom(2)));
    else if (word !== "" && word !== "#") throw new Error(`line ${index + 1} begins with "${word}"`);
  }
  const all = [...boxes.values()];
  const width = Math.max(...all.map(({ x }) => x + BOX.width)) + MARGIN;
  const height = Math.max(...all.map(({ y }) => y + BOX.height)) + MARGIN;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="title">
<!-- Drawn by scripts/diagram.mjs from docs/overview.txt. -->
<title id="title">${escaped(title)}</title>
<style>${STYLE}</style>
<rect class="ground" width="${width}" height="${height}" rx="10"/>
${[...all.map(boxText), ...arrows].join("\n")}
</svg>
`;
}

function boxAt(column, row, look, lines) {
  const [x, y] = [MARGIN + (column - 1) * (BOX.width + GAP.x), MARGIN + (row - 1) * (BOX.height + GAP.y)];
  return { x, y, look, lines };
}

function boxText({ x, y, look, lines }) {
  const rect = (shift) =>
    `<rect class="box ${look}" x="${x + shift}" y="${y + shift}" width="${BOX.width}" height="${BOX.height}" rx="8"/>`;
  const shifts = { none: [], many: [STACKED, 0] }[look] ?? [0];
  const top = y + BOX.height / 2 - ((lines.length - 1) * LINE_HEIGHT) / 2 + 5;
  const texts = lines.map((line, index) =>
    textAt(x + BOX.width / 2, top + index * LINE_HEIGHT, line, index === 0 ? "name" : ""),
  );
  return [...shifts.map(rect), ...texts].join("\n");
}

function arrowBetween(from, to, lines) {
  const isHorizontal = from.y === to.y;
  const direction = Math.sign(isHorizontal ? to.x - from.x : to.y - from.y);
  const [side, size, width] = isHorizontal ? ["x", BOX.width, GAP.x] : ["y", BOX.height, GAP.y];
  const begin = direction > 0 ? from[side] + size + SPACE : from[side] - SPACE;
  // Behind a stack of boxes the arrow begins at the last one.
  const shift = from.look === "many" && direction > 0 ? STACKED : 0;
  const end = begin + direction * (width - 2 * SPACE);
  const across = isHorizontal ? from.y + BOX.height / 2 : from.x + BOX.width / 2;
  const point = (along, aside = 0) => (isHorizontal ? `${along} ${across + aside}` : `${across + aside} ${along}`);
  const neck = end - direction * 10;
  const labels = lines.map((line, index) =>
    isHorizontal
      ? textAt((begin + end) / 2, across - 12 - (lines.length - 1 - index) * (LINE_HEIGHT - 3), line, "label")
      : textAt(
          across + 14,
          (begin + end) / 2 + 5 + (index - (lines.length - 1) / 2) * (LINE_HEIGHT - 3),
          line,
          "label start",
        ),
  );
  return [
    `<path class="arrow" d="M ${point(begin + shift)} L ${point(neck)}"/>`,
    `<path class="head" d="M ${point(end)} L ${point(neck, 5)} L ${point(neck, -5)} Z"/>`,
    ...labels,
  ].join("\n");
}

function textAt(x, y, text, look) {
  const [, code] = /^`(.*)`$/.exec(text.trim()) ?? [];
  const classes = `${look}${code === undefined ? "" : " code"}`.trim();
  return `<text${classes === "" ? "" : ` class="${classes}"`} x="${x}" y="${y}">${escaped(code ?? text.trim())}</text>`;
}

function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}
