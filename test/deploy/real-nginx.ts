/** The real nginx for tests of the shipped configurations: this machine's, else Debian's. */
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { connect as tcpConnect } from "node:net";
import { delimiter, join } from "node:path";
import { unpackDebianPackages } from "../debian/unpacked-packages.js";
import { launch, type RunningServer } from "../processes/server-process.js";

/** Debian's place for it, which is not on every PATH. */
const SYSTEM_FOLDERS = ["/usr/sbin", "/usr/local/sbin"];
export const ONE_PROCESS = "master_process off;";

export interface Nginx {
  readonly program: string;
  readonly environment: NodeJS.ProcessEnv;
}

/** Resolves to one that runs, or to why there is none: from this machine, else from Debian's packages. */
export async function findNginx(): Promise<Nginx | string> {
  const folders = [...(process.env["PATH"] ?? "").split(delimiter).filter(Boolean), ...SYSTEM_FOLDERS];
  for (const folder of folders) {
    const nginx = { program: join(folder, "nginx"), environment: {} };
    if (existsSync(nginx.program) && runs(nginx)) return nginx;
  }
  return await unpackDebianPackages("nginx", ["nginx"], ({ home, libraryPath }) => {
    const nginx = { program: join(home, "usr", "sbin", "nginx"), environment: { LD_LIBRARY_PATH: libraryPath } };
    return existsSync(nginx.program) && runs(nginx) ? nginx : undefined;
  });
}

function runs({ program, environment }: Nginx): boolean {
  return spawnSync(program, ["-v"], { env: { ...process.env, ...environment } }).status === 0;
}

export interface Configuration {
  readonly folder: string;
  readonly port: number;
  /** Of the http block. */
  readonly http: string;
  /** What the configuration asks for outside the http block. */
  readonly outside?: string;
  /** By a text of the whole configuration, what takes its place. */
  readonly places: readonly (readonly [from: string, to: string])[];
}

/** Starts it and waits until it listens. @throws Error with the end of its log when it does not. */
export async function startNginx(
  nginx: Nginx,
  { folder, port, http, outside = "", places }: Configuration,
): Promise<RunningServer> {
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => {
    mkdirSync(join(folder, name));
    return `${name}_temp_path ${join(folder, name)};`;
  });
  const whole = join(folder, "nginx.conf");
  // One process, which is this user's: no others must be able to read the folder.
  const head = `daemon off;\n${ONE_PROCESS}\npid ${join(folder, "nginx.pid")};\nerror_log stderr;\n`;
  const text = `${head}${outside}http {\naccess_log off;\n${temporary.join("\n")}\n${http}}\n`;
  writeFileSync(whole, replaced(text, places));
  const words = ["-e", "stderr", "-p", folder, "-c", whole];
  return await launch({ ...nginx, words }, () => connected(port));
}

function replaced(text: string, places: Configuration["places"]): string {
  return places.reduce((whole, [from, to]) => {
    if (!whole.includes(from)) throw new Error(`the configuration of nginx does not hold: ${from}`);
    return whole.replace(from, to);
  }, text);
}

async function connected(port: number): Promise<void> {
  const socket = tcpConnect({ host: "127.0.0.1", port });
  await once(socket, "connect");
  socket.destroy();
}
