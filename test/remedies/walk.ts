/** From a situation to leasing again by nothing but the commands that were printed, each run as it was printed. */
import type { RedisBinary } from "../redis/redis-binary.js";
import { commandsIn, type Heard, NAMESPACES, OperatorWorld } from "./operator-world.js";
import type { StepContext } from "./situations.js";

const STEPS_MAX = 3;

export interface Walked {
  readonly name: string;
  /** Where the operator read the first command. */
  readonly surface: string;
  /** In their order. */
  readonly commands: readonly string[];
  /** Empty when leasing continues and nothing else changed. */
  readonly problems: readonly string[];
  readonly isCircle: boolean;
  /** What each surface said. */
  readonly said: ReadonlyMap<string, string>;
}

/** The walk from the first surface that prints a command, and one more from each that prints another command. */
export async function walksFrom(situation: StepContext, binary: RedisBinary): Promise<readonly Walked[]> {
  const first = await walkFrom(situation, binary);
  const walks = [first];
  const known = new Set(first.commands.map(withoutValues));
  for (const [surface, text] of first.said) {
    const other = about(situation.namespace, text)
      .map(withoutValues)
      .filter((command) => !known.has(command));
    if (other.length === 0 || surface === first.surface) continue;
    for (const command of other) known.add(command);
    walks.push(await walkFrom(situation, binary, surface));
  }
  return walks;
}

async function walkFrom(situation: StepContext, binary: RedisBinary, wanted?: string): Promise<Walked> {
  const { namespace, hurtsBoth = false, makes = [] } = situation;
  const name = `${situation.store}: ${situation.name} (${namespace})`;
  let world: OperatorWorld | undefined;
  const commands: string[] = [];
  const problems: string[] = [];
  let said: ReadonlyMap<string, string> = new Map();
  let surface = wanted ?? "";
  let isCircle = false;
  try {
    world = await OperatorWorld.begin(situation.store, binary, situation.storeIdOf);
    await mustServe(world);
    for (const one of NAMESPACES) {
      if (situation.storeIdOf?.(one) === undefined) await mustLease(world, one);
    }
    const before = await world.marks();
    await situation.inject(world);
    said =
      situation.typed === undefined
        ? await world.surfaces(namespace, situation.endsIn)
        : await typedFirst(world, situation.typed);
    const isTelling = (text: string) => about(namespace, text).length > 0 || situation.endsIn?.test(text);
    surface = wanted ?? [...said].find(([, text]) => isTelling(text))?.[0] ?? "";
    let heard: Heard = { text: said.get(surface) ?? "", isDone: false };
    if (![...said.values()].some((text) => text.includes(situation.code)))
      problems.push(`no surface names ${situation.code}`);
    while (!heard.isDone && problems.length === 0) {
      const next = about(namespace, heard.text).find((command) => !commands.includes(command));
      if (next === undefined && situation.endsIn?.test(heard.text))
        return { name, surface, commands, problems, isCircle, said };
      if (next === undefined) {
        isCircle = about(namespace, heard.text).length > 0;
        problems.push(`${isCircle ? "a circle" : "no further command"}: ${heard.text}`);
      } else if (commands.length === STEPS_MAX) problems.push(`not healed in ${STEPS_MAX} steps; then: ${heard.text}`);
      else {
        commands.push(next);
        heard = await stepped(world, namespace, heard.text, next);
      }
    }
    if (problems.length === 0)
      problems.push(...(await changesElsewhere(world, before, { namespace, hurtsBoth, makes })));
  } catch (error) {
    problems.push(String(error));
  } finally {
    await world?.dispose();
  }
  return { name, surface, commands, problems, isCircle, said };
}

/** The commands that act on the namespace: of another one that is hurt too they would be walked in turn. */
function about(namespace: string, text: string): readonly string[] {
  return commandsIn(text).filter((command) => command.split(" ").includes(namespace));
}

/** Does what the text says, runs the command, and looks whether runs are leased. */
async function stepped(world: OperatorWorld, namespace: string, text: string, command: string): Promise<Heard> {
  const mayStayUp = world.server !== undefined && text.includes("coordinator of an embedded store");
  if (/\bstop\b[^.]*\bcoordinators?\b/i.test(text) && !mayStayUp) await world.stopServing();
  const ran = await world.shell(command);
  if (commandsIn(ran.text).length > 0) return { text: ran.text, isDone: false };
  if (!ran.isDone) return { text: ran.text, isDone: false };
  const refused = await world.serve();
  return refused === undefined ? await world.leased(namespace) : { text: refused, isDone: false };
}

async function typedFirst(
  world: OperatorWorld,
  command: (world: OperatorWorld) => string,
): Promise<Map<string, string>> {
  return new Map([["typed", (await world.shell(command(world))).text]]);
}

async function changesElsewhere(
  world: OperatorWorld,
  before: ReadonlyMap<string, number | null>,
  { namespace, hurtsBoth, makes }: { namespace: string; hurtsBoth: boolean; makes: readonly string[] },
): Promise<readonly string[]> {
  const after = await world.marks();
  const expected = [...new Set([...NAMESPACES, ...makes])].sort();
  const names = [...after.keys()].sort();
  const isAsExpected = hurtsBoth ? names.every((name) => expected.includes(name)) : names.join() === expected.join();
  const problems = isAsExpected ? [] : [`there are namespaces ${names.join(", ")}`];
  const healthy = NAMESPACES.find((one) => one !== namespace) as string;
  if (hurtsBoth || namespace === healthy || after.get(healthy) === before.get(healthy)) return problems;
  return [...problems, `the mark of ${healthy} moved from ${before.get(healthy)} to ${after.get(healthy)}`];
}

async function mustServe(world: OperatorWorld): Promise<void> {
  const refused = await world.serve();
  if (refused !== undefined) throw new Error(`the coordinator does not start: ${refused}`);
}

async function mustLease(world: OperatorWorld, namespace: string): Promise<void> {
  const { isDone, text } = await world.leased(namespace);
  if (!isDone) throw new Error(`nothing is leased before the fault: ${text}`);
}

/** A command without what differs between two worlds. */
export function withoutValues(command: string): string {
  return command
    .replace(/--store ('[^']*'(\\''[^']*')*|\S+)/, "--store URL")
    .replace(/[0-9a-f]{8}-[0-9a-f-]{27}\S*/g, "STORE_ID")
    .replace(/(--min-run) \d+/, "$1 RUN");
}
