export {};
//# sourceMappingURL=found.js.map