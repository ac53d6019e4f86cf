/**
 * Every operation on the files beside a store fails once, in every way: no descriptor is used after its closing, and the next start knows
 * what was noted, or knows that it does not.
 * Guarantees: G8, G11 (docs/guarantees.md).
 */
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { DAMAGED, type Witness } from "../src/guard/witness.js";
import { openWitness } from "../src/guard/witness-folder.js";
import { storeIdFrom } from "./commands-for-test.js";
import { memoryFolder, temporaryFolder } from "./embedded-place.js";
import { type Fault, faultsOf, withFault } from "./faulty-fs.js";

function refusalOf(act: () => void): unknown {
  try {
    act();
    return undefined;
  } catch (error) {
    return error;
  }
}

describe("the checkpoints of several namespaces", () => {
  /** The name of the second begins with the first one's. */
  const NAMESPACES = ["lists", "lists.old"];
  const STORE_IDS = new Map(NAMESPACES.map((namespace) => [namespace, storeIdFrom(1)]));
  const place = { group: "store", addresses: ["here"] };
  const HOUR_MS = 3_600_000;

  const remembranceOf = (namespace: string, ledgerId: number) => {
    return { storeId: STORE_IDS.get(namespace) as string, ledgerId, generation: 0, nodeCount: 1 };
  };

  /** Two lives of a coordinator that serves all namespaces by turns; the second one takes over the files of the first. */
  function lives(folder: string, fault: Fault | undefined, isKilled: boolean) {
    const acknowledged = new Map<string, number>();
    let ledgerId = 0;
    let timeMs = Date.now();
    const life = () => {
      const witnesses = new Map<string, Witness>();
      for (const namespace of NAMESPACES) {
        const witness = openWitness({ folder, place, namespace, now: () => timeMs });
        if (refusalOf(() => witness.read()) === undefined) witnesses.set(namespace, witness);
      }
      for (const passedMs of [0, 5_001, 1]) {
        timeMs += passedMs;
        for (const [namespace, witness] of witnesses) {
          ledgerId++;
          if (refusalOf(() => witness.note(remembranceOf(namespace, ledgerId))) === undefined) {
            acknowledged.set(namespace, ledgerId);
          }
        }
      }
      if (!isKilled) for (const witness of witnesses.values()) refusalOf(() => witness.close());
    };
    const traced = withFault([folder], fault, () => {
      life();
      timeMs += 2 * HOUR_MS;
      life();
    });
    return { ...traced, acknowledged };
  }

  test("remember what was noted, or that they may not, when any operation fails", async () => {
    const folder = join(await temporaryFolder(memoryFolder()), "checkpoints");
    const { callCount, misuses } = lives(folder, undefined, false);
    expect(misuses).toEqual([]);
    for (const fault of faultsOf(callCount)) {
      for (const isKilled of [false, true]) {
        rmSync(folder, { recursive: true, force: true });
        const told = JSON.stringify({ ...fault, isKilled });
        const { acknowledged, misuses } = lives(folder, fault, isKilled);
        expect(misuses, told).toEqual([]);
        for (const namespace of NAMESPACES) {
          const storeId = STORE_IDS.get(namespace);
          for (const text of textsOf(folder, namespace)) expect(text, told).toContain(storeId);
          const found = openWitness({ folder, place, namespace }).read();
          if (found === DAMAGED) continue;
          expect(found?.ledgerId ?? 0, told).toBeGreaterThanOrEqual(acknowledged.get(namespace) ?? 0);
          expect(found?.storeId ?? storeId, told).toBe(storeId);
        }
      }
    }
  });

  /** Of whole files: half of one is damaged in any case. */
  function textsOf(folder: string, namespace: string): readonly string[] {
    const prefix = new RegExp(`^[0-9a-f]{16}\\.${namespace.replace(".", "\\.")}\\.[0-9a-f-]{36}\\.witness$`);
    const names = refusalOf(() => readdirSync(folder)) === undefined ? readdirSync(folder) : [];
    const texts = names.filter((name) => prefix.test(name)).map((name) => readFileSync(join(folder, name), "utf8"));
    return texts.filter((text) => text.endsWith("\n"));
  }
});
