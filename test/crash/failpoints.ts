/** Where a gateway can be killed: the points that some work passes, and one death at each of them. */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Gateway, NotReady } from '../harness/gateway.ts'
import { isShort } from '../proof/support/seed.ts'

type Environment = Record<string, string>
export type Recording = {
  /** Of the gateway that records. */
  env: Environment
  /** The points so far, also those that do not belong to the work. */
  text(): string
  /** Forgets them. */
  clear(): void
}

/** The points that the work passes, each as often as it passes it, up to `passesOf` times. */
export async function recordPoints(
  { pattern, passesOf }: { pattern: RegExp; passesOf: (name: string) => number },
  work: (recording: Recording) => Promise<void>,
): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'portico-failpoints-'))
  const file = join(folder, 'passed')
  const clear = () => writeFileSync(file, '')
  const text = () => readFileSync(file, 'utf8')
  clear()
  try {
    await work({ env: { FAILPOINT_LOG: file }, text, clear })
    const counts = new Map<string, number>()
    for (const name of text().split('\n'))
      if (pattern.test(name)) counts.set(name, (counts.get(name) ?? 0) + 1)
    return [...counts].flatMap(([name, count]) =>
      Array.from({ length: Math.min(count, passesOf(name)) }, (_, n) => `${name}@${n + 1}`),
    )
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** All points; in the short size the first one of the last needed kind. Each kind has to be among them. */
export function choosePoints(all: readonly string[], needed: readonly RegExp[]): string[] {
  for (const each of needed)
    assert.ok(
      all.some((point) => each.test(point)),
      `${each} in ${all.join(' ')}`,
    )
  if (!isShort) return [...all]
  return all.filter((point) => needed.at(-1)!.test(point)).slice(0, 1)
}

/** The idempotency key of the work at a point. */
export const keyAt = (point: string): string => `at-${point.replaceAll(' ', '-')}`

/** Whether a request without an answer, or the signal of the process, says that the gateway is dead. */
export const hasDied = ({ child }: Gateway, answer: unknown): boolean =>
  child.signalCode === 'SIGKILL' || answer === undefined

/**
 * One gateway for each point. `dieAt` gives it the work, completes the work elsewhere, and says whether the gateway has
 * died; the next one starts meanwhile. Most of the points have to be reached.
 */
export async function killAtEach(
  points: readonly string[],
  launch: (env: Environment) => Promise<Gateway>,
  dieAt: (point: string, victim: Gateway) => Promise<boolean>,
): Promise<string> {
  let deaths = 0
  let next: Promise<Gateway> | undefined
  for (const [index, point] of points.entries()) {
    const victim = await (next ?? launch({ FAILPOINT: point }))
    const nextPoint = points[index + 1]
    next = nextPoint === undefined ? undefined : launch({ FAILPOINT: nextPoint })
    next?.catch((error: unknown) => assert.ok(error instanceof NotReady))
    if (await dieAt(point, victim)) deaths++
  }
  assertReached(points, deaths)
  return `${points.length} points, ${deaths} deaths`
}

export const assertReached = (points: readonly string[], deaths: number): void =>
  assert.ok(deaths >= points.length / 2, `only ${deaths} of ${points.length} points were reached`)
