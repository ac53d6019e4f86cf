/** The frame around every page: which namespace, which page, whether the coordinator is there. */
import { type NamespacesAnswer, OPERATOR_ROUTES } from "@callnumber/protocol/operator";
import { useEffect, useRef } from "preact/hooks";
import { useLive } from "./live.js";
import { hueOf } from "./namespace-colour.js";
import { DoorPage } from "./pages/door.js";
import { InspectPage } from "./pages/inspect.js";
import { OverviewPage } from "./pages/overview.js";
import { RecoveryPage } from "./pages/recovery.js";
import { RunPage } from "./pages/run.js";
import { RunsPage } from "./pages/runs.js";
import { useNow } from "./parts/clock.js";
import { NamespaceSwitch } from "./parts/namespace-switch.js";
import { SignOut } from "./parts/sign-out.js";
import { ThemeSwitch } from "./parts/theme-switch.js";
import { addressOf, go, type PageName, type Route, useRoute } from "./route.js";
import { type Presence, usePresence } from "./session.js";
import { useAnswer } from "./use-answer.js";
import { dateAndTime, duration } from "./words.js";

const TITLES: Readonly<Record<PageName, string>> = {
  overview: "Overview",
  runs: "Runs",
  inspect: "Inspect",
  recovery: "Recovery",
};

/** Nothing is asked for and nothing shown before it is known whether this page may. */
export function App() {
  const route = useRoute();
  const presence = usePresence();
  const { state, session } = presence;
  const first = session?.namespaces[0];
  useEffect(() => {
    // No place was asked for: one that may be seen.
    if (location.hash === "" && session?.namespaces !== "all" && first !== undefined) go(addressOf(first), true);
  }, [session, first]);
  if (state === "in") return <Frame route={route} presence={presence} />;
  return (
    <div class="frame">
      <header>
        <span class="home">Callnumber</span>
        <ThemeSwitch />
      </header>
      <main>{state === "out" ? <DoorPage presence={presence} route={route} /> : <p class="quiet">Asking …</p>}</main>
    </div>
  );
}

function Frame({ route, presence }: { route: Route; presence: Presence }) {
  const { session } = presence;
  const { namespace, page, subject } = route;
  const namespaces = useAnswer<NamespacesAnswer>(OPERATOR_ROUTES.namespaces, namespace);
  const main = useRef<HTMLElement>(null);
  const place = `${namespace} ${page} ${page === "inspect" ? "" : subject}`;
  const placeBefore = useRef(place);

  useEffect(() => {
    document.title = `${TITLES[page]} ${subject} · ${namespace} · Callnumber`.replace("  ", " ");
  }, [page, subject, namespace]);

  useEffect(() => {
    if (placeBefore.current === place) return;
    placeBefore.current = place;
    // As a new page would: the reader is told its heading, and begins there.
    const heading = main.current?.querySelector<HTMLElement>("h1");
    if (!main.current?.contains(document.activeElement) || document.activeElement === document.body) heading?.focus();
    else if (page !== "inspect") heading?.focus();
    scrollTo(0, 0);
  }, [place, page]);

  useEffect(() => {
    const toInspect = (event: KeyboardEvent) => {
      if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      event.preventDefault();
      if (page !== "inspect") go(addressOf(namespace, "inspect"));
      // The page stands when the address has changed.
      setTimeout(() => document.querySelector<HTMLElement>("#call-number")?.focus(), 60);
    };
    addEventListener("keydown", toInspect);
    return () => removeEventListener("keydown", toInspect);
  }, [namespace, page]);

  return (
    <div class="frame" style={{ "--hue": String(hueOf(namespace)) }}>
      <a
        class="skip"
        href="#page-begins"
        onClick={(event) => {
          event.preventDefault();
          main.current?.focus();
        }}
      >
        Skip to the page
      </a>
      <header>
        <a class="home" href={addressOf(namespace)}>
          Callnumber
        </a>
        <NamespaceSwitch present={route} answer={namespaces} />
        <nav aria-label="Pages">
          {Object.entries(TITLES).map(([name, title]) => (
            <a
              key={name}
              href={addressOf(namespace, name as PageName)}
              aria-current={name === page ? (subject === "" ? "page" : "true") : undefined}
            >
              {title}
            </a>
          ))}
        </nav>
        <ThemeSwitch />
      </header>
      <Away />
      <main ref={main} tabIndex={-1} id="page-begins">
        {session === null || session.namespaces === "all" || session.namespaces.includes(namespace) ? (
          <Page key={`${namespace} ${page}`} route={route} />
        ) : (
          <DoorPage presence={presence} route={route} />
        )}
      </main>
      <footer class="quiet">
        {namespaces.data && (
          <p>
            Coordinator {namespaces.data.coordinator}, release {namespaces.data.release}, store {namespaces.data.store}
          </p>
        )}
        {session && (
          <p>
            Signed in with token {session.tokenId} <SignOut />
          </p>
        )}
        <p>
          <kbd>/</kbd> to inspect a call number
        </p>
      </footer>
    </div>
  );
}

function Page({ route }: { route: Route }) {
  const { namespace, page, subject } = route;
  if (page === "runs")
    return subject === "" ? <RunsPage route={route} /> : <RunPage namespace={namespace} run={subject} />;
  if (page === "inspect") return <InspectPage namespace={namespace} text={subject} />;
  if (page === "recovery") return <RecoveryPage namespace={namespace} code={subject} />;
  return <OverviewPage namespace={namespace} />;
}

/** Said as soon as the coordinator is gone, and again when it is back. */
function Away() {
  const { state, sinceMs } = useLive();
  const isAway = state === "away";
  return (
    <div class={`connection ${state}`} role="status">
      {isAway && (
        <p>
          <strong>The coordinator does not answer</strong> since {dateAndTime(sinceMs)}
          <AwayFor sinceMs={sinceMs} />. What stands here is from before. Trying again by itself.
        </p>
      )}
      {!isAway && <p class="unseen">{state === "live" ? "Live: changes appear by themselves" : "Connecting"}</p>}
    </div>
  );
}

/** Counts by itself, and is not read out each second. */
function AwayFor({ sinceMs }: { sinceMs: number }) {
  const nowMs = useNow();
  return <span aria-hidden="true"> ({duration(nowMs - sinceMs)})</span>;
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches("input, select, textarea");
}
