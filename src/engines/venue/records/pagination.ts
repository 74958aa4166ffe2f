import { Fault } from '#kernel/fault.ts'

const pagesMax = 20
/** What the venue puts into one answer at most. */
const pageMax = { fills: 2_000, fundings: 500, updates: 500 } as const

/**
 * All of a list that comes in pieces by time, the oldest first. Throws where a piece holds one moment alone: the rest of
 * that moment cannot be asked for.
 */
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
      throw new Fault('unavailable', 'The venue tells more of one moment than it puts into one answer')
    // The next piece begins with that moment again, which may be cut off here.
    whole.push(...pageRows.filter(({ atMs }) => atMs < lastMs))
    from = lastMs
  }
  throw new Fault('unavailable', 'The venue tells more than can be read at once')
}
