/** What `doctor` says for people. Pure. */
import type { Setting, SettingsAnswer } from "@callnumber/protocol/operator";
import { endInWords, nearEnd } from "../http/certificate-end.js";
import type { Finding } from "../store.js";
import { escapeAndShorten } from "../text.js";
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

export interface Examined {
  /** Without secrets. */
  readonly store: string;
  readonly running: Running;
  /** By the coordinator that answers. */
  readonly isServed: boolean;
  /** An embedded store, which only its coordinator can open; or no store was named. */
  readonly isSeenByCoordinator: boolean;
  readonly findings: readonly Finding[];
  readonly coreDumps: string | undefined;
}

export function otherStore(url: string, served: string): string {
  return `The coordinator at ${url} serves another store: ${escapeAndShorten(served)}`;
}

export function examinedInWords({ store, running, isSeenByCoordinator }: Examined): string {
  return isSeenByCoordinator ? `${escapeAndShorten(store)}, as the coordinator at ${running.url} sees it` : store;
}

export function findingsInWords(findings: readonly Finding[]): readonly string[] {
  if (findings.length === 0) return ["  nothing found: it can be leased from, and nothing unwise is seen"];
  return findings.flatMap(({ code, what, remedy, override }) => [
    `  ${code === undefined ? "unwise" : `REFUSED (${code})`}: ${what}`,
    `      change     ${remedy}`,
    ...(override === undefined ? [] : [`      or accept  start the coordinator with --accept ${override}`]),
  ]);
}

/** What is unwise about the certificate in use: it ends within 14 days, or has ended. */
export function findingsOfCertificate({ running: { answer }, isServed }: Examined, nowMs: number): readonly Finding[] {
  const endsAtMs = answer?.certificateEndsAtMs ?? null;
  const end = endsAtMs === null || !isServed ? undefined : nearEnd(endsAtMs, nowMs);
  if (end === undefined) return [];
  const remedy = "put a new certificate and its key in their place; a coordinator that runs sees them within seconds";
  return [{ what: endInWords(end), remedy }];
}

/** Of the coordinator that serves the store, what differs from the defaults. */
export function restInWords({ running, isServed, coreDumps }: Examined): readonly string[] {
  const { answer } = running;
  const isHarmless = coreDumps === "off" || coreDumps === undefined;
  return [
    ...(answer === undefined ? [runningUnknown(running)] : isServed ? runningKnown(running.url, answer) : []),
    `core dumps: ${coreDumps ?? "not known here"}${isHarmless ? "" : CORE_ADVICE}`,
  ];
}

function runningUnknown({ url, refusal: { code, message } }: NotTold): string {
  // It says by itself whom it is about, and why: nobody there, or a certificate that is not believed.
  if (code === "coordinator_unreachable") return message;
  return `the coordinator at ${url} does not tell its settings: ${message} (${code})`;
}

function runningKnown(url: string, answer: SettingsAnswer): readonly string[] {
  const { release, startedAtMs, settings, certificateEndsAtMs } = answer;
  const own = settings.filter(({ from }) => from !== "default");
  return [
    `the coordinator at ${url}, release ${escapeAndShorten(release)}, has run since ${instant(startedAtMs)} with ${own.length === 0 ? "the default settings" : "the defaults but for:"}`,
    ...settingsInWords(own),
    ...(certificateEndsAtMs === null ? [] : [`TLS certificate: until ${instant(certificateEndsAtMs)}`]),
  ];
}

/** From elsewhere, perhaps: nothing of it acts on a terminal. */
function settingsInWords(settings: readonly Setting[]): readonly string[] {
  const width = Math.max(0, ...settings.map(({ name }) => name.length));
  return settings.map(
    ({ name, value, from }) =>
      `  ${escapeAndShorten(name).padEnd(width)}  ${escapeAndShorten(value ?? "not set")} (${from})`,
  );
}

const CORE_ADVICE = ". A core file holds passwords and keys: ulimit -c 0, or LimitCORE=0 in a unit of systemd";
