/** `token`: makes, lists and revokes the tokens that a coordinator accepts. Works on the file alone. */
import { fstatSync } from "node:fs";
import { platform } from "node:process";
import { faultOfMode } from "@callnumber/coordinator/machine";
import {
  type MadeToken,
  makeToken,
  noteSchema,
  ROLES,
  type Role,
  readKeptTokensFile,
  type TokenRecord,
} from "@callnumber/coordinator/operator";
import { namespaceSchema } from "@callnumber/protocol/schemas";
import { Argument, Command, Option } from "commander";
import { z } from "zod";
import { changeTokensFile } from "../change-tokens-file.js";
import { commandIo } from "../command-io.js";
import { addOptions, checked, checkedOption, switchOption, tokensFileOption } from "../options.js";
import { formatTime, print, printJson, printPainted } from "../output.js";
import { type Column, nameCell, terminalTable } from "../table.js";

interface Options {
  readonly tokensFile?: string;
  readonly role?: Role;
  readonly namespace?: readonly string[];
  readonly allNamespaces?: boolean;
  readonly note?: string;
  readonly json?: boolean;
}

interface Action {
  readonly id: string | undefined;
  readonly file: string;
  readonly options: Options;
}

const COLUMNS: readonly Column<TokenRecord>[] = [
  { heading: "ID", cellOf: ({ id }) => id, expendability: 0 },
  { heading: "ROLE", cellOf: ({ role }) => role, expendability: 0 },
  { heading: "NAMESPACES", cellOf: ({ namespaces }) => formatNamespaces(namespaces), shrinksTo: 12, expendability: 0 },
  { heading: "CREATED AT", cellOf: ({ createdAtMs }) => formatTime(createdAtMs), expendability: 2 },
  { heading: "NOTE", cellOf: ({ note }) => nameCell(note ?? ""), shrinksTo: 8, expendability: 1 },
];

const ACTIONS: Readonly<Record<string, (action: Action) => Promise<void>>> = { list, create, revoke };

/** With another verb they would do nothing. */
const ONLY_CREATE = { role: "role", namespace: "namespace", allNamespaces: "all-namespaces", note: "note" } as const;

const OPEN_TO_OTHERS =
  "THE FILE THAT IT GOES TO CAN BE READ BY OTHERS: chmod 600 it now, and say umask 077 before the next one.\n";

const REREAD = "send SIGHUP to its process, or start it again";

export function tokenCommand(): Command {
  const command = new Command("token")
    .summary("who is let in: makes, lists and revokes tokens")
    .description(
      "create: makes a token and says it once, on standard output; only its SHA-256 is kept. list: which there are. revoke: takes one " +
        "away, by its id. A coordinator that runs with the same file (serve --tokens-file) reads it again on SIGHUP.",
    )
    .addArgument(new Argument("[verb]", "what to do").choices(Object.keys(ACTIONS)).default("list"))
    .argument("[id]", "revoke: the token's id, as list shows it")
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber token create --tokens-file tokens --role lease --namespace main --note importer-1 > importer-1.token\n" +
        "  $ callnumber token list --tokens-file tokens\n  $ callnumber token revoke 5e884898 --tokens-file tokens",
    )
    .action(async (verb: string, id: string | undefined, options: Options, self: Command) => {
      if (verb !== "create") rejectCreateOptions(verb, self);
      if (verb !== "revoke" && id !== undefined) throw new TypeError(`${verb} takes no id`);
      await ACTIONS[verb]?.({ id, file: fileIn(options), options });
    });
  const roles = ROLES.join(", ");
  return addOptions(command, [
    tokensFileOption(),
    checkedOption("--role <role>", `create: one of ${roles}`, z.enum(ROLES, `a role is one of ${roles}`)),
    namespacesOption(),
    switchOption("all-namespaces", "create: good for every namespace, also for those made later"),
    checkedOption("--note <text>", "create: for whom it is; anybody who may read the list sees it", noteSchema),
  ]);
}

function namespacesOption(): Option {
  return new Option("--namespace <names...>", "create: good for these namespaces, and no others").argParser(
    (text: string, before: readonly string[] = []) => [...before, checked(namespaceSchema, text)],
  );
}

async function create({ file, options }: Action): Promise<void> {
  const { role, note, json } = options;
  if (role === undefined) throw new TypeError(`what may the token do? Say --role ${ROLES.join(" | ")}`);
  const namespaces = namespacesIn(options);
  const { token, record } = await addToken(file, { role, namespaces, note });
  if (json) {
    printJson({ token, ...withoutHash(record), tokensFile: file });
    return;
  }
  commandIo().stderr.write(
    `Made token ${record.id} in ${file}: role ${role}, ${formatNamespaces(namespaces, "namespace ")}.\n` +
      "It stands on standard output, this once, and nowhere else: keep it in a file that only its bearer may read (CALLNUMBER_TOKEN_FILE).\n" +
      `A coordinator that runs lets it in once it has read the file again: ${REREAD}.\n${isOpenToOthers() ? OPEN_TO_OTHERS : ""}`,
  );
  print(token);
}

async function addToken(file: string, settings: Parameters<typeof makeToken>[0]): Promise<MadeToken> {
  let made: MadeToken | undefined;
  await changeTokensFile(file, (records) => {
    const takenIds = new Set(records.map(({ id }) => id));
    made = makeToken(settings, takenIds, Date.now());
    return [...records, made.record];
  });
  return made as MadeToken;
}

/** By default a shell creates files that every user may read. */
function isOpenToOthers(): boolean {
  const { fd } = commandIo().stdout;
  if (fd === undefined) return false;
  const output = fstatSync(fd);
  return output.isFile() && platform !== "win32" && faultOfMode(output.mode, "") !== undefined;
}

async function list({ file, options }: Action): Promise<void> {
  const { records } = await readKeptTokensFile(file);
  if (options.json) printJson(records.map(withoutHash));
  else if (records.length === 0) print("no tokens: nobody is let in");
  else printPainted(terminalTable(COLUMNS).linesOf(records).join("\n"));
}

async function revoke({ id, file, options }: Action): Promise<void> {
  // Without the argument: it may be the token itself.
  if (id === undefined || !/^[0-9a-f]{8}$/.test(id)) {
    throw new TypeError('which token? Give its id, eight hex digits, as "callnumber token list" shows it');
  }
  // Fails for a wrong path, where changing would create the file.
  await readKeptTokensFile(file);
  await changeTokensFile(file, (records) => {
    if (records.some((record) => record.id === id)) return records.filter((record) => record.id !== id);
    throw Object.assign(new Error(`${file} holds no token with the id ${id}`), { code: "token_unknown" });
  });
  if (options.json) printJson({ revoked: id, tokensFile: file });
  else print(`Revoked token ${id}. A coordinator that runs lets it in until it has read the file again: ${REREAD}`);
}

function withoutHash(record: TokenRecord): Omit<TokenRecord, "sha256"> {
  const { sha256: _, ...rest } = record;
  return rest;
}

function namespacesIn({ namespace, allNamespaces = false }: Options): TokenRecord["namespaces"] {
  if (allNamespaces && namespace !== undefined) {
    throw new TypeError("--namespace and --all-namespaces exclude each other");
  }
  if (allNamespaces) return "all";
  if (namespace === undefined)
    throw new TypeError("where is the token good? Say --namespace NAME, or --all-namespaces");
  return [...new Set(namespace)].sort();
}

function fileIn({ tokensFile }: Options): string {
  if (tokensFile === undefined) throw new TypeError("which file holds the tokens? Say --tokens-file FILE");
  return tokensFile;
}

function rejectCreateOptions(verb: string, command: Command): void {
  const given = Object.entries(ONLY_CREATE).find(([name]) => command.getOptionValueSource(name) === "cli");
  if (given !== undefined) throw new TypeError(`${verb} makes no token: --${given[1]} is for create`);
}

function formatNamespaces(namespaces: TokenRecord["namespaces"], before = ""): string {
  // A namespace may be called "all", but no name has blanks or parentheses.
  if (namespaces === "all") return before === "" ? "(all namespaces)" : "all namespaces";
  return `${before}${namespaces.join(" ")}`;
}
