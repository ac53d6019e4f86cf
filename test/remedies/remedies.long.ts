/**
 * Every situation in which a command is printed: run as printed, it ends in leasing. From a situation to leasing again by nothing but the
 * commands that were printed, each run as it was printed. `npm run remedies`; `-- --target TEXT` for those with it in their name.
 */
import { env } from "node:process";
import { expect, inject, test } from "vitest";
import { ownPostgresUnavailable } from "../postgres/test-postgres.js";
import { ownServerUnavailable } from "../redis/test-redis.js";
import { commandsIn, NAMESPACES, OperatorWorld, type Outcome } from "./operator-world.js";
import { SITUATIONS, type Situation } from "./situations.js";

type Servers = Parameters<typeof OperatorWorld.begin>[1];

/** Most of the time of a walk is waiting. */
const CONCURRENT_WALKS = 8;
const STEPS_MAX = 3;

test("every printed command, run as printed, leads to leasing within three steps", async ({ skip }) => {
  const { binary } = inject("redis");
  if (binary === undefined) return skip(ownServerUnavailable());
  const { programs } = inject("postgres");
  if (programs === undefined) console.log(`not walked: situations on PostgreSQL: ${ownPostgresUnavailable()}`);
  const wanted = SITUATIONS.filter(({ name }) => name.includes(env["CALLNUMBER_TARGET"] ?? ""));
  expect(wanted, "no situation has that text in its name").not.toEqual([]);
  const possible = wanted.filter(({ store }) => store !== "postgres" || programs !== undefined);
  const walked = await walkAll(possible, { binary, programs });
  console.log(summaryOf(walked));
  expect(problemsOf(walked)).toEqual([]);
});

async function walkAll(situations: readonly Situation[], servers: Servers): Promise<readonly Walked[]> {
  const left = [...situations];
  const walked: Walked[] = [];
  const worker = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift())
      walked.push(...(await walksFrom(next, servers)));
  };
  await Promise.all(Array.from({ length: CONCURRENT_WALKS }, worker));
  return walked;
}

function summaryOf(walked: readonly Walked[]): string {
  const commands = new Set(walked.flatMap(({ commands }) => commands.map(withoutValues)));
  const steps = Math.max(0, ...walked.map(({ commands }) => commands.length));
  const situations = new Set(walked.map(({ name }) => name)).size;
  const circles = walked.filter(({ isCircle }) => isCircle).length;
  return [
    `situations ${situations}, walks ${walked.length}, distinct commands ${commands.size}, steps to healthy at most ${steps}, circles ${circles}`,
    ...[...commands].sort().map((command) => `  ${command}`),
  ].join("\n");
}

/** What went wrong, for people. */
function problemsOf(walked: readonly Walked[]): readonly string[] {
  return walked.flatMap(({ name, surface, commands, problems }) =>
    problems.map((problem) => `${name}, by ${surface || "no surface"}, after [${commands.join(" ; ")}]: ${problem}`),
  );
}

interface Walked {
  readonly name: string;
  /** Where the operator read the first command. */
  readonly surface: string;
  /** In their order. */
  readonly commands: readonly string[];
  /** Empty when leasing continues and nothing else changed. */
  readonly problems: readonly string[];
  readonly isCircle: boolean;
  /** What each surface printed. */
  readonly printed: ReadonlyMap<string, string>;
}

/** The walk from the first surface that prints a command, and one more from each that prints another command. */
async function walksFrom(situation: Situation, servers: Servers): Promise<readonly Walked[]> {
  const first = await walkFrom(situation, servers);
  const walks = [first];
  const known = new Set(first.commands.map(withoutValues));
  for (const [surface, text] of first.printed) {
    const other = about(situation.namespace, text)
      .map(withoutValues)
      .filter((command) => !known.has(command));
    if (other.length === 0 || surface === first.surface) continue;
    for (const command of other) known.add(command);
    walks.push(await walkFrom(situation, servers, surface));
  }
  return walks;
}

async function walkFrom(situation: Situation, servers: Servers, wanted?: string): Promise<Walked> {
  const { namespace, hurtsBoth = false } = situation;
  const name = `${situation.store}: ${situation.name} (${namespace})`;
  let world: OperatorWorld | undefined;
  const commands: string[] = [];
  const problems: string[] = [];
  let printed: ReadonlyMap<string, string> = new Map();
  let surface = wanted ?? "";
  let isCircle = false;
  try {
    world = await OperatorWorld.begin(situation.store, servers, situation.storeIdOf);
    const rejected = await world.serve();
    if (rejected !== undefined) throw new Error(`the coordinator does not start: ${rejected}`);
    for (const one of NAMESPACES) {
      if (situation.storeIdOf?.(one) !== undefined) continue;
      const { isDone, text } = await world.leased(one);
      if (!isDone) throw new Error(`nothing is leased before the fault: ${text}`);
    }
    const before = await world.marks();
    await situation.inject(world);
    printed =
      situation.entered === undefined
        ? await world.surfaces(namespace, situation.endsIn)
        : new Map([["entered", (await world.shell(situation.entered(world))).text]]);
    const isHelpful = (text: string) => about(namespace, text).length > 0 || situation.endsIn?.test(text);
    surface = wanted ?? [...printed].find(([, text]) => isHelpful(text))?.[0] ?? "";
    let outcome: Outcome = { text: printed.get(surface) ?? "", isDone: false };
    if (![...printed.values()].some((text) => text.includes(situation.code)))
      problems.push(`no surface names ${situation.code}`);
    while (!outcome.isDone && problems.length === 0) {
      const next = about(namespace, outcome.text).find((command) => !commands.includes(command));
      if (next === undefined && situation.endsIn?.test(outcome.text))
        return { name, surface, commands, problems, isCircle, printed };
      if (next === undefined) {
        isCircle = about(namespace, outcome.text).length > 0;
        problems.push(`${isCircle ? "a circle" : "no further command"}: ${outcome.text}`);
      } else if (commands.length === STEPS_MAX)
        problems.push(`not healed in ${STEPS_MAX} steps; then: ${outcome.text}`);
      else {
        commands.push(next);
        outcome = await stepped(world, namespace, outcome.text, next);
      }
    }
    if (problems.length === 0) problems.push(...(await changesElsewhere(world, before, { namespace, hurtsBoth })));
  } catch (error) {
    problems.push(String(error));
  } finally {
    await world?.dispose();
  }
  return { name, surface, commands, problems, isCircle, printed };
}

/** The commands that act on the namespace: of another one that is hurt too they would be walked in turn. */
function about(namespace: string, text: string): readonly string[] {
  return commandsIn(text).filter((command) => command.split(" ").includes(namespace));
}

/** Does what the text says, runs the command, and looks whether runs are leased. */
async function stepped(world: OperatorWorld, namespace: string, text: string, command: string): Promise<Outcome> {
  const mayStayUp = world.isOnServer && text.includes("coordinator of an embedded store");
  if (/\bstop\b[^.]*\bcoordinators?\b/i.test(text) && !mayStayUp) await world.stopServing();
  const ran = await world.shell(command);
  if (commandsIn(ran.text).length > 0 || !ran.isDone) return { text: ran.text, isDone: false };
  const refused = await world.serve();
  return refused === undefined ? await world.leased(namespace) : { text: refused, isDone: false };
}

async function changesElsewhere(
  world: OperatorWorld,
  before: ReadonlyMap<string, number | null>,
  { namespace, hurtsBoth }: { namespace: string; hurtsBoth: boolean },
): Promise<readonly string[]> {
  const after = await world.marks();
  const expected: readonly string[] = NAMESPACES;
  const names = [...after.keys()].sort();
  const isAsExpected = hurtsBoth ? names.every((name) => expected.includes(name)) : names.join() === expected.join();
  const problems = isAsExpected ? [] : [`there are namespaces ${names.join(", ")}`];
  const healthy = NAMESPACES.find((one) => one !== namespace) as string;
  if (hurtsBoth || namespace === healthy || after.get(healthy) === before.get(healthy)) return problems;
  return [...problems, `the mark of ${healthy} moved from ${before.get(healthy)} to ${after.get(healthy)}`];
}

/** A command without what differs between two worlds. */
function withoutValues(command: string): string {
  return command
    .replace(/--store ('[^']*'(\\''[^']*')*|\S+)/, "--store URL")
    .replace(/[0-9a-f]{8}-[0-9a-f-]{27}\S*/g, "STORE_ID")
    .replace(/(--min-run) \d\/\d+/, "$1 RUN");
}
