/** What is fuzzed. */
import type { FuzzTarget } from "./target.js";
import { codec } from "./targets/codec.js";
import { httpDoor } from "./targets/http-door.js";
import { httpSurface } from "./targets/http-surface.js";
import { mboxSplitter } from "./targets/mbox-splitter.js";
import { storeUrl } from "./targets/store-url.js";
import { wireSchemas } from "./targets/wire-schemas.js";

export const TARGETS: readonly FuzzTarget[] = [codec, wireSchemas, mboxSplitter, httpSurface, httpDoor, storeUrl];
