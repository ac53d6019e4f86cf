/** The real nginx with the shipped configuration, on a free port before a coordinator. From this machine, else from Debian's packages. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { delimiter, join } from "node:path";
import { unpackDebianPackages } from "../debian/unpacked-packages.js";
import { REPOSITORY } from "../processes/command.js";
import { diesWithParent } from "../processes/dies-with-run.js";
import { launch, type RunningServer } from "../processes/sql-server.js";

const CONFIGURATION = join(REPOSITORY, "deploy", "nginx", "callnumber.conf");
const CACHE_FOLDER = join(REPOSITORY, "node_modules", ".cache", "nginx");
/** Debian's place for it, which is not on every PATH. */
const SYSTEM_FOLDERS = ["/usr/sbin", "/usr/local/sbin"];

export interface Nginx {
  readonly program: string;
  readonly environment: NodeJS.ProcessEnv;
}

/** One that runs, or why there is none. */
export async function findNginx(): Promise<Nginx | string> {
  const folders = [...(process.env["PATH"] ?? "").split(delimiter).filter(Boolean), ...SYSTEM_FOLDERS];
  for (const folder of folders) {
    const nginx = { program: join(folder, "nginx"), environment: {} };
    if (existsSync(nginx.program) && runs(nginx)) return nginx;
  }
  return await unpackDebianPackages(["nginx"], CACHE_FOLDER, ({ home, libraryPath }) => {
    const nginx = { program: join(home, "usr", "sbin", "nginx"), environment: { LD_LIBRARY_PATH: libraryPath } };
    return existsSync(nginx.program) && runs(nginx) ? nginx : undefined;
  });
}

function runs({ program, environment }: Nginx): boolean {
  return spawnSync(program, ["-v"], { env: { ...process.env, ...environment } }).status === 0;
}

export interface Proxied {
  readonly folder: string;
  readonly port: number;
  readonly coordinatorPort: number;
  readonly certificate: string;
  readonly key: string;
}

/** Starts it with the shipped file, in which only places are replaced. @throws Error with the end of its log when it does not listen. */
export async function startNginx(nginx: Nginx, place: Proxied): Promise<RunningServer> {
  const { folder, port } = place;
  const own = join(folder, "callnumber.conf");
  writeFileSync(own, replaced(readFileSync(CONFIGURATION, "utf8"), place));
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => {
    mkdirSync(join(folder, name));
    return `${name}_temp_path ${join(folder, name)};`;
  });
  const whole = join(folder, "nginx.conf");
  // One process, which is this user's: no others must be able to read the folder.
  const head = `daemon off;\nmaster_process off;\npid ${join(folder, "nginx.pid")};\nerror_log stderr;\nevents {}\n`;
  writeFileSync(whole, `${head}http {\naccess_log off;\n${temporary.join("\n")}\ninclude ${own};\n}\n`);
  const command = [...diesWithParent(), nginx.program, "-e", "stderr", "-p", folder, "-c", whole];
  const [program = nginx.program, ...words] = command;
  return await launch({ program, words, environment: nginx.environment }, () => connected(port));
}

function replaced(text: string, { port, coordinatorPort, certificate, key }: Proxied): string {
  const places: readonly [string, string][] = [
    ["listen 443 ssl;", `listen 127.0.0.1:${port} ssl;`],
    ["    listen [::]:443 ssl;\n", ""],
    ["server 127.0.0.1:7300;", `server 127.0.0.1:${coordinatorPort};`],
    ["/etc/callnumber/tls.crt", certificate],
    ["/etc/callnumber/tls.key", key],
  ];
  return places.reduce((whole, [from, to]) => {
    if (!whole.includes(from)) throw new Error(`the configuration of nginx does not hold: ${from}`);
    return whole.replace(from, to);
  }, text);
}

async function connected(port: number): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port });
    socket.once("connect", () => {
      socket.destroy();
      resolve();
    });
    socket.once("error", reject);
  });
}
