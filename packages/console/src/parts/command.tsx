/** A command to be typed elsewhere, with a button that copies it. */
import { useEffect, useState } from "preact/hooks";

const SAID_MS = 2_000;

export function CommandLine({ text }: { text: string }) {
  const [said, setSaid] = useState("");
  useEffect(() => {
    if (said === "") return undefined;
    const timer = setTimeout(() => setSaid(""), SAID_MS);
    return () => clearTimeout(timer);
  }, [said]);
  const copy = () => {
    // Only a page that came by HTTPS, or from this machine, may use the clipboard.
    const copied = navigator.clipboard?.writeText(text) ?? Promise.reject(new Error("not allowed"));
    copied.then(
      () => setSaid("Copied"),
      () => setSaid("Select it, and copy by hand"),
    );
  };
  return (
    <div class="command">
      <code>{text.split(" ").map((word, index) => [index > 0 && " ", <span key={index}>{word}</span>])}</code>
      <button type="button" onClick={copy} aria-label={`Copy: ${text}`}>
        Copy
      </button>
      <span class="said" role="status">
        {said}
      </span>
    </div>
  );
}
