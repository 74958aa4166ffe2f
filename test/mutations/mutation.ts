/** A planted mistake of the money path: one change of one file, which one of the named tests has to find. */
export type Mutation = {
  /** What the mistake is, in one sentence. */
  mistake: string
  file: string
  /** Stands in the file exactly once. */
  find: string
  replace: string
  /** Test files, the one that should find it first. */
  tests: readonly string[]
}

/** Mistakes of one file that the same tests should find: what is found, what stands there instead, what that does. */
export const mutationsOf = (
  file: string,
  tests: readonly string[],
  changes: readonly (readonly [find: string, replace: string, mistake: string])[],
): Mutation[] => changes.map(([find, replace, mistake]) => ({ mistake, file, find, replace, tests }))
