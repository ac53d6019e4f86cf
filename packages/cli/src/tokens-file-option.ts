/** Where the tokens stand that a coordinator knows. */
import type { Option } from "commander";
import { z } from "zod";
import { checkedOption, setting } from "./options.js";

export function tokensFileOption(): Option {
  const description = "the tokens that are let in, one line for each; only its owner may write it (0600, or 0640)";
  return setting(checkedOption("--tokens-file <file>", description, z.string().min(1, "must name a file")));
}
