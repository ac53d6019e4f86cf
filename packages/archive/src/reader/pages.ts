/** The pages of the reader but that of a message, and the frame around all of them. The tag `html` escapes whatever a message brings. */
import { html } from "hono/html";
import type { MessageRow, MonthCount } from "./archive-reader.js";
import { dateText, longMonth, monthOfYear, shortMonth } from "./dates.js";
import { type Hit, MARK_END, MARK_START } from "./search-index.js";
import { nameOf, shortened, visibleLine } from "./text.js";
import { inThreads, type Placed } from "./threads.js";

/** What all pages need to know. */
export interface Site {
  readonly title: string;
  /** Without a slash at its end; `path` is the path of it. */
  readonly baseUrl: string;
  readonly path: string;
  readonly showsAddresses: boolean;
  readonly offersRaw: boolean;
  readonly isIndexed: boolean;
  readonly styleVersion: string;
}

export type Html = ReturnType<typeof html>;

/** Deeper answers look like this depth. */
const DEPTH_MAX = 8;
const LISTS_MAX = 500;
/** `[list] Re: AW: `, in front of what a thread is about. */
const PREFIXES = /^(?:(?:re|aw|antw|sv|fwd?)(?:\[\d+\])?: *|\[[^\]]{1,40}\] *)+/i;
/** Feed readers need some date, also of a message that has none. */
const NO_DATE = "1970-01-01T00:00:00Z";

export const listName = (list: string | null) => (list === null ? "Messages without a list" : visibleLine(list, 120));
export const listPath = ({ path }: Site, list: string | null) =>
  list === null ? `${path}/unlisted` : `${path}/list/${encodeURIComponent(list)}`;
const monthPath = (site: Site, list: string | null, month: string | null) =>
  `${listPath(site, list)}/${month ?? "undated"}`;
const monthName = (month: string | null) => (month === null ? "Without a date" : longMonth(month));
export const messagePath = ({ path }: Site, callNumber: string) => `${path}/message/${callNumber}`;
export const addressesIn = (site: Site, text: string) => (site.showsAddresses ? text : shortened(text));
export const subjectOf = ({ subject }: MessageRow) => visibleLine(subject) || "(no subject)";
export const timeOf = (row: MessageRow, isShort = true) =>
  row.date === null ? html`no date` : html`<time datetime="${row.date}">${dateText(row, isShort)}</time>`;
const senderOf = (site: Site, { from }: MessageRow) => addressesIn(site, nameOf(from));
const quantity = (count: number, noun = "message") =>
  `${count.toLocaleString("en-US")} ${noun}${count === 1 ? "" : "s"}`;

interface FrameProps {
  readonly title: string;
  /** What the page belongs to; a list is what the search searches. */
  readonly list?: string | null | undefined;
  readonly month?: string | null;
  readonly query?: string;
}

export function frame(site: Site, { title, list, month, query = "" }: FrameProps, content: Html): Html {
  const { path } = site;
  const feed = list === undefined ? `${path}/feed.atom` : `${listPath(site, list)}/feed.atom`;
  const searched = typeof list === "string" ? "Search this list" : "Search all messages";
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title === site.title ? title : `${title} · ${site.title}`}</title>
<link rel="stylesheet" href="${path}/style.css?${site.styleVersion}">
<link rel="icon" href="${path}/icon.svg" type="image/svg+xml">
<link rel="alternate" type="application/atom+xml" href="${feed}" title="Atom feed">
</head>
<body>
<header>
<nav aria-label="Breadcrumb">
<a href="${path}/">${site.title}</a>
${list !== undefined && html`<a href="${listPath(site, list)}">${listName(list)}</a>`}
${list !== undefined && month !== undefined && html`<a href="${monthPath(site, list, month)}">${monthName(month)}</a>`}
</nav>
<form action="${path}/search" role="search">
${typeof list === "string" && html`<input type="hidden" name="list" value="${list}">`}
<input type="search" name="q" value="${query}" maxlength="200" aria-label="${searched}" placeholder="${searched}">
<button>Search</button>
</form>
</header>
<main>
${content}
</main>
</body>
</html>
`;
}

export function listsPage(site: Site, counts: readonly MonthCount[], latest: readonly MessageRow[]): Html {
  const lists = new Map<string | null, { count: number; months: Set<string> }>();
  for (const { list, month, count } of counts) {
    const { count: before, months } = lists.get(list) ?? { count: 0, months: new Set() };
    lists.set(list, { count: before + count, months: month === null ? months : months.add(month) });
  }
  const sorted = [...lists].sort(
    ([a, one], [b, other]) => Number(a === null) - Number(b === null) || other.count - one.count,
  );
  const rows = sorted.slice(0, LISTS_MAX).map(([list, { count, months }]) => {
    const ends = [...months].sort().map((month) => shortMonth(month));
    return html`<li><a href="${listPath(site, list)}">${listName(list)}</a> <span>${quantity(count)}</span>
<span class="quiet">${[...new Set([ends[0], ends.at(-1)])].join(" – ")}</span></li>`;
  });
  return frame(
    site,
    { title: site.title },
    html`<h1>${site.title}</h1>
${lists.size === 0 && html`<p>There is no message yet: the first import brings some.</p>`}
<ul class="rows">${rows}</ul>
${lists.size > LISTS_MAX && html`<p class="quiet">The ${LISTS_MAX} largest of ${quantity(lists.size, "list")}.</p>`}
${latest.length > 0 && html`<h2>Latest messages</h2>`}
${messageRows(site, latest)}`,
  );
}

/** Without threads: with subject, sender and list. */
function messageRows(site: Site, rows: readonly MessageRow[], hits?: readonly Hit[]): Html {
  const items = rows.map(
    (row, index) => html`<li>
<a href="${messagePath(site, row.callNumber)}">${subjectOf(row)}</a> <span>${senderOf(site, row)}</span>
<span class="quiet">${timeOf(row)} · ${listName(row.list)}</span>
${hits?.[index] && html`<p>${markedText(addressesIn(site, hits[index].snippet.replace(/\s+/g, " ")))}</p>`}</li>`,
  );
  return html`<ol class="rows">${items}</ol>`;
}

function markedText(text: string) {
  const [before, ...others] = text.split(MARK_START).map((part) => part.split(MARK_END));
  return [before?.join(""), ...others.map(([found, rest]) => html`<mark>${found}</mark>${rest}`)];
}

export function listPage(site: Site, list: string | null, months: readonly MonthCount[]): Html {
  const counts = new Map(months.map(({ month, count }) => [month, count]));
  const years = [...new Set(months.flatMap(({ month }) => month?.slice(0, 4) ?? []))].sort().reverse();
  const cells = (year: string) =>
    Array.from({ length: 12 }, (_, index) => `${year}-${String(index + 1).padStart(2, "0")}`).map((month) => {
      const count = counts.get(month)?.toLocaleString("en-US");
      if (count === undefined) return html`<li class="quiet">${monthOfYear(month)}</li>`;
      return html`<li><a href="${monthPath(site, list, month)}">${monthOfYear(month)} <span>${count}</span></a></li>`;
    });
  const [total, undated] = [months.reduce((sum, { count }) => sum + count, 0), counts.get(null)];
  return frame(
    site,
    { title: listName(list), list },
    html`<h1>${listName(list)}</h1>
<p class="quiet">${quantity(total)} · <a href="${listPath(site, list)}/feed.atom">Atom feed</a></p>
${years.map((year) => html`<section class="year"><h2>${year}</h2><ol>${cells(year)}</ol></section>`)}
${undated && html`<p><a href="${monthPath(site, list, null)}">${quantity(undated)} without a date</a></p>`}`,
  );
}

interface MonthProps {
  readonly list: string | null;
  readonly month: string | null;
  readonly rows: readonly MessageRow[];
  readonly page: number;
  readonly pageCount: number;
  readonly before: string | undefined;
  readonly after: string | undefined;
}

export function monthPage(site: Site, { list, month, rows, page, pageCount, before, after }: MonthProps): Html {
  const toMonth = (other?: string): Target => other && [monthPath(site, list, other), monthName(other)];
  const toPage = (other: number, text: string): Target =>
    other >= 1 && other <= pageCount ? [`${monthPath(site, list, month)}?page=${other}`, text] : undefined;
  const pages = [toPage(page - 1, "Earlier"), toPage(page + 1, "Later")] as const;
  return frame(
    site,
    { title: `${monthName(month)}, ${listName(list)}`, list, month },
    html`<h1>${monthName(month)}</h1>
${threadRows(site, inThreads(rows))}
${pageCount > 1 && pager("Pages of this month", ...pages, `Page ${page} of ${pageCount}`)}
${pager("Months", toMonth(before), toMonth(after))}`,
  );
}

type Target = readonly [href: string, text: string] | undefined | "";

export function pager(label: string, previous: Target, next: Target, text = ""): Html {
  return html`<nav class="pager" aria-label="${label}">
${previous && html`<a rel="prev" href="${previous[0]}">← ${previous[1]}</a>`}
<span class="quiet">${text}</span>
${next && html`<a rel="next" href="${next[0]}">${next[1]} →</a>`}
</nav>`;
}

/** An answer shows its subject only where it has another one than the message before. `current`: the page that this is on. */
export function threadRows(site: Site, placed: readonly Placed<MessageRow>[], current?: string): Html {
  let subject = "";
  const items = placed.map(({ message, depth }) => {
    const plain = subjectOf(message).replace(PREFIXES, "");
    const isNew = depth === 0 || plain !== subject;
    subject = plain;
    const here = message.callNumber === current && html` aria-current="page"`;
    return html`<li class="d${Math.min(depth, DEPTH_MAX)}">
<a href="${messagePath(site, message.callNumber)}"${here}>${isNew ? subjectOf(message) : senderOf(site, message)}</a>
<span>${isNew && senderOf(site, message)}</span> <span class="quiet">${timeOf(message)}</span></li>`;
  });
  return html`<ol class="threads">${items}</ol>`;
}

interface SearchProps {
  readonly query: string;
  readonly list: string | undefined;
  readonly rows: readonly MessageRow[];
  readonly hits: readonly Hit[];
  /** The address of the next page. */
  readonly older: string | undefined;
  /** Of the archive that is indexed, 0 to 1. */
  readonly share: number;
}

export function searchPage(site: Site, { query, list, rows, hits, older, share }: SearchProps): Html {
  const title = query === "" ? "Search" : `Search: ${visibleLine(query)}`;
  const percent = Math.floor(share * 100);
  return frame(
    site,
    { title, list, query },
    html`<h1>Search</h1>
${share < 1 && html`<p class="notice">The search index is being built. It has ${percent} % of the messages.</p>`}
${rows.length === 0 && query !== "" && html`<p>No message has all of these words.</p>`}
${
  rows.length === 0 &&
  html`<p class="quiet">Try fewer words, a “phrase” in quotes, <code>from:name</code>,
<code>subject:word</code>, or a call number.</p>`
}
${messageRows(site, rows, hits)}
${older && pager("Results", undefined, [older, "Older results"])}`,
  );
}

export function missingPage(
  site: Site,
  title: string,
  explanation: string,
  suggestions: readonly MessageRow[] = [],
): Html {
  const items = suggestions.map(
    (row) => html`<li>
<a href="${messagePath(site, row.callNumber)}"><code>${row.callNumber}</code> ${subjectOf(row)}</a>
<span>${senderOf(site, row)}</span> <span class="quiet">${timeOf(row)}</span></li>`,
  );
  return frame(
    site,
    { title },
    html`<h1>${title}</h1>
<p>${explanation}</p>
${items.length > 0 && html`<h2>Did you mean</h2>`}
<ol class="rows">${items}</ol>`,
  );
}

/** An Atom feed (RFC 4287). `list`: undefined for all messages. `texts`: the beginnings of the messages. */
export function atomFeed(
  site: Site,
  list: string | null | undefined,
  rows: readonly MessageRow[],
  texts: readonly string[],
) {
  const url = new URL(site.baseUrl).origin + (list === undefined ? site.path : listPath(site, list));
  const title = list === undefined ? site.title : `${listName(list)} · ${site.title}`;
  const entries = rows.map((row, index) => {
    const link = `${site.baseUrl}/message/${row.callNumber}`;
    return html`<entry><title>${subjectOf(row)}</title><id>${link}</id><link href="${link}"/>
<updated>${row.date ?? NO_DATE}</updated><author><name>${senderOf(site, row)}</name></author>
<summary>${addressesIn(site, texts[index] ?? "")}</summary></entry>
`;
  });
  return html`<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom"><title>${title}</title><id>${url}/</id>
<link href="${url}/"/><link rel="self" type="application/atom+xml" href="${url}/feed.atom"/>
<updated>${
    rows
      .map(({ date }) => date ?? NO_DATE)
      .sort()
      .at(-1) ?? NO_DATE
  }</updated>
${entries}</feed>
`;
}
