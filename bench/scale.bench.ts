/**
 * The scale that one machine can't show, by arithmetic: from the constants of the layout and the guard, and from what one Redis needs
 * for a lease and a touch by its own account.
 */
import { randomBytes } from "node:crypto";
import { RUN_COUNT, SEQUENCE_COUNT, VERSION_COUNT } from "@callnumber/protocol/codec";
import { LEASE_RUN_COUNT_MAX } from "@callnumber/protocol/wire";
import { Redis } from "ioredis";
import { onTestFinished, test } from "vitest";
import { Coordinator } from "../packages/coordinator/src/coordinator.js";
import { BURST_RUNS, TOUCH_EVERY_MS } from "../packages/coordinator/src/guard/bounds.js";
import { RATE_DEFAULT, RATE_MAX } from "../packages/coordinator/src/store-id.js";
import { openStore } from "../packages/coordinator/src/stores/open-store.js";
import type { Store } from "../packages/coordinator/src/stores/store.js";
import { parseStoreUrl } from "../packages/coordinator/src/stores/store-url.js";
import { initBackdated } from "../test/backdated.js";
import { startRedisServer } from "../test/redis/test-redis.js";
import { figure } from "./quantiles.js";
import { publish, type Section } from "./report.js";

const NAMESPACE = "bench";
const CALL_COUNT = 3_000;
const CALLER_COUNT = 64;
const DAY_S = 24 * 3_600;
const YEAR_S = 365.25 * DAY_S;
/** The part of a Redis that touches may take: the rest is for leases. */
const TOUCH_SHARE = 0.1;
const FAST_IMPORTER_PER_SECOND = 10_000_000;

test("scale on paper", async () => {
  const { url } = await startRedisServer({ config: { appendonly: "yes", appendfsync: "everysec" } });
  const { store } = await openStore(parseStoreUrl(url), { create: false });
  onTestFinished(() => store.close());
  const redis = new Redis(url);
  onTestFinished(() => redis.disconnect());
  const storeId = await initBackdated(store, NAMESPACE);
  const coordinator = new Coordinator({ store, name: "bench" });
  const alone = () => inTurns(() => lease(coordinator));
  const together = () => inTurns(() => leases(coordinator), CALL_COUNT / CALLER_COUNT);
  const touches = () => inTurns(() => touch(store, storeId));
  await alone();
  publish({
    bench: "scale",
    sections: [
      numbers(),
      load({
        touchUs: (await scriptUs(redis, touches)) / CALL_COUNT,
        aloneUs: (await scriptUs(redis, alone)) / CALL_COUNT,
        togetherUs: (await scriptUs(redis, together)) / (Math.ceil(CALL_COUNT / CALLER_COUNT) * CALLER_COUNT),
      }),
    ],
  });
});

function numbers(): Section {
  const inVersion = RUN_COUNT * SEQUENCE_COUNT;
  const row = (what: string, arithmetic: string, value: string) => [what, arithmetic, value];
  return {
    heading: "Numbers",
    sentences: [
      "Of one namespace. The clock line lets a burst through and then so many runs a second as its rate says.",
    ],
    table: {
      columns: ["what", "arithmetic", "comes to"],
      rows: [
        row("numbers of a version", `${RUN_COUNT} · ${SEQUENCE_COUNT}`, `${figure(inVersion / 1e12)} · 10^12`),
        row("of all versions", `· ${VERSION_COUNT}`, `${figure((inVersion * VERSION_COUNT) / 1e12)} · 10^12`),
        row(
          "a burst",
          `${BURST_RUNS} · ${SEQUENCE_COUNT}`,
          `${figure((BURST_RUNS * SEQUENCE_COUNT) / 1e9)} · 10^9 numbers`,
        ),
        ...[RATE_DEFAULT, RATE_MAX].flatMap((rate) => [
          row(
            `without end, at rate ${rate}`,
            `${rate} · ${SEQUENCE_COUNT}`,
            `${grouped(rate * SEQUENCE_COUNT)} a second`,
          ),
          row(`a day, at rate ${rate}`, `· ${DAY_S}`, `${figure((rate * SEQUENCE_COUNT * DAY_S) / 1e9)} · 10^9`),
          row(
            `a version lasts, at rate ${rate}`,
            `${RUN_COUNT} / ${rate} s`,
            `${figure(RUN_COUNT / rate / YEAR_S)} years`,
          ),
        ]),
        row(
          "starts of importers a day, at rate 2, one run each",
          `${RATE_DEFAULT} · ${DAY_S}`,
          grouped(RATE_DEFAULT * DAY_S),
        ),
      ],
    },
  };
}

function load({ touchUs, aloneUs, togetherUs }: { touchUs: number; aloneUs: number; togetherUs: number }): Section {
  const leasesPerSecond = 1e6 / togetherUs;
  const numbersOfLease = LEASE_RUN_COUNT_MAX * SEQUENCE_COUNT;
  const leasesOfImporter = FAST_IMPORTER_PER_SECOND / numbersOfLease;
  const touchesOfCoordinator = 1_000 / TOUCH_EVERY_MS;
  return {
    heading: "Load",
    sentences: ["Time of Redis by its own account (`INFO commandstats`), the look behind each step included."],
    table: {
      columns: ["what", "arithmetic", "comes to"],
      rows: [
        ["a lease alone", "measured", `${figure(aloneUs)} us of Redis`],
        [`a lease among ${CALLER_COUNT}`, "measured", `${figure(togetherUs)} us of Redis`],
        ["a touch", "measured", `${figure(touchUs)} us of Redis`],
        [
          "leases of one Redis, from many coordinators",
          `10^6 / ${figure(togetherUs)}`,
          `${figure(leasesPerSecond)} a second`,
        ],
        [
          "leases of an importer at 10 million a second",
          `10^7 / (${LEASE_RUN_COUNT_MAX} · ${SEQUENCE_COUNT})`,
          `${figure(leasesOfImporter)} a second`,
        ],
        [
          "such importers behind one Redis",
          `${figure(leasesPerSecond)} / ${figure(leasesOfImporter)}`,
          figure(leasesPerSecond / leasesOfImporter),
        ],
        [
          `namespaces of a coordinator, for ${TOUCH_SHARE * 100} % of a Redis`,
          `${TOUCH_SHARE} · 10^6 / ${figure(touchUs)} / ${touchesOfCoordinator} touches a second`,
          figure((TOUCH_SHARE * 1e6) / touchUs / touchesOfCoordinator),
        ],
      ],
    },
  };
}

async function lease(coordinator: Coordinator): Promise<void> {
  const holder = { name: "bench", host: "bench", pid: 1, labels: {} };
  const nonce = randomBytes(12).toString("base64url");
  const evidence = { lastRun: null, receipt: null, sentAtMs: Date.now() };
  await coordinator.lease(NAMESPACE, { runCount: 1, nonce, holder, ...evidence });
}

async function leases(coordinator: Coordinator): Promise<void> {
  await Promise.all(Array.from({ length: CALLER_COUNT }, () => lease(coordinator)));
}

async function touch(store: Store, storeId: string): Promise<void> {
  const nonce = randomBytes(12).toString("base64url");
  await store.step(NAMESPACE, {
    step: "touch",
    storeId,
    nonce,
    isSilenceAccepted: false,
    floor: 0,
    generationMin: 0,
  });
}

async function inTurns(act: () => Promise<void>, count = CALL_COUNT): Promise<void> {
  for (let done = 0; done < count; done++) await act();
}

/** What Redis spent in scripts meanwhile. */
async function scriptUs(redis: Redis, act: () => Promise<void>): Promise<number> {
  const before = await scriptUsUntilNow(redis);
  await act();
  return (await scriptUsUntilNow(redis)) - before;
}

async function scriptUsUntilNow(redis: Redis): Promise<number> {
  const [, us] = /cmdstat_evalsha:calls=\d+,usec=(\d+)/.exec(await redis.info("commandstats")) ?? [];
  return Number(us);
}

function grouped(value: number): string {
  return value.toLocaleString("en-US");
}
