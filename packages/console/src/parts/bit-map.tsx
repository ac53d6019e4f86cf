/**
 * The 47 bits of a call number before and after the shuffle, with a line from each place to the next. A slider walks over them, so that
 * eyes, hands and screen readers learn the same: which bit goes where.
 */
import { CALL_NUMBER_BITS } from "@callnumber/protocol/codec";
import { useEffect, useState } from "preact/hooks";
import type { Bit } from "../call-number.js";

const STEP = 20;
const GAP = 96;
const CELL = 18;

export function BitMap({ bits }: { bits: readonly Bit[] }) {
  const [chosen, setChosen] = useState<number>();
  const isUpright = useIsNarrow();
  const place = (row: 0 | 1, index: number) =>
    isUpright ? { x: row * GAP * 3, y: index * STEP } : { x: index * STEP, y: row * GAP };
  const [width, height] = isUpright ? [GAP * 3 + CELL, STEP * CALL_NUMBER_BITS] : [STEP * CALL_NUMBER_BITS, GAP + CELL];
  const shown = chosen === undefined ? undefined : bits[chosen];
  const step = (event: KeyboardEvent) => {
    const by = STEPS[event.key];
    if (by === undefined) return;
    event.preventDefault();
    setChosen(Math.min(Math.max(by(chosen ?? -1, CALL_NUMBER_BITS - 1), 0), CALL_NUMBER_BITS - 1));
  };
  return (
    <figure class={`bit-map${isUpright ? " upright" : ""}`}>
      <div class="rows" aria-hidden="true">
        <span>Before the shuffle</span>
        {isUpright && <span>After it</span>}
      </div>
      <div
        class="bits"
        role="slider"
        tabIndex={0}
        aria-label="Bit of the call number, before the shuffle"
        aria-orientation={isUpright ? "vertical" : "horizontal"}
        aria-valuemin={0}
        aria-valuemax={CALL_NUMBER_BITS - 1}
        aria-valuenow={chosen ?? 0}
        aria-valuetext={shown === undefined ? "none chosen; arrow keys choose one" : inWords(shown)}
        onKeyDown={step}
        onPointerLeave={() => setChosen(undefined)}
      >
        <svg viewBox={`-1 -1 ${width + 2} ${height + 2}`} aria-hidden="true">
          {bits.map((bit, index) => (
            <path
              key={bit.before}
              class={`way ${bit.field}${index === chosen ? " chosen" : ""}`}
              d={wayOf(place(0, bit.before), place(1, bit.after), isUpright)}
            />
          ))}
          {([0, 1] as const).map((row) =>
            bits.map((bit, index) => {
              const { x, y } = place(row, row === 0 ? bit.before : bit.after);
              return (
                <g
                  key={`${row} ${bit.before}`}
                  class={`bit ${bit.field}${bit.value === 1 ? " one" : ""}${index === chosen ? " chosen" : ""}`}
                  onPointerEnter={() => setChosen(index)}
                  onPointerDown={() => setChosen(index)}
                >
                  <rect x={x} y={y} width={CELL} height={CELL} rx={3} />
                  <text x={x + CELL / 2} y={y + CELL - 4.5}>
                    {bit.value}
                  </text>
                </g>
              );
            }),
          )}
        </svg>
      </div>
      {!isUpright && (
        <div class="rows" aria-hidden="true">
          <span>After it</span>
        </div>
      )}
      <figcaption class="quiet">
        {shown === undefined ? "Point at a bit, or use the arrow keys, to see where it goes." : inWords(shown)}
      </figcaption>
    </figure>
  );
}

const STEPS: Readonly<Record<string, (index: number, last: number) => number>> = {
  ArrowRight: (index) => index + 1,
  ArrowDown: (index) => index + 1,
  ArrowLeft: (index) => index - 1,
  ArrowUp: (index) => index - 1,
  Home: () => 0,
  End: (_, last) => last,
};

function inWords({ field, power, value, before, after }: Bit): string {
  const weight = power === 0 ? "1" : power === 1 ? "2" : `2 to the ${power}`;
  return `${field}, weight ${weight}: it is ${value}, and goes from place ${before} to place ${after}`;
}

interface Point {
  readonly x: number;
  readonly y: number;
}

function wayOf(from: Point, to: Point, isUpright: boolean): string {
  const middle = CELL / 2;
  if (isUpright) {
    const [x1, x2, bend] = [from.x + CELL, to.x, (to.x - from.x) / 2];
    return `M${x1} ${from.y + middle}C${x1 + bend} ${from.y + middle} ${x2 - bend} ${to.y + middle} ${x2} ${to.y + middle}`;
  }
  const [y1, y2, bend] = [from.y + CELL, to.y, (to.y - from.y) / 2];
  return `M${from.x + middle} ${y1}C${from.x + middle} ${y1 + bend} ${to.x + middle} ${y2 - bend} ${to.x + middle} ${y2}`;
}

/** On a phone the bits stand below each other: beside each other they would be specks. */
function useIsNarrow(): boolean {
  const [isNarrow, setIsNarrow] = useState(() => matchMedia("(width < 44rem)").matches);
  useEffect(() => {
    const query = matchMedia("(width < 44rem)");
    const follow = () => setIsNarrow(query.matches);
    query.addEventListener("change", follow);
    return () => query.removeEventListener("change", follow);
  }, []);
  return isNarrow;
}
