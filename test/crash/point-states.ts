/** Points of a kill that leave the same state behind. */

type Passes = {
  /** What is a point, among the names that a gateway has passed. */
  pattern: RegExp
  /** How many passes of a name are points, at most. */
  passesOf(name: string): number
}

/** Reading a table and opening a transaction leave nothing behind; a function of the database may. */
const changesNothing = /^db:(select (?!task_|trigger_)\w+|begin):/

/**
 * The points in the order of their passes, grouped by the state that a kill leaves behind: it changes where a statement
 * or a call has begun and where it has ended, and not from the end of one to the beginning of the next one.
 */
export function statesOf(passed: readonly string[], { pattern, passesOf }: Passes): string[][] {
  const counts = new Map<string, number>()
  const states: string[][] = []
  let current: string[] = []
  let isTouched = false
  const change = () => {
    if (current.length > 0) states.push(current)
    current = []
    isTouched = false
  }
  for (const name of passed) {
    const isChange = !changesNothing.test(name)
    const isAfter = name.endsWith(':after')
    if (isChange && isAfter && isTouched) change()
    isTouched = true
    const count = (counts.get(name) ?? 0) + 1
    counts.set(name, count)
    if (pattern.test(name) && count <= passesOf(name)) current.push(`${name}@${count}`)
    if (isChange && !isAfter) change()
  }
  change()
  return states
}

/** One point of each state, of the needed kinds where the state has some. */
export const oneOfEach = (
  states: readonly (readonly string[])[],
  needed: readonly RegExp[],
  random: () => number,
): string[] =>
  states.map((points) => {
    const kinds = points.filter((point) => needed.some((each) => each.test(point)))
    const choice = kinds.length > 0 ? kinds : points
    return choice[Math.floor(random() * choice.length)]!
  })
