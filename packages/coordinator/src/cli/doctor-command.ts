/** `doctor`: what stands against leasing on this store, and what an operator should change before it does. Changes nothing. */
import process from "node:process";
import { commandLine, OPERATOR_ROUTES, type Setting } from "@callnumber/protocol/operator";
import { settingsAnswerSchema } from "@callnumber/protocol/operator-schemas";
import { DEFAULT_NAMESPACE } from "@callnumber/protocol/wire";
import { Command } from "commander";
import { CoordinatorError } from "../errors.js";
import { endOfCertificateIn } from "../http/tls-files.js";
import type { Finding, Store } from "../store.js";
import { openStore } from "../stores/open-store.js";
import { describeStore, parseStoreUrl, type StoreAddress } from "../stores/store-url.js";
import { askCoordinator } from "./ask-coordinator.js";
import { AskError } from "./ask-error.js";
import { tokenFileOption } from "./bearer-token.js";
import { coreDumps, settingsOfServe } from "./doctor-settings.js";
import { findingsInWords, findingsOfCertificate, type Rest, type Running, restInWords } from "./doctor-words.js";
import { coordinatorOption, storeOption } from "./options.js";
import { print, printJson } from "./print.js";

interface Options {
  readonly store: string;
  readonly coordinator: string;
  readonly tokenFile?: string | undefined;
  readonly json?: boolean;
}

export function doctorCommand(): Command {
  return new Command("doctor")
    .summary("look whether the store could lose or repeat what it holds")
    .description(
      "Looks at the store's servers and records, and says what stands against leasing (the exit code is then 1), what is unwise, and the line " +
        "of configuration that ends it; then the settings of the coordinator that runs, or, where none tells them, those that serve would have here, without secrets. With an operator's user in the URL it sees more. Changes nothing.",
    )
    .addOption(storeOption())
    .addOption(coordinatorOption())
    .addOption(tokenFileOption())
    .addHelpText("after", "\nExamples:\n  $ callnumber doctor --store redis://operator:PASSWORD@127.0.0.1:6379")
    .action(async (options: Options) => {
      const address = parseStoreUrl(options.store);
      const rest = await restFor(options);
      const sayRest = () => print(restInWords(rest).join("\n"));
      const ofStore = await findingsAt(address).catch((error: unknown) => {
        // Of a store that can't be looked at they are what is left to look at.
        if (!options.json) sayRest();
        throw error;
      });
      const findings = [...ofStore, ...findingsOfCertificate(rest.certificateEnd, Date.now())];
      const isIll = findings.some(({ code }) => code !== undefined);
      if (isIll) process.exitCode = 1;
      if (options.json) {
        printJson({ store: describeStore(address), isIll, findings, ...asJson(rest) });
        return;
      }
      print([describeStore(address), ...findingsInWords(findings)].join("\n"));
      sayRest();
    });
}

async function restFor(options: Options): Promise<Rest> {
  const settings = await settingsOfServe();
  const running = await askRunning(options);
  return { running, settings, certificateEnd: certificateEndOf(running, settings), coreDumps: coreDumps() };
}

/** Whether one runs is no finding about the store: none is asked for more than a word. */
async function askRunning(options: Options): Promise<Running> {
  const url = options.coordinator;
  try {
    const answer = await askCoordinator(options, OPERATOR_ROUTES.settings, settingsAnswerSchema);
    return { url, answer, refusal: undefined };
  } catch (error) {
    if (!(error instanceof AskError)) throw error;
    return { url, answer: undefined, refusal: error };
  }
}

/** Of the certificate in use; where no coordinator tells it, of the one that `serve` would take here. */
function certificateEndOf({ answer }: Running, settings: readonly Setting[]): Rest["certificateEnd"] {
  if (answer !== undefined) return answer.certificateEndsAtMs ?? undefined;
  const path = settings.find(({ name }) => name === "tls-certificate")?.value;
  if (path === null || path === undefined) return undefined;
  try {
    return endOfCertificateIn(path);
  } catch (error) {
    return error as Error;
  }
}

function asJson({ running: { url, answer, refusal }, settings, certificateEnd, coreDumps: dumps }: Rest): object {
  return {
    settings,
    running: answer === undefined ? null : { url, ...answer },
    notRunning: refusal === undefined ? null : { url, code: refusal.code, message: refusal.message },
    certificateEndsAtMs: typeof certificateEnd === "number" ? certificateEnd : null,
    coreDumps: dumps ?? null,
  };
}

async function findingsAt(address: StoreAddress): Promise<readonly Finding[]> {
  const { store } = await openStore(address, { create: false });
  try {
    return [...(await store.preflight({ asOperator: true })), ...(await findingsOfRecords(store))];
  } finally {
    await store.close();
  }
}

/** A record that can't be read is no reason for the server to be ill, and yet nothing is leased of it. */
async function findingsOfRecords(store: Store): Promise<readonly Finding[]> {
  const namespaces = await store.listNamespaces();
  const findings = await Promise.all(namespaces.map((namespace) => findingsOf(store, namespace)));
  if (namespaces.length > 0) return findings.flat();
  return [
    {
      code: "namespace_not_initialised",
      what: "the store holds no namespace",
      remedy: `find the right store; if this is a new one: \`${commandLine("init", DEFAULT_NAMESPACE)}\``,
      override: undefined,
      namespaces: undefined,
    },
  ];
}

async function findingsOf(store: Store, namespace: string): Promise<readonly Finding[]> {
  const about = { override: undefined, namespaces: [namespace] };
  try {
    const { phase } = await store.readNamespace(namespace);
    if (phase === 0) return [];
    const code = phase === 1 ? "store_claimed" : "store_sealed";
    const what = phase === 1 ? "a doubt was claimed and not yet settled" : "it is paused, moved or fenced";
    return [{ code, what: `namespace ${namespace}: ${what}`, remedy: REMEDIES[code], ...about }];
  } catch (error) {
    if (!(error instanceof CoordinatorError)) throw error;
    return [{ code: error.code, what: error.message, remedy: `\`${commandLine("recover", namespace)}\``, ...about }];
  }
}

const REMEDIES = {
  store_claimed: "start a coordinator: it settles it",
  store_sealed: "callnumber status says which; callnumber resume where it was paused, or callnumber recover",
} as const;
