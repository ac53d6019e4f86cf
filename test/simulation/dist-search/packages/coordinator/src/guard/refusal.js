export function refusal(word, detail = "") {
    return { word, detail: String(detail) };
}
export function isRefusal(answer) {
    return "word" in answer;
}
//# sourceMappingURL=refusal.js.map