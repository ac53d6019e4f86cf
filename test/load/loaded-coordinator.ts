/** A real `serve` process for a load: on an embedded store with room for all of it, with its figures and its ledger. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { env } from "node:process";
import { DatabaseSync } from "@photostructure/sqlite";
import { runOfLedgerId } from "../../packages/protocol/src/wire.js";
import { initBackdatedAt } from "../backdated.js";
import { removeWithMarkers } from "../markers-of-stores.js";
import { REPOSITORY } from "../processes/command.js";

export const NAMESPACE = "main";
const COMMAND = join(REPOSITORY, "packages", "coordinator", "bin", "callnumber.js");
/** At 16 runs a second, room for more runs than any load here takes. */
const AGE_DAYS = 300;
const TICK_MS = 10;

export interface ProcessFigures {
  readonly rssMb: number;
  readonly descriptorCount: number;
  /** User and system, since it began. */
  readonly cpuMs: number;
}

export class LoadedCoordinator {
  private constructor(
    readonly url: string,
    readonly folder: string,
    readonly path: string,
    readonly child: ChildProcess,
    readonly ended: Promise<unknown>,
  ) {}

  /** The log goes nowhere, and is written all the same. */
  static async start(...flags: readonly string[]): Promise<LoadedCoordinator> {
    const folder = await mkdtemp(join(tmpdir(), "callnumber-load-"));
    const path = join(folder, "store.db");
    await initBackdatedAt(path, NAMESPACE, { ageDays: AGE_DAYS });
    const words = [COMMAND, "serve", "--store", `sqlite:${path}`, "--port", "0", "--log-level", "info", ...flags];
    const inherited = Object.entries(env).filter(([name]) => !name.startsWith("CALLNUMBER_"));
    const child = spawn(process.execPath, words, {
      stdio: ["ignore", "ignore", "pipe"],
      env: Object.fromEntries(inherited),
    });
    const ended = once(child, "close");
    let said = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
    for (;;) {
      const [, url] = /listening on (http:\/\/\S+?),? /.exec(said) ?? [];
      if (url !== undefined) return new LoadedCoordinator(url, folder, path, child, ended);
      const isOver = await Promise.race([ended.then(() => true), once(child.stderr, "data").then(() => false)]);
      if (isOver) throw new Error(`callnumber serve ended: ${said}`);
    }
  }

  figures(): ProcessFigures {
    const status = readFileSync(`/proc/${this.child.pid}/status`, "utf8");
    const rssMb = Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) / 1_024;
    const descriptorCount = readdirSync(`/proc/${this.child.pid}/fd`).length;
    // Behind the name of the program, which may hold anything: in ticks of 10 ms.
    const [, figures = ""] = readFileSync(`/proc/${this.child.pid}/stat`, "utf8").split(") ");
    const [userTicks, systemTicks] = figures.split(" ").slice(11);
    return { rssMb, descriptorCount, cpuMs: (Number(userTicks) + Number(systemTicks)) * TICK_MS };
  }

  /** Resolves to the exit code. */
  async stop(): Promise<number | null> {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill("SIGTERM");
    await this.ended;
    return this.child.exitCode;
  }

  /** Every run of the ledger, oldest first. Only after `stop`. */
  *ledgerRuns(): Generator<number> {
    const database = new DatabaseSync(this.path, { readOnly: true });
    try {
      const rows = database.prepare("SELECT last_ledger_id, run_count FROM leases ORDER BY last_ledger_id").iterate();
      for (const row of rows as Iterable<{ last_ledger_id: number; run_count: number }>) {
        const { run } = runOfLedgerId(row.last_ledger_id);
        for (let one = run - row.run_count + 1; one <= run; one++) yield one;
      }
    } finally {
      database.close();
    }
  }

  async remove(): Promise<void> {
    await this.stop();
    await removeWithMarkers(this.folder);
  }
}
