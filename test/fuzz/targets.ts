/** What is fuzzed: what parses untrusted input. */
import type { FuzzTarget } from "./campaign.js";
import { codec } from "./codec.js";
import { httpBody } from "./http-body.js";
import { mboxSplitter } from "./mbox-splitter.js";
import { storeUrl } from "./store-url.js";
import { tokensFile } from "./tokens-file.js";

export const TARGETS: readonly FuzzTarget[] = [codec, httpBody, tokensFile, storeUrl, mboxSplitter];
