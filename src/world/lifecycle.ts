import type { Child } from './child.ts'

export type Signal = 'SIGTERM' | 'SIGKILL'

export type Lifecycle<T> = {
  /** Undefined while it is down. */
  now: () => T | undefined
  start: () => Promise<void>
  stop: (signal: Signal) => Promise<void>
}

type Options<T> = { name: string; launch: () => Promise<T>; log: (line: string) => void }

const pauseMs = 50
const pauseMsMax = 5_000

/** Keeps a process alive until it is ordered to stop: one that ends by itself is started again. */
export const lifecycle = <T extends { child: Child }>({ name, launch, log }: Options<T>): Lifecycle<T> => {
  let current: T | undefined
  let wanted = false
  let starting: Promise<void> | undefined
  let restarts = 0

  const run = async () => {
    const started = await launch()
    current = started
    void started.child.exited.then(() => {
      if (current === started) current = undefined
      if (!wanted) return
      log(`${name} ended by itself; starting it again from its last save.`)
      revive()
    })
  }

  const revive = () => {
    restarts += 1
    const again = () => {
      if (!wanted) return
      start().catch((error: Error) => {
        log(error.message)
        revive()
      })
    }
    // Growing pauses: what cannot start must not fill the log and the machine.
    setTimeout(again, Math.min(pauseMs * restarts, pauseMsMax))
  }

  const start = () => {
    wanted = true
    if (current) return Promise.resolve()
    starting ??= run().finally(() => {
      starting = undefined
    })
    return starting
  }

  const stop = async (signal: Signal) => {
    wanted = false
    await starting?.catch(() => {})
    const last = current
    current = undefined
    await last?.child.stop(signal)
  }

  return { now: () => current, start, stop }
}
