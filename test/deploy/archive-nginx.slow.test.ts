/** The shipped configuration of nginx for an archive, with the real nginx before a real reader. */
import { readFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { GARDEN } from "../../packages/archive/test/importing.js";
import { importedArchive, numberOf, startReader } from "../../packages/archive/test/reading.js";
import { REPOSITORY } from "../processes/command.js";
import { freePort } from "../processes/server-process.js";
import { newAuthority } from "../tls/certificates.js";
import { writeTlsFiles } from "../tls/files.js";
import { findNginx, startNginx } from "./real-nginx.js";

const CONFIGURATION = join(REPOSITORY, "deploy", "nginx", "callnumber-archive.conf");
const SUBJECT = "Seed swap this Saturday at the green shed";
const authority = newAuthority("the root");
const nginx = await findNginx();
beforeEach((context) => context.skip(typeof nginx === "string", typeof nginx === "string" ? nginx : undefined));

test("readers get pages, attachments and a limit by their address through nginx, from its cache while the reader is away", async () => {
  if (typeof nginx === "string") throw new Error(nginx);
  const { archive, directory: folder } = await importedArchive(GARDEN);
  const reader = await startReader(archive, "--base-url", "https://lists.example.org");
  const port = await freePort();
  const { certificate, key } = writeTlsFiles(folder, authority.issue());
  const proxy = await startNginx(nginx, {
    folder,
    port,
    http: readFileSync(CONFIGURATION, "utf8"),
    outside: "events {}\n",
    places: [
      ["listen 443 ssl http2", `listen 127.0.0.1:${port} ssl http2`],
      ["    listen [::]:443 ssl http2;\n", ""],
      ["server 127.0.0.1:8025;", `server ${new URL(reader.url).host};`],
      ["/etc/callnumber/tls.crt", certificate],
      ["/etc/callnumber/tls.key", key],
      ["/var/cache/nginx/callnumber-archive", join(folder, "cache")],
    ],
  });
  onTestFinished(() => proxy.kill("SIGTERM"));
  const get = (path: string, from = "127.0.0.1", method = "GET") =>
    new Promise<{ status: number | undefined; headers: NodeJS.Dict<string | string[]>; body: string }>(
      (resolve, reject) => {
        const options = { host: "127.0.0.1", port, path, method, localAddress: from, ca: authority.certificate };
        const sent = request(options, async (response) => {
          resolve({ status: response.statusCode, headers: response.headers, body: await text(response) });
        });
        sent.on("error", reject).end();
      },
    );
  const page = `/message/${numberOf(archive, SUBJECT)}`;
  const { status, headers, body } = await get(page);
  expect(status).toBe(200);
  expect(headers["content-security-policy"]).toContain("default-src 'none'");
  expect(body).toContain("Good morning, neighbors!");
  expect((await get(`${page}/raw`)).body).toMatch(`Archived-At: <https://lists.example.org${page}>\nFrom: Priya`);
  expect((await get(`${page}/attachments/1`)).headers["content-disposition"]).toContain("seed-swap.ics");
  expect((await get("/message/zzzzzzzz")).status).toBe(404);
  await reader.stop();
  expect((await get(page)).body).toBe(body);
  const statuses = new Set<number | undefined>();
  const crawl = async () => {
    while (!statuses.has(429)) statuses.add((await get(page, "127.0.0.2")).status);
  };
  await Promise.all(Array.from({ length: 16 }, crawl));
  expect(statuses).toEqual(new Set([200, 429]));
  expect((await get(page, "127.0.0.3")).status).toBe(200);
});
