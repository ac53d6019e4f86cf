/**
 * A coordinator of the release before there was one rule set, as a store knows it: the scripts of that release (released/) held all its rules,
 * and they are the whole of what it wrote. They are kept for this alone, so that it works without network in a checkout without history.
 * It leases one run after the other, recovers, and remembers what it saw last, as that release did.
 */
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { ledgerIdOf } from "@callnumber/protocol/api";
import { Redis } from "ioredis";
import { TESTER_LOGIN } from "../redis/shipped-users.js";
import { repeated } from "./control.js";
import type { RedisWorld } from "./redis-world.js";
import { BOUNDS, NAMESPACE } from "./world.js";

const HOLDER = `{"holder":{"name":"released","host":"fault-test","pid":1,"labels":{}},"coordinator":"released"}`;
const NAME = "an importer of the released coordinator";
const RUN_COUNT = 3;
const PAUSE_MS = 5;
/** Another coordinator recovers, or a clock is late; or it is at the run ceiling. */
const WAITS = new Set(["RACED", "CLOCK", "AHEAD"]);
const RECOVERS = new Set(["EPOCH", "PENDING", "GAP", "ROLLBACK", "STALEGEN"]);

type ScriptName = "lease" | "claim" | "confirm";

const texts = new Map<ScriptName, string>();

function textOf(script: ScriptName): string {
  const text =
    texts.get(script) ??
    ["record", "guard", script]
      .map((part) => readFileSync(new URL(`./released/${part}.lua`, import.meta.url), "utf8"))
      .join("\n");
  texts.set(script, text);
  return text;
}

export class ReleasedCoordinator {
  leaseCount = 0;
  recoveryCount = 0;
  #floor = 0;
  #generation = 0;
  #stop: (() => Promise<void>) | undefined;
  readonly #redis: Redis;

  constructor(readonly world: RedisWorld) {
    const { port } = world.server;
    const once = { autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0, enableOfflineQueue: false };
    this.#redis = new Redis({ host: "127.0.0.1", port, ...TESTER_LOGIN, ...once, retryStrategy: () => 50 });
    this.#redis.on("error", () => {});
  }

  /** Starts to lease, or goes on with what it saw last. */
  start(): void {
    this.#stop ??= repeated(() => this.#turn());
  }

  async pause(): Promise<void> {
    await this.#stop?.();
    this.#stop = undefined;
  }

  async end(): Promise<void> {
    await this.pause();
    this.#redis.disconnect();
  }

  async untilLeasing(leaseCount: number): Promise<void> {
    const wanted = this.leaseCount + leaseCount;
    await this.world.until("the released coordinator leases", () => this.leaseCount >= wanted);
  }

  async #turn(): Promise<void> {
    await delay(PAUSE_MS);
    try {
      await this.#lease();
    } catch (error) {
      const { name, message } = error as Error;
      // As it restarts, and while it has no connection.
      if (name !== "ReplyError" || /^(?:LOADING|NOAUTH)/.test(message)) return;
      const [, word = "", detail = ""] = /^(\S+) \S+ ?(.*)$/s.exec(message) ?? [];
      await this.#react(word, detail, message);
    }
  }

  async #react(word: string, detail: string, message: string): Promise<void> {
    if (WAITS.has(word)) return;
    if (RECOVERS.has(word)) await this.#recover(Number(detail)).catch(() => {});
    else this.world.noteProblem(`the released coordinator was refused: ${message}`);
  }

  async #lease(): Promise<void> {
    const nonces = [nonce(), nonce()];
    const asked = [nonces[0], this.#floor, this.#generation, RUN_COUNT, 0, nonces[1], HOLDER].join(" ");
    const [storeId = "", version, , , generation, , granted = ""] = await this.#run("lease", nonces[0] as string, [
      asked,
    ]);
    const [replied, mark = "", count = ""] = granted.split(" ");
    if (replied !== nonces[0])
      return this.world.noteProblem("the released coordinator got the reply of another script");
    if (!/^\d+$/.test(mark)) return await this.#react(mark, count, granted);
    const [runCount, lastRun] = [Number(count), Number(mark)];
    const lease = { storeId, version: Number(version), firstRun: lastRun - runCount + 1, runCount };
    this.world.received.note({ importer: NAME, ...lease, receivedAtMs: Date.now() });
    this.#floor = Math.max(this.#floor, ledgerIdOf(lease.version, lastRun));
    this.#generation = Math.max(this.#generation, Number(generation));
    this.leaseCount++;
  }

  async #recover(generation: number): Promise<void> {
    const [, , , , , , claimed] = await this.#run("claim", nonce(), [generation, this.#generation]);
    await this.#run("confirm", nonce(), [Number(claimed), this.#floor]);
    this.#generation = Number(claimed);
    this.recoveryCount++;
  }

  async #run(script: ScriptName, own: string, parameters: readonly (string | number)[]): Promise<readonly string[]> {
    const { storeId } = this.world;
    const keys = (["record", "ledger", "holders"] as const).map((name) => this.world.key(name));
    const common = [NAMESPACE, own, storeId, Date.now(), BOUNDS.epsMs, BOUNDS.gapMs, 0];
    return (await this.#redis.eval(textOf(script), keys.length, ...keys, ...common, ...parameters)) as string[];
  }
}

function nonce(): string {
  return randomBytes(12).toString("base64url");
}
