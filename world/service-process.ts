import type { Signal } from './restartable.ts'

/** A service in a process of its own, with a control port for this world only, which starts with its first request. */
export type ServiceNode = {
  start: () => Promise<void>
  stop: (signal: Signal) => Promise<void>
  /** Starts it unless it was stopped. */
  wake: () => Promise<void> | undefined
  /** True where an earlier run may have left open work. */
  hasState: () => boolean
  syncTime: () => Promise<void>
  /** Forwards one request to the control port of the service. */
  control: (method: string, path: string, body?: unknown) => Promise<{ status: number; reply: unknown }>
  port: () => number | undefined
  close: () => Promise<void>
}

type Ready = { port: number; controlPort: number }

/** The first line that a service prints. */
export const parseReady = (output: string): Ready | undefined => {
  const line = output.split('\n').find((each) => each.includes('"ready"') && each.trimEnd().endsWith('}'))
  return line === undefined ? undefined : (JSON.parse(line) as Ready)
}

const timeoutMs = 30_000

export const requestControl = async (port: number, method: string, path: string, body?: unknown) => {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(timeoutMs),
  })
  return { status: answer.status, reply: (await answer.json()) as unknown }
}
