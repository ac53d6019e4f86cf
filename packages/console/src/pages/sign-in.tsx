/** The page for the token, which the tab then remembers. */
import { useEffect, useRef, useState } from "preact/hooks";
import { authenticate, type RequestError } from "../api.js";

type Namespaces = Awaited<ReturnType<typeof authenticate>>;

const REASONS: Readonly<Record<string, string>> = {
  unauthorized: "No such token is known here. Copy it again, whole, or ask for a new one.",
  forbidden: "This token is for importers: it leases runs and shows nothing. Use a token of role read or operator.",
};

export function SignInPage({ onSignedIn }: { onSignedIn: (namespaces: Namespaces) => void }) {
  const field = useRef<HTMLInputElement>(null);
  const [reason, setReason] = useState("");
  useEffect(() => {
    document.title = "Sign in · Callnumber";
    field.current?.focus();
  }, []);

  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const input = field.current as HTMLInputElement;
    setReason("");
    authenticate(input.value.trim()).then(onSignedIn, ({ code, message }: RequestError) => {
      setReason(REASONS[code] ?? message);
      input.select();
    });
  };

  return (
    <>
      <h1 tabIndex={-1}>Sign in</h1>
      <form class="sign-in" method="post" onSubmit={submit}>
        <label for="token">Token</label>
        <input
          ref={field}
          id="token"
          type="password"
          required
          autocomplete="current-password"
          autocapitalize="off"
          spellcheck={false}
          aria-invalid={reason !== ""}
          aria-describedby="token-reason token-hint"
        />
        <button type="submit">Sign in</button>
        <p id="token-reason" class="wrong" role="alert">
          {reason}
        </p>
        <p id="token-hint" class="quiet">
          Of role read or operator. This tab remembers it when you reload the page, and forgets it when you sign out or
          close it.
        </p>
      </form>
    </>
  );
}
