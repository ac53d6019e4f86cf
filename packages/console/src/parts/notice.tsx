/** Something to read before anything else. The word says how much it matters; the colour only repeats it. */
import type { ComponentChildren } from "preact";

export type NoticeKind = "good" | "notice" | "warning" | "critical";

interface Properties {
  readonly kind: NoticeKind;
  readonly title: ComponentChildren;
  readonly children?: ComponentChildren;
}

export function Notice({ kind, title, children }: Properties) {
  return (
    <div class={`notice ${kind}`}>
      <p class="notice-title">
        <span class="mark" aria-hidden="true" />
        {title}
      </p>
      {children}
    </div>
  );
}
