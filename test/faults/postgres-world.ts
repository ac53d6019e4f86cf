/** A world on a real PostgreSQL, alone or with a synchronous standby, and the faults that happen there. */
import { chmod, chown, copyFile, mkdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import type pg from "pg";
import { openStore } from "../../packages/coordinator/src/stores/open-store.js";
import type { Store } from "../../packages/coordinator/src/stores/store.js";
import { parseStoreUrl } from "../../packages/coordinator/src/stores/store-url.js";
import { initBackdated } from "../backdated.js";
import { OTHER_USER, type PostgresPrograms } from "../postgres/postgres-programs.js";
import {
  copyData,
  launchPostgres,
  type PostgresServer,
  type PostgresServerOptions,
} from "../postgres/postgres-server.js";
import { baseBackup, followed } from "../postgres/standby.js";
import { asCoordinator, ownPostgresUnavailable, shippedRights, storeUrlAt } from "../postgres/test-postgres.js";
import { type ControlledMachine, newControlledMachine } from "../redis/controlled-machine.js";
import { type SmallDisk, smallDisk } from "../small-disk.js";
import { Control, connectedTo, postgresCounter } from "./control.js";
import type { CoordinatorProcess } from "./coordinator-process.js";
import { type Fault, type FaultOptions, type FaultSettings, faultOf } from "./run-fault.js";
import { NAMESPACE, World } from "./world.js";

export const SCHEMA = "callnumber";
const HOUR_MS = 3_600_000;

/** Default: a single server that archives its WAL, and two coordinators with a checkpoint. */
interface PostgresSettings {
  /** The others are synchronous standbys, of which a commit waits for one. */
  readonly nodeCount?: 1 | 2 | 3;
  readonly coordinatorCount?: number;
  readonly settings?: Readonly<Record<string, string>>;
  /** Findings that coordinators accept. */
  readonly overrides?: readonly string[];
  /** The disk of the server has no more than this. */
  readonly diskKib?: number;
  /** The clock of the server can be moved. */
  readonly isClockControlled?: boolean;
}

export class PostgresWorld extends World {
  readonly servers: PostgresServer[] = [];
  readonly #programs: PostgresPrograms;
  readonly #settings: PostgresSettings;
  #copies = 0;
  #disk: SmallDisk | undefined;
  #clock: ControlledMachine["clock"] | undefined;
  #client: Promise<pg.Client> | undefined;

  constructor(options: FaultOptions & PostgresSettings) {
    super(options);
    this.#programs = options.postgres as PostgresPrograms;
    this.#settings = options;
  }

  async begin(): Promise<void> {
    const { nodeCount = 1, coordinatorCount = 2, settings, diskKib, isClockControlled = false } = this.#settings;
    const archive = await this.folderFor("archive");
    if (diskKib !== undefined)
      this.#disk = await smallDisk(await this.folderFor("disk"), diskKib, (end) => this.defer(end));
    const environment = isClockControlled ? await this.#movedClock() : {};
    const server = await this.addServer(
      { archive_mode: "on", archive_command: `cp %p ${join(archive, "%f")}`, ...settings },
      { environment, ...(this.#disk && { disk: this.#disk }) },
    );
    for (const sql of ["CREATE SEQUENCE control_sequence START 1000000000", "CREATE TABLE control AS SELECT 0 AS last"])
      await server.run(sql);
    for (let standby = 1; standby < nodeCount; standby++) await this.addStandby(server);
    const storeId = await this.onStore((store) => initBackdated(store, NAMESPACE, { nodeCount }));
    await this.grantRights();
    for (let index = 0; index < coordinatorCount; index++) await this.addCoordinatorAt(server);
    await this.startLoad(
      storeId,
      new Control(...(["sequence", "row"] as const).map((way) => postgresCounter(this.servers, way))),
    );
  }

  override async dispose(): Promise<void> {
    const client = await this.#client?.catch(() => undefined);
    await client?.end().catch(() => {});
    await super.dispose();
  }

  get server(): PostgresServer {
    return this.servers[0] as PostgresServer;
  }

  get storeUrl(): string {
    return this.storeUrlAt(this.server.port);
  }

  get disk(): SmallDisk {
    return this.#disk as SmallDisk;
  }

  /** Moves the clock of the server. Resolves when it shows it. */
  async moveClock(offsetMs: number): Promise<void> {
    await this.#clock?.move(offsetMs);
    await this.until("the server's clock is moved", async () => {
      const [[timeMs = ""] = []] = await this.server.run("SELECT extract(epoch FROM clock_timestamp()) * 1000");
      return Math.abs(Number(timeMs) - Date.now() - offsetMs) < HOUR_MS / 2;
    });
  }

  /** Variables for a server whose clock can be moved. Its user reads what they name. */
  async #movedClock(): Promise<NodeJS.ProcessEnv> {
    const { preload, clock } = newControlledMachine();
    this.#clock = clock;
    const library = join(await this.folderFor("preload"), "library.so");
    await copyFile(preload.library, library);
    const files = Object.values(preload.environment);
    for (const path of [...files, dirname(files[0] as string), library])
      if (OTHER_USER !== undefined) await chown(path, OTHER_USER.uid, OTHER_USER.gid);
    return { LD_PRELOAD: library, ...preload.environment };
  }

  addCoordinatorAt({ port }: { readonly port: number }): Promise<CoordinatorProcess> {
    const { overrides = [] } = this.#settings;
    return this.addCoordinator({ storeUrl: this.storeUrlAt(port), overrides });
  }

  storeUrlAt(port: number): string {
    return asCoordinator(storeUrlAt(`postgres://127.0.0.1:${port}/postgres`, SCHEMA));
  }

  /** As the owner of the schema, whose tables are made where they are gone. */
  override async onStore<T>(
    act: (store: Store) => Promise<T>,
    storeUrl = storeUrlAt(this.server.url, SCHEMA),
  ): Promise<T> {
    const { store } = await openStore(parseStoreUrl(storeUrl), { create: true });
    try {
      return await act(store);
    } finally {
      await store.close();
    }
  }

  async grantRights(): Promise<void> {
    for (const statement of shippedRights(SCHEMA)) await this.server.run(statement);
  }

  async addServer(
    settings: Readonly<Record<string, string>>,
    options: Omit<PostgresServerOptions, "settings"> = {},
  ): Promise<PostgresServer> {
    const server = await launchPostgres(this.#programs, { settings, ...options });
    this.defer(() => server.dispose());
    this.servers.push(server);
    return server;
  }

  /** A standby that commits of the server wait for from now on. */
  async addStandby(primary: PostgresServer): Promise<PostgresServer> {
    const standby = await this.addServer({}, { fill: (data) => this.#backupForStandby(primary, data) });
    await primary.configure({ synchronous_standby_names: "ANY 1 (*)" });
    await this.until("the standby is synchronous", async () => {
      const rows = await primary.run("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'quorum'");
      return Number(rows[0]?.[0]) === this.servers.length - 1;
    });
    return standby;
  }

  #backupForStandby(primary: PostgresServer, data: string): Promise<void> {
    return baseBackup(primary, data, `primary_conninfo = '${followed(primary)}'\n`);
  }

  /** Runs a statement as the superuser, over a connection that is kept: for what is done often. */
  async often(sql: string): Promise<readonly Record<string, unknown>[]> {
    this.#client ??= connectedTo(this.server.url);
    try {
      return (await (await this.#client).query(sql)).rows;
    } catch (error) {
      this.#client = undefined;
      throw error;
    }
  }

  /** A folder that the servers' user may write. */
  async folderFor(name: string): Promise<string> {
    await chmod(this.folder, 0o755);
    const path = join(this.folder, name);
    await mkdir(path, { recursive: true });
    if (OTHER_USER !== undefined) await chown(path, OTHER_USER.uid, OTHER_USER.gid);
    return path;
  }

  /** Ends the server and starts it again, with something done in between. */
  async crash(signal: NodeJS.Signals = "SIGKILL", meanwhile: () => Promise<unknown> = async () => {}): Promise<void> {
    await this.server.kill(signal);
    await meanwhile();
    await this.server.start();
  }

  /** A copy of the data as a crash leaves it. */
  async snapshot(): Promise<string> {
    const path = join(this.folder, `copy-${this.#copies++}`);
    await this.crash("SIGQUIT", () => copyData(this.server.data, path));
    return path;
  }

  async copyTo(copy: string, data: string): Promise<void> {
    await copyData(copy, data);
  }

  async untilArchived(): Promise<void> {
    const [[last = ""] = []] = await this.server.run("SELECT pg_walfile_name(pg_switch_wal() - 1)");
    await this.until("the WAL is archived", async () => {
      const [[archived = ""] = []] = await this.server.run("SELECT last_archived_wal FROM pg_stat_archiver");
      return archived >= last;
    });
  }

  /** Ends a server, and makes it the standby of another one: those two are the world's from now on. */
  async resync(old: PostgresServer, primary: PostgresServer): Promise<void> {
    await old.kill("SIGQUIT");
    await rm(old.data, { recursive: true });
    await this.#backupForStandby(primary, old.data);
    await old.configure({ synchronous_standby_names: "", archive_mode: "off" });
    await old.start();
    this.servers.splice(0, this.servers.length, primary, old);
  }

  /** Puts a copy in place of what the stopped server has now. */
  async restore(copy: string): Promise<void> {
    await rm(this.server.data, { recursive: true });
    await copyData(copy, this.server.data);
  }
}

export function postgresFault(
  name: string,
  settings: FaultSettings & PostgresSettings,
  inject: (world: PostgresWorld) => Promise<number | void>,
): Fault {
  const unavailable = () => settings.unavailable?.() ?? ownPostgresUnavailable();
  const newWorld = (options: FaultOptions) => new PostgresWorld({ ...settings, ...options });
  return faultOf(`PostgreSQL: ${name}`, { ...settings, unavailable }, newWorld, inject);
}
