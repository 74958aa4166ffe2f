/** Where a gateway can be killed: the points that some work passes, and one death at each of them. */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Gateway, NotReady } from '../harness/gateway.ts'
import { isShort, proofSeed } from '../proof/support/seed.ts'
import { randomOf } from './venue-traders.ts'

type Launch = (env: Record<string, string>) => Promise<Gateway>
type Recording = {
  pattern: RegExp
  /** How many passes of a name are points, at most. */
  passesOf(name: string): number
  /** Kinds of which each has to be among the points. */
  needed: readonly RegExp[]
  /** The kind of the one point that `npm test` kills at. */
  shortPoint: RegExp
  launch: Launch
  /** It may clear the points that were passed so far. */
  work(gateway: Gateway, attempt: string, clear: () => void): Promise<unknown>
}
const recordingsMax = 10
const roundsMax = 4

/**
 * The points that a gateway passes while it does the work; in the short size the first one of its kind.
 * Another gateway may do a part of the work, so the work is repeated until each needed kind was passed.
 */
export async function recordPoints({
  pattern,
  passesOf,
  needed,
  shortPoint,
  launch,
  work,
}: Recording): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'portico-failpoints-'))
  const file = join(folder, 'passed')
  const clear = () => writeFileSync(file, '')
  const readPoints = (): string[] => {
    const counts = new Map<string, number>()
    for (const name of readFileSync(file, 'utf8').split('\n'))
      if (pattern.test(name)) counts.set(name, (counts.get(name) ?? 0) + 1)
    return [...counts].flatMap(([name, count]) =>
      Array.from({ length: Math.min(count, passesOf(name)) }, (_, n) => `${name}@${n + 1}`),
    )
  }
  const missingIn = (points: string[]) =>
    [...needed, shortPoint].filter((each) => !points.some((point) => each.test(point)))
  try {
    const gateway = await launch({ FAILPOINT_LOG: file })
    try {
      gateway.child.kill('SIGUSR2')
      let attempts = 0
      do {
        clear()
        await work(gateway, `recorded-${attempts++}`, clear)
      } while (missingIn(readPoints()).length > 0 && attempts < recordingsMax)
    } finally {
      await gateway.kill()
    }
    const points = readPoints()
    assert.deepEqual(missingIn(points), [], `not passed, of ${points.join(' ')}`)
    return isShort ? points.filter((point) => shortPoint.test(point)).slice(0, 1) : points
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** The idempotency key of the work at a point, of which the round is a part. */
export const keyAt = (point: string): string => `at-${point.replaceAll(' ', '-')}`

/** Whether a request without an answer, or the signal of the process, says that the gateway is dead. */
export const hasDied = ({ child }: Gateway, answer: unknown): boolean =>
  child.signalCode === 'SIGKILL' || answer === undefined

/**
 * One gateway for each point. `dieAt` gives it the work, completes the work elsewhere, and says whether the gateway has
 * died; the next one starts meanwhile, unless `startsAhead` is false. Half of the points have to be reached: while fewer
 * are, because another gateway did that part of the work, the others are tried again with other work.
 */
export async function killAtEach(
  points: readonly string[],
  launch: Launch,
  dieAt: (at: string, victim: Gateway) => Promise<boolean>,
  { startsAhead = true } = {},
): Promise<string> {
  assert.ok(points.length > 0, 'no point to kill at')
  let missed = [...points]
  const deaths = () => points.length - missed.length
  for (let round = 1; round <= roundsMax && deaths() < points.length / 2; round++) {
    const tried = missed
    missed = []
    let next: Promise<Gateway> | undefined
    for (const [index, point] of tried.entries()) {
      const victim = await (next ?? launch({ FAILPOINT: point }))
      const nextPoint = startsAhead ? tried[index + 1] : undefined
      next = nextPoint === undefined ? undefined : launch({ FAILPOINT: nextPoint })
      next?.catch((error: unknown) => assert.ok(error instanceof NotReady))
      if (!(await dieAt(`${point} round ${round}`, victim))) missed.push(point)
    }
  }
  assert.ok(deaths() >= points.length / 2, `only ${deaths()} of ${points.length} points were reached`)
  return `${points.length} points, ${deaths()} deaths`
}

type Sample = Pick<Recording, 'pattern' | 'needed' | 'shortPoint' | 'launch'> & {
  suite: string
  /** How many passes of a name are points, at most; left out: the first one. */
  passesOf?: Recording['passesOf']
  max: number
  /** Calls `arm` where the points begin, completes the work in any case, and says whether the gateway has died. */
  run(at: string, gateway: Gateway, arm: () => void): Promise<boolean>
}

/** Records the points of a run, and kills at up to `max` of them: the needed ones, and others that the seed selects. */
export async function killAtSample({ suite, max, run, ...recording }: Sample): Promise<string> {
  const { needed, launch } = recording
  const points = await recordPoints({
    passesOf: () => 1,
    ...recording,
    work: async (gateway, attempt, clear) => assert.equal(await run(attempt, gateway, clear), false),
  })
  const random = randomOf(proofSeed(suite))
  const sample = points
    .map((point) => ({ point, at: needed.some((each) => each.test(point)) ? 0 : random() }))
    .sort((a, b) => a.at - b.at)
    .slice(0, max)
    .map(({ point }) => point)
  const dieAt = async (at: string, victim: Gateway) => {
    const died = await run(at, victim, () => victim.child.kill('SIGUSR2'))
    await victim.kill()
    return died
  }
  return killAtEach(sample, launch, dieAt, { startsAhead: false })
}
