/** `token`: creates, lists and revokes the tokens that a coordinator accepts. Works on the file alone. */
import { fstatSync } from "node:fs";
import { type FileHandle, open, rename, unlink } from "node:fs/promises";
import { dirname } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import {
  lineOf,
  type MadeToken,
  makeToken,
  noteSchema,
  ROLES,
  type Role,
  readTokensFile,
  readTokensFileIfThere,
  TOKEN_COUNT_MAX,
  type TokenRecord,
  TokensFileError,
} from "@callnumber/coordinator/internal";
import { faultOfMode, LinkLeadsNowhere, realPathOf } from "@callnumber/coordinator/internal/machine";
import { namespaceSchema } from "@callnumber/protocol/schemas";
import { Command, Option } from "commander";
import { invocation } from "../invocation.js";
import { addOptions, checked, checkedOption, choiceOption, switchOption, tokensFileOption } from "../options.js";
import { formatTime, print, printJson, printPainted } from "../output.js";
import { type Column, nameCell, terminalTable } from "../table.js";

interface FileOptions {
  readonly tokensFile: string;
  readonly json?: boolean;
}

interface CreateOptions extends FileOptions {
  readonly role: Role;
  readonly namespace?: readonly string[];
  readonly allNamespaces?: boolean;
  readonly note?: string;
}

const COLUMNS: readonly Column<TokenRecord>[] = [
  { heading: "ID", cellOf: ({ id }) => id, expendability: 0 },
  { heading: "ROLE", cellOf: ({ role }) => role, expendability: 0 },
  { heading: "NAMESPACES", cellOf: ({ namespaces }) => formatNamespaces(namespaces), shrinksTo: 12, expendability: 0 },
  { heading: "CREATED AT", cellOf: ({ createdAtMs }) => formatTime(createdAtMs), expendability: 2 },
  { heading: "NOTE", cellOf: ({ note }) => nameCell(note ?? ""), shrinksTo: 8, expendability: 1 },
];

const OPEN_TO_OTHERS =
  "Other users can read the file that the token goes to: chmod 600 it now, and set umask 077 before the next one.\n";

/** The time in which `serve` reads a changed file (../serve/tokens-file.ts). */
const RELOAD = "within five seconds, or at once on SIGHUP";

export function makeCommand(): Command {
  return new Command("token")
    .description(
      "Changes a file of tokens. A coordinator that runs with the same file (serve --tokens-file) reads it again " +
        "within five seconds. Without a verb, lists the tokens.",
    )
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber token create --tokens-file tokens --role lease \\\n      --namespace main --note importer-1 > importer-1.token\n" +
        "  $ callnumber token list --tokens-file tokens\n  $ callnumber token revoke 5e884898 --tokens-file tokens",
    )
    .addCommand(createCommand())
    .addCommand(listCommand(), { isDefault: true })
    .addCommand(revokeCommand());
}

function mandatoryFile(): Option {
  return tokensFileOption().makeOptionMandatory();
}

function createCommand(): Command {
  const command = new Command("create")
    .summary("Make a token and print it once")
    .description("Makes a token and prints it once, on standard output; the file keeps its SHA-256 only.")
    .action(create);
  return addOptions(command, [
    mandatoryFile(),
    choiceOption("--role <role>", "what the token may do", ROLES).makeOptionMandatory(),
    new Option("--namespace <names...>", "grants access to these namespaces, and no others")
      .conflicts("allNamespaces")
      .argParser((text: string, before: readonly string[] = []) => [...before, checked(namespaceSchema, text)]),
    switchOption("all-namespaces", "grants access to every namespace, also to those made later"),
    checkedOption("--note <text>", "who uses it; everyone who may read the list sees it", noteSchema),
  ]);
}

async function create({ tokensFile, role, namespace, allNamespaces, note, json }: CreateOptions): Promise<void> {
  if (namespace === undefined && !allNamespaces) {
    throw new TypeError("which namespaces may the token use? Pass --namespace NAME, or --all-namespaces");
  }
  const namespaces = allNamespaces ? "all" : [...new Set(namespace)].sort();
  let made: MadeToken | undefined;
  await changeTokensFile(tokensFile, (records) => {
    made = makeToken({ role, namespaces, note }, new Set(records.map(({ id }) => id)), Date.now());
    return [...records, made.record];
  });
  const { token, record } = made as unknown as MadeToken;
  if (json) return printJson({ token, ...withoutHash(record), tokensFile });
  invocation().io.stderr.write(
    `Made token ${record.id} in ${tokensFile}: role ${role}, ${formatNamespaces(namespaces, "namespace ")}.\n` +
      "Standard output has it, this once: keep it in a file that only its user may read (CALLNUMBER_TOKEN_FILE).\n" +
      `A running coordinator reads the file again ${RELOAD}.\n${isOpenToOthers() ? OPEN_TO_OTHERS : ""}`,
  );
  print(token);
}

/** By default a shell creates files that every user may read. */
function isOpenToOthers(): boolean {
  const { fd } = invocation().io.stdout;
  if (fd === undefined) return false;
  const output = fstatSync(fd);
  return output.isFile() && faultOfMode(output.mode, "") !== undefined;
}

function listCommand(): Command {
  const command = new Command("list")
    .summary("List the tokens")
    .description("Lists the tokens, without their hashes.")
    .action(list);
  return addOptions(command, [mandatoryFile()]);
}

async function list({ tokensFile, json }: FileOptions): Promise<void> {
  const { records } = readTokensFile(tokensFile, { keepsOwner: true });
  if (json) printJson(records.map(withoutHash));
  else if (records.length === 0) print("no tokens: every request is rejected");
  else printPainted(terminalTable(COLUMNS, records));
}

function revokeCommand(): Command {
  const command = new Command("revoke")
    .summary("Remove a token")
    .description("Removes a token.")
    .argument("<id>", "the token's id, as list shows it")
    .action(revoke);
  return addOptions(command, [mandatoryFile()]);
}

async function revoke(id: string, { tokensFile, json }: FileOptions): Promise<void> {
  // The message does not repeat the argument: it may be the token itself.
  if (!/^[0-9a-f]{8}$/.test(id)) {
    throw new TypeError('which token? Pass its id, eight hex digits, as "callnumber token list" shows it');
  }
  // Fails for a wrong path, where changing would create the file.
  readTokensFile(tokensFile, { keepsOwner: true });
  await changeTokensFile(tokensFile, (records) => {
    if (records.some((record) => record.id === id)) return records.filter((record) => record.id !== id);
    throw Object.assign(new Error(`${tokensFile} holds no token with the id ${id}`), { code: "token_unknown" });
  });
  if (json) printJson({ revoked: id, tokensFile });
  else print(`Revoked token ${id}. A running coordinator rejects it ${RELOAD}`);
}

function withoutHash(record: TokenRecord): Omit<TokenRecord, "sha256"> {
  const { sha256: _, ...rest } = record;
  return rest;
}

function formatNamespaces(namespaces: TokenRecord["namespaces"], before = ""): string {
  // A namespace may be called "all", but no name has blanks or parentheses.
  if (namespaces === "all") return before === "" ? "(all namespaces)" : "all namespaces";
  return `${before}${namespaces.join(" ")}`;
}

const NEW_FILE_MODE = 0o600;
/** Another change takes milliseconds. */
const LOCK_WAIT_MAX_MS = 5_000;
const LOCK_RETRY_MS = 20;

type Change = (records: readonly TokenRecord[]) => readonly TokenRecord[];

/**
 * Replaces the records by what `change` returns. The new file is whole on the disk before it replaces the old one: a coordinator that reads
 * it, or a machine that loses power, has the old tokens or the new ones. Its name is the lock: changes wait for each other. Creates the
 * file, for its owner only, where there is none. Owner, group and mode stay.
 * @throws TokensFileError, or what `change` throws.
 */
export async function changeTokensFile(path: string, change: Change): Promise<void> {
  // A link stays one: the file behind it is changed.
  const real = realPathOfTokens(path);
  const next = `${real}.lock`;
  const file = await createNext(next);
  try {
    await writeChanged(file, real, change).finally(() => file.close());
    await rename(next, real);
  } catch (error) {
    await unlink(next).catch(() => {});
    throw error instanceof Error && "syscall" in error ? unwritable(real, error) : error;
  }
  const directory = await open(dirname(real), "r");
  await directory.sync().finally(() => directory.close());
}

function realPathOfTokens(path: string): string {
  try {
    return realPathOf(path);
  } catch (error) {
    if (!(error instanceof LinkLeadsNowhere)) throw error;
    throw new TokensFileError(`the tokens file can't be made: ${error.message}`, { cause: error });
  }
}

/** Creates the file, which only one process can. */
async function createNext(path: string): Promise<FileHandle> {
  const endMs = performance.now() + LOCK_WAIT_MAX_MS;
  for (;;) {
    try {
      return await open(path, "wx", NEW_FILE_MODE);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw unwritable(path, error);
    }
    if (performance.now() > endMs) {
      throw new TokensFileError(
        `another process changes the tokens file: ${path} exists. If no such process runs, remove that file and try again`,
      );
    }
    await delay(LOCK_RETRY_MS);
  }
}

async function writeChanged(file: FileHandle, path: string, change: Change): Promise<void> {
  const before = readTokensFileIfThere(path, { keepsOwner: true });
  const records = change(before?.records ?? []);
  if (records.length > TOKEN_COUNT_MAX) {
    throw new TokensFileError(`${path} holds ${TOKEN_COUNT_MAX} tokens, and can't hold more; revoke one first`);
  }
  if (before !== undefined) {
    // A coordinator may read the file by its group, or as another owner than the user who changes it.
    const own = await file.stat();
    if (own.uid !== before.uid || own.gid !== before.gid) await file.chown(before.uid, before.gid);
    await file.chmod(before.mode);
  }
  await file.writeFile(records.map(lineOf).join(""));
  await file.sync();
}

function unwritable(path: string, error: unknown): TokensFileError {
  const { code, message } = error as NodeJS.ErrnoException;
  return new TokensFileError(`${path} can't be written (${code ?? message})`, { cause: error });
}
