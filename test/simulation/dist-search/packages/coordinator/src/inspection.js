import { runStateIn } from "./run-state.js";
export function inspectMalformed(subject, error) {
    const { code, message, position } = error;
    return { ...subject, verdict: "malformed", explanation: message, problem: code, position: position ?? null };
}
export function inspectOtherVersion(subject, { namespace, version }) {
    const explanation = `version ${subject.version}: namespace "${namespace}" has made numbers up to version ${version} only`;
    return { ...subject, verdict: "other_version", explanation };
}
export function inspectNeverLeased(subject, record) {
    const { run, version } = subject;
    const answer = { ...subject, verdict: "never_leased" };
    if (version === 0 && run < record.firstRun) {
        const explanation = `run ${run} lies below the first run (${record.firstRun}) of this namespace: not made here, perhaps by an older system`;
        return { ...answer, reason: "below_first_run", explanation };
    }
    if (version === record.version && run > record.highWaterMark) {
        const explanation = `run ${run} was never leased: the last one is ${record.highWaterMark}. This number can't exist yet`;
        return { ...answer, reason: "above_mark", explanation };
    }
    return {
        ...answer,
        reason: "skipped",
        explanation: `run ${run} was skipped: no lease holds it. This number can't exist`,
    };
}
export function inspectLeased(subject, lease) {
    const { state, lastSequence } = runStateIn(lease, subject.run);
    const isReported = lastSequence !== null && subject.sequence <= lastSequence;
    return {
        ...subject,
        verdict: isReported ? "reported" : "unreported",
        explanation: `${leasedTo(lease, subject.run)}, ${isReported ? "within what it reported" : whyNot(state, lastSequence)}`,
        state,
        lastSequence,
        lease,
    };
}
function leasedTo({ holder, leasedAtMs }, run) {
    return `run ${run} was leased to ${holder.name} (${holder.host}, pid ${holder.pid}) at ${new Date(leasedAtMs).toISOString()}`;
}
function whyNot(state, lastSequence) {
    if (state === "unreported")
        return "which has not reported how far it got: this number may exist";
    if (state === "open")
        return `which reported ${reached(lastSequence)} so far: this number may exist by now`;
    return `which closed the run after ${reached(lastSequence)}: this number was not made`;
}
function reached(lastSequence) {
    return lastSequence === null ? "no sequence" : `sequence ${lastSequence}`;
}
//# sourceMappingURL=inspection.js.map