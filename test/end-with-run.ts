/**
 * Before each test file: when the run is killed, its workers end too, and with them the servers they started.
 * vitest's own would work on until their test is done, with no one left to tell.
 */
if (process.listenerCount("disconnect") === 0) process.once("disconnect", () => process.exit(1));
