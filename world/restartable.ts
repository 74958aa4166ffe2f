import type { Child } from './child.ts'

export type Signal = 'SIGTERM' | 'SIGKILL'

export type Restartable<T> = {
  /** Undefined while it is down. */
  current: () => T | undefined
  start: () => Promise<void>
  stop: (signal: Signal) => Promise<void>
}

type Options<T> = { name: string; launch: () => Promise<T>; log: (line: string) => void }

const pauseMs = 50
const pauseMsMax = 5_000

/** Restarts a process that ends by itself, until `stop` is called. */
export const createRestartable = <T extends { child: Child }>({
  name,
  launch,
  log,
}: Options<T>): Restartable<T> => {
  let current: T | undefined
  let shouldRun = false
  let starting: Promise<void> | undefined
  let restarts = 0

  const run = async () => {
    const started = await launch()
    current = started
    void started.child.exited.then(() => {
      if (current === started) current = undefined
      if (!shouldRun) return
      log(`${name} ended by itself; it is restarted from its last save.`)
      restartLater()
    })
  }

  const restartLater = () => {
    restarts += 1
    const again = () => {
      if (!shouldRun) return
      start().catch((error: Error) => {
        log(error.message)
        restartLater()
      })
    }
    // Growing pauses: a process that cannot start must not fill the log or use all of the machine.
    setTimeout(again, Math.min(pauseMs * restarts, pauseMsMax))
  }

  const start = () => {
    shouldRun = true
    if (current) return Promise.resolve()
    starting ??= run().finally(() => {
      starting = undefined
    })
    return starting
  }

  const stop = async (signal: Signal) => {
    shouldRun = false
    await starting?.catch(() => {})
    const last = current
    current = undefined
    await last?.child.stop(signal)
  }

  return { current: () => current, start, stop }
}
