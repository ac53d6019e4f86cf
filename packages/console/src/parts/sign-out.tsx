/** Ends the session, and leaves nothing of it in the page. */
import { OPERATOR_ROUTES } from "@callnumber/protocol/operator";
import { useState } from "preact/hooks";
import { ask } from "../ask.js";

export function SignOut() {
  const [hasFailed, setHasFailed] = useState(false);
  const leave = () => {
    ask(OPERATOR_ROUTES.sessionEnd, {}).then(
      () => location.reload(),
      () => setHasFailed(true),
    );
  };
  return (
    <button type="button" class="plain" onClick={leave}>
      {hasFailed ? "Not signed out: try again" : "Sign out"}
    </button>
  );
}
