/** Starts programs of the suite with a channel for messages: on this machine, or wherever else somebody starts them. */
import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";

/** As `spawn`, perhaps on another host; `options` ask for the channel. */
export type SpawnProgram = (program: string, words: readonly string[], options: SpawnOptions) => ChildProcess;

export const spawnHere: SpawnProgram = (program, words, options) => spawn(program, words, options);
