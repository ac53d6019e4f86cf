/**
 * What comes on a connection and is no request: empty lines, which the parser skips, and records of TLS that only concern itself, as a change of
 * keys, each of which costs more than its few bytes. The platform takes either for a sign of life, and counts neither. Pure.
 */
import type { Connection } from "./connections.js";

/** Several times what a request may hold, however it is cut into records by a caller of ours. */
const BYTES_MAX = 65_536;

type Looked = Pick<Connection, "socket" | "isLetIn" | "underWayCount" | "bytesBefore" | "answeredAtMs">;

/**
 * Whether so much of it has come, or for so long, that the connection should end; of somebody who was let in no bytes are too many.
 * @param idleMaxMs how long a connection may be without a request that is under way.
 */
export function hasTooMuchWithoutRequest(connection: Looked, idleMaxMs: number, nowMs: number): boolean {
  const { socket, isLetIn, underWayCount, bytesBefore, answeredAtMs } = connection;
  if (!isLetIn && socket.bytesRead - bytesBefore > BYTES_MAX) return true;
  return underWayCount === 0 && answeredAtMs !== undefined && nowMs - answeredAtMs > idleMaxMs;
}
