/** `token`: makes, lists and revokes the tokens that a coordinator lets in. Works on the file alone. */
import { fstatSync } from "node:fs";
import { platform } from "node:process";
import { namespaceSchema } from "@callnumber/protocol/schemas";
import { Argument, Command, Option } from "commander";
import { z } from "zod";
import { ROLES, type Role } from "../http/caller.js";
import { faultOfMode } from "../platform/private-file.js";
import { holdsToken } from "../text.js";
import { changeTokensFile } from "../tokens/change-tokens-file.js";
import { type MadeToken, makeToken } from "../tokens/made-token.js";
import { readKeptTokensFile } from "../tokens/read-tokens-file.js";
import { noteSchema, type TokenRecord } from "../tokens/token-record.js";
import { commandIo } from "./command-io.js";
import { checked, checkedOption, switchOption } from "./options.js";
import { instant, print, printJson, printPainted } from "./print.js";
import { type Column, nameCell } from "./table.js";
import { terminalTable } from "./terminal-table.js";
import { tokensFileOption } from "./tokens-file-option.js";

interface Options {
  readonly tokensFile?: string;
  readonly role?: Role;
  readonly namespace?: readonly string[];
  readonly allNamespaces?: boolean;
  readonly note?: string;
  readonly json?: boolean;
}

/** A verb, as it was typed. */
interface Deed {
  readonly id: string | undefined;
  readonly file: string;
  readonly options: Options;
  readonly command: Command;
}

const COLUMNS: readonly Column<TokenRecord>[] = [
  { heading: "ID", cellOf: ({ id }) => id, expendability: 0 },
  { heading: "ROLE", cellOf: ({ role }) => role, expendability: 0 },
  { heading: "NAMESPACES", cellOf: ({ namespaces }) => reachInWords(namespaces), shrinksTo: 12, expendability: 0 },
  { heading: "CREATED AT", cellOf: ({ createdAtMs }) => instant(createdAtMs), expendability: 2 },
  { heading: "NOTE", cellOf: ({ note }) => nameCell(note ?? ""), shrinksTo: 8, expendability: 1 },
];

const VERBS: Readonly<Record<string, (deed: Deed) => Promise<void>>> = { list, create, revoke };

/** Whoever types them with another verb expects what does not happen. */
const ONLY_CREATE = { role: "role", namespace: "namespace", allNamespaces: "all-namespaces", note: "note" } as const;

const OPEN_TO_OTHERS =
  "THE FILE THAT IT GOES TO CAN BE READ BY OTHERS: chmod 600 it now, and say umask 077 before the next one.\n";

const REREAD = "send SIGHUP to its process, or start it again";

export function tokenCommand(): Command {
  return new Command("token")
    .summary("who is let in: makes, lists and revokes tokens")
    .description(
      "create: makes a token and says it once, on standard output; only its SHA-256 is kept. list: which there are. revoke: takes one " +
        "away, by its id. A coordinator that runs with the same file (serve --tokens-file) reads it again on SIGHUP.",
    )
    .addArgument(new Argument("[verb]", "what to do").choices(Object.keys(VERBS)).default("list"))
    .argument("[id]", "revoke: the token's id, as list shows it")
    .addOption(tokensFileOption())
    .addOption(checkedOption("--role <role>", `create: one of ${ROLES.join(", ")}`, roleSchema()))
    .addOption(namespacesOption())
    .addOption(switchOption("all-namespaces", "create: good for every namespace, also for those made later"))
    .addOption(
      checkedOption("--note <text>", "create: for whom it is; anybody who may read the list sees it", newNoteSchema()),
    )
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber token create --tokens-file tokens --role lease --namespace main --note importer-1 > importer-1.token\n" +
        "  $ callnumber token list --tokens-file tokens\n  $ callnumber token revoke 5e884898 --tokens-file tokens",
    )
    .action(async (verb: string, id: string | undefined, options: Options, self: Command) => {
      if (verb !== "create") mustNotCreate(verb, self);
      if (verb !== "revoke" && id !== undefined) throw new TypeError(`${verb} takes no id`);
      await VERBS[verb]?.({ id, file: fileOf(options), options, command: self });
    });
}

/** Not in the file's own schema: a note of before must not make the file unreadable. */
function newNoteSchema(): z.ZodType<string> {
  return noteSchema.refine(
    (note) => !holdsToken(note),
    "a note holds no token: everybody who may read the list sees it",
  );
}

function roleSchema(): z.ZodType<Role> {
  return z.enum(ROLES, `a role is one of ${ROLES.join(", ")}`);
}

function namespacesOption(): Option {
  return new Option("--namespace <names...>", "create: good for these namespaces, and no others").argParser(
    (text: string, before: readonly string[] = []) => [...before, checked(namespaceSchema, text)],
  );
}

async function create({ file, options }: Deed): Promise<void> {
  const { role, note, json } = options;
  if (role === undefined) throw new TypeError(`what may the token do? Say --role ${ROLES.join(" | ")}`);
  const namespaces = namespacesIn(options);
  let made: MadeToken | undefined;
  await changeTokensFile(file, (records) => {
    const taken = new Set(records.map(({ id }) => id));
    made = makeToken({ role, namespaces, note }, taken, Date.now());
    return [...records, made.record];
  });
  const { token, record } = made as MadeToken;
  if (json) {
    printJson({ token, ...told(record), tokensFile: file });
    return;
  }
  commandIo().stderr.write(
    `Made token ${record.id} in ${file}: role ${role}, ${reachInWords(namespaces, "namespace ")}.\n` +
      "It stands on standard output, this once, and nowhere else: keep it in a file that only its bearer may read (CALLNUMBER_TOKEN_FILE).\n" +
      `A coordinator that runs lets it in once it has read the file again: ${REREAD}.\n${isOpenToOthers() ? OPEN_TO_OTHERS : ""}`,
  );
  print(token);
}

/** A shell makes files that everybody may read, where nobody has told it otherwise. */
function isOpenToOthers(): boolean {
  const { fd } = commandIo().stdout;
  if (fd === undefined) return false;
  const output = fstatSync(fd);
  return output.isFile() && platform !== "win32" && faultOfMode(output.mode, "") !== undefined;
}

async function list({ file, options }: Deed): Promise<void> {
  const { records } = await readKeptTokensFile(file);
  if (options.json) printJson(records.map(told));
  else if (records.length === 0) print("no tokens: nobody is let in");
  else printPainted(terminalTable(COLUMNS).linesOf(records).join("\n"));
}

async function revoke({ id, file, options }: Deed): Promise<void> {
  // Not with what was typed: it may be the token itself.
  if (id === undefined || !/^[0-9a-f]{8}$/.test(id)) {
    throw new TypeError('which token? Give its id, eight hex digits, as "callnumber token list" shows it');
  }
  // Not made by this: whoever names the wrong file should hear it.
  await readKeptTokensFile(file);
  await changeTokensFile(file, (records) => {
    if (records.some((record) => record.id === id)) return records.filter((record) => record.id !== id);
    throw Object.assign(new Error(`${file} holds no token with the id ${id}`), { code: "token_unknown" });
  });
  if (options.json) printJson({ revoked: id, tokensFile: file });
  else print(`Revoked token ${id}. A coordinator that runs lets it in until it has read the file again: ${REREAD}`);
}

/** The hash is for the coordinator: nobody else can do anything with it. */
function told(record: TokenRecord): Omit<TokenRecord, "sha256"> {
  const { sha256: _, ...rest } = record;
  return rest;
}

/** The environment names the namespace of those who always mean it; whoever types that all are meant is believed. */
function namespacesIn({ namespace, allNamespaces = false }: Options): TokenRecord["namespaces"] {
  if (allNamespaces && namespace !== undefined) {
    throw new TypeError("--namespace and --all-namespaces exclude each other");
  }
  if (allNamespaces) return "all";
  if (namespace === undefined)
    throw new TypeError("where is the token good? Say --namespace NAME, or --all-namespaces");
  return [...new Set(namespace)].sort();
}

function fileOf({ tokensFile }: Options): string {
  if (tokensFile === undefined) throw new TypeError("which file holds the tokens? Say --tokens-file FILE");
  return tokensFile;
}

function mustNotCreate(verb: string, command: Command): void {
  const given = Object.entries(ONLY_CREATE).find(([name]) => command.getOptionValueSource(name) === "cli");
  if (given !== undefined) throw new TypeError(`${verb} makes no token: --${given[1]} is for create`);
}

function reachInWords(namespaces: TokenRecord["namespaces"], before = ""): string {
  // A namespace may be called all: no name has blanks or parentheses.
  if (namespaces === "all") return before === "" ? "(all namespaces)" : "all namespaces";
  return `${before}${namespaces.join(" ")}`;
}
