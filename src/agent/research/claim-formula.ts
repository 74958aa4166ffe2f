/**
 * A formula of a claim. It takes the values of its inputs and returns decimal text, a time or a name, or undefined if
 * an input is missing. The same inputs always give the same text, so anybody can compute a claim again.
 */
export type Formula = (inputs: readonly unknown[]) => string | undefined
