/** A thread of an importer, with a client of its own: generates so many call numbers, and gives them to the thread that started it. */
import { parentPort, workerData } from "node:worker_threads";
import { createClient } from "@callnumber/client";

const { coordinator, namespace, count } = workerData;
const client = createClient({ coordinator, namespace, holder: { name: "thread" } });
const made = [];
while (made.length < count) made.push(await client.next(), ...(await client.take(997)));
await client.close();
parentPort.postMessage(made);
