/**
 * Runs once before all tests: finds a real PostgreSQL by the first way that works, and keeps the reason why each earlier one did not.
 * In order: DATABASE_URL, a container engine, a server of this machine, Debian's package unpacked without root. Prints which one it is, and
 * why. Where there is none, the tests that need one are skipped with the reasons.
 */
import { existsSync } from "node:fs";
import pg from "pg";
import type { TestProject } from "vitest/node";
import { findPostgres, type PostgresPrograms } from "./postgres-programs.js";
import { launchPostgres } from "./postgres-server.js";

const ENGINE_SOCKET = "/var/run/docker.sock";
const IMAGE = "postgres:17-alpine";

interface SharedServer {
  /** For a user that may make schemas and users. */
  readonly url: string;
  readonly origin: string;
  stop(): Promise<void>;
}

/** @throws Error when DATABASE_URL is set and no PostgreSQL answers there. */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const { DATABASE_URL, DOCKER_HOST } = process.env;
  const reasons: string[] = [];
  const found = await findPostgres();
  const programs = typeof found === "string" ? undefined : found;
  const shared =
    foundOr(reasons, await postgresAtUrl(DATABASE_URL)) ??
    foundOr(reasons, await postgresInContainer(DOCKER_HOST)) ??
    foundOr(reasons, programs === undefined ? String(found) : await launchShared(programs));
  if (shared === undefined) console.log(`No PostgreSQL for the tests, which are skipped: ${reasons.join("; ")}`);
  else
    console.log([`PostgreSQL ${await versionAt(shared.url)} for the tests: ${shared.origin}`, ...reasons].join("; "));
  project.provide("postgres", {
    url: shared?.url,
    programs,
    unavailable: shared === undefined ? reasons.join("; ") : undefined,
    ownServerUnavailable: programs === undefined ? String(found) : undefined,
  });
  return async () => shared?.stop();
}

function foundOr<Found extends object>(reasons: string[], found: Found | string): Found | undefined {
  if (typeof found !== "string") return found;
  reasons.push(found);
  return undefined;
}

async function postgresAtUrl(url: string | undefined): Promise<SharedServer | string> {
  if (!url) return "DATABASE_URL is not set";
  try {
    await versionAt(url);
    return { url, origin: "DATABASE_URL", stop: async () => {} };
  } catch (error) {
    const cause = (error as Error).message;
    throw new Error(
      `DATABASE_URL is set and no PostgreSQL answers there (${cause}). Start it, or unset DATABASE_URL.`,
      {
        cause: error,
      },
    );
  }
}

/** Loading testcontainers takes seconds, and most machines have no container engine: so that is found out first. */
async function postgresInContainer(dockerHost: string | undefined): Promise<SharedServer | string> {
  if (!dockerHost && !existsSync(ENGINE_SOCKET)) return `no container engine at ${ENGINE_SOCKET}`;
  try {
    const { GenericContainer, Wait } = await import("testcontainers");
    const container = await new GenericContainer(IMAGE)
      .withEnvironment({ POSTGRES_HOST_AUTH_METHOD: "trust" })
      .withExposedPorts(5432)
      // It starts twice: the first time only to make the cluster.
      .withWaitStrategy(Wait.forLogMessage(/database system is ready to accept connections/, 2))
      .start();
    const url = `postgres://postgres@${container.getHost()}:${container.getMappedPort(5432)}/postgres`;
    return { url, origin: `a container of ${IMAGE}`, stop: async () => void (await container.stop()) };
  } catch (error) {
    return `the container engine could not start a PostgreSQL: ${(error as Error).message}`;
  }
}

async function launchShared(programs: PostgresPrograms): Promise<SharedServer> {
  const server = await launchPostgres(programs);
  return { url: server.url, origin: programs.origin, stop: () => server.dispose() };
}

async function versionAt(url: string): Promise<string> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query("SHOW server_version");
    return String(rows[0]?.server_version).split(" ", 1)[0] as string;
  } finally {
    await client.end();
  }
}
