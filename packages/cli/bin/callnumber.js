#!/usr/bin/env node
import { resolve } from "node:path";

try {
  await import("../dist/main.js");
} catch (error) {
  if (error?.code !== "ERR_MODULE_NOT_FOUND") throw error;
  const clone = resolve(import.meta.dirname, "..", "..", "..");
  const missing = /'([^']+)'/.exec(error.message)[1].replace(`${clone}/`, "");
  console.error(`error: callnumber is not built yet: ${missing} is missing. Run npm install in ${clone} first.`);
  process.exitCode = 1;
}
