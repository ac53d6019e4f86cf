/** A MariaDB in a container, for machines with a container engine and neither a MariaDB nor Debian's packages. */
import type { StartedTestContainer } from "testcontainers";
import { engineAddress, whyEngineIsSilent } from "../processes/container-engine.js";
import { rowsIn, type SqlServer } from "../processes/sql-server.js";

const IMAGE = "mariadb:10.11";
const STATEMENTS = "/tmp/statements.sql";

/** A server in a started container, or why there is none. */
export async function startMariadbContainer(dockerHost: string | undefined): Promise<SqlServer | string> {
  const address = engineAddress(dockerHost);
  const silence = await whyEngineIsSilent(address);
  if (silence !== undefined) return `no container engine at ${address}: ${silence}`;
  try {
    const { GenericContainer, Wait } = await import("testcontainers");
    const container = await new GenericContainer(IMAGE)
      .withEnvironment({ MARIADB_ALLOW_EMPTY_ROOT_PASSWORD: "1" })
      // The first time it says so it is only setting itself up.
      .withWaitStrategy(Wait.forLogMessage(/ready for connections/, 2))
      .start();
    return { version: IMAGE, origin: `a container of ${IMAGE}`, run: runIn(container), dispose: disposeOf(container) };
  } catch (error) {
    return `the container engine at ${address} could not start ${IMAGE}: ${(error as Error).message}`;
  }
}

/** Statements go in as a file: a command line would be too short for them. */
function runIn(container: StartedTestContainer): SqlServer["run"] {
  return async (sql, database = "") => {
    await container.copyContentToContainer([{ content: sql, target: STATEMENTS }]);
    const line = `mariadb --user=root --batch --raw --skip-column-names --default-character-set=utf8mb4 ${database} < ${STATEMENTS}`;
    const { exitCode, stdout, stderr } = await container.exec(["sh", "-c", line]);
    if (exitCode !== 0) throw new Error(stderr.trim());
    return rowsIn(stdout);
  };
}

function disposeOf(container: StartedTestContainer): SqlServer["dispose"] {
  return async () => void (await container.stop());
}
