/** Light or dark: as the system says, until somebody says otherwise; remembered in this browser only. */

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const KEY = "callnumber.theme";

export function chosenTheme(): Theme {
  try {
    const kept = localStorage.getItem(KEY);
    return THEMES.find((theme) => theme === kept) ?? "system";
  } catch {
    // A browser may forbid us to remember.
    return "system";
  }
}

export function chooseTheme(theme: Theme): void {
  try {
    localStorage.setItem(KEY, theme);
  } catch {}
  applyTheme(theme);
}

export function applyTheme(theme: Theme = chosenTheme()): void {
  document.documentElement.dataset["theme"] = theme;
  // What is drawn on a canvas does not follow by itself.
  dispatchEvent(new Event("themechange"));
}
