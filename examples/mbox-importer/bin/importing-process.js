#!/usr/bin/env node
import { serveParent } from "../dist/importing/importing-process.js";

serveParent();
