/** `doctor`: what stands against leasing on this store, and what an operator should change before it does. Changes nothing. */
import process from "node:process";
import { Command } from "commander";
import { CoordinatorError } from "../errors.js";
import type { Finding, Store } from "../store.js";
import { openStore } from "../stores/open-store.js";
import { describeStore, parseStoreUrl, type StoreAddress } from "../stores/store-url.js";
import { coreDumps, settingsInWords, settingsOfServe } from "./doctor-settings.js";
import { storeOption } from "./options.js";
import { print, printJson } from "./print.js";

interface Options {
  readonly store: string;
  readonly json?: boolean;
}

export function doctorCommand(): Command {
  return new Command("doctor")
    .summary("look whether the store could lose or repeat what it holds")
    .description(
      "Looks at the store's servers and records, and says what stands against leasing (the exit code is then 1), what is unwise, and the line " +
        "of configuration that ends it; then the settings that serve would have here, without secrets. With an operator's user in the URL it sees more. Changes nothing.",
    )
    .addOption(storeOption())
    .addHelpText("after", "\nExamples:\n  $ callnumber doctor --store redis://operator:PASSWORD@127.0.0.1:6379")
    .action(async ({ store: url, json }: Options) => {
      const address = parseStoreUrl(url);
      const settings = await settingsOfServe();
      const dumps = coreDumps();
      const sayRest = () => print(settingsInWords(settings, dumps).join("\n"));
      const findings = await findingsAt(address).catch((error: unknown) => {
        // Of a store that can't be looked at they are what is left to look at.
        if (!json) sayRest();
        throw error;
      });
      const isIll = findings.some(({ code }) => code !== undefined);
      if (isIll) process.exitCode = 1;
      if (json) {
        printJson({ store: describeStore(address), isIll, findings, settings, coreDumps: dumps ?? null });
        return;
      }
      print([describeStore(address), ...inWords(findings)].join("\n"));
      sayRest();
    });
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
      remedy: "callnumber init, if this is a new store; else find the right one",
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
    return [{ code: error.code, what: error.message, remedy: "callnumber recover says what it finds", ...about }];
  }
}

const REMEDIES = {
  store_claimed: "start a coordinator: it settles it",
  store_sealed: "callnumber status says which; callnumber resume where it was paused, or callnumber recover",
} as const;

function inWords(findings: readonly Finding[]): readonly string[] {
  if (findings.length === 0) return ["  nothing found: it can be leased from, and nothing unwise is seen"];
  return findings.flatMap(({ code, what, remedy, override }) => [
    `  ${code === undefined ? "unwise" : `REFUSED (${code})`}: ${what}`,
    `      change     ${remedy}`,
    ...(override === undefined ? [] : [`      or accept  callnumber serve --accept ${override}`]),
  ]);
}
