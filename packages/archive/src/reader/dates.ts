/** Dates as the pages show them: in the zone of the sender, where the message names one. */
import type { MessageRow } from "./archive-reader.js";

type Dated = Pick<MessageRow, "date" | "dateHeader">;

const formatter = (options: Intl.DateTimeFormatOptions) => {
  const format = new Intl.DateTimeFormat("en-US", { ...options, timeZone: "UTC" });
  return (time: string | number) => format.format(typeof time === "string" ? Date.parse(time) : time);
};
const day = { month: "short", day: "numeric", year: "numeric" } as const;
const wholeDate = formatter({ ...day, weekday: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const dayOfYear = formatter(day);
/** As `March 2005`, `Mar 2005` and `Mar`, of `2005-03`. */
export const longMonth = formatter({ month: "long", year: "numeric" });
export const shortMonth = formatter({ month: "short", year: "numeric" });
export const monthOfYear = formatter({ month: "short" });

/** With a comment behind it. A longer header would take time with the square of its length. */
const ZONE_LENGTH_MAX = 80;

/** As `Tue, Apr 22, 2025, 09:12 +0200`; with `isShort` as `Apr 22, 2025`. */
export function dateText({ date, dateHeader }: Dated, isShort = true): string {
  if (date === null) return "no date";
  const [, sign, hours, minutes] =
    /([+-])(0\d|1[0-4])([0-5]\d)\s*(?:\([^()]*\))?\s*$/.exec((dateHeader ?? "").slice(-ZONE_LENGTH_MAX)) ?? [];
  const offset = sign === undefined ? 0 : Number(`${sign}1`) * (Number(hours) * 60 + Number(minutes));
  const local = Date.parse(date) + offset * 60_000;
  return isShort ? dayOfYear(local) : `${wholeDate(local)} ${sign === undefined ? "UTC" : sign + hours + minutes}`;
}
