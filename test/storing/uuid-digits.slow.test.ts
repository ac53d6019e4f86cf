/** What the 9 digits of the 11/9 scheme are on real servers: the clock of each, and no draw. So two servers repeat far more often than luck does. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, beforeEach, expect, test } from "vitest";
import { REPOSITORY } from "../processes/command.js";
import type { SqlServer } from "../processes/sql-server.js";
import { startMariadb } from "./sql-servers.js";

const FUNCTIONS = readFileSync(join(REPOSITORY, "deploy/sql/call-numbers.mariadb.sql"), "utf8");
const DATABASE = "archive";
const ROWS = 20_000;
/** The pairs of 20,000 draws each by 10^9 values are 0.4: as many as this would be seen once in 10^11 rounds. */
const MORE_THAN_DRAWN = 10;
/** Both must be at work in the same second, and at the same time, which a busy machine may not do at once. */
const ROUNDS = 30;

let servers: readonly SqlServer[] = [];
let unavailable: string | undefined;

beforeAll(async () => {
  const started = await Promise.all([startMariadb(), startMariadb()]);
  unavailable = started.find((one) => typeof one === "string");
  servers = started.filter((one) => typeof one !== "string");
  if (unavailable !== undefined) return;
  for (const server of servers) {
    await server.run(`CREATE DATABASE ${DATABASE} DEFAULT CHARACTER SET utf8mb4`);
    await server.run(FUNCTIONS, DATABASE);
  }
});

beforeEach((context) => context.skip(unavailable !== undefined, unavailable));

test("the digits of UUID() increase with the clock: one server repeats none in a second, where random digits would", async () => {
  const count = 200_000;
  const made = await numbersOf(servers[0] as SqlServer, "CONV(LEFT(UUID(), 8), 16, 10)", count);
  // Of so many draws of 2^32 four or five would be alike, and half of them would be less than the one before.
  expect(new Set(made).size).toBe(count);
  const falls = made.filter((text, index) => index > 0 && Number(text) < Number(made[index - 1])).length;
  // At most where 2^32 is passed.
  expect(falls).toBeLessThanOrEqual(1);
});

test("the digits of UUID() are equal on two servers at the same time far more often than random digits would be", async () => {
  let alike = 0;
  for (let round = 0; round < ROUNDS && alike < MORE_THAN_DRAWN; round++) {
    const [one = [], other = []] = await Promise.all(
      servers.map((server) => numbersOf(server, "mysql_sql_11_9_now()", ROWS)),
    );
    for (const made of [one, other]) expect(new Set(made).size).toBe(ROWS);
    const known = new Set(one);
    alike = other.filter((text) => known.has(text)).length;
  }
  expect(alike).toBeGreaterThanOrEqual(MORE_THAN_DRAWN);
});

async function numbersOf(server: SqlServer, call: string, count: number): Promise<readonly string[]> {
  const rows = await server.run(`SELECT ${call} FROM seq_1_to_${count}`, DATABASE);
  return rows.map(([text = ""]) => text);
}
