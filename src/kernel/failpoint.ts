/**
 * A place where a test may stop, delay or kill the process. Every database and network call passes two of them
 * (before and after), so that a crash suite can enumerate them without a list.
 */
export type Failpoints = { pass(name: string): void | Promise<void> }

export const noFailpoints: Failpoints = { pass: () => undefined }

type Options = {
  /** Passes count from here on, so that what a start does is not counted. */
  armed: () => boolean
  /** `name@n`: kill the process at the n-th pass of that name. */
  killAt?: string | undefined
  /** Called with each name that is passed. */
  record?: ((name: string) => void) | undefined
  kill: () => void
}

export function failpoints({ armed, killAt, record, kill }: Options): Failpoints {
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
