import { Fault } from '#kernel/contract/fault.ts'

const pagesMax = 20
/** The number of rows in the venue's largest page of each list. */
const pageMax = { fills: 2_000, fundings: 500, updates: 500 } as const

/** Reads a list, oldest first. Throws if a full page has a single timestamp, as its rest cannot be requested. */
export async function readAllPages<T extends { atMs: number }>(
  read: (sinceMs: number) => Promise<T[]>,
  sinceMs: number,
  list: keyof typeof pageMax,
): Promise<T[]> {
  const whole: T[] = []
  for (let [page, from] = [0, sinceMs]; page < pagesMax; page += 1) {
    const pageRows = await read(from)
    if (pageRows.length < pageMax[list]) return [...whole, ...pageRows]
    const times = pageRows.map(({ atMs }) => atMs)
    const lastMs = Math.max(...times)
    if (Math.min(...times) === lastMs)
      throw new Fault(
        'unavailable',
        `The list of ${list} cannot be read completely: one timestamp fills a page`,
      )
    // The next page starts at the last timestamp, whose rows may be cut off on this page.
    whole.push(...pageRows.filter(({ atMs }) => atMs < lastMs))
    from = lastMs
  }
  throw new Fault('unavailable', `The list of ${list} is longer than ${pagesMax} pages`)
}
