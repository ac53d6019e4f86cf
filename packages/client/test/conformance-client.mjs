/** The client as `callnumber conformance` drives it. */
import process from "node:process";
import { createInterface } from "node:readline";
import { createClient } from "@callnumber/client";

const { CALLNUMBER_TOKEN, CALLNUMBER_EXPECTED_STORE_ID, CALLNUMBER_REQUEST_TIMEOUT_MS, CALLNUMBER_WAIT_TIMEOUT_MS } =
  process.env;
const client = createClient({
  holder: { name: "conformance" },
  token: CALLNUMBER_TOKEN,
  expectedStoreId: CALLNUMBER_EXPECTED_STORE_ID,
  requestTimeoutMs: Number(CALLNUMBER_REQUEST_TIMEOUT_MS),
  waitTimeoutMs: Number(CALLNUMBER_WAIT_TIMEOUT_MS),
});

for await (const line of createInterface(process.stdin)) {
  const [command, count] = line.split(" ");
  try {
    if (command === "next") console.log((await client.take(Number(count))).join("\n"));
    if (command === "close") await client.close();
    console.log(command === "fork" ? "unsupported" : "ok");
  } catch (error) {
    console.log(`error ${error.code}: ${error.message}`);
  }
}
