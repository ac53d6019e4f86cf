/** `namespaces`: which spaces of runs there are, what people call them by, and new ones. */
import type { NamespaceDescription } from "@callnumber/protocol/operator";
import { OPERATOR_ROUTES } from "@callnumber/protocol/operator";
import { namespaceDescriptionSchema, namespacesAnswerSchema } from "@callnumber/protocol/operator-schemas";
import { namespaceSchema } from "@callnumber/protocol/schemas";
import { filledPath, type Holder } from "@callnumber/protocol/wire";
import { Argument, Command, Option } from "commander";
import { Coordinator } from "../coordinator.js";
import { newLabelsSchema } from "../http/names-without-tokens.js";
import { notInitialised } from "../refusals.js";
import { openStore } from "../stores/open-store.js";
import { parseStoreUrl } from "../stores/store-url.js";
import { askCoordinator } from "./ask-coordinator.js";
import { tokenFileOption } from "./bearer-token.js";
import type { Style } from "./colours.js";
import { type MakingOptions, makeNamespace, makingOptions } from "./make-namespace.js";
import { checked, coordinatorOption, storeOption, switchOption } from "./options.js";
import { grouped, instant, labelsInWords, print, printJson, printPainted } from "./print.js";
import { shownFields } from "./shown-fields.js";
import type { Column } from "./table.js";
import { terminalTable } from "./terminal-table.js";
import { memoryOf } from "./witness-option.js";

type Labels = Holder["labels"];

interface Options extends MakingOptions {
  readonly coordinator: string;
  readonly tokenFile?: string | undefined;
  readonly label?: Labels;
  readonly unlabel?: boolean;
}

/** A verb, as it was typed. */
interface Deed {
  readonly name: string | undefined;
  readonly options: Options;
  readonly command: Command;
}

/** Who looks at a store without a coordinator knows nothing of a guard. */
type Found = Omit<NamespaceDescription, "guard"> & { readonly guard: NamespaceDescription["guard"] | null };

const GUARD_STYLES: Readonly<Record<NamespaceDescription["guard"]["state"], Style>> = {
  open: "green",
  in_doubt: "yellow",
  fenced: "red",
};

const COLUMNS: readonly Column<Found>[] = [
  { heading: "NAMESPACE", cellOf: ({ namespace }) => namespace, expendability: 0 },
  { heading: "RUNS USED", cellOf: ({ record }) => record?.runsUsed ?? "?", expendability: 2 },
  { heading: "RUNS LEFT", cellOf: ({ record }) => record?.runsLeft ?? "?", expendability: 1 },
  { heading: "RATE", cellOf: ({ record }) => record?.lineRunsPerSecond ?? "?", expendability: 4 },
  {
    heading: "GUARD",
    cellOf: ({ guard }) => (guard === null ? "not asked" : guard.state.replaceAll("_", " ")),
    styleOf: ({ guard }) => (guard === null ? "dim" : GUARD_STYLES[guard.state]),
    expendability: 0,
  },
  { heading: "LABELS", cellOf: labelsInWords, shrinksTo: 10, expendability: 3 },
];

const VERBS: Readonly<Record<string, (deed: Deed) => Promise<void>>> = { list, create, describe };

/** What is a namespace's for ever: only `create` takes these. */
const ONLY_CREATE = ["create", "firstRun", "rate", "nodes"] as const;

export function namespacesCommand(): Command {
  const command = new Command("namespaces")
    .summary("which spaces of runs there are, and new ones")
    .description(
      "list: all namespaces, with what is left and whether they lease. describe: one of them; with --label it gets those labels " +
        "instead of the ones it had. Both ask the coordinator, or look at a store that is named by --store and not in use. " +
        "create: makes one, on the store itself, as init does; stop the coordinator of an embedded store first.",
    )
    .addArgument(new Argument("[verb]", "what to do").choices(Object.keys(VERBS)).default("list"))
    .argument("[name]", "name of the namespace", (text) => checked(namespaceSchema, text))
    .addOption(labelOption())
    .addOption(switchOption("unlabel", "describe: take all labels away"))
    .addOption(coordinatorOption())
    .addOption(tokenFileOption())
    .addOption(storeOption())
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber namespaces\n  $ callnumber namespaces create lists --label archive=lists --first-run 200000\n" +
        "  $ callnumber namespaces describe lists --label archive=lists --label team=mail",
    )
    .action(async (verb: string, name: string | undefined, options: Options, self: Command) => {
      await VERBS[verb]?.({ name, options, command: self });
    });
  for (const option of makingOptions()) command.addOption(option);
  return command;
}

/** Once for each label. */
function labelOption(): Option {
  return new Option("--label <name=value>", "a label of the namespace; may be given up to 8 times").argParser(
    (text: string, before: Labels = {}) => {
      const [, name = "", value = ""] = /^([^=]*)=(.*)$/s.exec(text) ?? [];
      return checked(newLabelsSchema, { ...before, [name]: value });
    },
  );
}

async function list({ name, options, command }: Deed): Promise<void> {
  if (name !== undefined || options.label !== undefined || options.unlabel) {
    throw new TypeError("list takes neither a name nor labels");
  }
  mustNotMake("list", command);
  const found = await listed(options, command);
  if (options.json) return printJson(found);
  if (found.length === 0) return print("no namespaces");
  printPainted(terminalTable(COLUMNS).linesOf(found).join("\n"));
}

async function create({ name, options, command }: Deed): Promise<void> {
  if (options.unlabel) throw new TypeError("a new namespace has no labels to take away");
  await makeNamespace(command, named(name), options, options.label);
}

async function describe({ name, options, command }: Deed): Promise<void> {
  const namespace = named(name);
  mustNotMake("describe", command);
  if (options.label !== undefined && options.unlabel) throw new TypeError("--label and --unlabel exclude each other");
  const labels = options.unlabel ? {} : options.label;
  if (labels !== undefined) await relabel(namespace, labels, options, command);
  const found = (await listed(options, command)).find((one) => one.namespace === namespace);
  if (found === undefined) throw notInitialised(namespace);
  if (options.json) printJson(found);
  else print(inWords(shownFields(found)));
}

async function listed(options: Options, command: Command): Promise<readonly Found[]> {
  if (!isDirect(command)) {
    return (await askCoordinator(options, OPERATOR_ROUTES.namespaces, namespacesAnswerSchema)).namespaces;
  }
  const found = await onStore(options, (coordinator) => coordinator.namespaces());
  return found.map(({ namespace, labels, record, guard }) => {
    return { namespace, labels, record, guard: record === null ? guard : null };
  });
}

async function relabel(namespace: string, labels: Labels, options: Options, command: Command): Promise<void> {
  if (isDirect(command)) {
    await onStore(options, (coordinator) => coordinator.labelNamespace(namespace, labels));
    return;
  }
  await askCoordinator(options, filledPath(OPERATOR_ROUTES.labels, { namespace }), namespaceDescriptionSchema, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ labels }),
  });
}

/** Without a witness: to look at a store is not to trust it. It only tells a store that is lost from one that never was. */
async function onStore<T>(
  { store: url, witnessFolder }: Options,
  ask: (coordinator: Coordinator) => Promise<T>,
): Promise<T> {
  const address = parseStoreUrl(url);
  const { mustNotBeLost } = memoryOf(address, witnessFolder);
  const { store } = await openStore(address, { create: false, mustNotBeLost });
  try {
    return await ask(new Coordinator({ store, name: "namespaces" }));
  } finally {
    await store.close();
  }
}

/** The environment names the store for those who always mean it, and a coordinator may have it open. */
function isDirect(command: Command): boolean {
  return ["cli", "file"].includes(command.getOptionValueSource("store") ?? "");
}

function mustNotMake(verb: string, command: Command): void {
  const given = ONLY_CREATE.find((option) => command.getOptionValueSource(option) === "cli");
  if (given === undefined) return;
  throw new TypeError(
    `${verb} makes nothing: --${given.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)} is for create`,
  );
}

function named(name: string | undefined): string {
  if (name === undefined) throw new TypeError("which namespace? Give its name behind the verb");
  return name;
}

function inWords({ namespace, labels, record, guard }: Found): string {
  const lines = [`namespace ${namespace}`];
  if (Object.keys(labels).length > 0) lines.push(`  labels         ${labelsInWords({ labels })}`);
  if (record !== null) {
    const { storeId, version, firstRun, highWaterMark, runsUsed, runsLeft, lineRunsPerSecond } = record;
    lines.push(
      `  store id       ${storeId}`,
      `  runs           of version ${version}, from ${grouped(firstRun)} on; mark ${grouped(highWaterMark)}`,
      `  used, left     ${grouped(runsUsed)}, ${grouped(runsLeft)}`,
      `  clock line     rises by ${lineRunsPerSecond} ${lineRunsPerSecond === 1 ? "run" : "runs"} a second`,
    );
  }
  if (guard !== null) {
    const since = instant(guard.sinceMs);
    lines.push(`  guard          ${guard.state.replaceAll("_", " ")} since ${since}: ${guard.explanation}`);
  }
  return lines.join("\n");
}
