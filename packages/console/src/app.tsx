/** The frame around every page: which namespace, which page, whether the coordinator is there. */
import type { NamespacesResponse } from "@callnumber/protocol/schemas";
import { useEffect, useRef, useState } from "preact/hooks";
import { authenticate, isSignedIn, signOut } from "./api.js";
import { useConnection } from "./event-stream.js";
import { formatDateTime } from "./format.js";
import { ShownGuard, useGuard } from "./guard.js";
import { InspectPage } from "./pages/inspect.js";
import { OverviewPage } from "./pages/overview.js";
import { RecoveryPage } from "./pages/recovery.js";
import { RunPage } from "./pages/run.js";
import { RunsPage } from "./pages/runs.js";
import { SignInPage } from "./pages/sign-in.js";
import { hueOf, NamespaceSwitch } from "./parts/namespaces.js";
import { useIsStale } from "./parts/notices.js";
import { Duration } from "./parts/time.js";
import { go, type PageName, type Route, urlOf, useRoute } from "./route.js";
import { useNamespaces } from "./use-response.js";

const TITLES: Readonly<Record<PageName, string>> = {
  overview: "Overview",
  runs: "Runs",
  inspect: "Inspect",
  recovery: "Recovery",
};

/** Nothing else is requested, and nothing shown, before it is known whether this page may read. */
export function App() {
  const route = useRoute();
  const [access, setAccess] = useState<"unknown" | "granted" | "denied">("unknown");
  const enter = (response: NamespacesResponse | undefined) => {
    const names = response?.namespaces.map(({ namespace }) => namespace) ?? [];
    const [first] = names;
    // Without a place in the URL: one that the token grants access to.
    if (location.hash === "" && first !== undefined && !names.includes(route.namespace)) go(urlOf(first), true);
    setAccess("granted");
  };
  useEffect(() => {
    authenticate().then(enter, () => setAccess("denied"));
  }, []);
  if (access === "granted") return <Frame route={route} />;
  return (
    <div class="frame">
      <header>
        <span class="home">Callnumber</span>
      </header>
      <main>{access === "denied" ? <SignInPage onSignedIn={enter} /> : <p class="quiet">Loading…</p>}</main>
    </div>
  );
}

function Frame({ route }: { route: Route }) {
  const { namespace, page, subject } = route;
  const namespaces = useNamespaces(namespace);
  const main = useRef<HTMLElement>(null);
  const place = `${namespace} ${page} ${page === "inspect" ? "" : subject}`;
  const placeBefore = useRef(place);

  useEffect(() => {
    document.title = `${TITLES[page]} ${subject} · ${namespace} · Callnumber`.replace("  ", " ");
  }, [page, subject, namespace]);

  useEffect(() => {
    if (placeBefore.current === place) return;
    placeBefore.current = place;
    // As on a new page: a screen reader reads its heading, and begins there.
    const heading = main.current?.querySelector<HTMLElement>("h1");
    if (page !== "inspect" || !main.current?.contains(document.activeElement)) heading?.focus();
    scrollTo(0, 0);
  }, [place, page]);

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
        <a class="home" href={urlOf(namespace)}>
          Callnumber
        </a>
        <NamespaceSwitch namespaces={namespaces.data?.namespaces ?? []} route={route} />
        <nav aria-label="Pages">
          {Object.entries(TITLES).map(([name, title]) => (
            <a
              key={name}
              href={urlOf(namespace, name as PageName)}
              aria-current={name === page ? (subject === "" ? "page" : "true") : undefined}
            >
              {title}
            </a>
          ))}
        </nav>
      </header>
      <ConnectionState isStale={useIsStale(namespaces)} />
      <main ref={main} tabIndex={-1} id="page-begins">
        <ShownGuard value={useGuard(namespace)}>
          <Page key={`${namespace} ${page}`} route={route} />
        </ShownGuard>
      </main>
      <footer class="quiet">
        {namespaces.data && (
          <p>
            Coordinator {namespaces.data.coordinator}, release {namespaces.data.release}, store {namespaces.data.store}
          </p>
        )}
        {isSignedIn() && (
          <p>
            Signed in. This tab remembers the token until you{" "}
            <button type="button" class="plain" onClick={signOut}>
              sign out
            </button>{" "}
            or close it.
          </p>
        )}
      </footer>
    </div>
  );
}

function Page({ route }: { route: Route }) {
  const { namespace, page, subject } = route;
  if (page === "runs")
    return subject === "" ? <RunsPage route={route} /> : <RunPage namespace={namespace} run={subject} />;
  if (page === "inspect") return <InspectPage namespace={namespace} text={subject} />;
  if (page === "recovery") return <RecoveryPage namespace={namespace} />;
  return <OverviewPage namespace={namespace} />;
}

/** Shown as soon as the coordinator is gone. One that hangs keeps its connection open, and answers no request. */
function ConnectionState({ isStale }: { isStale: boolean }) {
  const { state, sinceMs } = useConnection();
  const shown = isStale
    ? "The last request failed: what is shown is from before"
    : "Live: changes appear automatically";
  return (
    <div class={`connection ${state}`} role="status">
      {state === "disconnected" ? (
        <p>
          <strong>The coordinator does not answer</strong> since {formatDateTime(sinceMs)}
          {/* Not read out each second. */}
          <span aria-hidden="true">
            {" "}
            (<Duration sinceMs={sinceMs} />)
          </span>
          . What is shown is from before. The page reconnects automatically.
        </p>
      ) : (
        <p class="unseen">{state === "connecting" ? "Connecting" : shown}</p>
      )}
    </div>
  );
}
