/**
 * Imported into a process of `serve` before its own modules: the web framework is not loaded until the file HELD_UNTIL exists, and can't be where
 * that file has a text. When its load begins, HELD_UNTIL.begun is written.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { register } from "node:module";
import { setTimeout as delay } from "node:timers/promises";
import { isMainThread } from "node:worker_threads";

if (isMainThread) register(import.meta.url);

export async function resolve(specifier, context, next) {
  if (specifier !== "fastify") return await next(specifier, context);
  writeFileSync(`${process.env.HELD_UNTIL}.begun`, String(Date.now()));
  while (!existsSync(process.env.HELD_UNTIL)) await delay(5);
  const fault = readFileSync(process.env.HELD_UNTIL, "utf8");
  if (fault !== "") throw new Error(fault);
  return await next(specifier, context);
}
