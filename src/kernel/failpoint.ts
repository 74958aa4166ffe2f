/**
 * A point at which a test can stop, delay or kill the process. Every database and network call passes one before
 * and one after, so that a crash test can enumerate the points without a list.
 */
export type Failpoints = { pass(name: string): void | Promise<void> }

export const noFailpoints: Failpoints = { pass: () => undefined }

type Options = {
  /** Whether passes count now: false during startup, so that the passes of a start are left out. */
  armed: () => boolean
  /** `name@n` kills the process at the n-th pass of that name. */
  killAt?: string | undefined
  record?: ((name: string) => void) | undefined
  kill: () => void
}

export function createFailpoints({ armed, killAt, record, kill }: Options): Failpoints {
  if (killAt === undefined && record === undefined) return noFailpoints
  const [name, nth = '1'] = (killAt ?? '').split('@')
  let left = Number(nth)
  return {
    pass(passed) {
      if (!armed()) return
      record?.(passed)
      if (passed === name && --left === 0) kill()
    },
  }
}
