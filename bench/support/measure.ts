/** Alternating runs of two things, so that a machine whose speed drifts affects both alike. */

export const median = (values: number[]): number => {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

export const percentile = (values: number[], share: number): number => {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!
}

type Result = {
  id: string
  name: string
  goal: string
  /** Our figure divided by the baseline's, run by run; with a unit, the measured figure. */
  ratios: number[]
  /** Only where there is no baseline, or where the goal is a size: MiB, us, ms, s. */
  unit?: string
  met: (ratio: number) => boolean
  annex?: Record<string, unknown>
}

const round = (value: number) => Number(value.toPrecision(3))

export function report({ id, name, goal, ratios, unit, met, annex = {} }: Result): void {
  const ratio = round(median(ratios))
  const line = {
    id,
    name,
    goal,
    ...(unit && { unit }),
    ratio,
    median: ratio,
    min: round(Math.min(...ratios)),
    max: round(Math.max(...ratios)),
    runs: ratios.length,
    verdict: met(ratio) ? 'met' : 'not met',
    annex,
  }
  process.stdout.write(`${JSON.stringify(line)}\n`)
}

/** `count` calls, `width` of them at a time; returns the rate per second and each call's time in ms. */
export async function load(
  count: number,
  width: number,
  call: (n: number) => Promise<unknown>,
): Promise<{ perSecond: number; ms: number[] }> {
  const ms: number[] = []
  let next = 0
  const started = performance.now()
  const worker = async () => {
    while (next < count) {
      const n = next++
      const at = performance.now()
      await call(n)
      ms.push(performance.now() - at)
    }
  }
  await Promise.all(Array.from({ length: width }, worker))
  return { perSecond: (count * 1000) / (performance.now() - started), ms }
}

/** Calls for a fixed time; for things whose speed is not known beforehand. */
export async function loadFor(
  forMs: number,
  width: number,
  call: (n: number) => Promise<unknown>,
): Promise<{ perSecond: number; ms: number[] }> {
  const ms: number[] = []
  let n = 0
  const started = performance.now()
  const worker = async () => {
    while (performance.now() - started < forMs) {
      const at = performance.now()
      await call(n++)
      ms.push(performance.now() - at)
    }
  }
  await Promise.all(Array.from({ length: width }, worker))
  return { perSecond: (ms.length * 1000) / (performance.now() - started), ms }
}
