/** Text from elsewhere, made safe for terminals and logs. An entry of its own, because it loads nothing else. */
export {
  MESSAGE_LENGTH_MAX,
  shown as escapeAndShorten,
  visible as escapeForTerminal,
  visibleJson as escapeJson,
  visibleLines as escapeLines,
} from "./shown-text.js";
