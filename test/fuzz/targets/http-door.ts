/**
 * The HTTP surface behind its door: tokens of every role, some of them made wrong, over TLS. Beyond what holds without a door: whoever bears no
 * token gets what everybody may see, word for word; nobody sees anything of a namespace, leases in it or changes it whose token is not for that.
 */
import assert from "node:assert/strict";
import { connect } from "node:net";
import { connect as encrypt } from "node:tls";
import { LeaseLimits } from "../../../packages/coordinator/src/limits/lease-limits.js";
import { newAuthority } from "../../tls/certificates.js";
import type { Draw } from "../draw.js";
import { type Conversation, type FuzzedServer, leaseIn, startFuzzedServer } from "../fuzzed-server.js";
import { doorOfFuzzedTokens, FUZZED_TOKENS, type FuzzedToken } from "../fuzzed-tokens.js";
import { requestBatch } from "../http-requests.js";
import { mutated } from "../mutation.js";
import type { FuzzTarget } from "../target.js";

const NAMESPACES = ["main", "other"] as const;
/** So many good ones to one that is wrong. */
const GOOD_WEIGHT = 8;
/** Of an answer that was not due. */
const SHOWN_LENGTH = 300;
const YEAR_MS = 365 * 24 * 3_600_000;
/** What everybody may see. Asked once; the console's scripts are asked for by nobody here. */
const PUBLIC_PATHS = ["/openapi.json", "/healthz", "/readyz", "/console/", "/console"];
const PUBLIC_NUMBERS = /^\{"callNumber":"[^"]*","canExist":(true|false)\}$/;

export const httpDoor: FuzzTarget = {
  name: "http-door",
  shortCount: 30,
  async start() {
    const authority = newAuthority();
    const { certificate, key } = authority.issue();
    const tls = { certificate, key, clientCa: undefined, endsAtMs: Date.now() + YEAR_MS };
    const server = await startFuzzedServer({
      namespaces: NAMESPACES,
      server: { authenticator: doorOfFuzzedTokens(), tls, limits: new LeaseLimits() },
      connectTo(port) {
        const socket = connect({ port, host: "127.0.0.1", noDelay: true });
        return encrypt({ socket, host: "127.0.0.1", ca: authority.certificate });
      },
    });
    const isPublic = await publicAnswersOf(server);
    return {
      input: (draw) =>
        requestBatch(draw, { namespaces: NAMESPACES, authorizations: authorizationsDrawn(draw), brokenOnceIn: 12 }),
      async check(input) {
        const before = await statesOf(server);
        const conversations = await server.check(input);
        for (const conversation of conversations) mustBeDue(conversation, await storeIdsOf(server), isPublic);
        mustBeChangedByRight(input, before, await statesOf(server));
      },
      stop: server.stop,
    };
  },
};

/** Those of one batch: every token, those of one kind, or none that is good. */
function authorizationsDrawn(draw: Draw): readonly string[] {
  const { role, namespace } = draw.oneOf(FUZZED_TOKENS);
  const meant = draw.oneOf([
    () => true,
    (one: FuzzedToken) => one.role === role,
    (one: FuzzedToken) => one.namespace === namespace,
    () => false,
  ]);
  const good = FUZZED_TOKENS.filter(meant).map(({ token }) => `authorization: Bearer ${token}`);
  const wrong = FUZZED_TOKENS.map(({ token }) => wrongly(token, draw));
  return [...Array.from({ length: GOOD_WEIGHT }, () => good).flat(), ...wrong];
}

/** Never the whole token: what is answered to it is answered to nobody. */
function wrongly(token: string, draw: Draw): string {
  const begun = token.slice(0, -1);
  const words = [begun, `${begun}B`, `${begun}a`, `${begun}\t`, `${begun}A`.toUpperCase(), "", "cn_", "A".repeat(46)];
  const word = draw.oneOf(words);
  const scheme = draw.oneOf(["Bearer ", "bearer ", "Basic ", "Bearer  ", "", "Bearer\t", "Digest "]);
  return `authorization: ${scheme}${draw.onceIn(4) ? mutated(Buffer.from(word), draw, { words: [], countMax: 2 }).toString("latin1") : word}`;
}

async function publicAnswersOf({ converse }: FuzzedServer): Promise<(body: string) => boolean> {
  const bodies = new Set<string>();
  for (const path of PUBLIC_PATHS) {
    const request = Buffer.from(`GET ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`);
    let { answers } = await converse(request);
    // The console's page is read from a file: on a busy machine it may come after this side has ended the connection.
    while (answers.length === 0) answers = (await converse(request)).answers;
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200],
      path,
    );
    bodies.add(answers[0]?.body ?? "");
  }
  return (body) => body === "" || bodies.has(body) || PUBLIC_NUMBERS.test(body);
}

function mustBeDue(
  { request, answers }: Conversation,
  storeIds: ReadonlyMap<string, string>,
  isPublic: (body: string) => boolean,
): void {
  const borne = FUZZED_TOKENS.filter(({ token }) => request.includes(token));
  for (const answer of answers) {
    const { status, body } = answer;
    if (borne.length === 0 && status < 400)
      assert(isPublic(body), `a stranger got ${status}: ${body.slice(0, SHOWN_LENGTH)}`);
    const lease = leaseIn(answer);
    for (const [namespace, storeId] of storeIds) {
      if (!body.includes(storeId)) continue;
      const roles = borne.filter((one) => one.namespace === namespace).map(({ role }) => role);
      const isDue = lease === undefined ? roles.some((role) => role !== "lease") : roles.includes("lease");
      assert(
        isDue,
        `with tokens for ${roles.join() || "nothing"} in "${namespace}" one got ${status}: ${body.slice(0, SHOWN_LENGTH)}`,
      );
    }
  }
}

type States = ReadonlyMap<string, string>;

/** Only who bears the token of an importer or operator of a namespace changes anything there. */
function mustBeChangedByRight(batch: Buffer, before: States, after: States): void {
  for (const namespace of NAMESPACES) {
    const mayChange = FUZZED_TOKENS.some(
      (one) => one.namespace === namespace && one.role !== "read" && batch.includes(one.token),
    );
    if (!mayChange) assert.equal(after.get(namespace), before.get(namespace), `"${namespace}" was changed`);
  }
}

async function statesOf({ store }: FuzzedServer): Promise<States> {
  const stateOf = async (namespace: string) => {
    const { highWaterMark, generation } = await store.readNamespace(namespace);
    const leases = await store.leases(namespace, { direction: "newest_first", limit: 100 });
    return JSON.stringify([highWaterMark, generation, leases, await store.readDescription(namespace)]);
  };
  return new Map(await Promise.all(NAMESPACES.map(async (name) => [name, await stateOf(name)] as const)));
}

async function storeIdsOf({ store }: FuzzedServer): Promise<ReadonlyMap<string, string>> {
  return new Map(
    await Promise.all(NAMESPACES.map(async (name) => [name, (await store.readNamespace(name)).storeId] as const)),
  );
}
