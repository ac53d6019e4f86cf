/** `conformance`: whether a client keeps the rules that make its numbers unique. */
import { availableParallelism } from "node:os";
import { LEASE_RUN_COUNT_MAX, shellWord } from "@callnumber/protocol/api";
import { Command } from "commander";
import * as z from "zod";
import { BrokenRule, WrongNumber } from "../conformance/driven-client.js";
import { ENCODING, LEASE_RULES } from "../conformance/lease-rules.js";
import { RESPONSE_RULES } from "../conformance/response-rules.js";
import { type Rule, Trial, Unsupported } from "../conformance/rule.js";
import { invocation, redactSecrets } from "../invocation.js";
import { addOptions, checkedOption } from "../options.js";
import { print, printJson, type Style } from "../output.js";
import { terminalTable } from "../table.js";

type Result = "kept" | "broken" | "not tried";

interface Tried extends Pick<Rule, "name" | "text"> {
  readonly result: Result;
  readonly reason?: string;
}

const RULES: readonly Rule[] = [...LEASE_RULES, ...RESPONSE_RULES];
/** Before the rules: a program that can't do this is no client, or knows no number. It may request as many runs as it likes. */
const firstNumber: Rule["check"] = async (trial) => {
  trial.coordinator.runCountMax = LEASE_RUN_COUNT_MAX;
  await trial.takeAtOnce(trial.start());
};
const names = RULES.map(({ name }) => name);
const rulesSchema = z
  .string()
  .transform((text) => text.split(",").map((name) => name.trim()))
  .pipe(z.array(z.enum(names, { error: ({ input }) => `"${input}" is none of ${names.join(", ")}` })))
  .transform((wanted) => RULES.filter(({ name }) => wanted.includes(name)));

const STYLES: Readonly<Partial<Record<Result, Style>>> = { broken: "red", "not tried": "dim" };
/** Rules wait more than they compute. */
const RULES_PER_CORE = 2;

export function makeCommand(): Command {
  const command = new Command("conformance")
    .description(
      "Tries a client in any language against a coordinator that loses, cuts, delays and forges responses, and prints which rules it keeps. " +
        "COMMAND starts a program that reads `next 3`, `fork 3` or `close` on standard input, and prints numbers, one a line, then `ok`, " +
        "`error REASON` or `unsupported`. The exit code is 1 when a rule is broken, and 2 when COMMAND generates no first number.",
    )
    .argument("<command...>", "after --, the command that starts the client; its settings are in the environment")
    .addHelpText("after", "\nExample:\n  $ callnumber conformance -- python3 client.py")
    .action(conformance);
  return addOptions(command, [
    checkedOption("--rules <names>", "try these rules alone, separated by commas", rulesSchema),
  ]);
}

async function conformance(
  words: readonly string[],
  { rules = RULES, json }: { readonly rules?: readonly Rule[]; readonly json?: boolean },
): Promise<void> {
  if (json !== true) invocation().io.stderr.write(`tries ${rules.length} rules: about half a second each\n`);
  const onRule = ({ name, result }: Tried) => {
    const { stderr } = invocation().io;
    if (json !== true && stderr.isTTY) stderr.write(`${result.padEnd(9)}  ${name}\n`);
  };
  const wrongNumber = await whyNotEncoded(words);
  const tried = wrongNumber === undefined ? await triedAll(rules, words, onRule) : unencoded(rules, wrongNumber);
  const count = (result: Result) => tried.filter((one) => one.result === result).length;
  const broken = tried.filter(({ result }) => result === "broken");
  const notTried = tried.filter(({ result }) => result === "not tried");
  const reasons = new Set(notTried.map(({ reason }) => reason));
  if (broken.length > 0) invocation().exitCode = 1;
  if (json === true) {
    return printJson({ kept: count("kept"), broken: broken.length, notTried: count("not tried"), rules: tried });
  }
  const table = terminalTable<Tried>(
    [
      { heading: "Rule", cellOf: ({ name }) => name, expendability: 0 },
      { heading: "Result", cellOf: ({ result }) => result, styleOf: ({ result }) => STYLES[result], expendability: 0 },
      { heading: "A client …", cellOf: ({ text }) => text, shrinksTo: 20, expendability: 1 },
    ],
    tried,
  );
  print(
    [
      table,
      ...broken.map(({ name, reason }) => `${name}: ${reason}`),
      ...[...reasons].map((reason) => {
        const those = notTried.filter((one) => one.reason === reason).map(({ name }) => name);
        return `${reasons.size === 1 ? "not tried" : those.join(", ")}: ${reason}`;
      }),
      `${count("kept")} kept, ${broken.length} broken, ${count("not tried")} not tried`,
    ].join("\n"),
  );
}

/**
 * Returns why the first number of a client is none of its lease; undefined for a right one.
 * @throws RangeError for a program that generates no number.
 */
async function whyNotEncoded(words: readonly string[]): Promise<string | undefined> {
  try {
    await Trial.run(firstNumber, words, invocation().io.env);
    return undefined;
  } catch (error) {
    if (error instanceof WrongNumber) return error.message;
    if (!(error instanceof BrokenRule)) throw error;
    const command = words.map((word) => shellWord(redactSecrets(word))).join(" ");
    throw new RangeError(`no client: "${command}" generates no first number: ${error.message}`);
  }
}

/** The other rules would say the same of each number. */
function unencoded(rules: readonly Rule[], reason: string): readonly Tried[] {
  return RULES.filter((rule) => rule === ENCODING || rules.includes(rule)).map(({ name, text }) =>
    name === ENCODING.name
      ? { name, text, result: "broken", reason }
      : { name, text, result: "not tried", reason: `fix ${ENCODING.name} first` },
  );
}

/** In the order of the rules. */
async function triedAll(
  rules: readonly Rule[],
  words: readonly string[],
  onRule: (tried: Tried) => void,
): Promise<readonly Tried[]> {
  const tried: Tried[] = [];
  const left = [...rules.entries()];
  const work = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const [at, rule] = next;
      const one = await outcome(rule, words);
      tried[at] = one;
      onRule(one);
    }
  };
  await Promise.all(Array.from({ length: RULES_PER_CORE * availableParallelism() }, work));
  return tried;
}

async function outcome(rule: Rule, words: readonly string[]): Promise<Tried> {
  const { name, text } = rule;
  try {
    await Trial.run(rule.check, words, invocation().io.env);
    return { name, text, result: "kept" };
  } catch (error) {
    if (error instanceof Unsupported) return { name, text, result: "not tried", reason: error.message };
    if (error instanceof BrokenRule) return { name, text, result: "broken", reason: error.message };
    throw error;
  }
}
