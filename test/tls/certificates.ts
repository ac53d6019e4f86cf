/**
 * Certificates for tests, made when they are needed: an authority, and what it signs. Keys on the curve P-256.
 * Written out by hand, a page of DER, so that a machine with nothing but Node skips no test; whether it is right is judged by
 * OpenSSL, in Node and in Redis, each time one of them is used.
 */
import { createPublicKey, generateKeyPairSync, randomBytes, sign } from "node:crypto";
import { isIP } from "node:net";

const DAY_MS = 24 * 3_600_000;

interface CertificateWishes {
  /** Who it stands for: host names and IPv4 addresses. Default: `localhost` and `127.0.0.1`. */
  readonly names?: readonly string[];
  /** Default: yesterday. */
  readonly fromMs?: number;
  /** Default: in a year. */
  readonly untilMs?: number;
}

/** Both in PEM. */
export interface CertificateAndKey {
  readonly certificate: string;
  readonly key: string;
}

export interface Authority extends CertificateAndKey {
  readonly name: string;
  /** A certificate of this authority, for a key of its own. */
  issue(wishes?: CertificateWishes): CertificateAndKey;
  /** One more certificate for a key that has one already, as a renewal makes it. */
  renew(key: string, wishes?: CertificateWishes): CertificateAndKey;
}

/** An authority that no client knows yet. With one above it, a client needs both certificates. */
export function newAuthority(name = "an authority for tests", above?: Authority): Authority {
  const issuer = { name, key: newKey() };
  const renew = (key: string, { names = ["localhost", "127.0.0.1"], ...dates }: CertificateWishes = {}) => {
    const extensions = [subjectAlternativeNames(names)];
    return { key, certificate: signed({ subject: names[0] ?? "unnamed", key, extensions, ...dates }, issuer) };
  };
  return {
    ...issuer,
    certificate: signed({ subject: name, key: issuer.key, extensions: [IS_AUTHORITY] }, above ?? issuer),
    issue: (wishes) => renew(newKey(), wishes),
    renew,
  };
}

function newKey(): string {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return privateKey.export({ type: "pkcs8", format: "pem" }).toString();
}

interface Content {
  readonly subject: string;
  readonly key: string;
  readonly extensions: readonly Buffer[];
  readonly fromMs?: number;
  readonly untilMs?: number;
}

function signed(content: Content, issuer: { readonly name: string; readonly key: string }): string {
  const { subject, key, extensions, fromMs = Date.now() - DAY_MS, untilMs = Date.now() + 365 * DAY_MS } = content;
  const serial = randomBytes(16);
  // Neither negative nor with a zero in front, which DER forbids.
  serial[0] = ((serial[0] as number) & 0x3f) | 0x40;
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, serial),
    ECDSA_WITH_SHA256,
    named(issuer.name),
    sequence(time(fromMs), time(untilMs)),
    named(subject),
    createPublicKey(key).export({ type: "spki", format: "der" }),
    der(0xa3, sequence(...extensions)),
  );
  const whole = sequence(body, ECDSA_WITH_SHA256, bits(sign("sha256", body, issuer.key)));
  const lines = whole.toString("base64").replaceAll(/.{64}(?=.)/g, "$&\n");
  return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`;
}

/** A DER value: its tag, its length, its content. */
function der(tag: number, ...content: readonly Buffer[]): Buffer {
  const bytes = Buffer.concat(content);
  const { length } = bytes;
  const head = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...head]), bytes]);
}

function sequence(...content: readonly Buffer[]): Buffer {
  return der(0x30, ...content);
}

function bits(content: Buffer): Buffer {
  return der(0x03, Buffer.from([0]), content);
}

function text(content: string): Buffer {
  return der(0x0c, Buffer.from(content));
}

/** UTCTime, which X.509 wants until 2050. */
function time(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replaceAll(/[-:T]|\.\d+/g, "");
  return der(0x17, Buffer.from(digits.slice(2)));
}

function named(commonName: string): Buffer {
  return sequence(der(0x31, sequence(COMMON_NAME, text(commonName))));
}

function subjectAlternativeNames(names: readonly string[]): Buffer {
  const list = names.map((name) =>
    isIP(name) === 4 ? der(0x87, Buffer.from(name.split(".").map(Number))) : der(0x82, Buffer.from(name)),
  );
  return sequence(SUBJECT_ALTERNATIVE_NAME, der(0x04, sequence(...list)));
}

/** An object identifier, given by its bytes. */
function oid(...bytes: readonly number[]): Buffer {
  return der(0x06, Buffer.from(bytes));
}

const COMMON_NAME = oid(0x55, 0x04, 0x03);
const SUBJECT_ALTERNATIVE_NAME = oid(0x55, 0x1d, 0x11);
const BASIC_CONSTRAINTS = oid(0x55, 0x1d, 0x13);
const ECDSA_WITH_SHA256 = sequence(oid(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02));
const YES = der(0x01, Buffer.from([0xff]));
const IS_AUTHORITY = sequence(BASIC_CONSTRAINTS, YES, der(0x04, sequence(YES)));
