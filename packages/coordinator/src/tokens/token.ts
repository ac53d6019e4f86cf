/**
 * What a token is: 256 random bits with a prefix, by which people and scanners of secrets know it. Only its SHA-256 is ever kept: so many
 * random bits can't be guessed from it, and need no slow hash. Pure but for the randomness.
 */
import { createHash, randomBytes } from "node:crypto";

/** 32 bytes in base64url. */
export const TOKEN_PATTERN = /^cn_[A-Za-z0-9_-]{43}$/;
const ID_LENGTH = 8;

/** A token that nobody knows yet. */
export function newToken(): string {
  return `cn_${randomBytes(32).toString("base64url")}`;
}

/** The 32 bytes of its SHA-256. */
export function digestOf(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}

/** What people and logs call a token by: the first eight hex digits of its SHA-256. */
export function tokenIdOf(sha256Hex: string): string {
  return sha256Hex.slice(0, ID_LENGTH);
}
