/**
 * `--scan`: the greatest run among an archive's call numbers, or in the logs of coordinators, as a further floor for `recover`.
 * Nothing in it is guessed.
 */
import { runOfLedgerId } from "@callnumber/protocol/wire";
import type { Option } from "commander";
import { z } from "zod";
import { ArchiveError } from "../archive/archive-error.js";
import type { GreatestRun, Malformed, ScanResult } from "../archive/archive-scan.js";
import { scanArchive } from "../archive/scan-archive.js";
import { isLogFile, scanLog } from "../archive/scan-log.js";
import { CoordinatorError } from "../errors.js";
import type { Floor, RecoverPlan } from "../operator/recover-plan.js";
import type { StoreAddress } from "../stores/store-url.js";
import { commandIo } from "./command-io.js";
import { checked, checkedOption, switchOption } from "./options.js";
import { grouped } from "./print.js";
import { floorsOfLogs, mustTellOf, type ScannedLog } from "./scanned-logs.js";

export interface ScanOptions {
  readonly scan?: readonly string[];
  readonly scanColumn?: string;
  readonly skipMalformed?: boolean;
}

export interface ScannedArchive extends ScanResult {
  readonly source: string;
  readonly greatest: GreatestRun;
}

export interface Scanned {
  readonly archive: ScannedArchive | undefined;
  readonly logs: readonly ScannedLog[];
}

const STANDARD_INPUT = "-";
/** In front of what is a log in any case: standard input, or a file whose first line is damaged. */
const LOG_PREFIX = "log:";

export function scanOptions(): readonly Option[] {
  return [
    checkedOption(
      "--scan <file>",
      "an archive that the numbers went into: its greatest run is a floor too. One call number a line, alone or at the end of a URL; - for " +
        "standard input. Or a log of a coordinator, also gzipped, once for each file; log:FILE or log:- where that can't be seen",
      z.string().min(1),
    ).argParser((text: string, before: readonly string[] = []) => [...before, checked(z.string().min(1), text)]),
    checkedOption(
      "--scan-column <column>",
      "the archive is no list: name of a CSV column (or its number, where there is no row of names), TABLE.COLUMN of an SQLite database",
      z.string().min(1),
    ),
    switchOption("skip-malformed", "go on although the archive holds what is no call number"),
  ];
}

/**
 * Scans what was asked for.
 * @throws ArchiveError when it can't be read, holds no call number, no lease of the namespace, or something else that was not to
 *   be skipped. TypeError for more than one archive.
 */
export async function scanned(
  options: ScanOptions,
  address: StoreAddress,
  { namespace, json = false }: { readonly namespace: string; readonly json?: boolean | undefined },
): Promise<Scanned> {
  const { scan: sources = [], scanColumn, skipMalformed = false } = options;
  const never = address.kind === "sqlite" ? ["", "-wal", "-shm", ".lock"].map((part) => `${address.path}${part}`) : [];
  const areLogs = (source: string) => source.startsWith(LOG_PREFIX) || isLogFile(source, never);
  const logSources = sources.filter(areLogs);
  const [source, another] = sources.filter((one) => !logSources.includes(one));
  if (another !== undefined) {
    throw new TypeError(
      `--scan takes one archive, and as many logs as there are; ${another} does not begin as a log: if it is one, say log:${another}`,
    );
  }
  if (source === undefined && (scanColumn !== undefined || skipMalformed))
    throw new TypeError("--scan-column and --skip-malformed need a --scan of an archive");
  const io = commandIo();
  const say = (name: string) => void (json || io.stderr.write(`Reading ${name} …\n`));
  const logs: ScannedLog[] = [];
  for (const prefixed of logSources) {
    const path = prefixed.startsWith(LOG_PREFIX) ? prefixed.slice(LOG_PREFIX.length) : prefixed;
    const name = nameOf(path);
    say(name);
    logs.push({ name, ...(await scanLog({ source: path === STANDARD_INPUT ? io.stdin : path, never })) });
  }
  mustTellOf(namespace, logs);
  if (source === undefined) return { archive: undefined, logs };
  say(nameOf(source));
  const result = await scanArchive({
    source: source === STANDARD_INPUT ? io.stdin : source,
    column: scanColumn,
    never,
  });
  return { archive: mustBeReadable(source, result, skipMalformed), logs };
}

function mustBeReadable(source: string, result: ScanResult, skipMalformed: boolean): ScannedArchive {
  const { greatest, malformedCount } = result;
  if (malformedCount > 0 && !skipMalformed) throw new ArchiveError(malformedInWords(source, result));
  if (greatest === undefined) {
    throw new ArchiveError(
      `${nameOf(source)} holds no call number: is it the right file, the right column? To recover a store whose archive is empty, leave --scan out`,
    );
  }
  return { ...result, source, greatest };
}

export function floorsOf({ archive, logs }: Scanned, namespace: string): readonly Floor[] {
  const ofArchive = archive === undefined ? [] : [{ from: whereabouts(archive), ledgerId: archive.greatest.ledgerId }];
  return [...ofArchive, ...floorsOfLogs(namespace, logs)];
}

/**
 * A store that was put back may have forgotten that its version advanced; but it can't have done so before the clock line of that
 * version began.
 * @throws CoordinatorError `operator_needed` when the archive's greatest number is of a version that the namespace can't have reached.
 */
export function mustBeOfVersion({ archive }: Scanned, plan: RecoverPlan): void {
  const { namespace, found, witnessed } = plan;
  if (archive === undefined || plan.possibleAtMs === null) return;
  const version = found?.version ?? (witnessed && runOfLedgerId(witnessed.ledgerId).version);
  const { version: scannedVersion } = runOfLedgerId(archive.greatest.ledgerId);
  if (version === undefined || scannedVersion <= version) return;
  throw new CoordinatorError(
    "operator_needed",
    `${whereabouts(archive)} is of version ${scannedVersion}, and namespace "${namespace}" is at version ${version}: it can't have been made ` +
      "from this store. Is it the right archive, the right column, the right store? Nothing was changed",
  );
}

export function archiveInWords(archive: ScannedArchive): readonly string[] {
  const { source, greatest, callNumberCount, malformedCount, blankCount } = archive;
  const { run } = runOfLedgerId(greatest.ledgerId);
  const at = greatest.line === null ? "" : `, line ${grouped(greatest.line)}`;
  const more = [
    ...(malformedCount > 0
      ? [
          malformedCount === 1
            ? "1 that holds none was skipped"
            : `${grouped(malformedCount)} that hold none were skipped`,
        ]
      : []),
    ...(blankCount > 0 ? [blankCount === 1 ? "1 is empty" : `${grouped(blankCount)} are empty`] : []),
  ];
  return [
    `  the archive        greatest run ${grouped(run)} (${greatest.callNumber}${at}) of ${counted(callNumberCount)} in ${nameOf(source)}`,
    ...(more.length > 0 ? [`                     ${more.join("; ")}`] : []),
  ];
}

function whereabouts({ source, greatest: { callNumber, line } }: ScannedArchive): string {
  return `call number ${callNumber} (${line === null ? "in" : `line ${line} of`} ${nameOf(source)})`;
}

function nameOf(source: string): string {
  return source === STANDARD_INPUT ? "standard input" : source;
}

function counted(callNumberCount: number): string {
  return callNumberCount === 1 ? "1 call number" : `${grouped(callNumberCount)} call numbers`;
}

function malformedInWords(source: string, { malformedCount, malformed, callNumberCount }: ScanResult): string {
  const places = malformedCount === 1 ? "one place" : `${grouped(malformedCount)} places`;
  return [
    `${nameOf(source)} holds ${counted(callNumberCount)}, and in ${places} something else:`,
    ...malformed.map(malformedLine),
    ...(malformedCount > malformed.length ? ["  …"] : []),
    "Any of them could have been of the greatest run, so nothing was done. Mend them; or, when they are known to be no call numbers: --skip-malformed",
  ].join("\n");
}

function malformedLine({ line, why }: Malformed): string {
  return line === null ? `  ${why}` : `  line ${line}: ${why}`;
}
