/** What is to be done once an answer is over, whether it was sent whole or its connection broke: also when that was before anybody asked. */
import type { ServerResponse } from "node:http";

export function whenClosed(response: ServerResponse, act: () => void): void {
  if (response.closed) act();
  else response.once("close", act);
}
