/** Whether this page may ask: nobody needs to sign in, somebody has, or somebody must. The browser keeps the proof, where no script sees it. */
import {
  type CommandContext,
  type ConsoleSessionAnswer,
  filledCommands,
  OPERATOR_ROUTES,
} from "@callnumber/protocol/operator";
import { useEffect, useState } from "preact/hooks";
import { ask } from "./ask.js";

export interface Presence {
  readonly state: "asking" | "in" | "out";
  /** Null where nobody needs to sign in, too. When out, of before. */
  readonly session: ConsoleSessionAnswer["session"];
}

let commandContext: CommandContext | null = null;
let present: Presence = { state: "asking", session: null };

/** Whether nothing would be answered: whoever signs in begins the page anew. */
export function isSignedOut(): boolean {
  return present.state === "out";
}

/** Whether programs are asked for tokens, too. */
export function isSignedIn(): boolean {
  return present.session !== null;
}

/** A command of an advice, and words that hold one, with the store where this reader may know it. */
export function withStore(text: string): string {
  return commandContext === null ? text : filledCommands(text, commandContext);
}

export function usePresence(): Presence {
  const [presence, setPresence] = useState(present);
  present = presence;
  useEffect(() => {
    const leave = () => setPresence(({ session }) => ({ state: "out", session }));
    addEventListener("signedout", leave);
    ask(OPERATOR_ROUTES.session).then(
      (answer) => {
        const { isNeeded, session, commands } = answer as ConsoleSessionAnswer;
        commandContext = commands;
        setPresence({ state: isNeeded && session === null ? "out" : "in", session });
      },
      // The page says by itself what can't be had.
      () => setPresence({ state: "in", session: null }),
    );
    return () => removeEventListener("signedout", leave);
  }, []);
  return presence;
}
