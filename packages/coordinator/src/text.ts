/** What another program wrote, made safe for terminals and logs: an entry of its own, because it loads nothing else. */
export { MESSAGE_LENGTH_MAX, shown, visible, visibleJson, visibleLines } from "./shown-text.js";
export { holdsToken, withoutTokens } from "./tokens-in-text.js";
