/** The steps of an advice, in their order; a single one is no list. */
import type { Advice, Step } from "../advice.js";
import { CommandLine } from "./command.js";

export function AdviceSteps({ advice: { steps } }: { advice: Advice }) {
  const [only] = steps;
  if (steps.length === 1 && only !== undefined) return <StepText step={only} />;
  return (
    <ol class="steps">
      {steps.map((step) => (
        <li key={step.say}>
          <StepText step={step} />
        </li>
      ))}
    </ol>
  );
}

function StepText({ step: { say, type } }: { step: Step }) {
  return (
    <>
      <p>{say}</p>
      {type !== undefined && <CommandLine text={type} />}
    </>
  );
}
