/** What `doctor` says for people. Pure. */
import type { Setting, SettingsAnswer } from "@callnumber/protocol/operator";
import { endInWords, nearEnd } from "../http/certificate-end.js";
import { shown } from "../shown-text.js";
import type { Finding } from "../store.js";
import type { AskError } from "./ask-error.js";
import { instant } from "./print.js";

/** What a coordinator at an address answers of its settings, or why it does not. */
export type Running = Told | NotTold;

interface Told {
  readonly url: string;
  readonly answer: SettingsAnswer;
  readonly refusal: undefined;
}

interface NotTold {
  readonly url: string;
  readonly answer: undefined;
  readonly refusal: AskError;
}

export interface Rest {
  readonly running: Running;
  /** What `serve` would have here. */
  readonly settings: readonly Setting[];
  /** When the certificate ends that the settings name; undefined without one; what is wrong with it where it can't be read. */
  readonly certificateEnd: number | Error | undefined;
  readonly coreDumps: string | undefined;
}

export function findingsInWords(findings: readonly Finding[]): readonly string[] {
  if (findings.length === 0) return ["  nothing found: it can be leased from, and nothing unwise is seen"];
  return findings.flatMap(({ code, what, remedy, override }) => [
    `  ${code === undefined ? "unwise" : `REFUSED (${code})`}: ${what}`,
    `      change     ${remedy}`,
    ...(override === undefined ? [] : [`      or accept  start the coordinator with --accept ${override}`]),
  ]);
}

/** What is unwise about the certificate: it ends within 14 days, has ended, or can't be read. */
export function findingsOfCertificate(end: Rest["certificateEnd"], nowMs: number): readonly Finding[] {
  const what = end instanceof Error ? end.message : wordsNearEnd(end, nowMs);
  if (what === undefined) return [];
  const remedy = "put a new certificate and its key in their place; a coordinator that runs sees them within seconds";
  return [{ code: undefined, what, remedy, override: undefined, namespaces: undefined }];
}

/** Settings that are in force where a coordinator told them, else those that one would have. */
export function restInWords({ running, settings, certificateEnd, coreDumps }: Rest): readonly string[] {
  const isHarmless = coreDumps === "off" || coreDumps === undefined;
  return [
    ...(running.answer === undefined
      ? [runningUnknown(running), "what serve would run with here, by the environment and its defaults:"]
      : [runningKnown(running.url, running.answer)]),
    ...settingsInWords(running.answer?.settings ?? settings),
    ...(typeof certificateEnd === "number" ? [`TLS certificate: until ${instant(certificateEnd)}`] : []),
    `core dumps: ${coreDumps ?? "not known here"}${isHarmless ? "" : CORE_ADVICE}`,
  ];
}

function wordsNearEnd(endsAtMs: number | undefined, nowMs: number): string | undefined {
  const end = endsAtMs === undefined ? undefined : nearEnd(endsAtMs, nowMs);
  return end && endInWords(end);
}

function runningUnknown({ url, refusal: { code, message } }: NotTold): string {
  // It says by itself whom it is about, and why: nobody there, or a certificate that is not believed.
  if (code === "coordinator_unreachable") return message;
  return `the coordinator at ${url} does not tell its settings: ${message} (${code})`;
}

function runningKnown(url: string, { release, store, startedAtMs }: SettingsAnswer): string {
  return `the coordinator at ${url}, release ${shown(release)}, on store ${shown(store)}, has run since ${instant(startedAtMs)} with:`;
}

/** From elsewhere, perhaps: nothing of it acts on a terminal. */
function settingsInWords(settings: readonly Setting[]): readonly string[] {
  const width = Math.max(0, ...settings.map(({ name }) => name.length));
  return settings.map(
    ({ name, value, from }) =>
      `  ${shown(name).padEnd(width)}  ${shown(value ?? "not set")}${from === "default" ? "" : ` (${from})`}`,
  );
}

const CORE_ADVICE = ". A core file holds passwords and keys: ulimit -c 0, or LimitCORE=0 in a unit of systemd";
