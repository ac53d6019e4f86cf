/** Lines of a coordinator's log, as `serve` writes them, for tests that read logs. */
export const LOGGED_STORE_ID = "01234567-89ab-cdef-0123-456789abcdef.1.1793491200000.2";

export function logLine(event: string, fields: object): string {
  return JSON.stringify({
    level: 30,
    time: 1,
    namespace: "main",
    storeId: LOGGED_STORE_ID,
    version: 0,
    ...fields,
    msg: event,
  });
}
