/** The page of a message: who wrote what and when, the text, attachments, the thread, and the ways on. */
import { html } from "hono/html";
import type { MessageRow, Relative } from "./archive-reader.js";
import type { Mail } from "./mail.js";
import {
  addressesIn,
  frame,
  type Html,
  listName,
  listPath,
  messagePath,
  pager,
  type Site,
  subjectOf,
  threadRows,
  timeOf,
} from "./pages.js";
import { type Block, blocksOf, visibleLine } from "./text.js";
import { inThreads } from "./threads.js";

interface MessageProps {
  readonly row: MessageRow;
  /** Or why it can't be shown. */
  readonly mail: Mail | string;
  readonly thread: readonly MessageRow[];
  readonly relatives: readonly Relative[];
  readonly neighbors: { readonly previous: MessageRow | undefined; readonly next: MessageRow | undefined };
  isStored(callNumber: string): boolean;
}

/** Shown of a long thread: this message, and so many before and behind it. */
const THREAD_SIDE_MAX = 40;
const PEOPLE_LENGTH_MAX = 400;
const KINDS: Readonly<Record<string, string>> = {
  "cross-posted": "the same message on that list",
  redelivered: "delivered again",
  "footer-added": "with a footer",
  "other-content": "the same Message-ID with another text",
};

export function messagePage(site: Site, props: MessageProps): Html {
  const { row, mail, thread, relatives, neighbors } = props;
  const path = messagePath(site, row.callNumber);
  const to = (other?: MessageRow) => other && ([messagePath(site, other.callNumber), subjectOf(other)] as const);
  const person = (name: string, text: string | null) =>
    text && html`<dt>${name}</dt><dd dir="auto">${addressesIn(site, visibleLine(text, PEOPLE_LENGTH_MAX))}</dd>`;
  const related = relatives.map(
    (other) => html`<dt>Also in</dt>
<dd><a href="${messagePath(site, other.callNumber)}">${listName(other.list)}</a>, ${timeOf(other)}
<span class="quiet">(${KINDS[other.kind] ?? other.kind})</span></dd>`,
  );
  const title = subjectOf(row);
  return frame(
    site,
    { title, list: row.list, month: row.date?.slice(0, 7) ?? null },
    html`<div class="message">
<article>
<h1 dir="auto">${title}</h1>
<dl>
${person("From", row.from)}${person("To", row.to)}${typeof mail === "object" && person("Cc", mail.cc)}
<dt>Date</dt><dd>${timeOf(row, false)}</dd>
<dt>List</dt><dd><a href="${listPath(site, row.list)}">${listName(row.list)}</a></dd>
${related}
<dt>Link</dt><dd><a href="${path}"><code>${row.callNumber}</code></a>
${site.offersRaw && html`<span class="quiet">· <a rel="nofollow" href="${path}/raw">raw message</a></span>`}</dd>
</dl>
${typeof mail === "string" ? html`<p class="notice">${mail}</p>` : content(site, props, mail)}
</article>
${thread.length > 1 && html`<aside><h2>Thread</h2>${threadAround(site, row, thread)}</aside>`}
</div>
${pager("Messages by date", to(neighbors.previous), to(neighbors.next))}`,
  );
}

function content(site: Site, { row, isStored }: MessageProps, mail: Mail): Html {
  const { text, isFromHtml, isCut, attachments, attachmentCount } = mail;
  const blocks = blocksOf(text, (callNumber) => callNumber !== row.callNumber && isStored(callNumber));
  const files = attachments.map(
    ({ name, type, byteCount }, index) => html`<li>
<a rel="nofollow" href="${messagePath(site, row.callNumber)}/attachments/${index + 1}"><bdi>${name}</bdi></a>
<span class="quiet">${sizeText(byteCount)}, ${type}</span></li>`,
  );
  return html`${isFromHtml && html`<p class="quiet">This message is in HTML. Its text is shown.</p>`}
${blocks.length === 0 && html`<p class="quiet">This message has no text.</p>`}
<div class="text">${blocks.map((block) => textBlock(site, block))}</div>
${isCut && html`<p class="notice">The text goes on. The raw message has all of it.</p>`}
${files.length > 0 && html`<h2>Attachments</h2><ul>${files}</ul>`}
${attachmentCount > files.length && html`<p class="quiet">The first ${files.length} of ${attachmentCount}.</p>`}`;
}

function textBlock(site: Site, { quoteDepth, isSignature, pieces }: Block): Html {
  const shown = pieces.map((piece) => {
    if (typeof piece === "string") return addressesIn(site, piece);
    if ("callNumber" in piece) return html`<a href="${messagePath(site, piece.callNumber)}">${piece.text}</a>`;
    return html`<a rel="nofollow noopener ugc" href="${piece.url}">${piece.text}</a>`;
  });
  if (quoteDepth > 0) return html`<blockquote dir="auto" class="q${quoteDepth}">${shown}</blockquote>`;
  return html`<p dir="auto"${isSignature && html` class="quiet"`}>${shown}</p>`;
}

function threadAround(site: Site, { callNumber }: MessageRow, thread: readonly MessageRow[]): Html {
  const placed = inThreads(thread);
  const at = placed.findIndex(({ message }) => message.callNumber === callNumber);
  const start = Math.max(0, at - THREAD_SIDE_MAX);
  const shown = placed.slice(start, at + THREAD_SIDE_MAX + 1);
  const first = start > 0 ? placed[0]?.message : undefined;
  const later = placed.length - start - shown.length;
  return html`${first && html`<p><a href="${messagePath(site, first.callNumber)}">Earlier in this thread</a></p>`}
${threadRows(site, shown, callNumber)}${later > 0 && html`<p class="quiet">More answers follow.</p>`}`;
}

function sizeText(byteCount: number): string {
  if (byteCount < 1000) return `${byteCount} bytes`;
  const [size, unit] = byteCount < 1_000_000 ? [byteCount / 1000, "kB"] : [byteCount / 1_000_000, "MB"];
  return `${size.toLocaleString("en-US", { maximumFractionDigits: 1 })} ${unit}`;
}
