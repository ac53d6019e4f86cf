/** On what a figure was measured: it belongs to that machine and that Node. */
import { availableParallelism, cpus } from "node:os";
import process from "node:process";

export function machineInWords(): string {
  const model = cpus()[0]?.model.trim() ?? "a processor that does not say its name";
  return `Node ${process.versions.node} (V8 ${process.versions.v8}) on ${model}, ${availableParallelism()} cores.`;
}
