/** What costs a parser more than it is long is cut. */
import { expect, test } from "vitest";
import { HEADER_BYTES_MAX } from "../src/message/header-block.js";
import { parseMessage } from "../src/message/parse-message.js";

test("addresses in addresses are cut where the header that is read ends", async () => {
  const message = `Subject: x\nFrom: ${"a:".repeat(HEADER_BYTES_MAX)}\n\nx\n`;
  const { subject, problem } = await parseMessage(Buffer.from(message));
  expect([subject, problem]).toEqual(["x", expect.stringContaining("too large")]);
});
