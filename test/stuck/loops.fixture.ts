import { test } from "vitest";

test("goes round for ever", () => {
  roundAndRound();
});

function roundAndRound(): void {
  for (let count = 0; ; count++) if (count < 0) return;
}
