#!/usr/bin/env node
import { serveParent } from "../dist/importing/worker.js";

serveParent();
