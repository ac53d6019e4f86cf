/**
 * Plain words, in documents, comments, messages and names. Also the length of lines and sentences in documents and in comments of
 * deployment files, of summaries of commands and of subjects of commits.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const OWN_PATH = "scripts/prose.mjs";
/** Generated, or the list of the words itself. */
const SKIPPED = new Set(["pnpm-lock.yaml", OWN_PATH]);
const TEXTS = /\.(md|tsx?|lua|mjs|py|c|ya?ml|sh|conf|service|sql)$|(^|\/)Dockerfile$/;
/** Operators copy these files, and read their comments as they read a document. */
const DEPLOYED = /^deploy\/|^Dockerfile$|^docker-compose\.yml$/;
const LINE_LENGTH_MAX = 100;
const SENTENCE_WORDS_MAX = 30;
const SUMMARY_LENGTH_MAX = 60;
const SUBJECT_LENGTH_MAX = 72;
/** The start of this rule: longer subjects of before can't be changed any more. */
const SUBJECTS_SINCE = "2026-11-24T10:31:00Z";

/** Words to avoid, as whole words in any case, and what to use. A space also matches a line break inside a comment. */
const PATTERNS = [
  ["nobody|somebody|everybody|anybody|whoever|strangers?|who asks|askers?", "the actor: client, importer, operator"],
  ["tells?|told|telling", "report, return, show, log or print"],
  ["mends?|mended|mending|put right", "fix or repair"],
  ["heeds?|heeded|heeding", "respect"],
  ["spelt|misspelt|spelling", "encoded or encoding"],
  ["anew|again and again", "again or repeatedly"],
  ["beside", "next to, in addition to or during"],
  ["burn|burns|burnt|burned", "discard"],
  ["under way", "in flight or in progress"],
  ["(?:in )?doubts?|doubted|undoubted", "may have rolled back, recovering"],
  ["clock line|the line (?:ends|allows)", "run ceiling"],
  ["turned away|turn away|(?<!^\\s*)let in", "reject or authenticate"],
  ["held back", "throttled or delayed"],
  ["for good|for ever|good for", "permanently, grants access to"],
  ["million million|thousand million", "trillion or billion"],
  ["witness|witnesses|remembrances?", "checkpoint"],
  ["hunger|hungry", "demand"],
  ["densely|passed over", "without skipping runs, skipped"],
  ["(?:an)?other hands?|(?:a )?fault of (?:our|its) own", "another program, internal error"],
  ["look-?alikes?|bystanders?|bears", "similar character, other client, includes"],
  ["\\w*(?:colour|neighbour|behaviour|favour|honour)\\w*", "American spelling: -or"],
  ["\\w*(?:initiali|recogni|seriali|normali|organi|optimi|minimi|authori|synchroni|summari)s(?!m|t)\\w+", "-ize"],
  ["mints?|minted|minting|minters?", "generate"],
  ["(?<!there )is no (?:call number|file|command|option|text)", "is not a"],
  ["licence|defence|catalogue|grey|cancelled|labelled|modelled|travell\\w+|judgement", "American spelling"],
].map(([words, use]) => ({
  pattern: new RegExp(`(?<![a-z])(?:${words.replaceAll(" ", "\\s[\\s*/#-]*")})(?![a-z])`, "gim"),
  use,
}));

/** What stays although it is a hit: the file, text of the hit, and the reason. */
const EXCEPTIONS = [
  ["packages/cli/src/typing-mistakes.ts", "mint", "what people type for another command"],
  ["packages/console/src/pages/inspect.tsx", "spelling", "a class of the style sheet"],
  ["test/console/console.slow.test.ts", "spelling", "selects by that class"],
  ["test/postgres/postgres-programs.ts", "nobody", "a user of Unix, which the system names"],
  ["deploy/sql/call-numbers.mariadb.sql", "spelling", "names in functions, which databases have"],
  ["deploy/sql/call-numbers.postgres.sql", "spelling", "a name of parameters, which CREATE OR REPLACE can't change"],
].map(([file, text]) => ({ file, text, isUsed: false }));

const CONTRIBUTOR_PAGE = /^(?:docs\/(?:adr|internals)\/|ARCHITECTURE|CHANGELOG|CONTRIBUTING|test\/|bench\/)/;
/** Of all other pages: how often they give a reason or an example, speak to the reader, or join two sentences. Per 1,000 words. */
const RATES = [
  { name: "because, so that", pattern: /\b(?:because|so that)\b/gi, min: 1 },
  { name: "for example", pattern: /\bfor example\b/gi, min: 0.7 },
  { name: "you", pattern: /\byou(?:r|rs|rself)?\b/gi, min: 10 },
  { name: "semicolons", pattern: /;/g, max: 2 },
].map((rate) => Object.assign(rate, { count: 0 }));
let userWordCount = 0;

const breaches = [];
const files = git("ls-files").filter((name) => TEXTS.test(name) && !SKIPPED.has(name) && existsSync(join(ROOT, name)));
if (files.length === 0) throw new Error("no file was found: this check would see nothing");
for (const file of files) {
  const text = readFileSync(join(ROOT, file), "utf8");
  const isDocument = file.endsWith(".md");
  checkWords(file, isDocument ? withoutCode(text) : text);
  if (isDocument) checkDocument(file, withoutCode(text));
  if (DEPLOYED.test(file)) checkDocument(file, commentsIn(text));
  for (const { 1: summary, index } of text.matchAll(/\.summary\(\s*"([^"]*)"/g))
    if (summary.length > SUMMARY_LENGTH_MAX)
      report(file, lineAt(text, index), summary, `at most ${SUMMARY_LENGTH_MAX} characters`);
}
for (const { name, min = 0, max = Number.POSITIVE_INFINITY, count } of RATES) {
  const rate = ((1_000 * count) / userWordCount).toFixed(1);
  console.log(`${rate.padStart(5)} ${name} in 1,000 words of pages for users`);
  if (!(rate >= min && rate <= max)) report("all pages for users", 1, `${name}: ${rate}`, `${min} to ${max}`);
}
// A shallow clone shows the commits that it has.
const subjects = git("log", "--format=%h %s", `--since=${SUBJECTS_SINCE}`);
for (const line of subjects) {
  const [commit, ...words] = line.split(" ");
  const subject = words.join(" ");
  if (subject.length > SUBJECT_LENGTH_MAX)
    report(commit, 1, `${subject.length} characters`, `a subject of at most ${SUBJECT_LENGTH_MAX}`);
}
for (const { file, text, isUsed } of EXCEPTIONS)
  if (!isUsed) breaches.push(`${OWN_PATH}: the exception "${text}" of ${file} is not needed, remove it`);

for (const breach of breaches) console.log(breach);
console.log(
  `${breaches.length} breaches; checked ${files.length} files, ${PATTERNS.length} patterns, ${subjects.length} commits`,
);
if (breaches.length > 0) process.exit(1);

function checkWords(file, text) {
  // A name is read as its words: `isHeldBack` as "is Held Back". Positions of lines stay.
  const words = text.replaceAll("_", " ").replace(/(?<=[a-z])(?=[A-Z])/g, " ");
  for (const { pattern, use } of PATTERNS)
    for (const { 0: hit, index } of words.matchAll(pattern))
      report(file, lineAt(words, index), `"${hit.replace(/\s+/g, " ")}"`, use);
}

function checkDocument(file, text) {
  if (!CONTRIBUTOR_PAGE.test(file)) countRates(text);
  const lines = text.split("\n");
  for (const [index, line] of lines.entries()) {
    const isUnbreakable = line.startsWith("|") || /^\s*(?:[-*]\s+|\d+\.\s+)?\S*\[[^\]]*\]\([^)]*\)\S*$/.test(line);
    if ([...line].length > LINE_LENGTH_MAX && !isUnbreakable)
      report(file, index + 1, `${[...line].length} characters`, `at most ${LINE_LENGTH_MAX}`);
  }
  let blockStart = 0;
  for (let index = 0; index <= lines.length; index++) {
    const line = lines[index] ?? "";
    if (index < lines.length && !/^\s*(?:$|[-*]\s|\d+\.\s|[|#>])/.test(line)) continue;
    checkSentences(file, blockStart + 1, lines.slice(blockStart, index));
    blockStart = index;
  }
}

function checkSentences(file, line, lines) {
  if (lines[0]?.startsWith("|")) return;
  const prose = lines
    .join(" ")
    .replace(/`[^`]*`/g, "CODE")
    .replace(/\]\([^)]*\)/g, "]");
  for (const sentence of prose.split(/(?<=[.!?]["*_)]*)\s/)) {
    const words = sentence.split(/\s+/).filter((word) => /\w/.test(word));
    if (words.length > SENTENCE_WORDS_MAX)
      report(file, line, `${words.length} words "${words.slice(0, 6).join(" ")} …"`, `at most ${SENTENCE_WORDS_MAX}`);
  }
}

/** Tables count, too. */
function countRates(text) {
  const prose = text.replace(/`[^`]*`/g, "CODE").replace(/\]\([^)]*\)/g, "]");
  userWordCount += prose.split(/\s+/).filter((word) => /\w/.test(word)).length;
  for (const rate of RATES) rate.count += prose.match(rate.pattern)?.length ?? 0;
}

/** Empty lines in place of fenced and indented code, so that the numbers of lines stay. */
function withoutCode(text) {
  const FENCED = /^ *(```+)[^\n]*\n[\s\S]*?\n *\1 *$/gm;
  const INDENTED = /(?<=\n\n)(?: {4}[^\n]*\n|\n(?= {4}))+/g;
  const emptied = (code) => code.replace(/[^\n]/g, "");
  return text.replace(FENCED, emptied).replace(INDENTED, emptied);
}

/**
 * The lines that are comments (`#`, `--`), with spaces in place of the mark; all others empty, so that the numbers of lines stay. An
 * example is indented by three spaces or more behind the mark.
 */
function commentsIn(text) {
  const COMMENT = /^(\s*)(#|--)(?= {0,2}[^\s!])/;
  const commentIn = (line) =>
    COMMENT.test(line) ? line.replace(COMMENT, (_, indent, mark) => indent + " ".repeat(mark.length)) : "";
  return text.split("\n").map(commentIn).join("\n");
}

function report(file, line, what, use) {
  const exception = EXCEPTIONS.find((one) => one.file === file && new RegExp(one.text, "i").test(what));
  if (exception === undefined) breaches.push(`${file}:${line}: ${what}, use ${use}`);
  else exception.isUsed = true;
}

function lineAt(text, index) {
  return text.slice(0, index).split("\n").length;
}

function git(...parameters) {
  const { status, stdout, stderr } = spawnSync("git", parameters, { cwd: ROOT, encoding: "utf8" });
  if (status !== 0) throw new Error(`git ${parameters[0]} failed: ${stderr}`);
  return stdout.split("\n").filter((line) => line !== "");
}
