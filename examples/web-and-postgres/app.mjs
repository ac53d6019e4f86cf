// Stores posted messages in PostgreSQL under call numbers, and shows each at /message/2VznWE2i.
import { createHash } from "node:crypto";
import { createClient } from "@callnumber/client";
import { isCallNumber } from "@callnumber/protocol/codec";
import fastify from "fastify";
import pg from "pg";

const MESSAGE_BYTES_MAX = 1024 * 1024;
const coordinator = process.env.CALLNUMBER_COORDINATOR ?? "http://127.0.0.1:7300";
const holder = { name: "web-and-postgres" };

// Where to connect is in PGHOST, PGUSER and PGDATABASE.
const pool = new pg.Pool();
// The lock is there until the statements end: processes that start at once would make the same table twice.
await pool.query(`
  SELECT pg_advisory_xact_lock(hashtext('web-and-postgres'));
  CREATE TABLE IF NOT EXISTS facts (name text PRIMARY KEY, value text NOT NULL);
  CREATE TABLE IF NOT EXISTS messages (
    call_number text COLLATE "C" PRIMARY KEY CHECK (call_number ~ '^[0-9A-Za-z]{8}$' AND call_number <= 'dxlGgaI3'),
    content_hash bytea NOT NULL UNIQUE,
    content bytea NOT NULL
  );
`);
const client = createClient({ coordinator, holder, expectedStoreId: await pinnedStoreId() });

const app = fastify({ logger: { level: "warn" }, bodyLimit: MESSAGE_BYTES_MAX });
app.removeAllContentTypeParsers();
app.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));

app.post("/messages", async (request, reply) => {
  if (!Buffer.isBuffer(request.body) || request.body.length === 0)
    return reply.code(400).send("The message is empty.\n");
  const { callNumber, isNew } = await store(request.body);
  return reply
    .code(isNew ? 201 : 200)
    .header("location", `/message/${callNumber}`)
    .send(`${callNumber}\n`);
});

app.get("/message/:callNumber", async (request, reply) => {
  const { callNumber } = request.params;
  if (!isCallNumber(callNumber))
    return reply.code(404).send(`${callNumber} is not a call number: check each character.\n`);
  const { rows } = await pool.query("SELECT content FROM messages WHERE call_number = $1", [callNumber]);
  if (rows.length === 0) return reply.code(404).send(`There is no message ${callNumber}.\n`);
  // What others have sent is shown as text, never run.
  reply.header("x-content-type-options", "nosniff").header("content-security-policy", "default-src 'none'");
  return reply.type("text/plain; charset=utf-8").send(rows[0].content);
});

app.addHook("onClose", async () => {
  await client.close();
  await pool.end();
});
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => app.close());
console.log(`listening on ${await app.listen({ port: Number(process.env.PORT ?? 3000) })}`);

/** A message that is sent twice has one number: it is looked up before a number is taken. */
async function store(content) {
  const hash = createHash("sha256").update(content).digest();
  const find = () => pool.query("SELECT call_number FROM messages WHERE content_hash = $1", [hash]);
  const known = await find();
  if (known.rows.length > 0) return { callNumber: known.rows[0].call_number, isNew: false };
  const callNumber = await client.next();
  // DO NOTHING is for the hash alone. A number that exists is an error: never overwrite, never ignore.
  const insert = "INSERT INTO messages VALUES ($1, $2, $3) ON CONFLICT (content_hash) DO NOTHING";
  const { rowCount } = await pool.query(insert, [callNumber, hash, content]);
  if (rowCount === 1) return { callNumber, isNew: true };
  // Another request was faster. The number of this one stays unused.
  return { callNumber: (await find()).rows[0].call_number, isNew: false };
}

/** The store that the numbers of this database come from. The first start waits for a coordinator and writes it down. */
async function pinnedStoreId() {
  const read = async () => (await pool.query("SELECT value FROM facts WHERE name = 'store_id'")).rows[0]?.value;
  const pinned = await read();
  if (pinned !== undefined) return pinned;
  const first = createClient({ coordinator, holder });
  try {
    await first.next();
    await pool.query("INSERT INTO facts VALUES ('store_id', $1) ON CONFLICT (name) DO NOTHING", [first.storeId]);
  } finally {
    await first.close();
  }
  return await read();
}
