/** `pause` and `resume`: planned work on the store's server, without a jump afterwards. */
import { once } from "node:events";
import process, { stderr, stdin } from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { Command } from "commander";
import { CoordinatorError } from "../errors.js";
import { type Pause, pauseNamespace } from "../operator/pause.js";
import { openStore } from "../stores/open-store.js";
import { describeStore, parseStoreUrl, type StoreAddress } from "../stores/store-url.js";
import { namespaceOption, nodesOption, storeOption } from "./options.js";
import { askToResume, awaitResume, type ResumeAnswer } from "./pause-socket.js";
import { print, printJson } from "./print.js";
import { witnessesOf, witnessFolderOption } from "./witness-option.js";

const LOOK_EVERY_MS = 1_000;

interface Options {
  readonly store: string;
  readonly namespace: string;
  readonly witnessFolder: string;
  readonly nodes?: number;
  readonly json?: boolean;
}

export function pauseCommand(): Command {
  return new Command("pause")
    .summary("stop leasing for planned work on the store's server")
    .description(
      "Ends leasing of a namespace and waits, until Enter is pressed here or `callnumber resume` is typed elsewhere on this machine. " +
        "Then leasing goes on where it stopped, if the store is exactly as it was. Keep this process running meanwhile: only its memory " +
        "can tell. When it ends, `callnumber recover` is the way on. An embedded store needs no pause: stop `callnumber serve`.",
    )
    .addOption(storeOption())
    .addOption(namespaceOption())
    .addOption(nodesOption("how many data nodes there are when it goes on (default: as before)"))
    .addOption(witnessFolderOption())
    .action(pause);
}

export function resumeCommand(): Command {
  return new Command("resume")
    .summary("go on after a pause")
    .description("Tells the process that paused a namespace, on this machine, to let it go on.")
    .addOption(storeOption())
    .addOption(namespaceOption())
    .addOption(nodesOption("how many data nodes there are from now on (default: as before)"))
    .action(async ({ store, namespace, nodes, json }: Options) => {
      const address = pausable(store);
      const answer = await askToResume(placeOf(address, namespace), { nodeCount: nodes });
      if (answer === undefined) {
        throw new CoordinatorError(
          "claim_raced",
          `no process on this machine holds a pause of namespace "${namespace}". Type resume where pause was typed; if that process has ` +
            'ended, "callnumber recover" is the way on',
        );
      }
      tell(answer, namespace, json);
    });
}

async function pause({ store: url, namespace, nodes, witnessFolder, json }: Options): Promise<void> {
  const address = pausable(url);
  const { store } = await openStore(address, { create: false });
  const witness = witnessesOf(address, witnessFolder)(namespace);
  try {
    const paused = await pauseNamespace({ store, namespace, witness });
    const { mark, generation } = paused;
    const { server, resumed } = await awaitResume(placeOf(address, namespace), (wish) =>
      answerOf(() => paused.resume({ nodeCount: wish.nodeCount ?? nodes })),
    );
    if (json) printJson({ paused: namespace, mark, generation });
    else {
      stderr.write(
        `Namespace "${namespace}" is paused at run ${mark}, generation ${generation}. Nothing is leased. Importers go on with the runs in hand.\n` +
          "Do the planned work now, and keep this process running. When the server answers again:\n" +
          "press Enter here, or type callnumber resume in another terminal on this machine.\n",
      );
    }
    const answer = await Promise.race([
      resumed,
      sealLost(paused),
      enterPressed().then(() => answerOf(() => paused.resume({ nodeCount: nodes }))),
      givenUp(namespace),
    ]);
    server.close();
    stdin.unref?.();
    tell(answer, namespace, json);
  } finally {
    witness.close();
    await store.close();
  }
}

async function answerOf(
  resume: () => ReturnType<Awaited<ReturnType<typeof pauseNamespace>>["resume"]>,
): Promise<ResumeAnswer> {
  try {
    const { after } = await resume();
    return { highWaterMark: after.highWaterMark, generation: after.generation };
  } catch (error) {
    if (!(error instanceof CoordinatorError)) throw error;
    return { code: error.code, message: error.message };
  }
}

function tell(answer: ResumeAnswer, namespace: string, json: boolean | undefined): void {
  if ("code" in answer) throw Object.assign(new Error(answer.message), { code: answer.code });
  if (json) printJson({ resumed: namespace, ...answer });
  else print(`Namespace "${namespace}" goes on after run ${answer.highWaterMark}, generation ${answer.generation}.`);
}

/** Only a person presses Enter: input that is no terminal, or has ended, is no wish. */
async function enterPressed(): Promise<void> {
  if (stdin.isTTY) await once(stdin, "data");
  else await new Promise(() => {});
}

/** Rejects when the store is seen without the seal. */
async function sealLost(paused: Pause): Promise<never> {
  for (;;) {
    await delay(LOOK_EVERY_MS, undefined, { ref: false });
    await paused.look();
  }
}

async function givenUp(namespace: string): Promise<never> {
  const [signal] = await Promise.race([once(process, "SIGINT"), once(process, "SIGTERM")]);
  throw Object.assign(
    new Error(
      `${signal}: namespace "${namespace}" stays paused, and what could have resumed it is gone with this process. "callnumber recover" is the way on`,
    ),
    { code: "store_sealed" },
  );
}

function pausable(url: string): StoreAddress {
  const address = parseStoreUrl(url);
  if (address.kind !== "redis") {
    throw new TypeError(
      `only a store in Redis is paused; stop "callnumber serve" instead, which is enough for ${describeStore(address)}`,
    );
  }
  return address;
}

function placeOf(address: StoreAddress, namespace: string): string {
  return `${describeStore(address)} ${namespace}`;
}
