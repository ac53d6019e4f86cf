/** `--scan`: the greatest run among an archive's call numbers, as a further floor for `recover`. Nothing in it is guessed. */
import { stderr, stdin } from "node:process";
import { runOfLedgerId } from "@callnumber/protocol/wire";
import type { Option } from "commander";
import { z } from "zod";
import { ArchiveError } from "../archive/archive-error.js";
import type { GreatestRun, Malformed, ScanResult } from "../archive/archive-scan.js";
import { scanArchive } from "../archive/scan-archive.js";
import { CoordinatorError } from "../errors.js";
import type { Floor, RecoverPlan } from "../operator/recover.js";
import type { StoreAddress } from "../stores/store-url.js";
import { checkedOption, switchOption } from "./options.js";
import { grouped } from "./print.js";

export interface ScanOptions {
  readonly scan?: string;
  readonly scanColumn?: string;
  readonly skipMalformed?: boolean;
}

export interface Scanned extends ScanResult {
  readonly source: string;
  readonly greatest: GreatestRun;
}

const STANDARD_INPUT = "-";

export function scanOptions(): readonly Option[] {
  return [
    checkedOption(
      "--scan <file>",
      "an archive that the numbers went into: its greatest run is a floor too. One call number a line, alone or at the end of a URL; - for standard input",
      z.string().min(1),
    ),
    checkedOption(
      "--scan-column <column>",
      "the archive is no list: name of a CSV column (or its number, where there is no row of names), TABLE.COLUMN of an SQLite database",
      z.string().min(1),
    ),
    switchOption("skip-malformed", "go on although the archive holds what is no call number"),
  ];
}

/**
 * Scans the archive that was asked for; undefined when none was.
 * @throws ArchiveError when it can't be read, holds no call number, or something else that was not to be skipped.
 */
export async function scanned(options: ScanOptions, address: StoreAddress, json = false): Promise<Scanned | undefined> {
  const { scan: source, scanColumn, skipMalformed = false } = options;
  if (source === undefined) {
    if (scanColumn !== undefined || skipMalformed)
      throw new TypeError("--scan-column and --skip-malformed need a --scan");
    return undefined;
  }
  if (!json) stderr.write(`Reading ${nameOf(source)} …\n`);
  const result = await scanArchive({
    source: source === STANDARD_INPUT ? stdin : source,
    column: scanColumn,
    never: address.kind === "sqlite" ? ["", "-wal", "-shm", ".lock"].map((part) => `${address.path}${part}`) : [],
  });
  const { greatest, malformedCount } = result;
  if (malformedCount > 0 && !skipMalformed) throw new ArchiveError(malformedInWords(source, result));
  if (greatest === undefined) {
    throw new ArchiveError(
      `${nameOf(source)} holds no call number: is it the right file, the right column? To recover a store whose archive is empty, leave --scan out`,
    );
  }
  return { ...result, source, greatest };
}

export function floorsOf(archive: Scanned | undefined): readonly Floor[] {
  return archive === undefined ? [] : [{ from: whereabouts(archive), ledgerId: archive.greatest.ledgerId }];
}

/**
 * A store that was put back may have forgotten that its version advanced; but it can't have done so before the clock line of that
 * version began.
 * @throws CoordinatorError `operator_needed` when the archive's greatest number is of a version that the namespace can't have reached.
 */
export function mustBeOfVersion(archive: Scanned | undefined, plan: RecoverPlan): void {
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

export function scannedInWords(archive: Scanned): readonly string[] {
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

function whereabouts({ source, greatest: { callNumber, line } }: Scanned): string {
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
