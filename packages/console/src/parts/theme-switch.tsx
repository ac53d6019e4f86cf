/** Light, dark, or as the system says. */
import { useState } from "preact/hooks";
import { chooseTheme, chosenTheme, THEMES, type Theme } from "../theme.js";

const NAMES: Readonly<Record<Theme, string>> = { system: "System", light: "Light", dark: "Dark" };

export function ThemeSwitch() {
  const [theme, setTheme] = useState(chosenTheme());
  return (
    <label class="theme">
      <span class="unseen">Colours</span>
      <select
        value={theme}
        onChange={({ currentTarget }) => {
          const chosen = THEMES.find((name) => name === currentTarget.value) ?? "system";
          setTheme(chosen);
          chooseTheme(chosen);
        }}
      >
        {THEMES.map((name) => (
          <option key={name} value={name}>
            {NAMES[name]}
          </option>
        ))}
      </select>
    </label>
  );
}
