/** `POST …/numbers`: call numbers for programs that lease no runs. Limited as leases are, by the share of a run that the numbers are. */
import { type NumbersRequest, type NumbersResponse, ROUTES } from "@callnumber/protocol/api";
import { numbersQuerySchema, numbersRequestSchema, numbersResponseSchema } from "@callnumber/protocol/schemas";
import type { LeaseLimits } from "../../limits/lease-limits.js";
import type { NumberMaker } from "../../numbers/number-maker.js";
import type { ConcurrencyLimit } from "../in-flight-limits.js";
import type { PostCall, PostRequests } from "../post-requests.js";
import { inNamespace, OF_MAKING_LEASES } from "./route-parts.js";

export interface NumbersRouteOptions {
  readonly numbers: NumberMaker;
  readonly limits: LeaseLimits;
  readonly slots: ConcurrencyLimit;
}

export function addNumbersRoute(posts: PostRequests, { numbers, limits, slots }: NumbersRouteOptions): void {
  posts.add({
    path: ROUTES.numbers,
    operation: {
      summary: "Make 1 to 10,000 call numbers",
      description: "For programs that lease no runs. The same request sent again gets other numbers.",
      errors: [...OF_MAKING_LEASES, "store_mismatch"],
      content: { "text/plain": "One call number a line" },
    },
    returns: numbersResponseSchema,
    params: inNamespace,
    body: numbersRequestSchema,
    canBeEmpty: true,
    query: numbersQuerySchema,
    slots,
    status: 200,
    act: (call, { namespace }, body, { count }) => makeWithin(limits, numbers, call, namespace, body, count),
    text: ({ callNumbers }) => `${callNumbers.join("\n")}\n`,
  });
}

async function makeWithin(
  limits: LeaseLimits,
  numbers: NumberMaker,
  call: PostCall,
  namespace: string,
  { holder, expectedStoreId }: NumbersRequest,
  count: number,
): Promise<NumbersResponse> {
  const { tokenId } = call.principal;
  const { remoteAddress } = call.raw.socket;
  const limited = { name: holder?.name ?? "", host: holder?.host ?? remoteAddress ?? "" };
  const giveBack = limits.admitNumbers(tokenId, namespace, limited, count);
  const requester = { holder, tokenId: tokenId ?? undefined, remoteAddress };
  try {
    const made = await numbers.make(namespace, count, { expectedStoreId, requester, signal: call });
    return { namespace, ...made };
  } catch (error) {
    giveBack();
    throw error;
  }
}
