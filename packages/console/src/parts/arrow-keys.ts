/** Arrow keys among the links of a list or table: up and down, first and last. Tab goes on as everywhere. */

const STEPS: Readonly<Record<string, (index: number, count: number) => number>> = {
  ArrowDown: (index, count) => Math.min(index + 1, count - 1),
  ArrowUp: (index) => Math.max(index - 1, 0),
  Home: () => 0,
  End: (_, count) => count - 1,
};

/** For `onKeyDown` of the list; its links bear `data-row`. */
export function stepAmongRows(event: KeyboardEvent): void {
  const step = Object.hasOwn(STEPS, event.key) ? STEPS[event.key] : undefined;
  if (step === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
  const links = [...(event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>("[data-row]")];
  const index = links.indexOf(document.activeElement as HTMLElement);
  if (index === -1) return;
  event.preventDefault();
  links[step(index, links.length)]?.focus();
}
