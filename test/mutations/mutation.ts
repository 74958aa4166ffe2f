/** A planted mistake of the money path: one change of one file, which one of the named tests must find. */
export type Mutation = {
  /** The mistake, in one sentence. */
  mistake: string
  file: string
  /** Occurs in the file exactly once. */
  find: string
  replace: string
  /** Test files, first the one that should find it. */
  tests: readonly string[]
}

/** Mistakes of one file that the same tests should find: the snippet, its replacement, and the effect. */
export const mutationsOf = (
  file: string,
  tests: readonly string[],
  changes: readonly (readonly [find: string, replace: string, mistake: string])[],
): Mutation[] => changes.map(([find, replace, mistake]) => ({ mistake, file, find, replace, tests }))
