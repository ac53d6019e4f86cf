/**
 * The users that we ship (deploy/redis/make-acl.sh), for a test's own Redis: stores log in there with the rights that they have in
 * an archive's Redis, and the default user is off. A test looks and meddles as a user that may do everything.
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Reachable } from "./redis-command.js";

const MAKE_ACL = fileURLToPath(new URL("../../deploy/redis/make-acl.sh", import.meta.url));

/** No secrets: the servers are on this machine alone, and end with the tests. */
export const STORE_USER = { name: "callnumber", password: "of-the-stores-under-test-0123456789" };
/** The operator, who moves or recovers a store: a coordinator's user may not. */
const OPERATOR = { name: "operator", password: "of-the-operator-under-test-0123456789" };
export const REPLICA = { name: "replica", password: "of-the-replicas-under-test-0123456789" };
export const SENTINEL = { name: "sentinel", password: "of-the-sentinels-under-test-0123456789" };
/** The user that makes a Cluster of servers. */
export const CLUSTER = { name: "cluster", password: "of-the-clusters-under-test-0123456789" };
const TESTER = { name: "tester", password: "of-the-tests-themselves-0123456789" };

/** What redis.conf needs in addition to the file, so that one such server can follow another. */
export const FOLLOWING: Readonly<Record<string, string>> = { masteruser: REPLICA.name, masterauth: REPLICA.password };

/** What a Sentinel needs for the servers that it knows under this name: lines of its `sentinel`. */
export function watching(masterName: string): readonly string[] {
  return [`auth-user ${masterName} ${SENTINEL.name}`, `auth-pass ${masterName} ${SENTINEL.password}`];
}

/** By user. */
export const PASSWORDS: Readonly<Record<string, string>> = Object.fromEntries(
  [STORE_USER, OPERATOR, REPLICA, SENTINEL, CLUSTER].map(({ name, password }) => [name, password]),
);

/** The variable with which make-acl.sh is given the password of a user. */
export function passwordVariable(user: string): string {
  return user === STORE_USER.name ? "CALLNUMBER_REDIS_PASSWORD" : `CALLNUMBER_REDIS_${user.toUpperCase()}_PASSWORD`;
}

export function makeAcl(passwords: Readonly<Record<string, string | undefined>>, PATH = process.env["PATH"]) {
  const given = Object.entries(passwords).map(([user, password]) => [passwordVariable(user), password]);
  const env = { PATH, ...Object.fromEntries(given) };
  return spawnSync("sh", [MAKE_ACL], { encoding: "utf8", env });
}

/** The text of an ACL file: the shipped users, and the tests' own. Made once for each test file. */
export function shippedUsers(): string {
  made ??= makeShippedUsers();
  return made;
}
let made: string | undefined;

function makeShippedUsers(): string {
  const { status, stdout, stderr } = makeAcl(PASSWORDS);
  if (status !== 0) throw new Error(`make-acl.sh made no file: ${stderr}`);
  return `${stdout}user ${TESTER.name} on >${TESTER.password} ~* &* +@all\n`;
}

/** Where a store under test finds such a server. */
export function storeUrlAt(host: string, port: number): string {
  return `redis://${loginOf(STORE_USER)}${host}:${port}`;
}

/** Where it finds a group of them, by its Sentinels. */
export function sentinelStoreUrlAt(sentinelHosts: string, masterName: string): string {
  return `redis-sentinel://${loginOf(STORE_USER)}${sentinelHosts}/${masterName}`;
}

/** Where it finds a Cluster of them. */
export function clusterStoreUrlAt(hosts: string): string {
  return `redis-cluster://${loginOf(STORE_USER)}${hosts}`;
}

/** Where a test does. */
export function testerUrlAt(host: string, port: number): string {
  return `redis://${loginOf(TESTER)}${host}:${port}`;
}

/** How a test logs in, for a client that takes no URL. */
export const TESTER_LOGIN: Readonly<{ username: string; password: string }> = {
  username: TESTER.name,
  password: TESTER.password,
};

/** A tester's URL as a coordinator's; every other one as it is. */
export function asStoreUser(url: string): string {
  return url.replace(loginOf(TESTER), loginOf(STORE_USER));
}

/** The URL of such a server, with any user, as an operator's; that of another server as it is. */
export function asOperator(url: string): string {
  return asStoreUser(url).replace(loginOf(STORE_USER), loginOf(OPERATOR));
}

/** Such a server, for the user that makes a Cluster of it. */
export function asClusterMaker({ url, socketPath }: Reachable): Reachable {
  return { url: url.replace(loginOf(TESTER), loginOf(CLUSTER)), socketPath };
}

function loginOf({ name, password }: typeof STORE_USER): string {
  return `${name}:${password}@`;
}
