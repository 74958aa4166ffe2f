/**
 * A formula of a claim. It takes what its inputs are and gives decimal text, a time or a name; `undefined` where an input
 * is missing. The same inputs always give the same text, so anybody can compute a claim again.
 */
export type Formula = (inputs: readonly unknown[]) => string | undefined
