/** Before the pages: who must sign in, and who asks for what is not theirs. Small, and asked for by nobody else: it comes with the first script. */
import { OPERATOR_ROUTES } from "@callnumber/protocol/operator";
import { useEffect, useRef, useState } from "preact/hooks";
import { type AskError, ask } from "../ask.js";
import { Notice } from "../parts/notice.js";
import { addressOf, type Route } from "../route.js";
import type { Presence } from "../session.js";
import { asSentence, duration } from "../words.js";

interface Properties {
  readonly presence: Presence;
  readonly route: Route;
}

export function DoorPage({ presence: { state, session }, route }: Properties) {
  const namespaces = session?.namespaces ?? "all";
  if (state === "out") return <SignIn wasIn={session !== null} />;
  return <Elsewhere route={route} namespaces={namespaces === "all" ? [] : namespaces} />;
}

function SignIn({ wasIn }: { wasIn: boolean }) {
  const field = useRef<HTMLInputElement>(null);
  const [wrong, setWrong] = useState("");
  useEffect(() => {
    document.title = "Sign in · Callnumber";
    field.current?.focus();
  }, []);

  const send = (event: SubmitEvent) => {
    event.preventDefault();
    const input = field.current as HTMLInputElement;
    setWrong("");
    ask(OPERATOR_ROUTES.session, { token: input.value.trim() }).then(
      () => {
        input.value = "";
        // Nothing of who was here before stays in the page; its address does.
        location.reload();
      },
      ({ message, waitMs }: AskError) => {
        setWrong(asSentence(waitMs === undefined ? message : `${message} (${duration(waitMs)})`));
        input.select();
      },
    );
  };

  return (
    <>
      <h1 tabIndex={-1}>Sign in</h1>
      {wasIn && (
        <p role="status">
          You are signed in no more: the time was over, or the coordinator was started again. Where you were is kept.
        </p>
      )}
      <form class="sign-in" method="post" onSubmit={send}>
        <label for="token">Token</label>
        <input
          ref={field}
          id="token"
          type="password"
          required
          autocomplete="current-password"
          autocapitalize="off"
          spellcheck={false}
          aria-invalid={wrong !== ""}
          aria-describedby="token-wrong token-hint"
        />
        <button type="submit">Sign in</button>
        <p id="token-wrong" class="wrong" role="alert">
          {wrong}
        </p>
        <p id="token-hint" class="quiet">
          Of role read or operator. It is not kept here: the browser is signed in for eight hours, or until nobody
          looked for one.
        </p>
      </form>
    </>
  );
}

function Elsewhere({ route: { namespace, page }, namespaces }: { route: Route; namespaces: readonly string[] }) {
  return (
    <>
      <h1 tabIndex={-1}>Not open to you</h1>
      <Notice kind="warning" title={`Your token is not good for ${namespace}`}>
        <p>
          It is good for{" "}
          {namespaces.map((name) => (
            <a key={name} href={addressOf(name, page)}>
              {name}{" "}
            </a>
          ))}
        </p>
      </Notice>
    </>
  );
}
