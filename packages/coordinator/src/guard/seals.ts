/** The seal of a store that was moved: in the field `ph` of its record. */
import { parseStoreId } from "./store-id.js";

export const MOVED_SEAL = "moved";
/** Characters of store id and place, without spaces, in the seal of a move. */
export const MOVED_TEXT_LENGTH_MAX = 480;
const MOVED_PATTERN = new RegExp(`^${MOVED_SEAL}(?: ([!-~]{1,${MOVED_TEXT_LENGTH_MAX}}))?$`);

/** Where a moved store went, and the store id that it goes on as there. */
export interface MovedTo {
  readonly storeId: string;
  readonly place: string;
}

/**
 * The seal of a store that was moved, of printable ASCII without spaces. It keeps what the first try decided: every further try
 * goes on to the same place as the same store.
 */
export function movedSeal({ storeId, place }: MovedTo): string {
  return `${MOVED_SEAL} ${storeId}@${place}`;
}

export function isMovedSeal(seal: string): boolean {
  return MOVED_PATTERN.test(seal);
}

/** What follows "moved", for a refusal; empty for none. */
export function textOfMove(seal: string): string {
  return MOVED_PATTERN.exec(seal)?.[1] ?? "";
}

/** Undefined for a text that no `movedSeal` holds. */
export function movedToIn(text: string): MovedTo | undefined {
  const [storeId = ""] = text.split("@", 1);
  return parseStoreId(storeId) && { storeId, place: text.slice(storeId.length + 1) };
}

/** Returns the URL of a place for a command: in a seal it has no character but printable ASCII. */
export function urlOfPlace(place: string): string {
  try {
    return decodeURIComponent(place);
  } catch {
    // Not from a URL: shown as it is.
    return place;
  }
}
