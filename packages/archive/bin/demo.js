#!/usr/bin/env node
import { demo } from "../dist/demo.js";

await demo();
