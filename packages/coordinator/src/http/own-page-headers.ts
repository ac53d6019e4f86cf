/** Of every answer: no page of another site may load it as anything, and none may be told that it is something else than it says. */
export const FOR_OWN_PAGES = {
  "x-content-type-options": "nosniff",
  "cross-origin-resource-policy": "same-origin",
} as const;
