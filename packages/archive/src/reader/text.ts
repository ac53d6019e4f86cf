/**
 * What a page shows of the texts of a message: made visible and harmless, addresses shortened, and a body in its quotes, text and links.
 * Pure. Nothing here makes HTML: a template escapes each text.
 */
import { isCallNumber } from "@callnumber/protocol/codec";

/** Control characters but tab and newline. */
// oxlint-disable-next-line no-control-regex
const CONTROLS = /[\0-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff\p{Cs}]+/gu;
/** They turn the order of what follows: a file named `cod\u202exe.txt` looks harmless. */
const DIRECTIONS = /[\u202a-\u202e\u2066-\u2069]/g;
/** Marks that are stacked over the lines around. */
const STACKED_MARKS = /(\p{M}{4})\p{M}+/gu;

/** Returns the text without what is not a text; lines end in `\n`. */
export function visible(text: string): string {
  return text
    .replace(/\r\n?|[\u2028\u2029]/g, "\n")
    .replace(CONTROLS, "\ufffd")
    .replace(DIRECTIONS, "")
    .replace(STACKED_MARKS, "$1");
}

/** Returns one visible line, cut to `lengthMax` characters. */
export function visibleLine(text: string | null, lengthMax = 300): string {
  const line = visible((text ?? "").slice(0, 4 * lengthMax))
    .replace(/\s+/g, " ")
    .trim();
  const characters = [...line];
  return characters.length <= lengthMax ? line : `${characters.slice(0, lengthMax - 1).join("")}…`;
}

const ADDRESS = /([^\s<>()[\]"',;:@/]{1,64}@[\p{L}\p{N}]{1,2})[\p{L}\p{N}.-]*\.[\p{L}\p{N}-]*[\p{L}\p{N}]/gu;

/** Leaves of each address what a reader who knows it recognizes, and a harvester can't use. */
export function shortened(text: string): string {
  return text.replace(ADDRESS, "$1…");
}

/** The name of a person, or the address where there is no name. */
export function nameOf(from: string | null): string {
  return visibleLine(from?.replace(/\s*<[^<>]*>\s*$/, "").replace(/^"(.*)"$/, "$1") || from, 80) || "(no sender)";
}

/** Text, or a link: to a page of the web, or by a call number to a message of this archive. */
type Piece =
  | string
  | { readonly text: string; readonly url: string }
  | { readonly text: string; readonly callNumber: string };

export interface Block {
  /** 0: the sender's own words. */
  readonly quoteDepth: number;
  readonly isSignature: boolean;
  readonly pieces: readonly Piece[];
}

/** Deeper quotes look like this depth. */
const QUOTE_DEPTH_MAX = 5;
const LINKS_MAX = 300;
const QUOTED = /^(?:> ?)+/;
const SIGNATURE = /^-- ?$/;

/** Splits a visible text into quotes and own words. `isStored` says which call numbers lead to a message. */
export function blocksOf(text: string, isStored: (callNumber: string) => boolean): readonly Block[] {
  const blocks: { quoteDepth: number; isSignature: boolean; lines: string[] }[] = [];
  let isSignature = false;
  for (const line of text.split("\n")) {
    // A line of text that begins with `From ` is quoted in an mbox.
    const marks = line.startsWith(">From ") ? "" : (QUOTED.exec(line)?.[0] ?? "");
    const quoteDepth = Math.min(marks.replaceAll(" ", "").length, QUOTE_DEPTH_MAX);
    isSignature = (isSignature && quoteDepth === 0) || SIGNATURE.test(line);
    const content = line.startsWith(">From ") ? line.slice(1) : line.slice(marks.length);
    const last = blocks.at(-1);
    if (last?.quoteDepth === quoteDepth && last.isSignature === isSignature) last.lines.push(content);
    else blocks.push({ quoteDepth, isSignature, lines: [content] });
  }
  let linksLeft = LINKS_MAX;
  const isLinked = (link: Piece) => typeof link !== "string" && linksLeft-- > 0;
  return blocks
    .map(({ lines, quoteDepth, isSignature }) => {
      return { quoteDepth, isSignature, pieces: piecesOf(trimLines(lines), isStored, isLinked) };
    })
    .filter(({ pieces }) => pieces.length > 0);
}

function trimLines(lines: readonly string[]): string {
  const first = lines.findIndex((line) => line.trim() !== "");
  return first < 0 ? "" : lines.slice(first).join("\n").trimEnd();
}

/** An address of the web, without the punctuation of the sentence behind it; or a word as long as a call number. */
const LINK = /https?:\/\/[^\s<>"“”«»]{1,2000}|(?<![0-9A-Za-z])[0-9A-Za-z]{8}(?![0-9A-Za-z])/g;
const PUNCTUATION = ".,;:!?'*_)]}";

function piecesOf(
  text: string,
  isStored: (callNumber: string) => boolean,
  isLinked: (link: Piece) => boolean,
): Piece[] {
  const pieces: Piece[] = [];
  let end = 0;
  for (const { 0: found, index } of text.matchAll(LINK)) {
    const link = linkOf(found, isStored);
    if (!isLinked(link) || typeof link === "string") continue;
    pieces.push(text.slice(end, index), link);
    end = index + link.text.length;
  }
  return [...pieces, text.slice(end)].filter((piece) => piece !== "");
}

function linkOf(found: string, isStored: (callNumber: string) => boolean): Piece {
  if (found.length === 8) return isCallNumber(found) && isStored(found) ? { text: found, callNumber: found } : found;
  let length = found.length;
  while (PUNCTUATION.includes(found[length - 1] ?? " ")) length--;
  const trimmed = found.slice(0, length);
  // In `https://en.wikipedia.org/wiki/Kale_(plant)` the last parenthesis belongs to it.
  const text = found.startsWith(`${trimmed})`) && trimmed.includes("(") ? `${trimmed})` : trimmed;
  return URL.canParse(text) ? { text, url: text } : found;
}
