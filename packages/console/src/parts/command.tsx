/** A command for a terminal, with a button that copies it. */
import { useEffect, useState } from "preact/hooks";

const SHOWN_MS = 2_000;

/** Its words apart: a flag and its dashes stay on one line. */
export function Command({ text }: { text: string }) {
  return <code>{text.split(" ").map((word, index) => [index > 0 && " ", <span key={index}>{word}</span>])}</code>;
}

export function CommandLine({ text }: { text: string }) {
  const [result, setResult] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setResult(""), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [result]);
  const copy = () => {
    // Browsers allow it to pages over HTTPS or from this machine.
    const copied = navigator.clipboard?.writeText(text) ?? Promise.reject(new Error("not allowed"));
    copied.then(
      () => setResult("Copied"),
      () => setResult("Select it, and copy by hand"),
    );
  };
  return (
    <div class="command">
      <Command text={text} />
      <button type="button" onClick={copy} aria-label={`Copy: ${text}`}>
        Copy
      </button>
      <span class="result" role="status">
        {result}
      </span>
    </div>
  );
}
